package kernel_test

import (
	"errors"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

func TestCyclicTablesAreDamage(t *testing.T) {
	for _, c := range []struct {
		after int64
		rows  []int64
		sound bool
	}{{0, nil, true}, {0, []int64{1, 2, 9}, true}, {-1, []int64{0, 1}, true},
		{3, []int64{3, 4}, false}, {0, []int64{1, 1}, false}, {0, []int64{5, 4}, false}} {
		err := kernel.Ascending(c.after, c.rows)
		if c.sound && err != nil || !c.sound && !errors.Is(err, db.ErrCorrupt) {
			t.Errorf("after %d, %v: got %v, want sound to be %v", c.after, c.rows, err, c.sound)
		}
	}
}
