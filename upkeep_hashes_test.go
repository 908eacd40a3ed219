package souvenir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/inspect"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/recovery"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/storefile"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// behindTheBack runs SQL without triggers on a store's file, as a failing disk would change it.
func behindTheBack(tb testing.TB, path, statement string) (rows int64) {
	tb.Helper()
	config := storefile.Config(path, time.Now)
	config.Hashed = nil
	file, err := sqlite.Open(context.Background(), config)
	if err != nil {
		tb.Fatal(err)
	}
	err = file.Write(context.Background(), func(tx db.Tx) error {
		r, err := tx.Exec(statement)
		rows = r.RowsAffected
		return err
	})
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		tb.Fatalf("%s: %v", statement, err)
	}
	return rows
}

// migrationNames returns the files of the schema.
func migrationNames(tb testing.TB) []string {
	tb.Helper()
	names, err := fs.Glob(sqlite.Migrations(), "*.sql")
	if err != nil {
		tb.Fatal(err)
	}
	return names
}

func isDamaged(r CheckReport, table string) bool {
	return slices.ContainsFunc(r.Damaged, func(d DamagedRow) bool { return d.Table == table })
}

func TestEveryTableHasHashesOrIsKnownToHaveNone(t *testing.T) {
	without := map[string]string{
		"setting": "the store's own", "profile": "checked against what it is made of", "passage": "made again",
		"turn": "made again", "memory_own": "made again",
		"change":   "for indexes",
		"row_hash": "the hashes", "file_chunk": "has a SHA-256 of its own", "session": "ends soon", "oauth_code": "ends soon",
		"oauth_token":        "ends soon",
		"project_invitation": "ends soon", "declined_invitation": "ends soon",
		"activity": "a log", "shared_state": "ends soon",
		"segmented": "made again", "segment": "has a checksum of its own", "segment_stale": "made again",
		"file_object": "made again",
	}
	s := openWords(t, "", Options{})
	err := s.db.Read(t.Context(), func(tx db.Tx) error {
		names, err := db.Column[string](tx,
			`SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND strict`)
		for _, name := range names {
			i := slices.IndexFunc(kernel.HashedTables(), func(h kernel.HashedTable) bool { return h.Name == name })
			if _, known := without[name]; known == (i >= 0) {
				t.Errorf("the rows of the table %s have hashes: %v; it is in the list of those without: %v. Choose, want "+
					"it in one place", name, i >= 0,
					known)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[int]string{}
	for _, h := range kernel.HashedTables() {
		if kinds[h.Kind] != "" {
			t.Errorf("%s and %s have the number %d, want none", kinds[h.Kind], h.Name, h.Kind)
		}
		kinds[h.Kind] = h.Name
	}
}

func TestAChangeInAnyColumnIsFound(t *testing.T) {
	s := openRich(t)
	path := s.db.Upkeep().Path
	type column struct{ table, name, kind string }
	var columns []column
	err := s.db.Read(t.Context(), func(tx db.Tx) error {
		for _, h := range kernel.HashedTables() {
			names, err := kernel.HashedColumns(tx, h)
			if err != nil {
				return err
			}
			for _, name := range names {
				var kind string
				if err := tx.QueryRow(`SELECT type FROM pragma_table_info(?) WHERE name = ?`, h.Name,
					name).Scan(&kind); err != nil {
					return err
				}
				columns = append(columns, column{h.Name, name, kind})
			}
		}
		return nil
	})
	if err != nil || len(columns) < 90 {
		t.Fatalf("%d columns, %v; want at least 90", len(columns), err)
	}
	if report := mustCheck(t, s, nil); !report.OK || report.Verified < 50 || report.Unverified != 0 ||
		report.Damaged == nil {
		t.Fatalf("before any damage: %+v, want OK, at least 50 rows verified, none unverified and an empty list of damage",
			report)
	}
	config := storefile.Config(path, time.Now)
	config.Hashed = nil
	file, err := sqlite.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	damages := 0
	for i, c := range columns {
		if !longtest.Part(i, 5, 10) {
			continue
		}
		// A large number added, the last byte replaced, or a byte appended.
		value := map[string]string{
			"INTEGER": `"%[2]s" + (1 << 41)`,
			"TEXT":    `CAST(substr(CAST("%[2]s" AS BLOB), 1, length(CAST("%[2]s" AS BLOB)) - 1) || CAST('#' AS BLOB) AS TEXT)`,
			"BLOB":    `CAST("%[2]s" || x'00' AS BLOB)`,
		}[c.kind]
		one := fmt.Sprintf(`UPDATE OR IGNORE "%[1]s" SET "%[2]s" = `+value+
			` WHERE "%[2]s" IS (SELECT max("%[2]s") FROM "%[1]s" WHERE length("%[2]s") > 0) AND "%[2]s" IS NOT NULL`, c.table,
			c.name)
		err := file.Write(t.Context(), func(tx db.Tx) error {
			if err := tx.(*sqlite.Tx).ExecScript(
				`PRAGMA ignore_check_constraints = ON; PRAGMA defer_foreign_keys = ON`); err != nil {
				return err
			}
			if r, err := tx.Exec(one); err != nil {
				return err
			} else if r.RowsAffected == 0 {
				return errUndone // no row has a value there, or the value must be unique
			}
			damages++
			report, err := inspect.Hashes(tx)
			if err != nil {
				return err
			}
			if len(report.Damaged) == 0 && report.Unverified == 0 {
				t.Errorf("%s: nothing is found, want damage or a row not verified", one)
			}
			return errUndone
		})
		if err != errUndone { //nolint:errorlint // this very error
			t.Errorf("%s: got %v, want %v", one, err, errUndone)
		}
	}
	if least := 70; damages < least && longtest.All() {
		t.Errorf("%d damages of %d columns, want more", damages, len(columns))
	}
}

func TestFlippedBytesAreNamedAndNeverRepairedAway(t *testing.T) {
	longtest.Only(t)
	path := filepath.Join(t.TempDir(), "flipped.db")
	s := openWords(t, path, Options{})
	m := mustAdd(t, s, NewMemory{Content: "The deploy window is Tuesday 14:00 UTC.", Tags: []string{"window"}})
	if _, err := s.UpdateMemory(t.Context(), m.ID,
		MemoryUpdate{Content: content("The deploy window is Thursday 15:00 UTC.")}); err != nil {
		t.Fatal(err)
	}
	behindTheBack(t, path, `UPDATE memory SET content = replace(content, '15:00', '16:00')`)
	for _, o := range []*CheckOptions{nil, {Repair: true}, {Repair: true}} {
		report := mustCheck(t, s, o)
		if report.OK || !slices.Contains(report.Damaged, DamagedRow{Table: "memory", Row: 1, ID: m.ID}) {
			t.Fatalf("got %+v: %+v, want not OK and %v among the damaged", o, report,
				DamagedRow{Table: "memory", Row: 1, ID: m.ID})
		}
		i := slices.IndexFunc(report.Findings, func(f Finding) bool { return f.Table == "memory" })
		if f := report.Findings[i]; f.Repairable || f.Repaired || f.ID != m.ID ||
			!strings.Contains(f.Problem, "differs from what was stored") ||
			!strings.Contains(f.Problem, "revision 1 is intact") {
			t.Errorf("got %+v, want damage of the memory that nothing repairs, and an intact revision", f)
		}
	}
	// An update or a deletion of a damaged memory does not hide the damage, neither in the memory nor in its past
	// version.
	if _, err := s.UpdateMemory(t.Context(), m.ID,
		MemoryUpdate{ShownMetadata: map[string]any{"importance": "high"}}); err != nil {
		t.Fatal(err)
	}
	report := mustCheck(t, s, nil)
	if !isDamaged(report, "memory") || !isDamaged(report, "memory_revision") {
		t.Errorf("after an update: %+v, want memory and memory_revision damaged", report)
	}
	if _, err := s.Upkeep().Check(t.Context(), &CheckOptions{Accept: true}); err == nil {
		t.Error("Accept without Repair is accepted, want an error")
	}
	report = mustCheck(t, s, &CheckOptions{Repair: true, Accept: true})
	if !report.OK || report.Total == 0 || report.Repaired != report.Total || len(report.Damaged) != 0 {
		t.Errorf("accepted: %+v, want OK, all findings repaired, at least one, and no damage left", report)
	}
	if report := mustCheck(t, s, nil); !report.OK || report.Total != 0 {
		t.Errorf("after that: %+v, want OK and total 0", report)
	}
	behindTheBack(t, path, `UPDATE memory_tag SET tag = 'widow'`)
	if report := mustCheck(t, s, nil); report.OK ||
		!slices.Contains(report.Damaged, DamagedRow{Table: "memory_tag", Row: 1, ID: m.ID}) {
		t.Errorf("a tag: %+v, want not OK and %v among the damaged", report,
			DamagedRow{Table: "memory_tag", Row: 1, ID: m.ID})
	}
	if err := s.DeleteMemory(t.Context(), m.ID, nil); err != nil {
		t.Fatal(err)
	}
	behindTheBack(t, path, `DELETE FROM row_hash WHERE kind IN (7, 8)`)
	if report := mustCheck(t, s, nil); !report.OK {
		t.Errorf("when it is deleted: %+v, want OK", report)
	}
}

func TestLostRowsAreNamedAndTheirDependentsStay(t *testing.T) {
	longtest.Only(t)
	path := filepath.Join(t.TempDir(), "lost.db")
	s, err := Open(t.Context(), path, &Options{Embedder: wordEmbedder("words-1")})
	if err != nil {
		t.Fatal(err)
	}
	id := varied(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	withoutReferencesOrHashes(t, path, `DELETE FROM memory WHERE content LIKE 'ä%'`)
	s = openWords(t, path, Options{})
	report := mustCheck(t, s, &CheckOptions{Repair: true})
	i := slices.IndexFunc(report.Damaged, func(d DamagedRow) bool { return d.Table == "memory" })
	if report.OK || i < 0 || !report.Damaged[i].Lost {
		t.Fatalf("got %+v, want not OK and a damaged row that is lost", report)
	}
	var revisions int
	if err := s.db.Read(t.Context(),
		func(tx db.Tx) error { return tx.QueryRow(`SELECT count(*) FROM memory_revision`).Scan(&revisions) }); err != nil ||
		revisions != 2 {
		t.Errorf("memory %s has %d past versions, want 2: %v", id, revisions, err)
	}
	for range 2 { // once the loss is accepted, its dependents are deleted
		report = mustCheck(t, s, &CheckOptions{Repair: true, Accept: true})
	}
	if !report.OK {
		t.Errorf("accepted: %+v, want OK", report)
	}
}

func TestRowsWithoutAHashAreNotCalledSound(t *testing.T) {
	longtest.Only(t)
	path := filepath.Join(t.TempDir(), "unverified.db")
	s := openWords(t, path, Options{})
	varied(t, s)
	behindTheBack(t, path, `DELETE FROM row_hash WHERE kind = 6`)
	report := mustCheck(t, s, &CheckOptions{Repair: true})
	if report.OK || report.Unverified != 7 || len(report.Damaged) != 0 {
		t.Errorf("got %+v, want not OK, 7 rows unverified and none damaged", report)
	}
	if report = mustCheck(t, s, &CheckOptions{Repair: true, Accept: true}); !report.OK || report.Unverified != 0 {
		t.Errorf("accepted: %+v, want OK and unverified 0", report)
	}
}

func TestOldFilesGetHashesAndKeepTheirDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "older.db")
	s, err := Open(t.Context(), path, &Options{Embedder: wordEmbedder("words-1"), Now: sealedClock})
	if err != nil {
		t.Fatal(err)
	}
	varied(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	reopen := func(change string) (report inspect.Report) {
		t.Helper()
		behindTheBack(t, path, change)
		migrations := fstest.MapFS{}
		for i := range len(migrationNames(t)) {
			migrations[fmt.Sprintf("%04d_m.sql", i+1)] = &fstest.MapFile{Data: []byte("SELECT 1")}
		}
		migrations[fmt.Sprintf("%04d_next.sql", len(migrations)+1)] = &fstest.MapFile{Data: []byte(
			`ALTER TABLE memory ADD COLUMN extra TEXT; UPDATE memory SET extra = 'x' WHERE id = 1; UPDATE memory ` +
				`SET updated_at = updated_at + 1`)}
		config := storefile.Config(path, sealedClock)
		config.Migrations = migrations
		file, err := sqlite.Open(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		err = file.Read(t.Context(), func(tx db.Tx) error { report, err = inspect.Hashes(tx); return err })
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	report := reopen(`UPDATE memory SET content = content || '!' WHERE id = 2`)
	if len(report.Damaged) != 1 || report.Damaged[0].Row != 2 || report.Unverified != 0 || !report.HashedSince.IsZero() {
		t.Errorf("a newer schema: %+v, want one damaged row, row 2, none unverified and no time since when rows "+
			"have hashes", report)
	}
}

// A renamed table keeps its hashes: the renaming does not hide earlier damage.
func TestHashesOutliveTheRenamingOfTheirTable(t *testing.T) {
	longtest.Only(t)
	path := filepath.Join(t.TempDir(), "old.db")
	config := storefile.Config(path, sealedClock)
	config.Migrations = recovery.Migrations(config.Migrations, 19)
	write := func(statement string) {
		t.Helper()
		file, err := sqlite.Open(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		err = file.Write(t.Context(), func(tx db.Tx) error {
			_, err := tx.Exec(statement)
			return err
		})
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
	}
	write(`INSERT INTO user (id, uid, email, created_at) ` +
		`VALUES (1, 'ann', 'ann@example.com', 1), (2, 'ben', 'ben@example.com', 1)`)
	config.Hashed = nil // without the hashes
	write(`UPDATE user SET email = 'eve@example.com' WHERE id = 2`)
	s := openWords(t, path, Options{})
	report := mustCheck(t, s, nil)
	if len(report.Damaged) != 1 || report.Damaged[0].Table != "users" || report.Damaged[0].Row != 2 ||
		report.Unverified != 0 {
		t.Errorf("damaged: got %+v, %d unverified; want row 2 of users, 0", report.Damaged, report.Unverified)
	}
	mustAdd(t, s.As(Access{User: "ann"}), NewMemory{Content: "still mine"})
	if got := len(idsOf(t, s.As(Access{User: "ann"}))); got != 1 {
		t.Errorf("got %d memories of ann, want 1", got)
	}
}

func TestAFileWithoutHashesGetsThemWhenItIsOpened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "first.db")
	s, err := Open(t.Context(), path, &Options{Embedder: wordEmbedder("words-1")})
	if err != nil {
		t.Fatal(err)
	}
	varied(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	behindTheBack(t, path, `DELETE FROM row_hash`)
	config := storefile.Config(path, sealedClock)
	config.Hashed = nil
	file, err := sqlite.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Write(t.Context(),
		func(tx db.Tx) error { return kernel.MakeHashes(tx, 11, sealedClock().UnixMicro()) }); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	s = openWords(t, path, Options{})
	if report := mustCheck(t, s, nil); !report.OK || !report.HashedSince.Equal(sealedClock()) || report.Verified < 20 {
		t.Errorf("got %+v, want OK, with hashes since the migration and at least 20 rows verified", report)
	}
}

func TestHashesAreKeptAfterCompacting(t *testing.T) {
	longtest.Only(t)
	s := openWords(t, filepath.Join(t.TempDir(), "compact.db"), Options{})
	id := varied(t, s)
	if err := s.Upkeep().Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustAdd(t, s, NewMemory{Content: "after that", Tags: []string{"a", "b"}})
	if err := s.DeleteMemory(t.Context(), id, nil); err != nil {
		t.Fatal(err)
	}
	if report := mustCheck(t, s, nil); !report.OK {
		t.Errorf("got %+v, want OK", report)
	}
}

func TestADamagedLinkInTheTrashIsFound(t *testing.T) {
	longtest.Only(t)
	path := filepath.Join(t.TempDir(), "trash.db")
	s := openWords(t, path, Options{})
	target := mustAdd(t, s, NewMemory{Content: "the calendar"})
	m := mustAdd(t, s, NewMemory{Content: "the plan", Related: []string{target.ID}})
	if err := s.DeleteMemory(t.Context(), m.ID, nil); err != nil {
		t.Fatal(err)
	}
	if report := mustCheck(t, s, nil); !report.OK {
		t.Fatalf("before the damage: %+v, want OK", report)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if rows := behindTheBack(t, path, `UPDATE trash_link SET target = 'another'`); rows != 1 {
		t.Fatalf("%d links were damaged, want 1", rows)
	}
	s = openWords(t, path, Options{})
	if report := mustCheck(t, s, nil); report.OK || !isDamaged(report, "trash_link") {
		t.Errorf("after the damage: %+v, want not OK and trash_link damaged", report)
	}
}
