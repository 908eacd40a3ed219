package conventions

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheSecurityPageNamesExistingTestsAndFiles checks that the tests and files named in docs/security.md exist.
func TestTheSecurityPageNamesExistingTestsAndFiles(t *testing.T) {
	atRoot(t)
	page, err := os.ReadFile("docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	tests, files := map[string]bool{}, map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err = filepath.WalkDir(".", func(where string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == ".git":
			return fs.SkipDir
		}
		files[entry.Name()] = true
		if !strings.HasSuffix(where, "_test.go") {
			return nil
		}
		code, err := os.ReadFile(where)
		for _, found := range declared.FindAllSubmatch(code, -1) {
			tests[string(found[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(page), -1)
	for _, name := range named {
		if !tests[name] {
			t.Errorf("there is no test %s", name)
		}
	}
	for _, found := range regexp.MustCompile("`([a-z0-9/]+\\.(?:go|sh))`").FindAllStringSubmatch(string(page), -1) {
		if !files[path.Base(found[1])] {
			t.Errorf("there is no file %s", found[1])
		}
	}
	if len(named) < 50 {
		t.Errorf("the page names %d tests, want at least 50", len(named))
	}
}
