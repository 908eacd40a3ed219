package dbtest_test

import (
	"os"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db/dbtest"
)

// TestTheGuideNamesEachTest checks that docs/engines.md says at which step an engine must pass each test.
func TestTheGuideNamesEachTest(t *testing.T) {
	content, err := os.ReadFile("../../../docs/engines.md")
	if err != nil {
		t.Fatal(err)
	}
	guide := strings.Join(strings.Fields(string(content)), " ")
	var names []string
	for _, c := range dbtest.Tests(dbtest.Engine{}) {
		names = append(names, c.Name)
	}
	for _, c := range dbtest.Others {
		names = append(names, c.Name)
	}
	for _, name := range names {
		if !strings.Contains(guide, name) {
			t.Errorf("docs/engines.md: got no test %q in a step, want each", name)
		}
	}
}
