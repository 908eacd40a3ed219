package sqlite

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/txcontext"
)

// afterSharedCommit opens a database whose last commit counts as having had two callers, so that the next caller waits
// for a second one, at most for the given time.
func afterSharedCommit(t *testing.T, most time.Duration) *DB {
	t.Helper()
	db := openTest(t, testConfig(newFile(t)))
	must(t, db.Write(t.Context(), insert("first")))
	db.writer.linger.known, db.writer.linger.took, db.writer.linger.most = 2, time.Hour, most
	return db
}

// whileLingering runs fn while another caller waits before its commit.
func whileLingering(t *testing.T, db *DB, fn func() error) {
	t.Helper()
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		if err := db.Write(t.Context(), insert("one")); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "a caller waits before its commit", func() bool {
		db.writer.mu.Lock()
		defer db.writer.mu.Unlock()
		return db.writer.linger.end != nil
	})
	must(t, fn())
}

func TestACallerWaitsBeforeTheCommitForOneWhoComesBack(t *testing.T) {
	db := afterSharedCommit(t, time.Minute)
	began := time.Now()
	whileLingering(t, db, func() error { return db.Write(t.Context(), insert("two")) })
	if l := &db.writer.linger; l.known != 2 || l.missed != 0 || time.Since(began) > 50*time.Second {
		t.Errorf("after two writes: got a commit of %d callers, %d waits in vain, %s; want one commit of 2 at once",
			l.known, l.missed, time.Since(began))
	}
}

func TestACallerWhoCannotJoinEndsTheWait(t *testing.T) {
	db := afterSharedCommit(t, time.Minute)
	began := time.Now()
	spanning := &txcontext.DB{DB: db}
	whileLingering(t, db, func() error {
		return spanning.Transaction(t.Context(), func(context.Context) error { return nil })
	})
	if took := time.Since(began); took > 50*time.Second {
		t.Errorf("a transaction of its own waited %s for a caller before its commit, want it to end the wait", took)
	}
}

func TestAWaitInVainEndsAndIsNotRepeatedAtOnce(t *testing.T) {
	db := afterSharedCommit(t, time.Millisecond)
	must(t, db.Write(t.Context(), insert("alone")))
	if l := &db.writer.linger; l.missed != 1 || l.skips != 1 || l.known != 1 {
		t.Errorf("after a wait in vain: got %d missed, %d to skip, %d callers known; want 1 each", l.missed, l.skips, l.known)
	}
	db.writer.linger.known, db.writer.linger.most = 2, time.Minute
	began := time.Now()
	must(t, db.Write(t.Context(), insert("alone again")))
	if took := time.Since(began); took > 50*time.Second {
		t.Errorf("the write after it took %s, want it not to wait", took)
	}
}

func TestTheEndOfAWaitIsNotThatOfTheNextCallersWait(t *testing.T) {
	w := &writer{held: true, group: maxGroup, conn: &conn{}, began: time.Now()}
	join := func() {
		t.Helper()
		if err := w.wait(t.Context(), &member{}); err != nil {
			t.Fatal(err)
		}
	}
	first, _ := w.linger.begin()
	join() // since the first caller's time is over
	second, _ := w.linger.begin()
	if w.waitedInVain(first) {
		t.Fatal("the first caller continues during the second one's turn")
	}
	join()
	if w.waitedInVain(second) || !<-first || !<-second {
		t.Error("the third caller has not got the second's turn")
	}
}
