package conventions

import (
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var updatePortability = flag.Bool("update-portability", false, "rewrite docs/portability.txt")

// sqliteOnly are spellings that other engines do not have. Names from internal/db are not found: an engine's dialect
// replaces them with its own text.
var sqliteOnly = []struct {
	name    string
	pattern *regexp.Regexp
}{
	{"ifnull", regexp.MustCompile(`(?i)\bifnull\(`)},
	{"iif", regexp.MustCompile(`(?i)\biif\(`)},
	{"IS ?", regexp.MustCompile(`\bIS (NOT )?(\?|'|[a-z_]+\.)`)},
	{"COLLATE", regexp.MustCompile(`\bCOLLATE\b`)},
	{"JSON function", regexp.MustCompile(`\bjson_\w+\(|->>`)},
	{"group_concat", regexp.MustCompile(`\bgroup_concat\b`)},
	{"char()", regexp.MustCompile(`\bchar\(\d`)},
	{"typeof", regexp.MustCompile(`\btypeof\(`)},
	{"instr", regexp.MustCompile(`\binstr\(`)},
	{"INDEXED BY", regexp.MustCompile(`\bINDEXED BY\b`)},
	{"CROSS JOIN", regexp.MustCompile(`\bCROSS JOIN\b`)},
	{"ON CONFLICT DO UPDATE", regexp.MustCompile(`\bON CONFLICT DO UPDATE\b`)},
	{"OR IGNORE", regexp.MustCompile(`\b(INSERT|UPDATE) OR \w+`)},
	{"REPLACE INTO", regexp.MustCompile(`\bREPLACE INTO\b`)},
	{"LIMIT -1", regexp.MustCompile(`\bLIMIT -1\b`)},
	{"max, min of several", regexp.MustCompile(`\b(max|min)\([^()]*(\([^()]*\)[^()]*)*,`)},
	{"blob", regexp.MustCompile(`\b[xX]'[0-9a-f]*'|\bzeroblob\(|\bAS BLOB\b`)},
	{"rowid", regexp.MustCompile(`\browid\b`)},
	{"PRAGMA", regexp.MustCompile(`\bPRAGMA \w|\bpragma_\w+`)},
	{"sqlite table", regexp.MustCompile(`\bsqlite_(schema|sequence|master)\b`)},
	{"temporary trigger", regexp.MustCompile(`\bCREATE TEMP\b`)},
	{"reserved word", regexp.MustCompile(
		`\b(FROM|JOIN|INTO|UPDATE|TABLE) (user|order|group|table|column|grant|references|end)\b`)},
	{"an engine's table", regexp.MustCompile(`\b(FROM|JOIN|INTO|UPDATE) (passage_text|passage_term|change)\b`)},
	{"list as IN", regexp.MustCompile(`\bIN [a-z_]+\b[^(.]`)},
	{"/", regexp.MustCompile(`[\w?)] ?/ ?[\w?(]+ `)},        // see db.Quotient
	{"LIKE", regexp.MustCompile(`([^)y]|[^e]y) LIKE\b`)},    // case-sensitive in some; lower() and name_key are folded
	{"NULLS", regexp.MustCompile(`\bNULLS (FIRST|LAST)\b`)}, // not everywhere, and the default order differs
	{"AS INTEGER", regexp.MustCompile(`\bAS INTEGER\b`)},    // 32 bits in other engines
	// See db.NoIndex.
	{"unary +", regexp.MustCompile(`(^|[ (,\n\t])\+[a-z…]|\w \+ 0\b`)},
	{"WITH before a write", regexp.MustCompile( // engines recognise a write by its first word
		`(?s)^[\s(]*(…|WITH\b)(.*[\s)])?(INSERT INTO|UPDATE [a-z_]+ SET|DELETE FROM)\b`)},
}

// statement matches SQL, as opposed to other texts.
var statement = regexp.MustCompile(
	`\b(SELECT|INSERT|REPLACE INTO|UPDATE|DELETE ` +
		`FROM|FROM|JOIN|WHERE|AND|EXISTS|CREATE|coalesce|CASE WHEN|json_\w+|ON CONFLICT|PRAGMA|LIMIT|IN)\b|[=<>] \?`)

// aboveEngines returns the files with the SQL above the engines, by path. Commands, server and tools have no SQL;
// layering_test.go enforces that. The SQL of internal/migrate is for other programs' SQLite files.
func aboveEngines(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	if err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		slashed := filepath.ToSlash(path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"internal/db/dbtest", "cmd", "server", "mcpserver", "tools",
			"examples", "bench", "e2e", ".git", "internal/migrate"}, slashed):
			return fs.SkipDir
		case entry.IsDir() && slices.ContainsFunc(engines, func(e engine) bool { return e.dir == "./"+slashed }):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files[slashed], err = parse(path)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return files
}

// spelledOnlyForSQLite counts, by file, the spellings for SQLite alone in the SQL above the engines, except that of
// internal/db.
func spelledOnlyForSQLite(t *testing.T) string {
	t.Helper()
	counts := map[string]int{} // by file and spelling
	for path, file := range aboveEngines(t) {
		if strings.HasPrefix(path, "internal/db/") {
			continue
		}
		eachText(file, func(text string) {
			if !statement.MatchString(text) {
				return
			}
			for _, s := range sqliteOnly {
				if n := len(s.pattern.FindAllString(text, -1)); n > 0 {
					counts[path+": "+s.name] += n
				}
			}
		})
	}
	var out strings.Builder
	for _, place := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&out, "%s %d\n", place, counts[place])
	}
	return out.String()
}

// eachText calls fn for each text of a file, except regular expressions. Parts that + joins are one text, in which …
// stands for each part that is no literal.
func eachText(file ast.Node, fn func(text string)) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			name, is := n.Fun.(*ast.SelectorExpr)
			return !is || name.Sel.Name != "MustCompile"
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				fn(joined(n, "…"))
			}
		case *ast.BinaryExpr:
			if n.Op == token.ADD {
				fn(joined(n, "…"))
				for _, part := range others(n) {
					eachText(part, fn)
				}
				return false
			}
		}
		return true
	})
}

// others returns the parts of a sum that are no literals.
func others(e ast.Expr) []ast.Expr {
	switch e := e.(type) {
	case *ast.BasicLit:
		return nil
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return append(others(e.X), others(e.Y)...)
		}
	}
	return []ast.Expr{e}
}

// total counts each spelling of a list.
func total(t *testing.T, list string) map[string]int {
	t.Helper()
	all := map[string]int{}
	for line := range strings.Lines(list) {
		_, spelling, _ := strings.Cut(strings.TrimSpace(line), ": ")
		end := strings.LastIndex(spelling, " ")
		n, err := strconv.Atoi(spelling[end+1:])
		if end < 0 || err != nil {
			t.Fatalf("the line %q is not FILE: SPELLING NUMBER, want this form", line)
		}
		all[spelling[:end]] += n
	}
	return all
}

// grown returns the spellings that the found list has more often than the known one, even if in other files.
func grown(t *testing.T, known, found string) (more []string) {
	t.Helper()
	before := total(t, known)
	for spelling, n := range total(t, found) {
		if n > before[spelling] {
			more = append(more, fmt.Sprintf("%s: %d, and %d were known", spelling, n, before[spelling]))
		}
	}
	return more
}

// most is how many places the list may have. Lower it when the list shrinks; it is never raised.
const most = 7

// The list may only shrink. Spell the SQL of a new or growing line in another way, and delete a line that no longer
// applies: go test ./internal/testing/conventions -run Portab -update-portability. That also updates the list when a
// file has moved, but never adds a spelling.
func TestSQLIsSpelledPortablyExceptForAShrinkingList(t *testing.T) {
	atRoot(t)
	const golden = "docs/portability.txt"
	got := spelledOnlyForSQLite(t)
	content, err := os.ReadFile(golden)
	if err != nil && !*updatePortability {
		t.Fatal(err)
	}
	head, list, _ := strings.Cut(string(content), "\n\n")
	if *updatePortability {
		if more := grown(t, list, got); len(more) > 0 {
			t.Fatalf("%s would grow: %s; spell this as PostgreSQL does, too, or by a name of internal/db; want no more "+
				"of them", golden,
				strings.Join(more, "; "))
		}
		if err := os.WriteFile(golden, []byte(head+"\n\n"+got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	known := strings.Split(strings.TrimSpace(list), "\n")
	found := strings.Split(strings.TrimSpace(got), "\n")
	for _, line := range found {
		if line != "" && !slices.Contains(known, line) {
			t.Errorf("%s: this is not in %s with this number: spell it as PostgreSQL does, too, or by a name of "+
				"internal/db, want the list as it is found",
				line, golden)
		}
	}
	sum := 0
	for _, n := range total(t, list) {
		sum += n
	}
	if sum != most {
		t.Errorf("%s: got %d places, want %d: if there are fewer, lower most here", golden, sum, most)
	}
	for _, line := range known {
		if line != "" && !slices.Contains(found, line) {
			t.Errorf("%s: is in %s but no longer found: delete the line, or write the smaller number, want the list as "+
				"it is found", line, golden)
		}
	}
}

func TestTheListOfPortabilityOnlyShrinks(t *testing.T) {
	const known = "a/query.go: iif 2\nquery.go: max, min of several 1\n"
	for found, grows := range map[string]bool{
		known: false, "": false, "b/query.go: iif 1\na/query.go: iif 1\n": false,
		"a/query.go: iif 2\nb/query.go: iif 1\n": true, "a/query.go: / 1\n": true,
	} {
		if more := grown(t, known, found); (len(more) > 0) != grows {
			t.Errorf("%q after %q: got %q as more, want some: %t", found, known, more, grows)
		}
	}
}

// Another file with the same name must not be counted with the first.
func TestSpellingsOfFilesOfOneNameAreCountedApart(t *testing.T) {
	t.Chdir(t.TempDir())
	for dir, condition := range map[string]string{"a": "instr(a, b)", "b": "instr(a, b)", "c": "iif(a, b, c)"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		source := "package " + dir + "\n\nconst query = `SELECT 1 WHERE " + condition + "`\n"
		if err := os.WriteFile(filepath.Join(dir, "query.go"), []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := spelledOnlyForSQLite(t), "a/query.go: instr 1\nb/query.go: instr 1\nc/query.go: iif 1\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEveryPatternOfSQLiteOnlySpellingFinds(t *testing.T) {
	atRoot(t)
	finds := func(name, text string) {
		i := slices.IndexFunc(sqliteOnly, func(s struct {
			name    string
			pattern *regexp.Regexp
		}) bool {
			return s.name == name
		})
		if i < 0 || !sqliteOnly[i].pattern.MatchString(text) || !statement.MatchString(text) {
			t.Errorf("%s does not find %s, want it found in the statement", name, text)
		}
	}
	finds("unary +", `SELECT 1 ORDER BY +… LIMIT 1`)
	finds("unary +", `WHERE a.b + 0 <= ?`)
	for name, text := range map[string]string{
		"ifnull": `SELECT ifnull(a, 0)`, "iif": `SELECT iif(a, b, c)`, "IS ?": `WHERE a IS b.c`,
		"COLLATE":       `WHERE a = 'b' COLLATE NOCASE`,
		"JSON function": `FROM json_each(?)`, "group_concat": `SELECT group_concat(a)`, "char()": `SELECT char(10)`,
		"typeof": `SELECT typeof(a)`,
		"instr":  `WHERE instr(a, b) > 0`, "INDEXED BY": `FROM a INDEXED BY b`, "CROSS JOIN": `FROM a CROSS JOIN b`,
		"ON CONFLICT DO UPDATE": `ON CONFLICT DO UPDATE SET a = 1`, "OR IGNORE": `INSERT OR IGNORE INTO a`,
		"REPLACE INTO": `REPLACE INTO a`,
		"LIMIT -1":     `LIMIT -1 OFFSET 3`, "max, min of several": `SELECT max(coalesce(a, 0), b)`, "blob": `SELECT x''`,
		"rowid":  `WHERE rowid = 1`,
		"PRAGMA": `PRAGMA page_size`, "sqlite table": `FROM sqlite_schema`, "temporary trigger": `CREATE TEMP TRIGGER`,
		"reserved word":     `FROM user u`,
		"list as IN":        `WHERE a IN level AND b`,
		"an engine's table": `DELETE FROM change`,
		"/":                 `WHERE id / ? IN (SELECT 1)`, "LIKE": `WHERE a LIKE ?`, "NULLS": `WHERE a ORDER BY b NULLS LAST`,
		"AS INTEGER": `SELECT CAST(a AS INTEGER)`, "unary +": `WHERE +a = 1`,
		"WITH before a write": "WITH RECURSIVE a (b) AS (SELECT 1)\n\tUPDATE c SET d = 1 WHERE e IN (SELECT b FROM a)",
	} {
		finds(name, text)
	}
	for _, portable := range []string{`SELECT max(a) FROM b, c WHERE d IN (SELECT 1) AND e IS NOT NULL`,
		`UPDATE users SET a = coalesce(b, 0)`, `count(*), max(a), min(b)`,
		`WHERE kind = 'file' AND 'trash/' || id IN (SELECT 1)`, `WHERE a.name_key LIKE ? OR lower(b) LIKE ?`,
		`WHERE id >> 32 = 1 AND a + b = 1`, `WITH a AS (SELECT 1) SELECT a FROM b`,
		`INSERT INTO a WITH b AS (SELECT 1) SELECT b`} {
		for _, s := range sqliteOnly {
			if s.pattern.MatchString(portable) {
				t.Errorf("%s finds %s, want it counted as portable", s.name, portable)
			}
		}
	}
}
