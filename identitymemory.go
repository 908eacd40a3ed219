package souvenir

import (
	"context"
	"maps"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fixedcontext"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/valid"
	"github.com/souvenir-ai/souvenir/internal/writing"
)

// EventIdentity is the event type of memories that say who the agent is, and how it addresses the user. It is compared
// without regard to case.
const EventIdentity = kernel.EventIdentity

// IdentityMemory describes who an agent is and how it treats its user. It is stored as a memory of event type IDENTITY,
// with the fields as metadata; empty means not set.
type IdentityMemory struct {
	Content        string   // who the agent is, in plain language; required
	Personality    string   // personality
	Nicknames      []string // nicknames: what the agent is called
	Address        string   // address: how it addresses the user
	EmotionalState string   // emotional_state

	// ExpectedRevision makes SetIdentityMemory fail with ErrConflict when the stored identity has another revision. Zero
	// means any.
	ExpectedRevision int
}

// metadata returns the identity as a metadata patch: fields that are not set are removed.
func (i IdentityMemory) metadata() map[string]any {
	patch := map[string]any{"personality": nil, "nicknames": nil, "address": nil, "emotional_state": nil}
	for key, value := range map[string]string{"personality": i.Personality, "address": i.Address,
		"emotional_state": i.EmotionalState} {
		if value != "" {
			patch[key] = value
		}
	}
	if len(i.Nicknames) > 0 {
		patch["nicknames"] = i.Nicknames
	}
	return patch
}

// GetIdentityMemory returns the caller's identity: the newest active memory of event type IDENTITY (in any case) in the
// caller's own collections. If there is none, it is ErrNotFound.
func (s *Store) GetIdentityMemory(ctx context.Context) (Memory, error) {
	var identity Memory
	err := s.read(ctx, func(tx db.Tx, v viewer) error {
		found, err := s.identityMemory(tx, v)
		if err != nil {
			return err
		}
		if found == nil {
			return newError(KindNotFound, "",
				"no identity is stored, or you have no access to it; store a memory with event_type %s and state %s", EventIdentity,
				StateActive)
		}
		identity = memoryOf(*found)
		return nil
	})
	return identity, err
}

// hasIdentity reports whether an identity is stored.
func (s *Store) hasIdentity(ctx context.Context) (known bool, err error) {
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		found, err := s.identityMemory(tx, v)
		known = found != nil
		return err
	})
	return known, err
}

// identityMemory returns the caller's identity, nil if there is none.
func (s *Store) identityMemory(tx db.Tx, v viewer) (*kernel.Memory, error) {
	places, err := fixedcontext.Places(tx, v)
	if err != nil {
		return nil, err
	}
	row, err := fixedcontext.Newest(tx, s.now(), fixedcontext.Select(v, places, fixedcontext.InOwn), EventIdentity)
	if err != nil || row == 0 {
		return nil, err
	}
	found, err := kernel.LoadRows(tx, v, kernel.WholeContent, []int64{row})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// SetIdentityMemory stores the caller's identity, or changes the stored one: its content and the metadata of an
// [IdentityMemory]; everything else about it stays. As with any update, the past version is kept as a revision.
func (s *Store) SetIdentityMemory(ctx context.Context, i IdentityMemory) (_ StoredMemory, err error) {
	defer setGoNames[IdentityMemory](&err, "metadata", "IdentityMemory")
	if err := checkExpected(i.ExpectedRevision); err != nil {
		return StoredMemory{}, err
	}
	patch, err := jsonobject.Canonical("metadata", i.metadata())
	if err != nil {
		return StoredMemory{}, err
	}
	own, err := kernel.Attributes{}.Patch(patch)
	if err != nil {
		return StoredMemory{}, err
	}
	if err := valid.NewContent(i.Content); err != nil {
		return StoredMemory{}, err
	}
	m := NewMemory{Content: i.Content, EventType: EventIdentity, State: StateActive, Metadata: own.Own}
	return hooked(ctx, s, OperationStore, "SetIdentityMemory",
		func(ctx context.Context, o *operation) (_ StoredMemory, err error) {
			defer setGoNames[IdentityMemory](&err, "metadata", "IdentityMemory")
			o.counts(1)
			d, err := newDraft(m)
			if err != nil {
				return StoredMemory{}, err
			}
			if o != nil {
				if d, err = o.rewrite(ctx, &m, d); err != nil {
					return StoredMemory{}, err
				}
				for key := range patch { // takes over the changes of the hooks
					patch[key] = d.Own[key]
				}
				maps.Copy(patch, d.Own)
				if d, err = newDraft(NewMemory{Content: m.Content, EventType: EventIdentity, State: StateActive,
					Metadata: d.Own}); err != nil {
					return StoredMemory{}, err
				}
			}
			return s.setIdentityMemory(ctx, d, patch, i.ExpectedRevision)
		})
}

func (s *Store) setIdentityMemory(ctx context.Context, d kernel.Draft, patch map[string]any,
	expected int) (StoredMemory, error) {
	if err := s.checkWritable(); err != nil {
		return StoredMemory{}, err
	}
	drafts := []kernel.Draft{d}
	warnings, err := s.embedDrafts(ctx, drafts, func(string, int, int) {})
	if err != nil {
		return StoredMemory{}, wrap(err)
	}
	var stored StoredMemory
	err = s.write(ctx, func(tx db.Tx, v viewer) error {
		w, err := s.writing().NewWriter(tx, v)
		if err != nil {
			return err
		}
		written, err := s.putIdentity(w, &drafts[0], patch, expected)
		if err != nil {
			return err
		}
		stored = storedOf(written)
		if !stored.Indexed {
			stored.Warnings = append(stored.Warnings, warnings...)
		}
		return w.Flush()
	})
	if err == nil && !stored.Indexed {
		s.wake(ctx)
	}
	return stored, err
}

// putIdentity adds the identity or overwrites the existing one.
func (s *Store) putIdentity(w *writing.Writer, d *kernel.Draft, patch map[string]any,
	expected int) (writing.Result, error) {
	before, err := s.identityMemory(w.Tx, w.Viewer)
	switch {
	case err != nil:
		return writing.Result{}, err
	case before == nil && expected > 0:
		return writing.Result{}, newError(KindConflict, "expected_revision",
			"{} is %d, but no identity is stored; omit it to store one", expected)
	case before == nil:
		return w.Add(d)
	}
	if err := before.Expect(expected); err != nil {
		return writing.Result{}, err
	}
	a, err := before.Patch(patch)
	if err == nil {
		err = a.Check()
	}
	if err != nil {
		return writing.Result{}, err
	}
	after := *before
	after.Content = d.Content
	after.Attributes = a
	return w.Update(*before, after, d)
}
