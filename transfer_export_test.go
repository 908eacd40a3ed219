package souvenir

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/testing/linediff"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/internal/transfer"
)

// sealedClock makes the exports of equal stores equal.
func sealedClock() time.Time { return time.Date(2026, 11, 21, 8, 0, 0, 123456000, time.UTC) }

// errUndone rolls back a transaction.
var errUndone = errors.New("only tried")

// statements runs SQL for changes that no method makes.
func statements(tb testing.TB, s *Store, all ...string) {
	tb.Helper()
	err := s.db.Write(context.Background(), func(tx db.Tx) error {
		for _, statement := range all {
			if _, err := tx.Exec(statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// putFile inserts the rows of a file.
func putFile(tb testing.TB, s *Store, id, owner, memory, project string, data []byte) {
	tb.Helper()
	err := s.db.Write(context.Background(), func(tx db.Tx) error {
		sum := sha256.Sum256(data)
		row, err := db.Insert(tx, `INSERT INTO file (uid, owner_id, memory_id, project_id, state, filename, mime_type, size,
			sha256, description, category, created_at, updated_at)
			SELECT ?, u.id, (SELECT id FROM memory WHERE uid = ?), (SELECT id FROM project WHERE uid = ?), 'stored', ?,
			'text/plain', ?, ?, 'a "file"', '', 5, 6 FROM users u WHERE u.uid = ? RETURNING id`,
			id, memory, project, "näme 東 "+id+".txt", len(data), sum[:], owner)
		if err != nil {
			return err
		}
		for n := 0; n*kernel.ChunkSize < len(data); n++ {
			piece := data[n*kernel.ChunkSize : min(len(data), (n+1)*kernel.ChunkSize)]
			sum := sha256.Sum256(piece)
			if _, err := tx.Exec(`INSERT INTO file_chunk (id, sha256, data) VALUES (?, ?, ?)`,
				row<<kernel.ChunkBits|int64(n), sum[:], piece); err != nil {
				return err
			}
		}
		for i, tag := range []string{"zebra", "apple"} {
			if _, err := tx.Exec(`INSERT INTO file_tag (file_id, tag, position) VALUES (?, ?, ?)`, row, tag,
				i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// pattern returns the content of a file, without repetition.
func pattern(size int) []byte {
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(data)
	return data
}

// openRich opens a store with some of everything.
func openRich(t *testing.T) *Store {
	t.Helper()
	s := openWords(t, filepath.Join(t.TempDir(), "rich.db"), Options{Now: sealedClock})
	alice, bob := s.As(Access{User: "alice"}), s.As(Access{User: "bob"})
	mustAddCollection(t, alice, NewCollection{Name: "garten", Description: "Über \"alles\"\n\t\u0001 東京"})
	mustAddCollection(t, alice, NewCollection{Name: "mine", OwnVectors: true, VectorSize: 3})
	root := mustAdd(t, alice, NewMemory{Collection: "garten", Content: "roots \\ and \"quotes\" \u2028 \u0001 one",
		ProjectID: "plot", ProjectName: "The Plot",
		EventType: "decision", State: "active", Importance: ImportanceHigh, Classification: ClassDo,
		Tags: []string{"zulu", "alpha", "mike"},
		ShownMetadata: map[string]any{
			"int": json.Number("9007199254740993"), "large": json.Number("123456789012345678901234567890"), "float": 0.1,
			"exact": json.Number("1.10"),
			"null":  nil, "list": []any{1, "<b>&", nil, map[string]any{"deep": []any{}}}, "bool": true, "": "empty key",
			"ünï": "cødé",
		}})
	statements(t, s,
		`INSERT INTO project_member (project_id, user_id, role, created_at) SELECT j.id, u.id, 'writer', 77 `+
			`FROM project j, users u WHERE j.uid = 'plot' AND u.uid = 'alice'`)
	mustAdd(t, bob, NewMemory{Content: "bob begins"})
	statements(t, s, `UPDATE project_member SET user_id = (SELECT id FROM users WHERE uid = 'bob')`,
		`INSERT INTO blocked_sender (user_id, sender_id, created_at) SELECT a.id, b.id, 78 FROM users a, users b `+
			`WHERE a.uid = 'alice' AND b.uid = 'bob'`)
	reply := mustAdd(t, bob, NewMemory{Content: "bob replies in alice's project", ProjectID: "plot",
		Related: []string{root.ID}})
	mustAdd(t, bob, NewMemory{Content: "same id, another project", ProjectID: "bobs", ProjectName: "Bob's"})
	mustAdd(t, alice, NewMemory{Collection: "mine", Content: "with a vector of its own", Embedding: []float32{3, 0, 4}})
	mustAdd(t, alice, NewMemory{Collection: "mine", Content: "without one"})
	mustAdd(t, s, NewMemory{Content: strings.Repeat("A long memory has passages. ", 300) + "\n\n# End"})
	mustImport(t, s, `{"type":"memory","content":" \n\t "}`)
	mustAdd(t, alice, NewMemory{Content: "always test", EventType: EventProjectRule, RuleType: RuleDo, ProjectID: "plot"})
	if _, err := alice.UpdateMemory(t.Context(), root.ID,
		MemoryUpdate{Content: content("roots, revised"),
			ShownMetadata: map[string]any{"related_memory_ids": []string{reply.ID}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := alice.UpdateMemory(t.Context(), root.ID,
		MemoryUpdate{ShownMetadata: map[string]any{"project_id": "elsewhere", "int": 2}}); err != nil {
		t.Fatal(err)
	}
	for i, size := range []int{0, 1, kernel.ChunkSize - 1, kernel.ChunkSize, kernel.ChunkSize + 1, 5*kernel.ChunkSize +
		7} {
		putFile(t, s, fmt.Sprint("file", i), "alice", []string{root.ID, "", reply.ID}[i%3], []string{"", "plot", ""}[i%3],
			pattern(size))
	}
	addAccounts(t, s)
	return s
}

// somePassword is a password hash.
const somePassword = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaA"

// addAccounts adds what people sign in with.
func addAccounts(t *testing.T, s *Store) {
	t.Helper()
	hash := "X'" + strings.Repeat("ab", 32) + "'"
	statements(t, s,
		`UPDATE users SET name = 'Alice', name_key = 'alice', email = 'a@example.org', role = 'admin', password = '`+
			somePassword+`', updated_at = 9 WHERE uid = 'alice'`,
		`UPDATE users SET disabled_at = 12, name = 'Bob', name_key = 'bob' WHERE uid = 'bob'`,
		`INSERT INTO project_alias SELECT owner_id, 'allotment', 'Allotment', id, 5 FROM project WHERE uid = 'plot'`,
		`INSERT INTO external_identity SELECT 'https://id.example', 'sub', id, 'a@example.org', 3 FROM users `+
			`WHERE uid = 'alice'`,
		`INSERT INTO preference SELECT id, '{"theme": "dark",
			"n": 1.0}', 4 FROM users WHERE uid = 'alice'`,
		`INSERT INTO token (uid, user_id, name, hash, prefix, scopes, projects, created_at, last_used_at) SELECT 't1', id, `+
			`'laptop', `+hash+`, 'mcp_a', '["memory:read"]', '["plot"]', 5, 6 FROM users WHERE uid = 'alice'`,
		`INSERT INTO oauth_client (client_id, kind, owner_id, name, auth_method, secret_hash, redirect_uris, metadata, `+
			`created_at, updated_at) SELECT 'c1', 'admin', id, 'Client', 'client_secret_basic', `+hash+`, '["https://x"]', `+
			`'{}', 5, 6 FROM users WHERE uid = 'alice'`,
		`INSERT INTO oauth_client (client_id, kind, name, auth_method, redirect_uris, metadata, created_at, updated_at, `+
			`used_at) VALUES ('c2', 'registered', 'Other', 'none', '[]', '{"a":1}', 5, 6, 7)`,
		`INSERT INTO oauth_grant (uid, client_id, user_id, scopes, refused, resource, created_at) `+
			`SELECT 'g1', c.id, u.id, '[]', '["admin"]', '', 5 FROM oauth_client c, users u WHERE c.client_id = 'c1' `+
			`AND u.uid = 'alice'`,
		`INSERT INTO oauth_token (hash, grant_id, created_at, expires_at) SELECT `+hash+`, id, 5, 6 FROM oauth_grant`,
		`INSERT INTO token (uid, user_id, grant_id, name, hash, prefix, scopes, created_at) SELECT 't2', user_id, id, 'of `+
			`Client', X'`+strings.Repeat("cd", 32)+`', 'mcp_b', '["memory:read"]', 5 FROM oauth_grant`,
		`UPDATE token SET parent_id = (SELECT id FROM token `+
			`WHERE uid = 't1'), session = 'e0', browser = 'Lynx', with_session = 1, paused_at = 8 WHERE uid = 't2'`,
		`UPDATE oauth_grant SET session = 'e0', paused_at = 9`,
		`UPDATE oauth_client SET maker = 'token t1' WHERE client_id = 'c2'`,
		`INSERT INTO oauth_code (hash, grant_id, redirect_uri, challenge, created_at, expires_at) SELECT `+hash+
			`, id, 'https://x', 'one-time', 5, 6 FROM oauth_grant`,
		`INSERT INTO signing_key (kid, algorithm, private_key, created_at) VALUES ('k1', 'EdDSA', `+hash+`, 5)`,
		`INSERT INTO session (uid, user_id, hash, user_agent, created_at, last_used_at, expires_at) SELECT 'e1', id, `+hash+
			`, 'Browser left here', 5, 6, 7 FROM users WHERE uid = 'alice'`,
		`INSERT INTO activity (uid, user_uid, credential, credential_id, client, tool, action, project_id, memory, file,
			outcome, started_at, duration, bytes)
			SELECT 'v1', 'alice', 'token', 't1', 'client left here', 'memory', 'search', id, 'm', 'f', 'ok', 5, 6, 7
			FROM project WHERE uid = 'plot'`,
		`INSERT INTO invitation (uid, hash, purpose, role, email, note, created_by, created_at, expires_at, used_at, used_by)
			SELECT 'i1', `+hash+`, 'account', 'user', 'x@example.org', 'invitation left here', id, 5, 6, 7, id FROM users `+
			`WHERE uid = 'alice'`,
	)
}

func exported(tb testing.TB, s *Store, o ExportOptions) []byte {
	tb.Helper()
	var out bytes.Buffer
	summary, err := s.Upkeep().Export(context.Background(), &out, &o)
	if err != nil {
		tb.Fatal(err)
	}
	if summary.Bytes != int64(out.Len()) {
		tb.Errorf("the summary says %d bytes, but %d were written, want %v", summary.Bytes, out.Len(), int64(out.Len()))
	}
	return out.Bytes()
}

func imported(tb testing.TB, s *Store, export []byte, o ImportOptions) ImportReport {
	tb.Helper()
	report, err := s.Upkeep().Import(context.Background(), bytes.NewReader(export), &o)
	if err != nil {
		tb.Fatal(err)
	}
	return report
}

func TestAnExportImportedAndExportedAgainIsTheSame(t *testing.T) {
	rich := openRich(t)
	for i, o := range []ExportOptions{{Credentials: true}, {}, {Credentials: true, WithoutFiles: true}} {
		if !longtest.Part(i, 1, 3) {
			continue
		}
		first := exported(t, rich, o)
		for _, path := range []string{filepath.Join(t.TempDir(), "copy.db"), ":memory:"} {
			empty := openWords(t, path, Options{Now: sealedClock})
			report := imported(t, empty, first, ImportOptions{})
			if len(report.Conflicts) > 0 || report.MissingLinks > 0 && !o.WithoutFiles || report.Ignored > 0 ||
				len(report.Warnings) > 0 {
				t.Errorf("got %+v, want no conflicts, missing links, ignored lines or warnings", report)
			}
			if second := exported(t, empty, o); !bytes.Equal(first, second) {
				t.Errorf("%+v, %s: got a copy that differs, want the same: %s", o, path, linediff.First(second, first))
			}
			if n := pendingOf(t, empty); n != pendingOf(t, rich) {
				t.Errorf("%d passages wait to be embedded, want %d", n, pendingOf(t, rich))
			}
		}
	}
}

func pendingOf(t *testing.T, s *Store) (n int) {
	t.Helper()
	err := s.db.Read(t.Context(), func(tx db.Tx) (err error) {
		return tx.QueryRow(`SELECT count(*) FROM passage WHERE vector IS NULL AND profile_id IS NOT NULL AND NOT blank`).Scan(
			&n)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTheSameImportAgainChangesNothing(t *testing.T) {
	export := exported(t, openRich(t), ExportOptions{Credentials: true})
	options := map[string]ImportOptions{"keep": {}, "replace": {OnConflict: ConflictReplace}}
	for _, name := range longtest.Keys(options, 1, 2) {
		t.Run(name, func(t *testing.T) {
			o, s := options[name], openWords(t, filepath.Join(t.TempDir(), "copy.db"), Options{})
			first := imported(t, s, export, o)
			before := rowsOf(t, s)
			second := imported(t, s, export, o)
			if after := rowsOf(t, s); after != before {
				t.Errorf("rows differ: %v, want no change", linediff.First([]byte(after), []byte(before)))
			}
			if len(first.Counts) != 17 {
				t.Errorf("only these kinds are counted: %v, want a length of 17", first.Counts)
			}
			for kind, n := range first.Counts {
				if again := second.Counts[kind]; again != (ImportCount{Unchanged: n.Added}) || n.Added == 0 {
					t.Errorf("%s: first %+v, then %+v, want some added and then %v", kind, n, again,
						ImportCount{Unchanged: n.Added})
				}
			}
		})
	}
}

// TestEveryColumnIsExportedOrMadeAgain fails when a table gets a new column, or the file a new table. Add it here, and
// say what an export does with it.
func TestEveryColumnIsExportedOrMadeAgain(t *testing.T) {
	const (
		madeAgain = "" // from exported data, or by the importing store
		left      = "" // on purpose: the credentials of one store are not valid in another
	)
	known := map[string]string{
		"users": "id uid created_at name name_key email role password disabled_at updated_at namespace " +
			"uid_key", // made again
		"external_identity": "issuer subject user_id email created_at",
		"preference":        "user_id value updated_at",
		"collection":        "id owner_id name description own_profile created_at updated_at retention retention_deletes",
		"project":           "id owner_id uid name created_at updated_at name_key retention retention_deletes",
		"project_alias":     "owner_id name_key name project_id created_at",
		"project_member":    "project_id user_id role created_at",
		"blocked_sender":    "user_id sender_id created_at",
		"audit":             "", // belongs to this store alone
		"memory": "id uid partition_id content event_type state importance classification rule_type metadata " +
			"revision created_at updated_at key event_time rule_of expires_at valid_from valid_until supersedes",
		"memory_tag": "memory_id tag position", "memory_link": "memory_id related_id position",
		"memory_revision": "id memory_id revision partition_id content attributes created_at",
		"passage":         "id memory_id start length blank profile_id vector",
		"file": "id uid owner_id memory_id project_id filename mime_type size sha256 description category " +
			"created_at updated_at state text_id text_state text_info text_places", // the text_ ones are made again
		"file_tag": "file_id tag position", "file_chunk": "id sha256 data object",
		"token": "id uid user_id name hash prefix scopes projects created_at expires_at last_used_at revoked_at " +
			"grant_id parent_id session browser with_session paused_at",
		"oauth_client": "id client_id kind owner_id name auth_method secret_hash redirect_uris metadata created_at " +
			"updated_at expires_at used_at disabled_at maker",
		"oauth_grant": "id uid client_id user_id scopes projects resource created_at last_used_at revoked_at refused " +
			"session paused_at",
		"oauth_token": "hash grant_id created_at expires_at rotated_at",
		"signing_key": "id kid algorithm private_key created_at retired_at",
		"oauth_code":  madeAgain, "session": left, "invitation": left, "project_invitation": left,
		"declined_invitation": left, "activity": left, "setting": madeAgain, "profile": madeAgain, "partition": madeAgain,
		"change": madeAgain, "turn": madeAgain, "memory_own": madeAgain,
		"row_hash": madeAgain, "trash": left, "trash_item": left, "trash_link": left, "shared_state": left,
		"segmented": madeAgain, "segment": madeAgain, "segment_stale": madeAgain, "file_object": madeAgain,
	}
	s := openCopy(t)
	err := s.db.Read(t.Context(), func(tx db.Tx) error {
		return tx.Each(func(row db.Rows) error {
			var table, columns string
			if err := row.Scan(&table, &columns); err != nil {
				return err
			}
			if want, ok := known[table]; !ok || want != madeAgain && want != columns {
				t.Errorf("table %s has the columns %q, of which this test knows %q, want all of them or %q", table,
					columns, want, madeAgain)
			}
			return nil
		}, `SELECT m.name, (SELECT group_concat(name, ' ' ORDER BY cid) FROM pragma_table_info(m.name)) FROM sqlite_schema m
			WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name NOT LIKE 'passage_text%'`)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestExportsHoldNoSecretsUnlessAskedTo(t *testing.T) {
	rich := openRich(t)
	plain, full := string(exported(t, rich, ExportOptions{})), string(exported(t, rich, ExportOptions{Credentials: true}))
	for _, secret := range []string{"argon2id", `"type":"token"`, `"type":"client"`, `"type":"grant"`,
		`"type":"refresh_token"`, `"type":"signing_key"`, `"type":"identity"`} {
		if strings.Contains(plain, secret) || !strings.Contains(full, secret) {
			t.Errorf("%s is in the plain export or not in the full one, want it in the full one only", secret)
		}
	}
	for _, left := range []string{"one-time", "left here", `"type":"session"`, `"type":"invitation"`,
		`"type":"activity"`} {
		if strings.Contains(full, left) {
			t.Errorf("got %s in the export, want no authorization code, session, invitation or call", left)
		}
	}
}

func TestExportEndsWithCountsAndTheHashOfWhatIsBefore(t *testing.T) {
	export := exported(t, openRich(t), ExportOptions{})
	lines := bytes.SplitAfter(export, []byte("\n"))
	last := lines[len(lines)-2]
	var end struct {
		Type   string
		Counts map[string]int
		SHA256 string
	}
	if err := json.Unmarshal(last, &end); err != nil || end.Type != "end" {
		t.Fatalf("%s: %v, got %v, want \"end\"", last, err, end.Type)
	}
	sum := sha256.Sum256(export[:len(export)-len(last)])
	if end.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("the hash of the bytes before is %s, want %x", end.SHA256, sum)
	}
	counts := map[string]int{}
	for _, line := range lines[1 : len(lines)-2] {
		if !json.Valid(line) {
			t.Errorf("got the line %.200s, want JSON", line)
		}
		kind, err := transfer.LineKind(line)
		if err != nil {
			t.Error(err)
		}
		counts[kind]++
	}
	if fmt.Sprint(counts) != fmt.Sprint(end.Counts) {
		t.Errorf("counts are %v, want %v", end.Counts, counts)
	}
}

// An export must not wait until a model has computed damaged vectors again.
func TestExportLeavesOutDamagedVectorsOfModels(t *testing.T) {
	longtest.Only(t)
	s := openRich(t)
	damage := `UPDATE passage SET vector = CAST('damaged' AS BLOB) WHERE profile_id `
	statements(t, s, damage+`IN (SELECT id FROM profile WHERE model <> 'own')`)
	damaged := exported(t, s, ExportOptions{})
	if whole := exported(t, s, ExportOptions{WithoutVectors: true}); !bytes.Equal(damaged, whole) {
		t.Errorf("it differs from one without vectors of models: %v, want the same", linediff.First(damaged, whole))
	}
	statements(t, s, damage+`IN (SELECT id FROM profile WHERE model = 'own')`)
	_, err := s.Upkeep().Export(t.Context(), io.Discard, nil)
	if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "memory ") {
		t.Errorf("vectors of callers: got %v, want ErrCorrupt that names the memory", err)
	}
}

func TestExportWithoutVectorsKeepsThoseOfCallers(t *testing.T) {
	export := string(exported(t, openRich(t), ExportOptions{WithoutVectors: true}))
	if n := strings.Count(export, `"type":"vectors"`); n != 1 || !strings.Contains(export, `"profile":"own:3"`) {
		t.Errorf(`got %d lines of vectors, want 1, with "profile":"own:3"`, n)
	}
}

// failingWriter fails after the given number of bytes.
type failingWriter int

var errNoRoom = errors.New("no room")

func (w *failingWriter) Write(p []byte) (int, error) {
	if *w -= failingWriter(len(p)); *w < 0 {
		return 0, errNoRoom
	}
	return len(p), nil
}

func TestExportErrors(t *testing.T) {
	rich := openRich(t)
	size := len(exported(t, rich, ExportOptions{}))
	for _, room := range []int{0, 1, 300 << 10, size - 10} {
		w := failingWriter(room)
		if _, err := rich.Upkeep().Export(t.Context(), &w, nil); !errors.Is(err, errNoRoom) {
			t.Errorf("with room for %d bytes: %v, want %v", room, err, errNoRoom)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := rich.Upkeep().Export(ctx, io.Discard, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	if _, err := rich.Upkeep().Export(ctx, io.Discard, &ExportOptions{Progress: func(stage string, _, _ int) {
		if stage == "files" {
			cancel()
		}
	}}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled in the middle: %v, want context.Canceled", err)
	}
	if _, err := rich.As(Access{Projects: []string{}}).Upkeep().Export(t.Context(), io.Discard, nil); !errors.Is(err,
		ErrForbidden) {
		t.Errorf("got %v, want ErrForbidden", err)
	}
	statements(t, rich, `UPDATE file_chunk SET data = X'ff' WHERE id = (SELECT min(id) FROM file_chunk)`)
	if _, err := rich.Upkeep().Export(t.Context(), io.Discard, nil); !errors.Is(err, ErrCorrupt) ||
		!strings.Contains(err.Error(), "file1") {
		t.Errorf(`a damaged file: %v, want ErrCorrupt and "file1" in the error`, err)
	}
	if _, err := rich.Upkeep().Export(t.Context(), io.Discard, &ExportOptions{WithoutFiles: true}); err != nil {
		t.Error("a damaged file that is left out:", err)
	}
	statements(t, rich, `UPDATE memory SET metadata = '{"a":' WHERE id = 1`)
	if _, err := rich.Upkeep().Export(t.Context(), io.Discard, &ExportOptions{WithoutFiles: true}); !errors.Is(err,
		ErrCorrupt) {
		t.Errorf("damaged metadata: %v, want ErrCorrupt", err)
	}
}

func TestAnExportIsOneSnapshot(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "s.db"), Options{Now: sealedClock})
	for i := range 5 {
		mustAdd(t, s, NewMemory{Content: fmt.Sprint("number ", i)})
	}
	putFile(t, s, "f", "local", "", "", pattern(3*kernel.ChunkSize))
	want := exported(t, s, ExportOptions{})
	var got bytes.Buffer
	written := false
	_, err := s.Upkeep().Export(t.Context(), writerFunc(func(p []byte) (int, error) {
		if !written {
			written = true
			done := make(chan struct{})
			go func() {
				defer close(done)
				mustAdd(t, s, NewMemory{Content: "meanwhile"})
			}()
			<-done
		}
		return got.Write(p)
	}), nil)
	if err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%v: got %s, want no error and bytes %.200q", err, linediff.First(got.Bytes(), want), want)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// importOnesOwn imports alice's export into another store, which then has the same.
func importOnesOwn(t *testing.T, s *Store, export []byte, memories int) {
	t.Helper()
	other := openWords(t, filepath.Join(t.TempDir(), "other.db"), Options{Now: sealedClock})
	report, err := other.Upkeep().Import(t.Context(), bytes.NewReader(export), nil)
	if err != nil || len(report.Conflicts) > 0 || report.Ignored > 0 {
		t.Fatalf("got %+v %v, want no error, no conflicts and ignored at most 0", report, err)
	}
	contents := func(s *Store) []string {
		var all []string
		for m, err := range s.As(Access{User: "alice"}).Memories(context.Background(), MemoryList{}) {
			if err != nil {
				t.Fatal(err)
			}
			if m.Owner == "alice" {
				all = append(all, m.Content)
			}
		}
		slices.Sort(all)
		return all
	}
	if here, there := contents(s), contents(other); !slices.Equal(here, there) ||
		len(here) != memories {
		t.Errorf("imported are %q, want %q, which are %d", there, here, memories)
	}
	if found, err := other.As(Access{User: "alice"}).GetPreferences(t.Context()); err != nil ||
		!maps.Equal(found, map[string]any{"theme": "dark"}) {
		t.Errorf("got %v %v, want no error and found %v", found, err, map[string]any{"theme": "dark"})
	}
	if report, err := other.Upkeep().Check(t.Context(), nil); err != nil || !report.OK {
		t.Errorf("got %+v %v, want no error and OK", report, err)
	}
}

// A user's export holds everything that the user owns, and imports into another store unchanged.
func TestExportOfOnesOwn(t *testing.T) {
	s := openRich(t)
	alice := s.As(Access{User: "alice"})
	if _, err := alice.SetPreferences(t.Context(), map[string]any{"theme": "dark"}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	summary, err := alice.Upkeep().Export(t.Context(), &out, nil)
	if err != nil {
		t.Fatal(err)
	}
	owners := map[string]int{}
	for line := range strings.Lines(out.String()) {
		var written struct{ Type, ID, Owner, User string }
		if err := json.Unmarshal([]byte(line), &written); err != nil {
			t.Fatal(err)
		}
		switch written.Type {
		case transfer.KindMember, transfer.KindIdentity, transfer.KindClient, transfer.KindGrant, transfer.KindToken,
			transfer.KindRefreshToken, transfer.KindSigningKey:
			t.Errorf("it has %s", line)
		case transfer.KindMemory, transfer.KindCollection, transfer.KindProject, transfer.KindFile:
			owners[written.Owner]++
		}
	}
	if len(owners) != 1 || owners["alice"] == 0 || strings.Contains(out.String(), `"bob"`) {
		t.Errorf("owners are %v, want alice only and no \"bob\" in the export:\n%.10000s", owners, out.String())
	}
	var all bytes.Buffer
	whole, err := s.Upkeep().Export(t.Context(), &all, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{}
	for line := range strings.Lines(all.String()) {
		var written struct{ Type, ID, Owner, User string }
		if err := json.Unmarshal([]byte(line), &written); err != nil {
			t.Fatal(err)
		}
		if written.Owner == "alice" || written.Type == transfer.KindPreference && written.User == "alice" ||
			written.Type == transfer.KindUser && written.ID == "alice" {
			want[written.Type]++
		}
	}
	for _, kind := range []string{transfer.KindUser, transfer.KindPreference, transfer.KindMemory, transfer.KindCollection,
		transfer.KindProject, transfer.KindFile} {
		if summary.Counts[kind] != want[kind] || want[kind] == 0 {
			t.Errorf("%d of %s are exported, want %d", summary.Counts[kind], kind, want[kind])
		}
	}
	if whole.Counts[transfer.KindRevision] == 0 || summary.Counts[transfer.KindRevision] == 0 ||
		summary.Counts[transfer.KindVectors] == 0 {
		t.Errorf("got counts %v of %v, want revisions in both and vectors in the first", summary.Counts, whole.Counts)
	}
	importOnesOwn(t, s, out.Bytes(), summary.Counts[transfer.KindMemory])
}

// The export of a user without data is empty.
func TestExportOfNothing(t *testing.T) {
	s := openRich(t)
	var out bytes.Buffer
	if summary, err := s.As(Access{User: "new user"}).Upkeep().Export(t.Context(), &out, nil); err != nil ||
		len(summary.Counts) > 0 || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("got %+v %v: %s, want no error, no counts and 2 lines", summary, err, out.String())
	}
}
