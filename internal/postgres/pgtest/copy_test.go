package pgtest_test

import (
	"os"
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
	"github.com/souvenir-ai/souvenir/postgres"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Drop(m.Run())) }

func open(t *testing.T, address string) *souvenir.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), address, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func contents(t *testing.T, s *souvenir.Store) (all []string) {
	t.Helper()
	for m, err := range s.Memories(t.Context(), souvenir.List{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m.Content)
	}
	slices.Sort(all)
	return all
}

func store(t *testing.T, s *souvenir.Store, content string) {
	t.Helper()
	if _, err := s.AddMemory(t.Context(), souvenir.NewMemory{Content: content}); err != nil {
		t.Fatal(err)
	}
}

// A schema that another test has changed is again a copy, and goes on by itself.
func TestACopyHasTheRowsOfItsTemplateAndNoOthers(t *testing.T) {
	template := pgtest.Empty(t)
	s := open(t, template)
	store(t, s, "tea")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{"milk", "sugar"} {
		t.Run(more, func(t *testing.T) {
			copied := open(t, pgtest.Copy(t, template))
			store(t, copied, more)
			if got, want := contents(t, copied), []string{more, "tea"}; !slices.Equal(got, want) {
				t.Errorf("memories of a copy: got %v, want %v", got, want)
			}
		})
	}
	if got, want := contents(t, open(t, template)), []string{"tea"}; !slices.Equal(got, want) {
		t.Errorf("memories of the template: got %v, want %v", got, want)
	}
	if got := contents(t, open(t, pgtest.Empty(t))); len(got) != 0 {
		t.Errorf("memories of an empty schema: got %v, want none", got)
	}
}
