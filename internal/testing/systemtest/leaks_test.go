package systemtest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	. "github.com/souvenir-ai/souvenir"
)

func TestScoresRevealNothingAboutOtherUsersMemories(t *testing.T) {
	onEachEngine(t, scoresRevealNothingAboutOtherUsersMemories)
}

func scoresRevealNothingAboutOtherUsersMemories(t *testing.T, empty database) {
	for name, memory := range map[string]int64{"in memory": 0, "on disk": -1} {
		t.Run(name, func(t *testing.T) {
			broken := errors.New("no vectors for these")
			words := wordEmbedder("words-1")
			s := openWords(t, empty.copied(t),
				Options{IndexMemory: memory, Embedder: EmbedderFunc("words-1", wordSize,
					func(ctx context.Context, p Purpose, texts []string) ([][]float32, error) {
						if strings.Contains(texts[0], "unembeddable") {
							return nil, broken
						}
						return words.Embed(ctx, p, texts)
					})})
			alice, bob := s.As(Access{User: "alice"}), s.As(Access{User: "bob"})
			for i := range 5 {
				mustAdd(t, alice, NewMemory{Content: fmt.Sprintf("the apple number %d is %s red", i, strings.Repeat("very ", i))})
			}
			ask := func() []Results {
				var all []Results
				for _, q := range []Query{{Text: "red apple"}, {Text: "apple", Sort: SortUpdatedAsc},
					{Vector: wordVector("red apple")}, {Text: "quince"}, {}} {
					found, err := alice.Search(t.Context(), q)
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, found)
				}
				return all
			}
			before := ask()
			many := make([]NewMemory, 300)
			for i := range many {
				many[i] = NewMemory{Content: fmt.Sprintf(
					"red apple, quince, and a long tail of other words to change the mean length: %d", i), ProjectID: "bobs"}
			}
			if _, err := bob.AddMemories(t.Context(), many, nil); err != nil {
				t.Fatal(err)
			}
			mustAdd(t, bob, NewMemory{Content: "unembeddable red apple"})
			after := ask()
			if !reflect.DeepEqual(before, after) {
				t.Errorf("alice's results change with what bob stores, want the same:\n%+v\n%+v", before, after)
			}
			if len(before[0].Hits) != 5 || before[0].Hits[0].Score == 0 {
				t.Errorf("the comparison is of nothing: %+v, want 5 hits with a score", before[0])
			}
		})
	}
}

// A reader of a project must not find out, by filters, that a memory in it links to one outside.
func TestLinkFiltersRevealNoInvisibleMemories(t *testing.T) {
	onEachEngine(t, linkFiltersRevealNoInvisibleMemories)
}

func linkFiltersRevealNoInvisibleMemories(t *testing.T, empty database) {
	s := openWords(t, empty.copied(t), Options{})
	anna, ben := s.As(Access{User: "anna"}), s.As(Access{User: "ben"})
	private, err := anna.AddMemory(t.Context(), NewMemory{Content: "private"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := anna.AddMemory(t.Context(),
		NewMemory{Content: "shared", ProjectID: "p", Related: []string{private.ID}}); err != nil {
		t.Fatal(err)
	}
	if _, err := ben.AddMemory(t.Context(), NewMemory{Content: "mine"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddMember(t.Context(),
		NewMember{Project: ProjectRef{ID: "anna/p"}, User: "ben", Role: MemberReader}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		filter    Filter
		anna, ben int
	}{
		{Filter{"related_memory_ids": private.ID}, 1, 0},
		{Filter{"related_memory_ids": Condition{AtLeast: "0"}}, 1, 0},
		{Filter{"related_memory_ids": nil, "project_id": "p"}, 0, 1},
		{Filter{"related_memory_ids": Not(private.ID), "project_id": "p"}, 0, 1},
	} {
		for _, view := range []struct {
			store *Store
			want  int
		}{{anna, c.anna}, {ben, c.ben}} {
			results, err := view.store.Search(t.Context(), Query{Filter: c.filter})
			if err != nil || results.Total != view.want {
				t.Errorf("%s finds %d with %v (%v), want %d", view.store.Access().User, results.Total, c.filter, err, view.want)
			}
		}
	}
}

// A view limited to one project must not learn another project's name from an error.
func TestLimitedViewsLearnNothingFromErrorsAboutProjects(t *testing.T) {
	onEachEngine(t, limitedViewsLearnNothingFromErrorsAboutProjects)
}

func limitedViewsLearnNothingFromErrorsAboutProjects(t *testing.T, empty database) {
	s := openWords(t, empty.copied(t), Options{})
	for id, name := range map[string]string{"p1": "open", "p2": "secret merger"} {
		if _, err := s.AddMemory(t.Context(), NewMemory{Content: "x", ProjectID: id, ProjectName: name}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.As(Access{User: "ann"}).AddProject(t.Context(),
		NewProject{ID: "p3", Name: "secret merger"}); err != nil {
		t.Fatal(err)
	}
	limited := s.As(Access{Projects: []string{"p1"}})
	for _, q := range []Query{{ProjectID: "p2", ProjectName: "zz"}, {ProjectID: "zz", ProjectName: "secret merger"}} {
		results, err := limited.Search(t.Context(), q)
		if err != nil || results.Total != 0 {
			t.Errorf("%+v answers %d, %v; want 0", q, results.Total, err)
		}
		_, err = limited.AddMemory(t.Context(), NewMemory{Content: "x", ProjectID: q.ProjectID, ProjectName: q.ProjectName})
		if !errors.Is(err, ErrForbidden) ||
			strings.Contains(strings.ReplaceAll(err.Error(), q.ProjectID+q.ProjectName, ""), "secret") {
			t.Errorf(`storing with %+v: %v, want ErrForbidden and no "secret" in it`, q, err)
		}
	}
	fresh := s.As(Access{Projects: []string{"fresh"}})
	for what, name := range map[string]func() (string, error){
		"AddMemory": func() (string, error) {
			m, err := fresh.AddMemory(t.Context(), NewMemory{Content: "x", ProjectID: "fresh", ProjectName: "secret merger"})
			return m.ProjectName, err
		},
		"AddProject": func() (string, error) {
			p, err := s.As(Access{User: "ann", Projects: []string{"fresh"}}).AddProject(t.Context(),
				NewProject{ID: "fresh", Name: "secret merger"})
			return p.Name, err
		},
	} {
		if got, err := name(); err != nil || got != "secret merger" {
			t.Errorf("%s through a view limited to an unknown project, by the name of another: %q, %v; want \"secret merger\"",
				what, got, err)
		}
	}
	if _, err := s.As(Access{Projects: []string{""}}).AddMemory(t.Context(),
		NewMemory{Content: "x", ProjectName: "any"}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a limit without a name stores: %v, want ErrInvalid", err)
	}
}
