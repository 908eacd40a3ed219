package retrieval

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
	"github.com/souvenir-ai/souvenir/internal/retrieval/ranking"
	"github.com/souvenir-ai/souvenir/internal/retrieval/similarity"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
)

// Comparison compares memories with a text, and with each other, by the vectors of the store's embedder and by their
// words.
type Comparison struct {
	Cache *Cache
	// Use calls the Use method of the cache.
	Use     func(tx db.Tx, partitions []int64, search func(*index.Index) error) (Plan, error)
	Profile int64 // of the embedder
	BuiltIn bool  // the embedder is the built-in one
}

// Near finds the memories whose vectors are similar to a given one.
func (c *Comparison) Near(tx db.Tx, n index.Near) ([]index.Hit, error) {
	var hits []index.Hit
	plan, err := c.Use(tx, n.Partitions, func(ix *index.Index) (err error) {
		hits, err = ix.Near(tx.Context(), n)
		return err
	})
	if err != nil || plan != "" {
		return hits, err
	}
	defer c.Cache.LoadIfDue()
	found, err := SearchDatabase(tx, c.Profile, index.Query{
		Vector: n.Vector, Partitions: n.Partitions, Compare: func(int64) bool { return true }, Keep: n.Keep,
		Fuse:  ranking.Fuse(ranking.Default, false, true),
		Limit: n.Limit,
	})
	return slices.DeleteFunc(found.Hits, func(h index.Hit) bool { return h.Score < n.Least }), err
}

// Duplicates finds the memories that are likely to say the same as a text: all of them if the texts of at most n.Limit
// memories may say the same, else the ones among that many nearest memories.
func (c *Comparison) Duplicates(tx db.Tx, n index.Near, given similarity.Text) ([]index.Hit, error) {
	n.Least = similarity.Candidate
	var like []index.Hit
	known := false
	plan, err := c.Use(tx, n.Partitions, func(ix *index.Index) (err error) {
		like, known, err = ix.Like(tx.Context(), index.Like{Near: n,
			Probe: similarity.NewProbe(given, similarity.Duplicate), AnyCosine: !c.BuiltIn})
		return err
	})
	if err != nil {
		return nil, err
	}
	if plan == "" || !known {
		if like, err = c.Near(tx, n); err != nil {
			return nil, err
		}
	}
	return c.DuplicatesAmong(tx, given, like)
}

// DuplicatesAmong keeps the hits whose text is likely to say the same as another text, and scores them by that
// likelihood.
func (c *Comparison) DuplicatesAmong(tx db.Tx, given similarity.Text, hits []index.Hit) ([]index.Hit, error) {
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
		if h.Score = float32(c.score(similarity.Duplicate, given, texts[h.Row],
			float64(h.Cosine))); h.Score >= similarity.Duplicate {
			same = append(same, h)
		}
	}
	slices.SortFunc(same, func(a, b index.Hit) int { return index.CompareHits(&a, &b) })
	return same, nil
}

// score compares two texts; a result below least is not exact. The cosine counts only with the built-in model, for
// which the score was calibrated; another embedder only finds candidates.
func (c *Comparison) score(least float64, a, b similarity.Text, cosine float64) float64 {
	if !c.BuiltIn {
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

// checkEvery is the number of comparisons between two checks of the context.
const checkEvery = 256

// Scores returns how likely pairs of memories say the same; a result below least is not exact.
func (c *Comparison) Scores(tx db.Tx, pairs []Pair, cosines map[Pair]float64, least float64) ([]float64, error) {
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
		scores[i] = c.score(least, texts[pair[0]], texts[pair[1]], cosines[pair])
	}
	return scores, nil
}

// Directions holds the directions of the memories that have one, all of one size and one after another, and the places
// of these memories in a list.
type Directions struct {
	Means  []float32
	Size   int
	Places []int
}

// Located is a memory and its partition, by row.
type Located struct{ Row, Partition int64 }

// Directions returns the directions of the memories of a list that are in some partitions, each with the size of the
// embedder's vectors.
func (c *Comparison) Directions(tx db.Tx, size int, list []Located, within []int64) (d Directions, err error) {
	d.Size = size
	ours := map[int64]bool{}
	for _, partition := range within {
		ours[partition] = true
	}
	rows := make([]int64, len(list))
	for i, m := range list {
		rows[i] = m.Row
	}
	all := make([]float32, len(list)*size)
	var found []bool
	plan, err := c.Use(tx, within, func(ix *index.Index) error {
		found = ix.Means(rows, size, func(partition int64) bool { return ours[partition] }, all)
		return nil
	})
	if err != nil {
		return d, err
	}
	if plan == "" {
		defer c.Cache.LoadIfDue()
		if found, err = c.readMeans(tx, size, rows, func(i int) bool { return ours[list[i].Partition] }, all); err != nil {
			return d, err
		}
	}
	for i := range found {
		if found[i] {
			copy(all[len(d.Places)*size:(len(d.Places)+1)*size], all[i*size:(i+1)*size])
			d.Places = append(d.Places, i)
		}
	}
	d.Means = all[:len(d.Places)*size]
	return d, nil
}

// readMeans is like [index.Index.Means], but reads from the database.
func (c *Comparison) readMeans(tx db.Tx, size int, rows []int64, wanted func(i int) bool,
	means []float32) ([]bool, error) {
	found := make([]bool, len(rows))
	err := tx.Each(func(row db.Rows) error {
		var at int
		var blob []byte
		if err := row.Scan(&at, &blob); err != nil {
			return err
		}
		v, err := kernel.DecodeVector(blob)
		if err == nil && len(v) == size && wanted(at) {
			index.AddTo(means[at*size:(at+1)*size], v)
			found[at] = true
		}
		return err
	}, `SELECT r.key, v.vector FROM `+db.Numbered+` r `+db.InOrder+` passage v ON v.memory_id = r.value
		WHERE v.profile_id = ? AND v.vector IS NOT NULL ORDER BY r.key, v.id`, db.List(rows), c.Profile)
	for i := range found {
		found[i] = found[i] && index.Unit(means[i*size:(i+1)*size])
	}
	return found, err
}

// Version returns a hash of the memories that have a direction, by their ids and the times of their changes, and of
// everything that determines the directions. It does not cover the directions themselves: the index rounds them, and
// the file does not.
func (d Directions) Version(profile int64, memory func(place int) (id string, updated int64)) string {
	if len(d.Places) == 0 {
		return ""
	}
	hash := fnv.New64a()
	fmt.Fprintln(hash, profile, d.Size)
	for _, place := range d.Places {
		id, updated := memory(place)
		fmt.Fprintln(hash, id, updated)
	}
	return strconv.FormatUint(hash.Sum64(), 36)
}
