package anthropic_test

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	adapter "github.com/souvenir-ai/souvenir/adapters/anthropic"
)

// BenchmarkManyFiles measures the commands of the memory tool among 100,000 files of 200 bytes, 100 in a directory.
func BenchmarkManyFiles(b *testing.B) {
	const files, inDirectory = 100_000, 100
	store, err := souvenir.Open(b.Context(), filepath.Join(b.TempDir(), "files.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	at := func(directory, file int) string {
		return fmt.Sprintf("/memories/%d/%d/%d.md", directory/10, directory%10, file)
	}
	for directory := range files / inDirectory {
		memories := make([]souvenir.NewMemory, inDirectory)
		for i := range memories {
			name := at(directory, i)
			below := path.Dir(name)
			memories[i] = souvenir.NewMemory{EventType: "memory_file",
				Content:  fmt.Sprintf("note %d of %d\n%s\n", i, directory, strings.Repeat("some words here ", 12)),
				Metadata: map[string]any{"path": name, "directories": []string{below, path.Dir(below)}}}
		}
		if _, err := store.AddMemories(b.Context(), memories, nil); err != nil {
			b.Fatal(err)
		}
	}
	tool, n := adapter.NewMemory(store, nil), 0
	for _, c := range []struct{ name, command string }{ // N: a number that no other call has
		{"view a file", `{"command": "view", "path": "/memories/0/0/7.md"}`},
		{"create a file", `{"command": "create", "path": "/memories/new/N.md", "file_text": "some text"}`},
		{"str_replace", `{"command": "str_replace", "path": "/memories/new/N.md", "old_str": "some", "new_str": "other"}`},
		{"rename a file", `{"command": "rename", "old_path": "/memories/new/N.md", "new_path": "/memories/renamed/N.md"}`},
		{"delete a file", `{"command": "delete", "path": "/memories/renamed/N.md"}`},
		{"view a directory of 1000", `{"command": "view", "path": "/memories/1"}`},
		{"view all", `{"command": "view", "path": "/memories"}`},
		{"rename a directory of 1000", `{"command": "rename", "old_path": "/memories/N", "new_path": "/memories/all N"}`},
		{"delete a directory of 1000", `{"command": "delete", "path": "/memories/all N"}`},
	} {
		n = 0
		b.Run(strings.ReplaceAll(c.name, " ", "-"), func(b *testing.B) {
			for b.Loop() {
				n++
				command := strings.ReplaceAll(c.command, "N", fmt.Sprint(n))
				if _, err := tool.Execute(b.Context(), json.RawMessage(command)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
