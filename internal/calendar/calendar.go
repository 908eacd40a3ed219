// Package calendar finds where days begin and end in a time zone.
package calendar

import "time"

// Day is a day and the microseconds at which it begins and ends.
type Day struct {
	Name       string // 2026-03-01
	Begin, End int64
}

// DaysUntil returns the last n days up to now, the oldest first. A day has 23 or 25 hours where the clocks change.
func DaysUntil(now time.Time, n int) []Day {
	days := make([]Day, n)
	for i := range days {
		day := now.Day() - (n - 1 - i)
		// Noon determines the day reliably, even where a day has no midnight.
		days[i] = Day{time.Date(now.Year(), now.Month(), day, 12, 0, 0, 0, time.UTC).Format(time.DateOnly),
			Begin(now.Year(), now.Month(), day, now.Location()).UnixMicro(),
			Begin(now.Year(), now.Month(), day+1, now.Location()).UnixMicro()}
	}
	return days
}

// Begin returns the first moment of a day: midnight or, if the clocks skip that, the moment at which they do; if they
// show it twice in the same day, the first time. For a skipped midnight [time.Date] returns 23:00 or 01:00.
func Begin(year int, month time.Month, day int, zone *time.Location) time.Time {
	at := time.Date(year, month, day, 0, 0, 0, 0, zone)
	midnight := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	changed, next := at.ZoneBounds()
	switch shown := shownBy(at); {
	case shown.Before(midnight):
		return next
	case shown.After(midnight):
		return changed
	case changed.IsZero():
		return at
	}
	_, before := changed.Add(-1).Zone()
	if first := midnight.Add(-time.Duration(before) * time.Second); first.Before(changed) {
		return first.In(zone)
	}
	return at
}

// shownBy returns what the clocks in a time's zone show, as a time in UTC.
func shownBy(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// Span returns when a day of the form 2026-03-01 begins and ends in a time zone.
func Span(name string, zone *time.Location) (begin, end time.Time, err error) {
	day, err := time.Parse(time.DateOnly, name)
	if err != nil {
		return begin, end, err
	}
	year, month, number := day.Date()
	return Begin(year, month, number, zone), Begin(year, month, number+1, zone), nil
}
