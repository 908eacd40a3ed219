package extract

import (
	"context"
	"errors"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// Answer has the options to accept a proposal.
type Answer struct {
	Content  string // instead of the proposal's own; empty means that one
	Revision int    // of the proposal that was read; if it has another one, Accept returns ErrConflict. Zero means any.
}

// Decision is the outcome of a proposal that was accepted or refused. [Reviewer.Undo] undoes it.
type Decision struct {
	Applied        // if it was refused, only its Proposal is set
	ID      string // of the proposal

	accepted bool
	before   int       // the revision that the target had; 0: there was none
	then     time.Time // the event time that it had
}

// Stays reports whether the proposal stays in the store, hidden, instead of in the trash: a refused one of Consolidate
// does.
func (d Decision) Stays() bool { return !d.accepted && d.Proposal.Group != "" }

// accept applies a proposal, which must be in place, and removes it.
func accept(ctx context.Context, store *souvenir.Store, id string, a Answer,
	place func(souvenir.Memory) scope) (Decision, error) {
	var d Decision
	err := store.Transaction(ctx, func(ctx context.Context) error {
		d = Decision{ID: id, accepted: true} // it may run again
		m, err := store.GetMemory(ctx, id)
		if err != nil {
			return err
		}
		s := place(m)
		_, c, err := s.read(m)
		if err != nil {
			return err
		}
		if a.Revision != 0 && a.Revision != m.Revision {
			return conflictOf("the proposal was changed since it was read; read it again", nil)
		}
		if a.Content != "" {
			if c.Action == Forget {
				return invalid("content", "is given, but the proposal is to forget a memory; give none")
			}
			c.Content = a.Content
			if why := c.fault(); why != "" {
				return invalid("content", "cannot be stored: "+why)
			}
		}
		if c.Sources, err = left(ctx, store, c.Sources); err != nil {
			return err
		}
		target, err := s.target(ctx, c.Proposal)
		if err == nil {
			d.before, d.then = target.Revision, target.EventTime
			d.Applied, err = s.apply(ctx, c, target)
		}
		if err != nil {
			return conflict(err)
		}
		return store.DeleteMemory(ctx, id, nil)
	})
	return d, err
}

// left returns the turns that still exist. A proposal can be accepted without the others.
func left(ctx context.Context, store *souvenir.Store, turns []string) ([]string, error) {
	var all []string
	for _, id := range turns {
		_, err := store.GetMemory(ctx, id)
		switch {
		case err == nil:
			all = append(all, id)
		case !errors.Is(err, souvenir.ErrNotFound):
			return nil, err
		}
	}
	return all, nil
}

// refuse removes a proposal, which read parses from its memory.
func refuse(ctx context.Context, store *souvenir.Store, id string,
	read func(souvenir.Memory) (Pending, error)) (Decision, error) {
	var d Decision
	err := store.Transaction(ctx, func(ctx context.Context) error {
		d = Decision{ID: id}
		m, err := store.GetMemory(ctx, id)
		if err != nil {
			return err
		}
		p, err := read(m)
		if err != nil {
			return err
		}
		if d.Proposal = p.Proposal; p.Proposal.Group != "" {
			refused := stateRefused
			_, err := store.UpdateMemory(ctx, id, souvenir.MemoryUpdate{State: &refused})
			return err
		}
		return store.DeleteMemory(ctx, id, nil)
	})
	return d, err
}

func conflictOf(message string, err error) error {
	return &souvenir.Error{Kind: souvenir.KindConflict, Field: "id", Argument: "id", Message: message, Err: err}
}

// conflict tells callers of Accept that a proposal no longer fits.
func conflict(err error) error {
	if !errors.Is(err, errGone) {
		return err
	}
	return conflictOf("the proposal no longer fits: "+err.Error()+"; refuse it", err)
}

// undo restores a proposal and reverts the changes of accepting it.
func undo(ctx context.Context, store *souvenir.Store, d Decision) error {
	if err := d.revert(ctx, store); err != nil {
		return err
	}
	if !d.Stays() {
		_, err := store.Trash().Restore(ctx, d.ID)
		return err
	}
	m, err := store.GetMemory(ctx, d.ID)
	if err != nil {
		return err
	}
	if m.State != stateRefused {
		return conflictOf("the proposal was changed since", nil)
	}
	_, err = store.UpdateMemory(ctx, d.ID, souvenir.MemoryUpdate{State: new(string)})
	return err
}

// remember restores a forgotten memory. What it superseded gets its own end back, unless that was changed or deleted.
func (d Decision) remember(ctx context.Context, store *souvenir.Store) error {
	var before souvenir.Memory
	if d.ended.id != "" {
		var err error
		if before, err = store.GetMemory(ctx, d.ended.id); err != nil && !errors.Is(err, souvenir.ErrNotFound) {
			return err
		}
	}
	_, err := store.Trash().Restore(ctx, d.Memory)
	if err == nil && before.ID != "" && before.ValidUntil.Equal(d.ended.until) {
		_, err = store.UpdateMemory(ctx, before.ID, souvenir.MemoryUpdate{ValidUntil: &d.ended.own})
	}
	return err
}

// revert undoes what accepting a proposal has changed.
func (d Decision) revert(ctx context.Context, store *souvenir.Store) error {
	if d.accepted && d.Proposal.Action == Forget {
		return d.remember(ctx, store)
	}
	if !d.accepted || d.revision == 0 || d.Proposal.Action == Update && d.revision == d.before {
		return nil
	}
	m, err := store.GetMemory(ctx, d.Memory)
	if err != nil && !errors.Is(err, souvenir.ErrNotFound) {
		return err
	}
	if err != nil || m.Revision != d.revision || m.SupersededBy != "" {
		return conflictOf("memory "+d.Memory+" was changed or deleted since, so this cannot be undone; its history has "+
			"its past versions", err)
	}
	if d.Proposal.Action != Update {
		return store.DeleteMemory(ctx, d.Memory, nil)
	}
	restored, err := store.RestoreRevision(ctx, d.Memory, d.before)
	if err == nil && !restored.EventTime.Equal(d.then) { // a revision has no event time
		_, err = store.UpdateMemory(ctx, d.Memory, souvenir.MemoryUpdate{EventTime: &d.then})
	}
	return err
}
