package conventions

import (
	"path/filepath"
	"testing"
)

// atRoot runs a test in the root of the module, so that paths are those of the documents. Each test calls it itself: if
// TestMain changed the folder, go test would not notice which files a test reads, and would return cached results after
// they change.
func atRoot(t *testing.T) {
	t.Helper()
	t.Chdir(filepath.Join("..", "..", ".."))
}
