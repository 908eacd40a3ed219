package extract

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// Applied is a proposal with its outcome.
type Applied struct {
	Proposal Proposal `json:"proposal"`
	Memory   string   `json:"memory,omitempty"` // the id of the memory that was stored, changed, deleted or met

	revision int   // of Memory, if it was stored or changed
	ended    ended // what a deleted memory superseded
}

// ended is a memory that is no longer valid, even without the one that superseded it. The zero value is none.
type ended struct {
	id    string
	own   time.Time // the end that it had before; zero: none
	until time.Time // the end that it got
}

// change is a proposal to apply, and its origin.
type change struct {
	Proposal
	conversation string    // key; empty: none
	at           time.Time // when it was said; zero: not known
}

// errGone means that the text of a target changed since the proposal was made, or that another memory changed, so that
// it no longer fits.
var errGone = errors.New("the memory was changed or deleted since")

// gone is a more exact errGone.
type gone string

func (g gone) Error() string { return string(g) }

func (g gone) Is(err error) bool { return err == errGone }

const errAlone = gone("the memory that would stay in its place was deleted or superseded since")

// about records the state of the memory that a proposal is about.
func (p *Proposal) about(m souvenir.Memory) { p.revision, p.was = m.Revision, digest(m.Content) }

// digest identifies a text.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// errFull means that a proposal would have to wait, and too many wait already.
var errFull = fmt.Errorf("it would have to wait for review, as %d do", MaxPending)

// commit applies the proposals of a batch, or keeps them for review, and stores the position after it. It returns
// false, and stores nothing, if the position is no longer where the batch began.
func (r *run) commit(ctx context.Context, from position, b batch, given []Proposal) (bool, error) {
	turns := map[string]time.Time{}
	for _, t := range b.Turns {
		turns[t.ID] = t.Time
	}
	before := len(r.report.Refused)
	proposals, err := r.meet(ctx, b.Conversation, given)
	if err != nil {
		return false, err
	}
	refused := len(r.report.Refused)
	waiting, err := r.waiting(ctx)
	if err != nil {
		return false, err
	}
	var applied []Applied
	var kept []Pending
	var moved bool
	err = r.transaction(ctx, func(ctx context.Context) error {
		applied, kept, moved = nil, nil, false // the transaction may be retried
		r.report.Refused = r.report.Refused[:refused]
		at, err := r.position(ctx)
		if err != nil || !at.equal(from) {
			moved = true
			return err
		}
		for _, p := range proposals {
			c := change{Proposal: p, conversation: r.key}
			for _, id := range p.Sources {
				if t := turns[id]; t.After(c.at) {
					c.at = t
				}
			}
			done, waits, err := r.applyOrKeep(ctx, c, waiting+len(kept) < MaxPending)
			switch {
			case errors.Is(err, errGone), errors.Is(err, errFull):
				r.refuse(p, err.Error())
			case err != nil:
				return err
			case waits != nil:
				kept = append(kept, *waits)
			default:
				applied = append(applied, done)
			}
		}
		return r.setPosition(ctx, b.end)
	})
	if err != nil || moved {
		r.report.Refused = r.report.Refused[:before]
		r.unread = nil
		return false, err
	}
	r.report.Applied, r.report.Kept = append(r.report.Applied, applied...), append(r.report.Kept, kept...)
	r.report.Unread = append(r.report.Unread, r.unread...)
	r.report.Turns += b.passed + len(r.unread)
	r.unread = nil
	r.progress(r.report.Turns)
	return true, nil
}

// transaction runs fn in a transaction, unless it is a dry run, which stores nothing.
func (r *run) transaction(ctx context.Context, fn func(context.Context) error) error {
	if r.options.DryRun {
		return fn(ctx)
	}
	return r.store.Transaction(ctx, fn)
}

func (r *run) progress(done int) {
	if r.options.Progress != nil {
		r.options.Progress(done)
	}
}

// applyOrKeep applies a change, or keeps it if it is to be reviewed and there is room.
func (r *run) applyOrKeep(ctx context.Context, c change, room bool) (Applied, *Pending, error) {
	target, err := r.scope.target(ctx, c.Proposal)
	if err != nil {
		return Applied{}, nil, err
	}
	own := c.Target == "" || target.EventType == EventFact
	if c.Action == None || !r.options.Review && own {
		if r.options.DryRun {
			return Applied{Proposal: c.Proposal, Memory: c.Target}, nil, nil
		}
		done, err := r.scope.apply(ctx, c, target)
		return done, nil, err
	}
	if !room {
		return Applied{}, nil, errFull
	}
	if r.options.DryRun {
		return Applied{}, &Pending{Proposal: c.Proposal, Conversation: c.conversation, SaidAt: c.at}, nil
	}
	waits, err := r.scope.keep(ctx, c)
	return Applied{}, &waits, err
}

// target returns the memory that a proposal is about, if it has not changed since.
func (s scope) target(ctx context.Context, p Proposal) (souvenir.Memory, error) {
	if p.Target == "" {
		return souvenir.Memory{}, nil
	}
	m, err := s.store.GetMemory(ctx, p.Target)
	if errors.Is(err, souvenir.ErrNotFound) {
		return m, errGone
	}
	same := m.Revision == p.revision || p.was != "" && p.was == digest(m.Content)
	if err == nil && (!same || !s.holds(m) || protected(m) || m.SupersededBy != "") {
		err = errGone
	}
	if err == nil && p.Action == Forget {
		err = s.remain(ctx, p.stays)
	}
	return m, err
}

// remain returns errAlone unless the memories that are to stay are still there, or their successors.
func (s scope) remain(ctx context.Context, stays map[string]bool) error {
	for id, replaced := range stays {
		m, err := s.store.GetMemory(ctx, id)
		if err == nil && replaced && m.SupersededBy != "" {
			m, err = s.store.GetMemory(ctx, m.SupersededBy)
		}
		over := err == nil && !m.ValidUntil.IsZero() && !m.ValidUntil.After(time.Now())
		if errors.Is(err, souvenir.ErrNotFound) || err == nil && (over || m.SupersededBy != "" || !s.holds(m)) {
			return errAlone
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// apply makes a change. Its target was checked in the same transaction.
func (s scope) apply(ctx context.Context, c change, target souvenir.Memory) (Applied, error) {
	done := Applied{Proposal: c.Proposal, Memory: c.Target}
	learned := map[string]any{"conversation": c.conversation, "reason": c.Reason}
	if c.Confidence > 0 {
		learned["confidence"] = c.Confidence
	} else if c.Action == Update {
		learned["confidence"] = nil // that of an earlier proposal goes
	}
	metadata := map[string]any{"learned": learned}
	switch c.Action {
	case Add, Supersede:
		m, err := s.store.AddMemory(ctx, souvenir.NewMemory{Collection: s.collection, ProjectID: s.ref, Content: c.Content,
			EventType: EventFact, EventTime: c.at, Related: c.Sources, Supersedes: c.Target, Metadata: metadata,
			IfAbsent: c.Action == Add})
		if done.Memory = m.ID; m.Effect != souvenir.EffectUnchanged {
			done.revision = m.Revision
		}
		return done, sourceGone(err)
	case Update:
		related := slices.Clone(target.Related)
		for _, id := range c.Sources {
			if !slices.Contains(related, id) {
				related = append(related, id)
			}
		}
		related = related[max(0, len(related)-souvenir.MaxRelated):]
		u := souvenir.MemoryUpdate{Content: &c.Content, Related: &related, Metadata: metadata,
			ExpectedRevision: target.Revision}
		if !c.at.IsZero() {
			u.EventTime = &c.at
		}
		m, err := s.store.UpdateMemory(ctx, c.Target, u)
		done.revision = m.Revision
		return done, sourceGone(err)
	case Forget:
		var err error
		done.ended, err = s.forget(ctx, target)
		return done, err
	case None:
		return done, nil
	}
	return done, fmt.Errorf("extract: unknown action %q", c.Action)
}

// forget deletes a memory. The one that it superseded stays as outdated as it is.
func (s scope) forget(ctx context.Context, m souvenir.Memory) (ended, error) {
	var before souvenir.Memory
	var err error
	if m.Supersedes != "" {
		if before, err = s.store.GetMemory(ctx, m.Supersedes); err != nil && !errors.Is(err, souvenir.ErrNotFound) {
			return ended{}, err
		}
	}
	if err := s.store.DeleteMemory(ctx, m.ID, nil); err != nil || before.ID == "" {
		return ended{}, err
	}
	now, err := s.store.GetMemory(ctx, before.ID)
	if err != nil || now.ValidUntil.Equal(before.ValidUntil) { // another one has superseded it for as long
		return ended{}, err
	}
	until := before.ValidUntil
	if least := now.ValidFrom.Add(time.Microsecond); until.Before(least) && !now.ValidFrom.IsZero() {
		until = least
	}
	_, err = s.store.UpdateMemory(ctx, now.ID, souvenir.MemoryUpdate{ValidUntil: &until})
	return ended{now.ID, now.ValidUntil, until}, err
}

// sourceGone explains that a turn was deleted in the meantime, so the proposal from it is not stored.
func sourceGone(err error) error {
	var known *souvenir.Error
	if errors.As(err, &known) && known.Argument == "related_memory_ids" {
		return fmt.Errorf("%w: a turn that it comes from", errGone)
	}
	return err
}
