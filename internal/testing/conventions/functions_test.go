package conventions

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFunctionsFitOnAPage finds functions that are too long. Tests, and packages of tests, are exempt.
func TestFunctionsFitOnAPage(t *testing.T) {
	atRoot(t)
	const most = 80
	except := []string{".git", "node_modules", "testdata", "dbtest", "storetest"}
	functions := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(except, entry.Name()):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		places := token.NewFileSet()
		file, err := parser.ParseFile(places, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			functions++
			begin, end := places.Position(f.Pos()), places.Position(f.End())
			if lines := end.Line - begin.Line + 1; lines > most {
				t.Errorf("%s: %s has %d lines, want at most %d; give a part of it a name of its own", begin, f.Name.Name, lines,
					most)
			}
		}
		return nil
	})
	if err != nil || functions < 3000 {
		t.Errorf("got %v after %d functions, want at least 3000", err, functions)
	}
}
