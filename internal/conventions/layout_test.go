package conventions

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTheRootFolderCanBeTakenIn holds the root to a number of files that a reader can take in, each with a concept of
// its own.
func TestTheRootFolderCanBeTakenIn(t *testing.T) {
	atRoot(t)
	const most, shortest, longest = 50, 60, 600
	all, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, name := range all {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		files++
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if lines := bytes.Count(content, []byte("\n")); lines < shortest || lines > longest {
			t.Errorf("%s: got %d lines, want %d to %d; put it where it belongs, or cut it", name, lines, shortest, longest)
		}
	}
	if files == 0 || files > most {
		t.Errorf("got %d files in the root, want at most %d; move machinery into internal/", files, most)
	}
}

// TestTheDocumentsNameWhatExists finds paths in the documents on the code that do not exist, and packages that the
// architecture leaves out.
func TestTheDocumentsNameWhatExists(t *testing.T) {
	atRoot(t)
	paths := regexp.MustCompile("`((?:[a-z0-9_]+/)*[a-z0-9_]+\\.go|(?:internal|server|cmd)/[a-z0-9/]+)`")
	named := ""
	for _, name := range []string{"docs/walks.md", "docs/architecture.md"} {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "docs/architecture.md" {
			named = string(content)
		}
		found := paths.FindAllStringSubmatch(string(content), -1)
		if len(found) == 0 {
			t.Errorf("%s: got no path, want some", name)
		}
		for _, match := range found {
			if _, err := os.Stat(match[1]); err != nil {
				t.Errorf("%s names %s: got %v, want a path that exists", name, match[1], err)
			}
		}
	}
	for _, folder := range []string{"internal", "server/internal"} {
		packages, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range packages {
			if !strings.Contains(named, "`"+p.Name()+"`") && !strings.Contains(named, folder+"/"+p.Name()) {
				t.Errorf("docs/architecture.md lacks %s/%s", folder, p.Name())
			}
		}
	}
}

// TestTheTableOfWalksCountsTheirFiles compares the numbers in the table of docs/walks.md with the lists below it.
func TestTheTableOfWalksCountsTheirFiles(t *testing.T) {
	atRoot(t)
	content, err := os.ReadFile("docs/walks.md")
	if err != nil {
		t.Fatal(err)
	}
	head, lists, _ := strings.Cut(string(content), "\n## ")
	step := regexp.MustCompile(`(?m)^[0-9]+\. ([^:]*):`)
	file := regexp.MustCompile("`([^`]+\\.go)`")
	walks := strings.Split(lists, "\n## ")
	if len(walks) < 3 {
		t.Fatalf("got %d walks, want at least 3", len(walks))
	}
	for _, walk := range walks {
		name, _, _ := strings.Cut(walk, "\n")
		files, inRoot, packages := 0, 0, map[string]bool{}
		for _, match := range step.FindAllStringSubmatch(walk, -1) {
			for _, named := range file.FindAllStringSubmatch(match[1], -1) {
				folder := path.Dir(named[1])
				files, packages[folder] = files+1, true
				if folder == "." {
					inRoot++
				}
			}
		}
		row := fmt.Sprintf(" | %d | %d | %d |\n", files, inRoot, len(packages))
		got := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(name) + ` \|.*\n`).FindString(head)
		if !strings.HasSuffix(got, row) {
			t.Errorf("docs/walks.md: the row of %s is %q, want it to end with %q", name, got, row)
		}
	}
}

// TestEachDocumentIsLinked finds pages in docs that the pages where a reader begins do not link.
func TestEachDocumentIsLinked(t *testing.T) {
	atRoot(t)
	begin := ""
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "docs/architecture.md"} {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		begin += strings.ReplaceAll(string(content), "](docs/", "](")
	}
	pages, err := filepath.Glob("docs/*.md")
	if err != nil || len(pages) < 20 {
		t.Fatalf("got %d pages, %v; want at least 20", len(pages), err)
	}
	for _, page := range pages {
		if !strings.Contains(begin, "]("+filepath.Base(page)) {
			t.Errorf("got no link to %s, want one in README.md, CONTRIBUTING.md or docs/architecture.md", page)
		}
	}
}

// TestDecisionsAreNewestFirst finds headings of docs/decisions.md without a date, dates that rise, and headings that
// are there twice.
func TestDecisionsAreNewestFirst(t *testing.T) {
	atRoot(t)
	content, err := os.ReadFile("docs/decisions.md")
	if err != nil {
		t.Fatal(err)
	}
	headings := regexp.MustCompile(`(?m)^##+ .*`).FindAllString(string(content), -1)
	dated := regexp.MustCompile(`^## (20\d\d-\d\d-\d\d) \S`)
	before := "9"
	for i, heading := range headings {
		if slices.Contains(headings[:i], heading) {
			t.Errorf("docs/decisions.md: got %q twice, want it once", heading)
		}
		date := dated.FindStringSubmatch(heading)
		if date == nil || date[1] > before {
			t.Errorf("docs/decisions.md: got %q after %s, want a heading like \"## 2026-11-21 Files\", the newest first",
				heading, before)
			continue
		}
		before = date[1]
	}
	if len(headings) < 100 {
		t.Errorf("got %d decisions, want at least 100", len(headings))
	}
}

// strange are words of code and documents that read as translated: say who it is, or what happens.
var strange = []string{"nobody", "somebody", "anybody", "everybody", "whoever", "is told", "are told", "hears of",
	"of whom", "that there is", "that there are", "goes by", "shall", "so many as", "lives in", "lies in", "lie in",
	"turned down", "come along", "comes along", "as ever", "such a one", "stay behind", "stays behind", "some hundred",
	"hangs on it"}

// strangeIn returns the first strange word of a text and the number of its line; "" if it has none. A word alone in
// quotes is a name. Words of one term may be in two lines, also of a comment.
func strangeIn(text []byte) (word string, line int) {
	var joined []byte
	var starts []int // of the lines in joined
	for line := range bytes.Lines(bytes.ToLower(text)) {
		starts = append(starts, len(joined))
		joined = append(append(joined, bytes.TrimLeft(bytes.TrimSpace(line), "/#> ")...), ' ')
	}
	inWord := func(at int) bool {
		if at < 0 || at >= len(joined) || bytes.HasPrefix(joined[at:], []byte("'s ")) {
			return false
		}
		return joined[at] >= 'a' && joined[at] <= 'z' || joined[at] == '"' || joined[at] == '\''
	}
	for _, word := range strange {
		for at := 0; ; at += len(word) {
			next := bytes.Index(joined[at:], []byte(word))
			if next < 0 {
				break
			}
			if at += next; !inWord(at-1) && !inWord(at+len(word)) && !bytes.HasSuffix(joined[:at], []byte("http.")) {
				line, _ := slices.BinarySearch(starts, at+1)
				return word, line
			}
		}
	}
	return "", 0
}

// strangeNames are further words that names of tests do without.
var strangeNames = []string{"whatever", "whichever", "of which", "those that", "so many", "any more", "taken back",
	"put out"}

// testName is the declaration of a test, and humps are where words of its name begin.
var (
	testName = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w+)\(`)
	humps    = regexp.MustCompile(`[A-Z_]`)
)

// strangeNameIn returns the first test of a source whose name has a strange word, and this word; "" if none has.
func strangeNameIn(source []byte) (name, word string) {
	for _, m := range testName.FindAllSubmatch(source, -1) {
		words := strings.ToLower(humps.ReplaceAllString(string(m[1]), " $0")) + " "
		for _, word := range slices.Concat(strange, strangeNames) {
			if strings.Contains(words, " "+word+" ") {
				return string(m[1]), word
			}
		}
	}
	return "", ""
}

// TestTextsAreInPlainEnglish finds strange words in code, comments, documents and pages.
func TestTextsAreInPlainEnglish(t *testing.T) {
	atRoot(t)
	except := []string{
		"layout_test.go",
		"internal/alike/words.go", "internal/text/stopwords.go", // words of languages
		"internal/sqlite/migrations", // a landed one never changes
		"internal/seed", "internal/static/distill", "examples", "eval", "testdata", "exact_test.go", "tools/rules_test.go",
		"server/internal/dashboard/projecttodo_test.go", // made-up memories
		"cmd/souvenir/cli_test.go", "server/scenarios_test.go", "internal/storetest/projectinvitations.go",
		"e2e/dashboard/flows/projects.mjs", // a user called nobody
	}
	kinds := []string{".go", ".md", ".html", ".css", ".js", ".mjs", ".py", ".sh"}
	read := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		name := filepath.ToSlash(path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == ".git" || entry.Name() == "node_modules"),
			slices.Contains(except, name) || slices.Contains(except, entry.Name()):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir() || !slices.Contains(kinds, filepath.Ext(name)):
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		read++
		if word, line := strangeIn(content); word != "" {
			t.Errorf("%s:%d: got %q, want a plain word for it", name, line, word)
		}
		if test, word := strangeNameIn(content); word != "" {
			t.Errorf("%s: got %q in %s, want a plain word for it", name, word, test)
		}
		return nil
	})
	for text, want := range map[string]string{"Name \"nobody\".\nIt is told so.": "is told",
		"// Name.\n\t// It is\n\t// told so.": "is told", "The 'nobody' user.\nThat is nobody's file.": "nobody"} {
		if word, line := strangeIn([]byte(text)); word != want || line != 2 {
			t.Errorf("%q: got %q in line %d, want %s in line 2", text, word, line, want)
		}
	}
	sample := []byte("func TestOne(t *testing.T) {}\nfunc TestATaskIsToldToNobody(t *testing.T) {}\n")
	if name, word := strangeNameIn(sample); name != "TestATaskIsToldToNobody" || word != "nobody" {
		t.Errorf("got %q in %q, want nobody in TestATaskIsToldToNobody", word, name)
	}
	if err != nil || read < 500 {
		t.Errorf("got %v after %d files, want at least 500 files", err, read)
	}
}
