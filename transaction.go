package souvenir

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Snapshot runs fn with a context in which everything read from this store, through any of its views, is the state of
// one moment. Writing with that context is ErrReadOnly; using it after Snapshot has returned is ErrClosed. Several
// goroutines may use it; their calls run one at a time. Snapshots within a snapshot belong to the outer one.
//
// Data written to the store meanwhile stays in the write-ahead log until fn returns; writers do not wait, except in an
// in-memory store. fn must not wait for a write made with another context.
func (s *Store) Snapshot(ctx context.Context, fn func(ctx context.Context) error) error {
	if err := s.checkUnsealed("Snapshot"); err != nil {
		return err
	}
	s.flushActivity(ctx) // nothing is written within
	return wrap(s.db.Snapshot(ctx, fn))
}

// Transaction runs fn with a context in which everything written to this store, through any of its views, is one
// transaction: all of it is durable when Transaction returns nil, and none of it remains after an error or panic of fn,
// or the end of ctx. Transaction returns fn's error as it is. Reads and searches with that context see what was written
// before; other calls see none of it until the end. Only an operation that fails is rolled back: if fn continues and
// returns nil, the rest is kept. A Transaction within a transaction belongs to the outer one, which fails with it;
// within a Snapshot it is ErrReadOnly. Using the context after the end is ErrClosed.
//
// All other writers wait meanwhile, for 30 seconds at most, and in an in-memory store so do readers: their error is
// ErrBusy. So fn should be short; do slow work before. fn must call the store with its own context: with another one it
// would wait for itself, which is ErrBusy after some seconds. It must not call Close. Several goroutines may use the
// context; their calls run one at a time. With another database than SQLite, fn may run again: it must set its results
// anew each time, and have no other side effects that must happen only once.
//
// Only the built-in embedder runs within a transaction. With another one, texts are found by their words at first
// ([Stored.Indexed] is false), and embedded once the transaction is done; searches within it are by words.
//
// Before functions of [Hooks] run within the transaction; After functions run when it has ended, with its error if it
// was rolled back. Methods that need several transactions of their own return ErrInvalid within one: AddFile,
// DeleteProject, DeleteCollection, [Trash.Empty], restoring a project or collection, and all methods of [Accounts] and
// [Upkeep] that change anything. On a full disk the whole transaction is ErrFull, deletions included.
func (s *Store) Transaction(ctx context.Context, fn func(ctx context.Context) error) error {
	if err := s.checkWritable(); err != nil {
		return err
	}
	if err := s.checkUnsealed("Transaction"); err != nil {
		return err
	}
	s.flushActivity(ctx) // recorded calls do not belong to the transaction
	var own error
	err := s.db.Transaction(ctx, func(ctx context.Context) error {
		own = fn(ctx)
		return own
	})
	if own != nil && errors.Is(err, own) {
		return own
	}
	return wrap(err)
}

// outside refuses, within a transaction, methods that need transactions of their own.
func (s *shared) outside(ctx context.Context, method string) error {
	if !s.db.InTransaction(ctx) {
		return nil
	}
	return asGo[struct{}](invalid("ctx", "{} belongs to a transaction, which %s cannot be part of; call it outside of "+
		"Transaction", method), "ctx", "ctx")
}

// read runs fn on one snapshot of the file.
func (s *Store) read(ctx context.Context, fn func(db.Tx, viewer) error) error {
	return wrap(s.db.Read(ctx, func(tx db.Tx) error {
		v, err := s.viewer(tx)
		if err != nil {
			return err
		}
		db.ActFor(tx, s.caller(v))
		defer db.ActFor(tx, nil)
		return fn(tx, v)
	}))
}

// caller is whom a view works for, nil for the operator's store.
func (s *Store) caller(v viewer) *db.Caller {
	if s.operator {
		return nil
	}
	return &db.Caller{User: v.User, Limited: v.Limited, Projects: v.Projects}
}

// write runs fn in a transaction of its own: everything is durable when write returns nil, nothing when it returns an
// error. fn may run more than once and must set its results anew each time.
func (s *Store) write(ctx context.Context, fn func(db.Tx, viewer) error) error {
	if err := s.checkWritable(); err != nil {
		return err
	}
	var user int64
	err := s.db.Write(ctx, func(tx db.Tx) error {
		v, err := s.viewer(tx)
		if err != nil {
			return err
		}
		if v.User == 0 {
			if v.User, err = s.addUser(tx); err != nil {
				return err
			}
		}
		user = v.User
		db.ActFor(tx, s.caller(v))
		defer db.ActFor(tx, nil)
		return fn(tx, v)
	})
	if err == nil {
		s.rememberUser(ctx, user)
	}
	return wrap(err)
}

// readStore runs fn on a snapshot like read, for data that belongs to the store and to no user.
func (s *Store) readStore(ctx context.Context, fn func(db.Tx) error) error {
	return wrap(s.db.Read(ctx, fn))
}

// writeStore runs fn in a transaction like write, for data that belongs to the store and to no user.
func (s *Store) writeStore(ctx context.Context, fn func(db.Tx) error) error {
	return wrap(s.db.Write(ctx, fn))
}

// checkWritable refuses writes through a read-only view or handle, or for an invalid user.
func (s *Store) checkWritable() error {
	if s.denied != nil {
		return s.denied
	}
	if s.access.ReadOnly {
		return newError(KindReadOnly, "", "this view of the store is read-only")
	}
	if s.db.ReadOnly() {
		return newError(KindReadOnly, "", "the store is opened read-only")
	}
	return s.checkNames()
}

// checkNames refuses the names of an invalid user or project in the view's access.
func (s *Store) checkNames() (err error) {
	defer inGo[Access](&err, "project_id", "Access.Projects")
	for _, id := range s.access.Projects {
		if err := valid.ProjectID(id); err != nil {
			return err
		}
	}
	if s.access.Namespace != "" {
		if err := valid.Name("namespace", s.access.Namespace); err != nil {
			return err
		}
	}
	return valid.Name("user", s.access.User)
}

// sharing is a call that may share a transaction with others, for an engine that does not share commits by itself: all
// of them read what they need, and then the rows of all are sent at once.
type sharing struct {
	ctx   context.Context
	store *Store
	*addition
	user int64 // row
	err  error
	// apart says that the transaction was not for this call: it needs one of its own.
	apart bool
	// undone says that it was undone, maybe because of this call.
	undone bool
}

const (
	// mostSharing is how many calls share a transaction. Only one such transaction runs at a time, so that none undoes
	// the work of another.
	mostSharing = 64
	// sharedLocks is how long it waits for a lock, and sharedFor how long it takes at most, for others wait for its end.
	sharedLocks, sharedFor = 500 * time.Millisecond, 10 * time.Second
)

// sharesCommit reports whether what is stored depends on nothing but the places where it goes.
func (a *addition) sharesCommit() bool {
	return a.write == nil && !slices.ContainsFunc(a.drafts, func(d kernel.Draft) bool {
		return d.RuleType != "" || d.Key != "" || d.Times.Supersedes != "" || len(d.Related) > 0
	})
}

// storeShared stores an addition as [Store.storeAlone] does.
func (s *Store) storeShared(ctx context.Context, a *addition) error {
	who, alone := userKey{s.access.Namespace, s.access.User}, func() error { return s.storeAlone(ctx, a) }
	if is, err := s.unshared.Do(ctx, who, false, alone); is {
		return err
	}
	m := &sharing{ctx: ctx, store: s, addition: a}
	err := s.batches.Do(ctx, m)
	switch {
	case err != nil:
		return err
	case m.undone:
		_, err := s.unshared.Do(ctx, who, true, alone)
		return err
	case m.apart:
		return alone()
	case m.err == nil && m.user != 0:
		s.rememberUser(ctx, m.user)
	}
	return m.err
}

// storeBatch stores the calls that arrived while the batch before ran.
func (s *shared) storeBatch(group []*sharing) {
	if len(group) == 1 {
		group[0].storeFirst()
		return
	}
	for _, m := range group {
		m.apart, m.undone = true, true
	}
	defer func() { _ = recover() }() // each runs again by itself, and panics there
	stored, err := s.storeGroup(group)
	if err == nil {
		for _, m := range group {
			m.undone = false
		}
	}
	for _, m := range stored {
		m.apart, m.undone, m.err = leaves(err), leaves(err), wrap(err)
	}
}

// storeFirst does a call that came alone, in short, since the next ones wait.
func (m *sharing) storeFirst() {
	ctx, cancel := context.WithTimeout(db.Hurried(m.ctx, sharedLocks), sharedFor)
	defer cancel()
	m.err = m.store.storeAlone(ctx, m.addition)
	if leaves(m.err) && m.ctx.Err() == nil {
		m.apart = errors.Is(m.err, db.ErrBusy) || errors.Is(m.err, context.DeadlineExceeded)
		m.undone = m.apart
	}
}

// leaves reports whether after an error of a transaction nothing of it is stored, and it may run again.
func leaves(err error) bool {
	return err != nil && !errors.Is(err, db.ErrOutcomeUnknown) && !errors.Is(err, db.ErrClosed)
}

// groupContext is neutral: it has nothing of one call alone, and ends when no call waits any more.
func groupContext(group []*sharing) (context.Context, context.CancelFunc) {
	ctx, end := db.Hurried(context.Background(), sharedLocks), time.Now()
	most := end.Add(sharedFor)
	for _, m := range group {
		deadline, ends := m.ctx.Deadline()
		if !ends || deadline.After(most) {
			deadline = most
		}
		if deadline.After(end) {
			end = deadline
		}
	}
	return context.WithDeadline(ctx, end)
}

// storeGroup stores what several calls store, and returns the calls that the transaction was for.
func (s *shared) storeGroup(group []*sharing) (stored []*sharing, err error) {
	ctx, cancel := groupContext(group)
	defer cancel()
	drafts := 0
	for _, m := range group {
		drafts += len(m.drafts)
	}
	err = s.db.Write(ctx, func(tx db.Tx) error {
		stored = nil
		if err := db.Reserve(tx, "memory", drafts); err != nil {
			return err
		}
		var writers []*memoryWriter
		for _, m := range group {
			var first *memoryWriter
			if len(writers) > 0 {
				first = writers[0]
			}
			w, err := m.prepare(tx, first)
			if err != nil {
				return err
			}
			if w != nil {
				stored, writers = append(stored, m), append(writers, w)
			}
		}
		for i, w := range writers {
			if err := stored[i].within(w, stored[i].run); err != nil {
				return err
			}
		}
		for i, w := range writers {
			err := stored[i].within(w, func(w *memoryWriter) error { return w.flush() })
			if err != nil {
				return err
			}
		}
		return nil
	})
	return stored, err
}

// within runs fn for the call's viewer.
func (m *sharing) within(w *memoryWriter, fn func(*memoryWriter) error) error {
	db.ActFor(w.Tx, m.store.caller(w.Viewer))
	defer db.ActFor(w.Tx, nil)
	return fn(w)
}

// prepare reads what a call needs before it stores, and writes nothing. It returns nil for a call that would have to
// write, such as to make a project, or that is refused. first is the writer of another call in the transaction.
func (m *sharing) prepare(tx db.Tx, first *memoryWriter) (*memoryWriter, error) {
	var known *viewer
	if first != nil {
		known = &first.Viewer
	}
	v, err := m.store.viewerBeside(tx, known)
	if err != nil || v.User == 0 {
		return nil, unlessRefused(err)
	}
	m.user = v.User
	w, err := m.store.newWriter(tx, v)
	if err != nil {
		return nil, err
	}
	if first != nil {
		w.Beside(first.Writer)
	}
	exists := true
	err = m.within(w, func(w *memoryWriter) error {
		for i := range m.drafts {
			if exists, err = w.exists(&m.drafts[i]); err != nil || !exists {
				return unlessRefused(err)
			}
		}
		return nil
	})
	if err != nil || !exists {
		return nil, err
	}
	return w, nil
}

// unlessRefused drops the error of a call that is refused: alone, it is refused again.
func unlessRefused(err error) error {
	var known *Error
	if errors.As(err, &known) {
		return nil
	}
	return err
}
