package faulttest

import (
	"os"
	"strconv"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

func TestMain(m *testing.M) { os.Exit(longtest.MainWithCheapPasswords(m)) }

// faultsVariable is the environment variable for the number of faults to try.
const faultsVariable = "SOUVENIR_FAULTS"

// points returns how many faults to try: few in a plain run, more in the long form, or the number in the variable. It
// skips tests for which a plain run tries none.
func points(tb testing.TB, ci, quick int) int {
	tb.Helper()
	if said := os.Getenv(faultsVariable); said != "" {
		n, err := strconv.Atoi(said)
		if err != nil || n < 1 {
			tb.Fatalf("%s is %q, want a number of at least 1", faultsVariable, said)
		}
		return n
	}
	if quick == 0 {
		longtest.Only(tb)
	}
	return longtest.Size(ci, quick)
}
