// Package longtest decides how much of the long tests a run executes. A plain go test runs a part of the long tables
// and skips tests that are always long. With SOUVENIR_LONG_TESTS=1 in the environment, as in CI, it runs all of them.
// The flag -short, meant for the race detector, shortens the tables again.
package longtest

import (
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/auth/passwords"
)

// variable is the environment variable that enables all long tests.
const variable = "SOUVENIR_LONG_TESTS"

// On reports whether the variable is set.
func On() bool { return os.Getenv(variable) != "" }

// All reports whether tests use the whole of their tables.
func All() bool { return On() && !testing.Short() }

// Part reports whether to try entry i of a long table: each one in the long form, every short-th with -short in
// addition to the variable, and every quick-th without the variable.
func Part(i, short, quick int) bool {
	switch {
	case !On():
		return i%quick == 0
	case testing.Short():
		return i%short == 0
	}
	return true
}

// Size returns how many items to make: all in the long form, or quick without the variable or with -short.
func Size(all, quick int) int {
	if All() {
		return all
	}
	return quick
}

// Keys returns the sorted keys of a table that Part selects.
func Keys[V any](table map[string]V, short, quick int) []string {
	i := -1
	return slices.DeleteFunc(slices.Sorted(maps.Keys(table)), func(string) bool {
		i++
		return !Part(i, short, quick)
	})
}

// Only skips a test that has no shorter form unless the variable is set.
func Only(tb testing.TB) {
	tb.Helper()
	if !On() {
		tb.Skip("a long test; set " + variable + "=1 to run it")
	}
}

// Main runs the tests of a package that makes much garbage, for its TestMain. Below half a GiB, garbage is collected
// less often than by default. This saves an eighth of the processor time and changes no result: tests of the heap's
// size set their own limits.
func Main(m *testing.M) int {
	debug.SetGCPercent(1600)
	debug.SetMemoryLimit(512 << 20)
	return m.Run()
}

// MainWithCheapPasswords is Main for a package whose tests set many passwords. Passwords have their real cost only in
// the long form; internal/auth/passwords tests the cost itself.
func MainWithCheapPasswords(m *testing.M) int {
	if !On() {
		passwords.CheapForTests()
	}
	return Main(m)
}
