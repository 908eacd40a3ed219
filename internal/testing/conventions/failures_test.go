package conventions

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// comparing are functions that compare a result with the wanted one.
var comparing = []string{"errors.Is", "slices.Equal", "maps.Equal", "bytes.Equal", "reflect.DeepEqual",
	"strings.Contains"}

// compares reports whether a condition compares anything, with an operator or a function of comparing. Comparisons with
// nil do not count: an unexpected error needs no "want".
func compares(condition ast.Expr) (found bool) {
	ast.Inspect(condition, func(n ast.Node) bool {
		switch c := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.BinaryExpr:
			y, ident := c.Y.(*ast.Ident)
			logical := c.Op == token.LAND || c.Op == token.LOR
			found = found || c.Op.Precedence() <= token.EQL.Precedence() && !logical && !(ident && y.Name == "nil")
		case *ast.CallExpr:
			if f, ok := c.Fun.(*ast.SelectorExpr); ok {
				p, isIdent := f.X.(*ast.Ident)
				found = found || isIdent && slices.Contains(comparing, p.Name+"."+f.Sel.Name)
			}
		}
		return true
	})
	return found
}

// unexpected reports whether a condition is an error that is none of some expected ones: err != nil && ...
func unexpected(condition ast.Expr) bool {
	both, ok := condition.(*ast.BinaryExpr)
	return ok && both.Op == token.LAND && (onlyNil(both.X) || unexpected(both.X))
}

// onlyNil reports whether a condition only compares with nil.
func onlyNil(condition ast.Expr) bool {
	only := true
	ast.Inspect(condition, func(n ast.Node) bool {
		switch c := n.(type) {
		case *ast.BinaryExpr:
			y, ident := c.Y.(*ast.Ident)
			logical := c.Op == token.LAND || c.Op == token.LOR
			only = only && (logical || ident && y.Name == "nil")
		case *ast.UnaryExpr, *ast.CallExpr, *ast.IndexExpr:
			only = false
		}
		return only
	})
	return only
}

// verbs matches the verbs of a format and escaped white space.
var verbs = regexp.MustCompile(`%[-+# 0]*[\d.*\[\]]*[A-Za-z]|\\[nt]`)

// wordless reports whether a call's format has verbs but no word.
func wordless(call *ast.CallExpr) bool {
	if len(call.Args) == 0 {
		return false
	}
	format, ok := call.Args[0].(*ast.BasicLit)
	return ok && format.Kind == token.STRING && !strings.ContainsFunc(verbs.ReplaceAllString(format.Value, ""),
		unicode.IsLetter)
}

// eachFailure calls fn with each failure of a file, and the condition under which it is reported.
func eachFailure(file *ast.File, fn func(check *ast.IfStmt, call *ast.CallExpr)) {
	ast.Inspect(file, func(n ast.Node) bool {
		check, ok := n.(*ast.IfStmt)
		if !ok || onlyNil(check.Cond) {
			return true
		}
		for _, s := range check.Body.List {
			statement, ok := s.(*ast.ExprStmt)
			if !ok {
				continue
			}
			call, ok := statement.X.(*ast.CallExpr)
			if !ok {
				continue
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"Error", "Errorf", "Fatal", "Fatalf"}, f.Sel.Name) {
				continue
			}
			if of, isIdent := f.X.(*ast.Ident); isIdent && of.Name == "http" { // the answer of a server
				continue
			}
			fn(check, call)
		}
		return true
	})
}

// wantless returns the positions of failures after a comparison whose message does not say what was wanted, names a
// variable instead, or prints only values.
func wantless(file *ast.File) (found []token.Position) {
	eachFailure(file, func(check *ast.IfStmt, call *ast.CallExpr) {
		said, worded, named := !compares(check.Cond) && !wordless(call), false, ""
		ast.Inspect(call, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
				worded = true
				said = said || strings.Contains(text.Value, "want")
				named += bareName(check.Cond, text.Value)
			}
			return true
		})
		said = said || !worded && unexpected(check.Cond) // the error says it
		if !said || named != "" {
			found = append(found, places.Position(call.Pos()))
		}
	})
	return found
}

// bareName returns the variable of a condition that a failure's message names, without an article, where it says what
// was wanted: "want it in out", "want n at least 3".
func bareName(condition ast.Node, message string) string {
	_, want, said := strings.Cut(message, "want ")
	if !said {
		return ""
	}
	names := map[string]bool{}
	ast.Inspect(condition, func(n ast.Node) bool {
		if name, ok := n.(*ast.Ident); ok {
			names[name.Name] = true
		}
		return true
	})
	for _, found := range bare.FindAllStringSubmatch(want, -1) {
		if name := found[1] + found[2]; names[name] {
			return name
		}
	}
	return ""
}

// bare matches the words of a message where a variable may be named: before a comparison, and at the end.
var bare = regexp.MustCompile(`(?:^|and |or )([a-z]\w*) (?:at (?:least|most)|less than|more than|other than|not|=) |` +
	`\b(?:in|among) ([a-z]\w*)(?:$|["` + "`" + `:;,\\])`)

// TestFailuresSayGotAndWant finds failure messages of comparisons that say what a test got but not what it wanted.
func TestFailuresSayGotAndWant(t *testing.T) {
	atRoot(t)
	sample, err := parser.ParseFile(places, "sample_test.go", `package p
		func f() {
			if got != 1 { t.Errorf("got %d", got) }
			if got != 1 { t.Errorf("got %d, want 1", got) }
			if !errors.Is(err, fs.ErrExist) { t.Fatal(err) }
			if err != nil { t.Fatal(err) }
			if len(got) == 0 || got[0] < 1 { t.Errorf("%s: %+v", name, got) }
			if len(got) == 0 || got[0] < 1 { t.Errorf("%s has %+v", name, got) }
			if got, err := f(); got == nil && err != nil { t.Errorf("%s: %v", name, err) }
			if err != nil && !errors.Is(err, fs.ErrExist) { t.Fatal(err) }
			if err != nil || got != 1 { t.Fatal(err) }
			if !found[name] { t.Errorf("%s is missing", name) }
			if !strings.Contains(out, part) { t.Errorf("got no %s, want it in out:\n%s", part, out) }
			if n < 3 { t.Errorf("got %d, want n at least 3", n) }
			if !strings.Contains(out, part) { t.Errorf("got %s, want one that contains %s", out, part) }
		}`, 0)
	if err != nil {
		t.Fatal(err)
	}
	lines := []int{}
	for _, at := range wantless(sample) {
		lines = append(lines, at.Line)
	}
	if want := []int{3, 5, 7, 8, 11, 13, 14}; !slices.Equal(lines, want) {
		t.Errorf("in the sample: got lines %v, want %v", lines, want)
	}
	read := 0
	err = filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		name := filepath.ToSlash(path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == ".git" || entry.Name() == "node_modules" || entry.Name() == "testdata"):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, "_test.go") &&
			!strings.HasPrefix(name, "internal/testing/storetest/") &&
			!strings.HasPrefix(name, "internal/db/dbtest/") || !strings.HasSuffix(name, ".go"):
			return nil
		}
		file, err := parse(path)
		if err != nil {
			return err
		}
		read++
		for _, at := range wantless(file) {
			t.Errorf("%s:%d: got a failure without what was wanted, or with a variable's name in it, want a value or a phrase",
				name, at.Line)
		}
		return nil
	})
	if err != nil || read < 300 {
		t.Errorf("got %v after %d files, want at least 300 files", err, read)
	}
}
