package sqlite_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/txcontext"
)

// A failed call in a transaction over several writes is undone. The result of the transaction's function decides about
// the rest.
func TestATransactionOverSeveralWritesIsAllOrNothing(t *testing.T) {
	file, err := sqlite.Open(t.Context(), sqlite.Config{ApplicationID: 77, Path: filepath.Join(t.TempDir(), "spans.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	d := &txcontext.DB{DB: file}
	failed := errors.New("failed")
	do := func(ctx context.Context, statement string, then error) error {
		return d.Write(ctx, func(tx db.Tx) error {
			_, err := tx.Exec(statement)
			return errors.Join(err, then)
		})
	}
	count := func(ctx context.Context) (n int) {
		if err := d.Read(ctx, func(tx db.Tx) error { return tx.QueryRow(`SELECT count(*) FROM t`).Scan(&n) }); err != nil {
			t.Error(err)
		}
		return n
	}
	if err := do(t.Context(), `CREATE TABLE t (x INTEGER)`, nil); err != nil {
		t.Fatal(err)
	}
	var after context.Context
	add := func(ctx context.Context) error {
		after = ctx
		_ = do(ctx, `INSERT INTO t VALUES (1)`, failed) // undone alone
		err := do(ctx, `INSERT INTO t VALUES (2)`, nil)
		if n := count(ctx); n != 1 {
			t.Errorf("the transaction sees %d rows; want 1", n)
		}
		return err
	}
	if err := d.Transaction(t.Context(), func(ctx context.Context) error {
		return errors.Join(add(ctx), failed)
	}); !errors.Is(err, failed) || count(t.Context()) != 0 {
		t.Errorf("a failed transaction gives %v and leaves %d rows; want its error and no rows", err, count(t.Context()))
	}
	if err := d.Transaction(t.Context(), func(ctx context.Context) error {
		_ = d.Transaction(ctx, func(ctx context.Context) error { return errors.Join(add(ctx), failed) })
		return nil
	}); !errors.Is(err, failed) || count(t.Context()) != 0 {
		t.Errorf("with a failed inner transaction: %v and %d rows; want its error and no rows", err, count(t.Context()))
	}
	func() {
		defer func() { _ = recover() }()
		_ = d.Transaction(t.Context(), func(ctx context.Context) error { _ = add(ctx); panic("broken") })
	}()
	ending, end := context.WithCancel(t.Context())
	if err := d.Transaction(ending, func(ctx context.Context) error { defer end(); return add(ctx) }); !errors.Is(err,
		context.Canceled) || count(t.Context()) != 0 {
		t.Errorf("after a panic and an ended context: %v and %d rows; want context.Canceled and no rows", err,
			count(t.Context()))
	}
	if err := d.Transaction(t.Context(), add); err != nil || count(t.Context()) != 1 {
		t.Errorf("a transaction gives %v and leaves %d rows; want 1", err, count(t.Context()))
	}
	if err := do(after, `INSERT INTO t VALUES (3)`, nil); !errors.Is(err, txcontext.ErrEnded) {
		t.Errorf("writing after the end gives %v; want ErrSpanEnded", err)
	}
	if err := d.Snapshot(t.Context(), func(ctx context.Context) error {
		return d.Transaction(ctx, add)
	}); !errors.Is(err, txcontext.ErrReadOnly) {
		t.Errorf("a transaction in a snapshot gives %v; want ErrSpanReadOnly", err)
	}
}

// While a transaction spans several writes, no other write shares its commit. One that waits too long gets an error
// instead of waiting forever, with or without its context ending, and functions registered for the end are called once.
func TestOthersWaitForATransactionButNotForEver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wait.db")
	file, err := sqlite.Open(t.Context(), sqlite.Config{ApplicationID: 77, Path: path, LockTimeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	d := &txcontext.DB{DB: file}
	nothing := func(db.Tx) error { return nil }
	var ended []error
	err = d.Transaction(db.Freeing(t.Context()), func(ctx context.Context) error {
		d.AtEnd(ctx, func(undone error) { ended = append(ended, undone) })
		waiting := make(chan error)
		go func() { waiting <- d.Write(t.Context(), nothing) }()
		if err := <-waiting; !errors.Is(err, db.ErrBusy) {
			t.Errorf("a write of another goroutine gives %v; want db.ErrBusy", err)
		}
		if err := d.Write(t.Context(), nothing); !errors.Is(err, db.ErrBusy) {
			t.Errorf("a write within, with the context from outside, gives %v; want db.ErrBusy", err)
		}
		if len(ended) != 0 {
			t.Errorf("a function for the end is called before: got %v, want none", len(ended))
		}
		return d.Write(ctx, func(tx db.Tx) error {
			if db.IsFreeing(tx.Context()) {
				t.Error("a transaction uses the reserve of the disk, want it kept")
			}
			return nil
		})
	})
	if err != nil || len(ended) != 1 || ended[0] != nil {
		t.Errorf("the transaction gives %v and ends with %v; want nil, once", err, ended)
	}
	if err := d.Write(t.Context(), nothing); err != nil {
		t.Errorf("a write afterwards gives %v", err)
	}
}

// Calls with the context of a snapshot or transaction run one at a time. A call waits no longer than its own context
// allows, and not for itself.
func TestACallInASpanWaitsAsLongAsItsContextAllows(t *testing.T) {
	file, err := sqlite.Open(t.Context(), sqlite.Config{ApplicationID: 77, Path: filepath.Join(t.TempDir(), "turns.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	d := &txcontext.DB{DB: file}
	impatient := &txcontext.DB{DB: file, Patience: time.Millisecond}
	nothing := func(db.Tx) error { return nil }
	if err := impatient.Snapshot(t.Context(), func(ctx context.Context) error {
		return impatient.Read(ctx, func(db.Tx) error { return impatient.Read(ctx, nothing) })
	}); !errors.Is(err, db.ErrBusy) {
		t.Errorf("a read within a read of the same snapshot gives %v; want db.ErrBusy", err)
	}
	within := func(ctx context.Context) error {
		var others sync.WaitGroup
		defer others.Wait()
		return d.Read(ctx, func(tx db.Tx) error {
			if err := d.Read(tx.Context(), nothing); !errors.Is(err, db.ErrNested) {
				t.Errorf("a read with the context of a read's transaction gives %v; want db.ErrNested", err)
			}
			ended, end := context.WithCancel(ctx)
			beside := make(chan error)
			go func() { beside <- d.Read(ended, nothing) }()
			end()
			if err := <-beside; !errors.Is(err, context.Canceled) {
				t.Errorf("a read with a canceled context, beside another, gives %v; want its context's error", err)
			}
			others.Go(func() {
				if err := d.Read(ctx, nothing); err != nil {
					t.Errorf("a read that waits for another goroutine's gives %v; want nil", err)
				}
			})
			return nil
		})
	}
	if err := errors.Join(d.Snapshot(t.Context(), within), d.Transaction(t.Context(), within)); err != nil {
		t.Error(err)
	}
}
