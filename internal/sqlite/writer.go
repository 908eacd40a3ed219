package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Bounds of a group: the most callers that share a commit, and the size and age from which no further caller joins
// a transaction.
const (
	maxGroup      = 512
	maxGroupAge   = 20 * time.Millisecond
	maxGroupBytes = 8 << 20
)

// writer owns the only connection that writes, and shares commits among concurrent callers.
//
// There is no writer goroutine. The right to use the connection, the turn, passes from caller to caller together
// with the open transaction: each runs its function in its own goroutine, inside a savepoint of its own, and
// passes the turn on; a caller that finds an empty queue commits and answers the whole group. So a panic, a
// runtime.Goexit or a stack trace belongs to the caller that caused it, and a lone writer needs no goroutine
// switch.
type writer struct {
	db    *DB
	conn  *conn
	group int // the most callers that may share a commit

	mu    sync.Mutex
	queue []*member // waiting for the turn, in order
	held  bool      // a caller has the turn
	since time.Time // when its function began, which may wait for others; zero: none is running

	// The caller with the turn owns the rest.
	open    bool      // a transaction is open
	began   time.Time // since when
	alone   bool      // no other caller may join it
	members []*member // callers that wait for the commit: their work is done, or was refused
	shared  bool      // the last commit was shared
	linger  lingering
	late    lateWords // rows of full text, to be written before the commit
	unready bool      // the connection has to be prepared before the next transaction
	wal     walWatch
}

// member is one caller of Write.
type member struct {
	turn  chan struct{} // receives the turn
	done  chan error    // receives the outcome, once the function's work is part of a commit
	alone bool          // wants a transaction of its own
	slice bool          // is a part of a long job; see db.Yielding
}

// errHeld is the error of a caller that has waited in vain because of a transaction that spans several calls.
var errHeld = fmt.Errorf("sqlite: a transaction of this process has held the database for too long; "+
	"calls that belong to it need its context: %w", db.ErrBusy)

// errAgain means that a member's work was rolled back through no fault of its own.
var errAgain = errors.New("sqlite: to be run again")

func (w *writer) write(ctx context.Context, fn func(db.Tx) error) error {
	m := &member{turn: make(chan struct{}, 1), done: make(chan error, 1), alone: w.group == 1 || db.IsAlone(ctx),
		slice: db.IsYielding(ctx)}
	deadline := time.Now().Add(w.db.lockTimeout)
	for {
		if err := w.wait(ctx, m); err != nil {
			return err
		}
		err := w.perform(ctx, m, deadline, fn)
		if !errors.Is(err, errAgain) {
			return err
		}
		m.alone = true
	}
}

// wait returns nil once the caller has the turn.
func (w *writer) wait(ctx context.Context, m *member) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w.mu.Lock()
	if !w.held {
		w.held = true
		w.mu.Unlock()
		return nil
	}
	if end := w.linger.end; end != nil {
		joins := w.mayJoin(m)
		w.linger.end = nil
		end <- joins
		if joins {
			w.mu.Unlock()
			return nil
		}
	}
	w.queue = append(w.queue, m)
	w.mu.Unlock()

	err := w.db.await(ctx, m.turn, func(waited time.Duration) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if waited < w.db.lockTimeout || w.since.IsZero() || time.Since(w.since) < w.db.lockTimeout {
			return nil
		}
		return errHeld
	})
	if err == nil || w.leave(m) {
		return err
	}
	<-m.turn // the turn came at the same moment
	w.next()
	return err
}

// leave takes a caller out of the queue, unless it has the turn already.
func (w *writer) leave(m *member) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, q := range w.queue {
		if q == m {
			w.queue = append(w.queue[:i], w.queue[i+1:]...)
			return true
		}
	}
	return false
}

// next passes the turn on: with the open transaction if the next caller may join it, else after the commit. Every
// path of a caller with the turn ends here.
func (w *writer) next() {
	for yielded := false; ; {
		w.mu.Lock()
		if len(w.queue) > 0 {
			if m := w.queue[0]; !w.open || w.mayJoin(m) {
				w.queue[0] = nil
				w.queue = w.queue[1:]
				w.mu.Unlock()
				m.turn <- struct{}{}
				return
			}
		} else if !w.open {
			w.held = false
			w.mu.Unlock()
			return
		} else if !yielded && (w.shared || len(w.members) > 1) {
			// The callers of the last commit have been answered but may not have run yet. Letting them come with
			// their next write makes groups half as big again (measured with 8).
			yielded = true
			w.mu.Unlock()
			runtime.Gosched()
			continue
		} else if w.expected() {
			end, most := w.linger.begin()
			w.mu.Unlock()
			if w.lingered(end, most) {
				return
			}
			continue
		}
		w.mu.Unlock()
		w.commit()
		w.db.balance(w.conn)
		if w.startCheckpoint() {
			return // it hands the turn on
		}
	}
}

func (w *writer) mayJoin(m *member) bool {
	return !w.alone && !m.alone && !m.slice && len(w.members) < w.group &&
		w.conn.argBytes < maxGroupBytes && time.Since(w.began) < maxGroupAge
}

// contended reports whether others wait for the turn.
func (w *writer) contended() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue) > 0
}

// perform runs one caller's function within its turn, passes the turn on, and waits for the commit.
func (w *writer) perform(ctx context.Context, m *member, deadline time.Time, fn func(db.Tx) error) error {
	first := !w.open
	if err := w.enter(ctx, m, deadline); err != nil {
		w.next()
		return err
	}
	tx := &Tx{conn: w.conn, ctx: ctx, writable: true, late: &w.late, waited: w.contended}
	returned := false
	w.running(time.Now())
	defer func() {
		if !returned { // fn panicked, or ended its goroutine
			w.running(time.Time{})
			w.undo(tx, first)
			w.next()
		}
	}()
	err := outcome(ctx, fn(tx))
	returned = true
	w.running(time.Time{})

	refused := err
	if refused != nil {
		w.undo(tx, first)
		if w.open { // its error may stem from uncommitted work of others in this transaction
			w.members, err = append(w.members, m), nil
		}
	} else {
		err = w.keep(tx, m, first)
	}
	w.next()
	if err != nil {
		return err
	}
	return cmp.Or(<-m.done, refused)
}

// running records when the function of the caller with the turn began; a zero time means that it has ended.
func (w *writer) running(since time.Time) {
	w.mu.Lock()
	w.since = since
	w.mu.Unlock()
}

// enter begins a transaction, or a savepoint in the open one. The first caller needs no savepoint:
// undoing its work undoes the transaction.
func (w *writer) enter(ctx context.Context, m *member, deadline time.Time) error {
	w.late.join()
	if w.open {
		_, err := w.conn.exec("SAVEPOINT member", nil)
		if err != nil {
			w.abandon()
		}
		return classify("savepoint", err)
	}
	if w.unready {
		if err := w.db.prepare(ctx, w.conn); err != nil {
			return err
		}
		w.unready = false
	}
	p := patience{until: deadline, closed: w.db.closing}
	err := p.retry(ctx, func() error {
		_, err := w.conn.exec("BEGIN IMMEDIATE", nil)
		return err
	})
	if err != nil {
		return classify("begin", err)
	}
	if err := w.sameVersion(); err != nil {
		_, _ = w.conn.exec("ROLLBACK", nil)
		return err
	}
	w.open, w.began, w.alone, w.linger.until = true, time.Now(), m.alone, time.Time{}
	w.conn.argBytes, w.conn.removed = 0, false
	return nil
}

// sameVersion fails if a newer program has migrated the file since this one opened it: its tables may need values that
// this one does not write.
func (w *writer) sameVersion() error {
	if w.db.memory {
		return nil
	}
	var version int
	if err := w.conn.one("PRAGMA user_version", &version); err != nil {
		return classify("begin", err)
	}
	if version > w.db.known {
		return w.db.newer(version, w.db.known)
	}
	return nil
}

// keep makes a caller's work part of the next commit.
func (w *writer) keep(tx *Tx, m *member, first bool) error {
	tx.end()
	if tx.lost == nil && !first {
		if _, err := w.conn.exec("RELEASE member", nil); err != nil {
			tx.lost = classify("release", err)
		}
	}
	if tx.lost != nil { // the function has ignored the error
		w.abandon()
		return tx.lost
	}
	w.members = append(w.members, m)
	return nil
}

// undo rolls a caller's work back and leaves the others' as it is.
func (w *writer) undo(tx *Tx, first bool) {
	tx.end()
	if tx.lost == nil && !first && w.late.undo() {
		_, err := w.conn.exec("ROLLBACK TO member", nil)
		if err == nil {
			_, err = w.conn.exec("RELEASE member", nil)
		}
		if err == nil {
			return
		}
	}
	w.abandon()
}

// abandon ends the transaction without a commit. Members whose work is lost run again.
func (w *writer) abandon() {
	_, _ = w.conn.exec("ROLLBACK", nil) // fails if SQLite has done it by itself
	w.answer(errAgain)
}

// commit ends the transaction and answers every caller whose work is in it.
func (w *writer) commit() {
	w.shared = len(w.members) > 1
	began := time.Now()
	err, failed := w.late.write(w.conn), undone
	if err == nil {
		_, err = w.conn.exec("COMMIT", nil)
		failed = unconfirmed
	}
	w.mu.Lock()
	waiting := len(w.queue)
	w.mu.Unlock()
	w.linger.committed(len(w.members), waiting, time.Since(began))
	if err == nil {
		w.answer(nil)
		return
	}
	_, _ = w.conn.exec("ROLLBACK", nil)
	// After a failed sync it is unknown what the disk holds, and another try may falsely succeed. Otherwise one
	// caller's work may be the cause (a deferred foreign key, a disk with little room): if each commits alone,
	// only that one gets the error.
	if len(w.members) > 1 && primaryCode(err) != codeIOErr {
		w.answer(errAgain)
		return
	}
	w.answer(failed(err))
}

// undone is the error of a commit that did not begin.
func undone(err error) error { return classify("commit", err) }

// unconfirmed is the error of a commit that failed. If the disk failed, the log may hold all of it: then it is undone
// unless the program, or the machine, ends before the next commit, which overwrites it.
func unconfirmed(err error) error {
	if primaryCode(err) != codeIOErr {
		return undone(err)
	}
	code, _ := resultCode(err)
	return &Error{Op: "commit", Code: code, kind: errors.Join(db.ErrOutcomeUnknown, db.ErrIO), err: err}
}

func (w *writer) answer(outcome error) {
	for i, m := range w.members {
		w.members[i] = nil
		m.done <- outcome
	}
	w.members, w.open, w.late = w.members[:0], false, lateWords{}
}

// exclusive runs f with the turn and without an open transaction.
func (w *writer) exclusive(ctx context.Context, f func() error) error {
	m := &member{turn: make(chan struct{}, 1), alone: true}
	if err := w.wait(ctx, m); err != nil {
		return err
	}
	defer w.next()
	if w.db.memory { // whose Reads may wait for anything
		w.running(time.Now())
		defer w.running(time.Time{})
	}
	return f()
}
