package storetest

import (
	"strings"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func identityMemories() concept {
	return concept{"Identity memories", []promise{
		{"it is the newest active memory of its event type", identityNewest},
		{"setting it again changes the same memory", identitySet},
		{"setting it at the same time makes one", identityRace},
		{"who writes in a project makes no identity of others' memories there", identityOfOthers},
		{"wrong arguments are refused", identityErrors},
	}}
}

// identity returns the content of the identity, "" for none.
func (f *fixture) identity() string {
	f.Helper()
	m, err := f.reader.GetIdentityMemory(f.ctx)
	listed := only(f.context(souvenir.ContextQuery{}).Identity)
	if err != nil {
		f.fails("GetIdentityMemory", err, souvenir.ErrNotFound, "IDENTITY")
		f.equal("identity in the context", listed, "")
		return ""
	}
	f.equal("identity in the context", listed, m.Content)
	return m.Content
}

func identityNewest(f *fixture) {
	f.equal("none", f.identity(), "")
	add := func(m souvenir.NewMemory) string { f.clock.Pass(time.Second); return f.add(m).ID }
	first := add(souvenir.NewMemory{Content: "first", EventType: "IDENTITY"})
	f.equal("the first", f.identity(), "first")
	second := add(souvenir.NewMemory{Content: "second", EventType: "identity", State: "ACTIVE", ProjectID: "p"})
	f.equal("the second", f.identity(), "second")
	add(souvenir.NewMemory{Content: "third", EventType: "Identity memories", State: "completed"})
	add(souvenir.NewMemory{Content: "fourth", EventType: "identity", State: "archived"})
	f.equal("still the second", f.identity(), "second")
	f.clock.Pass(time.Second)
	f.rewrite(first, "first again")
	f.equal("the one updated last", f.identity(), "first again")
	f.delete(first)
	f.equal("when that is gone", f.identity(), "second")
	f.equal("of another user", f.as(souvenir.Access{User: "ann"}).identity(), "")
	f.equal("in its project", f.as(souvenir.Access{Projects: []string{"p"}}).identity(), "second")
	f.equal("in another project", f.as(souvenir.Access{Projects: []string{"q"}}).identity(), "")
	f.patch(second, map[string]any{"state": "archived"})
	f.equal("archived", f.identity(), "")
}

func identitySet(f *fixture) {
	set := func(i souvenir.IdentityMemory) souvenir.StoredMemory {
		f.Helper()
		stored, err := f.store.SetIdentityMemory(f.ctx, i)
		f.check("SetIdentityMemory", err)
		return stored
	}
	stored := set(souvenir.IdentityMemory{Content: "I am Mira.", Personality: "calm", Nicknames: []string{"Mi", "Mimi"},
		Address: "by first name", EmotionalState: "glad"})
	f.equal("as stored", []any{stored.EventType, stored.State, stored.Collection, stored.Revision, stored.Indexed},
		[]any{"IDENTITY", "active", "default", 1, true})
	f.sameJSON("metadata", f.get(stored.ID).Metadata,
		map[string]any{"personality": "calm", "nicknames": []string{"Mi", "Mimi"}, "address": "by first name",
			"emotional_state": "glad"})
	f.patch(stored.ID, map[string]any{"born": "2026", "tags": []any{"me"}})
	again := set(souvenir.IdentityMemory{Content: "I am Mira, the second.", Personality: "lively", ExpectedRevision: 2})
	f.equal("the same memory", []any{again.ID, again.Revision}, []any{stored.ID, 3})
	f.sameJSON("metadata", f.get(stored.ID).ShownMetadata(),
		map[string]any{"personality": "lively", "born": "2026", "tags": []string{"me"}, "event_type": "IDENTITY",
			"state": "active"})
	f.same("found by its new words", f.find("second"), "I am Mira, the second.")
	f.equal("with no change", set(souvenir.IdentityMemory{Content: "I am Mira, the second.",
		Personality: "lively"}).Revision, 3)
	hers := f.as(souvenir.Access{User: "ann"})
	_, err := hers.store.SetIdentityMemory(f.ctx, souvenir.IdentityMemory{Content: "I am Ann."})
	f.check("SetIdentityMemory", err)
	f.equal("hers", hers.identity(), "I am Ann.")
	f.equal("mine", f.identity(), "I am Mira, the second.")

	f.embedder.Break(errBroken)
	late := set(souvenir.IdentityMemory{Content: "I am Mira, the third."})
	if late.Indexed || len(late.Warnings) == 0 {
		f.Errorf("with a failed embedder: indexed %v, warnings %q, want not indexed and a warning", late.Indexed,
			late.Warnings)
	}
	f.embedder.Mend()
	f.waitEmbedded(f.store)
}

func identityRace(f *fixture) {
	var group sync.WaitGroup
	for _, store := range []*souvenir.Store{f.store, f.reader, f.store, f.reader} {
		group.Go(func() {
			if _, err := store.SetIdentityMemory(f.ctx, souvenir.IdentityMemory{Content: "I am Mira."}); err != nil {
				f.Error(err)
			}
		})
	}
	group.Wait()
	f.equal("memories", f.search(souvenir.Query{}).Total, 1)
}

func identityOfOthers(f *fixture) {
	p := share(f)
	rocket := p.owner.list(souvenir.MemoryList{})[0].ID
	asIdentity := souvenir.MemoryUpdate{Content: new("I do as Will says."),
		ShownMetadata: object(`{"event_type":"identity"}`)}
	for _, m := range []*fixture{p.writer, p.coOwner} {
		_, err := m.store.UpdateMemory(f.ctx, rocket, asIdentity)
		f.failsAt("UpdateMemory by "+m.name(), err, souvenir.ErrForbidden, "event_type", `"Apollo 11"`, `"olga"`)
	}
	_, err := p.owner.store.UpdateMemory(f.ctx, rocket,
		souvenir.MemoryUpdate{ShownMetadata: object(`{"event_type":"Identity"}`)})
	f.check("UpdateMemory by the owner", err)
	p.owner.rewrite(rocket, "I am Olga's.")
	_, err = p.writer.store.UpdateMemory(f.ctx, rocket, souvenir.MemoryUpdate{Content: asIdentity.Content})
	f.failsAt("UpdateMemory of an identity by a writer", err, souvenir.ErrForbidden, "event_type")
	_, err = p.writer.store.RestoreRevision(f.ctx, rocket, 2)
	f.failsAt("RestoreRevision of an identity by a writer", err, souvenir.ErrForbidden, "event_type")
	f.equal("the owner's identity", p.owner.identity(), "I am Olga's.")
	_, err = p.writer.store.AddMemory(f.ctx,
		souvenir.NewMemory{Content: "mine", ProjectID: apollo.ID, EventType: souvenir.EventIdentity})
	f.failsAt("AddMemory of an identity by a writer", err, souvenir.ErrForbidden, "event_type", `"Apollo 11"`, `"olga"`)
	mine := p.writer.add(souvenir.NewMemory{Content: "mine", EventType: souvenir.EventIdentity})
	_, err = p.writer.store.UpdateMemory(f.ctx, mine.ID,
		souvenir.MemoryUpdate{ShownMetadata: map[string]any{"project_id": apollo.ID}})
	f.failsAt("moving an identity into the project", err, souvenir.ErrForbidden, "event_type", `"Apollo 11"`, `"olga"`)
	p.writer.rewrite(mine.ID, "I am Will's.")
	f.equal("the writer's", []string{p.writer.identity(), p.owner.identity()}, []string{"I am Will's.", "I am Olga's."})
}

func identityErrors(f *fixture) {
	f.add(souvenir.NewMemory{Content: "x", ProjectID: "p"})
	for _, c := range []struct {
		access   souvenir.Access
		identity souvenir.IdentityMemory
		kind     *souvenir.Error
		argument string
	}{
		{souvenir.Access{}, souvenir.IdentityMemory{}, souvenir.ErrInvalid, "content"},
		{souvenir.Access{}, souvenir.IdentityMemory{Content: "x", Personality: "a\xff"}, souvenir.ErrInvalid, "metadata"},
		{souvenir.Access{}, souvenir.IdentityMemory{Content: "x", Address: strings.Repeat("x", 70_000)}, souvenir.ErrTooLarge,
			"metadata"},
		{souvenir.Access{}, souvenir.IdentityMemory{Content: "x", ExpectedRevision: -1}, souvenir.ErrInvalid,
			"expected_revision"},
		{souvenir.Access{}, souvenir.IdentityMemory{Content: "x", ExpectedRevision: 1}, souvenir.ErrConflict,
			"expected_revision"},
		{souvenir.Access{ReadOnly: true}, souvenir.IdentityMemory{Content: "x"}, souvenir.ErrReadOnly, ""},
		{souvenir.Access{Projects: []string{}}, souvenir.IdentityMemory{Content: "x"}, souvenir.ErrForbidden, "project_id"},
	} {
		_, err := f.store.As(c.access).SetIdentityMemory(f.ctx, c.identity)
		f.failsAt("SetIdentityMemory "+brief(c), err, c.kind, c.argument)
	}
	f.equal("identity", f.identity(), "")
	_, err := f.store.SetIdentityMemory(f.ctx, souvenir.IdentityMemory{Content: "I am Mira."})
	f.check("SetIdentityMemory", err)
	_, err = f.store.SetIdentityMemory(f.ctx, souvenir.IdentityMemory{Content: "x", ExpectedRevision: 2})
	f.failsAt("SetIdentityMemory of another revision", err, souvenir.ErrConflict, "expected_revision", "revision 1")
}
