package souvenir

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/foldname"
)

// A user's name always means the same user, whatever ids programs invent later.
func TestViewsOfANameMakeNoUser(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "u.db"), Options{})
	ann := mustAddUser(t, s, NewUser{Name: "Ann"})
	for _, id := range []string{"ann", "ANN", "a\u200bnn", "ａｎｎ"} {
		view := s.As(Access{User: id})
		_, err := view.AddMemory(t.Context(), NewMemory{Content: "x"})
		var known *Error
		if !errors.As(err, &known) || !errors.Is(err, ErrConflict) || known.Argument != "user" ||
			strings.Contains(err.Error(), ann.ID) {
			t.Errorf("a view of %+q stores: got %v, want ErrConflict about user, without her id", id, err)
		}
		if found, err := view.Search(t.Context(), Query{}); err != nil || found.Total != 0 {
			t.Errorf("a view of %+q finds %d, %v; want 0", id, found.Total, err)
		}
	}
	if got, err := s.Accounts().GetUser(t.Context(), "ann"); err != nil || got.ID != ann.ID {
		t.Errorf("the name leads to %+v, %v; want ID %v", got, err, ann.ID)
	}
	mustAdd(t, s.As(Access{User: ann.ID}), NewMemory{Content: "x"})
}

func TestFoldedNamesFoldToThemselves(t *testing.T) {
	for _, name := range []string{"Straße", "ŒUVRE", "İstanbul", "ﬁne", "Ω Ohm", "ＡＢＣ", "ǅ", "ͅ", "a\u0345", "ᾳ", "𝔄𝔫𝔫",
		"Å", "á̖", "\u1e9b\u0323", "ΣΊΣΥΦΟΣ", "  a  b "} {
		once := foldname.Key(name)
		if twice := foldname.Key(once); twice != once {
			t.Errorf("%q folds to %q, and that to %q, want the same", name, once, twice)
		}
	}
}

func TestDamagedPreferencesAreErrors(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "u.db"), Options{})
	if _, err := s.SetPreferences(t.Context(), map[string]any{"a": "b"}); err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"", "null", "[]", "{", `{"a":1}x`} {
		mustExec(t, s, `UPDATE preference SET value = ?`, value)
		if _, err := s.GetPreferences(t.Context()); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%q gives %v, want ErrCorrupt", value, err)
		}
		if _, err := s.UpdatePreferences(t.Context(), map[string]any{"c": "d"}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("patching %q gives %v, want ErrCorrupt", value, err)
		}
	}
}

func count(t *testing.T, s *Store, query string) (n int64) {
	t.Helper()
	err := s.db.Read(t.Context(), func(tx db.Tx) error { return tx.QueryRow(query).Scan(&n) })
	if err != nil {
		t.Fatal(err)
	}
	return n
}
