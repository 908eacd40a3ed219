package retrieval

import (
	"maps"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/lru"
)

// Tallies keeps how many memories of the partitions that were counted last have which event type. A tally holds until
// the next change of any memory: the pages that a person opens one after another count once. The zero value is ready.
type Tallies struct{ kept lru.Cache }

// tally is a count by event type.
type tally struct {
	mark   db.Mark // of the log of changes, at which it is right
	counts map[string]int
}

// typed selects the memories with an event type in a partition, which follows.
const typed = ` FROM memory ` + db.ByEvent + ` WHERE event_type IS NOT NULL AND partition_id = `

const mostTallied = 1 << 20 // bytes of all that Tallies keeps

// EventTypes returns how many memories of some partitions, a [db.List], have each event type; those without one are not
// counted. Alive is a further condition on the table memory. It counts along an index, a type of a partition at a time:
// that takes a third of a GROUP BY.
func (t *Tallies) EventTypes(tx db.Tx, partitions, alive string) (map[string]int, error) {
	now, err := tx.Changes().Mark()
	if err != nil {
		return nil, err
	}
	key := partitions + alive
	if old, known := lru.Get[tally](&t.kept, key); known && old.mark == now && !tx.Writable() {
		return maps.Clone(old.counts), nil
	}
	counts, bytes := map[string]int{}, len(key)+200
	err = tx.Each(func(row db.Rows) error {
		var name string
		var n int
		err := row.Scan(&name, &n)
		if n > 0 {
			counts[name] += n
		}
		return err
	}, `WITH RECURSIVE used (place, type) AS (
		SELECT l.value, (SELECT min(event_type)`+typed+`l.value) FROM `+db.Numbered1+` l UNION ALL
		SELECT place, (SELECT min(event_type)`+typed+`place AND event_type > type) FROM used WHERE type IS NOT NULL)
		SELECT type, (SELECT count(*)`+typed+`place AND event_type = type`+alive+`) FROM used WHERE type IS NOT NULL`,
		partitions)
	if err != nil || tx.Writable() { // what a transaction writes may be undone
		return counts, err
	}
	for name := range counts {
		bytes += len(name) + 64
	}
	t.kept.Put(key, tally{now, maps.Clone(counts)}, bytes, mostTallied)
	return counts, nil
}
