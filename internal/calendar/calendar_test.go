package calendar

import (
	"testing"
	"time"
	_ "time/tzdata"
)

// The clocks of these zones have skipped or repeated midnight, a part of it, or a whole day.
var zones = []string{"America/Havana", "America/Santiago", "Atlantic/Azores", "Africa/Cairo", "Asia/Beirut",
	"Asia/Amman", "America/Sao_Paulo", "America/Asuncion", "America/St_Johns", "Pacific/Apia", "Australia/Lord_Howe",
	"Europe/Berlin", "Asia/Kolkata", "UTC"}

// TestDaysMeet finds that each day begins where the one before ends, and where the clocks first show it.
func TestDaysMeet(t *testing.T) {
	for _, name := range zones {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		all := DaysUntil(time.Date(2026, 12, 31, 12, 0, 0, 0, zone), 22*365)
		for i, d := range all {
			if i > 0 && all[i-1].End != d.Begin {
				t.Errorf("%s: %s ends at %d, and %s begins at %d; want the same", name, all[i-1].Name, all[i-1].End, d.Name,
					d.Begin)
			}
			if d.Begin == d.End { // skipped as a whole
				continue
			}
			first, last := time.UnixMicro(d.Begin).In(zone), time.UnixMicro(d.Begin-1).In(zone)
			if first.Format(time.DateOnly) != d.Name || last.Format(time.DateOnly) == d.Name {
				t.Errorf("%s: %s begins at %v, after %v; want the first moment of the day", name, d.Name, first, last)
			}
		}
	}
}

func TestSpan(t *testing.T) {
	for _, c := range []struct{ zone, day, begin, end string }{
		{"Europe/Berlin", "2026-03-29", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},
		{"America/Havana", "2026-03-07", "2026-03-07T05:00:00Z", "2026-03-08T05:00:00Z"}, // midnight is skipped
		{"America/Havana", "2026-03-08", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"},
		{"Africa/Cairo", "2026-04-24", "2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z"}, // likewise
		{"Asia/Amman", "2021-10-29", "2021-10-28T21:00:00Z", "2021-10-29T22:00:00Z"},   // midnight comes twice
		{"Pacific/Apia", "2011-12-30", "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z"}, // skipped as a whole
		{"UTC", "9999-12-31", "9999-12-31T00:00:00Z", "+10000"},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		begin, end, err := Span(c.day, zone)
		if err != nil {
			t.Fatal(err)
		}
		gotBegin, gotEnd := begin.UTC().Format(time.RFC3339), end.UTC().Format(time.RFC3339)
		if end.Year() == 10000 {
			gotEnd = "+10000"
		}
		if gotBegin != c.begin || gotEnd != c.end {
			t.Errorf("%s in %s is from %s to %s; want %s to %s", c.day, c.zone, gotBegin, gotEnd, c.begin, c.end)
		}
	}
	if _, _, err := Span("2026-02-30", time.UTC); err == nil {
		t.Error("a day that does not exist: got no error, want one")
	}
}
