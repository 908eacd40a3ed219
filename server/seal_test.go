package server_test

import (
	"path/filepath"
	"testing"

	"github.com/souvenir-ai/souvenir/server/internal/seal"
)

func TestSealedTextsOpenOnOtherServers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "souvenir.db")
	one, other := seal.Sealer{Store: openPath(t, path)}, seal.Sealer{Store: openPath(t, path)}
	stranger := seal.Sealer{Store: openPath(t, filepath.Join(t.TempDir(), "souvenir.db"))}
	sealed, err := one.Seal(t.Context(), "question", []byte("a text"))
	if err != nil {
		t.Fatal(err)
	}
	is := func(what string, by seal.Sealer, purpose, sealed string, want bool) {
		t.Helper()
		text, ok, err := by.Open(t.Context(), purpose, sealed)
		if err != nil || ok != want || ok && string(text) != "a text" {
			t.Errorf("%s: got %q, %t, %v; want it opened: %t", what, text, ok, err, want)
		}
	}
	is("the same server", one, "question", sealed, true)
	is("another server", other, "question", sealed, true)
	is("another purpose", one, "state", sealed, false)
	is("another store", stranger, "question", sealed, false)
	is("a changed text", one, "question", "A"+sealed, false)
	is("nothing", one, "question", "", false)
	is("what is not base64", one, "question", "!", false)
	if _, err := other.Store.Accounts().RotateSigningKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	is("after the key was replaced", one, "question", sealed, false)
}
