package postgres

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
)

// A server tells the others on the database, by NOTIFY, that it has changed memories, so that they bring their indexes
// up to date before someone searches. It is a hint alone: a search reads the log of changes in any case, and without
// notifications the others look by themselves every few seconds.
//
// NOTIFY is not part of the transaction that wrote: a transaction with one holds a lock of the whole database during
// its commit, so that writers would commit one after the other. It follows the commit, once for many.

const (
	announceEvery = 50 * time.Millisecond
	// heard is how long a server waits for its own notification. If none comes, the connection is not a session, such as
	// with PgBouncer in transaction mode.
	heard         = 3 * time.Second
	firstRelisten = time.Second
	lastRelisten  = 5 * time.Minute
)

// errDeaf means that notifications do not arrive.
var errDeaf = errors.New("notifications do not arrive, as behind PgBouncer in transaction mode")

// announcer tells other servers of writes, and listens to them.
type announcer struct {
	d       *DB
	me      string
	changed chan struct{} // capacity 1: several writes merge into one
	ctx     context.Context
	cancel  context.CancelFunc
	tasks   sync.WaitGroup
	started sync.Once
	follow  sync.Once
}

func newAnnouncer(d *DB) *announcer {
	a := &announcer{d: d, me: rand.Text(), changed: make(chan struct{}, 1)}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	return a
}

// channel is the name under which the servers on a schema notify each other.
func (d *DB) channel() string {
	sum := sha256.Sum256([]byte(d.schema))
	return "souvenir_" + hex.EncodeToString(sum[:8])
}

// committed announces the commit of a transaction that changed memories.
func (a *announcer) committed() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
	a.started.Do(func() { a.tasks.Go(a.announce) })
}

func (a *announcer) announce() {
	for {
		select {
		case <-a.ctx.Done():
			return
		case <-a.changed:
		}
		a.tell(a.ctx)
		select {
		case <-a.ctx.Done():
		case <-time.After(announceEvery):
		}
	}
}

func (a *announcer) tell(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, heard)
	defer cancel()
	if _, err := a.d.pool.Exec(ctx, `SELECT pg_notify($1, $2)`, a.d.channel(), a.me); err != nil && ctx.Err() == nil {
		a.d.log.Debug("could not notify other servers", "error", err)
	}
}

// stop ends the work, after a last report.
func (a *announcer) stop() {
	a.cancel()
	a.tasks.Wait()
	select {
	case <-a.changed:
		a.tell(context.Background())
	default:
	}
}

// Follow calls fn, until Close, soon after another server has changed memories. Only the first call of Follow has an
// effect.
func (d *DB) Follow(fn func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	d.announcer.follow.Do(func() { d.announcer.tasks.Go(func() { d.announcer.listen(fn) }) })
}

// listen listens on a connection of its own, and connects again when that ends.
func (a *announcer) listen(fn func()) {
	retry := firstRelisten
	for {
		began := time.Now()
		err := a.hear(fn)
		if a.ctx.Err() != nil {
			return
		}
		switch {
		case errors.Is(err, errDeaf):
			retry = lastRelisten
		case time.Since(began) > lastRelisten:
			retry = firstRelisten
		}
		a.d.log.Info("changes of other servers are found without notifications", "reason", err, "listening again in", retry)
		select {
		case <-a.ctx.Done():
			return
		case <-time.After(retry):
		}
		retry = min(2*retry, lastRelisten)
	}
}

func (a *announcer) hear(fn func()) error {
	config := a.d.pool.Config().ConnConfig
	config.OnNotification = nil // the driver's: it keeps them
	config.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.DeadlineContextWatcherHandler{Conn: c.Conn()} // nothing runs that would have to be cancelled first
	}
	conn, err := pgx.ConnectConfig(a.ctx, config)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if _, err := conn.Exec(a.ctx, "LISTEN "+a.d.channel()); err != nil {
		return err
	}
	a.tell(a.ctx)
	waiting, cancel := context.WithTimeout(a.ctx, heard)
	_, err = conn.WaitForNotification(waiting)
	cancel()
	if err != nil {
		if a.ctx.Err() == nil && waiting.Err() != nil {
			return errDeaf
		}
		return err
	}
	fn() // for what was written before it listened
	for {
		n, err := conn.WaitForNotification(a.ctx)
		if err != nil {
			return err
		}
		if n.Payload != a.me {
			fn()
		}
	}
}

// ignored drops notifications that a pooler delivers to connections which did not ask for them. The driver would keep
// them.
func ignored(*pgconn.PgConn, *pgconn.Notification) {}
