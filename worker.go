package souvenir

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// worker embeds in the background what could not be embedded when it was stored, and everything anew when the store
// changes to another model. It also removes what crashes left of files, and
// erases what has been in the trash for long enough.
type worker struct {
	s       *shared
	ctx     context.Context
	cancel  context.CancelFunc
	signal  chan struct{} // of one place: more than one wake-up is one
	done    sync.WaitGroup
	erased  atomic.Bool  // something was erased, and its traces are to be removed now
	failure atomic.Value // string: the last error, empty after a success
}

const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
	// lookAround is how often the worker looks for work that another process left: one that lacks the embedder, or ended.
	lookAround = 30 * time.Second
	// lookForTraces is how often it removes the traces of single deletions for good, which takes longer.
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

// wake makes the worker look for work now, also when it waits to try again after a failure.
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
			w.s.log.Warn("what was left of unfinished files could not be removed", "error", err)
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

// erase erases what has been in the trash for long enough, and removes the traces of what was erased.
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
		w.s.log.Warn("what is to be erased could not be erased yet", "error", err)
	}
}

// work does all there is to do. What the embedder refuses does not keep it from the rest.
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

// embedEach embeds texts; if that fails, one by one, so that a text which the embedder refuses costs no other its
// vector. It returns nil for those refused, and an error when something failed; vectors are nil when all did.
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
			break // it refuses everything: it is out of order, and need not be asked a hundred times
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

// embedPending embeds one batch of the waiting passages after one, and returns the last of them; 0 if there are none.
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
		}, `SELECT p.id, substr(CAST(m.content AS `+db.Bytes+`), p.start + 1, p.length) FROM passage p JOIN memory m ON m.id = p.memory_id
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
			// Ids of passages are never used again: if the content has changed since, there is no such passage any more.
			if _, err := tx.Exec(`UPDATE passage SET vector = ? WHERE id = ? AND vector IS NULL`, kernel.EncodeVector(vectors[i]), p.id); err != nil {
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
