package postgres

import "time"

// Unanswered is unanswered, for tests.
var Unanswered = unanswered

// SetLockTimeout sets how long a Write waits for a lock.
func (d *DB) SetLockTimeout(to time.Duration) { d.lockTimeout = to }
