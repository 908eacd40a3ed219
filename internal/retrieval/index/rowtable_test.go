package index

import (
	"math/rand/v2"
	"testing"
)

// A table agrees with a map after each of many additions and removals, with rows that lie side by side or anywhere.
func TestRowTableAgreesWithAMap(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		rows := make([]int64, 300)
		for i := range rows {
			rows[i] = int64(i) - 100
			if seed%2 == 1 {
				rows[i] = int64(random.Uint64())
			}
		}
		var table rowTable
		want := map[int64]*memory{}
		for step := range 4000 {
			row := rows[random.IntN(len(rows))]
			grows := step/500%2 == 0 // then more are removed
			switch have := want[row]; {
			case have == nil && (grows || random.IntN(8) == 0):
				m := &memory{row: row}
				want[row] = m
				table.put(m)
			case !grows || random.IntN(8) == 0:
				delete(want, row)
				table.drop(row)
			}
			if table.count != len(want) || len(table.slots) > max(leastSlots, 16*len(rows)) {
				t.Fatalf("seed %d, step %d: got %d memories in %d slots, want %d", seed, step, table.count, len(table.slots),
					len(want))
			}
			for _, row := range rows[:1+step%len(rows)] {
				if got := table.get(row); got != want[row] {
					t.Fatalf("seed %d, step %d, row %d: got %v, want %v", seed, step, row, got, want[row])
				}
			}
		}
		for row := range want {
			table.drop(row)
		}
		if table.count != 0 || len(table.slots) > 4*leastSlots {
			t.Errorf("seed %d: got %d memories in %d slots after the last was removed, want none in few", seed, table.count,
				len(table.slots))
		}
	}
}
