package server

import (
	"fmt"
	"path"
	"strings"
	"sync"
	"testing"
	"time"
)

// testedAttempts counts tries by a clock that the test moves on.
func testedAttempts(free int) (a *attempts, now *time.Time) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a = newAttempts(free)
	a.now = func() time.Time { return at }
	return a, &at
}

func (a *attempts) expect(t *testing.T, who, address string, want time.Duration) counted {
	t.Helper()
	c, wait := a.begin(who, address, "")
	if wait != want {
		t.Errorf("%s from %s waits %v, not %v", who, address, wait, want)
	}
	return c
}

func TestWaitsDoubleUpToALimit(t *testing.T) {
	a, now := testedAttempts(freeTries)
	for range freeTries {
		a.expect(t, "anna", "1.2.3.4", 0)
	}
	for want := firstWait; want < longestWait; want *= 2 {
		a.expect(t, "anna", "1.2.3.4", want)
		*now = now.Add(want - time.Second)
		a.expect(t, "anna", "1.2.3.4", time.Second)
		*now = now.Add(time.Second)
		a.expect(t, "anna", "1.2.3.4", 0)
	}
	for range 3 {
		a.expect(t, "anna", "1.2.3.4", longestWait)
		*now = now.Add(longestWait)
		a.expect(t, "anna", "1.2.3.4", 0)
	}
	a.expect(t, "ben", "1.2.3.4", 0)  // another name from there
	a.expect(t, "anna", "1.2.3.5", 0) // the name from elsewhere
	*now = now.Add(longestWait + attemptMemory + time.Second)
	for range freeTries {
		a.expect(t, "anna", "1.2.3.4", 0)
	}
	a.expect(t, "anna", "1.2.3.4", firstWait)
}

func TestARightPasswordForgetsWrongOnes(t *testing.T) {
	a, now := testedAttempts(3)
	for range 5 {
		a.expect(t, "anna", "1.2.3.4", 0)
		a.expect(t, "anna", "1.2.3.4", 0)
		a.expect(t, "anna", "1.2.3.4", 0).right()
		*now = now.Add(time.Hour / 60)
	}
	for range 30 { // what told nothing about the password
		a.expect(t, "ben", "1.2.3.5", 0).unused()
	}
	for range 3 {
		a.expect(t, "ben", "1.2.3.5", 0)
	}
	a.expect(t, "ben", "1.2.3.5", firstWait)
}

// Signing in to an account of one's own in between makes guessing those of others no faster.
func TestAnOwnAccountDoesNotHelpWithOthers(t *testing.T) {
	a, now := testedAttempts(freeTries)
	tried := 0
	for i := 0; i < 3600; i++ {
		if c, wait := a.begin("own", "1.2.3.4", ""); wait == 0 {
			c.right()
		}
		if _, wait := a.begin(fmt.Sprint("name ", i), "1.2.3.4", ""); wait == 0 {
			tried++
		}
		*now = now.Add(time.Second)
	}
	if tried > 100 {
		t.Errorf("%d tries in an hour", tried)
	}
}

// One who has many addresses, or many names, gets as many tries in an hour as the standard allows, and no more.
func TestManyAddressesAndManyNames(t *testing.T) {
	for name, next := range map[string]func(i int) (who, address string){
		"one name":    func(i int) (string, string) { return "anna", fmt.Sprintf("10.0.%d.%d", i/250, i%250) },
		"one address": func(i int) (string, string) { return fmt.Sprintf("name %d", i), "1.2.3.4" },
		"one of both": func(int) (string, string) { return "anna", "1.2.3.4" },
	} {
		a, now := testedAttempts(freeTries)
		tried := 0
		for i := 0; i < 3600; i++ {
			who, address := next(i)
			if _, wait := a.begin(who, address, ""); wait == 0 {
				tried++
			} else if wait > shortWait && name != "one of both" {
				t.Fatalf("%s: waits %v", name, wait)
			}
			*now = now.Add(time.Second)
		}
		if tried > 100 || tried < freeTries {
			t.Errorf("%s: %d tries in an hour", name, tried)
		}
	}
}

// Whoever attacks a name, from everywhere or from the owner's own address, does not lock its owner out of a browser that the
// owner has signed in with.
func TestOthersCannotLockSomebodyOut(t *testing.T) {
	a, now := testedAttempts(freeTries)
	for i := range 2000 {
		a.begin("anna", fmt.Sprint("attacker ", i), "")
		a.begin("anna", "home", "")
		a.begin("anna", "home", a.mark("ben")) // a mark of one's own is none of others
		*now = now.Add(time.Second)
	}
	if _, wait := a.begin("anna", "a new place", ""); wait == 0 || wait > shortWait {
		t.Errorf("elsewhere, a try waits %v", wait)
	}
	if _, wait := a.begin("anna", "home", a.mark("ben")); wait == 0 {
		t.Error("the mark of another account lets somebody try")
	}
	other, _ := testedAttempts(freeTries)
	if _, wait := a.begin("anna", "home", other.mark("anna")); wait == 0 {
		t.Error("the mark of another server lets somebody try")
	}
	for range freeTries {
		if _, wait := a.begin("anna", "home", a.mark("anna")); wait != 0 {
			t.Errorf("the owner waits %v", wait)
		}
	}
	if _, wait := a.begin("anna", "anywhere", a.mark("anna")); wait != firstWait {
		t.Errorf("with a mark, one may guess: waits %v", wait)
	}
}

func TestManyTriesAtOnceAreNotAllFree(t *testing.T) {
	a, _ := testedAttempts(freeTries)
	var mu sync.Mutex
	var all sync.WaitGroup
	let := 0
	for range 200 {
		all.Go(func() {
			if _, wait := a.begin("anna", "1.2.3.4", ""); wait == 0 {
				mu.Lock()
				defer mu.Unlock()
				let++
			}
		})
	}
	all.Wait()
	if let != freeTries {
		t.Errorf("%d tries at once, not %d", let, freeTries)
	}
}

func TestWhatIsKnownOfTriesIsBounded(t *testing.T) {
	a, _ := testedAttempts(freeTries)
	for i := range 3 * mostAttempts {
		a.begin(strings.Repeat("x", 1000)+fmt.Sprint(i), fmt.Sprint(i), "")
	}
	if n := len(a.seen.young) + len(a.seen.old); n > mostAttempts {
		t.Errorf("%d counts are kept", n)
	}
}

func TestTimesInWords(t *testing.T) {
	now := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	for distance, want := range map[time.Duration]string{
		time.Second: "just now", 59 * time.Second: "just now", time.Minute: "1 minute ago", 59 * time.Minute: "59 minutes ago", 59*time.Minute + 40*time.Second: "1 hour ago",
		time.Hour: "1 hour ago", 47 * time.Hour: "47 hours ago", 47*time.Hour + 50*time.Minute: "2 days ago", 30 * day: "30 days ago", 90 * day: "3 months ago", 800 * day: "2 years ago",
		-7*day + time.Second: "in 7 days", -90 * time.Second: "in 2 minutes", -24 * time.Hour: "in 24 hours",
	} {
		if got := ago(now.Add(-distance), now); got != want {
			t.Errorf("%v: %q, not %q", distance, got, want)
		}
	}
	if got := ago(time.Time{}, now); got != "never" {
		t.Errorf("the zero time: %q", got)
	}
	for wait, want := range map[time.Duration]string{time.Millisecond: "1 second", 1500 * time.Millisecond: "2 seconds", 90 * time.Second: "90 seconds", 91 * time.Second: "2 minutes", 15 * time.Minute: "15 minutes"} {
		if got := inWords(wait); got != want {
			t.Errorf("%v: %q, not %q", wait, got, want)
		}
	}
}

func TestNamesOfBrowsers(t *testing.T) {
	for agent, want := range map[string]string{
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0":              "Edge on Windows",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15":                      "Safari on macOS",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1":    "Safari on iPhone",
		"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36":                            "Chrome on Android",
		"Mozilla/5.0 (Linux; Android 14; SAMSUNG SM-S911B) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/27.0 Chrome/125.0 Mobile Safari/53": "Samsung Internet on Android",
		"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0":                                                                     "Firefox on Linux",
		"curl/8.5.0":                     "curl",
		"<b>":                            "<b>",
		"":                               "a browser without a name",
		strings.Repeat("long and ", 100): strings.Repeat("long and ", 6) + "long …",
	} {
		if got := browserName(agent); got != want {
			t.Errorf("%q is %q, not %q", agent, got, want)
		}
	}
}

// Wherever a sign-in is said to lead, it leads to a path of this server.
func FuzzLocalPath(f *testing.F) {
	for _, next := range []string{"/profile", "//evil.example", "/\\evil.example", "https://evil.example", "/.//evil.example", "/%2f/evil.example", "/a?b#c", "/\x00", "/../other", "/a/../../other?b", "/#/../.."} {
		f.Add(next)
	}
	s := &Server{options: Options{PublicURL: "https://memory.example/deep"}}
	f.Fuzz(func(t *testing.T, next string) {
		got := s.localPath(next)
		seen, _, _ := strings.Cut(got, "?") // as http.Redirect writes it
		if !strings.HasPrefix(path.Clean(seen)+"/", "/deep/") || !strings.HasPrefix(got, "/deep/") || strings.ContainsAny(got, "\\\r\n\t") {
			t.Errorf("%q leads to %q", next, got)
		}
	})
}
