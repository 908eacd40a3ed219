package conventions

import (
	"go/ast"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNoStructEmbedsAStore finds structs that embed *Store. For each of them the compiler makes two functions for each
// of some 250 methods, which took a tenth of the time of compiling the root package.
func TestNoStructEmbedsAStore(t *testing.T) {
	atRoot(t)
	structs := 0
	for _, pattern := range []string{"*.go", "*/*.go", "*/*/*.go", "*/*/*/*.go", "*/*/*/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			structs += findEmbeddedStores(t, path)
		}
	}
	if structs < 500 {
		t.Errorf("got %d structs, want at least 500", structs)
	}
}

// findEmbeddedStores reports them as failures, and returns how many structs the file has.
func findEmbeddedStores(t *testing.T, path string) (structs int) {
	t.Helper()
	file, err := parse(path)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		s, ok := n.(*ast.StructType)
		if !ok {
			return true
		}
		structs++
		for _, field := range s.Fields.List {
			pointer, ok := field.Type.(*ast.StarExpr)
			if !ok || len(field.Names) > 0 {
				continue
			}
			name, ok := pointer.X.(*ast.Ident)
			if selector, qualified := pointer.X.(*ast.SelectorExpr); qualified {
				name, ok = selector.Sel, true
			}
			if ok && name.Name == "Store" {
				t.Errorf("%s: got a struct that embeds *Store, want a field with a name", places.Position(field.Pos()))
			}
		}
		return true
	})
	return structs
}

// TestFunctionsFitOnAPage finds functions that are too long, tests included.
func TestFunctionsFitOnAPage(t *testing.T) {
	atRoot(t)
	const most = 80
	except := []string{".git", "node_modules", "testdata"}
	functions := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(except, entry.Name()):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		file, err := parse(path)
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
				t.Errorf("%s: %s has %d lines, want at most %d; give a part or table of it a name of its own", begin,
					f.Name.Name, lines, most)
			}
		}
		return nil
	})
	if err != nil || functions < 6000 {
		t.Errorf("got %v after %d functions, want at least 6000", err, functions)
	}
}
