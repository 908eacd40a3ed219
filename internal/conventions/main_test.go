package conventions

import (
	"log"
	"os"
	"path/filepath"
	"testing"
)

// TestMain runs the tests in the root of the module, so that paths are those that documents use.
func TestMain(m *testing.M) {
	if err := os.Chdir(filepath.Join("..", "..")); err != nil {
		log.Fatal(err)
	}
	os.Exit(m.Run())
}
