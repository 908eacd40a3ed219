package souvenir

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/budget"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/portions"
	"github.com/souvenir-ai/souvenir/internal/recency"
	"github.com/souvenir-ai/souvenir/internal/trash"
	"github.com/souvenir-ai/souvenir/internal/turns"
	"github.com/souvenir-ai/souvenir/internal/valid"
	"github.com/souvenir-ai/souvenir/internal/writing"
)

// EventTurn is the event type of the turns that [Conversation.Append] stores.
const EventTurn = "turn"

// Limits of turns.
const (
	MaxTurns   = 1000              // turns that one call returns or takes
	MaxTurnKey = kernel.MaxTurnKey // bytes of a turn's own key: 256
	MaxAround  = 100               // turns on each side that Around returns
	maxWindow  = 10_000_000        // tokens
	roleTool   = "tool"
)

// Turn is a part of a conversation. [Conversation.Append] takes turns, and the other methods return them.
type Turn struct {
	ID string `json:"id"` // of its memory; set by the store

	// Key is the caller's own key of the turn, at most 256 bytes, unique in the conversation. A turn whose key the
	// conversation already has is not stored again. Empty means none.
	Key string `json:"key,omitempty"`

	Role    string `json:"role,omitempty"`    // such as user, assistant, system or tool; at most 64 characters
	Speaker string `json:"speaker,omitempty"` // who said it, by name; at most 128 characters

	// Content is up to 1 MiB of text. It may be empty in a turn with ToolCalls, which is then found by these.
	Content string `json:"content"`

	// Time is when it was said, at most 10 minutes from now. Zero means now, after all turns before it.
	Time time.Time `json:"time"`

	// ToolCalls is any JSON. It is stored and never interpreted, and returned as package encoding/json decodes it.
	ToolCalls any `json:"tool_calls,omitempty"`

	// Metadata is the caller's own, as in [NewMemory]; together with the rest at most 64 KiB. It must not have the keys
	// conversation_id, role, speaker and tool_calls.
	Metadata map[string]any `json:"metadata,omitempty"`

	Revision int `json:"revision"` // of its memory; set by the store

	// Truncated reports whether Content was shortened; see [Conversation.Window].
	Truncated bool `json:"truncated,omitempty"`
}

// Tokens returns the estimated size of the turn for a model: 1 token = 4 bytes of role, speaker, content and tool calls
// as JSON, as in the token budget of [Store.GetContext].
func (t Turn) Tokens() int {
	return (t.message().Size() + budget.BytesPerToken - 1) / budget.BytesPerToken
}

// Append stores turns at the end of the conversation, all of them in one commit, and returns them as stored; other
// calls' turns are before or after them, never between. A turn whose key the conversation already has is neither stored
// nor changed: the stored one is returned, so that a call can be repeated. [Store.UpdateMemory] changes a turn, which
// keeps its place.
//
// Turns without a time follow the last one: their time is now, or a microsecond after the last turn's if that is later.
// A given time may be in the past, for conversations copied from elsewhere: the turn is then placed there. Since many
// clocks count in seconds, a turn whose time is less than a second before the last turn's is placed right after it. If
// a turn already has the time, the next free microsecond is used.
func (c *Conversation) Append(ctx context.Context, add ...Turn) ([]Turn, error) {
	if c.err != nil {
		return nil, c.err
	}
	if len(add) > MaxTurns {
		return nil, withGoNames[Turn](newError(KindTooLarge, "turns", "{} has %d turns; at most %d are allowed", len(add),
			MaxTurns), "turns", "add")
	}
	return hooked(ctx, c.store, OperationStore, "Conversation.Append",
		func(ctx context.Context, o *operation) ([]Turn, error) { return c.appendTurns(ctx, o, add) })
}

func (c *Conversation) appendTurns(ctx context.Context, o *operation, add []Turn) (_ []Turn, err error) {
	defer setGoNames[Turn](&err, "turns", "add")
	defer setGoNames[ConversationPlace](&err) // first: a project is the conversation's, and no turn's
	o.counts(len(add))
	c.describe(o)
	horizon := recency.Horizon(c.store.now())
	drafts := make([]kernel.Draft, len(add))
	given := map[*kernel.Draft]*int64{}
	for i, t := range add {
		d, err := c.draft(ctx, o, t)
		if err == nil && d.EventTime != nil && *d.EventTime > horizon {
			err = invalid("time", "{} is %s, which is in the future; give the time when it was said, or none for now",
				t.Time.Format(time.RFC3339))
		}
		if err != nil {
			return nil, turnError(atPosition(err, i, len(add)))
		}
		drafts[i] = d
		given[&drafts[i]] = d.EventTime
	}
	if err := c.store.checkWritable(); err != nil || len(add) == 0 {
		return nil, err
	}
	if err := c.markStored(ctx, drafts); err != nil {
		return nil, turnError(err)
	}
	write := func(w *writing.Writer, d *kernel.Draft) (writing.Result, error) { return c.append(w, d, given[d]) }
	stored, err := c.store.storeDrafts(ctx, drafts, nil, nil, write)
	if errors.Is(err, writing.ErrNotStored) { // a turn was deleted meanwhile
		for i := range drafts {
			drafts[i].Stored = false
		}
		stored, err = c.store.storeDrafts(ctx, drafts, nil, nil, write)
	}
	if err != nil {
		return nil, turnError(err)
	}
	all := make([]Turn, len(stored))
	for i, m := range stored {
		all[i] = turnOf(m.Memory, m.EventTime.UnixMicro())
	}
	return all, nil
}

// turnError changes the position of a memory in an error to the position of a turn.
func turnError(err error) error {
	var known *Error
	if errors.As(err, &known) {
		return fault.MoveTo(known, "memories", "turns")
	}
	return err
}

// draft checks a turn.
func (c *Conversation) draft(ctx context.Context, o *operation, t Turn) (kernel.Draft, error) {
	if len(t.Key) > MaxTurnKey {
		return kernel.Draft{}, newError(KindTooLarge, "key", "{} has %d bytes; at most %d are allowed", len(t.Key),
			MaxTurnKey)
	}
	if err := valid.Text("key", t.Key); err != nil { // below it is part of a longer one
		return kernel.Draft{}, err
	}
	content, metadata, err := t.message().Store(c.key)
	if err != nil {
		return kernel.Draft{}, err
	}
	m := NewMemory{Collection: c.place.Collection, Content: content, EventType: EventTurn, ProjectID: c.place.ProjectID,
		ProjectName: c.place.ProjectName, EventTime: t.Time, Metadata: metadata}
	if t.Key != "" {
		m.Key = kernel.Conversation{Hash: turns.Hash(c.key)}.TurnKey(t.Key)
	}
	d, err := newDraft(m)
	if err != nil || o == nil {
		return d, err
	}
	rewritten := m
	if _, err := o.rewrite(ctx, &rewritten, d); err != nil {
		return kernel.Draft{}, err
	}
	m.Content, m.Metadata = rewritten.Content, kernel.OrEmpty(rewritten.Metadata)
	m.Metadata[turns.KeyConversation] = c.key // hooks cannot move a turn to another conversation
	return newDraft(m)
}

// markStored marks the turns that the conversation already has: they need not be embedded.
func (c *Conversation) markStored(ctx context.Context, drafts []kernel.Draft) error {
	if !slices.ContainsFunc(drafts, func(d kernel.Draft) bool { return d.Key != "" }) {
		return nil
	}
	return c.read(ctx, func(tx db.Tx, _ viewer, at kernel.Conversation) error {
		for i := range drafts {
			row, err := kernel.KeyHolder(tx, at.Partition, drafts[i].Key)
			if err != nil {
				return err
			}
			drafts[i].Stored = row != 0
		}
		return nil
	})
}

// append stores one turn, unless the conversation has its key.
func (c *Conversation) append(w *writing.Writer, d *kernel.Draft, given *int64) (writing.Result, error) {
	place, err := w.Place(d.Collection, d.ProjectID, d.ProjectName)
	if err != nil {
		return writing.Result{}, err
	}
	at := kernel.Conversation{Partition: place.Partition, Hash: turns.Hash(c.key)}
	row, err := w.KeyHolder(place, d.Key)
	if err != nil {
		return writing.Result{}, err
	}
	if row != 0 {
		found, err := kernel.LoadRows(w.Tx, w.Viewer, kernel.WholeContent, []int64{row})
		if err == nil && len(found) == 0 {
			err = damaged(writing.ErrNotStored, "the turn with the key %s", show(d.Key))
		}
		if err != nil {
			return writing.Result{}, err
		}
		return writing.Result{Memory: found[0], Indexed: true, Effect: writing.Unchanged}, nil
	}
	if d.Stored {
		return writing.Result{}, writing.ErrNotStored
	}
	now := c.store.now()
	when, err := at.TimeFor(w.Tx, given, now, recency.Horizon(now))
	if err != nil {
		return writing.Result{}, err
	}
	d.EventTime = &when
	return w.Insert(d)
}

// message returns the turn as it is stored.
func (t Turn) message() turns.Message {
	return turns.Message{Role: t.Role, Speaker: t.Speaker, Content: t.Content, ToolCalls: t.ToolCalls,
		Metadata: t.Metadata}
}

// turnOf returns a memory as a turn, with the time of its place.
func turnOf(m Memory, at int64) Turn {
	t := turns.Read(m.Content, m.Metadata)
	return Turn{ID: m.ID, Key: kernel.OwnTurnKey(m.Key, m.Metadata), Role: t.Role, Speaker: t.Speaker, Content: t.Content,
		Time: kernel.ToTime(at), ToolCalls: t.ToolCalls, Metadata: t.Metadata, Revision: m.Revision}
}

// loadTurns returns the turns at some positions.
func (s *Store) loadTurns(tx db.Tx, v viewer, at []kernel.Position) ([]Turn, error) {
	rows := make([]int64, len(at))
	times := make(map[int64]int64, len(at))
	for i, p := range at {
		rows[i], times[p.Row] = p.Row, p.At
	}
	found, err := kernel.LoadRows(tx, v, kernel.WholeContent, rows)
	all := make([]Turn, len(found))
	for i, m := range found {
		all[i] = turnOf(memoryOf(m), times[m.Row])
	}
	return all, err
}

// Last returns the last n turns, 1 to 1,000, in their order. A conversation that does not exist, or that this view may
// not see, has none.
func (c *Conversation) Last(ctx context.Context, n int) (last []Turn, err error) {
	defer setGoNames[ConversationPlace](&err, "n", "n")
	if n < 1 || n > MaxTurns {
		return nil, invalid("n", "{} is %d; expected 1 to %d turns", n, MaxTurns)
	}
	err = c.read(ctx, func(tx db.Tx, v viewer, at kernel.Conversation) error {
		found, err := at.Before(tx, kernel.End, n)
		if err != nil {
			return err
		}
		slices.Reverse(found)
		last, err = c.store.loadTurns(tx, v, found)
		return err
	})
	return last, err
}

// Since iterates over the turns from a time on, in their order; the zero time means all. It holds no lock and no
// transaction while the caller works: turns are returned as they are when their turn comes, with turns that were
// appended meanwhile. The sequence ends after the first error.
func (c *Conversation) Since(ctx context.Context, t time.Time) iter.Seq2[Turn, error] {
	first := kernel.Beginning
	if !t.IsZero() {
		first = kernel.Position{At: t.UnixMicro(), Row: math.MinInt64}
	}
	return portions.Each(first, func(from kernel.Position) (found []Turn, next kernel.Position, more bool, err error) {
		defer setGoNames[ConversationPlace](&err)
		err = c.read(ctx, func(tx db.Tx, v viewer, at kernel.Conversation) error {
			found, more = nil, false
			positions, err := at.After(tx, from, turnsAtOnce)
			if err != nil || len(positions) == 0 {
				return err
			}
			next, more = positions[len(positions)-1], len(positions) == turnsAtOnce
			found, err = c.store.loadTurns(tx, v, positions)
			return err
		})
		return found, next, more, err
	})
}

// Window returns the last turns that fit a token budget, in their order, for use in a model's context. Tokens are
// counted as by [Turn.Tokens]. If the last turn alone is too large, it is shortened, and Truncated is set; if not even
// its role fits, the window is empty. Turns of the role tool at the beginning are left out, since the calls that they
// answer are missing, unless there are no other turns.
func (c *Conversation) Window(ctx context.Context, tokens int) (window []Turn, err error) {
	defer setGoNames[ConversationPlace](&err, "tokens", "tokens")
	if err := checkRange("tokens", tokens, 1, maxWindow); err != nil {
		return nil, err
	}
	err = c.read(ctx, func(tx db.Tx, v viewer, at kernel.Conversation) error {
		window = nil
		room, from := tokens, kernel.End
		for some := 16; ; some = min(2*some, turnsAtOnce) {
			found, err := at.Before(tx, from, some)
			if err != nil || len(found) == 0 {
				return err
			}
			from = found[len(found)-1]
			loaded, err := c.store.loadTurns(tx, v, found)
			if err != nil {
				return err
			}
			for _, t := range loaded {
				if len(window) == 0 {
					kept, cut := t.message().Within(budget.BytesPerToken * tokens)
					t.Content, t.ToolCalls, t.Truncated = kept.Content, kept.ToolCalls, cut
				}
				if room -= t.Tokens(); room < 0 {
					return nil
				}
				window = append(window, t)
			}
		}
	})
	for len(window) > 1 && window[len(window)-1].Role == roleTool {
		window = window[:len(window)-1]
	}
	slices.Reverse(window)
	return window, err
}

// Around returns a turn with the turns around it: at most before and after of them, 0 to 100 each, in their order. An
// id that is not of a turn of this conversation, or that this view may not see, is ErrNotFound.
func (c *Conversation) Around(ctx context.Context, id string, before, after int) (around []Turn, err error) {
	defer setGoNames[ConversationPlace](&err, "id", "id", "before", "before", "after", "after")
	for _, side := range []struct {
		name string
		n    int
	}{{"before", before}, {"after", after}} {
		if side.n < 0 || side.n > MaxAround {
			return nil, invalid(side.name, "{} is %d; expected 0 to %d turns", side.n, MaxAround)
		}
	}
	found := false
	err = c.read(ctx, func(tx db.Tx, v viewer, at kernel.Conversation) error {
		_, p, err := c.turn(tx, v, at, id)
		if err != nil {
			return err
		}
		found = true
		positions, err := at.Around(tx, p, before, after)
		if err != nil {
			return err
		}
		around, err = c.store.loadTurns(tx, v, positions)
		return err
	})
	if err == nil && !found {
		err = unknownTurn(id)
	}
	return around, err
}

// turn returns a turn of the conversation by id, and its position.
func (c *Conversation) turn(tx db.Tx, v viewer, at kernel.Conversation, id string) (kernel.Memory, kernel.Position,
	error) {
	m, err := kernel.LoadMemory(tx, v, id)
	if errors.Is(err, ErrNotFound) {
		err = unknownTurn(id)
	}
	if err != nil {
		return m, kernel.Position{}, err
	}
	p, found, err := at.Place(tx, m.Row)
	if err == nil && !found {
		err = unknownTurn(id)
	}
	return m, p, err
}

func unknownTurn(id string) error {
	return newError(KindNotFound, "id", "turn %s not found in this conversation, or you have no access to it", show(id))
}

// Delete deletes one turn of the conversation, which goes to the trash as with [Store.DeleteMemory].
func (c *Conversation) Delete(ctx context.Context, id string) (err error) {
	defer setGoNames[ConversationPlace](&err, "id", "id")
	if c.err != nil {
		return c.err
	}
	return c.store.hookedDelete(ctx, "Conversation.Delete", func(ctx context.Context, o *operation) (err error) {
		defer setGoNames[ConversationPlace](&err, "id", "id")
		c.describe(o)
		o.names(id)
		if err := o.delete(ctx, nil); err != nil {
			return err
		}
		return c.delete(ctx, id)
	})
}

func (c *Conversation) delete(ctx context.Context, id string) error {
	return c.store.write(ctx, func(tx db.Tx, v viewer) error {
		at, found, err := c.find(tx, v)
		if err == nil && !found {
			err = unknownTurn(id)
		}
		if err != nil {
			return err
		}
		if _, _, err := c.turn(tx, v, at, id); err != nil {
			return err
		}
		m, err := kernel.LoadForWriting(tx, v, id)
		if err != nil {
			return err
		}
		return c.store.newTrasher(tx, v, trash.FullPortion()).Memory(trashed(m))
	})
}
