package conventions

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTheRootFolderCanBeTakenIn limits the number of files in the root to what a reader can take in, each with its own
// concept.
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

// TestTheFoldersBelowTheAPICanBeTakenIn limits the number of folders in internal to what a reader can take in.
func TestTheFoldersBelowTheAPICanBeTakenIn(t *testing.T) {
	atRoot(t)
	const most = 50
	folders, err := os.ReadDir("internal")
	if err != nil {
		t.Fatal(err)
	}
	if len(folders) == 0 || len(folders) > most {
		t.Errorf("got %d folders in internal, want at most %d; put related packages into one folder", len(folders), most)
	}
}

// TestTheDocumentsNameWhatExists finds paths in the documents about the code that do not exist, and packages missing in
// the architecture.
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
	for _, folder := range []string{"internal", "internal/*", "server/internal"} {
		packages, err := filepath.Glob(folder + "/*/*.go")
		if err != nil || len(packages) == 0 {
			t.Fatalf("%s: got %d files of packages and %v, want some", folder, len(packages), err)
		}
		for _, p := range packages {
			p = path.Dir(filepath.ToSlash(p))
			if name := path.Base(p); !strings.Contains(named, "`"+name+"`") && !strings.Contains(named, "/"+name) {
				t.Errorf("docs/architecture.md lacks %s, want it named", p)
			}
		}
	}
}

// TestThePictureNamesFoldersThatExist finds boxes of the architecture's picture with names that no folder has.
func TestThePictureNamesFoldersThatExist(t *testing.T) {
	atRoot(t)
	picture, err := os.ReadFile("docs/architecture.svg")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`class="name"[^>]*>([a-z0-9/]+)<`).FindAllSubmatch(picture, -1)
	if len(named) < 30 {
		t.Errorf("docs/architecture.svg: got %d names of folders, want at least 30", len(named))
	}
	for _, match := range named {
		name, found := string(match[1]), false
		for _, above := range []string{"", "internal", "internal/*", "server/internal"} {
			folders, err := filepath.Glob(filepath.Join(above, name))
			found = found || err == nil && len(folders) > 0
		}
		if !found {
			t.Errorf("docs/architecture.svg: got %q, want the name of a folder", name)
		}
	}
}

// TestTheTableOfWalksCountsTheirFiles compares the numbers in the table of docs/walks.md with the lists above it.
func TestTheTableOfWalksCountsTheirFiles(t *testing.T) {
	atRoot(t)
	content, err := os.ReadFile("docs/walks.md")
	if err != nil {
		t.Fatal(err)
	}
	lists, table, _ := strings.Cut(string(content), "\n## How many files\n")
	step := regexp.MustCompile(`(?m)^[0-9]+\. ([^:]*):`)
	file := regexp.MustCompile("`([^`]+\\.go)`")
	walks := strings.Split(lists, "\n## ")[1:]
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
		got := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(name) + ` \|.*\n`).FindString(table)
		if !strings.HasSuffix(got, row) {
			t.Errorf("docs/walks.md: the row of %s is %q, want it to end with %q", name, got, row)
		}
	}
}

// TestEachDocumentIsLinked finds pages in docs that no starting page links to.
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

// TestDecisionsAreNewestFirst finds headings of docs/decisions.md that have no date, are out of order within their
// subject, or occur twice, and subjects that its list of contents leaves out.
func TestDecisionsAreNewestFirst(t *testing.T) {
	atRoot(t)
	content, err := os.ReadFile("docs/decisions.md")
	if err != nil {
		t.Fatal(err)
	}
	headings := regexp.MustCompile(`(?m)^##+ .*`).FindAllString(string(content), -1)
	dated := regexp.MustCompile(`^### (20\d\d-\d\d-\d\d) \S`)
	before, decisions := "9", 0
	for i, heading := range headings {
		if slices.Contains(headings[:i], heading) {
			t.Errorf("docs/decisions.md: got %q twice, want it once", heading)
		}
		if subject, ok := strings.CutPrefix(heading, "## "); ok {
			if before = "9"; !strings.Contains(string(content), "- ["+subject+"](#") {
				t.Errorf("docs/decisions.md: got the subject %q, want it in the list at the top", subject)
			}
			continue
		}
		date := dated.FindStringSubmatch(heading)
		if date == nil || date[1] > before {
			t.Errorf("docs/decisions.md: got %q after %s, want a heading like \"### 2026-11-21 Files\", the newest of its "+
				"subject first", heading, before)
			continue
		}
		before = date[1]
		decisions++
	}
	if decisions < 100 {
		t.Errorf("got %d decisions, want at least 100", decisions)
	}
}
