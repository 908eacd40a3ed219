package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Keys are the keys of users, in a schema of their own: a dump of the store's schema does not have them. It is a place
// of package keyring.
type Keys struct{ d *DB }

// keysSchema makes the tables; see internal/keyring.
const keysSchema = `CREATE TABLE IF NOT EXISTS ring (
		one    bigint PRIMARY KEY CHECK (one = 1),
		header bytea NOT NULL -- with the ring's key, wrapped by the master key
	);
	CREATE TABLE IF NOT EXISTS user_key (
		id         bytea PRIMARY KEY, -- in front of what is sealed under the key
		owner      bytea UNIQUE,      -- whose: a hash under the ring's key; NULL: erased
		wrapped    bytea,             -- the key, under the ring's key; NULL: erased
		made_at    bigint NOT NULL,
		leaving_at bigint,            -- when the deletion of its user began
		erased_at  bigint
	);
	CREATE INDEX IF NOT EXISTS user_key_leaving ON user_key (leaving_at) WHERE leaving_at IS NOT NULL`

// makingKeys is the key of the lock under which one process at a time makes the tables.
const makingKeys = 0x53766e6b

// OpenKeys opens the keys of users in the schema that an address names, which must exist, and makes the tables if there
// are none. It must not be the schema of a store.
func OpenKeys(ctx context.Context, url string, o db.Opening) (*Keys, error) {
	d, err := connect(ctx, url, o)
	if err != nil {
		return nil, err
	}
	k := &Keys{d}
	if err := k.prepare(ctx, o.ReadOnly); err != nil {
		_ = d.Close()
		return nil, err
	}
	return k, nil
}

func (k *Keys) prepare(ctx context.Context, readOnly bool) error {
	conn, err := k.d.pool.Acquire(ctx)
	if err != nil {
		return k.d.unavailable(ctx, err)
	}
	defer conn.Release()
	var schema string
	var store, known bool
	err = conn.QueryRow(ctx, `SELECT coalesce(current_schema(), ''), EXISTS (SELECT 1 FROM pg_tables
			WHERE schemaname = current_schema() AND tablename = 'schema_version'), EXISTS (SELECT 1 FROM pg_tables
			WHERE schemaname = current_schema() AND tablename = 'user_key')`).Scan(&schema, &store, &known)
	switch {
	case err != nil:
		return classify("open", err)
	case schema == "":
		return &Error{Op: "open", err: errors.New("the schema for keys of users (search_path) does not exist; create it")}
	case store:
		return &Error{Op: "open", kind: db.ErrForeign, err: errors.New("the schema " + schema +
			" has a store; keys of users need another one, which dumps of the store leave out")}
	case known || readOnly:
		return nil
	}
	return k.run(ctx, "BEGIN", true, func(tx *Tx) error { // one process at a time makes them
		return tx.ExecScript(fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d); %s`, makingKeys, keysSchema))
	})
}

// ReadOnly reports whether every Write returns db.ErrReadOnly.
func (k *Keys) ReadOnly() bool { return k.d.readOnly }

// Close closes all connections.
func (k *Keys) Close() error { return k.d.Close() }

// Read runs fn on one snapshot.
func (k *Keys) Read(ctx context.Context, fn func(db.Tx) error) error {
	return k.run(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", false, func(tx *Tx) error { return fn(tx) })
}

// Write runs fn in a serializable transaction, and again if PostgreSQL undoes it.
func (k *Keys) Write(ctx context.Context, fn func(db.Tx) error) error {
	if k.d.readOnly {
		return db.ErrReadOnly
	}
	for began := time.Now(); ; {
		err := k.run(ctx, "BEGIN ISOLATION LEVEL SERIALIZABLE", true, func(tx *Tx) error { return fn(tx) })
		var known *Error
		if !errors.As(err, &known) || time.Since(began) > patience {
			return err
		}
		// Two processes that make a key for one user meet in the index, too.
		if known.Code != codeSerialization && known.Code != codeDeadlock && !errors.Is(err, db.ErrUnique) {
			return err
		}
	}
}

func (k *Keys) run(ctx context.Context, begin string, writable bool, fn func(*Tx) error) error {
	if err := k.d.begin(); err != nil {
		return err
	}
	defer k.d.running.Done()
	conn, err := k.d.pool.Acquire(ctx)
	if err != nil {
		return k.d.unavailable(ctx, err)
	}
	defer conn.Release()
	tx := &Tx{d: k.d, conn: conn.Conn(), ctx: ctx, writable: writable, begun: true}
	defer tx.rollback()
	if err := tx.command(begin); err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return err
	}
	if tx.rerun != nil {
		return tx.rerun
	}
	return tx.commit()
}
