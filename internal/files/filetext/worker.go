package filetext

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/files/chunked"
	"github.com/souvenir-ai/souvenir/internal/files/objects"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
	"github.com/souvenir-ai/souvenir/internal/sharedstate"
)

// Worker reads the waiting files, one after the other, in a goroutine of its own. Only one of several processes on a
// database reads.
type Worker struct {
	DB      db.DB
	Reader  Reader
	Objects *objects.Objects
	Keys    *keyring.Ring // of users; nil: none
	Log     *slog.Logger
	Now     func() int64
	NewID   func() string

	Profile  int64 // of the store's embedder
	Model    string
	MaxInput int
	// Embed embeds passages before they are stored, if the embedder runs in this process; nil: they are embedded later.
	Embed func(ctx context.Context, texts []string) ([][]float32, error)
	// Stored is called after a text was stored.
	Stored func()

	skipped []int64 // files that wait until all others were read, since the store failed for them

	lease  *sharedstate.Lease
	ctx    context.Context
	cancel context.CancelFunc
	signal chan struct{} // capacity 1: several wake-ups merge into one
	done   sync.WaitGroup
}

const (
	readTimeout = time.Minute // for one file
	mostFailed  = 3           // files in a row for which the store may fail before the work pauses
	attempts    = 3           // attempts to read a file that end the process, before it is given up
	lookAround  = 30 * time.Second
	lookAgain   = time.Second // while another process reads
	leaseLife   = 30 * time.Second
)

var errElsewhere = errors.New("another process reads files")

// Start begins the work.
func (w *Worker) Start() {
	w.signal = make(chan struct{}, 1)
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.lease = sharedstate.NewLease(w.DB, "documents", leaseLife)
	w.done.Go(w.run)
}

// Stop ends the work and waits for it. Without a start it does nothing.
func (w *Worker) Stop() {
	if w.cancel != nil {
		w.cancel()
		w.done.Wait()
	}
}

// Wake makes the worker look for work now.
func (w *Worker) Wake() {
	select {
	case w.signal <- struct{}{}:
	default: // it has not been started, or is awake
	}
}

// Running reports whether the worker was started.
func (w *Worker) Running() bool { return w.cancel != nil }

func (w *Worker) run() {
	retry := lookAgain
	for {
		pause, err := lookAround, w.step()
		switch {
		case w.ctx.Err() != nil || errors.Is(err, db.ErrClosed):
			return
		case errors.Is(err, errElsewhere):
			pause = lookAgain
		case err != nil:
			w.Log.Warn("could not read files for searches; trying again", "error", objects.Cause(err), "in", retry)
			pause, retry = retry, min(2*retry, 5*time.Minute)
		default:
			retry = lookAgain
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

// step reads all files that wait, or returns errElsewhere if another process does.
func (w *Worker) step() error {
	if f, err := w.next(0); err != nil || f == nil {
		w.skipped = nil
		return err
	}
	ran, err := w.lease.While(w.ctx, w.readAll)
	if err == nil && !ran {
		err = errElsewhere
	}
	return err
}

// readAll reads all files that wait. If the store fails for one, as when its object cannot be read, that file comes
// last: it must not hold up the others.
func (w *Worker) readAll() (failed error) {
	for owner, failures := int64(0), 0; failures < mostFailed; {
		f, err := w.next(owner)
		if err != nil {
			return err
		}
		if f == nil {
			w.skipped = nil
			return failed
		}
		failures++
		if err := w.index(f); err == nil {
			failures = 0
		} else if failed = fmt.Errorf("file %s: %w", f.id, err); w.ctx.Err() != nil {
			return failed
		} else {
			w.skipped = append(w.skipped, f.row)
		}
		owner = f.owner
	}
	return failed
}

func (w *Worker) next(after int64) (f *waiting, err error) {
	err = w.DB.Read(w.ctx, func(tx db.Tx) error {
		f, err = next(tx, after, w.skipped, w.Objects.Storage != nil)
		return err
	})
	return f, err
}

// index reads a file and stores its text, or why it has none. It returns an error only if the store fails or the work
// ends.
func (w *Worker) index(f *waiting) error {
	i := info{Status{State: Waiting}, f.attempts + 1}
	if f.attempts >= attempts {
		i = info{Status: Status{State: Failed, Reason: "the program crashed each time it was read"}}
	}
	err := w.DB.Write(w.ctx, func(tx db.Tx) error { return note(tx, f.row, i) })
	if err != nil || i.State == Failed {
		return err
	}
	text, storage, err := w.read(f)
	if w.ctx.Err() != nil || storage != nil {
		i.Attempts-- // this attempt does not count
		_ = w.DB.Write(context.WithoutCancel(w.ctx), func(tx db.Tx) error { return note(tx, f.row, i) })
		return errors.Join(w.ctx.Err(), storage)
	}
	if err != nil {
		w.Log.Info("could not read a file for searches", "file", f.id, "error", err)
		reason := "it could not be read: " + err.Error()
		i = info{Status: Status{State: Failed, Reason: inOneLine(reason, maxReason)}}
		return w.DB.Write(w.ctx, func(tx db.Tx) error { return note(tx, f.row, i) })
	}
	t := tidy(text, f.size)
	if t.status.State == None {
		return w.DB.Write(w.ctx, func(tx db.Tx) error { return note(tx, f.row, info{Status: t.status}) })
	}
	return w.store(f, t)
}

// read calls the reader for a file. storage is an error of the store, not of the file.
func (w *Worker) read(f *waiting) (text Text, storage, err error) {
	ctx, cancel := context.WithTimeoutCause(w.ctx, readTimeout, errors.New("it takes too long"))
	defer cancel()
	var failed error
	var mu sync.Mutex
	content := chunked.NewReader(ctx, f.size, kernel.ChunkSize, func(number int64) ([]byte, error) {
		data, err := w.chunk(ctx, f, number)
		if err != nil && !errors.Is(err, objects.ErrDamaged) && !errors.Is(err, db.ErrNoRows) && ctx.Err() == nil {
			mu.Lock()
			failed = err
			mu.Unlock()
		}
		return data, err
	})
	defer content.Close()
	defer func() {
		if broken := recover(); broken != nil {
			w.Log.Warn("reading a file for searches panicked", "file", f.id, "panic", broken, "stack", string(debug.Stack()))
			text, err = Text{}, errors.New("it is broken")
		}
		mu.Lock()
		storage = failed
		mu.Unlock()
		if err != nil && ctx.Err() != nil && w.ctx.Err() == nil {
			err = context.Cause(ctx)
		}
	}()
	text, err = w.Reader.ReadDocument(ctx, Document{Filename: f.filename, MIMEType: f.kind, Size: f.size,
		Content: content})
	return text, nil, err
}

func (w *Worker) chunk(ctx context.Context, f *waiting, number int64) ([]byte, error) {
	length := min(f.size-number*kernel.ChunkSize, kernel.ChunkSize)
	key, _, err := w.Keys.OpenFile(ctx, f.sum)
	if err != nil {
		return nil, unreadable(err)
	}
	sealed, err := w.Objects.Load(ctx, length+key.Overhead(), func() (c objects.Chunk, err error) {
		err = w.DB.Read(ctx, func(tx db.Tx) error {
			return tx.QueryRow(`SELECT sha256, data, coalesce(object, '') FROM file_chunk WHERE id = ?`,
				f.row<<kernel.ChunkBits|number).Scan(&c.Sum, &c.Data, &c.Object)
		})
		return c, err
	})
	if err != nil {
		return nil, err
	}
	data, err := key.Open(number, sealed)
	return data, unreadable(err)
}

// unreadable returns the error of content that can never be opened, as an error of the file, not of the store.
func unreadable(err error) error {
	if keyring.IsShut(err) {
		return objects.ErrDamaged
	}
	return err
}

// store stores the text of a file, if the file still waits for it.
func (w *Worker) store(f *waiting, t tidied) error {
	passages := kernel.Split(t.Text.Text, w.MaxInput)
	if err := w.embed(t.Text.Text, passages); err != nil {
		return err
	}
	t.status.Passages = len(passages)
	places, err := encodePlaces(t.Places)
	if err != nil {
		return err
	}
	err = w.DB.Write(w.ctx, func(tx db.Tx) error { return w.insert(tx, f.row, t, places, passages) })
	if err == nil && w.Stored != nil {
		w.Stored()
	}
	return err
}

func (w *Worker) embed(text string, passages []kernel.Passage) error {
	if w.Embed == nil {
		return nil
	}
	var texts []string
	var of []int
	for i, p := range passages {
		if !p.Blank {
			texts, of = append(texts, text[p.Start:p.Start+p.Length]), append(of, i)
		}
	}
	vectors, err := w.Embed(w.ctx, texts)
	for i := range vectors {
		passages[of[i]].Vector = vectors[i]
	}
	return err
}
