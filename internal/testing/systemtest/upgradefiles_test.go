package systemtest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/recovery"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/storefile"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// migrations returns the number of migrations.
func migrations(tb testing.TB) int {
	tb.Helper()
	names, err := fs.Glob(sqlite.Migrations(), "*.sql")
	if err != nil || len(names) == 0 {
		tb.Fatalf("got %v, %v; want the files of the schema", names, err)
	}
	return len(names)
}

// makeFileOfVersion makes a file with only the first migrations, as an old program did. It has a memory with a tag, a
// link and a past version, and a file if the version had files.
func makeFileOfVersion(t *testing.T, path string, version int) {
	t.Helper()
	config := storefile.Config(path, still)
	config.Migrations = recovery.Migrations(config.Migrations, version)
	if version < 12 { // before hashes
		config.Hashed, config.BeforeMigrations, config.AfterMigrations = nil, nil, nil
	}
	file, err := sqlite.Open(t.Context(), config)
	if err != nil {
		t.Fatalf("version %d: %v", version, err)
	}
	users := "user"
	if version >= 20 {
		users = "users"
	}
	statements := []string{
		`INSERT INTO ` + users + ` (id, uid, created_at) VALUES (1, 'local', 1)`,
		`INSERT INTO collection (id, owner_id, name, description, created_at, updated_at)
			VALUES (1, 1, 'default', '', 1, 1), (2, 1, 'work', 'of the day', 1, 1)`,
		`INSERT INTO partition (id, collection_id) VALUES (1, 1), (2, 2)`,
		`INSERT INTO memory (id, uid, partition_id, content, metadata, revision, created_at, updated_at) VALUES
			(1, 'one', 1, 'An old kettle.', '{"color":"blue"}', 2, 1, 2), (2, 'two', 2, 'A young teapot.', '{}', 1, 3, 3)`,
		`INSERT INTO memory_tag (memory_id, tag, position) VALUES (1, 'kitchen', 0)`,
		`INSERT INTO memory_link (memory_id, related_id, position) VALUES (1, 2, 0)`,
		`INSERT INTO memory_revision (id, memory_id, revision, partition_id, content, attributes, created_at)
			VALUES (1, 1, 1, 1, 'A new kettle.', '{}', 1)`,
	}
	if version >= 3 {
		sum := sha256.Sum256([]byte("abc"))
		statements = append(statements, fmt.Sprintf(`INSERT INTO file (id, uid, owner_id, state, filename, mime_type, size,
			sha256, description, category, created_at, updated_at)
			VALUES (1, 'paper', 1, 'stored', 'f', 'text/plain', 3, x'%[1]x', '', '', 0, 0);
			INSERT INTO file_chunk (id, sha256, data) VALUES (1 << 24, x'%[1]x', CAST('abc' AS BLOB))`, sum))
	}
	err = file.Write(t.Context(), func(tx db.Tx) error {
		for _, statement := range statements {
			if err := tx.(*sqlite.Tx).ExecScript(statement); err != nil {
				return fmt.Errorf("%.80s: %w", statement, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("version %d: %v", version, err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// withoutPrograms are the versions for which internal/testing/faulttest has no file of a program (e2e/oldfiles.sh).
var withoutPrograms = []int{2, 3, 6, 7, 8, 15, 30, 40}

// A released migration never changes, so the first ones create the file of an older version.
func TestFilesOfVersionsWithoutProgramsOpenMigrateCheckAndExport(t *testing.T) {
	for i, version := range withoutPrograms {
		if !longtest.Part(i, 4, 8) {
			continue
		}
		path := filepath.Join(t.TempDir(), fmt.Sprintf("%04d.db", version))
		makeFileOfVersion(t, path, version)
		s := openWords(t, file{path}, Options{Now: still})
		if err := s.Upkeep().WaitEmbedded(t.Context()); err != nil {
			t.Errorf("version %d: %v", version, err)
		}
		// A real program stored passages with its memories. Here they are missing and repaired.
		mended := mustCheck(t, s, &CheckOptions{Repair: true})
		if report := mustCheck(t, s, nil); !report.OK || len(mended.Damaged) > 0 || mended.Unverified > 0 {
			t.Errorf("version %d: got %+v after %+v, want OK, and nothing damaged or unverified before", version, report, mended)
		}
		export := string(exported(t, s, ExportOptions{}))
		want := []string{`"content":"An old kettle."`, `"color":"blue"`, `"kitchen"`, `"content":"A new kettle."`,
			`"related_memory_ids":["two"]`, `"collection_name":"work"`}
		if version >= 3 {
			want = append(want, `"filename":"f"`)
		}
		for _, w := range want {
			if !strings.Contains(export, w) {
				t.Errorf("version %d: the export has no %s, want it: got %.2000s", version, w, export)
			}
		}
		found, err := s.Search(t.Context(), Query{Text: "kettle"})
		if err != nil || len(found.Hits) == 0 || found.Hits[0].ID != "one" {
			t.Errorf("version %d: a search finds %v, %v, want the memory one first", version, found.Hits, err)
		}
		if version >= 3 {
			if got := readStored(t, s, "paper"); got != "abc" {
				t.Errorf("version %d: the file holds %q, want abc", version, got)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func readStored(t *testing.T, s *Store, id string) string {
	t.Helper()
	f, err := s.OpenFile(t.Context(), id)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer f.Close()
	var content bytes.Buffer
	if _, err := content.ReadFrom(f); err != nil {
		t.Error(err)
	}
	return content.String()
}
