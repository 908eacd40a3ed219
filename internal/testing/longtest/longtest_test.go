package longtest

import (
	"slices"
	"testing"
)

func TestPartGrowsWithTheForm(t *testing.T) {
	tried := func() (n int) {
		for i := range 60 {
			if Part(i, 4, 12) {
				n++
			}
		}
		return n
	}
	t.Setenv(variable, "")
	table := map[string]bool{"c": true, "a": true, "b": true}
	if got := Keys(table, 1, 2); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("without %s: got keys %v of %v, want a and c", variable, got, table)
	}
	if got := tried(); got != 5 || All() {
		t.Errorf("without %s: got %d of 60 entries, All %v; want 5, false", variable, got, All())
	}
	t.Setenv(variable, "1")
	want := 60
	if testing.Short() {
		want = 15
	}
	if got := tried(); got != want || All() == testing.Short() {
		t.Errorf("with %s=1: got %d of 60 entries, All %v; want %d, %v", variable, got, All(), want, !testing.Short())
	}
}

func TestOnlySkipsWithoutTheVariable(t *testing.T) {
	for value, want := range map[string]bool{"": true, "1": false} {
		t.Setenv(variable, value)
		t.Run("value "+value, func(t *testing.T) {
			defer func() {
				if t.Skipped() != want {
					t.Errorf("with %s=%q: skipped is %v, want %v", variable, value, t.Skipped(), want)
				}
			}()
			Only(t)
		})
	}
}

func TestSizeIsWholeInTheLongFormOnly(t *testing.T) {
	for value, want := range map[string]int{"": 3, "1": 90} {
		if testing.Short() {
			want = 3
		}
		t.Setenv(variable, value)
		if got := Size(90, 3); got != want {
			t.Errorf("with %s=%q: got Size(90, 3) = %d, want %d", variable, value, got, want)
		}
	}
}
