package sqlite

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	base "github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// grow writes about the given number of bytes in transactions of 256 KiB.
func grow(t *testing.T, db *DB, bytes int) {
	t.Helper()
	data := make([]byte, 64<<10)
	for written := 0; written < bytes; {
		must(t, db.Write(t.Context(), func(tx base.Tx) error {
			for range 4 {
				if _, err := tx.Exec("INSERT INTO item (data) VALUES (?)", data); err != nil {
					return err
				}
				written += len(data)
			}
			return nil
		}))
	}
}

func TestLogStaysBoundedUnderConstantReaders(t *testing.T) {
	longtest.Only(t)
	db := openTest(t, testConfig(newFile(t)))
	var stop atomic.Bool
	var reading sync.WaitGroup
	var overlapping atomic.Int32
	for range 3 { // readers overlap, so the log is never free by itself
		reading.Go(func() {
			for !stop.Load() {
				err := db.Read(t.Context(), func(tx base.Tx) error {
					var n int
					if err := tx.QueryRow("SELECT count(*) FROM item").Scan(&n); err != nil {
						return err
					}
					for seen := overlapping.Add(1); overlapping.Load() == seen && !stop.Load(); { // until another one has begun
						time.Sleep(50 * time.Microsecond)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	largest := int64(0)
	for range 64 {
		grow(t, db, 1<<20)
		largest = max(largest, walSize(db.logPath))
	}
	stop.Store(true)
	reading.Wait()
	if limit := int64(walLimit + 2*walStep); largest > limit {
		t.Errorf("the log grew to %d bytes, want at most %d", largest, limit)
	}
}

func TestLogThatAReaderPinnedShrinksAfterwards(t *testing.T) {
	longtest.Only(t)
	db := openTest(t, testConfig(newFile(t)))
	must(t, db.Read(t.Context(), func(tx base.Tx) error {
		var n int
		must(t, tx.QueryRow("SELECT count(*) FROM item").Scan(&n)) // takes the snapshot
		grow(t, db, 40<<20)
		if size := walSize(db.logPath); size < 40<<20 {
			t.Errorf("the log has %d bytes, so the snapshot cannot be in use; want at least %v", size, 40<<20)
		}
		must(t, tx.QueryRow("SELECT count(*) FROM item").Scan(&n))
		if n != 0 {
			t.Errorf("the snapshot sees %d items, want 0", n)
		}
		return nil
	}))
	grow(t, db, 16<<20)
	eventually(t, "the log shrinks", func() bool {
		grow(t, db, 1<<20)
		return walSize(db.logPath) <= walLimit
	})
}
