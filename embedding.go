package souvenir

import (
	"context"
	"fmt"
	"reflect"
	"runtime/debug"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/embedding"
	"github.com/souvenir-ai/souvenir/internal/embedding/static"
	"github.com/souvenir-ai/souvenir/internal/fairqueue"
	"github.com/souvenir-ai/souvenir/internal/files/filetext"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Purpose says what a text is embedded for; some models treat questions and answers differently.
type Purpose int

// The values of [Purpose].
const (
	ForDocument Purpose = iota // a stored text
	ForQuery                   // a text that is searched for
)

// Embedder turns texts into vectors that are near each other when the texts mean the same.
type Embedder interface {
	// Model identifies the model, with its version and anything else that changes the vectors, such as prompts. Vectors of
	// different models are never compared, even if they have the same size.
	Model() string

	// Dimensions is the length of every vector: 1 to 16,384.
	Dimensions() int

	// Embed returns one vector for each text, in order. It is called with 1 to [EmbedBatch] texts, from several goroutines
	// at once. The vectors need not have unit length; the store normalises copies of them. It must honour its context:
	// Close waits for it. Only the log and the operator see its errors, which may hold texts, addresses and keys; callers
	// only learn that the embedder failed. A panic counts as an error.
	Embed(ctx context.Context, purpose Purpose, texts []string) ([][]float32, error)
}

// InputLimiter is an [Embedder] that says how long its texts may be. Longer memories are split into passages.
type InputLimiter interface {
	MaxInput() int // bytes of a text; at least 200
}

// EmbedBatch is the largest number of texts passed to one call of [Embedder.Embed].
const EmbedBatch = 128

// defaultMaxInput is the passage size, in bytes, for embedders that do not say: about 250 words, a length that small
// models embed well.
const defaultMaxInput = 1600

// EmbedderFunc makes an [Embedder] from a function. Model and dimensions are as in the interface.
func EmbedderFunc(model string, dimensions int,
	embed func(ctx context.Context, purpose Purpose, texts []string) ([][]float32, error)) Embedder {
	return embedderFunc{model, dimensions, embed}
}

type embedderFunc struct {
	model      string
	dimensions int
	embed      func(context.Context, Purpose, []string) ([][]float32, error)
}

func (e embedderFunc) Model() string   { return e.model }
func (e embedderFunc) Dimensions() int { return e.dimensions }
func (e embedderFunc) Embed(ctx context.Context, purpose Purpose, texts []string) ([][]float32, error) {
	return e.embed(ctx, purpose, texts)
}

// Builtin returns the embedder that is part of this package: a static model (a table of token vectors, averaged), held
// in the binary. It needs no network and no key, and embeds tens of thousands of short texts a second.
// See internal/embedding/static/MODEL_CARD.md for how it was made.
func Builtin() Embedder { return builtin{static.Default()} }

type builtin struct{ model *static.Model }

func (b builtin) Model() string   { return b.model.Name() }
func (b builtin) Dimensions() int { return b.model.Dimensions() }
func (b builtin) Embed(ctx context.Context, purpose Purpose, texts []string) ([][]float32, error) {
	size := b.Dimensions()
	vectors, room := make([][]float32, len(texts)), make([]float32, len(texts)*size)
	for i, t := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		vectors[i] = b.model.Embed(room[i*size:i*size:(i+1)*size], t, purpose == ForQuery)
	}
	return vectors, nil
}

// guardedEmbedder keeps an embedder's panics from ending the process. The embedder's model and limits are read once,
// when the store is opened.
type guardedEmbedder struct {
	Embedder
	model                string
	dimensions, maxInput int
}

// guard checks an embedder and guards it. A nil embedder, a nil pointer or function in one, and a panic while it
// describes itself are ErrInvalid.
func guard(e Embedder) (guarded guardedEmbedder, err error) {
	if isNil(e) {
		return guarded, invalid("Embedder",
			"the Embedder is a nil %T; give an initialized one, or nil for the built-in one", e)
	}
	defer func() {
		if broken := recover(); broken != nil {
			err = invalid("Embedder", "the Embedder (%T) panicked while it was asked for its model and sizes: %v", e, broken)
		}
	}()
	f, isFunc := e.(embedderFunc)
	g := guardedEmbedder{e, e.Model(), e.Dimensions(), maxInput(e)}
	switch {
	case g.model == "" || g.model == OwnVectors:
		return g, invalid("Embedder", "the Embedder's Model is %q; expected a unique name", g.model)
	case g.dimensions < 1 || g.dimensions > valid.MaxVector:
		return g, invalid("Embedder", "the Embedder %s has %d dimensions; expected 1 to %d", show(g.model), g.dimensions,
			valid.MaxVector)
	case g.maxInput < 200:
		return g, invalid("Embedder", "the Embedder %s takes texts of %d bytes at most; expected at least 200",
			show(g.model), g.maxInput)
	case isFunc && f.embed == nil:
		return g, invalid("Embedder", "the function of the Embedder %s is nil; give one", show(g.model))
	}
	return g, nil
}

// isBuiltin reports whether an embedder, guarded or not, is the built-in one.
func isBuiltin(e Embedder) bool {
	if g, ok := e.(guardedEmbedder); ok {
		e = g.Embedder
	}
	_, ours := e.(builtin)
	return ours
}

// isNil reports whether an interface is nil or holds a nil pointer, function, map, slice or channel.
func isNil(value any) bool {
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Slice, reflect.Chan:
		return v.IsNil()
	}
	return false
}

func (g guardedEmbedder) Model() string   { return g.model }
func (g guardedEmbedder) Dimensions() int { return g.dimensions }
func (g guardedEmbedder) MaxInput() int   { return g.maxInput }

// Embed turns a panic of the embedder into an error with its stack, for the log.
func (g guardedEmbedder) Embed(ctx context.Context, purpose Purpose, texts []string) (vectors [][]float32, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			vectors, err = nil, fmt.Errorf("panic: %v\n%s", broken, debug.Stack())
		}
	}()
	return g.Embedder.Embed(ctx, purpose, texts)
}

func maxInput(e Embedder) int {
	if limiter, ok := e.(InputLimiter); ok {
		return limiter.MaxInput()
	}
	return defaultMaxInput
}

// embedsLater reports whether embedding must wait for the end of the context's transaction, which would otherwise hold
// the writer while another program embeds.
func (s *shared) embedsLater(ctx context.Context) bool {
	return !isBuiltin(s.embedder) && s.db.InTransaction(ctx)
}

// wake makes the worker embed pending texts: now, or once the context's transaction is done.
func (s *shared) wake(ctx context.Context) {
	s.db.AtEnd(ctx, func(undone error) {
		if undone == nil {
			s.worker.Wake()
		}
	})
}

// callEmbedder calls the embedder. An external one waits for another program, so the call gives up its processor
// meanwhile.
func (s *shared) callEmbedder(ctx context.Context, purpose Purpose, texts []string) ([][]float32, error) {
	if !isBuiltin(s.embedder) {
		defer fairqueue.Pause(ctx)()
	}
	return s.embedder.Embed(ctx, purpose, texts)
}

// embed embeds texts in batches and returns unit vectors, or an error about the embedder's answer. That error is for
// the log and the operator only: it may hold texts, addresses and keys. Progress may be nil.
func (s *shared) embed(ctx context.Context, purpose Purpose, texts []string, progress func(done int)) ([][]float32,
	error) {
	vectors := make([][]float32, 0, len(texts))
	for len(texts) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		batch := texts[:min(len(texts), EmbedBatch)]
		got, err := s.callEmbedder(ctx, purpose, batch)
		if err != nil {
			return nil, fmt.Errorf("embedder %s: %w", s.embedder.Model(), err)
		}
		if len(got) != len(batch) {
			return nil, fmt.Errorf("embedder %s returned %d vectors for %d texts", s.embedder.Model(), len(got), len(batch))
		}
		for _, v := range got {
			unit, err := kernel.UnitVector(v, s.embedder.Dimensions())
			if err != nil {
				return nil, fmt.Errorf("embedder %s: %w", s.embedder.Model(), err)
			}
			vectors = append(vectors, unit)
		}
		texts = texts[len(batch):]
		if progress != nil {
			progress(len(vectors))
		}
	}
	return vectors, nil
}

// startEmbedding makes the embedder's profile the file's target and starts the worker. A read-only file stays as it is.
func (s *shared) startEmbedding(ctx context.Context) error {
	s.vectors = &embedding.Vectors{
		DB: s.db, Model: s.embedder.Model(), Dimensions: s.embedder.Dimensions(), MaxInput: maxInput(s.embedder),
		Batch: EmbedBatch, Log: s.log, Now: s.now,
		Embed: func(ctx context.Context, texts []string) ([][]float32, error) {
			return s.embed(ctx, ForDocument, texts, nil)
		},
	}
	if s.options.KeepModel {
		s.vectors.Keeps = func(model string) bool { return !strings.HasPrefix(model, static.Family) }
	}
	s.worker = embedding.NewWorker(s.vectors, s.tidy)
	err := s.vectors.Claim(ctx)
	s.profile, s.index.Profile = s.vectors.Profile, s.vectors.Profile
	if err == nil && !s.db.ReadOnly() {
		s.worker.Start()
	}
	return err
}

// EmbeddingStatus is the progress of a store's vectors.
type EmbeddingStatus struct {
	Model      string `json:"model"`
	Dimensions int    `json:"dimensions"`
	Passages   int    `json:"passages"` // of the memories and the texts of files visible through the view
	Pending    int    `json:"pending"`  // passages that wait to be embedded
	Changing   bool   `json:"changing"` // the store is changing to this model; searches use words only until it is done

	// StoredModel is the model of the file's vectors if another program chose it: earlier, with [Options.KeepModel]
	// set, or since the store was opened. Searches then use words only. It is empty when the file has Model or is
	// changing to it.
	StoredModel string `json:"file_model,omitempty"`

	// Progress of a model change: Changed of Memories have been embedded again. Both count the memories and the texts of
	// files that are visible through the view and whose vectors the store makes. Changed only grows until the change is
	// done, and is Memories then. From is the previous model; empty when the store is not changing.
	Memories int    `json:"memories"`
	Changed  int    `json:"changed"`
	From     string `json:"from,omitempty"`

	// LastError is the last failure of background embedding; empty once it works again. It is set for the Store that Open
	// returned only: an embedder's error may hold texts, addresses and keys.
	LastError string `json:"last_error,omitempty"`
}

// EmbeddingStatus reports the state of the vectors visible through this view.
func (h *Upkeep) EmbeddingStatus(ctx context.Context) (EmbeddingStatus, error) {
	s := h.s
	var e EmbeddingStatus
	err := s.read(ctx, func(tx db.Tx, v viewer) error {
		sel, err := s.selection(tx, v, Query{})
		if err != nil {
			return err
		}
		texts, err := documentSelection(tx, v, Query{})
		if err != nil {
			return err
		}
		sel.Partitions = append(sel.Partitions, texts.Partitions...)
		return s.embeddingStatus(tx, sel.PartitionList(), &e)
	})
	return e, err
}

// embeddingStatus reports the state of the vectors of some partitions.
func (s *Store) embeddingStatus(tx db.Tx, partitions string, e *EmbeddingStatus) error {
	p, err := s.vectors.Progress(tx, partitions)
	*e = EmbeddingStatus{Model: s.embedder.Model(), Dimensions: s.embedder.Dimensions(), Passages: p.Passages,
		Pending: p.Pending, Changing: p.Changing, StoredModel: p.Other, Memories: p.Memories, Changed: p.Changed,
		From: p.From}
	if s.operator {
		e.LastError = s.worker.LastError()
	}
	return err
}

// WaitEmbedded waits until every passage visible through this view has its vector, and the store has changed to its
// embedder's model. It returns the context's error if the context ends first, and ErrReadOnly or ErrConflict if the
// vectors will never be made. It keeps waiting while the embedder fails.
func (h *Upkeep) WaitEmbedded(ctx context.Context) error {
	s := h.s
	if err := s.outside(ctx, "WaitEmbedded"); err != nil {
		return err
	}
	s.worker.Wake()
	for {
		e, err := h.EmbeddingStatus(ctx)
		if err != nil || e.Pending == 0 && !e.Changing && e.StoredModel == "" {
			return err
		}
		if e.StoredModel != "" && !s.db.ReadOnly() {
			return wrap(s.vectors.ErrOther(e.StoredModel))
		}
		if s.db.ReadOnly() {
			return newError(KindReadOnly, "",
				"the store is opened read-only: %d passages have no vector of the model %s, and will get none", e.Pending,
				show(e.Model))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// ReindexingOptions change how [Upkeep.Reindex] works. Nil means the zero value.
type ReindexingOptions struct {
	// Progress receives the stage "reindex", counted in memories. Nil means no progress reports.
	Progress Progress
}

// Reindex rebuilds, from the contents of memories, everything that searches use to find them: it splits, analyses and
// embeds the contents again with the store's embedder, and does the same with the texts of files. Files without a text
// are read again in the background. The caller's own vectors stay. Searches and writes continue meanwhile and see each
// memory either before or after. Reindex returns when all is done. If its context, an error or the end of the process
// interrupts it, the next call continues where it stopped.
//
// An embedder that fails is an error. A single text that it refuses is not: search finds it by its words until it can
// be embedded, see [Upkeep.EmbeddingStatus]. A read-only store is ErrReadOnly; one that another process has changed
// to another model meanwhile is ErrConflict.
//
// It is for the Store that Open returned; a view gets ErrForbidden.
func (h *Upkeep) Reindex(ctx context.Context, options *ReindexingOptions) error {
	s, err := h.operator(ctx, "Reindex")
	if err != nil {
		return err
	}
	progress := func(string, int, int) {}
	if options != nil && options.Progress != nil {
		progress = options.Progress
	}
	if err := s.vectors.Reindex(ctx, func(done, total int) { progress("reindex", done, total) }); err != nil {
		return wrap(err)
	}
	err = s.writeStore(ctx, func(tx db.Tx) error {
		return s.note(ctx, tx, filetext.ReadAgain(tx), event{"reindex", "store", "", nil})
	})
	if err != nil {
		return err
	}
	s.worker.Wake() // for texts that were refused
	s.texts.Wake()
	return nil
}

// embedDrafts splits and embeds drafts. A failing embedder is not an error: the passages stay without vectors, and the
// warnings say so. The end of the caller's context is an error.
func (s *Store) embedDrafts(ctx context.Context, drafts []kernel.Draft, progress Progress) (warnings []string,
	err error) {
	return kernel.EmbedDrafts(drafts, maxInput(s.embedder), func(texts []string) ([][]float32, []string, error) {
		return s.embedTexts(ctx, texts, progress)
	})
}

// embedTexts embeds pieces of documents. A failing embedder is not an error: it returns no vectors, and the warnings
// say so. The end of the caller's context is an error.
func (s *Store) embedTexts(ctx context.Context, texts []string, progress Progress) (vectors [][]float32,
	warnings []string, err error) {
	if s.embedsLater(ctx) {
		return nil, []string{"found by its words at once, and by meaning once the transaction is done and the embedder " +
			s.embedder.Model() + " has run"}, nil
	}
	vectors, err = s.embed(ctx, ForDocument, texts, func(done int) { progress("embed", done, len(texts)) })
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if err != nil {
		s.log.WarnContext(ctx, "texts could not be embedded; they are found by words until they are", "texts", len(texts),
			"error", err)
		return nil, []string{"stored and found by its words, but not yet by meaning, because the embedder " +
			s.embedder.Model() + " failed"}, nil
	}
	return vectors, nil, nil
}
