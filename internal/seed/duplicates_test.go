package seed

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/longtest"
)

// remark is what writer.nearly puts around a text.
var remark = regexp.MustCompile(
	`^(Note: |As said before: |Again, for the record: )+|(\.| \(confirmed\)|, as of today\.)+$`)

// TestOfferedDuplicatesSayTheSame looks at the pairs that are offered as near duplicates: each must be a text and the
// same text with remarks around it. Sentences made from one template, with other numbers and names, are none.
func TestOfferedDuplicatesSayTheSame(t *testing.T) {
	longtest.Only(t)
	path := filepath.Join(t.TempDir(), "filled.db")
	filled, err := Fill(t.Context(), path, 1000)
	if err != nil {
		t.Fatal(err)
	}
	store, err := souvenir.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	user, err := store.Accounts().GetUser(t.Context(), filled.User)
	if err != nil {
		t.Fatal(err)
	}
	view := store.As(souvenir.Access{User: user.ID})
	plain := func(id string) string {
		m, err := view.GetMemory(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		for text := m.Content; ; {
			shorter := remark.ReplaceAllString(text, "")
			if shorter == text {
				return text
			}
			text = shorter
		}
	}
	texts := map[string]int{}
	graph, err := view.Insights().Graph(t.Context(), souvenir.GraphQuery{Limit: souvenir.MaxNodes, Duplicates: 0.8})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range graph.Nodes {
		texts[plain(n.ID)]++
	}
	there := 0
	for _, n := range texts {
		there += n - 1
	}
	offered, wrong := 0, 0
	for _, e := range graph.Edges {
		if e.Kind != souvenir.EdgeSimilar {
			continue
		}
		offered++
		if a, b := plain(graph.Nodes[e.From].ID), plain(graph.Nodes[e.To].ID); a != b {
			wrong++
			t.Logf("%.2f:\n\t%s\n\t%s", e.Score, a, b)
		}
	}
	t.Logf("%d pairs offered, %d wrong; %d repeated texts", offered, wrong, there)
	if wrong*20 > offered || offered < there*3/4 {
		t.Errorf("%d pairs offered, %d wrong, of %d repeated texts; want at most one of twenty wrong, and three "+
			"quarters found", offered, wrong, there)
	}
}
