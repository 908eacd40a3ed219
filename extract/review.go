package extract

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// Pending is a proposal that waits for review. It is stored beside what it is about: who may see that place may read
// it, and who may write there decides. Searches, listings and contexts do not show it.
type Pending struct {
	ID           string    `json:"id"`
	Proposal     Proposal  `json:"proposal"`
	Conversation string    `json:"conversation,omitempty"` // key
	SaidAt       time.Time `json:"said_at,omitzero"`       // the time of its latest source
	CreatedAt    time.Time `json:"created_at"`
}

// keptProposal is a pending proposal in the metadata of its memory.
type keptProposal struct {
	Proposal
	Revision     int       `json:"revision,omitempty"`
	Conversation string    `json:"conversation,omitempty"`
	At           time.Time `json:"at,omitzero"`
}

const (
	metadataKey  = "proposal"
	stateRefused = "refused" // a proposal of Consolidate stays, so that it is not made again
)

// keep stores a proposal for review.
func (l *Learner) keep(ctx context.Context, s scope, c change) (Pending, error) {
	content := c.Content // so that hooks see it, as they will when it is applied
	if content == "" {
		content = "Proposal to " + string(c.Action)
	}
	c.Content = ""
	data, err := json.Marshal(keptProposal{c.Proposal, c.revision, c.conversation, c.at})
	if err != nil {
		return Pending{}, err
	}
	var metadata map[string]any
	if err := json.Unmarshal(data, &metadata); err != nil {
		return Pending{}, err
	}
	m, err := l.store.AddMemory(ctx, souvenir.NewMemory{Collection: s.collection, ProjectID: s.ref,
		Content: content, EventType: eventProposal, ValidFrom: long, Metadata: map[string]any{metadataKey: metadata}})
	if c.writes() {
		c.Content = m.Content
	}
	return Pending{m.ID, c.Proposal, c.conversation, c.at, m.CreatedAt}, err
}

// read returns the proposal that a memory holds. It trusts nothing in it: tools can store such a memory, too.
func (s scope) read(m souvenir.Memory) (Pending, change, error) {
	unknown := &souvenir.Error{Kind: souvenir.KindNotFound, Field: "id", Argument: "id",
		Message: fmt.Sprintf("id %q is no proposal of this place", m.ID)}
	if m.EventType != eventProposal || m.State == stateRefused || !s.holds(m) {
		return Pending{}, change{}, unknown
	}
	data, err := json.Marshal(m.Metadata[metadataKey])
	if err != nil {
		return Pending{}, change{}, err
	}
	var kept keptProposal
	unreadable := json.Unmarshal(data, &kept) != nil
	if kept.Content = ""; kept.writes() {
		kept.Content = m.Content
	}
	if unreadable || kept.fault() != "" || kept.Action == None {
		return Pending{}, change{}, unknown
	}
	kept.revision, kept.Reason = kept.Revision, cut(kept.Reason, MaxReason)
	c := change{kept.Proposal, kept.Conversation, kept.At}
	return Pending{m.ID, c.Proposal, c.conversation, c.at, m.CreatedAt}, c, nil
}

// Pending iterates over the proposals of the learner's place that wait for review, the oldest first.
func (l *Learner) Pending(ctx context.Context) iter.Seq2[Pending, error] {
	return func(yield func(Pending, error) bool) {
		s, err := l.scope(ctx)
		if err != nil {
			yield(Pending{}, err)
			return
		}
		for m, err := range l.store.Memories(ctx, s.pending()) {
			if errors.Is(err, souvenir.ErrNotFound) { // the collection is made with the first memory
				return
			}
			p, _, unreadable := s.read(m)
			if err == nil && unreadable != nil {
				continue
			}
			if !yield(p, err) || err != nil {
				return
			}
		}
	}
}

// pending lists the proposals that wait.
func (s scope) pending() souvenir.List {
	l := s.proposals()
	l.Filter["state"] = souvenir.Not(stateRefused)
	return l
}

// proposals lists those that were refused, too.
func (s scope) proposals() souvenir.List {
	l := souvenir.List{Collections: []string{s.collection}, ProjectID: s.ref, AsOf: afterLong, Filter: s.filter()}
	if l.Filter == nil {
		l.Filter = souvenir.Filter{}
	}
	l.Filter["event_type"] = eventProposal
	return l
}

// waiting is how many proposals of the place wait.
func (r *run) waiting(ctx context.Context) (n int, err error) {
	list := r.scope.pending()
	list.WithoutContent = true
	for _, err := range r.store.Memories(ctx, list) {
		if errors.Is(err, souvenir.ErrNotFound) {
			return 0, nil
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// checkRoom refuses to go on while too many proposals wait.
func (r *run) checkRoom(ctx context.Context) error {
	n, err := r.waiting(ctx)
	if err != nil || n < MaxPending {
		return err
	}
	return &souvenir.Error{Kind: souvenir.KindTooLarge, Message: fmt.Sprintf("%d proposals wait for review; accept or "+
		"refuse some first", n)}
}

// Accept applies a pending proposal, with other content if that is not empty, and removes it, in one transaction. A
// target that was changed since is ErrConflict: the proposal stays.
func (l *Learner) Accept(ctx context.Context, id, content string) (Applied, error) {
	s, err := l.scope(ctx)
	if err != nil {
		return Applied{}, err
	}
	var done Applied
	err = l.store.Transaction(ctx, func(ctx context.Context) error {
		m, err := l.store.GetMemory(ctx, id)
		if err != nil {
			return err
		}
		_, c, err := s.read(m)
		if err != nil {
			return err
		}
		if content != "" {
			if c.Action == Forget {
				return invalid("content", "is given, but the proposal is to forget a memory; give none")
			}
			c.Content = content
			if why := c.fault(); why != "" {
				return invalid("content", "cannot be stored: "+why)
			}
		}
		target, err := l.target(ctx, s, c.Proposal)
		if err == nil {
			done, err = l.apply(ctx, s, c, target)
		}
		if err != nil {
			return conflict(err)
		}
		return l.store.DeleteMemory(ctx, id)
	})
	return done, err
}

// conflict tells callers of Accept that a proposal no longer fits.
func conflict(err error) error {
	if !errors.Is(err, errGone) {
		return err
	}
	return &souvenir.Error{Kind: souvenir.KindConflict, Field: "id", Argument: "id",
		Message: "the proposal no longer fits: " + err.Error() + "; refuse it", Err: err}
}

// Refuse removes a pending proposal. It goes to the trash; its turns are not read again. One of Consolidate stays as
// refused, out of sight, so that it is not made again until its memory changes.
func (l *Learner) Refuse(ctx context.Context, id string) error {
	s, err := l.scope(ctx)
	if err != nil {
		return err
	}
	return l.store.Transaction(ctx, func(ctx context.Context) error {
		m, err := l.store.GetMemory(ctx, id)
		if err != nil {
			return err
		}
		p, _, err := s.read(m)
		if err != nil {
			return err
		}
		if p.Proposal.Group != "" {
			refused := stateRefused
			_, err := l.store.UpdateMemory(ctx, id, souvenir.MemoryUpdate{State: &refused})
			return err
		}
		return l.store.DeleteMemory(ctx, id)
	})
}
