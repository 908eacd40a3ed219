package souvenir

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
	"github.com/souvenir-ai/souvenir/internal/retrieval/ranking"
	"github.com/souvenir-ai/souvenir/internal/retrieval/similarity"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
)

// Direction is the direction of a link, seen from the start of a walk.
type Direction string

// The values of [Direction].
const (
	Outgoing Direction = "outgoing" // it links to the other one
	Incoming Direction = "incoming" // the other one links to it
)

// Related is a memory reached over links.
type Related struct {
	Memory
	Depth     int       // 1: linked directly
	Direction Direction // of the link over which it was reached
	Path      []string  // ids from the start of the walk to this memory, both included
	Truncated bool      // shortened; see [MainMemory.Within]
}

// MarshalJSON returns the memory's form with depth, direction and path.
func (r Related) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		writtenMemory
		relatedJSON
	}{r.Memory.json(), relatedJSON{r.Depth, r.Direction, r.Path, r.Truncated}})
}

// UnmarshalJSON reads the output of MarshalJSON.
func (r *Related) UnmarshalJSON(data []byte) error {
	var beside relatedJSON
	var m Memory
	if err := withMemory(data, &m, &beside); err != nil {
		return err
	}
	*r = Related{Memory: m, Depth: beside.Depth, Direction: beside.Direction, Path: beside.Path,
		Truncated: beside.Truncated}
	return nil
}

// relatedJSON holds the additional members of a related memory.
type relatedJSON struct {
	Depth     int       `json:"depth"`
	Direction Direction `json:"direction"`
	Path      []string  `json:"path"`
	Truncated bool      `json:"truncated,omitempty"`
}

// maxWalk bounds how far a walk over links may go.
const maxWalk = 10

// RelatedMemories follows the links of a memory in both directions, up to depth links away (1 to 10), nearest first.
// Each memory appears once, on one of its shortest paths; a memory that this view may not see ends a path.
func (s *Store) RelatedMemories(ctx context.Context, id string, depth int) (_ []Related, err error) {
	defer inGo[struct{}](&err, "id", "id", "depth", "depth")
	if err := checkRange("depth", depth, 1, maxWalk); err != nil {
		return nil, err
	}
	var all []Related
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		start, err := kernel.LoadMemory(tx, v, id)
		if err != nil {
			return err
		}
		all, _, err = s.walk(tx, v, start, depth, 0)
		return err
	})
	return all, err
}

// walk follows links, up to depth links and most memories (0: any number), and reports whether there are more.
func (s *Store) walk(tx db.Tx, v viewer, start kernel.Memory, depth, most int) (all []Related, more bool, err error) {
	type step struct {
		from      int64
		direction Direction
	}
	paths := map[int64][]string{start.Row: {start.ID}}
	level := []int64{start.Row}
	for d := 1; d <= depth && len(level) > 0; d++ {
		reached := map[int64]step{}
		var next []int64
		frontier := db.List(level)
		err := tx.Each(func(row db.Rows) error {
			var from, to int64
			var direction Direction
			if err := row.Scan(&from, &to, &direction); err != nil {
				return err
			}
			if _, seen := paths[to]; seen {
				return nil
			}
			if _, seen := reached[to]; !seen {
				reached[to] = step{from, direction}
				next = append(next, to)
			}
			return nil
		}, `WITH level (id) AS `+db.Integers+`
			SELECT memory_id, related_id, way FROM (
				SELECT memory_id, related_id, 'outgoing' AS way, position FROM memory_link WHERE memory_id IN (SELECT id FROM level)
				UNION ALL SELECT related_id, memory_id, 'incoming', position FROM memory_link WHERE related_id IN (SELECT id
				FROM level)) steps
			ORDER BY way DESC, position, related_id`, frontier)
		if err != nil {
			return nil, false, err
		}
		if most > 0 && len(all)+len(next) > most {
			next, more = next[:most-len(all)], true
		}
		found, err := kernel.LoadRows(tx, v, kernel.WholeContent, next)
		if err != nil {
			return nil, false, err
		}
		level = level[:0]
		for _, m := range found {
			from := reached[m.Row]
			path := append(append([]string{}, paths[from.from]...), m.ID)
			paths[m.Row] = path
			level = append(level, m.Row)
			all = append(all, Related{Memory: memoryOf(m), Depth: d, Direction: from.direction, Path: path})
		}
	}
	return all, more, nil
}

// Similar is a near duplicate of a memory.
type Similar struct {
	ID         string  `json:"id"`
	Score      float64 `json:"score"` // as by [Likeness]; for own vectors, the cosine similarity, 0.9 to 1
	Content    string  `json:"content"`
	Collection string  `json:"collection_name"`
	SharedBy   string  `json:"shared_by,omitempty"` // as in [Memory]
}

// Likeness returns how likely it is that two texts say the same, 0 to 1, by the built-in model and by their words,
// numbers, names and negations. It is also the score of [Similar].
func Likeness(a, b string) float64 {
	x, y := similarity.Read(a), similarity.Read(b)
	return similarity.Score(x, y, similarity.CosineOf(x, y))
}

// ownDuplicate is the cosine similarity at which callers' own vectors count as near duplicates: their model is unknown.
const ownDuplicate = 0.9

// candidates is the most memories whose texts are compared.
const candidates = 16

// similarTo finds, for each draft that asks for it, the visible memories that say almost the same. It runs before the
// drafts are stored, so none finds itself.
func (s *Store) similarTo(ctx context.Context, drafts []kernel.Draft) ([][]Similar, error) {
	all := make([][]Similar, len(drafts))
	for i := range drafts {
		d := &drafts[i]
		if d.Similar == 0 || d.Vector == nil && d.Passages[0].Vector == nil {
			continue
		}
		err := s.read(ctx, func(tx db.Tx, v viewer) error {
			var err error
			all[i], err = s.similar(tx, v, d)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (s *Store) similar(tx db.Tx, v viewer, d *kernel.Draft) ([]Similar, error) {
	pq := preparedQuery{vector: d.Passages[0].Vector}
	var q Query
	if d.Vector != nil { // comparable only within its collection
		pq, q = preparedQuery{vector: d.Vector, own: true}, Query{Collections: []string{d.Collection}}
	}
	sel, err := s.selection(tx, v, q)
	if err != nil {
		return nil, err
	}
	partitions, err := s.comparedBy(tx, pq, sel)
	if err != nil || len(partitions) == 0 {
		return nil, err
	}
	var hits []index.Hit
	if pq.own {
		hits, err = s.near(tx, pq.vector, partitions, ownDuplicate, d.Similar)
	} else {
		hits, err = s.duplicatesOf(tx, pq.vector, partitions, similarity.Read(d.Content), max(candidates, d.Similar))
	}
	if err != nil {
		return nil, err
	}
	hits = slices.DeleteFunc(hits, func(h index.Hit) bool { return sel.hidden[h.Row] })
	hits = hits[:min(len(hits), d.Similar)]
	var rows []int64
	scores := map[int64]float64{}
	for _, h := range hits {
		rows = append(rows, h.Row)
		scores[h.Row] = min(1, float64(h.Score))
	}
	found, err := kernel.LoadRows(tx, v, kernel.WholeContent, rows)
	var similar []Similar
	for _, m := range found {
		similar = append(similar, Similar{ID: m.ID, Score: scores[m.Row], Content: m.Content, Collection: m.Collection,
			SharedBy: m.SharedBy})
	}
	return similar, err
}

// duplicatesOf finds the memories that are likely to say the same as a text: all of them if the texts of at most limit
// memories may say the same, else the ones among the limit nearest memories.
func (s *Store) duplicatesOf(tx db.Tx, vector []float32, partitions []int64, given similarity.Text,
	limit int) ([]index.Hit, error) {
	const least = float32(similarity.Candidate)
	var like []index.Hit
	known := false
	way, err := s.useIndex(tx, partitions, func(ix *index.Index) (err error) {
		like, known, err = ix.Like(tx.Context(), index.Like{
			Near:  index.Near{Vector: vector, Partitions: partitions, Least: least, Limit: limit},
			Probe: similarity.NewProbe(given, similarity.Duplicate), AnyCosine: s.embedder.Model() != Builtin().Model()})
		return err
	})
	if err != nil {
		return nil, err
	}
	if way == "" || !known {
		if like, err = s.near(tx, vector, partitions, least, limit); err != nil {
			return nil, err
		}
	}
	return s.duplicatesAmong(tx, given, like)
}

// duplicatesAmong keeps the hits whose text is likely to say the same as another text, and scores them by that
// likelihood.
func (s *Store) duplicatesAmong(tx db.Tx, given similarity.Text, hits []index.Hit) ([]index.Hit, error) {
	if len(hits) == 0 {
		return nil, nil
	}
	rows := make([]int64, len(hits))
	for i, h := range hits {
		rows[i] = h.Row
	}
	texts, err := beginnings(tx, rows)
	if err != nil {
		return nil, err
	}
	var same []index.Hit
	for _, h := range hits {
		if h.Score = float32(s.textScore(similarity.Duplicate, given, texts[h.Row],
			float64(h.Cosine))); h.Score >= similarity.Duplicate {
			same = append(same, h)
		}
	}
	slices.SortFunc(same, func(a, b index.Hit) int { return index.CompareHits(&a, &b) })
	return same, nil
}

// textScore compares two texts; a result below least is not exact. The cosine counts only with the built-in model, for
// which the score was calibrated; another embedder only finds candidates.
func (s *Store) textScore(least float64, a, b similarity.Text, cosine float64) float64 {
	if s.embedder.Model() != Builtin().Model() {
		if most := similarity.ScoreFrom(least, a, b, 1); most < least {
			return most
		}
		cosine = similarity.CosineOf(a, b)
	}
	return similarity.ScoreFrom(least, a, b, cosine)
}

// beginnings reads the part of memories that is compared.
func beginnings(tx db.Tx, rows []int64) (map[int64]similarity.Text, error) {
	texts := make(map[int64]similarity.Text, len(rows))
	err := tx.Each(func(row db.Rows) error {
		var id int64
		var content string
		if err := row.Scan(&id, &content); err != nil {
			return err
		}
		texts[id] = similarity.Read(content)
		return nil
	}, `SELECT id, substr(content, 1, ?) FROM memory WHERE id IN `+db.Integers,
		sealedrows.Characters(tx, similarity.MaxBytes+1),
		db.List(rows))
	return texts, err
}

// duplicates keeps the pairs of memories that say the same, and replaces the cosine with that probability. places are
// the positions of the memories among the nodes.
func (p *picture) duplicates(tx db.Tx, places []int, pairs []index.Pair, least float64) ([]index.Pair, error) {
	rows, cosines := make([]retrieval.Pair, len(pairs)), make(map[retrieval.Pair]float64, len(pairs))
	for i, pair := range pairs {
		a, b := p.nodes[places[pair.A]].row, p.nodes[places[pair.B]].row
		rows[i] = retrieval.Pair{min(a, b), max(a, b)}
		cosines[rows[i]] = float64(pair.Cosine)
	}
	scores, err := p.s.pairScores.Of(tx, fmt.Sprint(least, p.partitions()), rows,
		func(pairs []retrieval.Pair) ([]float64, error) { return p.s.compare(tx, pairs, cosines, least) })
	var same []index.Pair
	for i, score := range scores {
		if score >= least {
			pairs[i].Cosine = float32(score)
			same = append(same, pairs[i])
		}
	}
	return same, err
}

// compare returns how likely pairs of memories say the same; a result below least is not exact.
func (s *Store) compare(tx db.Tx, pairs []retrieval.Pair, cosines map[retrieval.Pair]float64, least float64) ([]float64,
	error) {
	var rows []int64
	for _, pair := range pairs {
		rows = append(rows, pair[0], pair[1])
	}
	slices.Sort(rows)
	texts, err := beginnings(tx, slices.Compact(rows))
	if err != nil {
		return nil, err
	}
	scores := make([]float64, len(pairs))
	for i, pair := range pairs {
		if i%checkEvery == 0 && tx.Context().Err() != nil {
			return nil, tx.Context().Err()
		}
		scores[i] = s.textScore(least, texts[pair[0]], texts[pair[1]], cosines[pair])
	}
	return scores, nil
}

// checkEvery is the number of comparisons between two checks of the context.
const checkEvery = 256

// comparedBy returns the partitions of a selection without filters whose vectors are comparable with a query's.
func (s *Store) comparedBy(tx db.Tx, pq preparedQuery, sel selection) ([]int64, error) {
	ready, err := s.vectors.Ready(tx)
	compare, _ := s.comparable(pq, sel, ready)
	return slices.Collect(maps.Keys(compare)), err
}

// near finds the memories in some partitions whose vectors are similar to a given one.
func (s *Store) near(tx db.Tx, vector []float32, partitions []int64, least float32, limit int) ([]index.Hit, error) {
	var hits []index.Hit
	way, err := s.useIndex(tx, partitions, func(ix *index.Index) (err error) {
		hits, err = ix.Near(tx.Context(), index.Near{Vector: vector, Partitions: partitions, Least: least, Limit: limit})
		return err
	})
	if err != nil || way != "" {
		return hits, err
	}
	defer s.index.LoadIfDue()
	found, err := retrieval.SearchDatabase(tx, s.profile, index.Query{
		Vector: vector, Partitions: partitions, Compare: func(int64) bool { return true },
		Fuse:  ranking.Fuse(ranking.Default, false, true),
		Limit: limit,
	})
	return slices.DeleteFunc(found.Hits, func(h index.Hit) bool { return h.Score < least }), err
}

// vectors holds the directions of the nodes that have one, all of one size and one after another, and the places of
// these nodes.
type vectors struct {
	means  []float32
	size   int
	places []int
}

// version returns a hash of the nodes that have a direction, and of everything that determines the directions. It does
// not cover the directions themselves: the index rounds them, and the file does not.
func (v vectors) version(nodes []Node, profile int64) string {
	if len(v.places) == 0 {
		return ""
	}
	hash := fnv.New64a()
	fmt.Fprintln(hash, profile, v.size)
	for _, place := range v.places {
		fmt.Fprintln(hash, nodes[place].ID, nodes[place].UpdatedAt.UnixMicro())
	}
	return strconv.FormatUint(hash.Sum64(), 36)
}

// means returns the directions of the nodes that have one.
func (p *picture) means(tx db.Tx) (v vectors, err error) {
	v.size = p.s.embedder.Dimensions()
	ready, err := p.s.vectors.Ready(tx)
	if err != nil {
		return v, err
	}
	if p.changing = !ready; p.changing {
		p.warnings = append(p.warnings,
			"the store is changing its embedding model; memories cannot be compared until that is done")
		return v, nil
	}
	size := v.size
	all := make([]float32, len(p.nodes)*size)
	var found []bool
	way, err := p.s.useIndex(tx, p.partitions(), func(ix *index.Index) error {
		found = ix.Means(p.rows(), size, func(partition int64) bool { return p.ours[partition] }, all)
		return nil
	})
	if err != nil {
		return v, err
	}
	if way == "" {
		defer p.s.index.LoadIfDue()
		if found, err = p.readMeans(tx, size, all); err != nil {
			return v, err
		}
	}
	for i := range found {
		if found[i] {
			copy(all[len(v.places)*size:(len(v.places)+1)*size], all[i*size:(i+1)*size])
			v.places = append(v.places, i)
		}
	}
	v.means = all[:len(v.places)*size]
	return v, nil
}

// readMeans is like [index.Index.Means], but reads from the file.
func (p *picture) readMeans(tx db.Tx, size int, means []float32) ([]bool, error) {
	found := make([]bool, len(p.nodes))
	err := tx.Each(func(row db.Rows) error {
		var at int
		var blob []byte
		if err := row.Scan(&at, &blob); err != nil {
			return err
		}
		v, err := kernel.DecodeVector(blob)
		if err == nil && len(v) == size && p.ours[p.nodes[at].partition] {
			index.AddTo(means[at*size:(at+1)*size], v)
			found[at] = true
		}
		return err
	}, `SELECT r.key, v.vector FROM `+db.Numbered+` r `+db.InOrder+` passage v ON v.memory_id = r.value
		WHERE v.profile_id = ? AND v.vector IS NOT NULL ORDER BY r.key, v.id`, db.List(p.rows()), p.s.profile)
	for i := range found {
		found[i] = found[i] && index.Unit(means[i*size:(i+1)*size])
	}
	return found, err
}
