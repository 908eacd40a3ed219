package web

import (
	"path"
	"strings"
	"testing"
	"time"
)

func TestTimes(t *testing.T) {
	now := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	for distance, want := range map[time.Duration]string{
		time.Second: "just now", 59 * time.Second: "just now", time.Minute: "1 minute ago",
		59 * time.Minute: "59 minutes ago", 59*time.Minute + 40*time.Second: "1 hour ago",
		time.Hour: "1 hour ago", 47 * time.Hour: "47 hours ago", 47*time.Hour + 50*time.Minute: "2 days ago",
		30 * Day: "30 days ago", 90 * Day: "3 months ago", 800 * Day: "2 years ago",
		-7*Day + time.Second: "in 7 days", -90 * time.Second: "in 2 minutes", -24 * time.Hour: "in 24 hours",
	} {
		if got := Ago(now.Add(-distance), now); got != want {
			t.Errorf("%v: %q, want %q", distance, got, want)
		}
	}
	if got := Ago(time.Time{}, now); got != "never" {
		t.Errorf("the zero time: %q, want \"never\"", got)
	}
	for wait, want := range map[time.Duration]string{time.Millisecond: "1 second", 1500 * time.Millisecond: "2 seconds",
		90 * time.Second: "90 seconds", 91 * time.Second: "2 minutes", 15 * time.Minute: "15 minutes"} {
		if got := Wait(wait); got != want {
			t.Errorf("%v: %q, want %q", wait, got, want)
		}
	}
}

func TestNamesOfBrowsers(t *testing.T) {
	for agent, want := range map[string]string{
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 " +
			"Edg/140.0.0.0": "Edge on Windows",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 " +
			"Safari/605.1.15": "Safari on macOS",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 " +
			"Mobile/15E148 Safari/604.1": "Safari on iPhone",
		"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile " +
			"Safari/537.36": "Chrome on Android",
		"Mozilla/5.0 (Linux; Android 14; SAMSUNG SM-S911B) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/27.0 " +
			"Chrome/125.0 Mobile Safari/53": "Samsung Internet on Android",
		"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0": "Firefox on Linux",
		"curl/8.5.0":                     "curl",
		"<b>":                            "<b>",
		"":                               "an unknown browser",
		strings.Repeat("long and ", 100): strings.Repeat("long and ", 6) + "long …",
	} {
		if got := BrowserName(agent); got != want {
			t.Errorf("%q is %q, want %q", agent, got, want)
		}
	}
}

// A sign-in always leads to a path of this server.
func FuzzLocalPath(f *testing.F) {
	for _, next := range []string{"/profile", "//evil.example", "/\\evil.example", "https://evil.example",
		"/.//evil.example", "/%2f/evil.example", "/a?b#c", "/\x00", "/../other", "/a/../../other?b", "/#/../.."} {
		f.Add(next)
	}
	s := New(Options{PublicURL: "https://memory.example/deep"})
	f.Fuzz(func(t *testing.T, next string) {
		got := s.LocalPath(next)
		seen, _, _ := strings.Cut(got, "?") // as http.Redirect writes it
		if !strings.HasPrefix(path.Clean(seen)+"/", "/deep/") || !strings.HasPrefix(got, "/deep/") ||
			strings.ContainsAny(got, "\\\r\n\t") {
			t.Errorf("%q leads to %q", next, got)
		}
	})
}

func TestSentencesEndOnce(t *testing.T) {
	for message, want := range map[string]string{"": "", " ": "", "it is red": "It is red.", "it is red. ": "It is red.",
		"is it red?": "Is it red?", "it is re…": "It is re…", "它是红色的。": "它是红色的。"} {
		if got := Sentence(message); got != want {
			t.Errorf("%q: got %q, want %q", message, got, want)
		}
	}
}
