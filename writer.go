package souvenir

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/check"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/text"
)

// memoryWriter writes memories within one transaction. It caches places, so that storing many memories needs no
// unnecessary look-ups.
type memoryWriter struct {
	store      *Store
	tx         db.Tx
	sc         scope
	target     int64 // profile that new vectors must have; another process may have changed it
	outdated   bool  // something was written with another profile than target
	places     map[placeName]*place
	partitions map[int64]*place
	targets    map[ProjectRef]projectTarget // by their reference
	grown      map[int64]bool               // partitions that hold more than before
	restoring  bool                         // the memories come from the trash
}

// placeName is a place as callers name it; place is the resolved place.
type placeName struct{ collection, projectID, projectName string }

type place struct {
	partition, project     int64 // rows; project 0: none
	owner                  int64 // row of the collection's owner
	ownerID, collection    string
	projectID, projectName string
	sharedBy               string // owner of the project, if not the caller
	ownProfile             int64  // profile of the collection's own vectors; 0 for none
	ownSize                int    // their dimensions
	first, next            int64  // number of the partition's next passage: in the file, and in memory
}

func (s *Store) newWriter(tx db.Tx, sc scope) (*memoryWriter, error) {
	target, err := kernel.Setting(tx, settingTarget)
	return &memoryWriter{store: s, tx: tx, sc: sc, target: target, places: map[placeName]*place{},
		partitions: map[int64]*place{}, targets: map[ProjectRef]projectTarget{}}, err
}

// flush writes the counts held in memory, and refuses a write that exceeds a quota. It must be called before the
// transaction ends.
func (w *memoryWriter) flush() error {
	if err := w.checkQuota(); err != nil {
		return err
	}
	if w.outdated {
		if err := kernel.SetSetting(w.tx, settingReady, 0); err != nil {
			return err
		}
	}
	for _, p := range w.partitions {
		if p.next == p.first {
			continue
		}
		if _, err := w.tx.Exec(`UPDATE partition SET next_passage = ? WHERE id = ?`, p.next, p.partition); err != nil {
			return err
		}
		p.first = p.next
	}
	return nil
}

// place finds the partition for a collection and a project, both by name, and creates missing ones.
func (w *memoryWriter) place(collection, projectID, projectName string) (*place, error) {
	name := placeName{collection, projectID, projectName}
	if p, ok := w.places[name]; ok {
		return p, nil
	}
	project, err := w.project(projectID, projectName)
	if err != nil {
		return nil, err
	}
	p, err := w.placeIn(collection, project)
	if err == nil {
		w.places[name] = p
	}
	return p, err
}

// placeIn is place for a project by row, 0 for none.
func (w *memoryWriter) placeIn(collection string, project int64) (*place, error) {
	owner, err := projectOwner(w.tx, w.sc, project)
	if err != nil {
		return nil, err
	}
	at, err := w.store.collectionFor(w.tx, w.sc, collection, owner)
	if err == nil && at.row == 0 {
		at.row, err = w.store.addFor(w.tx, w.sc, collection, owner, at)
	}
	if err != nil {
		return nil, err
	}
	return w.partition(at.row, project)
}

// projectOwner returns the row of the user who owns what lies in a project (0: outside any), and whose quota it counts
// towards.
func projectOwner(tx db.Tx, sc scope, project int64) (owner int64, err error) {
	if project == 0 {
		return sc.User, nil
	}
	err = tx.QueryRow(`SELECT owner_id FROM project WHERE id = ?`, project).Scan(&owner)
	return owner, err
}

// project returns the row of the project that a write names, 0 for none, and creates an unknown one.
func (w *memoryWriter) project(id, name string) (int64, error) {
	ref := ProjectRef{ID: id, Name: name}
	if known, ok := w.targets[ref]; ok {
		return known.row, nil
	}
	target, err := w.store.projectForWriting(w.tx, w.sc, id, name)
	if err != nil {
		return 0, err
	}
	w.targets[ref] = target
	if w.sc.Limited && !slices.Contains(w.sc.Projects, target.row) {
		w.sc.Projects = append(w.sc.Projects, target.row) // the view is limited to this project, which has just been created
	}
	return target.row, nil
}

// tell adds to a result what its caller should know about the project. Only the first memory in it reports that it was
// created.
func (w *memoryWriter) tell(stored *Stored, id, name string) {
	ref := ProjectRef{ID: id, Name: name}
	target := w.targets[ref]
	stored.Warnings = slices.Concat(stored.Warnings, target.warnings)
	if target.created {
		stored.ProjectCreated = true
		w.targets[ref] = projectTarget{row: target.row}
	}
}

// partition returns the place of a collection and a project (0: none), by row. If there are several, it is the first;
// they come from files in which members had collections of their own in a project.
func (w *memoryWriter) partition(collection, project int64) (*place, error) {
	var projectArg any
	if project != 0 {
		projectArg = project
	}
	if _, err := w.tx.Exec(`INSERT INTO partition (collection_id, project_id) SELECT ?, ?
		WHERE NOT EXISTS (SELECT 1 FROM partition WHERE collection_id = ? AND coalesce(project_id, 0) = ?)`,
		collection, projectArg, collection, project); err != nil {
		return nil, err
	}
	rows, err := db.Column[int64](w.tx,
		`SELECT id FROM partition WHERE collection_id = ? AND coalesce(project_id, 0) = ? ORDER BY id`, collection, project)
	if err != nil {
		return nil, err
	}
	return w.placeByRow(rows[0])
}

// placeByRow returns the place of a partition.
func (w *memoryWriter) placeByRow(partition int64) (*place, error) {
	if known, ok := w.partitions[partition]; ok {
		return known, nil
	}
	var p place
	err := w.tx.QueryRow(`SELECT p.id, coalesce(p.project_id, 0), p.next_passage, c.owner_id, u.uid, c.name, coalesce(c.own_profile, 0), coalesce(f.dimensions, 0), coalesce(j.uid, ''), coalesce(j.name, ''),
			CASE WHEN j.owner_id <> ? THEN (SELECT coalesce(o.name, o.uid) FROM users o WHERE o.id = j.owner_id) ELSE '' END
		FROM partition p JOIN collection c ON c.id = p.collection_id JOIN users u ON u.id = c.owner_id
		LEFT JOIN profile f ON f.id = c.own_profile LEFT JOIN project j ON j.id = p.project_id
		WHERE p.id = ?`, w.sc.User, partition).
		Scan(&p.partition, &p.project, &p.first, &p.owner, &p.ownerID, &p.collection, &p.ownProfile, &p.ownSize, &p.projectID,
			&p.projectName, &p.sharedBy)
	if err != nil {
		return nil, err
	}
	p.next = p.first
	w.partitions[partition] = &p
	return &p, nil
}

func (w *memoryWriter) addTags(memory int64, tags []string) error {
	for i, tag := range tags {
		if _, err := w.tx.Exec(`INSERT INTO memory_tag (memory_id, tag, position) VALUES (?, ?, ?)`, memory, tag,
			i); err != nil {
			return err
		}
	}
	return nil
}

func (w *memoryWriter) replaceTags(memory int64, tags []string) error {
	if _, err := w.tx.Exec(`DELETE FROM memory_tag WHERE memory_id = ?`, memory); err != nil {
		return err
	}
	return w.addTags(memory, tags)
}

// addLinks links a memory to others, which must be visible to the caller.
func (w *memoryWriter) addLinks(memory int64, related []string) error {
	condition, args := w.sc.Visible()
	for i, id := range related {
		targets, err := db.Column[int64](w.tx, `SELECT m.id `+kernel.FromMemory+` WHERE m.uid IN (?, ?) AND `+condition+
			` ORDER BY m.uid = ? DESC`,
			slices.Concat([]any{id, check.CanonicalID(id)}, args, []any{id})...)
		if err != nil {
			return err
		}
		switch {
		case len(targets) == 0:
			return newError(KindNotFound, "related_memory_ids",
				"related_memory_ids[%d] is %s, which is no memory that can be seen here", i, show(id))
		case targets[0] == memory:
			return invalid("related_memory_ids",
				"related_memory_ids[%d] is the memory itself (%s); a memory is related to others", i, show(id))
		}
		if _, err := w.tx.Exec(`INSERT INTO memory_link (memory_id, related_id, position) VALUES (?, ?, ?)
			ON CONFLICT (memory_id, related_id) DO UPDATE SET position = excluded.position`, memory, targets[0], i); err != nil {
			return err
		}
	}
	return nil
}

// replaceLinks replaces the links that the caller can see and leaves the others alone.
func (w *memoryWriter) replaceLinks(memory int64, related []string) error {
	condition, args := w.sc.Visible()
	if _, err := w.tx.Exec(`DELETE FROM memory_link WHERE memory_id = ? AND related_id IN (SELECT m.id `+kernel.FromMemory+
		` WHERE `+condition+`)`,
		append([]any{memory}, args...)...); err != nil {
		return err
	}
	return w.addLinks(memory, related)
}

// passage is a piece of a memory's content, the unit of embedding and search. Short content is one passage.
type passage struct {
	start, length int
	indexed       string    // the terms, as full text stores them
	vector        []float32 // of unit length; nil until it is embedded
	blank         bool      // white space only: nothing to embed
	profile       int64     // row of the vector's profile; 0: just made by this store's embedder
}

func split(content string, size int) []passage {
	spans := text.Split(content, size)
	if len(spans) == 0 {
		return []passage{{length: len(content), blank: true}}
	}
	passages := make([]passage, len(spans))
	for i, span := range spans {
		p := passage{start: span.Start, length: span.End - span.Start}
		p.indexed = text.Indexed(content[span.Start:span.End])
		passages[i] = p
	}
	return passages
}

// embedDrafts splits and embeds drafts. A failing embedder is not an error: the passages stay without vectors, and the
// warnings say so. The end of the caller's context is an error.
func (s *Store) embedDrafts(ctx context.Context, drafts []draft, progress Progress) (warnings []string, err error) {
	var texts []string
	var into []*passage
	for i := range drafts {
		d := &drafts[i]
		if d.vector != nil {
			// One vector stands for the whole memory, so the memory is one passage, however long.
			d.passages = []passage{{length: len(d.content), indexed: text.Indexed(d.content)}}
			continue
		}
		d.passages = split(d.content, maxInput(s.embedder))
		if d.wordsOnly {
			continue
		}
		for j := range d.passages {
			p := &d.passages[j]
			if p.blank {
				continue
			}
			texts, into = append(texts, d.content[p.start:p.start+p.length]), append(into, p)
		}
	}
	vectors, warnings, err := s.embedTexts(ctx, texts, progress)
	for i, v := range vectors {
		into[i].vector = v
	}
	return warnings, err
}

// embedTexts embeds pieces of documents. A failing embedder is not an error: it returns no vectors, and the warnings
// say so. The end of the caller's context is an error.
func (s *Store) embedTexts(ctx context.Context, texts []string, progress Progress) (vectors [][]float32,
	warnings []string, err error) {
	vectors, err = s.embed(ctx, ForDocument, texts, func(done int) { progress("embed", done, len(texts)) })
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if err != nil {
		s.log.Warn("texts could not be embedded; they are found by words until they are", "texts", len(texts), "error", err)
		return nil, []string{"stored and found by its words; finding it by meaning has to wait, because the embedder " +
			s.embedder.Model() + " failed"}, nil
	}
	return vectors, nil, nil
}

// addPassages inserts the passages of a memory. own is the caller's vector, nil for none.
func (w *memoryWriter) addPassages(memory int64, at *place, passages []passage, own []float32,
	tags []string) (indexed bool, warnings []string, err error) {
	if err := checkOwnVector(at, w.store.embedder, own); err != nil {
		return false, nil, err
	}
	tagTerms := text.Indexed(strings.Join(tags, "\n"))
	indexed = true
	for _, p := range passages {
		vector, profile := p.vector, any(w.target)
		switch {
		case at.ownProfile != 0 && own != nil:
			vector, profile = own, any(at.ownProfile)
		case at.ownProfile != 0 || p.blank:
			vector, profile = nil, nil
		case w.target != w.store.profile:
			// Another process has changed the model, so this one's passages and vectors do not match the new model. They stay
			// this model's, and outdated makes the other process go through the memories once more.
			profile, w.outdated, indexed = any(w.store.profile), true, false
			if p.profile != 0 && p.profile != w.store.profile {
				vector = nil
			}
		}
		if vector == nil && !p.blank {
			indexed = false
		}
		id := at.partition<<kernel.PassageBits | at.next
		at.next++
		if _, err := w.tx.Exec(`INSERT INTO passage (id, memory_id, start, length, blank, profile_id, vector) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			id, memory, p.start, p.length, p.blank, profile, kernel.EncodeVector(vector)); err != nil {
			return false, nil, err
		}
		if err := w.tx.Words().Put(id, p.indexed, tagTerms); err != nil {
			return false, nil, err
		}
		tagTerms = "" // tags are found through the first passage
	}
	if at.ownProfile != 0 && own == nil {
		warnings = append(warnings, fmt.Sprintf(
			"collection %s holds own vectors, and none came with this memory: it is found by its words only",
			show(at.collection)))
	}
	return indexed, warnings, nil
}

func checkOwnVector(at *place, embedder Embedder, own []float32) error {
	switch {
	case own == nil:
		return nil
	case at.ownProfile == 0:
		return invalid("embedding", "embedding is not for collection %s, whose vectors %s makes; only a collection made with own_vectors takes vectors of your own", show(at.collection), show(embedder.Model()))
	case len(own) != at.ownSize:
		return invalid("embedding", "embedding has %d dimensions, but the vectors of collection %s have %d", len(own),
			show(at.collection), at.ownSize)
	}
	return nil
}

// storedPassages reads the passages of a memory, to write them elsewhere.
func (w *memoryWriter) storedPassages(m storedMemory) ([]passage, error) {
	var passages []passage
	err := w.tx.Each(func(row db.Rows) error {
		var p passage
		var blob []byte
		if err := row.Scan(&p.start, &p.length, &p.blank, &p.profile, &blob); err != nil {
			return err
		}
		var err error
		if p.start < 0 || p.length < 0 || p.start+p.length > len(m.Content) {
			return damaged(kernel.ErrOutside, "the passages of memory %s", m.ID)
		}
		p.indexed = text.Indexed(m.Content[p.start : p.start+p.length])
		p.vector, err = kernel.DecodeVector(blob)
		passages = append(passages, p)
		return err
	}, `SELECT start, length, blank, coalesce(profile_id, 0), vector FROM passage WHERE memory_id = ? ORDER BY id`, m.row)
	return passages, err
}
