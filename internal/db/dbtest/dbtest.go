// Package dbtest tests that an engine keeps the promises of package db. docs/engines.md, the manual for authors of
// engines, lists what it does not test.
package dbtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// Engine opens databases for the tests.
type Engine struct {
	// Open opens an empty database with the store's schema. The test closes it.
	Open func(t *testing.T) db.DB

	// Reopen opens a closed database again. Nil: the engine keeps nothing of a closed one.
	Reopen func(t *testing.T, closed db.DB) db.DB

	// Second opens an open database again, with a handle of its own, as another process does. Nil: it has only one
	// handle.
	Second func(t *testing.T, open db.DB) db.DB

	// Killed starts a process that opens an empty database and calls [WriteUntilKilled], kills it when it has printed
	// some lines, and opens the database. It also returns what the process printed. Nil: there is nothing to kill.
	Killed func(t *testing.T) (db.DB, io.Reader)

	// ReadOnly opens an open database again, for reading only. Nil: it has only one handle.
	ReadOnly func(t *testing.T, open db.DB) db.DB

	// Fill opens a database with [db.Opening].Fill. All calls of a test open the same one, which is empty at first. Nil:
	// the engine began after the migration "namespaces".
	Fill func(t *testing.T, fill map[string]func(db.Tx) error) (db.DB, error)

	// Impatient opens an empty database whose calls wait for a turn, a connection or a lock for half a second only.
	Impatient func(t *testing.T) db.DB

	// Reruns: Writes run at the same time, so among writers of one row, some functions run again.
	Reruns bool

	// Waits: a Write may still wait for one of another partition.
	Waits bool

	// Failing opens an empty database, and fails as a test asks for it. Nil: there is no connection, nor an operator, that
	// could end a statement.
	Failing func(t *testing.T) (d db.DB, fail func(Failure))

	// Walled opens an empty database with a second wall; see [db.Walled]. Nil: the engine has none.
	Walled func(t *testing.T) db.DB

	// Near makes an index of vectors for partitions of any size in an open database, for the profiles that it has, and
	// opens it again; see [db.Nearer]. Nil: the engine has none.
	Near func(t *testing.T, open db.DB) db.DB

	// Flood makes the log of changes longer than it is kept, by about a thousand changes of a memory at each call. Nil:
	// the log has no end.
	Flood func(tx db.Tx, memory int64) error
}

// Test is one of the tests that need one handle.
type Test struct {
	Name string
	Run  func(t *testing.T, d db.DB)
}

// Tests returns them for an engine. The tests of these tests are outside the package: within it, they would have it
// compiled twice.
func Tests(e Engine) []Test {
	return []Test{
		{"a Read sees one snapshot", func(t *testing.T, d db.DB) { readsOneSnapshot(t, e, d) }},
		{"a Read writes nothing", readWritesNothing},
		{"Writes do not overlook each other", func(t *testing.T, d db.DB) { noWriteSkew(t, d, d) }},
		{"a Write that finds nothing is not alone in that", func(t *testing.T, d db.DB) { noPhantoms(t, d, d) }},
		{"a Write that adds what it did not find runs again", func(t *testing.T, d db.DB) { noPhantomKeys(t, d, d) }},
		{"a Write that runs again sees none of its first run", func(t *testing.T, d db.DB) { runsAgain(t, e, d) }},
		{"an error undoes the work of its Write alone", errorUndoesItsOwn},
		{"a Write whose statement cannot be read may be lost as a whole", failedRead},
		{"a savepoint undoes its part alone", savepoints},
		{"rows that a part leaves open may be closed after it", rowsOfParts},
		{"rows that are queued", queuedRows},
		{"rows that are queued after the ones that they refer to", queuedChildren},
		{"a statement with other arguments is another one", sameStatements},
		{"a panic undoes its Write, and goes on", panics},
		{"errors have classes", errorsHaveClasses},
		{"a call ends with its context", endsWithContext},
		{"a call within a call does not wait for itself", nested},
		{"a transaction ends with its function", transactionEnds},
		{"changes are complete, or say that they are not", func(t *testing.T, d db.DB) { changesComplete(t, e, d) }},
		{"changes are not missed among many writers", func(t *testing.T, d db.DB) { changesAmongWriters(t, d, d) }},
		{"changes of a Write that commits late are not missed", func(t *testing.T, d db.DB) {
			changesOfLateCommits(t, e, d, d)
		}},
		{"rows are scanned", rowsScanned},
		{"arguments go to their parameters", parameters},
		{"a statement counts its rows", rowsAffected},
		{"numbers of rows rise and are not used again", func(t *testing.T, d db.DB) { rowNumbers(t, e, d) }},
		{"the clock moves on", clockMovesOn},
		{"rows are counted, and go with what they belong to", counters},
		{"texts of the dialect mean what they say", dialect},
		{"conditions on metadata", metadata},
		{"the index of own metadata", ownIndex},
		{"memories with the same content", sameContent},
		{"hints name indexes", hints},
		{"changes that are added", changesAdded},
		{"changes that are logged", changesLogged},
		{"changes around a part that is undone", changesWithParts},
		{"changes that a Write sees", changesWithin},
		{"segments go stale with their memories", segmentsGoStale},
		{"segments go with their partition", segmentsGoWithTheirPartition},
		{"texts of files go when they are out of date or out of place", textsOfFiles},
		{"words", words},
		{"the listing of all terms", occurrences},
		{"vectors", vectors},
		{"constraints of the schema", rules},
		{"upkeep of a sound database", upkeep},
		{"copies", copies},
		{"a call whose context ends in its function stores nothing", canceledWithin},
		{"a Write whose context ends at any time says what became of it", canceledAnywhere},
		{"words, vectors and changes are of the snapshot", func(t *testing.T, d db.DB) { partsOfOneSnapshot(t, e, d) }},
		{"a function runs in the goroutine of its caller, a Read's once", ownGoroutine},
		{"a Read does not wait for a Write", func(t *testing.T, d db.DB) { readsDoNotWait(t, e, d) }},
		{"a statement that fails changes nothing", failedStatement},
		{"values are kept as they are", valuesKept},
		{"texts that are nearly the same are not", textsDiffer},
		{"NULL fits where nil does", scannedNulls},
		{"scanned bytes are copies", bytesAreCopies},
		{"many arguments, and long lists", manyArguments},
		{"the schema answers", schemaAnswers},
		{"a word and a vector belong to one range", borders},
		{"a passage with several terms is one", severalTerms},
		{"long results are whole and in order", func(t *testing.T, d db.DB) { longResults(t, e, d) }},
		{"words, vectors and changes of many memories", manyPassages},
		{"a result that fails in its middle says so", failingRows},
		{"only the current row is scanned", scansWithoutRow},
		{"words of passages that are missing", wordsOfMissing},
		{"references that do not hold at the commit", references},
		{"hints of a context change no result", hintedCalls},
		{"what is read ahead or kept is not out of date", foreseen},
		{"numbers that are reserved", reserved},
		{"a function that ignores a conflict runs again", conflictsIgnored},
		{"a call ends soon after its context", endsSoon},
		{"a query that is announced and fails", failingAhead},
		{"a hurried Write waits for a lock for a limited time", func(t *testing.T, d db.DB) { hurriedLocks(t, e, d) }},
		{"a Write knows whether others wait for it", contended},
	}
}

// Others are the tests that open databases by themselves, such as those of two handles.
var Others = []struct {
	Name string
	Run  func(t *testing.T, e Engine)
}{
	{"what a Write has answered is there after opening again", durable},
	{"what a Write has answered is there after a kill", survivesKill},
	{"Writes of two handles do not overlook each other", handlesSerialize},
	{"an id and a name by two handles do not look alike", idsAndNames},
	{"changes by one handle are seen by the other", handlesSeeEachOther},
	{"changes are not missed among writers with two handles", func(t *testing.T, e Engine) {
		one, other := twoHandles(t, e)
		changesAmongWriters(t, one, other)
	}},
	{"changes of another handle's Write that commits late are not missed", func(t *testing.T, e Engine) {
		one, other := twoHandles(t, e)
		changesOfLateCommits(t, e, one, other)
	}},
	{"two handles have one clock", handlesShareClock},
	{"a handle for reading writes nothing", readOnly},
	{"migrations are completed in Go", fills},
	{"a call within a call gives up in time", nestedElsewhere},
	{"a closed database says so", closed},
	{"a Read that loses its snapshot fails from then on", lostSnapshots},
	{"a commit without an answer is an unknown outcome", unansweredCommits},
	{"changes by one handle wake the other", follows},
	{"a second wall shows a caller its rows alone", walled},
	{"an index finds the nearest vectors", nearest},
}

// Run runs all tests; in the plain form, a third of the ones that need one handle.
func Run(t *testing.T, e Engine) {
	for i, test := range Tests(e) {
		if !longtest.Part(i, 1, 3) {
			continue
		}
		t.Run(test.Name, func(t *testing.T) {
			d := e.Open(t)
			defer func() {
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			}()
			test.Run(t, d)
		})
	}
	for _, test := range Others {
		t.Run(test.Name, func(t *testing.T) { test.Run(t, e) })
	}
}

// meeting is how long calls wait for one another where an engine may run both at once, or one after the other.
const meeting = 50 * time.Millisecond

// forever is how long a test waits for an event that must come.
const forever = 10 * time.Second

// meet waits for the end of a call beside a Write that is open. It must come if Writes run at the same time; other
// engines may make the call wait.
func (e Engine) meet(t *testing.T, what string, over <-chan struct{}) {
	t.Helper()
	wait := meeting
	if e.Reruns && !e.Waits {
		wait = forever
	}
	select {
	case <-over:
	case <-time.After(wait):
		if e.Reruns && !e.Waits {
			t.Errorf("%s waits", what)
		}
	}
}

// write runs a Write that must succeed.
func write(t *testing.T, d db.DB, fn func(tx db.Tx) error) {
	t.Helper()
	if err := d.Write(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, d db.DB, fn func(tx db.Tx) error) {
	t.Helper()
	if err := d.Read(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

// is reports an error of the wrong class.
func is(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) && (got == nil || !errors.Is(want, errAny)) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// errAny stands for any error.
var errAny = errors.New("an error")

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// set gives a setting a value; it is the simplest row to write.
func set(tx db.Tx, key string, value int64) error {
	_, err := tx.Exec(`INSERT INTO setting (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE `+
		`SET value = excluded.value`, key, value)
	return err
}

func get(tx db.Tx, key string) (value int64, err error) {
	err = tx.QueryRow(`SELECT value FROM setting WHERE key = ?`, key).Scan(&value)
	return value, err
}

func count(tx db.Tx) (n int, err error) {
	err = tx.QueryRow(`SELECT count(*) FROM setting WHERE key LIKE 'test %'`).Scan(&n)
	return n, err
}

func key(parts ...any) string { return "test " + fmt.Sprint(parts...) }

// place creates a user with a partition, to store memories in.
func place(t *testing.T, d db.DB) (partition int64) {
	t.Helper()
	write(t, d, func(tx db.Tx) error {
		user, err := db.Insert(tx, `INSERT INTO users (uid, created_at) VALUES ('ann', 0) RETURNING id`)
		if err != nil {
			return err
		}
		collection, err := db.Insert(tx, `INSERT INTO collection (owner_id, name, description, created_at, updated_at)
			VALUES (?, 'default', '', 0, 0) RETURNING id`, user)
		if err != nil {
			return err
		}
		partition, err = db.Insert(tx, `INSERT INTO partition (collection_id) VALUES (?) RETURNING id`, collection)
		return err
	})
	return partition
}

func addMemory(tx db.Tx, partition int64, uid, metadata string) (int64, error) {
	return db.Insert(tx, `INSERT INTO memory (uid, partition_id, content, metadata, revision, created_at, updated_at)
		VALUES (?, ?, 'content', ?, 1, 0, 0) RETURNING id`, uid, partition, metadata)
}

// slow is a query that takes minutes.
const slow = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000000) SELECT count(*) ` +
	`FROM n`

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
