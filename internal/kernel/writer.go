package kernel

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/text"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Writer writes the rows of memories within one transaction. It caches places, so that storing many memories
// needs no unnecessary look-ups. It decides nothing about rights, except that links lead to visible memories only.
type Writer struct {
	Tx         db.Tx
	Viewer     Viewer
	profile    int64  // profile of the store's embedder
	model      string // of the store's embedder
	Target     int64  // profile that new vectors must have; another process may have changed it
	outdated   bool   // something was written with another profile than target
	partitions map[int64]*Place
	numbers    map[int64]*passageNumbers // by partition
}

// passageNumbers is the number of a partition's next passage: in the database, and in memory.
type passageNumbers struct{ first, next int64 }

// Settings that say which profile new vectors must have, and which all vectors have.
const (
	SettingTarget = "embedding_target"
	SettingReady  = "embedding_ready"
)

// NewWriter returns a writer for a transaction. The profile and the model are those of the store's embedder.
func NewWriter(tx db.Tx, v Viewer, profile int64, model string) (*Writer, error) {
	w := &Writer{Tx: tx, Viewer: v, profile: profile, model: model, partitions: map[int64]*Place{},
		numbers: map[int64]*passageNumbers{}}
	if v.target != nil {
		w.Target = *v.target
		return w, nil
	}
	var err error
	w.Target, err = Setting(tx, SettingTarget)
	return w, err
}

// Beside makes w one of several writers of a transaction, for other viewers: each counts what the others have written
// but not flushed.
func (w *Writer) Beside(other *Writer) { w.numbers = other.numbers }

// Flush writes the counts held in memory. It must be called before the transaction ends.
func (w *Writer) Flush() error {
	if w.outdated {
		if err := SetSetting(w.Tx, SettingReady, 0); err != nil {
			return err
		}
	}
	for partition, n := range w.numbers {
		if n.next == n.first {
			continue
		}
		if err := db.Queue(w.Tx, `UPDATE partition SET next_passage = ? WHERE id = ?`, n.next, partition); err != nil {
			return err
		}
		n.first = n.next
	}
	return nil
}

// MaxRevision bounds revision numbers, so that an increment does not overflow.
const MaxRevision = 1 << 40

// Place is where memories are stored: a partition, its collection, and its project.
type Place struct {
	Partition, Project     int64 // rows; project 0: none
	Owner                  int64 // row of the collection's owner
	OwnerID, collection    string
	ProjectID, ProjectName string
	SharedBy               string // owner of the project, if not the caller
	OwnProfile             int64  // profile of the collection's own vectors; 0 for none
	OwnSize                int    // their dimensions
	numbers                *passageNumbers
}

// Partition returns the place of a collection and a project (0: none), by row. If there are several, it is the first;
// they come from files in which members had collections of their own in a project.
func (w *Writer) Partition(collection, project int64) (*Place, error) {
	rows, err := db.Column[int64](w.Tx,
		`SELECT id FROM partition WHERE collection_id = ? AND coalesce(project_id, 0) = ? ORDER BY id`, collection, project)
	if err != nil {
		return nil, err
	}
	if len(rows) > 0 {
		return w.PlaceByRow(rows[0])
	}
	row, err := db.Insert(w.Tx, `INSERT INTO partition (collection_id, project_id) VALUES (?, ?) RETURNING id`, collection,
		db.OrNull(project))
	if err != nil {
		return nil, err
	}
	return w.PlaceByRow(row)
}

// PlaceByRow returns the place of a partition.
func (w *Writer) PlaceByRow(partition int64) (*Place, error) {
	if known, ok := w.partitions[partition]; ok {
		return known, nil
	}
	return w.placeWhere(`p.id = ?`, partition)
}

// PlaceByName returns the place of an owner's collection and a project (0: none) as [Writer.Partition] does, but nil if
// there is no such collection, or it has no such partition yet.
func (w *Writer) PlaceByName(owner int64, collection string, project int64) (*Place, error) {
	is, stored, err := sealedrows.Is(w.Tx, sealedrows.CollectionName, owner, `c.name`, collection)
	if err != nil {
		return nil, err
	}
	p, err := w.placeWhere(named(is), owner, stored, project)
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return p, err
}

// PlaceAhead announces that a user's own place will be looked up by name; see [db.Ahead].
func PlaceAhead(tx db.Tx, user int64, collection string) {
	if !sealedrows.Seals(tx) {
		db.Ahead(tx, selectPlace+named(`c.name = ?`), user, user, collection, int64(0))
	}
}

func named(is string) string {
	return `c.owner_id = ? AND ` + is + ` AND coalesce(p.project_id, 0) = ? ORDER BY p.id LIMIT 1`
}

const selectPlace = `SELECT p.id, coalesce(p.project_id, 0), p.next_passage, c.owner_id, u.uid, c.name,
	coalesce(c.own_profile, 0), coalesce(f.dimensions, 0), coalesce(j.uid, ''), coalesce(j.name, ''),
		CASE WHEN j.owner_id <> ? THEN (SELECT coalesce(o.name, o.uid) FROM users o WHERE o.id = j.owner_id) ELSE '' END
	FROM partition p JOIN collection c ON c.id = p.collection_id JOIN users u ON u.id = c.owner_id
	LEFT JOIN profile f ON f.id = c.own_profile LEFT JOIN project j ON j.id = p.project_id
	WHERE `

// placeWhere returns the place of the partition p, in the collection c, for which a condition holds.
func (w *Writer) placeWhere(condition string, args ...any) (*Place, error) {
	var p Place
	var next int64
	err := w.Tx.QueryRow(selectPlace+condition, append([]any{w.Viewer.User}, args...)...).
		Scan(&p.Partition, &p.Project, &next, &p.Owner, &p.OwnerID, &p.collection, &p.OwnProfile, &p.OwnSize, &p.ProjectID,
			&p.ProjectName, &p.SharedBy)
	if err != nil {
		return nil, err
	}
	if known, ok := w.partitions[p.Partition]; ok {
		return known, nil
	}
	if w.numbers[p.Partition] == nil { // otherwise the number in memory counts
		w.numbers[p.Partition] = &passageNumbers{next, next}
	}
	p.numbers = w.numbers[p.Partition]
	w.partitions[p.Partition] = &p
	return &p, nil
}

// AddTags adds the tags of a memory that has none, in a collection of an owner, a row in the users.
func (w *Writer) AddTags(memory, owner int64, tags []string) error {
	return addTags(w.Tx, memory, owner, tags)
}

func addTags(tx db.Tx, memory, owner int64, tags []string) error {
	for i, tag := range tags {
		sealed, err := sealedrows.SealText(tx, owner, sealedrows.Tag, tag)
		if err != nil {
			return err
		}
		if err := db.Queue(tx, `INSERT INTO memory_tag (memory_id, tag, position) VALUES (?, ?, ?)`, memory, sealed,
			i); err != nil {
			return err
		}
	}
	return nil
}

// ReplaceTags sets the tags of a memory in a collection of an owner, a row in the users.
func (w *Writer) ReplaceTags(memory, owner int64, tags []string) error {
	if _, err := w.Tx.Exec(`DELETE FROM memory_tag WHERE memory_id = ?`, memory); err != nil {
		return err
	}
	return w.AddTags(memory, owner, tags)
}

// AddLinks links a memory to others, which must be visible to the caller.
func (w *Writer) AddLinks(memory int64, related []string) error {
	condition, args := w.Viewer.Visible()
	for i, id := range related {
		targets, err := db.Column[int64](w.Tx, `SELECT m.id `+FromMemory+` WHERE m.uid IN (?, ?) AND `+condition+
			w.Viewer.Alive(`m`)+` ORDER BY m.uid = ? DESC`,
			slices.Concat([]any{id, valid.CanonicalID(id)}, args, []any{id})...)
		if err != nil {
			return err
		}
		switch {
		case len(targets) == 0:
			return fault.New(fault.KindNotFound, "related_memory_ids",
				"{}[%d]: memory %s not found, or you have no access to it", i, fault.Show(id))
		case targets[0] == memory:
			return fault.Invalid("related_memory_ids",
				"{}[%d] is the memory itself (%s); a memory is related to others", i, fault.Show(id))
		}
		if _, err := w.Tx.Exec(`INSERT INTO memory_link (memory_id, related_id, position) VALUES (?, ?, ?)
			ON CONFLICT (memory_id, related_id) DO UPDATE SET position = excluded.position`, memory, targets[0], i); err != nil {
			return err
		}
	}
	return nil
}

// ReplaceLinks replaces the links that the caller can see and leaves the others alone.
func (w *Writer) ReplaceLinks(memory int64, related []string) error {
	statement, args := DeleteLinks(w.Viewer, memory)
	if _, err := w.Tx.Exec(statement, args...); err != nil {
		return err
	}
	return w.AddLinks(memory, related)
}

// DeleteLinks is the statement that deletes the links of a memory that the caller can see. It checks each link: with IN
// it would first collect all memories that the caller can see.
func DeleteLinks(v Viewer, memory int64) (statement string, args []any) {
	condition, args := v.Visible()
	return `DELETE FROM memory_link WHERE memory_id = ? AND EXISTS (SELECT 1 ` + FromMemory +
		` WHERE m.id = related_id AND ` + condition + `)`, append([]any{memory}, args...)
}

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
func (w *Writer) AddPassages(memory int64, at *Place, passages []Passage, own []float32,
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
func (w *Writer) vectorOf(p Passage, at *Place, own []float32) (vector []float32, profile any, current bool) {
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
func (w *Writer) RewritePassages(memory int64, at *Place, passages []Passage, own []float32,
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

// StoredPassages reads the passages of a memory, to write them elsewhere.
func (w *Writer) StoredPassages(memory int64, id, content string) ([]Passage, error) {
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
func (w *Writer) ReplacePassages(memory, partition int64, passages []Passage, own []float32,
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
	return w.Tx.Changes().Add(memory)
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
func (w *Writer) RemakeOwn(m PlainMemory, maxInput int) error {
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

// KeyHolder returns the row of the memory that has a key in a partition, 0 for none.
func KeyHolder(tx db.Tx, partition int64, key string) (int64, error) {
	if key == "" {
		return 0, nil
	}
	is, stored, err := isKey(tx, partition, `key`, key)
	if err != nil {
		return 0, err
	}
	rows, err := db.Column[int64](tx, `SELECT id FROM memory WHERE partition_id = ? AND `+is, partition, stored)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return rows[0], nil
}

// isKey returns the condition that a column has the key of a memory in a partition, and its argument.
func isKey(tx db.Tx, partition int64, column, key string) (condition string, arg any, err error) {
	if !sealedrows.Seals(tx) {
		return column + ` = ?`, key, nil
	}
	owner, err := OwnerOfPartition(tx, partition)
	if err != nil {
		return "", nil, err
	}
	return sealedrows.Is(tx, sealedrows.MemoryKey, owner, column, key)
}

// WithKey returns the condition for the memory m, in the partition p and collection c, that has a key in a collection
// of an owner and a project (0: none), and its arguments.
func WithKey(tx db.Tx, owner, project int64, collection, key string) (condition string, args []any, err error) {
	hasKey, storedKey, err := sealedrows.Is(tx, sealedrows.MemoryKey, owner, `m.key`, key)
	if err != nil {
		return "", nil, err
	}
	named, storedName, err := sealedrows.Is(tx, sealedrows.CollectionName, owner, `c.name`, collection)
	return hasKey + ` AND ` + named + ` AND c.owner_id = ? AND coalesce(p.project_id, 0) = ?`,
		[]any{storedKey, storedName, owner, project}, err
}

// SealKey returns the argument for the key of a memory in the collection of an owner, a row in the users; without a
// key, it is NULL.
func SealKey(tx db.Tx, owner int64, key string) (any, error) {
	if key == "" {
		return nil, nil //nolint:nilnil // NULL
	}
	return sealedrows.SealText(tx, owner, sealedrows.MemoryKey, key)
}

// SameContent returns the row of the oldest memory of a partition that has a content and is valid, 0 for none.
func SameContent(tx db.Tx, v Viewer, partition int64, content string) (int64, error) {
	if sealedrows.Seals(tx) {
		return firstWith(tx, content, `partition_id = ? AND octet_length(content) = ?`+v.Current(), partition,
			sealedrows.SealedLength(len(content)))
	}
	rows, err := db.Column[int64](tx, `SELECT id FROM memory m WHERE partition_id = ?2 AND `+db.SameContent+
		v.Current()+` ORDER BY id LIMIT 1`, content, partition)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return rows[0], nil
}

// firstWith returns the row of the oldest memory m that has a content, among those for which a condition holds: it
// opens them. There are few if the condition has the length of the content.
func firstWith(tx db.Tx, content, condition string, args ...any) (first int64, err error) {
	err = tx.Each(func(row db.Rows) error {
		var id int64
		var has string
		err := row.Scan(&id, &has)
		if has == content && first == 0 {
			first = id
		}
		return err
	}, `SELECT id, content FROM memory m WHERE `+condition+` ORDER BY id`, args...)
	return first, err
}

// HasStored reports whether a memory of a collection and project (0: none), by row, has a key and a content, or,
// without a key, the content.
func HasStored(tx db.Tx, collection, project int64, key, content string) (bool, error) {
	condition, args := `m.key = ?4 AND m.content = ?1`, []any{content, collection, project, key}
	if key == "" {
		condition, args = db.SameContent, args[:3]
	}
	if sealedrows.Seals(tx) {
		length := ` AND octet_length(content) = ?`
		args = []any{collection, project, sealedrows.SealedLength(len(content))}
		if key != "" {
			var owner int64
			if err := tx.QueryRow(`SELECT owner_id FROM collection WHERE id = ?`, collection).Scan(&owner); err != nil {
				return false, err
			}
			is, stored, err := sealedrows.Is(tx, sealedrows.MemoryKey, owner, `m.key`, key)
			if err != nil {
				return false, err
			}
			length, args[2] = ` AND `+is, stored
		}
		row, err := firstWith(tx, content, `partition_id IN (SELECT p.id FROM partition p WHERE p.collection_id = ?
			AND coalesce(p.project_id, 0) = ?)`+length, args...)
		return row != 0, err
	}
	same, err := db.Column[int64](tx, `SELECT 1 FROM partition p `+db.InOrder+` memory m ON m.partition_id = p.id
		WHERE p.collection_id = ?2 AND coalesce(p.project_id, 0) = ?3 AND `+condition+` LIMIT 1`, args...)
	return len(same) > 0, err
}
