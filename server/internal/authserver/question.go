package authserver

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"log/slog"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/seal"
	"github.com/souvenir-ai/souvenir/server/internal/shared"
)

// questions are the open consent questions. Each is sealed into its page, so that any server on the store can accept
// the answer, but only from the browser that was asked, and only to the question as it was asked. The servers together
// accept each answer once.
type questions struct {
	sealer   seal.Sealer
	answered shared.Values // the sealed values
}

const (
	consentLifetime = 30 * time.Minute
	consentPurpose  = "consent"
	maxAnswered     = 20_000
	numberSize      = 16 // random bytes that tell questions apart
)

func newQuestions(store *souvenir.Store, log *slog.Logger) *questions {
	return &questions{sealer: seal.Sealer{Store: store},
		answered: shared.Values{Store: store, Log: log, Kind: "answer", Life: consentLifetime, Most: maxAnswered}}
}

// ask returns the nonce of the answer to a question.
func (c *questions) ask(ctx context.Context, browser string, question [sha256.Size]byte, now time.Time) (nonce string,
	err error) {
	number := make([]byte, numberSize)
	_, _ = rand.Read(number) // never fails
	text := binary.BigEndian.AppendUint64(number, uint64(now.Add(consentLifetime).Unix()))
	return c.sealer.Seal(ctx, consentPurpose, append(text, asked(browser, question)...))
}

// take reports whether a nonce belongs to this browser and this question, and uses it up if so.
func (c *questions) take(ctx context.Context, nonce, browser string, question [sha256.Size]byte, now time.Time) (bool,
	error) {
	text, ok, err := c.sealer.Open(ctx, consentPurpose, nonce)
	const start = numberSize + 8
	if err != nil || !ok || len(text) < start || string(text[start:]) != string(asked(browser, question)) ||
		uint64(now.Unix()) >= binary.BigEndian.Uint64(text[numberSize:]) {
		return false, err
	}
	return c.answered.Use(ctx, string(text))
}

// asked identifies a question in a browser.
func asked(browser string, question [sha256.Size]byte) []byte {
	from := sha256.Sum256([]byte(browser))
	return append(from[:], question[:]...)
}
