package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"

	"github.com/jackc/pgx/v5"
	"github.com/souvenir-ai/souvenir/internal/db"
)

// Keys are the user keys, in a schema of their own: a dump of the store's schema does not have them. It is a place
// of package keyring.
type Keys struct{ d *DB }

// keysSchema makes the tables; see internal/sealing/keyring.
const keysSchema = `CREATE TABLE IF NOT EXISTS ring (
		one    bigint PRIMARY KEY CHECK (one = 1),
		header bytea NOT NULL, -- with the ring's key, wrapped by the master key
		store  bigint          -- random number of the one store whose keys these are; NULL: of none yet
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

// OpenKeysOf opens the user keys of the store at an address: in the schema named like the store's with _keys added,
// which it makes if there is none. Without making, a schema without keys is an error that wraps fs.ErrNotExist.
func OpenKeysOf(ctx context.Context, store string, making bool, o db.Opening) (*Keys, error) {
	d, err := connect(ctx, store, o)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	var schema, quoted string
	var there, may bool
	err = d.pool.QueryRow(ctx, `WITH of AS (SELECT coalesce(current_schema(), '') || '_keys' AS name)
		SELECT name, quote_ident(name), EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = name),
		has_database_privilege(current_database(), 'CREATE') FROM of`).Scan(&schema, &quoted, &there, &may)
	switch {
	case err != nil:
		return nil, d.unavailable(ctx, err)
	case !there && making && !may:
		return nil, &Error{Op: "open", err: fmt.Errorf("the role is not allowed to create the schema %s for user keys; let "+
			"the database's owner run: CREATE SCHEMA %s AUTHORIZATION the role", schema, quoted)}
	case !there && making:
		if _, err := d.pool.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS `+quoted); err != nil {
			return nil, classify("open", err)
		}
	case !there:
		return nil, &Error{Op: "open", err: fmt.Errorf("the schema %s: %w", schema, fs.ErrNotExist)}
	}
	address, err := url.Parse(store)
	if err != nil || address.Scheme == "" {
		return nil, &Error{Op: "address", err: errors.New("user keys need an address that begins with postgres://")}
	}
	query := address.Query()
	query.Set("search_path", quoted)
	address.RawQuery = query.Encode()
	return OpenKeysIn(ctx, address.String(), making, o)
}

// OpenKeysIn is [OpenKeys], and without making, a schema without keys is an error that wraps fs.ErrNotExist.
func OpenKeysIn(ctx context.Context, url string, making bool, o db.Opening) (*Keys, error) {
	making = making && !o.ReadOnly
	if !making {
		d, err := connect(ctx, url, o)
		if err != nil {
			return nil, err
		}
		defer d.Close()
		var there bool
		if err := d.pool.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = current_schema()
			AND tablename = 'user_key')`).Scan(&there); err != nil {
			return nil, d.unavailable(ctx, err)
		}
		if !there {
			return nil, &Error{Op: "open", err: fmt.Errorf("the schema has no user keys: %w", fs.ErrNotExist)}
		}
	}
	return OpenKeys(ctx, url, o)
}

// OpenKeys opens the user keys in the schema that an address names, which must exist, and makes the tables if there
// are none. It must not be the schema of a store.
func OpenKeys(ctx context.Context, url string, o db.Opening) (*Keys, error) {
	d, err := connect(ctx, url, o)
	if err != nil {
		return nil, err
	}
	d.ofKeys = true
	k := &Keys{d}
	err = d.checkIsolation(ctx)
	if err == nil {
		err = k.prepare(ctx, o.ReadOnly)
	}
	if err != nil {
		_ = d.Close()
		return nil, err
	}
	return k, nil
}

func (k *Keys) prepare(ctx context.Context, readOnly bool) error {
	conn, err := k.d.connection(ctx, k.d.reading)
	if err != nil {
		return err
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
		return &Error{Op: "open", err: errors.New("the schema for user keys (search_path) does not exist; create it")}
	case store:
		return &Error{Op: "open", kind: db.ErrForeign, err: errors.New("the schema " + schema +
			" has a store; user keys need another schema, which dumps of the store omit")}
	case known || readOnly:
		return nil
	}
	// One process at a time makes them: the script is one transaction.
	_, err = conn.Conn().PgConn().Exec(ctx, oneAtATime(makingKeys)+"; "+keysSchema).ReadAll()
	return classify("open", err)
}

// ReadOnly reports whether every Write returns db.ErrReadOnly.
func (k *Keys) ReadOnly() bool { return k.d.readOnly }

// Close closes all connections.
func (k *Keys) Close() error { return k.d.Close() }

// Flush lets PostgreSQL use the space of erased keys again: a VACUUM of their table, which a transaction that is still
// open elsewhere can hold up. Archives of the write-ahead log keep them. If it fails, the error is db.ErrUnsupported:
// the keys are erased without it.
func (k *Keys) Flush(ctx context.Context) error {
	var failed error
	err := k.d.outside(ctx, func(conn *pgx.Conn) error {
		_, failed = conn.Exec(ctx, `VACUUM user_key`)
		return failed
	})
	if failed != nil {
		return fmt.Errorf("%w: %w", db.ErrUnsupported, err)
	}
	return err
}

// Read runs fn on one snapshot.
func (k *Keys) Read(ctx context.Context, fn func(db.Tx) error) error { return k.d.Read(ctx, fn) }

// Write runs fn in a serializable transaction, and again if PostgreSQL undoes it. Two processes that make a key for one
// user may meet in the index, too.
func (k *Keys) Write(ctx context.Context, fn func(db.Tx) error) error { return k.d.Write(ctx, fn) }
