package batch

import (
	"context"
	"errors"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Call is a call that can share a transaction with others.
type Call interface {
	Context() context.Context
	// Caller is the caller, a comparable value. Calls of one whose call failed share no transaction for a while.
	Caller() any
	// Rows is how many memories the call inserts.
	Rows() int

	// Ahead announces what Prepare will read; see [db.Ahead].
	Ahead(tx db.Tx)
	// Prepare reads what the call needs, and writes nothing. It returns false if the call needs a transaction of its own:
	// it is refused, or must first write something that others could wait for. first is a call that is already part of
	// the transaction; nil for none.
	Prepare(tx db.Tx, first Call) (bool, error)
	// Write writes the call's rows. Flush follows when all calls have written.
	Write(tx db.Tx) error
	Flush(tx db.Tx) error

	// Alone runs the call in a transaction of its own.
	Alone(ctx context.Context) error
}

// Transactions lets calls that arrive at the same time share transactions, for an engine that does not share commits by
// itself. First each call reads what it needs, and then the rows of all calls are sent at once.
type Transactions struct {
	db    db.DB
	queue Queue[*member]
	apart Quarantine[any]
}

const (
	// mostShare is how many calls share a transaction. Only one such transaction runs at a time, so that none undoes the
	// work of another.
	mostShare = 64
	// sharedLocks is how long such a transaction waits for a lock, and sharedFor how long it may take, since other calls
	// wait for its end.
	sharedLocks, sharedFor = 500 * time.Millisecond, 10 * time.Second
)

// member is a call and its result.
type member struct {
	Call
	err error
	// alone reports that the call was left out of the transaction and needs one of its own.
	alone bool
	// undone reports that the transaction was rolled back, perhaps because of this call.
	undone bool
}

// NewTransactions returns the transactions of a database.
func NewTransactions(of db.DB) *Transactions {
	t := &Transactions{db: of}
	t.queue.Run, t.queue.Most = t.run, mostShare
	return t
}

// Do runs a call, and returns when its rows are committed.
func (t *Transactions) Do(ctx context.Context, call Call) error {
	who, alone := call.Caller(), func() error { return call.Alone(ctx) }
	if is, err := t.apart.Do(ctx, who, false, alone); is {
		return err
	}
	m := &member{Call: call}
	err := t.queue.Do(ctx, m)
	switch {
	case err != nil:
		return err
	case m.undone:
		_, err := t.apart.Do(ctx, who, true, alone)
		return err
	case m.alone:
		return alone()
	}
	return m.err
}

// run runs the calls that arrived while the previous ones ran.
func (t *Transactions) run(group []*member) {
	if len(group) == 1 {
		group[0].runFirst()
		return
	}
	for _, m := range group {
		m.alone, m.undone = true, true
	}
	defer func() { _ = recover() }() // each runs again by itself, and panics there
	stored, err := t.share(group)
	if err == nil {
		for _, m := range group {
			m.undone = false
		}
	}
	for _, m := range stored {
		m.alone, m.undone, m.err = storedNothing(err), storedNothing(err), err
	}
}

// runFirst runs a call that came alone, within a short time limit, since the next ones wait.
func (m *member) runFirst() {
	ctx, cancel := context.WithTimeout(db.Hurried(m.Context(), sharedLocks), sharedFor)
	defer cancel()
	m.err = m.Alone(ctx)
	if storedNothing(m.err) && m.Context().Err() == nil {
		m.alone = errors.Is(m.err, db.ErrBusy) || errors.Is(m.err, context.DeadlineExceeded)
		m.undone = m.alone
	}
}

// storedNothing reports whether a failed transaction has stored nothing, so that it may run again.
func storedNothing(err error) bool {
	return err != nil && !errors.Is(err, db.ErrOutcomeUnknown) && !errors.Is(err, db.ErrClosed)
}

// contextOf returns a context that carries nothing of any single call, and ends when no call waits any longer.
func contextOf(group []*member) (context.Context, context.CancelFunc) {
	ctx, end := db.Hurried(context.Background(), sharedLocks), time.Now()
	most := end.Add(sharedFor)
	for _, m := range group {
		deadline, ends := m.Context().Deadline()
		if !ends || deadline.After(most) {
			deadline = most
		}
		if deadline.After(end) {
			end = deadline
		}
	}
	return context.WithDeadline(ctx, end)
}

// share runs several calls in one transaction, and returns the calls that were part of it.
func (t *Transactions) share(group []*member) (stored []*member, err error) {
	ctx, cancel := contextOf(group)
	defer cancel()
	rows := 0
	for _, m := range group {
		rows += m.Rows()
	}
	err = t.db.Write(ctx, func(tx db.Tx) error {
		stored = nil
		if err := db.Reserve(tx, "memory", rows); err != nil {
			return err
		}
		for _, m := range group {
			m.Ahead(tx)
		}
		var first Call
		for _, m := range group {
			switch is, err := m.Prepare(tx, first); {
			case err != nil:
				return err
			case is:
				stored = append(stored, m)
				first = stored[0].Call
			}
		}
		for _, m := range stored {
			if err := m.Write(tx); err != nil {
				return err
			}
		}
		for _, m := range stored {
			if err := m.Flush(tx); err != nil {
				return err
			}
		}
		return nil
	})
	return stored, err
}
