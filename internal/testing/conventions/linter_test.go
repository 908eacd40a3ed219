package conventions

import (
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// guard is a rule of the linter's depguard.
type guard struct {
	Files []string
	Allow []string
	Deny  []struct{ Pkg string }
}

// linterRules returns the depguard rules by name.
func linterRules(t *testing.T) map[string]guard {
	t.Helper()
	content, err := os.ReadFile(".golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Linters struct {
			Settings struct {
				Depguard struct{ Rules map[string]guard }
			}
		}
	}
	if err := yaml.Unmarshal(content, &config); err != nil {
		t.Fatal(err)
	}
	return config.Linters.Settings.Depguard.Rules
}

// fileMatches reports whether a file that is not a test matches a pattern. Its path starts with "/".
func fileMatches(pattern, file string) bool {
	switch pattern {
	case "$all":
		return true
	case "$test":
		return false
	}
	pattern = regexp.QuoteMeta(strings.TrimPrefix(pattern, "${base-path}"))
	pattern = strings.NewReplacer(`\*\*`, `.*`, `\*`, `[^/]*`).Replace(pattern)
	return regexp.MustCompile(`^` + pattern + `$`).MatchString(file)
}

// covers reports whether a rule applies to a file.
func (g guard) covers(file string) bool {
	is := false
	for _, pattern := range g.Files {
		if not, excludes := strings.CutPrefix(pattern, "!"); !excludes {
			is = is || fileMatches(pattern, file)
		} else if fileMatches(not, file) {
			return false
		}
	}
	return is
}

// denies reports whether a rule forbids importing a package.
func (g guard) denies(path string) bool {
	for _, allowed := range g.Allow {
		exact, is := strings.CutSuffix(allowed, "$")
		if is && path == exact || !is && strings.HasPrefix(path, allowed) {
			return false
		}
	}
	for _, d := range g.Deny {
		exact, is := strings.CutSuffix(d.Pkg, "$")
		if is && path == exact || !is && strings.HasPrefix(path, d.Pkg) {
			return true
		}
	}
	return false
}

// TestWhatTheLinterForbidsALayerForbids compares both for each package and each possible import. It ignores rules of
// the linter for only some files of a package.
func TestWhatTheLinterForbidsALayerForbids(t *testing.T) {
	atRoot(t)
	g, guards := listPackages(t, builds[0].Env, builds[0].Args), linterRules(t)
	if len(guards) < 10 {
		t.Fatalf("got %d rules of depguard, want those of .golangci.yml", len(guards))
	}
	targets := map[string]bool{}
	for path := range g {
		targets[path] = true
	}
	for _, guard := range guards {
		for _, d := range guard.Deny {
			targets[strings.TrimSuffix(d.Pkg, "$")] = true // perhaps imported by no program now
		}
	}
	denied := map[string][]string{}
	for name, guard := range guards {
		for to := range targets {
			if guard.denies(to) {
				denied[name] = append(denied[name], to)
			}
		}
		slices.Sort(denied[name])
	}
	for _, from := range slices.Sorted(maps.Keys(g)) {
		if g[from].DepOnly {
			continue
		}
		files, err := filepath.Glob(filepath.Join(".", strings.TrimPrefix(from, modulePath), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		files = slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, "_test.go") })
		mine := slices.DeleteFunc(layers(), func(l layer) bool { return !matchAny(l.From, from) || matchAny(l.Except, from) })
		for _, name := range slices.Sorted(maps.Keys(guards)) {
			if len(files) == 0 || slices.ContainsFunc(files, func(f string) bool {
				return !guards[name].covers("/" + filepath.ToSlash(f))
			}) {
				continue
			}
			for _, to := range denied[name] {
				if to != from && !slices.ContainsFunc(mine, func(l layer) bool {
					return matchAny(l.Never, to) && !matchAny(l.But, to)
				}) {
					t.Errorf("%s imports %s: got no layer that forbids it, want one, as the linter's rule %s does", from, to, name)
				}
			}
		}
	}
}

// TestRootImportsSQLiteOnlyWhereFilesAreOpened: the rest of the root works with any engine.
func TestRootImportsSQLiteOnlyWhereFilesAreOpened(t *testing.T) {
	atRoot(t)
	opens := []string{"backup.go", "encryption.go", "store.go"}
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			if spec.Path.Value == strconv.Quote(modulePath+"/internal/sqlite") && !strings.HasSuffix(name, "_test.go") {
				found = append(found, name)
			}
		}
	}
	if !slices.Equal(found, opens) {
		t.Errorf("files of the root that import internal/sqlite: got %q, want %q", found, opens)
	}
}
