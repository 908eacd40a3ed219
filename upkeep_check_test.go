package souvenir

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/storefile"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// damage runs raw SQL on a store's file.
func damage(tb testing.TB, s *Store, statements ...string) {
	tb.Helper()
	err := s.db.Write(context.Background(), func(tx db.Tx) error {
		for _, statement := range statements {
			if err := tx.(*sqlite.Tx).ExecScript(statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
}

var referenceClause = regexp.MustCompile(`\s*REFERENCES "?\w+"? \(id\)( ON DELETE (CASCADE|SET NULL))?`)

// withoutReferences runs raw SQL on a closed store's file, as if its tables had no foreign keys.
func withoutReferences(tb testing.TB, path string, statement string) {
	tb.Helper()
	withoutReferencesIn(tb, storefile.Config(path, time.Now), statement)
}

// withoutReferencesOrHashes does so without updating the hashes.
func withoutReferencesOrHashes(tb testing.TB, path string, statement string) {
	tb.Helper()
	config := storefile.Config(path, time.Now)
	config.Hashed = nil
	withoutReferencesIn(tb, config, statement)
}

func withoutReferencesIn(tb testing.TB, config sqlite.Config, statement string) {
	tb.Helper()
	write := func(fn func(tx db.Tx) error) {
		tb.Helper()
		file, err := sqlite.Open(context.Background(), config)
		if err == nil {
			err = errors.Join(file.Write(context.Background(), fn), file.Close())
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	tables := map[string]string{} // name -> its CREATE statement
	setTables := func(tx db.Tx, change func(sql string) string) error {
		var version int
		if err := tx.QueryRow(`PRAGMA schema_version`).Scan(&version); err != nil {
			return err
		}
		if err := tx.(*sqlite.Tx).ExecScript(`PRAGMA writable_schema = ON`); err != nil {
			return err
		}
		for name, sql := range tables {
			if _, err := tx.Exec(`UPDATE sqlite_schema SET sql = ? WHERE type = 'table' AND name = ?`, change(sql),
				name); err != nil {
				return err
			}
		}
		return tx.(*sqlite.Tx).ExecScript(fmt.Sprintf(`PRAGMA schema_version = %d`, version+1))
	}
	write(func(tx db.Tx) error {
		if err := tx.Each(func(row db.Rows) error {
			var name, sql string
			err := row.Scan(&name, &sql)
			tables[name] = sql
			return err
		}, `SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%REFERENCES%'`); err != nil {
			return err
		}
		return setTables(tx, func(sql string) string { return referenceClause.ReplaceAllString(sql, "") })
	})
	write(func(tx db.Tx) error { return tx.(*sqlite.Tx).ExecScript(statement) })
	write(func(tx db.Tx) error { return setTables(tx, func(sql string) string { return sql }) })
}

// varied stores memories of every kind and returns the id of one.
func varied(tb testing.TB, s *Store) string {
	tb.Helper()
	ctx := context.Background()
	first := mustAdd(tb, s, NewMemory{Content: "ä kettle w17 besides", Tags: []string{"t3", "kitchen things"},
		ProjectName: "p", Importance: ImportanceHigh})
	mustImport(tb, s, `{"type":"memory","content":" \n ","metadata":{"related_memory_ids":["`+first.ID+
		`"]}}`) // which AddMemory refuses
	long := strings.Repeat("Of the kettle and the teapot much is said here, and more elsewhere.\n\n", 100)
	mustAdd(tb, s, NewMemory{Content: long, Tags: []string{"long"}})
	mustAdd(tb, s, NewMemory{Content: "東京の天気 と kettle_size2 FooBar", ProjectName: "q", EventType: EventProjectRule,
		RuleType: RuleDo})
	mustAddCollection(tb, s, NewCollection{Name: "own", OwnVectors: true, VectorSize: 3})
	mustAdd(tb, s, NewMemory{Collection: "own", Content: "north kettle", Embedding: []float32{0, 1, 0}})
	mustAdd(tb, s, NewMemory{Collection: "own", Content: "nowhere kettle"})
	mustImport(tb, s, `{"type":"memory","collection_name":"own","content":" ","embedding":[0,0,0]}`)
	for _, c := range []string{"ä kettle w18 besides", "ä kettle w17 besides"} {
		if _, err := s.UpdateMemory(ctx, first.ID,
			MemoryUpdate{Content: &c, ShownMetadata: map[string]any{"k": c}}); err != nil {
			tb.Fatal(err)
		}
	}
	gone := mustAdd(tb, s, NewMemory{Content: "deleted kettle"})
	if err := s.DeleteMemory(ctx, gone.ID, nil); err != nil {
		tb.Fatal(err)
	}
	damage(tb, s, fileRows("whole", []byte("a"), []byte("bc")))
	return first.ID
}

// mustImport imports handmade lines.
func mustImport(tb testing.TB, s *Store, lines ...string) {
	tb.Helper()
	if _, err := s.Upkeep().Import(context.Background(), strings.NewReader(byHand(lines...)), nil); err != nil {
		tb.Fatal(err)
	}
}

// fileRows inserts a file of the given pieces.
func fileRows(id string, pieces ...[]byte) string {
	var b strings.Builder
	whole := slices.Concat(pieces...)
	fmt.Fprintf(&b, `INSERT INTO file (uid, owner_id, state, filename, mime_type, size, sha256, description, category,
		created_at, updated_at)
		VALUES ('%s', 1, 'stored', 'f', 'text/plain', %d, x'%x', '', '', 0, 0);`, id, len(whole), sha256.Sum256(whole))
	for n, piece := range pieces {
		fmt.Fprintf(&b, `INSERT INTO file_chunk (id, sha256, data) SELECT id << 24 | %d, x'%x', x'%x' FROM file `+
			`WHERE uid = '%s';`, n, sha256.Sum256(piece), piece, id)
	}
	return b.String()
}

func mustCheck(tb testing.TB, s *Store, o *CheckOptions) CheckReport {
	tb.Helper()
	report, err := s.Upkeep().Check(context.Background(), o)
	if err != nil {
		tb.Fatal(err)
	}
	return report
}

func TestCheckFindsNothingInASoundStore(t *testing.T) {
	for i, path := range []string{filepath.Join(t.TempDir(), "sound.db"), ":memory:"} {
		if !longtest.Part(i, 1, 2) {
			continue
		}
		s := openWords(t, path, Options{})
		if report := mustCheck(t, s, nil); !report.OK || report.Findings == nil || report.Total != 0 {
			t.Errorf("an empty store: %+v, want OK, an empty list of findings that is not null, and total 0", report)
		}
		varied(t, s)
		before := rowsOf(t, s)
		for _, o := range []*CheckOptions{nil, {}, {Repair: true}} {
			report := mustCheck(t, s, o)
			if !report.OK || len(report.Findings) != 0 || report.Total != 0 || report.Repaired != 0 {
				t.Errorf("got %+v: %+v, want OK, no findings, total 0 and repaired 0", o, report)
			}
			for table, atLeast := range map[string]int{"memory": 6, "passage": 10, "passage_text": 10, "partition": 3,
				"memory_revision": 2, "file": 1, "file_chunk": 2} {
				if report.Checked[table] < atLeast {
					t.Errorf("%d rows of %s were checked, want %d at least", report.Checked[table], table, atLeast)
				}
			}
		}
		if rowsOf(t, s) != before {
			t.Error("checking a sound store changed it, want no change")
		}
	}
}

// damages are statements that damage a store, and the table in which Check finds each.
var damages = []struct {
	damage     string
	table      string
	repairable bool
}{
	{`DELETE FROM passage`, "passage", true},
	{`DELETE FROM passage WHERE start > 0`, "passage", true},
	{`UPDATE passage SET start = start + 3`, "passage", true},
	{`UPDATE passage SET start = 1000000`, "passage", true},
	{`UPDATE passage SET start = -5`, "passage", true},
	{`UPDATE passage SET length = length - 1`, "passage", true},
	{`UPDATE passage SET length = -1`, "passage", true},
	{`UPDATE passage SET length = 9223372036854775807`, "passage", true},
	{`UPDATE passage SET start = 1, length = 2`, "passage", true},
	{`UPDATE passage SET blank = 1 - blank`, "passage", true},
	{`UPDATE passage SET vector = x'00'`, "passage", true},
	{`UPDATE passage SET vector = x''`, "passage", true},
	{`UPDATE passage SET vector = CAST(zeroblob(length(vector) - 4) || x'0000c07f' AS BLOB) WHERE vector IS NOT NULL`,
		"passage", true},
	{`UPDATE passage SET vector = CAST(zeroblob(length(vector) - 4) || x'00000040' AS BLOB) WHERE vector IS NOT NULL`,
		"passage", true},
	{`UPDATE passage SET vector = NULL, profile_id = NULL`, "passage", true},
	{`UPDATE passage SET profile_id = NULL`, "passage", true},
	{`UPDATE passage SET profile_id = 1 WHERE blank`, "passage", true},
	{`UPDATE passage SET profile_id = (SELECT id FROM profile WHERE model = 'own')`, "passage", true},
	{`INSERT INTO profile (key, model, dimensions, created_at) VALUES ('k', 'old', 512, 0); UPDATE passage ` +
		`SET profile_id = last_insert_rowid() WHERE profile_id = 1`, "passage", true},
	{`UPDATE passage SET id = id + 1000 WHERE start = 0 AND length < 50`, "passage_text", true},
	{`UPDATE passage SET id = id + (7 << 32) WHERE start = 0 AND length < 50`, "passage", true},
	{`DELETE FROM passage_text`, "passage_text", true},
	{`DELETE FROM passage_text WHERE rowid = (SELECT min(id) FROM passage)`, "passage_text", true},
	{`INSERT INTO passage_text (rowid, content, tags) VALUES (7, 'x', '')`, "passage_text", true},
	{`DELETE FROM passage_text WHERE rowid = (SELECT min(id) ` +
		`FROM passage); INSERT INTO passage_text (rowid, content, tags) SELECT min(id), 'other words', '' ` +
		`FROM passage`, "passage_text", true},
	{`UPDATE partition SET memories = memories + 1`, "partition", true},
	{`UPDATE partition SET passages = -3, memories = -7`, "partition", true},
	{`UPDATE partition SET next_passage = 0`, "partition", true},
	{`UPDATE partition SET bytes = bytes - 1`, "partition", true},
	{`UPDATE partition SET revisions = revisions + 1`, "partition", true},
	{`UPDATE partition SET next_passage = 0; DELETE FROM passage_text; UPDATE passage SET start = 7`, "partition", true},
	{`INSERT INTO file_chunk (id, sha256, data) VALUES (99 << 24, x'00', x'00')`, "file_chunk", true},

	{`UPDATE memory SET metadata = '{'`, "memory", false},
	{`UPDATE memory SET metadata = '[]'`, "memory", false},
	{`UPDATE memory SET metadata = 'null'`, "memory", false},
	{`UPDATE memory SET importance = 'enormous'`, "memory", false},
	{`UPDATE memory SET classification = 'x'`, "memory", false},
	{`UPDATE memory SET rule_type = 'x'`, "memory", false},
	{`UPDATE memory SET revision = 0`, "memory", false},
	{`UPDATE memory SET content = ''`, "memory", false},
	{`UPDATE memory SET content = CAST(x'ff' AS TEXT)`, "memory", false},
	{`UPDATE memory_tag SET tag = CAST(x'ff' AS TEXT) WHERE position = 0`, "memory", false},
	{`UPDATE memory_revision SET attributes = 'x'`, "memory_revision", false},
	{`UPDATE memory_revision SET attributes = '{"importance":7}'`, "memory_revision", false},
	{`UPDATE memory_revision SET revision = revision + 100`, "memory_revision", false},
	{`UPDATE memory_revision SET content = CAST(x'ff' AS TEXT)`, "memory_revision", false},
	{`UPDATE file SET size = 9`, "file", false},
	{`UPDATE file SET sha256 = x'00'`, "file", false},
	{`UPDATE file_chunk SET data = x'64' WHERE id & 1 = 0`, "file_chunk", false},
	{`DELETE FROM file_chunk WHERE id & 1 = 0`, "file_chunk", false},
}

func TestCheckFindsDamageAndRepairMendsIt(t *testing.T) {
	for i, c := range damages {
		if !longtest.Part(i, 1, 24) {
			continue
		}
		t.Run(c.damage, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "damaged.db")
			s := openWords(t, path, Options{})
			id := varied(t, s)
			memories := idsOf(t, s)
			damage(t, s, c.damage)
			report := mustCheck(t, s, nil)
			if report.OK || report.Total == 0 || report.Repaired != 0 {
				t.Fatalf("it is not found: %+v, want not OK, findings and none repaired", report)
			}
			if i := slices.IndexFunc(report.Findings, func(f Finding) bool { return f.Table == c.table }); i < 0 ||
				report.Findings[i].Repairable != c.repairable {
				t.Errorf("findings are %+v; want one of %s, repairable %v", report.Findings, c.table, c.repairable)
			}
			report = mustCheck(t, s, &CheckOptions{Repair: true})
			if report.OK != c.repairable {
				t.Errorf("after the repair: %+v; want OK %v", report, c.repairable)
			}
			for _, f := range report.Findings {
				if f.Repaired != f.Repairable {
					t.Errorf("repairable %v, repaired %v: %s %s, want the same", f.Repairable, f.Repaired, f.Table, f.Problem)
				}
			}
			if got := idsOfRows(t, s); len(got) != len(memories) {
				t.Errorf("of %d memories %d are left, want all", len(memories), len(got))
			}
			if !c.repairable {
				return
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := s.Upkeep().WaitEmbedded(ctx); err != nil {
				t.Fatal(err)
			}
			if report := mustCheck(t, s, nil); !report.OK {
				t.Errorf("once all is embedded: %+v, want OK", report)
			}
			checkConsistency(t, s)
			mustAdd(t, s, NewMemory{Content: "one more", ProjectName: "p"})
			onDisk := openWords(t, path, Options{IndexMemory: -1})
			for name, s := range map[string]*Store{"in memory": s, "on disk": onDisk} {
				for _, query := range []Query{{Text: "kettle w17 besides", Limit: 1}, {Text: "kettle", Tags: []string{"t3"}}} {
					found, err := s.Search(t.Context(), query)
					if err != nil || len(found.Hits) != 1 || found.Hits[0].ID != id || found.Hits[0].Parts.Text == 0 ||
						found.Hits[0].Parts.Vector == 0 {
						t.Errorf("%s after the repair: %+v, %v; want one hit by text and vector", name, found.Hits, err)
					}
				}
			}
		})
	}
}

// idsOfRows returns the ids of all memories, even damaged ones.
func idsOfRows(tb testing.TB, s *Store) (ids []string) {
	tb.Helper()
	err := s.db.Read(context.Background(), func(tx db.Tx) (err error) {
		ids, err = db.Column[string](tx, `SELECT uid FROM memory`)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return ids
}

func TestRepairKeepsSoundVectorsOfTheCallersOwn(t *testing.T) {
	s := openWords(t, "", Options{})
	varied(t, s)
	damage(t, s, `UPDATE passage SET length = 2`)
	if report := mustCheck(t, s, &CheckOptions{Repair: true}); !report.OK {
		t.Fatalf("got %+v, want OK", report)
	}
	found, err := s.Search(t.Context(), Query{Vector: []float32{0, 1, 0}, Collections: []string{"own"}, Limit: 1})
	if err != nil || len(found.Hits) != 1 || found.Hits[0].Parts.Vector < 0.99 {
		t.Errorf("got %+v, %v, want no error, 1 hit and vector at least 0.99", found.Hits, err)
	}
}

func TestRepairDropsRowsThatBelongToNothing(t *testing.T) {
	longtest.Only(t)
	for i, c := range []struct {
		damage string
		table  string
		fixed  bool
	}{
		{`DELETE FROM memory WHERE content LIKE 'ä%'`, "passage", true},
		{`INSERT INTO memory_tag (memory_id, tag, position) VALUES (77, 't', 0)`, "memory_tag", true},
		{`INSERT INTO memory_link (memory_id, related_id, position) VALUES (1, 77, 0)`, "memory_link", true},
		{`UPDATE memory_revision SET memory_id = 77`, "memory_revision", true},
		{`UPDATE file SET memory_id = 77`, "file", true},
		{`UPDATE passage SET profile_id = 77 WHERE profile_id = 1`, "passage", true},
		{`INSERT INTO project_member (project_id, user_id, role, created_at) VALUES (77, 1, 'reader', 0)`, "project_member",
			true},
		{`UPDATE memory_revision SET partition_id = 77`, "memory_revision", false},
		{`UPDATE memory SET partition_id = 77 WHERE content LIKE 'ä%'`, "memory", false},
		{`UPDATE partition SET collection_id = 77 WHERE id = 1`, "partition", false},
		{`UPDATE file SET owner_id = 77`, "file", false},
	} {
		if !longtest.Part(i, 1, 3) {
			continue
		}
		t.Run(c.damage, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "orphans.db")
			s, err := Open(t.Context(), path, &Options{Embedder: wordEmbedder("words-1")})
			if err != nil {
				t.Fatal(err)
			}
			varied(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			withoutReferences(t, path, c.damage)
			s = openWords(t, path, Options{})
			before := len(idsOfRows(t, s))
			report := mustCheck(t, s, &CheckOptions{Repair: true})
			if !slices.ContainsFunc(report.Findings,
				func(f Finding) bool { return f.Table == c.table && f.Repairable == c.fixed }) {
				t.Errorf("%+v; want a finding of %s, repairable %v", report.Findings, c.table, c.fixed)
			}
			if report.OK != c.fixed || mustCheck(t, s, nil).OK != c.fixed {
				t.Errorf("after the repair: %+v, want OK %v", report, c.fixed)
			}
			if after := len(idsOfRows(t, s)); after != before {
				t.Errorf("of %d memories %d are left, want no change", before, after)
			}
		})
	}
}

func TestCheckOfADamagedFileReportsAndNeverPanics(t *testing.T) {
	longtest.Only(t)
	store := storeFile(t)
	const page = 4096
	unsound, mended := 0, 0
	for n := 1; n < len(store)/page; n += 2 { // every other page, alternately flipped and zeroed
		content := bytes.Clone(store)
		for i := n*page + n%7; n%4 == 1 && i < (n+1)*page; i += 61 {
			content[i] ^= 0xa5
		}
		if n%4 == 3 {
			clear(content[n*page : (n+1)*page])
		}
		path := filepath.Join(t.TempDir(), "damaged.db")
		writeFile(t, path, content)
		s, err := Open(t.Context(), path, &Options{Embedder: wordEmbedder("words-1"), ReadOnly: true})
		if err != nil {
			continue // tested by TestOpenRefuses...
		}
		report, err := s.Upkeep().Check(t.Context(), nil)
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("page %d: %v, want no error or ErrCorrupt", n, err)
		}
		if !report.OK {
			unsound++
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if !bytes.Equal(readFile(t, path), content) {
			t.Errorf("page %d: the check changed the file, want %.200q", n, content)
		}
		onlyFile(t, path)
		if s, err = Open(t.Context(), path, &Options{Embedder: wordEmbedder("words-1")}); err != nil {
			continue
		}
		report, err = s.Upkeep().Check(t.Context(), &CheckOptions{Repair: true})
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("repair of page %d: %v, want no error or ErrCorrupt", n, err)
		}
		if err == nil && report.OK {
			mended++
		}
		_ = s.Close()
	}
	t.Logf("%d damaged files were found unsound, %d were mended", unsound, mended)
	if unsound == 0 || mended == 0 {
		t.Errorf("%d damaged files were found unsound, %d were mended; want at least one each", unsound, mended)
	}
}

func TestCheckLeavesAReadOnlyFileAsItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "read.db")
	store := storeFile(t)
	writeFile(t, path, store)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	s := openWords(t, path, Options{ReadOnly: true})
	if report := mustCheck(t, s, nil); !report.OK || report.Checked["memory"] != 200 {
		t.Errorf("got %+v, want OK and memory 200", report)
	}
	if _, err := s.Upkeep().Check(t.Context(), &CheckOptions{Repair: true}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("repairing a read-only store gives %v, want ErrReadOnly", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(path)
	if err != nil || !bytes.Equal(readFile(t, path), store) || !after.ModTime().Equal(info.ModTime()) {
		t.Errorf("the file was touched: %v, want it as it was", err)
	}
	onlyFile(t, path)
}

func TestCheckListsAThousandFindingsAndCountsAll(t *testing.T) {
	longtest.Only(t)
	s := openWords(t, "", Options{})
	many := make([]NewMemory, 1200)
	for i := range many {
		many[i] = NewMemory{Content: fmt.Sprint("number n", i)}
	}
	if _, err := s.AddMemories(t.Context(), many, nil); err != nil {
		t.Fatal(err)
	}
	damage(t, s, `UPDATE passage SET vector = x'00'`)
	report := mustCheck(t, s, nil)
	if report.OK || report.Total != 1200 || len(report.Findings) != 1000 {
		t.Errorf("%d findings of %d, OK %v, want not OK, total 1200 and 1000 findings", len(report.Findings),
			report.Total, report.OK)
	}
	stages := map[string]bool{}
	report = mustCheck(t, s, &CheckOptions{Repair: true, Progress: func(stage string, done, total int) {
		if done < 0 || done > total {
			t.Errorf("%s: %d done, want 0 to %d", stage, done, total)
		}
		stages[stage] = true
	}})
	if !report.OK || report.Repaired != 1200 || !report.Findings[999].Repaired {
		t.Errorf("after the repair: OK %v, %d of %d, want OK and all 1200 repaired, the last listed one, too",
			report.OK, report.Repaired, report.Total)
	}
	for _, stage := range []string{"file", "references", "memories", "full text", "repair"} {
		if !stages[stage] {
			t.Errorf("no progress of stage %q", stage)
		}
	}
	encoded, err := json.Marshal(report)
	if err != nil || !bytes.Contains(encoded, []byte(`"repaired":1200`)) ||
		!bytes.Contains(encoded, []byte(`"table":"passage"`)) {
		t.Errorf(`as JSON: %.300s, %v, want no error, "repaired":1200 and "table":"passage" in it`, encoded,
			err)
	}
}

func TestCheckEndsWithItsContextAndItsStore(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "ends.db"), Options{})
	varied(t, s)
	damage(t, s, `UPDATE passage SET vector = x'00'`)
	for _, stop := range []string{"file", "memories", "full text", "repair"} {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := s.Upkeep().Check(ctx, &CheckOptions{Repair: true, Progress: func(stage string, _, _ int) {
			if stage == stop {
				cancel()
			}
		}})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled at stage %q: %v, want context.Canceled", stop, err)
		}
	}
	if _, err := s.As(Access{}).Upkeep().Check(t.Context(), nil); !errors.Is(err, ErrForbidden) {
		t.Errorf("through a view: %v, want ErrForbidden", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Upkeep().Check(t.Context(), nil); !errors.Is(err, ErrClosed) {
		t.Errorf("of a closed store: %v, want ErrClosed", err)
	}
}

// The schema rejects shares between namespaces. Check finds and removes those another program has added.
func TestCheckRemovesSharesBetweenNamespaces(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "apart.db"), Options{})
	for _, access := range []Access{{User: "anna"}, {User: "anna", Namespace: "crm"}, {User: "ben"}} {
		mustAdd(t, s.As(access), NewMemory{Content: "in the project", ProjectID: "p"})
	}
	if _, err := s.AddMember(t.Context(),
		NewMember{Project: ProjectRef{ID: "anna/p"}, User: "ben", Role: MemberReader}); err != nil {
		t.Fatal(err)
	}
	inCRM := `(SELECT j.id FROM project j JOIN users u ON u.id = j.owner_id WHERE u.namespace = 'crm')`
	damage(t, s, `DROP TRIGGER project_member_apart; DROP TRIGGER project_invitation_apart`,
		`INSERT INTO project_member (project_id, user_id, role, created_at) SELECT `+inCRM+`, id, 'reader', 0 FROM users
			WHERE uid = 'ben'`,
		`INSERT INTO project_invitation (uid, project_id, sender_id, invited, recipient_id, role, created_at, expires_at)
			SELECT 'i', `+inCRM+`, (SELECT id FROM users WHERE uid = 'anna' AND namespace = 'crm'), 'ben', id, 'reader', 0, 1
			FROM users WHERE uid = 'ben'`)
	for range 2 {
		report, err := s.Upkeep().Check(t.Context(), nil)
		if err != nil || report.OK || report.Total != 2 {
			t.Fatalf("got %+v, %v, want the member and the invitation", report, err)
		}
		for i, want := range []string{"member of another namespace", "recipient of another namespace"} {
			if got := report.Findings[i]; !strings.Contains(got.Problem, want) || !got.Repairable {
				t.Errorf("got %+v, want a %s that can be repaired", got, want)
			}
		}
	}
	report, err := s.Upkeep().Check(t.Context(), &CheckOptions{Repair: true})
	if err != nil || !report.OK || report.Repaired != 2 {
		t.Errorf("the repair: got %+v, %v, want two repaired", report, err)
	}
	members, err := s.As(Access{User: "anna"}).Members(t.Context(), ProjectRef{ID: "p"})
	if err != nil || len(members) != 2 {
		t.Errorf("members of a project of one namespace: got %+v, %v, want anna and ben", members, err)
	}
}
