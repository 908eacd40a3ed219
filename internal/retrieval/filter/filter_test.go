package filter

import (
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// Lists of memories that have a key, with any value, are read from the index of own metadata.
func TestMemoriesWithAKeyAreReadFromAnIndex(t *testing.T) {
	with, err := Compile(kernel.Viewer{}, map[string]any{"source": Condition{Not: []any{nil}}})
	if err != nil || len(with) != 1 || !strings.HasPrefix(with[0].SQL.statement(), "SELECT o.memory_id FROM memory_own") {
		t.Fatalf("with the key: got %+v, %v, want rows of memory_own", with, err)
	}
	without, err := Compile(kernel.Viewer{}, map[string]any{"source": nil})
	if err != nil || len(without) != 1 || without[0].SQL.String() != "NOT ("+with[0].SQL.String()+")" {
		t.Errorf("without it: got %+v, %v, want the opposite of %s", without, err, with[0].SQL)
	}
	either, err := Compile(kernel.Viewer{}, map[string]any{"source": []any{nil, "mail"}})
	if err != nil || len(either) != 1 || either[0].SQL.statement() != "" ||
		!strings.Contains(either[0].SQL.String(), " OR NOT ") {
		t.Errorf("without it, or with a value: got %+v, %v, want one condition that no index has", either, err)
	}
}
