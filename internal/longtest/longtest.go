// Package longtest says how much of its long tests a run carries out. A plain go test takes a part of the long tables
// and leaves out the tests that only grow long; with SOUVENIR_LONG_TESTS=1 in the environment, as in CI, it takes all
// of them. The flag
// -short, which is for the race detector, shortens the tables again.
package longtest

import (
	"os"
	"testing"
)

// variable is the environment variable that asks for everything.
const variable = "SOUVENIR_LONG_TESTS"

// On reports whether the variable is set.
func On() bool { return os.Getenv(variable) != "" }

// All reports whether tests go through the whole of their tables.
func All() bool { return On() && !testing.Short() }

// Part reports whether entry i of a long table is tried: each one in the long form, each short-th with -short beside
// the variable, and each quick-th without the variable.
func Part(i, short, quick int) bool {
	switch {
	case !On():
		return i%quick == 0
	case testing.Short():
		return i%short == 0
	}
	return true
}

// Only leaves out a test that has no shorter form unless the variable is set.
func Only(tb testing.TB) {
	tb.Helper()
	if !On() {
		tb.Skip("a long test; set " + variable + "=1 to run it")
	}
}
