package postgres_test

import (
	"os"
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
)

// TestMain drops the schemas that copies are made of.
func TestMain(m *testing.M) { os.Exit(pgtest.Drop(m.Run())) }

func sorted(texts []string) []string { return slices.Sorted(slices.Values(texts)) }

func storeIn(t *testing.T, s *souvenir.Store, content string) {
	t.Helper()
	if _, err := s.AddMemory(t.Context(), souvenir.NewMemory{Content: content}); err != nil {
		t.Fatal(err)
	}
}

// A schema that another test has changed becomes a copy again, independent of its template.
func TestACopyHasTheRowsOfItsTemplateAndNoOthers(t *testing.T) {
	template := pgtest.Empty(t)
	s := open(t, template, nil)
	storeIn(t, s, "tea")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{"milk", "sugar"} {
		t.Run(more, func(t *testing.T) {
			copied := open(t, pgtest.Copy(t, template), nil)
			storeIn(t, copied, more)
			if got, want := sorted(contents(t, copied, souvenir.LocalUser)), []string{more, "tea"}; !slices.Equal(got, want) {
				t.Errorf("memories of a copy: got %v, want %v", got, want)
			}
		})
	}
	if got, want := contents(t, open(t, template, nil), souvenir.LocalUser), []string{"tea"}; !slices.Equal(got, want) {
		t.Errorf("memories of the template: got %v, want %v", got, want)
	}
	if got := contents(t, open(t, pgtest.Empty(t), nil), souvenir.LocalUser); len(got) != 0 {
		t.Errorf("memories of an empty schema: got %v, want none", got)
	}
}
