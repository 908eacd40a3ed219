package kernel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/text"
)

// Passage is a piece of a memory's content, the unit of embedding and search. Short content is one passage.
type Passage struct {
	Start, Length int
	Indexed       string    // the terms, as full text stores them
	Vector        []float32 // of unit length; nil until it is embedded
	Blank         bool      // white space only: nothing to embed
	Profile       int64     // row of the vector's profile; 0: just made by this store's embedder
	ID            int64     // its row, set when it is added; so is Stored
	Stored        []byte    // its vector there, in a store without user keys
}

// Split cuts content into passages of at most size bytes.
func Split(content string, size int) []Passage {
	spans := text.Split(content, size)
	if len(spans) == 0 {
		return []Passage{{Length: len(content), Blank: true}}
	}
	passages := make([]Passage, len(spans))
	for i, span := range spans {
		p := Passage{Start: span.Start, Length: span.End - span.Start}
		p.Indexed = text.Indexed(content[span.Start:span.End])
		passages[i] = p
	}
	return passages
}

// AddPassages inserts the passages of a memory. own is the caller's vector, nil for none.
func (w *RowWriter) AddPassages(memory int64, at *Place, passages []Passage, own []float32,
	tags []string) (indexed bool, warnings []string, err error) {
	if err := checkOwnVector(at, w.model, own); err != nil {
		return false, nil, err
	}
	tagTerms := text.Indexed(strings.Join(tags, "\n"))
	indexed = true
	for i := range passages {
		p := &passages[i]
		vector, profile, current := w.vectorOf(*p, at, own)
		indexed = indexed && current
		p.ID, p.Stored = at.Partition<<PassageBits|at.numbers.next, EncodeVector(vector, at)
		at.numbers.next++
		stored, err := sealVector(w.Tx, p.Stored, at)
		if err != nil {
			return false, nil, err
		}
		if err := db.Queue(w.Tx, `INSERT INTO passage (id, memory_id, start, length, blank, profile_id, vector) `+
			`VALUES (?, ?, ?, ?, ?, ?, ?)`,
			p.ID, memory, p.Start, p.Length, p.Blank, profile, stored); err != nil {
			return false, nil, err
		}
		if err := w.Tx.Words().Put(p.ID, p.Indexed, tagTerms, false); err != nil {
			return false, nil, err
		}
		tagTerms = "" // tags are found through the first passage
	}
	return indexed, at.withoutVectors(own), nil
}

// withoutVectors returns the warning that a memory of the place is found only by its words, if it is.
func (p *Place) withoutVectors(own []float32) (warnings []string) {
	if p.OwnProfile != 0 && own == nil {
		warnings = append(warnings, fmt.Sprintf(
			"collection %s has own vectors, but this memory has none: it is found only by its words",
			fault.Show(p.collection)))
	}
	return warnings
}

// vectorOf returns the vector and the profile with which a passage is stored, and whether searches find it by meaning.
func (w *RowWriter) vectorOf(p Passage, at *Place, own []float32) (vector []float32, profile any, current bool) {
	vector, profile, current = p.Vector, w.Target, true
	switch {
	case at.OwnProfile != 0 && own != nil:
		vector, profile = own, at.OwnProfile
	case at.OwnProfile != 0 || p.Blank:
		vector, profile = nil, nil
	case w.Target != w.profile:
		// Another process has changed the model, so this one's passages and vectors do not match the new model. They stay
		// this model's, and outdated makes the other process go through the memories once more.
		profile, w.outdated, current = w.profile, true, false
		if p.Profile != 0 && p.Profile != w.profile {
			vector = nil
		}
	}
	return vector, profile, current && (vector != nil || p.Blank)
}

// RewritePassages replaces the passages of a memory, as AddPassages inserts them. Those with a vector are overwritten
// by as many with a vector, which costs full text and the indexes less than other rows would.
func (w *RowWriter) RewritePassages(memory int64, at *Place, passages []Passage, own []float32,
	tags []string) (indexed bool, warnings []string, err error) {
	if err := checkOwnVector(at, w.model, own); err != nil {
		return false, nil, err
	}
	former, err := db.Column[int64](w.Tx, `SELECT CASE WHEN vector IS NOT NULL THEN id ELSE 0 END FROM passage
		WHERE memory_id = ? ORDER BY id`, memory)
	if err != nil {
		return false, nil, err
	}
	overwrites := len(former) == len(passages)
	for i := 0; overwrites && i < len(former); i++ {
		vector, _, _ := w.vectorOf(passages[i], at, own)
		overwrites = vector != nil && former[i]>>PassageBits == at.Partition
	}
	if !overwrites {
		if _, err := w.Tx.Exec(`DELETE FROM passage WHERE memory_id = ?`, memory); err != nil {
			return false, nil, err
		}
		return w.AddPassages(memory, at, passages, own, tags)
	}
	tagTerms := text.Indexed(strings.Join(tags, "\n"))
	indexed = true
	for i, p := range passages {
		vector, profile, current := w.vectorOf(p, at, own)
		indexed = indexed && current
		stored, err := sealVector(w.Tx, EncodeVector(vector, at), at)
		if err != nil {
			return false, nil, err
		}
		if _, err := w.Tx.Exec(`UPDATE passage SET start = ?, length = ?, blank = ?, profile_id = ?, vector = ? WHERE id = ?`,
			p.Start, p.Length, p.Blank, profile, stored, former[i]); err != nil {
			return false, nil, err
		}
		if err := w.Tx.Words().Put(former[i], p.Indexed, tagTerms, true); err != nil {
			return false, nil, err
		}
		tagTerms = ""
	}
	return indexed, at.withoutVectors(own), nil
}

func checkOwnVector(at *Place, model string, own []float32) error {
	switch {
	case own == nil:
		return nil
	case at.OwnProfile == 0:
		return fault.Invalid("embedding",
			"{} is not allowed in collection %s, whose vectors %s makes; only a collection with {own_vectors} takes your "+
				"own vectors", fault.Show(at.collection), fault.Show(model))
	case len(own) != at.OwnSize:
		return fault.Invalid("embedding", "{} has %d dimensions, but the vectors of collection %s have %d", len(own),
			fault.Show(at.collection), at.OwnSize)
	}
	return nil
}

// Indexed reports whether a memory is found by meaning: every passage with words has a vector of the model that the
// store uses or is changing to.
func (w *RowWriter) Indexed(memory int64) (indexed bool, err error) {
	err = w.Tx.QueryRow(`SELECT NOT EXISTS (SELECT 1 FROM passage WHERE memory_id = ? AND blank = 0 AND (vector IS NULL
		OR profile_id <> ? AND profile_id NOT IN (SELECT id FROM profile WHERE model = ?)))`, memory, w.Target,
		OwnVectors).Scan(&indexed)
	return indexed, err
}

// StoredPassages reads the passages of a memory, to write them elsewhere.
func (w *RowWriter) StoredPassages(memory int64, id, content string) ([]Passage, error) {
	var passages []Passage
	err := w.Tx.Each(func(row db.Rows) error {
		var p Passage
		var blob []byte
		if err := row.Scan(&p.Start, &p.Length, &p.Blank, &p.Profile, &blob); err != nil {
			return err
		}
		var err error
		if p.Start < 0 || p.Length < 0 || p.Start+p.Length > len(content) {
			return fault.Damaged(ErrOutside, "the passages of memory %s", id)
		}
		p.Indexed = text.Indexed(content[p.Start : p.Start+p.Length])
		p.Vector, err = DecodeVector(blob)
		passages = append(passages, p)
		return err
	}, `SELECT start, length, blank, coalesce(profile_id, 0), vector FROM passage WHERE memory_id = ? ORDER BY id`, memory)
	return passages, err
}

// ReplacePassages rewrites the passages of a memory, without changing the memory itself.
func (w *RowWriter) ReplacePassages(memory, partition int64, passages []Passage, own []float32,
	tags []string) error {
	at, err := w.PlaceByRow(partition)
	if err != nil {
		return err
	}
	if _, err := w.Tx.Exec(`DELETE FROM passage WHERE memory_id = ?`, memory); err != nil {
		return err
	}
	if _, _, err := w.AddPassages(memory, at, passages, own, tags); err != nil {
		return err
	}
	return db.AddChange(w.Tx, memory)
}

// PlainMemory holds the fields of a memory that background work needs.
type PlainMemory struct {
	Row, Partition int64
	OwnVectors     bool // its collection takes vectors from callers
	Content        string
	Tags           []string
}

// Same reports whether both are the same state of a memory.
func (m PlainMemory) Same(other PlainMemory) bool {
	return m.Partition == other.Partition && m.Content == other.Content && slices.Equal(m.Tags, other.Tags)
}

// ReadPlain reads the memories m for which a condition holds.
func ReadPlain(tx db.Tx, condition string, args ...any) ([]PlainMemory, error) {
	var all []PlainMemory
	err := tx.Each(func(row db.Rows) error {
		var m PlainMemory
		var tags string
		err := row.Scan(&m.Row, &m.Partition, &m.OwnVectors, &m.Content, &tags)
		if tags != "" {
			m.Tags = strings.Split(tags, "\n") // no tag has a line break in it
		}
		all = append(all, m)
		return err
	}, `SELECT m.id, m.partition_id, c.own_profile IS NOT NULL, m.content,
			coalesce((SELECT string_agg(tag, `+db.Newline+` ORDER BY position) FROM memory_tag WHERE memory_id = m.id), '')
		`+FromMemory+` WHERE `+condition, args...)
	return all, err
}

// RemakeOwn rebuilds the passages of a memory in a collection with the caller's own vectors. It keeps the vector; a
// damaged one is lost.
func (w *RowWriter) RemakeOwn(m PlainMemory, maxInput int) error {
	at, err := w.PlaceByRow(m.Partition)
	if err != nil {
		return err
	}
	own, err := soundOwnVector(w.Tx, at, m.Row)
	if err != nil {
		return err
	}
	passages := Split(m.Content, maxInput)
	if own != nil { // one vector stands for the whole memory
		passages = []Passage{{Length: len(m.Content), Indexed: text.Indexed(m.Content)}}
	}
	return w.ReplacePassages(m.Row, m.Partition, passages, own, m.Tags)
}

// soundOwnVector returns the caller's own vector of a memory; nil if it is missing or damaged.
func soundOwnVector(tx db.Tx, at *Place, memory int64) ([]float32, error) {
	blobs, err := db.Column[[]byte](tx,
		`SELECT vector FROM passage WHERE memory_id = ? AND vector IS NOT NULL ORDER BY id`, memory)
	if err != nil {
		return nil, err
	}
	for _, blob := range blobs {
		if vector, err := DecodeVector(blob); err == nil {
			if unit, err := UnitVector(vector, at.OwnSize); err == nil {
				return unit, nil
			}
		}
	}
	return nil, nil
}
