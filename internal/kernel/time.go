package kernel

import "time"

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

// InMicros returns a time as precise as it is stored.
func InMicros(t time.Time) time.Time { return TimeOf(MicrosOf(t)) }
