package dbtest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/longtest"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// wrong is an engine with a fault: a sound one, of which some parts are replaced.
type wrong struct {
	db.DB
	tx      func(tx db.Tx) db.Tx
	read    func(ctx context.Context, d db.DB, fn func(db.Tx) error) error
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
	err := w.DB.Write(ctx, func(tx db.Tx) error { return fn(w.around(tx)) })
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

// wrongTx is a transaction of which some parts are replaced.
type wrongTx struct {
	db.Tx
	words   func(db.Words) db.Words
	vectors func(db.Vectors) db.Vectors
	rows    func(db.Rows) db.Rows
	each    func(err error) error
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

// wider counts and finds words beyond the borders of a range.
type wider struct {
	db.Words
	before, after int64
}

func (w wider) Count(in db.Range, terms []string) (int, error) {
	return w.Words.Count(db.Range{First: in.First - w.before, Last: in.Last + w.after}, terms)
}

// perTerm counts each term by itself.
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

// repeating names each of the best once for each term.
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

// few finds some at most.
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

// wrongs are engines with a fault each, by the test that finds it.
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
	{"a call ends soon after its context", wrong{read: func(ctx context.Context, d db.DB, fn func(db.Tx) error) error {
		if err := d.Read(ctx, fn); ctx.Err() == nil || errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return db.ErrInterrupted
	}}},
	{"a call ends soon after its context", wrong{written: func(err error) error {
		if errors.Is(err, context.Canceled) {
			return db.ErrInterrupted
		}
		return err
	}}},
}

// inProcess is the variable of the process in which the tests run with the wrong engines.
const inProcess = "SOUVENIR_TEST_WRONG_ENGINES"

// TestWrongEngines runs one test with each wrong engine, which fails, and with a sound one within the same wrapping. It
// runs in a process of its own.
func TestWrongEngines(t *testing.T) {
	if os.Getenv(inProcess) == "" {
		t.Skip("its tests fail; TestFaultsAreFound looks at them")
	}
	run := func(name, finds string, w wrong) {
		t.Run(name, func(t *testing.T) {
			all := tests(Engine{})
			i := slices.IndexFunc(all, func(c test) bool { return c.name == finds })
			file, err := sqlite.Open(t.Context(),
				sqlite.Config{Path: ":memory:", ApplicationID: 0x534f5556, Migrations: sqlite.Migrations()})
			if err != nil || i < 0 {
				t.Skipf("got the error %v and test %d, want a test with an engine", err, i)
			}
			defer file.Close()
			w.DB = file
			all[i].run(t, w)
		})
	}
	for i, w := range wrongs {
		run("wrong", w.finds, w.wrong)
		if i == 0 || w.finds != wrongs[i-1].finds {
			run("sound", w.finds, wrong{tx: inTx(wrongTx{})})
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
	run := exec.CommandContext(t.Context(), program, "-test.run=^TestWrongEngines$", "-test.v", "-test.timeout=120s")
	run.Env = append(os.Environ(), inProcess+"=1")
	out, err := run.CombinedOutput()
	found := strings.Count(string(out), "--- FAIL: TestWrongEngines/wrong")
	sound := strings.Count(string(out), "--- PASS: TestWrongEngines/sound")
	if err == nil || found != len(wrongs) || sound < 7 || strings.Contains(string(out), "panic:") {
		t.Errorf("got %d wrong engines that are found and %d sound ones that pass, want %d and 7; the output is:\n%s",
			found, sound, len(wrongs), out)
	}
}

// TestTheGuideNamesEachTest checks that docs/engines.md says at which step an engine must pass each test.
func TestTheGuideNamesEachTest(t *testing.T) {
	content, err := os.ReadFile("../../../docs/engines.md")
	if err != nil {
		t.Fatal(err)
	}
	guide := strings.Join(strings.Fields(string(content)), " ")
	for _, c := range tests(Engine{}) {
		if !strings.Contains(guide, c.name) {
			t.Errorf("docs/engines.md: got no test %q in a step, want each", c.name)
		}
	}
}
