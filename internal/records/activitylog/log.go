// Package activitylog keeps calls that wait to be written, and writes them in the background.
package activitylog

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fairqueue"
)

// Log holds calls that wait to be written. A call must not wait for the commit of its own log entry, so entries are
// written together, in the background.
type Log[T any] struct {
	write func(ctx context.Context, batch []T, flushes int) error
	log   *slog.Logger

	mu      sync.Mutex
	waiting []T
	dropped int           // calls that were lost because too many waited
	warned  int           // how many of them were logged
	room    chan struct{} // closed and replaced after each write
	failing time.Time     // until then calls do not wait for room, since writing failed; zero: they may wait
	closed  bool          // no longer accepts calls

	writing chan struct{} // holds one token, whose holder writes
	some    chan struct{} // signals that a call waits
	many    chan struct{} // signals that a batch waits
	flushes int           // batches written so far; guarded by writing
	ctx     context.Context
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

// Limits of a log.
const (
	Batch = 256      // calls that are written at once
	Room  = 32 << 10 // calls that may wait

	interval = time.Second
	patience = 5 * time.Second // with other writing processes
	wait     = 2 * time.Second // wait for room when too many calls wait
)

// New returns a log. The function write writes a batch of calls; it also gets the number of batches written before, and
// is never called concurrently. If it fails, the calls of the batch wait again.
func New[T any](write func(ctx context.Context, batch []T, flushes int) error, logger *slog.Logger) *Log[T] {
	l := &Log[T]{write: write, log: logger, room: make(chan struct{}), writing: make(chan struct{}, 1),
		some: make(chan struct{}, 1), many: make(chan struct{}, 1)}
	l.writing <- struct{}{}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Start begins to write in the background.
func (l *Log[T]) Start() {
	l.done.Add(1)
	go l.run()
}

// Stop ends the background work and writes the remaining calls.
func (l *Log[T]) Stop() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel()
	l.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := l.Flush(ctx); err != nil {
		l.log.Warn("could not write the last recorded calls", "error", err)
	}
}

// Add accepts a call; it reports false once the log is stopped. When too many calls wait, it waits briefly for the
// writer, so that a burst of calls loses none. If nothing is written in that time, it drops and counts the oldest.
func (l *Log[T]) Add(ctx context.Context, a T) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= Room && !l.closed && time.Now().After(l.failing) {
		l.waitForRoom(ctx)
	}
	if l.closed {
		return false
	}
	if len(l.waiting) >= Room { // in steps, since moving the rest takes time
		l.dropped += Batch
		l.waiting = append(l.waiting[:0], l.waiting[Batch:]...)
	}
	l.waiting = append(l.waiting, a)
	switch len(l.waiting) {
	case 1:
		signal(l.some)
	case Batch:
		signal(l.many)
	}
	return true
}

// waitForRoom releases the lock and waits until a batch was written.
func (l *Log[T]) waitForRoom(ctx context.Context) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for len(l.waiting) >= Room && !l.closed {
		room := l.room
		signal(l.many)
		signal(l.some)
		l.mu.Unlock()
		ended := false
		select {
		case <-room:
		case <-ctx.Done():
			ended = true
		case <-timer.C:
			ended = true
		}
		l.mu.Lock()
		if ended {
			if ctx.Err() == nil && len(l.waiting) >= Room {
				l.failing = time.Now().Add(patience)
			}
			return
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (l *Log[T]) run() {
	defer l.done.Done()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-l.some:
		}
		timer := time.NewTimer(interval)
		select {
		case <-l.ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		case <-l.many:
			timer.Stop()
		}
		ctx, cancel := context.WithTimeout(l.ctx, patience)
		err := l.Flush(ctx)
		cancel()
		if err != nil && l.ctx.Err() == nil {
			l.log.Warn("could not write recorded calls; trying again", "error", err)
			signal(l.some)
		}
	}
}

// Flush returns once all calls that were added before it are written, those of a batch that is being written included.
func (l *Log[T]) Flush(ctx context.Context) error {
	// One that writes must never wait for a place that others hold, who wait here for it.
	defer fairqueue.Pause(ctx)()
	select {
	case <-l.writing:
		defer func() { l.writing <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for left := l.Waiting(); left > 0; {
		n, err := l.writeBatch(ctx)
		if err != nil || n == 0 {
			return err
		}
		left -= n
	}
	l.warn()
	return nil
}

// warn logs how many calls were lost since the last warning.
func (l *Log[T]) warn() {
	l.mu.Lock()
	lost := l.dropped - l.warned
	l.warned = l.dropped
	l.mu.Unlock()
	if lost > 0 {
		l.log.Warn("some calls were not recorded, because the store could not be written in time", "calls", lost)
	}
}

// Waiting returns the number of calls that wait to be written.
func (l *Log[T]) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// Lost returns the number of calls lost since the store was opened.
func (l *Log[T]) Lost() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped
}

// writeBatch writes some calls and returns how many. Calls that could not be written wait again, at the front.
func (l *Log[T]) writeBatch(ctx context.Context) (int, error) {
	l.mu.Lock()
	n := min(len(l.waiting), Batch)
	batch := append([]T(nil), l.waiting[:n]...)
	l.waiting = append(l.waiting[:0], l.waiting[n:]...)
	clear(l.waiting[len(l.waiting):cap(l.waiting)])
	l.mu.Unlock()
	if n == 0 {
		return 0, nil
	}
	err := l.write(ctx, batch, l.flushes)
	if err == nil {
		l.flushes++
		l.mu.Lock()
		defer l.mu.Unlock()
		l.failing = time.Time{}
		close(l.room)
		l.room = make(chan struct{})
		return n, nil
	}
	if errors.Is(err, db.ErrClosed) {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(batch, l.waiting...)
	if over := len(l.waiting) - Room; over > 0 {
		l.dropped += over
		l.waiting = l.waiting[over:]
	}
	return 0, err
}
