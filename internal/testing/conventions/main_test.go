package conventions

import (
	"path/filepath"
	"testing"
)

// atRoot runs a test in the root of the module, so that paths are those that documents use. Each test calls it itself:
// with another working directory from TestMain on, go test would not see which files a test reads, and would repeat a
// cached result after they have changed.
func atRoot(t *testing.T) {
	t.Helper()
	t.Chdir(filepath.Join("..", "..", ".."))
}
