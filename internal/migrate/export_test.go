package migrate

import "testing"

// KeepNothing disables the cache of imports until the test ends, so that they read everything again when they need it.
func KeepNothing(t *testing.T) {
	before := mostKept
	mostKept = 0
	t.Cleanup(func() { mostKept = before })
}
