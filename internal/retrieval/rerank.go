package retrieval

import (
	"cmp"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
)

// rerank ranks the best of the hits again, as the index in memory does, with data from the database.
func (d *databaseSearch) rerank(hits []index.Hit) ([]index.Hit, error) {
	a := d.q.Rerank
	best := hits[:min(a.Depth, len(hits))]
	lists, err := d.neighbourhoods(best, a.Reach)
	if err != nil {
		return nil, err
	}
	var rows []int64
	for _, list := range lists {
		rows = append(rows, list...)
	}
	members, err := d.members(rows)
	if err != nil {
		return nil, err
	}
	found := index.Found{Stats: d.stats, Weights: d.weights, Hits: hits}
	places := make(map[int64]index.Place, len(rows))
	for _, list := range lists {
		neighbourhood := make([]index.Member, len(list))
		for i, row := range list {
			places[row] = index.Place{Neighbourhood: len(found.Neighbourhoods), Member: i}
			neighbourhood[i] = members[row]
		}
		found.Neighbourhoods = append(found.Neighbourhoods, neighbourhood)
	}
	for _, hit := range best {
		found.Ranked = append(found.Ranked, places[hit.Row])
	}
	return a.Rank(found), nil
}

// place is where a memory stands in a conversation.
type place struct {
	partition, conversation, at, row int64
}

// neighbourhoods returns the memories around the best ones, in the order of their conversations. Neighbourhoods that
// meet are one; a memory without a conversation has one of its own.
func (d *databaseSearch) neighbourhoods(best []index.Hit, reach int) ([][]int64, error) {
	rows := make([]int64, len(best))
	for i, hit := range best {
		rows[i] = hit.Row
	}
	var own []place
	inConversation := map[int64]bool{}
	err := d.tx.Each(func(row db.Rows) error {
		var p place
		err := row.Scan(&p.partition, &p.conversation, &p.at, &p.row)
		own = append(own, p)
		inConversation[p.row] = true
		return err
	}, `SELECT t.partition_id, t.conversation, t.at, t.memory_id FROM turn t JOIN memory m ON m.id = t.memory_id
		WHERE t.memory_id IN `+db.Integers+` AND m.partition_id = t.partition_id`, db.List(rows))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(own, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.partition, b.partition), cmp.Compare(a.conversation, b.conversation),
			cmp.Compare(a.at, b.at),
			cmp.Compare(a.row, b.row))
	})
	var lists [][]int64
	last := place{}
	for _, p := range own {
		before, err := d.side(p, `<`, `DESC`, reach)
		if err != nil {
			return nil, err
		}
		after, err := d.side(p, `>`, `ASC`, reach)
		if err != nil {
			return nil, err
		}
		slices.Reverse(before)
		list := slices.Concat(before, []int64{p.row}, after)
		same := p.partition == last.partition && p.conversation == last.conversation
		if n := len(lists); n > 0 && same && meet(lists[n-1], list) {
			known := map[int64]bool{}
			for _, row := range lists[n-1] {
				known[row] = true
			}
			for _, row := range list {
				if !known[row] {
					lists[n-1] = append(lists[n-1], row)
				}
			}
		} else {
			lists = append(lists, list)
		}
		last = p
	}
	for _, hit := range best {
		if !inConversation[hit.Row] {
			lists = append(lists, []int64{hit.Row})
		}
	}
	return lists, nil
}

// meet reports whether two ranges of one conversation overlap, the second being the later one.
func meet(a, b []int64) bool { return slices.Contains(a, b[0]) || slices.Contains(b, a[len(a)-1]) }

// side returns the memories next to a place on one side, the nearest first.
func (d *databaseSearch) side(p place, beyond, order string, reach int) ([]int64, error) {
	return db.Column[int64](d.tx, `SELECT memory_id FROM turn WHERE partition_id = ? AND conversation = ?
		AND (at, memory_id) `+beyond+` (?, ?) ORDER BY at `+order+`, memory_id `+order+` LIMIT ?`,
		p.partition, p.conversation, p.at, p.row, reach)
}

// members describes memories, by row.
func (d *databaseSearch) members(rows []int64) (map[int64]index.Member, error) {
	saturation := d.q.BM25.Saturation()
	members := make(map[int64]index.Member, len(rows))
	for batch := range slices.Chunk(rows, batchMembers) {
		loaded, err := entries(d.tx, d.profile, batch)
		if err != nil {
			return nil, err
		}
		for _, m := range loaded {
			members[m.Row] = d.member(m, saturation)
		}
	}
	return members, nil
}

// batchMembers is how many members are read at once.
const batchMembers = 500

// member describes a memory by its best passage.
func (d *databaseSearch) member(m index.Memory, saturation index.Saturation) index.Member {
	one := index.Member{Hit: index.Hit{Row: m.Row, ID: m.ID}, Turn: m.Turn}
	compared := d.q.Vector != nil && d.q.Compare(m.Partition)
	for i, e := range m.Entries {
		parts := index.Parts{BM25: d.bm25(e, saturation)}
		if compared && len(e.Vector) == len(d.q.Vector) {
			parts.HasVector = true
			for j, x := range e.Vector {
				parts.Cosine += x * d.q.Vector[j]
			}
			parts.Cosine = max(-1, min(1, parts.Cosine))
		}
		one.Known = one.Known || parts.HasVector || parts.BM25 > 0
		passage := index.Hit{Row: m.Row, ID: m.ID, Passage: e.Passage, Span: e.Span, Parts: parts, Score: d.score(parts)}
		if i == 0 || passage.Score > one.Score || passage.Score == one.Score && passage.Passage < one.Passage {
			one.Hit = passage
		}
		one.Words = append(one.Words, e.Words)
	}
	one.Kept = one.Known && (d.q.Keep == nil || d.q.Keep(m.Row))
	return one
}
