package systemtest

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/seed"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

func TestMadeUpStoresAreSound(t *testing.T) {
	longtest.Only(t)
	for name, fill := range map[string]func(path string) (seed.Filled, error){
		"empty":   func(path string) (seed.Filled, error) { return seed.Fill(t.Context(), path, 0) },
		"some":    func(path string) (seed.Filled, error) { return seed.Fill(t.Context(), path, 300) },
		"hostile": func(path string) (seed.Filled, error) { return seed.Hostile(t.Context(), path) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "filled.db")
			filled, err := fill(path)
			if err != nil {
				t.Fatal(err)
			}
			store, err := souvenir.Open(t.Context(), path, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			if report, err := store.Upkeep().Check(t.Context(), nil); err != nil || len(report.Findings) > 0 {
				t.Errorf("%v %v, want none", report.Findings, err)
			}
			if _, err := store.Accounts().CheckPassword(t.Context(),
				souvenir.Credentials{Name: filled.User, Password: seed.Password}); err != nil {
				t.Error(err)
			}
			if name == "empty" {
				if filled.Memories != 0 {
					t.Errorf("%d memories, want 0", filled.Memories)
				}
				return
			}
			user, err := store.Accounts().GetUser(t.Context(), filled.User)
			if err != nil {
				t.Fatal(err)
			}
			view := store.As(souvenir.Access{User: user.ID})
			revisions, err := view.Revisions(t.Context(), filled.Memory)
			if err != nil || len(revisions) == 0 {
				t.Errorf("%d revisions, %v, want no error and some revisions", len(revisions), err)
			}
			if _, err := view.GetFile(t.Context(), filled.File); err != nil {
				t.Error(err)
			}
			if todo, err := view.GetTodo(t.Context(), souvenir.ProjectRef{ID: filled.Project}); err != nil ||
				len(todo.Document.Tasks) < 3 {
				t.Errorf("%d tasks, %v; want at least 3", len(todo.Document.Tasks), err)
			}
			overview, err := view.Insights().Overview(t.Context(), souvenir.OverviewQuery{})
			if err != nil || overview.Embedding.Pending != 0 || overview.Memories != filled.Memories ||
				len(overview.Clients) == 0 {
				t.Errorf("got %+v, %v, want no error, pending 0, memories %v and some clients", overview, err, filled.Memories)
			}
		})
	}
}

func TestMadeUpTextsAreTheSameEachTime(t *testing.T) {
	first := strings.Join(seed.Memories(200), "\n")
	if first != strings.Join(seed.Memories(200), "\n") {
		t.Error("they differ, want the same texts twice")
	}
	if strings.ContainsAny(first, "{}") {
		t.Errorf("a slot is left: %.2000s", first)
	}
}

// remark matches what writer.nearly puts around a text.
var remark = regexp.MustCompile(
	`^(Note: |As said before: |Again, for the record: )+|(\.| \(confirmed\)|, as of today\.)+$`)

// TestOfferedDuplicatesHaveTheSameContent checks the pairs that are offered as near duplicates: each must be a text and
// the same text with remarks around it. Sentences of one template with different numbers and names must not be offered.
func TestOfferedDuplicatesHaveTheSameContent(t *testing.T) {
	longtest.Only(t)
	path := filepath.Join(t.TempDir(), "filled.db")
	filled, err := seed.Fill(t.Context(), path, 1000)
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
