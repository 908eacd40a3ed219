package embedding

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/sharedstate"
	"github.com/souvenir-ai/souvenir/internal/vectorform"
)

// Worker embeds, in the background, texts that could not be embedded when they were stored, and all texts again when
// the store changes to another model. It also runs other periodic work.
type Worker struct {
	v       *Vectors
	lease   *sharedstate.Lease // nil before the first work
	also    func(context.Context)
	ctx     context.Context
	cancel  context.CancelFunc
	signal  chan struct{} // capacity 1: several wake-ups merge into one
	done    sync.WaitGroup
	failure atomic.Value // string: the last error, empty after a success
}

const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
	// lookAround is how often the worker looks for work left by a process without the embedder, or by one that has
	// ended.
	lookAround = 30 * time.Second
	// leaseLife is how long others wait for a process that ended while embedding.
	leaseLife = 30 * time.Second
	// lookAgain is how soon the worker looks again while another process embeds.
	lookAgain = time.Second
)

// errElsewhere means that another process does the work.
var errElsewhere = errors.New("another process embeds")

// NewWorker returns a worker that also calls a function before each look for work. It does nothing before
// [Worker.Start].
func NewWorker(v *Vectors, also func(context.Context)) *Worker {
	w := &Worker{v: v, also: also, signal: make(chan struct{}, 1)}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// Start begins the work.
func (w *Worker) Start() {
	w.done.Add(1)
	go w.run()
}

// Stop ends the work and waits for it.
func (w *Worker) Stop() {
	w.cancel()
	w.done.Wait()
}

// Wake makes the worker look for work now, even while it waits to retry after a failure.
func (w *Worker) Wake() {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// LastError returns the error of the last round, "" after a success.
func (w *Worker) LastError() string {
	failure, _ := w.failure.Load().(string)
	return failure
}

func (w *Worker) run() {
	defer w.done.Done()
	retry := firstRetry
	for {
		w.also(w.ctx)
		err := w.step()
		if w.ctx.Err() != nil || errors.Is(err, db.ErrClosed) {
			return
		}
		pause := lookAround
		w.failure.Store("")
		if errors.Is(err, errElsewhere) {
			pause, retry = lookAgain, firstRetry
		} else if err != nil {
			w.failure.Store(err.Error())
			w.v.Log.Warn("background embedding failed; trying again", "error", err, "in", retry)
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

// step does all pending work, or returns errElsewhere if another process with the same model does it.
func (w *Worker) step() error {
	due, err := w.due()
	if err != nil || !due {
		return err
	}
	if w.lease == nil {
		w.lease = sharedstate.NewLease(w.v.DB, "embedding/"+strconv.FormatInt(w.v.Profile, 10), leaseLife)
	}
	ran, err := w.lease.While(w.ctx, w.embedAll)
	if err == nil && !ran {
		err = errElsewhere
	}
	return err
}

// due reports whether there is work.
func (w *Worker) due() (due bool, err error) {
	err = w.v.DB.Read(w.ctx, func(tx db.Tx) error {
		if due, err = w.v.changeIsDue(tx); err != nil || due {
			return err
		}
		return tx.QueryRow(`SELECT EXISTS (SELECT 1 FROM passage WHERE vector IS NULL AND profile_id = ?)`,
			w.v.Profile).Scan(&due)
	})
	return due, err
}

// embedAll does all pending work. Texts that the embedder refuses do not stop the rest.
func (w *Worker) embedAll() error {
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

// pendingPassage is a passage without its vector.
type pendingPassage struct {
	id   int64
	text string
}

// embedPending embeds one batch of the waiting passages that follow after, and returns the last of them; 0 if there are
// none.
func (w *Worker) embedPending(after int64) (last int64, err error) {
	var pending []pendingPassage
	err = w.v.DB.Read(w.ctx, func(tx db.Tx) error {
		pending = pending[:0]
		content, _ := sealedrows.Piece(tx, `m.content`, `p.start + 1`, `p.length`)
		return tx.Each(func(row db.Rows) error {
			var p pendingPassage
			var start, length int
			var piece []byte
			err := row.Scan(&p.id, &start, &length, &piece)
			p.text = string(sealedrows.Cut(tx, piece, start, length))
			pending = append(pending, p)
			return err
		}, `SELECT p.id, p.start, p.length, `+content+
			` FROM passage p JOIN memory m ON m.id = p.memory_id
			WHERE p.vector IS NULL AND p.profile_id = ? AND p.id > ? ORDER BY p.id LIMIT ?`, w.v.Profile, after, w.v.Batch)
	})
	if err != nil || len(pending) == 0 {
		return 0, err
	}
	texts := make([]string, len(pending))
	for i, p := range pending {
		texts[i] = p.text
	}
	vectors, refused := w.v.embedEach(w.ctx, texts)
	if vectors == nil {
		return 0, refused
	}
	err = w.v.DB.Write(w.ctx, func(tx db.Tx) error {
		for i, p := range pending {
			if vectors[i] == nil {
				continue
			}
			if err := keepVector(tx, p.id, vectors[i]); err != nil {
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

// keepVector stores the vector of a passage. If the content has changed since, the passage no longer exists, or was
// overwritten and has a vector.
func keepVector(tx db.Tx, passage int64, vector []float32) error {
	stored, err := kernel.SealIn(tx, passage>>kernel.PassageBits, sealedrows.PassageVector, vectorform.Short(vector))
	if errors.Is(err, db.ErrNoRows) { // the partition is gone, too
		return nil
	}
	if err == nil {
		_, err = tx.Exec(`UPDATE passage SET vector = ? WHERE id = ? AND vector IS NULL`, stored, passage)
	}
	return err
}
