package migrate

import "testing"

// KeepNothing makes imports read everything again that they need again, until the test ends.
func KeepNothing(t *testing.T) {
	before := mostKept
	mostKept = 0
	t.Cleanup(func() { mostKept = before })
}
