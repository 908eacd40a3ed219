package dbtest_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/db/dbtest"
	"github.com/souvenir-ai/souvenir/internal/postgres"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// wrong is an engine with a fault: a sound one with some parts replaced.
type wrong struct {
	db.DB
	tx      func(tx db.Tx) db.Tx
	read    func(ctx context.Context, d db.DB, fn func(db.Tx) error) error
	write   func(ctx context.Context, d db.DB, fn func(db.Tx) error) error
	written func(err error) error
}

func (w wrong) Read(ctx context.Context, fn func(db.Tx) error) error {
	around := func(tx db.Tx) error { return fn(w.around(tx)) }
	if w.read != nil {
		return w.read(ctx, w.DB, around)
	}
	return w.DB.Read(ctx, around)
}

func (w wrong) Write(ctx context.Context, fn func(db.Tx) error) error {
	around := func(tx db.Tx) error { return fn(w.around(tx)) }
	if w.write != nil {
		return w.write(ctx, w.DB, around)
	}
	err := w.DB.Write(ctx, around)
	if w.written != nil {
		err = w.written(err)
	}
	return err
}

func (w wrong) around(tx db.Tx) db.Tx {
	if w.tx == nil {
		return tx
	}
	return w.tx(tx)
}

// wrongTx is a transaction with some parts replaced.
type wrongTx struct {
	db.Tx
	words   func(db.Words) db.Words
	vectors func(db.Vectors) db.Vectors
	rows    func(db.Rows) db.Rows
	each    func(err error) error
	exec    func(db.Result) db.Result
}

func (w wrongTx) Words() db.Words {
	if w.words == nil {
		return w.Tx.Words()
	}
	return w.words(w.Tx.Words())
}

func (w wrongTx) Vectors() db.Vectors {
	if w.vectors == nil {
		return w.Tx.Vectors()
	}
	return w.vectors(w.Tx.Vectors())
}

func (w wrongTx) Query(query string, args ...any) (db.Rows, error) {
	rows, err := w.Tx.Query(query, args...)
	if err != nil || w.rows == nil {
		return rows, err
	}
	return w.rows(rows), nil
}

func (w wrongTx) Each(fn func(db.Rows) error, query string, args ...any) error {
	err := w.Tx.Each(fn, query, args...)
	if w.each != nil {
		err = w.each(err)
	}
	return err
}

func (w wrongTx) Exec(query string, args ...any) (db.Result, error) {
	result, err := w.Tx.Exec(query, args...)
	if err == nil && w.exec != nil {
		result = w.exec(result)
	}
	return result, err
}

// wider counts and finds words beyond the borders of a range.
type wider struct {
	db.Words
	before, after int64
}

func (w wider) Count(in db.Range, terms []string) (int, error) {
	return w.Words.Count(db.Range{First: in.First - w.before, Last: in.Last + w.after}, terms)
}

// perTerm counts each term separately.
type perTerm struct{ db.Words }

func (w perTerm) Count(in db.Range, terms []string) (all int, err error) {
	for _, term := range terms {
		n, err := w.Words.Count(in, []string{term})
		if err != nil {
			return 0, err
		}
		all += n
	}
	return all, nil
}

// perTermMemories does so for memories.
type perTermMemories struct{ db.Words }

func (w perTermMemories) CountMemories(in db.Range, terms []string, limit int) (all int, err error) {
	for _, term := range terms {
		n, err := w.Words.CountMemories(in, []string{term}, limit)
		if err != nil {
			return 0, err
		}
		all += n
	}
	return min(all, limit), nil
}

// repeating returns each of the best hits once for each term.
type repeating struct{ db.Words }

func (w repeating) Best(in db.Range, terms []string, limit int) (all []int64, err error) {
	for _, term := range terms {
		best, err := w.Words.Best(in, []string{term}, limit)
		if err != nil {
			return nil, err
		}
		all = append(all, best...)
	}
	return all[:min(len(all), limit)], nil
}

// few finds only a few.
type few struct{ db.Words }

func (w few) Best(in db.Range, terms []string, limit int) ([]int64, error) {
	return w.Words.Best(in, terms, min(limit, 1000))
}

// wideVectors compares beyond the end of a range.
type wideVectors struct{ db.Vectors }

func (v wideVectors) Compare(in db.Range, vector []byte, profiles []int64, fn func(db.Compared) error) error {
	return v.Vectors.Compare(db.Range{First: in.First, Last: in.Last + 1}, vector, profiles, fn)
}

// paged are rows that skip one at the end of a page.
type paged struct {
	db.Rows
	n *int
}

func (r paged) Next() bool {
	if *r.n++; *r.n == 4096 && !r.Rows.Next() {
		return false
	}
	return r.Rows.Next()
}

// eager are rows that are at the first one before Next.
type eager struct {
	db.Rows
	moved, more *bool
}

func (r eager) Next() bool {
	if *r.moved {
		*r.moved = false
		return *r.more
	}
	return r.Rows.Next()
}

// silent are rows that end without an error.
type silent struct{ db.Rows }

func (silent) Err() error { return nil }

func inTx(w wrongTx) func(tx db.Tx) db.Tx {
	return func(tx db.Tx) db.Tx {
		w := w
		w.Tx = tx
		return w
	}
}

// undoesNothing has savepoints that undo nothing.
type undoesNothing struct{ db.Tx }

func (undoesNothing) Savepoint(fn func() error) error { return fn() }

// forgetful drops queued rows.
type forgetful struct{ db.Tx }

func (forgetful) Queue(string, ...any) error { return nil }

// outside keeps words, or queued rows, outside of a transaction until its end, and so those of a Write that is undone
// for the next one.
type outside struct {
	words, queued bool
	kept          []func(tx db.Tx) error
}

func (o *outside) Write(ctx context.Context, d db.DB, fn func(db.Tx) error) error {
	return d.Write(ctx, func(tx db.Tx) error {
		if err := fn(outsideTx{tx, o}); err != nil {
			return err
		}
		kept := o.kept
		o.kept = nil
		for _, step := range kept {
			if err := step(tx); err != nil {
				return err
			}
		}
		return nil
	})
}

type outsideTx struct {
	db.Tx
	*outside
}

func (o outsideTx) Wrapped() db.Tx { return o.Tx }

func (o outsideTx) Words() db.Words { return outsideWords{o.Tx.Words(), o.outside} }

func (o outsideTx) Queue(query string, args ...any) error {
	if o.queued {
		o.kept = append(o.kept, func(tx db.Tx) error { return db.Queue(tx, query, args...) })
		return nil
	}
	return db.Queue(o.Tx, query, args...)
}

type outsideWords struct {
	db.Words
	*outside
}

func (o outsideWords) Put(passage int64, content, tags string, replaces bool) error {
	if o.words {
		o.kept = append(o.kept, func(tx db.Tx) error { return tx.Words().Put(passage, content, tags, replaces) })
		return nil
	}
	return o.Words.Put(passage, content, tags, replaces)
}

// twice runs a function twice in each Write but the first, and undoes nothing.
func twice() func(ctx context.Context, d db.DB, fn func(db.Tx) error) error {
	var first atomic.Bool
	return func(ctx context.Context, d db.DB, fn func(db.Tx) error) error {
		if first.CompareAndSwap(false, true) {
			return d.Write(ctx, fn)
		}
		return d.Write(ctx, func(tx db.Tx) error { return errors.Join(fn(tx), fn(tx)) })
	}
}

// missing has a log of changes that lacks the last one.
type missing struct{ db.Tx }

func (m missing) Changes() db.Changes { return missingChanges{m.Tx.Changes()} }

type missingChanges struct{ db.Changes }

func (m missingChanges) Since(mark db.Mark, limit int) ([]int64, db.Mark, bool, error) {
	memories, next, complete, err := m.Changes.Since(mark, limit)
	return memories[:max(0, len(memories)-1)], next, complete, err
}

// highest takes the highest number in PostgreSQL's log of changes as its mark, and waits only for the Writes that its
// own process runs, if it counts them.
type highest struct {
	db.Tx
	running *atomic.Int32
}

func (h highest) Changes() db.Changes { return highestChanges{h.Tx.Changes(), h} }

type highestChanges struct {
	db.Changes
	tx highest
}

func (h highestChanges) Since(mark db.Mark, _ int) ([]int64, db.Mark, bool, error) {
	if h.tx.running != nil && h.tx.running.Load() > 0 {
		return nil, mark, true, nil
	}
	var next int64
	after, _ := strconv.ParseInt(string(mark), 10, 64)
	memories, err := db.Column[int64](h.tx, `SELECT DISTINCT memory_id FROM change WHERE seq > ?`, after)
	err = errors.Join(err, h.tx.QueryRow(`SELECT coalesce(max(seq), 0) FROM change`).Scan(&next))
	return memories, db.Mark(strconv.FormatInt(next, 10)), true, err
}

// byHighest is an engine on PostgreSQL with such marks.
func byHighest(d db.DB, running *atomic.Int32) wrong {
	return wrong{DB: d, tx: func(tx db.Tx) db.Tx { return highest{tx, running} },
		write: func(ctx context.Context, d db.DB, fn func(db.Tx) error) error {
			if running != nil {
				running.Add(1)
				defer running.Add(-1)
			}
			return d.Write(ctx, fn)
		}}
}

// newest reads each single row in its own transaction.
type newest struct {
	db.Tx
	d db.DB
}

func (n newest) QueryRow(query string, args ...any) db.Row { return newestRow{n, query, args} }

type newestRow struct {
	newest
	query string
	args  []any
}

func (r newestRow) Scan(dest ...any) error {
	return r.d.Read(context.Background(), func(tx db.Tx) error { return tx.QueryRow(r.query, r.args...).Scan(dest...) })
}

// staleWrite reads each single row from a snapshot that was taken before the Write.
func staleWrite(ctx context.Context, d db.DB, fn func(db.Tx) error) error {
	return d.Read(ctx, func(before db.Tx) error {
		if err := before.QueryRow(`SELECT count(*) FROM setting`).Scan(new(int)); err != nil {
			return err
		}
		return d.Write(ctx, func(tx db.Tx) error { return fn(beside{tx, before}) })
	})
}

type beside struct {
	db.Tx
	before db.Tx
}

func (b beside) QueryRow(query string, args ...any) db.Row { return b.before.QueryRow(query, args...) }

// bare is a context that does not know the calls around it.
type bare struct{ context.Context }

func (bare) Value(any) any { return nil }

// wrongs are engines with one fault each, by the test that finds it.
var wrongs = []struct {
	finds string
	wrong wrong
}{
	{"a word and a vector belong to one range", wrong{tx: inTx(wrongTx{words: func(w db.Words) db.Words {
		return wider{w, 1, 0}
	}})}},
	{"a word and a vector belong to one range", wrong{tx: inTx(wrongTx{words: func(w db.Words) db.Words {
		return wider{w, 0, 1}
	}})}},
	{"a word and a vector belong to one range", wrong{tx: inTx(wrongTx{vectors: func(v db.Vectors) db.Vectors {
		return wideVectors{v}
	}})}},
	{"a passage with several terms is one", wrong{tx: inTx(wrongTx{words: func(w db.Words) db.Words {
		return perTerm{w}
	}})}},
	{"a passage with several terms is one", wrong{tx: inTx(wrongTx{words: func(w db.Words) db.Words {
		return perTermMemories{w}
	}})}},
	{"a passage with several terms is one", wrong{tx: inTx(wrongTx{words: func(w db.Words) db.Words {
		return repeating{w}
	}})}},
	{"long results are whole and in order", wrong{tx: inTx(wrongTx{rows: func(r db.Rows) db.Rows {
		return paged{r, new(int)}
	}})}},
	{"words, vectors and changes of many memories", wrong{tx: inTx(wrongTx{words: func(w db.Words) db.Words {
		return few{w}
	}})}},
	{"a result that fails in its middle says so", wrong{tx: inTx(wrongTx{rows: func(r db.Rows) db.Rows {
		return silent{r}
	}})}},
	{"a result that fails in its middle says so", wrong{tx: inTx(wrongTx{each: func(error) error { return nil }})}},
	{"only the current row is scanned", wrong{tx: inTx(wrongTx{rows: func(r db.Rows) db.Rows {
		moved, more := true, r.Next()
		return eager{r, &moved, &more}
	}})}},
	{"a statement counts its rows", wrong{tx: inTx(wrongTx{exec: func(r db.Result) db.Result {
		return db.Result{RowsAffected: max(r.RowsAffected, 1)}
	}})}},
	{"references that do not hold at the commit", wrong{written: func(err error) error {
		if errors.Is(err, db.ErrForeignKey) {
			return nil
		}
		return err
	}}},
	{"references that do not hold at the commit", wrong{written: func(err error) error {
		if errors.Is(err, db.ErrForeignKey) {
			return db.ErrBusy
		}
		return err
	}}},
	{"a savepoint undoes its part alone", wrong{tx: func(tx db.Tx) db.Tx { return undoesNothing{tx} }}},
	{"rows that are queued", wrong{tx: func(tx db.Tx) db.Tx { return forgetful{tx} }}},
	{"an error undoes the work of its Write alone", wrong{write: (&outside{words: true}).Write}},
	{"an error undoes the work of its Write alone", wrong{write: (&outside{queued: true}).Write}},
	{"changes are complete, or say that they are not", wrong{tx: func(tx db.Tx) db.Tx { return missing{tx} }}},
	{"a Write that runs again sees none of its first run", wrong{write: twice()}},
	{"a Write that adds what it did not find runs again", wrong{write: staleWrite}},
	{"a Read sees one snapshot", wrong{read: func(ctx context.Context, d db.DB, fn func(db.Tx) error) error {
		return d.Read(ctx, func(tx db.Tx) error { return fn(newest{tx, d}) })
	}}},
	{"a call within a call does not wait for itself",
		wrong{read: func(ctx context.Context, d db.DB, fn func(db.Tx) error) error { return d.Read(bare{ctx}, fn) }}},
	{"a call within a call does not wait for itself",
		wrong{write: func(ctx context.Context, d db.DB, fn func(db.Tx) error) error { return d.Write(bare{ctx}, fn) }}},
	{"a call ends soon after its context", wrong{read: func(ctx context.Context, d db.DB, fn func(db.Tx) error) error {
		if err := d.Read(ctx, fn); ctx.Err() == nil || errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return db.ErrInterrupted
	}}},
	{"a call whose context ends in its function stores nothing",
		wrong{write: func(ctx context.Context, d db.DB, fn func(db.Tx) error) error {
			err := d.Write(context.WithoutCancel(ctx), fn)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return err
		}}},
	{"a call ends soon after its context", wrong{written: func(err error) error {
		if errors.Is(err, context.Canceled) {
			return db.ErrInterrupted
		}
		return err
	}}},
}

// inProcess is the environment variable of the process that runs the tests with the wrong engines.
const inProcess = "SOUVENIR_TEST_WRONG_ENGINES"

// TestWrongEngines runs one test with each wrong engine, where it must fail, and with a sound engine in the same
// wrapper. It runs in its own process.
func TestWrongEngines(t *testing.T) {
	if os.Getenv(inProcess) == "" {
		t.Skip("its tests fail; TestFaultsAreFound looks at them")
	}
	run := func(name, finds string, w wrong) {
		t.Run(name, func(t *testing.T) {
			all := dbtest.Tests(dbtest.Engine{})
			i := slices.IndexFunc(all, func(c dbtest.Test) bool { return c.Name == finds })
			file, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "wrong.db"),
				ApplicationID: 0x534f5556, Migrations: sqlite.Migrations(), LockTimeout: 500 * time.Millisecond})
			if err != nil || i < 0 {
				t.Skipf("got the error %v and test %d, want a test with an engine", err, i)
			}
			defer file.Close()
			w.DB = file
			all[i].Run(t, w)
		})
	}
	for i, w := range wrongs {
		run("wrong", w.finds, w.wrong)
		if i == 0 || w.finds != wrongs[i-1].finds {
			run("sound", w.finds, wrong{tx: inTx(wrongTx{})})
		}
	}
}

// weak are tests that find a database whose Writes are isolated less than serializable, by isolation level.
var weak = map[string][]string{
	"repeatable read": {"Writes do not overlook each other", "a Write that finds nothing is not alone in that"},
	"read committed": {"Writes do not overlook each other", "a Write that finds nothing is not alone in that",
		"a Write that runs again sees none of its first run", "a function that ignores a conflict runs again"},
}

// TestWeakEngines runs tests on PostgreSQL behind a proxy that removes the isolation level from each Write.
func TestWeakEngines(t *testing.T) {
	if os.Getenv(inProcess) == "" {
		t.Skip("its tests fail; TestFaultsAreFound looks at them")
	}
	pgtest.NotOnCitus(t, "its coordinator begins transactions of its own")
	for isolation, finds := range weak {
		for _, c := range dbtest.Tests(dbtest.Engine{Reruns: true}) {
			if !slices.Contains(finds, c.Name) {
				continue
			}
			t.Run("wrong", func(t *testing.T) {
				for try := 0; try < 3 && !t.Failed(); try++ { // the fault depends on timing
					proxy := pgtest.NewProxy(t, pgtest.Address(t))
					d, err := postgres.Open(t.Context(),
						proxy.Address+"&default_transaction_isolation="+url.PathEscape(isolation), db.Opening{Readers: 4})
					if err != nil {
						t.Skip(err)
					}
					proxy.Weak.Store(true)
					c.Run(t, d)
					_ = d.Close()
				}
			})
		}
	}
}

// TestWrongMarks runs tests on PostgreSQL with marks that miss changes, of all Writes or of those of other processes.
func TestWrongMarks(t *testing.T) {
	if os.Getenv(inProcess) == "" {
		t.Skip("its tests fail; TestFaultsAreFound looks at them")
	}
	open := func(t *testing.T, address string, running *atomic.Int32) db.DB {
		d, err := postgres.Open(t.Context(), address, db.Opening{Readers: 4})
		if err != nil {
			t.Skip(err)
		}
		return byHighest(d, running)
	}
	for _, c := range dbtest.Tests(dbtest.Engine{Reruns: true}) {
		if c.Name == "changes of a Write that commits late are not missed" {
			t.Run("wrong", func(t *testing.T) {
				d := open(t, pgtest.Address(t), nil)
				defer d.Close()
				c.Run(t, d)
			})
		}
	}
	for _, c := range dbtest.Others {
		if c.Name == "changes of another handle's Write that commits late are not missed" {
			t.Run("wrong", func(t *testing.T) {
				address := pgtest.Address(t)
				handle := func(t *testing.T) db.DB { return open(t, address, new(atomic.Int32)) }
				second := func(t *testing.T, _ db.DB) db.DB { return handle(t) }
				c.Run(t, dbtest.Engine{Reruns: true, Open: handle, Second: second})
			})
		}
	}
}

// TestFaultsAreFound checks that the contract finds the faults of wrong engines.
func TestFaultsAreFound(t *testing.T) {
	longtest.Only(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), program, "-test.run=^(TestWrong(Engines|Marks)|TestWeakEngines)$", "-test.v",
		"-test.timeout=120s")
	run.Env = append(os.Environ(), inProcess+"=1")
	out, err := run.CombinedOutput()
	found := strings.Count(string(out), "--- FAIL: TestWrongEngines/wrong")
	sound := strings.Count(string(out), "--- PASS: TestWrongEngines/sound")
	wanted, weaklyFound := 0, strings.Count(string(out), "--- FAIL: TestWeakEngines/wrong")
	if os.Getenv(pgtest.Variable) != "" && !pgtest.OnCitus() {
		wanted = len(weak["repeatable read"]) + len(weak["read committed"])
		if marks := strings.Count(string(out), "--- FAIL: TestWrongMarks/wrong"); marks != 2 {
			t.Errorf("got %d tests that find wrong marks, want 2; the output is:\n%s", marks, out)
		}
	}
	if weaklyFound != wanted {
		t.Errorf("got %d tests that find a weak isolation, want %d; the output is:\n%s", weaklyFound, wanted, out)
	}
	if err == nil || found != len(wrongs) || sound < 9 || strings.Contains(string(out), "panic:") {
		t.Errorf("got %d wrong engines that are found and %d sound ones that pass, want %d and 9; the output is:\n%s",
			found, sound, len(wrongs), out)
	}
}
