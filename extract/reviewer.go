package extract

import (
	"cmp"
	"context"
	"errors"

	"github.com/souvenir-ai/souvenir"
)

// Reviewer decides about the proposals that wait in all places that a view of a store sees. It needs no model.
// Decisions need write access to the proposal's place, and otherwise return ErrForbidden. It is safe for concurrent
// use.
type Reviewer struct {
	store *souvenir.Store
}

// NewReviewer returns a reviewer with the access of a view of the store.
func NewReviewer(store *souvenir.Store) *Reviewer { return &Reviewer{store} }

// ReviewQuery selects a page of the proposals that wait.
type ReviewQuery struct {
	Limit  int // proposals to return, 1 to 100; zero means 25
	Offset int // proposals to skip before them
}

// ReviewPage is a page of the proposals that wait.
type ReviewPage struct {
	Waiting []Waiting `json:"waiting"`
	Total   int       `json:"total"` // of all pages
}

// Waiting is a proposal that waits, with the details that a person needs to decide.
type Waiting struct {
	Pending

	// Target is the current state of the memory that the proposal is about; nil if there is none, or it is no longer
	// visible.
	Target *souvenir.Memory `json:"target,omitempty"`

	// Conflict is a clause that says why the proposal can only be refused; empty if it can be accepted.
	Conflict string `json:"conflict,omitempty"`
}

// unreadable is the conflict of a memory with the event type of proposals but no proposal, which tools can store.
const unreadable = "it cannot be read; it may have been stored by hand"

// Page returns the proposals that wait, the oldest first. Proposals from one batch of turns, or of one group, are
// together.
func (v *Reviewer) Page(ctx context.Context, q ReviewQuery) (ReviewPage, error) {
	found, err := v.store.Search(ctx, souvenir.Query{AsOf: afterLong, Sort: souvenir.SortCreatedAsc,
		Filter: waitingEverywhere(), Limit: cmp.Or(q.Limit, 25), Offset: q.Offset})
	p := ReviewPage{Total: found.Total}
	for _, h := range found.Hits {
		w, err := v.waiting(ctx, h.Memory)
		if err != nil {
			return p, err
		}
		p.Waiting = append(p.Waiting, w)
	}
	return p, err
}

// Count returns how many proposals wait in all places, and stops at a maximum to save time. decides reports whether to
// count those of a place; nil counts all.
func (v *Reviewer) Count(ctx context.Context, most int, decides func(Pending) bool) (int, error) {
	n := 0
	list := souvenir.MemoryList{AsOf: afterLong, Filter: waitingEverywhere(), WithoutContent: true}
	for m, err := range v.store.Memories(ctx, list) {
		if err != nil || n == most {
			return n, err
		}
		if decides == nil || decides(pendingOf(m)) {
			n++
		}
	}
	return n, nil
}

func waitingEverywhere() souvenir.Filter {
	return souvenir.Filter{"event_type": eventProposal, "state": souvenir.Not(stateRefused)}
}

// waiting returns the proposal of a memory, with its target.
func (v *Reviewer) waiting(ctx context.Context, m souvenir.Memory) (Waiting, error) {
	s := scopeOf(v.store, m)
	p, c, err := s.read(m)
	if err != nil {
		w := Waiting{Pending: pendingOf(m), Conflict: unreadable}
		w.Proposal.Content = cut(m.Content, MaxContent)
		return w, nil //nolint:nilerr // it is listed as one that cannot be read
	}
	w := Waiting{Pending: p}
	if c.Target == "" {
		return w, nil
	}
	target, err := s.target(ctx, c.Proposal)
	if errors.Is(err, errGone) {
		w.Conflict = err.Error()
	} else if err != nil {
		return w, err
	}
	if target.ID != "" {
		w.Target = &target
	}
	return w, nil
}

// Accept applies a proposal and removes it, in one transaction. The error is ErrNotFound if it no longer waits, and
// ErrConflict if its target has changed since; then it stays.
func (v *Reviewer) Accept(ctx context.Context, id string, a Answer) (Decision, error) {
	return accept(ctx, v.store, id, a, func(m souvenir.Memory) scope { return scopeOf(v.store, m) })
}

// Refuse removes a proposal, as [Learner.Refuse] does. The error is ErrNotFound if it no longer waits.
func (v *Reviewer) Refuse(ctx context.Context, id string) (Decision, error) {
	return refuse(ctx, v.store, id, func(m souvenir.Memory) (Pending, error) {
		p, _, err := scopeOf(v.store, m).read(m)
		if err != nil && m.EventType == eventProposal && m.State != stateRefused { // it cannot be read
			return pendingOf(m), nil
		}
		return p, err
	})
}

// Undo restores a proposal that was accepted or refused by any reviewer of the same store, and reverts the changes of
// accepting it, in one transaction. If the memory was changed since, or the trash no longer has a deleted item, the
// error is ErrConflict or ErrNotFound, and nothing is changed.
func (v *Reviewer) Undo(ctx context.Context, d Decision) error {
	return v.store.Transaction(ctx, func(ctx context.Context) error { return undo(ctx, v.store, d) })
}
