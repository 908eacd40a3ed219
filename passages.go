package souvenir

import (
	"context"
	"fmt"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/text"
)

// passage is a piece of a memory's content: what is embedded and searched. Short content is one passage.
type passage struct {
	start, length int
	indexed       string    // the terms, as full text stores them
	vector        []float32 // of unit length; nil while it waits to be embedded
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

// embedDrafts splits and embeds drafts. A failing embedder is no error: the passages stay without vectors, and the
// warnings say so. The caller's context is.
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

// embedTexts embeds pieces of documents. A failing embedder is no error: there are no vectors then, and the warnings
// say so. The caller's context is.
func (s *Store) embedTexts(ctx context.Context, texts []string, progress Progress) (vectors [][]float32, warnings []string, err error) {
	vectors, err = s.embed(ctx, ForDocument, texts, func(done int) { progress("embed", done, len(texts)) })
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if err != nil {
		s.log.Warn("texts could not be embedded; they are found by words until they are", "texts", len(texts), "error", err)
		return nil, []string{"stored and found by its words; finding it by meaning has to wait, because the embedder " + s.embedder.Model() + " failed"}, nil
	}
	return vectors, nil, nil
}

// addPassages inserts the passages of a memory. own is the vector that the caller brings, nil for none.
func (w *memoryWriter) addPassages(memory int64, at *place, passages []passage, own []float32, tags []string) (indexed bool, warnings []string, err error) {
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
			// Another process has changed the model. This one's splitting and vectors are not the new model's: the
			// passages stay this model's, and the other process is told to go through the memories once more.
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
		warnings = append(warnings, fmt.Sprintf("collection %s holds own vectors, and none came with this memory: it is found by its words only", show(at.collection)))
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
		return invalid("embedding", "embedding has %d dimensions, but the vectors of collection %s have %d", len(own), show(at.collection), at.ownSize)
	}
	return nil
}

// storedPassages reads the passages of a memory, to be written elsewhere.
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
