package postgres

import (
	"container/list"
	"fmt"
	"strings"
	"testing"
)

// Plans are limited in bytes, and the ones in use stay.
func TestPlansTakeALimitedNumberOfBytes(t *testing.T) {
	a := ahead{all: map[string]*list.Element{}}
	large := func() *plan {
		p := &plan{}
		for range mostAhead {
			p.reads = append(p.reads, read{key: strings.Repeat("x", 5000)})
		}
		return p
	}
	a.set("used", large())
	for i := range 1000 {
		a.set(fmt.Sprint(i), large())
		a.set(fmt.Sprint(i), large()) // replaces it
		if a.plan("used") == nil {
			t.Fatalf("after %d plans: the one that is used is gone", i)
		}
	}
	sum := 0
	for _, kept := range a.all {
		sum += kept.Value.(*plan).size
	}
	if sum != a.size || sum > mostPlans || sum < mostPlans/2 || a.order.Len() != len(a.all) {
		t.Errorf("got %d plans of %d bytes, counted as %d, want less than %d bytes", len(a.all), sum, a.size, mostPlans)
	}
	if a.plan("0") != nil || a.plan("999") == nil {
		t.Error("got the oldest plan, or not the newest, want the newest ones")
	}
	a.set("used", nil)
	if a.plan("used") != nil {
		t.Error("got a plan that was removed")
	}
}
