package souvenir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fairqueue"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/static"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Purpose says what a text is embedded for; some models treat questions and answers differently.
type Purpose int

// The values of [Purpose].
const (
	ForDocument Purpose = iota // a text that is stored
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
// See internal/static/MODEL_CARD.md for how it was made.
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
			"the Embedder is a nil %T; give an initialized one, or leave it out for the built-in one", e)
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
		return g, invalid("Embedder", "the Embedder's Model is %q; a unique name is needed", g.model)
	case g.dimensions < 1 || g.dimensions > valid.MaxVector:
		return g, invalid("Embedder", "the Embedder %s has %d dimensions; 1 to %d are allowed", show(g.model), g.dimensions,
			valid.MaxVector)
	case g.maxInput < 200:
		return g, invalid("Embedder", "the Embedder %s takes texts of %d bytes at most; at least 200 are needed",
			show(g.model), g.maxInput)
	case isFunc && f.embed == nil:
		return g, invalid("Embedder", "the function of the Embedder %s is nil; give one", show(g.model))
	}
	return g, nil
}

// isNil reports whether an interface holds nothing, or a nil pointer, function, map, slice or channel.
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

func profileOf(e Embedder) kernel.Profile {
	return kernel.ProfileOf(e.Model(), e.Dimensions(), maxInput(e))
}

// callEmbedder calls the embedder. An external one waits for another program, and uses no processor meanwhile.
func (s *shared) callEmbedder(ctx context.Context, purpose Purpose, texts []string) ([][]float32, error) {
	if _, ours := s.embedder.(builtin); !ours {
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

// worker embeds, in the background, texts that could not be embedded when they were stored, and all texts again when
// the store changes to another model. It also removes remains of files after crashes, and erases expired entries of the
// trash.
type worker struct {
	s       *shared
	ctx     context.Context
	cancel  context.CancelFunc
	signal  chan struct{} // capacity 1: several wake-ups merge into one
	done    sync.WaitGroup
	erased  atomic.Bool  // something was erased, and its traces must be removed now
	failure atomic.Value // string: the last error, empty after a success
}

const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
	// lookAround is how often the worker looks for work left by a process without the embedder, or one that has ended.
	lookAround = 30 * time.Second
	// lookForTraces is how often it removes the traces of single permanent deletions, which takes longer.
	lookForTraces = time.Hour
)

func newWorker(s *shared) *worker {
	w := &worker{s: s, signal: make(chan struct{}, 1)}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

func (w *worker) start() {
	w.done.Add(1)
	go w.run()
}

// stop ends the work and waits for it.
func (w *worker) stop() {
	w.cancel()
	w.done.Wait()
}

// wake makes the worker look for work now, even while it waits to retry after a failure.
func (w *worker) wake() {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

func (w *worker) lastError() string {
	failure, _ := w.failure.Load().(string)
	return failure
}

func (w *worker) run() {
	defer w.done.Done()
	retry := firstRetry
	var scrubbed time.Time
	for {
		w.erase(&scrubbed)
		if _, err := w.s.purgeFiles(w.ctx, w.s.clock()); err != nil && w.ctx.Err() == nil {
			w.s.log.Warn("remains of unfinished files could not be removed", "error", err)
		}
		err := w.work()
		if w.ctx.Err() != nil || errors.Is(err, db.ErrClosed) {
			return
		}
		pause := lookAround
		w.failure.Store("")
		if err != nil {
			w.failure.Store(err.Error())
			w.s.log.Warn("embedding in the background failed; trying again", "error", err, "in", retry)
			pause, retry = retry, min(2*retry, lastRetry)
		} else {
			retry = firstRetry
		}
		timer := time.NewTimer(pause)
		select {
		case <-w.ctx.Done():
		case <-w.signal:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// erase erases expired entries of the trash, and removes the traces of erased data.
func (w *worker) erase(scrubbed *time.Time) {
	var erased int
	e, err := w.s.deadline(w.ctx, false)
	if err == nil {
		erased, err = w.s.eraseExpired(w.ctx, e.at)
	}
	if now := w.erased.Swap(false); err == nil && (now || erased > 0 || time.Since(*scrubbed) > lookForTraces) {
		err = w.s.scrub(w.ctx)
		*scrubbed = time.Now()
	}
	if err != nil && w.ctx.Err() == nil && !errors.Is(err, db.ErrClosed) {
		w.s.log.Warn("deleted data could not be erased yet", "error", err)
	}
}

// work does all pending work. Texts that the embedder refuses do not stop the rest.
func (w *worker) work() error {
	after, first := int64(0), error(nil)
	for {
		last, err := w.embedPending(after)
		if w.ctx.Err() != nil {
			return w.ctx.Err()
		}
		first = cmp.Or(first, err)
		if last == 0 {
			break
		}
		after = last
	}
	return cmp.Or(w.changeModel(), first)
}

// embedEach embeds texts; if that fails, one by one, so that a refused text does not cost the others their vectors. It
// returns nil for refused texts, and an error when any failed; vectors is nil when all failed.
func (s *shared) embedEach(ctx context.Context, texts []string) ([][]float32, error) {
	vectors, err := s.embed(ctx, ForDocument, texts, nil)
	if err == nil || len(texts) == 1 || ctx.Err() != nil {
		return vectors, err
	}
	vectors, some := make([][]float32, len(texts)), false
	for i := range texts {
		if one, err := s.embed(ctx, ForDocument, texts[i:i+1], nil); err == nil {
			vectors[i], some = one[0], true
		}
		if i == 2 && !some || ctx.Err() != nil {
			break // it refuses everything, so it is broken: stop asking
		}
	}
	if !some {
		return nil, err
	}
	return vectors, err
}

// pendingPassage is a passage without its vector.
type pendingPassage struct {
	id   int64
	text string
}

// embedPending embeds one batch of the waiting passages that follow after, and returns the last of them; 0 if there are
// none.
func (w *worker) embedPending(after int64) (last int64, err error) {
	var pending []pendingPassage
	err = w.s.db.Read(w.ctx, func(tx db.Tx) error {
		pending = pending[:0]
		return tx.Each(func(row db.Rows) error {
			var p pendingPassage
			var piece []byte
			err := row.Scan(&p.id, &piece)
			p.text = string(piece)
			pending = append(pending, p)
			return err
		}, `SELECT p.id, substr(CAST(m.content AS `+db.Bytes+
			`), p.start + 1, p.length) FROM passage p JOIN memory m ON m.id = p.memory_id
			WHERE p.vector IS NULL AND p.profile_id = ? AND p.id > ? ORDER BY p.id LIMIT ?`, w.s.profile, after, EmbedBatch)
	})
	if err != nil || len(pending) == 0 {
		return 0, err
	}
	texts := make([]string, len(pending))
	for i, p := range pending {
		texts[i] = p.text
	}
	vectors, refused := w.s.embedEach(w.ctx, texts)
	if vectors == nil {
		return 0, refused
	}
	err = w.s.db.Write(w.ctx, func(tx db.Tx) error {
		for i, p := range pending {
			if vectors[i] == nil {
				continue
			}
			// Ids of passages are never reused: if the content has changed since, the passage no longer exists.
			if _, err := tx.Exec(`UPDATE passage SET vector = ? WHERE id = ? AND vector IS NULL`,
				kernel.EncodeVector(vectors[i]), p.id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return pending[len(pending)-1].id, refused
}
