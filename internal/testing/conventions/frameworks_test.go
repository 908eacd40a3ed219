package conventions

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPagesOfFrameworksShowExamplesThatRun compares the Go code of each page in docs/frameworks with the examples of
// its module in adapters, which the module's tests run.
func TestPagesOfFrameworksShowExamplesThatRun(t *testing.T) {
	const most = 15 // lines of code that a user of the module needs
	root := filepath.Join("..", "..", "..")
	unindented := func(path ...string) string {
		content, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
		if err != nil {
			t.Fatal(err)
		}
		return regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(string(content), "")
	}
	modules, err := filepath.Glob(filepath.Join(root, "adapters", "*", "go.mod"))
	if err != nil || len(modules) == 0 {
		t.Fatalf("got %d modules and %v, want some", len(modules), err)
	}
	code := regexp.MustCompile("(?s)```go\n(.*?)```")
	pages := map[string]string{"trpcagent": "trpc-agent-go"} // pages whose names differ from their modules'
	for _, module := range modules {
		module = filepath.Base(filepath.Dir(module))
		page := pages[module]
		if page == "" {
			page = module
		}
		examples := unindented("adapters", module, "example_test.go")
		if !strings.Contains(examples, "// Output:") {
			t.Errorf("adapters/%s: got no example with an output, want one, or go test does not run it", module)
		}
		blocks := code.FindAllStringSubmatch(unindented("docs", "frameworks", page+".md"), -1)
		if len(blocks) == 0 {
			t.Errorf("docs/frameworks/%s.md: got no Go code, want some", page)
		}
		for _, block := range blocks {
			if !strings.Contains(examples, block[1]) {
				t.Errorf("docs/frameworks/%s.md: got code that no example of adapters/%s has, want it there:\n%s", page, module,
					block[1])
			}
			if n := strings.Count(block[1], "\n"); n > most {
				t.Errorf("docs/frameworks/%s.md: got %d lines, want at most %d:\n%s", page, n, most, block[1])
			}
		}
	}
}
