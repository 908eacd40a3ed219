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
