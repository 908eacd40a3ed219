package extract

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// Positions and proposals are memories in the place they are about, so that access, export, import, quotas and trash
// apply to them, too. They are never valid now, so that no search, listing or context shows them.
const (
	eventPosition = "extract-position"
	eventProposal = "extract-proposal"
)

var (
	long        = time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC) // proposals are valid from then on
	afterLong   = long.AddDate(1, 0, 0)
	positionEnd = time.Date(1970, 1, 2, 0, 0, 0, 0, time.UTC) // positions were valid until then
)

// position is the place up to which a conversation was read: the time of the last turns, and their ids.
type position struct {
	At  time.Time
	IDs []string
}

func (p position) passed(t souvenir.Turn) bool {
	return t.Time.Before(p.At) || t.Time.Equal(p.At) && slices.Contains(p.IDs, t.ID)
}

// after returns the position after a further turn.
func (p position) after(t souvenir.Turn) position {
	if t.Time.Equal(p.At) {
		return position{p.At, append(slices.Clone(p.IDs), t.ID)}
	}
	return position{t.Time, []string{t.ID}}
}

func (p position) equal(q position) bool { return p.At.Equal(q.At) && slices.Equal(p.IDs, q.IDs) }

func positionKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "extract/position/" + hex.EncodeToString(sum[:])
}

// position returns the position in the conversation, the zero value if it was not read.
func (r *run) position(ctx context.Context) (position, error) {
	if r.dry != nil {
		return *r.dry, nil
	}
	m, err := r.store.GetMemoryByKey(ctx, souvenir.MemoryKey{Collection: r.options.Conversations, ProjectID: r.scope.ref,
		Key: positionKey(r.key)})
	if errors.Is(err, souvenir.ErrNotFound) {
		return position{}, nil
	}
	if err != nil {
		return position{}, err
	}
	text, _ := m.Metadata["turns"].([]any)
	p := position{At: m.EventTime}
	for _, id := range text {
		if s, ok := id.(string); ok {
			p.IDs = append(p.IDs, s)
		}
	}
	if m.EventType != eventPosition || p.At.IsZero() {
		return position{}, &souvenir.Error{Kind: souvenir.KindConflict, Message: "memory " + m.ID + " has the key of the " +
			"position of this conversation and is none; give it another key"}
	}
	return p, nil
}

// setPosition stores the position in the conversation.
func (r *run) setPosition(ctx context.Context, p position) error {
	if r.options.DryRun {
		r.dry = &p
		return nil
	}
	_, err := r.store.PutMemory(ctx, souvenir.NewMemory{Collection: r.options.Conversations,
		ProjectID: r.scope.ref, Key: positionKey(r.key),
		Content: "Position of extraction", EventType: eventPosition, EventTime: p.At, ValidUntil: positionEnd,
		Metadata: map[string]any{"turns": p.IDs}})
	return err
}
