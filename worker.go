package souvenir

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// worker embeds in the background what could not be embedded when it was stored, and everything anew when the store
// changes to another model.
type worker struct {
	s       *shared
	ctx     context.Context
	cancel  context.CancelFunc
	signal  chan struct{} // of one place: more than one wake-up is one
	done    sync.WaitGroup
	failure atomic.Value // string: the last error, empty after a success
}

const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
	// lookAround is how often the worker looks for work that another process left: one that lacks the embedder, or ended.
	lookAround = 30 * time.Second
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
	for {
		err := w.work()
		if w.ctx.Err() != nil || errors.Is(err, sqlite.ErrClosed) {
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

// work does all there is to do.
func (w *worker) work() error {
	for {
		worked, err := w.embedPending()
		if err != nil {
			return err
		}
		if !worked {
			break
		}
	}
	return w.changeModel()
}

// pendingPassage is a passage without its vector.
type pendingPassage struct {
	id   int64
	text string
}

// embedPending embeds one batch of waiting passages and reports whether there were any.
func (w *worker) embedPending() (bool, error) {
	var pending []pendingPassage
	err := w.s.db.Read(w.ctx, func(tx *sqlite.Tx) error {
		pending = pending[:0]
		return tx.Each(func(row *sqlite.Rows) error {
			var p pendingPassage
			var piece []byte
			err := row.Scan(&p.id, &piece)
			p.text = string(piece)
			pending = append(pending, p)
			return err
		}, `SELECT p.id, substr(CAST(m.content AS BLOB), p.start + 1, p.length) FROM passage p JOIN memory m ON m.id = p.memory_id
			WHERE p.vector IS NULL AND p.profile_id = ? ORDER BY p.id LIMIT ?`, w.s.profile, EmbedBatch)
	})
	if err != nil || len(pending) == 0 {
		return false, err
	}
	texts := make([]string, len(pending))
	for i, p := range pending {
		texts[i] = p.text
	}
	vectors, err := w.s.embed(w.ctx, ForDocument, texts, nil)
	if err != nil {
		return false, err
	}
	return true, w.s.db.Write(w.ctx, func(tx *sqlite.Tx) error {
		for i, p := range pending {
			// Ids of passages are never used again: if the content has changed since, there is no such passage any more.
			if _, err := tx.Exec(`UPDATE passage SET vector = ? WHERE id = ? AND vector IS NULL`, encodeVector(vectors[i]), p.id); err != nil {
				return err
			}
		}
		return nil
	})
}
