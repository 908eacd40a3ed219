package retrieval

import (
	"container/list"
	"fmt"
	"sync"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/index"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// Filters keeps which memories match the conditions that were used last, in step with the log of changes: of a
// condition that is used again, only the memories that have changed since are tested. The zero value is ready.
type Filters struct {
	mu    sync.Mutex
	kept  map[string]*list.Element // of uses
	uses  list.List                // of *filtered, the one used last first
	bytes int
}

// filtered is what matches a condition.
type filtered struct {
	key  string
	mark db.Mark // of the log, up to which rows is right
	rows *index.RowSet
}

const (
	mostFiltered = 16 << 20 // bytes of all that Filters keeps
	// mostRetested is how many changed memories are tested; with more, the condition is asked again for all.
	mostRetested = 2_000
)

// Matching returns the memories of the selection's partitions that match its condition, whether they are live or not.
// Only what is steady is kept, see [Selection].
func (f *Filters) Matching(tx db.Tx, sel Selection) (*index.RowSet, error) {
	if !sel.Steady || tx.Writable() { // what a transaction writes may be undone
		return sel.matching(tx, "")
	}
	now, err := tx.Changes().Mark()
	if err != nil {
		return nil, err
	}
	key := sel.key()
	old := f.get(key)
	if old != nil && old.mark == now {
		return old.rows, nil
	}
	var rows *index.RowSet
	if old != nil {
		changed, next, complete, err := tx.Changes().Since(old.mark, mostRetested)
		if err != nil {
			return nil, err
		}
		if complete && next != now { // another search saw newer changes than this snapshot has
			return sel.matching(tx, "")
		}
		if complete {
			if rows, err = sel.again(tx, old.rows, changed); err != nil {
				return nil, err
			}
		}
	}
	if rows == nil {
		if rows, err = sel.matching(tx, ""); err != nil {
			return nil, err
		}
	}
	f.put(&filtered{key: key, mark: now, rows: rows})
	return rows, nil
}

func (f *Filters) get(key string) *filtered {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.kept[key]
	if at == nil {
		return nil
	}
	f.uses.MoveToFront(at)
	return at.Value.(*filtered)
}

// put keeps what matches a condition, and drops what was used the longest ago if that is too much.
func (f *Filters) put(one *filtered) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.kept == nil {
		f.kept = map[string]*list.Element{}
	}
	if before := f.kept[one.key]; before != nil {
		f.drop(before)
	}
	f.kept[one.key] = f.uses.PushFront(one)
	f.bytes += one.size()
	for f.bytes > mostFiltered {
		f.drop(f.uses.Back())
	}
}

func (f *Filters) drop(at *list.Element) {
	one := f.uses.Remove(at).(*filtered)
	f.bytes -= one.size()
	delete(f.kept, one.key)
}

// size estimates the bytes of an entry.
func (one *filtered) size() int { return len(one.key) + one.rows.Bytes() + 200 }

// key tells conditions and partitions apart.
func (sel Selection) key() string {
	return fmt.Sprintf("%s %q %#v", sel.PartitionList(), sel.Condition, sel.Args)
}

// matching reads the memories that match the condition and a further one, live or not.
func (sel Selection) matching(tx db.Tx, further string, args ...any) (*index.RowSet, error) {
	sel.Live = ""
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
