package index

import (
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/simd"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// TestDotsAgreeForAllSizes covers every remainder of the block sizes of the loops.
func TestDotsAgreeForAllSizes(t *testing.T) {
	g := newGenerator(6)
	all := dots()
	for size := 1; size < 200; size++ {
		// Slices that begin and end anywhere in their arrays: no loop may rely on alignment or read past the end.
		a, b := g.unit(size + 3)[1:size+1], g.unit(size + 5)[3:size+3]
		want := 0.0
		for i := range a {
			want += float64(a[i]) * float64(b[i])
		}
		for name, dot := range all {
			if got := dot(a, b); math.Abs(float64(got)-want) > 1e-6 {
				t.Errorf("%s of %d numbers is %v, want %v", name, size, got, want)
			}
		}
	}
}

// TestWithoutAcceleration runs the tests that compare vectors again, as on a machine without AVX2. golang.org/x/sys/cpu
// simulates that if asked before the process starts.
func TestWithoutAcceleration(t *testing.T) {
	const mark = "cpu.avx2=off"
	if strings.Contains(os.Getenv("GODEBUG"), mark) {
		if simd.Fast() {
			t.Fatal("got acceleration on, want it off")
		}
		return
	}
	if !simd.Fast() {
		t.Skip("this machine has no acceleration to switch off")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tests := "TestWithoutAcceleration|TestDots.*|TestNumbers.*|TestVectors.*"
	if longtest.On() {
		tests += "|TestNear.*|TestSearchAgreesWithOracle|TestPages.*|TestCoarse.*|TestBounds.*|TestNothing.*"
	}
	cmd := exec.Command(self, "-test.run=^("+tests+")$")
	cmd.Env = append(os.Environ(), "GODEBUG="+strings.TrimPrefix(os.Getenv("GODEBUG")+","+mark, ","))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
