// Package emptystore gives tests empty store files. They are copies of one file, since creating the schema is most of
// the work of opening a new store.
package emptystore

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/souvenir-ai/souvenir"
)

// Path returns the path of an empty store with the built-in model, in a folder of the test's own.
func Path(tb testing.TB) string {
	tb.Helper()
	content, err := empty()
	if err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(tb.TempDir(), "store.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

var empty = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "souvenir-empty-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "empty.db")
	store, err := souvenir.Open(context.Background(), path, nil)
	if err != nil {
		return nil, err
	}
	if err := store.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})
