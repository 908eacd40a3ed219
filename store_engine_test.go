package souvenir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/storefile"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// rerunning is an engine that runs the function of each Write twice, as an engine may after a conflict at COMMIT. The
// first run leaves nothing behind. Between the runs of a Write whose context has a function under this type, it calls
// that.
type rerunning struct{ db.DB }

func (d rerunning) Write(ctx context.Context, fn func(db.Tx) error) error {
	again := errors.New("again")
	err := d.DB.Write(ctx, func(tx db.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return again
	})
	if !errors.Is(err, again) {
		return err
	}
	if between, is := ctx.Value(rerunning{}).(func()); is {
		between()
	}
	return d.DB.Write(ctx, fn)
}

// Another package can make Open use its own engine, through the context. Only Open sees it.
func TestAStoreOpensInTheEngineOfItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other.db")
	var got db.Opening
	ctx := db.WithOpener(t.Context(), func(ctx context.Context, o db.Opening) (db.DB, error) {
		got = o
		if open, _ := db.OpenerOf(ctx); open != nil {
			t.Errorf("the context of the opener still has one: got %v, want nil", open)
		}
		return sqlite.Open(ctx, storefile.Config(path, time.Now))
	})
	s, err := Open(ctx, "elsewhere", &Options{Readers: 3, Embedder: wordEmbedder("words-1")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.AddMemory(t.Context(), NewMemory{Content: "tea"}); err != nil {
		t.Error(err)
	}
	if got.Readers != 3 || got.Logger == nil || got.Now == nil || len(got.Fill) == 0 {
		t.Errorf("the engine is opened with %+v; want what the options say", got)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	refused := fmt.Errorf("no server: %w", db.ErrUnavailable)
	ctx = db.WithOpener(t.Context(), func(context.Context, db.Opening) (db.DB, error) { return nil, refused })
	if _, err := Open(ctx, "elsewhere", nil); !errors.Is(err, ErrBusy) || !errors.Is(err, refused) {
		t.Errorf("an engine that cannot be reached: got %v, want %v with the cause", err, ErrBusy)
	}
}

// openRerunning opens a store in a file whose engine runs each Write twice.
func openRerunning(t *testing.T, path string) *Store {
	t.Helper()
	return openThrough(t, path, func(engine db.DB) db.DB { return rerunning{engine} })
}

// openThrough opens a store in a file through another engine.
func openThrough(t *testing.T, path string, through func(db.DB) db.DB) *Store {
	t.Helper()
	o, err := (&Options{Embedder: wordEmbedder("words-1"), Changeable: settingNames}).withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	engine, err := openFile(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newStore(t.Context(), through(engine), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// rowsByTable counts the rows of each table with data of callers.
func rowsByTable(t *testing.T, s *Store) string {
	t.Helper()
	var counts []string
	err := s.db.Read(t.Context(), func(tx db.Tx) error {
		for _, table := range []string{"memory", "memory_revision", "memory_tag", "memory_link", "passage", "file",
			"file_chunk",
			"project", "project_member", "collection", "trash", "trash_item", "users", "token", "oauth_client",
			"oauth_grant"} {
			var n int
			if err := tx.QueryRow(`SELECT count(*) FROM ` + table).Scan(&n); err != nil {
				return err
			}
			counts = append(counts, fmt.Sprint(table, " ", n))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(counts, ", ")
}

func TestEveryMethodDoesTheSameWhereTheEngineRunsItsWritesAgain(t *testing.T) {
	longtest.Only(t)
	st := settle(t, openWords(t, filepath.Join(t.TempDir(), "settled.db"), Options{Changeable: settingNames}))
	backup := filepath.Join(t.TempDir(), "copy.db")
	if err := st.store.Upkeep().Backup(t.Context(), backup, nil); err != nil {
		t.Fatal(err)
	}
	for i, method := range slices.Sorted(maps.Keys(st.calls())) {
		if !writes(method) || !longtest.Part(i, 4, 20) {
			continue
		}
		var rows [2]string
		for i := range rows {
			copied := filepath.Join(t.TempDir(), "settled.db")
			if err := Restore(t.Context(), Restoration{From: backup, To: copied}); err != nil {
				t.Fatal(err)
			}
			once := st
			if once.store = openWords(t, copied, Options{Changeable: settingNames}); i == 1 {
				if err := once.store.Close(); err != nil {
					t.Fatal(err)
				}
				once.store = openRerunning(t, copied)
			}
			err := once.calls()[method](t.Context())
			if err != nil && !withoutOption(method, err) {
				t.Errorf("%s gives %v, run %d times", method, err, i+1)
			}
			rows[i] = rowsByTable(t, once.store)
			if report, err := once.store.Upkeep().Check(t.Context(), nil); err != nil || !report.OK {
				t.Errorf("%s, run %d times: the check finds %+v, %v, want no error and OK", method, i+1,
					report.Findings, err)
			}
		}
		if rows[0] != rows[1] {
			t.Errorf("%s leaves other rows where its Writes run again, want the same:\n%s\n%s", method, rows[0], rows[1])
		}
	}
}

func TestUnavailableAndUnsupportedEngineErrors(t *testing.T) {
	for class, want := range map[error]*Error{db.ErrUnavailable: ErrBusy, db.ErrUnsupported: ErrInvalid,
		db.ErrInterrupted: ErrBusy, db.ErrOutcomeUnknown: ErrOutcomeUnknown} {
		if err := wrap(fmt.Errorf("engine: %w", class)); !errors.Is(err, want) || strings.Contains(err.Error(), "engine:") {
			t.Errorf(`%v becomes %v, want %v and no "engine:" in the error`, class, err, want)
		}
	}
}

// failing is an engine whose reads of memories fail.
type failing struct {
	db.DB
	err error
}

func (d failing) Upkeep() db.Upkeep {
	u := d.DB.Upkeep()
	scratch := u.Scratch
	u.Scratch = func(ctx context.Context, fn func(db.Tx) error) error {
		return scratch(ctx, func(tx db.Tx) error { return fn(failingTx{tx, d.err}) })
	}
	return u
}

type failingTx struct {
	db.Tx
	err error
}

func (tx failingTx) Query(query string, args ...any) (db.Rows, error) {
	if strings.Contains(query, "FROM memory") {
		return nil, fmt.Errorf("engine: %w", tx.err)
	}
	return tx.Tx.Query(query, args...)
}

func TestAnUnreachableDatabaseIsNotDamage(t *testing.T) {
	longtest.Only(t)
	for _, class := range []error{db.ErrUnavailable, db.ErrTxDone, db.ErrUnsupported, db.ErrInterrupted, db.ErrBusy,
		db.ErrIO, context.Canceled, context.DeadlineExceeded} {
		s := openThrough(t, filepath.Join(t.TempDir(), "m.db"), func(engine db.DB) db.DB { return failing{engine, class} })
		report, err := s.Upkeep().Check(t.Context(), nil)
		if !errors.Is(err, class) || report.Total != 0 {
			t.Errorf("a check that meets %v: got %d findings and %v, want none and that error", class, report.Total, err)
		}
	}
	s := openThrough(t, filepath.Join(t.TempDir(), "m.db"), func(engine db.DB) db.DB {
		return failing{engine, db.ErrCorrupt}
	})
	report, err := s.Upkeep().Check(t.Context(), nil)
	if err != nil || report.Total == 0 {
		t.Errorf("a check that meets damage: got %d findings and %v, want some and no error", report.Total, err)
	}
}

// reading is an engine whose Each reads all rows before the first call, as an engine may. It records the most rows
// read.
type reading struct {
	db.DB
	most *atomic.Int64
	of   *atomic.Pointer[string]
}

func (d reading) Read(ctx context.Context, fn func(db.Tx) error) error {
	return d.DB.Read(ctx, func(tx db.Tx) error { return fn(readingTx{tx, d}) })
}

func (d reading) Write(ctx context.Context, fn func(db.Tx) error) error {
	return d.DB.Write(ctx, func(tx db.Tx) error { return fn(readingTx{tx, d}) })
}

type readingTx struct {
	db.Tx
	engine reading
}

func (tx readingTx) Each(fn func(db.Rows) error, query string, args ...any) error {
	n := int64(0)
	defer func() {
		if n > tx.engine.most.Load() {
			tx.engine.most.Store(n)
			tx.engine.of.Store(&query)
		}
	}()
	return tx.Tx.Each(func(r db.Rows) error { n++; return fn(r) }, query, args...)
}

func TestGrowingResultsAreStreamed(t *testing.T) {
	longtest.Only(t)
	const memories, most = 600, 500
	counted := reading{most: new(atomic.Int64), of: new(atomic.Pointer[string])}
	s := openThrough(t, filepath.Join(t.TempDir(), "a.db"), func(engine db.DB) db.DB {
		counted.DB = engine
		return counted
	})
	for _, revision := range []string{"first", "second"} {
		all := make([]NewMemory, memories)
		for i := range all {
			all[i] = NewMemory{Key: fmt.Sprint(i), Content: fmt.Sprint(revision, " memory ", i), Tags: []string{"t"}}
		}
		if _, err := s.PutMemories(t.Context(), all, nil); err != nil {
			t.Fatal(err)
		}
	}
	for operation, work := range map[string]func(*Store) error{
		"export": func(s *Store) error {
			_, err := s.Upkeep().Export(t.Context(), io.Discard, nil)
			return err
		},
		"check": func(s *Store) error {
			_, err := s.Upkeep().Check(t.Context(), nil)
			return err
		},
		"search": func(s *Store) error {
			_, err := s.Search(t.Context(), Query{Text: "memory 7"})
			return err
		},
		"context": func(s *Store) error {
			_, err := s.GetContext(t.Context(), ContextQuery{Query: "memory 7"})
			return err
		},
	} {
		t.Run(operation, func(t *testing.T) {
			counted.most.Store(0)
			if err := work(s); err != nil {
				t.Fatal(err)
			}
			if n := counted.most.Load(); n > most {
				t.Errorf("got an Each of %d rows, want at most %d: %s", n, most, *counted.of.Load())
			}
		})
	}
}

// countingReads is an engine that counts the reads whose context the test marked.
type countingReads struct {
	db.DB
	reads *int
}

type ofTest struct{}

func (d countingReads) Read(ctx context.Context, fn func(db.Tx) error) error {
	if ctx.Value(ofTest{}) != nil {
		*d.reads++
	}
	return d.DB.Read(ctx, fn)
}

func TestIfAbsentLooksUpContentInOneRead(t *testing.T) {
	var reads int
	s := openThrough(t, filepath.Join(t.TempDir(), "reads.db"), func(engine db.DB) db.DB {
		return countingReads{engine, &reads}
	})
	ctx := context.WithValue(t.Context(), ofTest{}, true)
	for _, want := range []Effect{EffectAdded, EffectUnchanged} {
		reads = 0
		put, err := s.PutMemory(ctx, NewMemory{Key: "k", Content: "one"})
		if err != nil || put.Effect != want || reads != 1 {
			t.Errorf("PutMemory: %s, %v, %d reads; want %s and 1", put.Effect, err, reads, want)
		}
		reads = 0
		added, err := s.AddMemory(ctx, NewMemory{IfAbsent: true, Content: "two"})
		if err != nil || added.Effect != want || reads != 1 {
			t.Errorf("AddMemory: %s, %v, %d reads; want %s and 1", added.Effect, err, reads, want)
		}
	}
}
