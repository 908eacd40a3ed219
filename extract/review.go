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

// Pending is a proposal that waits for review. It is stored in the place it is about: users who can see
// that place can read it, and users who can write there decide. Searches, listings and contexts do not show it.
type Pending struct {
	ID           string    `json:"id"`
	Proposal     Proposal  `json:"proposal"`
	Conversation string    `json:"conversation,omitempty"` // key
	SaidAt       time.Time `json:"said_at,omitzero"`       // the time of its latest source
	CreatedAt    time.Time `json:"created_at,omitzero"`
	Revision     int       `json:"revision,omitempty"` // of the proposal itself

	Collection  string `json:"collection_name,omitempty"`
	ProjectID   string `json:"project_id,omitempty"` // empty: in none
	ProjectName string `json:"project_name,omitempty"`
	Owner       string `json:"owner,omitempty"` // user id of the owner of the place
}

// pendingOf returns the proposal of a memory, without its content.
func pendingOf(m souvenir.Memory) Pending {
	return Pending{ID: m.ID, CreatedAt: m.CreatedAt, Revision: m.Revision, Collection: m.Collection,
		ProjectID: m.ProjectID, ProjectName: m.ProjectName, Owner: m.Owner}
}

// keptProposal is a pending proposal as stored in the metadata of its memory.
type keptProposal struct {
	Proposal
	Revision     int       `json:"revision,omitempty"`
	Was          string    `json:"was,omitempty"`
	Conversation string    `json:"conversation,omitempty"`
	At           time.Time `json:"at,omitzero"`

	Stays map[string]bool `json:"stays,omitempty"`
}

const (
	metadataKey  = "proposal"
	stateRefused = "refused" // a proposal of Consolidate stays, so that it is not made again
)

// keep stores a proposal for review.
func (s scope) keep(ctx context.Context, c change) (Pending, error) {
	content := "Proposal to " + string(c.Action)
	if c.writes() {
		content = c.Content // hooks see it now, and again when it is applied
	}
	c.Content = ""
	data, err := json.Marshal(keptProposal{c.Proposal, c.revision, c.was, c.conversation, c.at, c.stays})
	if err != nil {
		return Pending{}, err
	}
	var metadata map[string]any
	if err := json.Unmarshal(data, &metadata); err != nil {
		return Pending{}, err
	}
	m, err := s.store.AddMemory(ctx, souvenir.NewMemory{Collection: s.collection, ProjectID: s.ref,
		Content: content, EventType: eventProposal, ValidFrom: long, Metadata: map[string]any{metadataKey: metadata}})
	if c.writes() {
		c.Content = m.Content
	}
	p := pendingOf(m.Memory)
	p.Proposal, p.Conversation, p.SaidAt = c.Proposal, c.conversation, c.at
	return p, err
}

// read returns the proposal of a memory. The memory is untrusted: tools can store one of this type, too.
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
	if unreadable || kept.fault() != "" || len(kept.Stays) > maxGroup || kept.Action == None {
		return Pending{}, change{}, unknown
	}
	kept.revision, kept.was, kept.Reason = kept.Revision, kept.Was, cut(kept.Reason, MaxReason)
	kept.stays = kept.Stays
	c := change{kept.Proposal, kept.Conversation, kept.At}
	p := pendingOf(m)
	p.Proposal, p.Conversation, p.SaidAt = c.Proposal, c.conversation, c.at
	return p, c, nil
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
func (s scope) pending() souvenir.MemoryList {
	l := s.proposals()
	l.Filter["state"] = souvenir.Not(stateRefused)
	return l
}

// proposals lists refused ones, too.
func (s scope) proposals() souvenir.MemoryList {
	l := souvenir.MemoryList{Collections: []string{s.collection}, ProjectID: s.ref, AsOf: afterLong, Filter: s.filter()}
	if l.Filter == nil {
		l.Filter = souvenir.Filter{}
	}
	l.Filter["event_type"] = eventProposal
	return l
}

// waiting returns the number of proposals that wait in the place.
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

// checkRoom returns an error while too many proposals wait.
func (r *run) checkRoom(ctx context.Context) error {
	n, err := r.waiting(ctx)
	if err != nil || n < MaxPending {
		return err
	}
	return &souvenir.Error{Kind: souvenir.KindTooLarge, Message: fmt.Sprintf("%d proposals wait for review; accept or "+
		"refuse some first", n)}
}

// Accept applies a pending proposal and removes it, in one transaction. Content that is not empty replaces the
// proposal's. If the target has changed since, the error is ErrConflict and the proposal stays.
func (l *Learner) Accept(ctx context.Context, id, content string) (Applied, error) {
	s, err := l.scope(ctx)
	if err != nil {
		return Applied{}, err
	}
	d, err := accept(ctx, l.store, id, Answer{Content: content}, func(souvenir.Memory) scope { return s })
	return d.Applied, err
}

// Refuse moves a pending proposal to the trash; its turns are not read again. A proposal of Consolidate stays, hidden
// and marked as refused, so that it is not made again until its memory changes.
func (l *Learner) Refuse(ctx context.Context, id string) error {
	s, err := l.scope(ctx)
	if err != nil {
		return err
	}
	_, err = refuse(ctx, l.store, id, func(m souvenir.Memory) (Pending, error) {
		p, _, err := s.read(m)
		return p, err
	})
	return err
}
