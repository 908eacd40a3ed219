package souvenir

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/records/activitylog"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// While another process holds the file locked, recorded calls wait. If too many wait, the oldest are dropped and
// counted.
func TestRecordedCallsWaitForALockedFile(t *testing.T) {
	longtest.Only(t)
	path := filepath.Join(t.TempDir(), "held.db")
	s, other := openWords(t, path, Options{}), openWords(t, path, Options{})
	const calls = activitylog.Room + 3*activitylog.Batch
	over := errors.New("undone")
	err := other.db.Write(t.Context(), func(tx db.Tx) error {
		if _, err := tx.Exec(`UPDATE setting SET value = value`); err != nil {
			return err
		}
		for i := range calls {
			if err := s.Upkeep().RecordActivity(t.Context(), NewActivity{Tool: fmt.Sprint("t", i)}); err != nil {
				return err
			}
		}
		return over
	})
	if !errors.Is(err, over) {
		t.Fatalf("got %v, want %v", err, over)
	}
	page, err := s.Insights().ActivityPage(t.Context(), ActivityQuery{Limit: 1})
	if err != nil || page.Activities[0].Tool != fmt.Sprint("t", calls-1) {
		t.Errorf("the newest call is %+v, %v, want no error and tool %v", page.Activities, err, fmt.Sprint("t", calls-1))
	}
	stats, err := s.Upkeep().Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kept := countRows(t, s, `SELECT count(*) FROM activity`)
	if stats.LostActivity < activitylog.Batch || kept+stats.LostActivity != calls {
		t.Errorf("%d calls are lost and %d are kept, want at least %d lost, and %d lost or kept", stats.LostActivity, kept,
			activitylog.Batch, calls)
	}
	if newest := countRows(t, s, fmt.Sprintf(`SELECT count(*) FROM activity WHERE CAST(substr(tool, 2) AS INTEGER) >= %d`,
		calls-activitylog.Room+activitylog.Batch)); newest != activitylog.Room-activitylog.Batch {
		t.Errorf("of the newest calls %d are kept, want %v", newest, activitylog.Room-activitylog.Batch)
	}
}

// unanswered is an engine that commits but, while lost is set, reports an unknown outcome.
type unanswered struct {
	db.DB
	lost bool
}

func (d *unanswered) Write(ctx context.Context, fn func(db.Tx) error) error {
	if err := d.DB.Write(ctx, fn); err != nil || !d.lost {
		return err
	}
	return db.ErrOutcomeUnknown
}

// Calls whose commit went unanswered are written again but recorded only once. Later calls are recorded, too.
func TestCallsOfALostAnswerAreRecordedOnce(t *testing.T) {
	s := openWords(t, "", Options{})
	s.worker.Stop() // so that only this test writes
	s.activity.Stop()
	s.activity = activitylog.New(s.writeActivities, s.log)
	engine := &unanswered{DB: s.db.DB, lost: true}
	s.db.DB = engine
	record := func(tool string) {
		t.Helper()
		if err := s.Upkeep().RecordActivity(t.Context(), NewActivity{Tool: tool}); err != nil {
			t.Fatal(err)
		}
	}
	record("one")
	if err := s.activity.Flush(t.Context()); !errors.Is(err, db.ErrOutcomeUnknown) {
		t.Fatalf("calls whose commit is not answered: got %v, want %v", err, db.ErrOutcomeUnknown)
	}
	engine.lost = false
	record("two")
	if err := s.activity.Flush(t.Context()); err != nil {
		t.Fatalf("the same calls again: got %v, want no error", err)
	}
	if n := countRows(t, s, `SELECT count(*) FROM activity`); n != 2 {
		t.Errorf("recorded calls: got %d, want 2", n)
	}
}

func countRows(t *testing.T, s *Store, query string) (n int) {
	t.Helper()
	err := s.db.Read(t.Context(), func(tx db.Tx) error { return tx.QueryRow(query).Scan(&n) })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestCheckFindsImpossibleCalls(t *testing.T) {
	longtest.Only(t)
	for _, damage := range []string{
		`UPDATE activity SET user_uid = ''`, `UPDATE activity SET client = CAST(x'ff' AS TEXT)`,
		`UPDATE activity SET tool = ''`,
		`UPDATE activity SET outcome = 'well'`, `UPDATE activity SET started_at = 9223372036854775807`,
	} {
		s := openWords(t, filepath.Join(t.TempDir(), "damaged.db"), Options{})
		recordCalls(t, s, NewActivity{Tool: "memory"})
		if report := mustCheck(t, s, nil); !report.OK || report.Checked["activity"] != 1 {
			t.Fatalf("before the damage: %+v, want OK and activity 1", report)
		}
		statements(t, s, damage)
		if report := mustCheck(t, s, nil); report.OK || report.Findings[0].Table != "activity" {
			t.Errorf(`after %s: %+v, want not OK and table "activity"`, damage, report)
		}
	}
}

func TestBadOptionsOfActivityAreRefused(t *testing.T) {
	for argument, o := range map[string]Options{"KeepActivity": {KeepActivity: -1}, "MaxActivity": {MaxActivity: -1}} {
		_, err := Open(t.Context(), ":memory:", &o)
		var known *Error
		if !errors.As(err, &known) || known.Kind != KindInvalid || known.Argument != argument {
			t.Errorf("got %v, want an error of kind %v about argument %v", err, KindInvalid, argument)
		}
	}
}

// The kinds are read from the source, so that a new one cannot be left out.
func TestOutcomesHasEveryKindOfError(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "internal/fault/fault.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	kinds := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || fmt.Sprint(spec.Type) != "Kind" {
			return true
		}
		kinds++
		kind, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		outcome := OutcomeOf(&Error{Kind: Kind(kind)})
		if !slices.Contains(Outcomes(), outcome) {
			t.Errorf("Outcomes() has no %q, want it: an error of kind %q ends a call with it", outcome, kind)
		}
		if err := (&ActivityQuery{Outcome: outcome}).check(); err != nil {
			t.Errorf("calls with the outcome %q cannot be listed: got %v, want no error", outcome, err)
		}
		return true
	})
	if kinds == 0 {
		t.Error("no kinds found, want those of internal/fault/fault.go")
	}
}

func BenchmarkRecordActivity(b *testing.B) {
	s, err := Open(b.Context(), filepath.Join(b.TempDir(), "bench.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	call := NewActivity{
		Principal: Principal{Access: Access{User: "ann"}, TokenID: "0190a5f2-0000-7000-8000-000000000000"},
		Client:    "claude-code/2.0.14", Tool: "memory", Action: "search",
		Project: ProjectRef{ID: "apollo"},
	}
	for b.Loop() {
		if err := s.Upkeep().RecordActivity(b.Context(), call); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWriteActivities measures the background write of a call's record.
func BenchmarkWriteActivities(b *testing.B) {
	s, err := Open(b.Context(), filepath.Join(b.TempDir(), "bench.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for b.Loop() {
		for range activitylog.Batch {
			if err := s.Upkeep().RecordActivity(b.Context(),
				NewActivity{Principal: Principal{TokenID: "t"}, Client: "claude-code/2.0.14", Tool: "memory",
					Action: "search"}); err != nil {
				b.Fatal(err)
			}
		}
		if err := s.activity.Flush(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/activitylog.Batch, "µs/call")
}
