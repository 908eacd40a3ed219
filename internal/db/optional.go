package db

import "context"

// Contender is a Tx of an engine with one writer at a time.
type Contender interface {
	// Contended reports whether other writers wait for the end of this transaction.
	Contended() bool
}

// Queue runs a statement whose result does not matter. An engine may send it with the next statement, or at the end of
// the transaction. If it fails, the next statement or the commit returns its error, and the transaction is lost.
// INSERTs of one row with the same text may become one statement, in the place of the first; but new memories stay
// before the rows that refer to them. Apart from these, rows must not refer to queued ones. An INSERT with DO UPDATE
// must have its first column among the conflicting ones to be merged in this way.
func Queue(tx Tx, query string, args ...any) error {
	if q, able := tx.(Queuer); able {
		return q.Queue(query, args...)
	}
	_, err := tx.Exec(query, args...)
	return err
}

// Queuer is a Tx of an engine for which each statement is a round trip.
type Queuer interface {
	// Queue runs a statement, at the latest with the next one or at the end of the transaction; see [Queue].
	Queue(query string, args ...any) error
}

// Ahead announces a query that a transaction will likely run with these arguments before it writes. An engine may read
// its rows along with the next statement. If the query fails, that statement fails with it, unless it is the first of
// the transaction. So do not announce a query that may fail, or one inside a [Tx.Savepoint].
func Ahead(tx Tx, query string, args ...any) {
	if f, able := Stored(tx).(Foreseer); able {
		f.Ahead(query, args...)
	}
}

// MarkAhead is [Ahead] for the position in the log of changes, which [Changes] reads first.
func MarkAhead(tx Tx) {
	if f, able := Stored(tx).(Foreseer); able {
		f.MarkAhead()
	}
}

// Foreseer is a Tx of an engine for which each statement is a round trip.
type Foreseer interface {
	// Ahead reads the rows of a query along with the next statement, so that they are there when the query runs. See
	// [Ahead].
	Ahead(query string, args ...any)
	// MarkAhead does the same for the position in the log of changes.
	MarkAhead()
}

// InsertNumbered runs an INSERT of one row into a table and returns the row's number. The statement is INSERT INTO
// table (id, …) VALUES (?, …); the arguments are for the other columns. An engine may send it later, as with [Queue].
// An engine whose Tx is not a [Numberer] gets NULL as the id, and has to give the row the next number. Rows that a
// transaction inserts in this way have rising numbers, higher than those of all transactions that ended before it
// began. Other inserted rows may have any number among these.
func InsertNumbered(tx Tx, table, query string, args ...any) (row int64, err error) {
	n, able := Stored(tx).(Numberer)
	if !able {
		return Insert(tx, query+` RETURNING id`, append([]any{nil}, args...)...)
	}
	if row, err = n.Number(table); err != nil {
		return 0, err
	}
	return row, Queue(tx, query, append([]any{row}, args...)...)
}

// Numberer is a Tx of an engine for which each statement is a round trip.
type Numberer interface {
	// Number returns a number that no row of a table has, and that the table gives to no other row.
	Number(table string) (int64, error)
	// Reserve says how many numbers of a table will be requested. It is called before the first of them and before other
	// statements.
	Reserve(table string, n int) error
}

// Reserve says how many rows [InsertNumbered] will insert into a table. An engine may need it to save a round trip.
func Reserve(tx Tx, table string, n int) error {
	if r, able := Stored(tx).(Numberer); able {
		return r.Reserve(table, n)
	}
	return nil
}

// Once returns the result of read. In a read transaction, it calls read only once per key, unless read fails.
func Once[T any](tx Tx, key string, read func() (T, error)) (T, error) {
	k, able := Stored(tx).(Keeper)
	if !able || tx.Writable() {
		return read()
	}
	kept := k.Kept()
	if known, ok := kept[key].(T); ok {
		return known, nil
	}
	value, err := read()
	if err == nil {
		kept[key] = value
	}
	return value, err
}

// Keeper is a Tx that keeps what [Once] reads.
type Keeper interface {
	// Kept returns the values by key, which live as long as the transaction.
	Kept() map[string]any
}

// Hashing is a Tx of an engine that keeps hashes of rows, in row_hash. Without them, damaged rows cannot be detected.
// Only SQLite has it: its configuration, and not [Opening], says which rows have hashes.
type Hashing interface {
	// ColumnsOf returns the columns that the hashes of tables may cover, by table, in one statement: all of them, in
	// their order. A table that does not exist has none.
	ColumnsOf(tables ...string) (map[string][]string, error)
}

// Hashes reports whether the engine of a transaction keeps hashes of rows.
func Hashes(tx Tx) bool {
	_, keeps := Stored(tx).(Hashing)
	return keeps
}

// ColumnsOf is [Hashing.ColumnsOf]; where no hashes are kept, no table has any.
func ColumnsOf(tx Tx, tables ...string) (map[string][]string, error) {
	if h, keeps := Stored(tx).(Hashing); keeps {
		return h.ColumnsOf(tables...)
	}
	return nil, nil
}

// Ungrouped is a DB in which callers cannot share a commit, and in which several small writes cost much less in one
// transaction than in one each.
type Ungrouped interface {
	Ungrouped() bool
}

// Follower is a DB that reports writes of other processes. This is only a hint: the log of changes is authoritative.
type Follower interface {
	// Follow calls fn, until Close, soon after another process has changed memories. It may miss some, and call fn without
	// a change.
	Follow(fn func())
}

// Maintainer is a DB with background work of its own, such as an index that is filled after the writes.
type Maintainer interface {
	// Maintain does the work that is due. One process on a database does it at a time; with wait it waits for its turn,
	// otherwise it leaves the work to the other.
	Maintain(ctx context.Context, wait bool) error
}

// Blobs is a Tx of an engine that reads a large value faster than a query does.
type Blobs interface {
	// Blob reads the bytes in a column of a table's row, as they are stored, into a piece of memory, or into a new one if
	// that is too small. It reports false if it could not: then a query says why.
	Blob(into []byte, table, column string, row int64) (blob []byte, ok bool)
}
