//go:build unix

package migrate_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/migrate"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// A pipe in a folder would never end, and a link may lead to a file outside the export.
func TestPipesAndLinksOutOfAFolderAreNotRead(t *testing.T) {
	service := unpacked(t, "mcp-memory-service.db", "sqlite_vec.db")
	outside := files(t, map[string]string{"all.json": mem0Export, "chat.json": chatGPTExport, "note.md": "secret"})
	for i, test := range []struct{ from, name, target, want string }{
		{"chatgpt", "conversations.json", "", "is not a file"},
		{"chatgpt", "conversations-000.json", filepath.Join(outside, "chat.json"), "escapes"},
		{"claude", "conversations.json", "", "is not a file"},
		{"server-memory", "memory.jsonl", "", "is not a file"},
		{"mem0", "mem0.json", filepath.Join(outside, "all.json"), "escapes"},
		{"mem0", "history.db", "", "has no mem0.json"},
		{"mem0", "qdrant/collection/c/storage.sqlite", "", "has no mem0.json"},
		{"mcp-memory-service", "sqlite_vec.db", filepath.Join(service, "sqlite_vec.db"), "has no sqlite_vec.db"},
		{"chromem", "c/00000000.gob", "", "is not a file"},
		{"basic-memory", "note.md", filepath.Join(outside, "note.md"), "has no Markdown files"},
		{"basic-memory", "pipe.md", "", "has no Markdown files"},
	} {
		if !longtest.Part(i, 1, 4) {
			continue
		}
		folder := t.TempDir()
		path := filepath.Join(folder, filepath.FromSlash(test.name))
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		switch {
		case err != nil:
		case test.target == "":
			err = syscall.Mkfifo(path, 0o600)
		default:
			err = os.Symlink(test.target, path)
		}
		if err != nil {
			t.Fatal(err)
		}
		report, err := migrate.Import(t.Context(), openStore(t), test.from, folder, nil)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s, %s: got %+v and the error %v, want one with %q", test.from, test.name, report, err, test.want)
		}
		if test.target != "" || strings.Contains(test.name, "/") {
			continue
		}
		if _, err := migrate.Import(t.Context(), openStore(t), test.from, path, nil); err == nil {
			t.Errorf("%s, the pipe itself: got no error, want one", test.from)
		}
	}
}
