package migrate_test

import (
	"bytes"
	"compress/gzip"
	"database/sql"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/migrate"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// cutInHalf cuts a file of a folder in half, and returns its path.
func cutInHalf(t *testing.T, folder, name string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	info, err := os.Stat(path)
	if err == nil {
		err = os.Truncate(path, info.Size()/2)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestHostileFilesAreRefused(t *testing.T) {
	longtest.Only(t)
	file := func(content string) string { return filepath.Join(files(t, map[string]string{"x": content}), "x") }
	store := openStore(t)
	for _, test := range []struct{ from, path, want string }{
		{"chatgpt", file(""), "expected a JSON list"},
		{"chatgpt", file("{}"), "expected a JSON list"},
		{"chatgpt", file(`[{"id":"c1"`), "element 1 of the list"},
		{"chatgpt", file(`[{"mapping":7}]`), "element 1 of the list"},
		{"chatgpt", file("PK\x03\x04 damaged"), "damaged ZIP archive"},
		{"chatgpt", zipped(t, "other.json", "[]"), "has no conversations.json"},
		{"chatgpt", t.TempDir(), "name the file, its folder or the ZIP archive"},
		{"chatgpt", zipped(t, "conversations.json", "["+strings.Repeat(" ", 65<<20)), "more than 100 times as large"},
		{"chatgpt", file("[" + strings.Repeat(" ", 65<<20)), "one object has more than 64 MiB"},
		{"chatgpt", file(`[{"id":"` + strings.Repeat("x", 65<<20)), "one object has more than 64 MiB"},
		{"claude", file(strings.Repeat("[", 100_000)), "element 1 of the list"},
		{"server-memory", file(`{"type":"entity","name":"a"}` + "\nnothing\n"), "line 2"},
		{"server-memory", file(strings.Repeat(" ", 65<<20)), "line 1: one object has more than 64 MiB"},
		{"server-memory", file(`{"type":"virus"}`), `its type is "virus"`},
		{"mem0", file(`{"other":[]}`), `an object with a list "results"`},
		{"mem0", file(`{"other":{"results":[]}`), `an object with a list "results"`},
		{"mem0", file(`{"results":{}}`), `an object with a list "results"`},
		{"mem0", file(`7`), `an object with a list "results"`},
		{"chromem", "testdata/chromem/plain.enc", "an encrypted one cannot be imported"},
		{"mem0", unpacked(t, "mcp-memory-service.db", "history.db"), "neither the points of Qdrant nor the history"},
		{"mcp-memory-service", unpacked(t, "mem0-history.db", "sqlite_vec.db"), "it has no table memories"},
		{"mcp-memory-service", file("no database"), "not a database"},
		{"mcp-memory-service", filepath.Join(t.TempDir(), "none.db"), "no such file"},
		{"mcp-memory-service", t.TempDir(), "has no sqlite_vec.db"},
		{"mcp-memory-service", cutInHalf(t, unpacked(t, "mcp-memory-service.db", "x.db"), "x.db"), "malformed"},
		{"mem0", cutInHalf(t, unpacked(t, "mem0-qdrant.sqlite", "x.db"), "x.db"), "malformed"},
		{"mem0", cutInHalf(t, unpacked(t, "mem0-history.db", "x.db"), "x.db"), "malformed"},
		{"chromem", file("no gob"), "cannot be read as a file of chromem-go"},
		{"chromem", t.TempDir(), "has no collections"},
		{"basic-memory", t.TempDir(), "has no Markdown files"},
		{"floppy", "x", "expected one of basic-memory, "},
	} {
		report, err := migrate.Import(t.Context(), store, test.from, test.path, nil)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %s: got %+v and the error %v, want one with %q", test.from, filepath.Base(test.path), report, err,
				test.want)
		}
	}
}

// database makes a SQLite database with statements, and returns its path.
func database(t *testing.T, statements ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.db")
	db, err := sql.Open(sql.Drivers()[0], path)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

const memoriesTable = `CREATE TABLE memories (id INTEGER PRIMARY KEY, content_hash, content, tags, memory_type,
	metadata, created_at)`

func TestDatabasesWhoseViewsHaveNoEndAreRefused(t *testing.T) {
	const endless = ` AS WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT `
	store := openStore(t)
	for path, want := range map[string]string{
		database(t, `CREATE VIEW memories`+endless+`n AS id, n AS content_hash, 'x' AS content, '' AS tags,
			'' AS memory_type, '' AS metadata, 0 AS created_at FROM c`): "it has no table memories",
		database(t, `CREATE TABLE memories (id INTEGER PRIMARY KEY, content_hash, content, memory_type, metadata, created_at,
			tags AS (hex(zeroblob(500000000))))`): "it has no table memories with tags",
	} {
		if _, err := migrate.Import(t.Context(), store, "mcp-memory-service", path,
			nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got the error %v, want one with %q", err, want)
		}
	}
	graph := database(t, memoriesTable, `INSERT INTO memories VALUES (1, 'a', 'fine', '', '', '', 0)`,
		`CREATE VIEW memory_graph`+endless+`'a' AS source_hash, n AS target_hash FROM c`)
	report, err := migrate.Import(t.Context(), store, "mcp-memory-service", graph, nil)
	if err != nil || report.Added != 1 {
		t.Errorf("a graph that is a view: got %+v and %v, want the memory without links", report, err)
	}
	for _, table := range []string{"points" + endless + "x'80' AS point FROM c",
		"history" + endless + "n AS memory_id, 'x' AS new_memory, 'ADD' AS event, '' AS created_at FROM c"} {
		if _, err := migrate.Import(t.Context(), store, "mem0", database(t, `CREATE VIEW `+table),
			nil); err == nil || !strings.Contains(err.Error(), "neither the points of Qdrant nor the history") {
			t.Errorf("%.20s: got the error %v, want that the table is missing", table, err)
		}
	}
}

func TestRowsWithValuesOfOtherTypesAreSkipped(t *testing.T) {
	store := openStore(t)
	path := database(t, memoriesTable, `INSERT INTO memories VALUES (1, x'00ff', x'ff00', '', '', '', 'yesterday'),
		(2, NULL, NULL, 7, 8, 9, 'x'), (3, 'k', 'fine', 5, 6, '[7]', 'x')`)
	report, err := migrate.Import(t.Context(), store, "mcp-memory-service", path, nil)
	if err != nil || report.Added != 1 || report.Skipped != 2 {
		t.Errorf("got %+v and %v, want 1 added and 2 skipped", report, err)
	}
}

func TestAnExportThatUnpacksToFarTooMuchIsRefused(t *testing.T) {
	longtest.Only(t)
	type document struct{ ID, Content string }
	type collection struct {
		Name      string
		Documents map[string]*document
	}
	var packed bytes.Buffer
	in := gzip.NewWriter(&packed)
	documents := map[string]*document{"x": {"x", strings.Repeat("x", 65<<20)}}
	err := gob.NewEncoder(in).Encode(struct{ Collections map[string]*collection }{
		map[string]*collection{"c": {"c", documents}}})
	if err = errors.Join(err, in.Close()); err != nil {
		t.Fatal(err)
	}
	folder := files(t, map[string]string{"x.gob": packed.String()})
	report, err := migrate.Import(t.Context(), openStore(t), "chromem", filepath.Join(folder, "x.gob"), nil)
	if err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("got %+v and the error %v, want that %d bytes cannot be read", report, err, packed.Len())
	}
}

// The sizes in an archive may be wrong.
func TestAnArchiveThatSaysItIsSmallIsReadNoFurther(t *testing.T) {
	longtest.Only(t)
	path := zipped(t, "conversations.json", "["+strings.Repeat(" ", 65<<20)+`{"uuid":"a"}]`)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	size := func(n int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(n)) }
	lies := bytes.ReplaceAll(content, size(65<<20+14), size(1000))
	if bytes.Equal(lies, content) {
		t.Fatal("got no size in the archive, want one to change")
	}
	if err := os.WriteFile(path, lies, 0o600); err != nil {
		t.Fatal(err)
	}
	report, err := migrate.Import(t.Context(), openStore(t), "claude", path, nil)
	if err == nil {
		t.Errorf("got %+v, want an error", report)
	}
}
