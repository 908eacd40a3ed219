package seed

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/longtest"
)

func TestFilledStoresAreSound(t *testing.T) {
	longtest.Only(t)
	for name, fill := range map[string]func(path string) (Filled, error){
		"empty":   func(path string) (Filled, error) { return Fill(t.Context(), path, 0) },
		"some":    func(path string) (Filled, error) { return Fill(t.Context(), path, 300) },
		"hostile": func(path string) (Filled, error) { return Hostile(t.Context(), path) },
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
				souvenir.Credentials{Name: filled.User, Password: Password}); err != nil {
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

func TestTextsAreTheSameEachTime(t *testing.T) {
	texts := func() string {
		w := newWriter()
		all := make([]string, 200)
		for i := range all {
			all[i] = w.text(pick(w, w.topics))
		}
		return strings.Join(all, "\n")
	}
	first := texts()
	if first != texts() {
		t.Error("they differ, want the same texts twice")
	}
	if strings.ContainsAny(first, "{}") {
		t.Errorf("a slot is left: %.2000s", first)
	}
}
