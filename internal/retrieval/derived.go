package retrieval

import (
	"fmt"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/lru"
)

// Derived keeps the latest results made from the memories of selections, such as pictures of them. A result holds until
// the next change of any memory, so opening a page again does not wait for it. The selection decides beforehand who may
// see which memories. The zero value is ready.
type Derived struct{ kept lru.Cache }

// derived is a result derived from some memories.
type derived struct {
	mark  db.Mark // of the log of changes, at which it is right
	value any
}

// Making identifies a result to be made from the memories of a selection, as a transaction sees them. A result of the
// zero value is not kept.
type Making struct {
	key   string
	mark  db.Mark
	old   derived // the last one that was kept
	known bool    // there is one
}

const mostDerived = 24 << 20 // bytes of all that a Derived keeps

// Of returns the result that was kept for the selection's memories, whether it still holds, and under which name to
// keep a new one otherwise. About distinguishes results of the same memories. Only results of steady selections are
// kept, see [Selection].
func (d *Derived) Of(tx db.Tx, sel Selection, about string) (value any, holds bool, m Making, err error) {
	if !sel.Steady || tx.Writable() { // what a transaction writes may be undone
		return value, false, Making{}, nil
	}
	if m.mark, err = tx.Changes().Mark(); err != nil {
		return value, false, Making{}, err
	}
	places, err := sel.places(tx)
	if err != nil {
		return value, false, Making{}, err
	}
	m.key = strings.Join([]string{about, sel.key(), sel.Current, places}, "\x00")
	m.old, m.known = lru.Get[derived](&d.kept, m.key)
	return m.old.value, m.known && m.old.mark == m.mark, m, nil
}

// Changed returns the memories that have changed since a result was kept; false: none was, or they are not a few.
func (m Making) Changed(tx db.Tx) (changed []int64, few bool, err error) {
	const most = 100
	if !m.known {
		return nil, false, nil
	}
	changed, next, complete, err := tx.Changes().Since(m.old.mark, most)
	return changed, complete && next == m.mark, err
}

// Keep keeps a value, which takes about this number of bytes, until a memory changes. The value must not change
// afterwards.
func (d *Derived) Keep(m Making, value any, bytes int) {
	if m.key != "" {
		d.kept.Put(m.key, derived{m.mark, value}, len(m.key)+bytes, mostDerived)
	}
}

// places returns the names of the collections, the projects and the owners of the selection's partitions: the log of
// changes does not record when these change.
func (sel Selection) places(tx db.Tx) (string, error) {
	var all strings.Builder
	err := tx.Each(func(row db.Rows) error {
		var partition int64
		var collection, owner, project, of string
		err := row.Scan(&partition, &collection, &owner, &project, &of)
		fmt.Fprintf(&all, "%d %q %q %q %q\n", partition, collection, owner, project, of)
		return err
	}, `SELECT p.id, c.name, u.uid, coalesce(j.uid, ''), coalesce(v.uid, '') FROM partition p
		JOIN collection c ON c.id = p.collection_id JOIN users u ON u.id = c.owner_id
		LEFT JOIN project j ON j.id = p.project_id LEFT JOIN users v ON v.id = j.owner_id
		WHERE p.id IN `+db.Integers+` ORDER BY p.id`, sel.PartitionList())
	return all.String(), err
}
