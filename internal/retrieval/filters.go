package retrieval

import (
	"fmt"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/lru"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
)

// Filters keeps which memories match the conditions that were used last, in step with the log of changes: when a
// condition is used again, only the memories that have changed since are tested. The zero value is ready.
type Filters struct{ kept lru.Cache }

// filtered holds the memories that match a condition.
type filtered struct {
	mark db.Mark // of the log, up to which rows is right
	rows *index.RowSet
}

const (
	mostFiltered = 16 << 20 // bytes of all that Filters keeps
	// mostRetested is how many changed memories are tested; with more, the condition is asked again for all.
	mostRetested = 2_000
)

// Matching returns the memories of the selection's partitions that match its condition, whether they are live or not.
// Only results of steady selections are kept, see [Selection].
func (f *Filters) Matching(tx db.Tx, sel Selection) (*index.RowSet, error) {
	return f.matching(tx, sel, ``, func() (*index.RowSet, error) { return sel.matching(tx, "") })
}

// Indexed is Matching with less work if an index has the rows. The set may have memories of other partitions.
func (f *Filters) Indexed(tx db.Tx, sel Selection) (*index.RowSet, error) {
	if sel.Indexed == "" {
		return f.Matching(tx, sel)
	}
	return f.matching(tx, sel, `indexed `, func() (*index.RowSet, error) {
		rows, complete, err := sel.indexed(tx)
		if err != nil || complete {
			return rows, err
		}
		return f.Matching(tx, sel)
	})
}

// matching returns the rows kept under a prefix, brought up to date, or the result of read.
func (f *Filters) matching(tx db.Tx, sel Selection, prefix string, read func() (*index.RowSet, error)) (*index.RowSet,
	error) {
	if !sel.Steady || tx.Writable() { // what a transaction writes may be undone
		return read()
	}
	now, err := tx.Changes().Mark()
	if err != nil {
		return nil, err
	}
	key := prefix + sel.key()
	old, known := lru.Get[filtered](&f.kept, key)
	if known && old.mark == now {
		return old.rows, nil
	}
	var rows *index.RowSet
	if known {
		changed, next, complete, err := tx.Changes().Since(old.mark, mostRetested)
		if err != nil {
			return nil, err
		}
		if complete && next != now { // another search saw newer changes than this snapshot has
			return read()
		}
		if complete {
			if rows, err = sel.again(tx, old.rows, changed); err != nil {
				return nil, err
			}
		}
	}
	if rows == nil {
		if rows, err = read(); err != nil {
			return nil, err
		}
	}
	f.kept.Put(key, filtered{mark: now, rows: rows}, len(key)+rows.Bytes()+200, mostFiltered) // bytes: an estimate
	return rows, nil
}

// indexed reads the rows that match from an index. It reports false if there are many more than the selection's
// partitions have: other partitions may have very many.
func (sel Selection) indexed(tx db.Tx) (rows *index.RowSet, complete bool, err error) {
	most := 2*sel.memories() + 1000
	list, err := db.Column[int64](tx, `SELECT r.memory_id FROM (`+sel.Indexed+`) r LIMIT ?`,
		append(slices.Clone(sel.Args), most)...)
	if err != nil || len(list) == most {
		return nil, false, err
	}
	slices.Sort(list)
	return index.NewRowSet(slices.Compact(list)), true, nil
}

// Selected is Matching by way of Indexed.
func (f *Filters) Selected(tx db.Tx, sel Selection) (*index.RowSet, error) {
	if sel.Indexed == "" {
		return f.Matching(tx, sel)
	}
	return f.matching(tx, sel, `selected `, func() (*index.RowSet, error) {
		rows, err := f.Indexed(tx, sel)
		if err != nil {
			return nil, err
		}
		list, err := sel.restrict(tx, slices.Collect(rows.All()))
		return index.NewRowSet(list), err
	})
}

// restrict returns the rows in the selection's partitions, of some in ascending order. Another caller may have read
// these, so it looks beyond the second wall.
func (sel Selection) restrict(tx db.Tx, rows []int64) (left []int64, err error) {
	err = db.Beyond(tx, func() error {
		left, err = sel.inside(tx, rows)
		return err
	})
	return left, err
}

func (sel Selection) inside(tx db.Tx, rows []int64) ([]int64, error) {
	var others int
	err := tx.QueryRow(`SELECT coalesce(sum(memories), 0) FROM partition WHERE NOT id IN `+db.Integers,
		sel.PartitionList()).Scan(&others)
	if err != nil || others == 0 {
		return rows, err
	}
	if others > len(rows) {
		return db.Column[int64](tx, `SELECT m.id FROM memory m WHERE m.id IN `+db.Integers+` AND `+db.NoIndex+
			`m.partition_id IN `+db.Integers, db.List(rows), sel.PartitionList())
	}
	gone, err := db.Column[int64](tx, `SELECT m.id FROM partition p `+db.InOrder+` memory m `+db.ByCreated+
		` ON m.partition_id = p.id WHERE NOT p.id IN `+db.Integers, sel.PartitionList())
	elsewhere := index.NewRowSet(gone)
	return slices.DeleteFunc(rows, elsewhere.Has), err
}

// key tells conditions and partitions apart.
func (sel Selection) key() string {
	return fmt.Sprintf("%s %q %#v", sel.PartitionList(), sel.Condition.String(), sel.Args)
}

// matching reads the memories that match the condition and a further one, live or not.
func (sel Selection) matching(tx db.Tx, further string, args ...any) (*index.RowSet, error) {
	sel.Current = ""
	condition, given := sel.Where()
	var rows []int64
	var row int64
	err := tx.Each(func(r db.Rows) error {
		err := r.Scan(&row)
		rows = append(rows, row)
		return err
	}, `SELECT m.id `+kernel.FromMemory+` WHERE `+condition+further, append(given, args...)...)
	return index.NewRowSet(rows), err
}

// again returns the rows that match once some memories have changed.
func (sel Selection) again(tx db.Tx, old *index.RowSet, changed []int64) (*index.RowSet, error) {
	sel.Condition = sel.Condition.LookedUp(len(changed) <= fewRetested)
	matching, err := sel.matching(tx, ` AND m.id IN `+db.Integers, db.List(changed))
	if err != nil {
		return nil, err
	}
	retested := index.NewRowSet(changed)
	rows := make([]int64, 0, old.Len()+matching.Len())
	for row := range old.All() {
		if !retested.Has(row) {
			rows = append(rows, row)
		}
	}
	for row := range matching.All() {
		rows = append(rows, row)
	}
	return index.NewRowSet(rows), nil
}

// fewRetested is the number of memories up to which own metadata are looked up: each look-up may read all rows of a key
// in its partition.
const fewRetested = 4
