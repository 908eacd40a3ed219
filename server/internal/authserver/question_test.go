package authserver

import (
	"crypto/sha256"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/seal"
)

var began = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestAQuestionIsAnsweredOnceInItsTime(t *testing.T) {
	store, err := souvenir.Open(t.Context(), filepath.Join(t.TempDir(), "souvenir.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	sealer := seal.Sealer{Store: store}
	question, other := sha256.Sum256([]byte("question")), sha256.Sum256([]byte("other"))
	quiet := slog.New(slog.DiscardHandler)
	c := newQuestions(store, quiet)
	nonce, err := c.ask(t.Context(), "browser", question, began)
	if err != nil {
		t.Fatal(err)
	}
	is := func(what string, c *questions, nonce, browser string, question [sha256.Size]byte, now time.Time, want bool) {
		t.Helper()
		if taken, err := c.take(t.Context(), nonce, browser, question, now); taken != want || err != nil {
			t.Errorf("%s: got %t, %v; want %t", what, taken, err, want)
		}
	}
	foreign, err := sealer.Seal(t.Context(), statePurpose, []byte("a text"))
	if err != nil {
		t.Fatal(err)
	}
	is("another nonce", c, "nonce", "browser", question, began, false)
	is("no nonce", c, "", "browser", question, began, false)
	is("a nonce for something else", c, foreign, "browser", question, began, false)
	is("another browser", c, nonce, "elsewhere", question, began, false)
	is("another question", c, nonce, "browser", other, began, false)
	is("too late", c, nonce, "browser", question, began.Add(consentLifetime), false)
	is("the right one", c, nonce, "browser", question, began.Add(consentLifetime-time.Second), true)
	is("the same one again", c, nonce, "browser", question, began, false)
	is("at another server on the store", newQuestions(store, quiet), nonce, "browser", question, began, false)
}

const statePurpose = "another purpose"
