package conventions

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// interfacesOf returns the exported interfaces of a package, with the number of methods of each.
func interfacesOf(t *testing.T, folder string) map[string]int {
	t.Helper()
	packages, err := parser.ParseDir(token.NewFileSet(), folder, //nolint:staticcheck // types are not needed
		func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, p := range packages {
		ast.Inspect(p, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.IsExported() {
				if i, ok := spec.Type.(*ast.InterfaceType); ok {
					found[spec.Name.Name] = i.Methods.NumFields()
				}
			}
			return true
		})
	}
	return found
}

// TestThePageOfEnginesCountsTheirMethods compares the interfaces of internal/db with docs/engines.md.
func TestThePageOfEnginesCountsTheirMethods(t *testing.T) {
	atRoot(t)
	content, err := os.ReadFile("docs/engines.md")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(string(content)), " ")
	interfaces := interfacesOf(t, "internal/db")
	required := []string{"DB", "Tx", "Rows", "Row", "Words", "Vectors", "Changes", "Upkeep"}
	all, each := 0, []string{}
	for _, name := range required {
		all += interfaces[name]
		each = append(each, fmt.Sprintf("%d of %s", interfaces[name], name))
		delete(interfaces, name)
	}
	for _, want := range []string{fmt.Sprintf("%d methods (%s)", all, strings.Join(each, ", ")),
		fmt.Sprintf("**%d methods rather than 30.**", all)} {
		if !strings.Contains(page, want) {
			t.Errorf("docs/engines.md: got no %q, want the number of methods", want)
		}
	}
	if len(interfaces) == 0 {
		t.Error("got no optional interface, want some")
	}
	for _, name := range slices.Sorted(maps.Keys(interfaces)) {
		if !strings.Contains(page, "- `"+name+"`") {
			t.Errorf("docs/engines.md: got no item \"- `%s`\", want each optional interface", name)
		}
	}
}
