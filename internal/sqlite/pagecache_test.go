//go:build !souvenir_cgo

package sqlite

import (
	"testing"

	"modernc.org/sqlite"

	base "github.com/souvenir-ai/souvenir/internal/db"
)

// onReaders runs fn in reads on n connections, all of which stay open until the last one has returned.
func onReaders(tb testing.TB, db *DB, from, n int, fn func(i int, tx base.Tx)) {
	tb.Helper()
	if from == n {
		return
	}
	must(tb, db.Read(tb.Context(), func(tx base.Tx) error {
		fn(from, tx)
		onReaders(tb, db, from+1, n, fn)
		return nil
	}))
}

// readPages reads a row from each of the first n pages.
func readPages(tb testing.TB, tx base.Tx, n int) {
	tb.Helper()
	var sum int
	must(tb, tx.QueryRow("SELECT sum(substr(data, 2999, 1) > '') FROM item WHERE id <= ?", n).Scan(&sum))
}

// afterScans opens a file with some connections, all of which have read more than they may keep, the first one last.
func afterScans(tb testing.TB, readers int) *DB {
	tb.Helper()
	const rows = 5000
	c := testConfig(newFile(tb))
	c.Readers = readers
	db := openTest(tb, c)
	must(tb, db.Write(tb.Context(), func(tx base.Tx) error {
		_, err := tx.Exec("WITH RECURSIVE n (v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < ?) "+
			"INSERT INTO item (id, data) SELECT v, zeroblob(3000) FROM n", rows)
		return err
	}))
	onReaders(tb, db, 0, readers, func(_ int, tx base.Tx) { readPages(tb, tx, rows) })
	onReaders(tb, db, 0, 1, func(_ int, tx base.Tx) { readPages(tb, tx, rows) })
	return db
}

// missed returns how many pages a transaction's connection has read from the file since the last call.
func missed(t *testing.T, tx base.Tx) int {
	t.Helper()
	n, _, err := tx.(*Tx).conn.raw.(sqlite.DBStatus).Status(sqlite.DBStatusCacheMiss, true)
	must(t, err)
	return n
}

func TestAConnectionThatReadsMuchLeavesRoomForThePagesOfOthers(t *testing.T) {
	const readers, few = 3, 900
	db := afterScans(t, readers)
	for round := range 3 {
		onReaders(t, db, 0, readers, func(i int, tx base.Tx) {
			missed(t, tx)
			readPages(t, tx, few)
			if n := missed(t, tx); round > 0 && n > few/10 {
				t.Errorf("connection %d, reading %d pages for time %d: %d were not in its cache, want nearly none",
					i, few, round+1, n)
			}
		})
	}
	held := heldPages(db.writer.conn.raw)
	for _, c := range db.readers.idle {
		held += heldPages(c.raw)
	}
	if held > filePages {
		t.Errorf("the connections hold %d bytes of pages, want at most %d", held, filePages)
	}
}

// BenchmarkReadAfterScans measures reading 600 pages on each of three connections.
func BenchmarkReadAfterScans(b *testing.B) {
	const readers = 3
	db := afterScans(b, readers)
	for b.Loop() {
		onReaders(b, db, 0, readers, func(_ int, tx base.Tx) { readPages(b, tx, 600) })
	}
}
