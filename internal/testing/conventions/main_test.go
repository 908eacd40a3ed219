package conventions

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

func TestMain(m *testing.M) { os.Exit(longtest.Main(m)) }

// atRoot runs a test in the root of the module, so that paths are those of the documents. Each test calls it itself: if
// TestMain changed the folder, go test would not notice which files a test reads, and would return cached results after
// they change.
func atRoot(t *testing.T) {
	t.Helper()
	t.Chdir(filepath.Join("..", "..", ".."))
}

// places and trees are those of the files that parse has read.
var (
	places = token.NewFileSet()
	trees  = map[string]*ast.File{}
)

// parse returns the tree of a Go file without its comments. Several tests read all files, one after the other, and each
// file is parsed once for them.
func parse(path string) (*ast.File, error) {
	if tree := trees[path]; tree != nil {
		return tree, nil
	}
	tree, err := parser.ParseFile(places, path, nil, parser.SkipObjectResolution)
	if err == nil {
		trees[path] = tree
	}
	return tree, err
}
