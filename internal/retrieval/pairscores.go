package retrieval

import (
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/lru"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
)

// PairScores keeps how likely pairs of memories say the same, for the sets of memories that were compared last. A
// score holds until one of the two memories changes. Who may see which memories is decided before: it is only asked
// about pairs of them. The zero value is ready.
type PairScores struct{ kept lru.Cache }

// Pair is the rows of two memories.
type Pair [2]int64

// scores are those of the pairs of a set.
type scores struct {
	mark db.Mark // of the log of changes, at which they are right
	of   map[Pair]float64
}

const (
	mostPairScores = 16 << 20 // bytes of all that PairScores keeps
	pairScoreBytes = 64       // of a pair, about
	mostChanged    = 10_000   // changes after which all pairs are compared again
)

// Of returns the score of each pair. key names the set that the pairs are from, and the score from which on
// results must be exact. compare returns the scores of some pairs, in order.
func (l *PairScores) Of(tx db.Tx, key string, pairs []Pair, compare func([]Pair) ([]float64, error)) ([]float64,
	error) {
	if tx.Writable() { // what a transaction writes may be undone
		return compare(pairs)
	}
	now, err := tx.Changes().Mark()
	if err != nil {
		return nil, err
	}
	holds, usable, err := l.holding(tx, key, now)
	if err != nil {
		return nil, err
	}
	if !usable {
		return compare(pairs)
	}
	all, unknown := make([]float64, len(pairs)), []Pair{}
	for i, pair := range pairs {
		var known bool
		if all[i], known = holds(pair); !known {
			unknown = append(unknown, pair)
		}
	}
	found, err := compare(unknown)
	if err != nil {
		return nil, err
	}
	kept := scores{now, make(map[Pair]float64, len(pairs))}
	for i, pair := range pairs {
		if len(unknown) > 0 && unknown[0] == pair {
			all[i], unknown, found = found[0], unknown[1:], found[1:]
		}
		kept.of[pair] = all[i]
	}
	l.kept.Put(key, kept, len(key)+pairScoreBytes*len(pairs)+200, mostPairScores)
	return all, nil
}

// holding returns the scores of a set that still hold. They are not usable, and none may be kept, if they are from
// a newer snapshot than the transaction's.
func (l *PairScores) holding(tx db.Tx, key string, now db.Mark) (holds func(Pair) (float64, bool), usable bool,
	err error) {
	old, known := lru.Get[scores](&l.kept, key)
	if !known {
		return func(Pair) (float64, bool) { return 0, false }, true, nil
	}
	var gone *index.RowSet
	if old.mark != now {
		changed, next, complete, err := tx.Changes().Since(old.mark, mostChanged)
		if err != nil || complete && next != now {
			return nil, false, err
		}
		if !complete {
			return func(Pair) (float64, bool) { return 0, false }, true, nil
		}
		gone = index.NewRowSet(changed)
	}
	return func(pair Pair) (float64, bool) {
		if gone != nil && (gone.Has(pair[0]) || gone.Has(pair[1])) {
			return 0, false
		}
		score, known := old.of[pair]
		return score, known
	}, true, nil
}
