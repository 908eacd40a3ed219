package signin

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// testedAttempts counts attempts by a clock that the test advances.
func testedAttempts(free int) (a *attempts, now *time.Time) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a = newAttempts(free, nil, nil)
	a.now = func() time.Time { return at }
	return a, &at
}

func (a *attempts) expect(t *testing.T, who, address string, want time.Duration) counted {
	t.Helper()
	c, wait := a.try(t, who, address, false)
	if wait != want {
		t.Errorf("%s from %s waits %v, want %v", who, address, wait, want)
	}
	return c
}

func (a *attempts) try(t *testing.T, who, address string, known bool) (counted, time.Duration) {
	t.Helper()
	c, wait, err := a.begin(t.Context(), who, address, known)
	if err != nil {
		t.Error(err)
	}
	return c, wait
}

func TestWaitsDoubleUpToALimit(t *testing.T) {
	a, now := testedAttempts(defaultTries)
	for range defaultTries {
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
	for range defaultTries {
		a.expect(t, "anna", "1.2.3.4", 0)
	}
	a.expect(t, "anna", "1.2.3.4", firstWait)
}

func TestARightPasswordForgetsWrongOnes(t *testing.T) {
	a, now := testedAttempts(3)
	for range 5 {
		a.expect(t, "anna", "1.2.3.4", 0)
		a.expect(t, "anna", "1.2.3.4", 0)
		a.expect(t, "anna", "1.2.3.4", 0).right(t.Context())
		*now = now.Add(time.Hour / 60)
	}
	for range 30 { // which reveal nothing about the password
		a.expect(t, "ben", "1.2.3.5", 0).unused(t.Context())
	}
	for range 3 {
		a.expect(t, "ben", "1.2.3.5", 0)
	}
	a.expect(t, "ben", "1.2.3.5", firstWait)
}

// Signing in to one's own account in between does not speed up guessing others' passwords.
func TestAnOwnAccountDoesNotHelpWithOthers(t *testing.T) {
	a, now := testedAttempts(defaultTries)
	tried := 0
	for i := 0; i < 3600; i++ {
		if c, wait := a.try(t, "own", "1.2.3.4", false); wait == 0 {
			c.right(t.Context())
		}
		if _, wait := a.try(t, fmt.Sprint("name ", i), "1.2.3.4", false); wait == 0 {
			tried++
		}
		*now = now.Add(time.Second)
	}
	if tried > 100 {
		t.Errorf("%d tries in an hour, want at most 100", tried)
	}
}

// An attacker with many addresses, or many names, gets as many attempts in an hour as the standard allows.
func TestManyAddressesAndManyNames(t *testing.T) {
	for name, next := range map[string]func(i int) (who, address string){
		"one name":    func(i int) (string, string) { return "anna", fmt.Sprintf("10.0.%d.%d", i/250, i%250) },
		"one address": func(i int) (string, string) { return fmt.Sprintf("name %d", i), "1.2.3.4" },
		"one of both": func(int) (string, string) { return "anna", "1.2.3.4" },
	} {
		a, now := testedAttempts(defaultTries)
		tried := 0
		for i := 0; i < 3600; i++ {
			who, address := next(i)
			if _, wait := a.try(t, who, address, false); wait == 0 {
				tried++
			} else if wait > shortWait && name != "one of both" {
				t.Fatalf("%s: waits %v, want a short wait", name, wait)
			}
			*now = now.Add(time.Second)
		}
		if tried > 100 || tried < defaultTries {
			t.Errorf("%s: %d tries in an hour, want at most 100 and at least %v", name, tried, defaultTries)
		}
	}
}

// An attacker of a name, even from the owner's own address, cannot lock its owner out of a browser that the owner has
// used before.
func TestOthersCannotLockAUserOut(t *testing.T) {
	a, now := testedAttempts(defaultTries)
	for i := range 2000 {
		a.try(t, "anna", fmt.Sprint("attacker ", i), false)
		a.try(t, "anna", "home", false)
		*now = now.Add(time.Second)
	}
	if _, wait := a.try(t, "anna", "a new place", false); wait == 0 || wait > shortWait {
		t.Errorf("elsewhere, a try waits %v, want more than 0 and at most %v", wait, shortWait)
	}
	for range defaultTries {
		if _, wait := a.try(t, "anna", "home", true); wait != 0 {
			t.Errorf("the owner waits %v, want 0", wait)
		}
	}
	if _, wait := a.try(t, "anna", "anywhere", true); wait != firstWait {
		t.Errorf("with a mark, one may guess: waits %v; want %v", wait, firstWait)
	}
}

func TestManyTriesAtOnceAreNotAllFree(t *testing.T) {
	a, _ := testedAttempts(defaultTries)
	var mu sync.Mutex
	var all sync.WaitGroup
	let := 0
	for range 200 {
		all.Go(func() {
			if _, wait := a.try(t, "anna", "1.2.3.4", false); wait == 0 {
				mu.Lock()
				defer mu.Unlock()
				let++
			}
		})
	}
	all.Wait()
	if let != defaultTries {
		t.Errorf("%d tries at once, want %d", let, defaultTries)
	}
}

func TestCountedTriesAreBounded(t *testing.T) {
	longtest.Only(t)
	a, _ := testedAttempts(defaultTries)
	for i := range 3 * mostAttempts {
		a.try(t, strings.Repeat("x", 1000)+fmt.Sprint(i), fmt.Sprint(i), false)
	}
	if n := a.seen.Size(); n > mostAttempts {
		t.Errorf("%d counts are kept, want at most %v", n, mostAttempts)
	}
}
