package ratelimit_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/server/internal/ratelimit"
)

func TestALimitHoldsForEachKey(t *testing.T) {
	l := ratelimit.New(3, time.Hour)
	for range 3 {
		if wait := l.AllowKey("a"); wait != 0 {
			t.Errorf("wait %v within the limit, want 0", wait)
		}
	}
	for range 5 { // trying in between does not extend the wait
		if wait := l.AllowKey("a"); wait < 59*time.Minute || wait > time.Hour {
			t.Errorf("wait %v past the limit, want %v to %v", wait, 59*time.Minute, time.Hour)
		}
	}
	if wait := l.AllowKey("b"); wait != 0 {
		t.Errorf("another key waits %v, want 0", wait)
	}
}

func TestAddressesOfOneConnectionAreOne(t *testing.T) {
	for _, same := range [][2]string{{"2001:db8::1", "2001:db8::ffff:1"}, {"::ffff:1.2.3.4", "1.2.3.4"},
		{"fe80::1%eth0", "fe80::2%eth1"}} {
		if ratelimit.AddressKey(netip.MustParseAddr(same[0])) != ratelimit.AddressKey(netip.MustParseAddr(same[1])) {
			t.Errorf("%v are two, want one key", same)
		}
	}
	for _, different := range [][2]string{{"2001:db8::1", "2001:db8:0:1::1"}, {"1.2.3.4", "1.2.3.5"}} {
		a, b := netip.MustParseAddr(different[0]), netip.MustParseAddr(different[1])
		if ratelimit.AddressKey(a) == ratelimit.AddressKey(b) {
			t.Errorf("%v are one, want two", different)
		}
	}
}

// The memory is bounded for any number of keys, and keys in use stay.
func TestRecentForgetsWhatIsUnused(t *testing.T) {
	m := ratelimit.Recent{Most: 100}
	m.Set("used", 7)
	for i := range 10_000 {
		m.Set(fmt.Sprint(i), i)
		if i%40 == 0 {
			if value, ok := ratelimit.Get[int](&m, "used"); !ok || value != 7 {
				t.Fatalf("after %d others: got %d, %v, want 7 and true", i, value, ok)
			}
		}
		if n := m.Size(); n > 100 {
			t.Fatalf("%d are kept, want at most 100", n)
		}
	}
	if _, ok := ratelimit.Get[int](&m, "3"); ok {
		t.Error("entry 3 is still there, want it forgotten")
	}
	if value, ok := ratelimit.Get[int](&m, "9999"); !ok || value != 9999 {
		t.Errorf("the last entry: got %v, %v, want 9999 and true", value, ok)
	}
}
