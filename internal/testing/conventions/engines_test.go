package conventions

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// engine is a storage engine: an implementation of internal/db.
type engine struct {
	dir     string   // its folder
	drivers []string // modules that only this engine imports
	opener  string   // the package that opens its stores; "" if the root does
	besides []string // other packages that may import it
	tests   []string // packages for tests that may import it
	words   []string // of its own, in texts of programs
	above   []string // places above that have such words, which may only become fewer
}

// engines are all storage engines. The rules about them, and the places that belong to them, are derived from this
// list.
var engines = []engine{
	// Storefile configures it, recovery reads damaged files, and migrate reads the files of other programs.
	{dir: "./internal/sqlite", besides: []string{"./internal/storefile", "./internal/recovery", "./internal/migrate"},
		drivers: []string{"modernc.org/...", "github.com/mattn/go-sqlite3/...",
			"github.com/asg017/sqlite-vec-go-bindings/..."},
		words: []string{"sqlite", "SQLite format", "-wal", "PRAGMA"},
		above: []string{"backup.go: -wal", "cmd/souvenir/backup.go: -wal", "cmd/souvenir/userkeys.go: SQLite format",
			"internal/db/dialect.go: sqlite", "internal/transfer/import.go: SQLite format", "recover.go: -wal"}},
	{dir: "./internal/postgres", opener: "./postgres", drivers: []string{"github.com/jackc/..."},
		tests: []string{"./server/internal/servertest"}, words: []string{"postgres://", "postgresql://", "pg_"},
		above: []string{programEngines + ": pg_", programEngines + ": postgres://"}},
}

// engineFolders are the packages of all engines.
var engineFolders = func() (all []string) {
	for _, e := range engines {
		all = append(all, e.dir+"/...")
	}
	return all
}()

// programEngines is the file that names all engines for the program. Besides, help and examples may name one.
const programEngines = "cmd/souvenir/engines.go"

// helpText matches the help of a command, and its examples.
var helpText = regexp.MustCompile(`^.Serves the store|souvenir [a-z]+ `)

func TestWordsOfAnEngineAreInItsPackagesAndInFewPlacesAbove(t *testing.T) {
	atRoot(t)
	for _, e := range engines {
		found := map[string]bool{}
		err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
			slashed := filepath.ToSlash(path)
			own := slices.Contains(append(e.besides, e.dir, e.opener), "./"+slashed)
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (own || slices.Contains([]string{".git", "bench", "e2e", "adapters"}, slashed)):
				return fs.SkipDir
			case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			file, err := parse(path)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if _, imports := n.(*ast.ImportSpec); imports {
					return false
				}
				literal, ok := n.(*ast.BasicLit)
				for _, word := range e.words {
					if ok && literal.Kind == token.STRING && strings.Contains(literal.Value, word) &&
						!helpText.MatchString(literal.Value) {
						found[slashed+": "+word] = true
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, e.above) {
			t.Errorf("words of %s are in\n%s\nwant them in its packages, and in these places at most:\n%s", e.dir,
				strings.Join(got, "\n"), strings.Join(e.above, "\n"))
		}
	}
}

// interfacesOf returns the names of the exported interfaces of a package.
func interfacesOf(t *testing.T, folder string) map[string]bool {
	t.Helper()
	packages, err := parser.ParseDir(token.NewFileSet(), folder, //nolint:staticcheck // types are not needed
		func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, p := range packages {
		ast.Inspect(p, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.IsExported() {
				if _, ok := spec.Type.(*ast.InterfaceType); ok {
					found[spec.Name.Name] = true
				}
			}
			return true
		})
	}
	return found
}

// required returns the interfaces that each engine implements, reached from db.DB, with the number of methods of each.
func required() (names []string, methods map[string]int) {
	methods = map[string]int{}
	own := reflect.TypeFor[db.DB]().PkgPath()
	var reach func(t reflect.Type)
	reach = func(t reflect.Type) {
		switch {
		case t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer:
			reach(t.Elem())
		case t.Kind() == reflect.Func:
			for i := range t.NumIn() {
				reach(t.In(i))
			}
			for i := range t.NumOut() {
				reach(t.Out(i))
			}
		case t.Kind() == reflect.Interface && t.PkgPath() == own && methods[t.Name()] == 0:
			names, methods[t.Name()] = append(names, t.Name()), t.NumMethod()
			for i := range t.NumMethod() {
				reach(t.Method(i).Type)
			}
		}
	}
	reach(reflect.TypeFor[db.DB]())
	return names, methods
}

// mostMethods is the limit on the methods that each engine must implement. What only some engines need belongs in an
// optional interface or in a part of db.Upkeep.
const mostMethods = 30

// TestThePageOfEnginesListsInsertsWithoutATarget compares the statements above the engines with ON CONFLICT DO NOTHING,
// which any unique constraint may concern, with the list of their files in docs/engines.md.
func TestThePageOfEnginesListsInsertsWithoutATarget(t *testing.T) {
	atRoot(t)
	content, err := os.ReadFile("docs/engines.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(content), "ON CONFLICT DO NOTHING without one")
	list, _, _ = strings.Cut(list, "\n#")
	var listed []string
	for _, name := range regexp.MustCompile("`([a-z/]+\\.go)`").FindAllStringSubmatch(list, -1) {
		listed = append(listed, name[1])
	}
	var found []string
	for path, file := range aboveEngines(t) {
		eachText(file, func(text string) {
			if strings.Contains(text, "ON CONFLICT DO NOTHING") {
				found = append(found, path)
			}
		})
	}
	slices.Sort(found)
	slices.Sort(listed)
	if found = slices.Compact(found); !slices.Equal(found, listed) {
		t.Errorf("docs/engines.md lists inserts with ON CONFLICT DO NOTHING in\n%q\nthey are in\n%q; want the same files",
			listed, found)
	}
}

// dialectTexts returns the names of the texts that SQLite spells in its own way.
func dialectTexts(t *testing.T) (names []string) {
	t.Helper()
	for _, path := range []string{"internal/db/dialect.go", "internal/db/list.go"} {
		file, err := parse(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			constants, is := decl.(*ast.GenDecl)
			if !is || constants.Tok != token.CONST {
				continue
			}
			for _, spec := range constants.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					if name.IsExported() {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}

// TestTheContractTriesEachTextOfTheDialect looks for the texts in dbtest. Functions of internal/db use the others.
func TestTheContractTriesEachTextOfTheDialect(t *testing.T) {
	atRoot(t)
	paths, err := filepath.Glob("internal/db/dbtest/*.go")
	var source strings.Builder
	for _, path := range paths {
		content, readErr := os.ReadFile(path)
		source.Write(content)
		err = errors.Join(err, readErr)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range dialectTexts(t) {
		by := map[string]string{"SliceOf": "Slice", "SliceAt": "Slice", "QuotientOf": "Quotient", "QuotientBy": "Quotient"}
		if used := cmp.Or(by[name], name); !regexp.MustCompile(`\bdb\.` + used + `\b`).MatchString(source.String()) {
			t.Errorf("dbtest: got no use of db.%s, want each text of the dialect tried", used)
		}
	}
}

// TestThePageOfEnginesCountsTheTextsOfTheDialect compares the texts with docs/engines.md.
func TestThePageOfEnginesCountsTheTextsOfTheDialect(t *testing.T) {
	atRoot(t)
	content, err := os.ReadFile("docs/engines.md")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(string(content)), " ")
	if want := fmt.Sprintf("the dialect's %d texts", len(dialectTexts(t))); !strings.Contains(page, want) {
		t.Errorf("docs/engines.md: got no %q, want the number of constants of the dialect", want)
	}
}

// TestThePageOfEnginesCountsTheirMethods compares the interfaces of internal/db with docs/engines.md.
func TestThePageOfEnginesCountsTheirMethods(t *testing.T) {
	atRoot(t)
	content, err := os.ReadFile("docs/engines.md")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(string(content)), " ")
	names, methods := required()
	optional := interfacesOf(t, "internal/db")
	all, each := 0, []string{}
	for _, name := range names {
		all += methods[name]
		each = append(each, fmt.Sprintf("%d of %s", methods[name], name))
		delete(optional, name)
	}
	if all > mostMethods {
		t.Errorf("an engine has to implement %d methods, want at most %d", all, mostMethods)
	}
	if want := fmt.Sprintf("%d methods (%s)", all, strings.Join(each, ", ")); !strings.Contains(page, want) {
		t.Errorf("docs/engines.md: got no %q, want the number of methods", want)
	}
	if len(optional) == 0 {
		t.Error("got no optional interface, want some")
	}
	for _, name := range slices.Sorted(maps.Keys(optional)) {
		if !strings.Contains(page, "- `"+name+"`") {
			t.Errorf("docs/engines.md: got no item \"- `%s`\", want each optional interface", name)
		}
	}
}
