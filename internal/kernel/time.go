package kernel

import (
	"database/sql"
	"fmt"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// ToTime returns a stored time.
func ToTime(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// TimeOf returns a stored time, the zero time for none.
func TimeOf(micros *int64) time.Time {
	if micros == nil {
		return time.Time{}
	}
	return ToTime(*micros)
}

// MicrosOf returns a time as it is stored, nil for the zero time.
func MicrosOf(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	micros := t.UnixMicro()
	return &micros
}

// TimeInto returns the destination of a column with a time, for [db.Rows]. NULL is the zero time.
func TimeInto(t *time.Time) sql.Scanner { return (*storedTime)(t) }

type storedTime time.Time

// Scan reads a stored time.
func (t *storedTime) Scan(stored any) error {
	switch micros := stored.(type) {
	case nil:
		*t = storedTime{}
	case int64:
		*t = storedTime(ToTime(micros))
	default:
		return fmt.Errorf("%w: %T value %v into a time", db.ErrMisfit, stored, stored)
	}
	return nil
}

// Day is a day and the microseconds at which it begins and ends.
type Day struct {
	Name       string // 2026-03-01
	Begin, End int64
}

// DaysUntil returns the last n days up to now, the oldest first. A day has 23 or 25 hours where the clocks change.
func DaysUntil(now time.Time, n int) []Day {
	days := make([]Day, n)
	midnight := func(back int) time.Time {
		return time.Date(now.Year(), now.Month(), now.Day()-back, 0, 0, 0, 0, now.Location())
	}
	for i := range days {
		begin := midnight(n - 1 - i)
		// Noon determines the day reliably, even where a day has no midnight.
		days[i] = Day{time.Date(now.Year(), now.Month(), now.Day()-(n-1-i), 12, 0, 0, 0, time.UTC).Format(time.DateOnly),
			begin.UnixMicro(), midnight(n - 2 - i).UnixMicro()}
	}
	return days
}
