package retrieval

import (
	"context"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
)

// fewRelevant is how many memories a search for relevant ones asks for at first.
const fewRelevant = 250

// Relevant reports whether a hit is at least half as relevant as the best one. After a hit that is not, none is.
func Relevant(hits []index.Hit, i int) bool { return hits[i].Score >= hits[0].Score/2 }

// SearchRelevant ranks in memory, for the relevant hits. These are mostly few, so it asks for few at first.
func SearchRelevant(ctx context.Context, ix *index.Index, q index.Query) (hits []index.Hit, total int, err error) {
	some := q
	some.Limit = min(fewRelevant, q.Limit)
	for {
		hits, total, err = ix.Search(ctx, some)
		if err != nil || some.Limit == q.Limit || len(hits) < some.Limit || !Relevant(hits, len(hits)-1) {
			return hits, total, err
		}
		some.Limit = min(4*some.Limit, q.Limit)
	}
}

// RelevantByTime takes the relevant hits, and returns a page of them in an order by time, and their number.
func RelevantByTime(tx db.Tx, hits []index.Hit, order Order, limit, offset int) (page []index.Hit, total int,
	err error) {
	byRow := map[int64]index.Hit{}
	var rows []int64
	for i, h := range hits {
		if !Relevant(hits, i) {
			break
		}
		byRow[h.Row] = h
		rows = append(rows, h.Row)
	}
	const from = `FROM memory m WHERE m.id IN ` + db.Integers
	var ordered []int64
	if order.Opens(tx) {
		ordered, err = order.Opened(tx, from, limit, offset, db.List(rows))
	} else {
		ordered, err = db.Column[int64](tx, `SELECT m.id `+from+` ORDER BY `+order.SQL(`m`)+` LIMIT ? OFFSET ?`,
			db.List(rows), limit, offset)
	}
	for _, row := range ordered {
		page = append(page, byRow[row])
	}
	return page, len(rows), err
}
