package systemtest

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/db"
)

// sealedTexts selects the sealed texts of memories.
const sealedTexts = `SELECT content FROM memory UNION ALL SELECT metadata FROM memory
	UNION ALL SELECT content FROM memory_revision UNION ALL SELECT attributes FROM memory_revision
	UNION ALL SELECT title FROM trash UNION ALL SELECT data FROM trash UNION ALL SELECT data FROM trash_item`

// stored returns values as they are stored.
func (s *safe) stored(query string) (values []string) {
	s.Helper()
	engine, err := s.in.engine(true)
	if err != nil {
		s.Fatal(err)
	}
	defer engine.Close()
	if err := engine.Read(s.Context(), func(tx db.Tx) error {
		values, err = db.Column[string](tx, query)
		return err
	}); err != nil || len(values) == 0 {
		s.Fatalf("stored values: got %d and %v, want some", len(values), err)
	}
	return values
}

func (s *safe) wantText(store *Store, id, want string) {
	s.Helper()
	if m, err := store.GetMemory(s.Context(), id); err != nil || m.Content != want {
		s.Errorf("GetMemory %s: got %q and %v, want %q", id, m.Content, err, want)
	}
}

// list returns the memories that a filter matches.
func (s *safe) list(store *Store, f Filter) (found []Memory) {
	s.Helper()
	for m, err := range store.Memories(s.Context(), MemoryList{Filter: f}) {
		if err != nil {
			s.Fatalf("Memories: %v", err)
		}
		found = append(found, m)
	}
	return found
}

func memoriesAreSealed(s *safe) {
	const secret = "the code of the gate is 4711"
	stays := mustAdd(s, s.store, NewMemory{Content: secret + ", once", Metadata: map[string]any{"place": secret, "n": 7}})
	trashed := mustAdd(s, s.store, NewMemory{Content: secret + ", deleted"})
	changed := secret + ", again"
	if _, err := s.store.UpdateMemory(s.Context(), stays.ID, MemoryUpdate{Content: &changed}); err != nil {
		s.Fatal(err)
	}
	if err := s.store.DeleteMemory(s.Context(), trashed.ID, nil); err != nil {
		s.Fatal(err)
	}
	values := s.stored(sealedTexts)
	for _, v := range values {
		if strings.Contains(v, "gate") || strings.Contains(v, "place") || strings.Contains(v, "4711") {
			s.Errorf("stored: got %q, want it sealed", v)
		}
	}
	if sealed := slices.DeleteFunc(values, func(v string) bool { return v == "{}" }); len(sealed) < 7 {
		s.Errorf("sealed values: got %d, want the content and metadata of two versions, and three of the trash", len(sealed))
	}
	s.wantText(s.store, stays.ID, changed)
	for what, f := range map[string]Filter{"equal": {"place": secret}, "set": {"place": Condition{Not: []any{nil}}},
		"beyond": {"n": Condition{MoreThan: 6.5}}, "not": {"place": Not("elsewhere"), "n": In(6, 7)}} {
		if found := s.list(s.store, f); len(found) != 1 || found[0].ID != stays.ID {
			s.Errorf("a list of memories whose metadata are %s: got %+v, want the one", what, found)
		}
	}
	if found := s.list(s.store, Filter{"n": Not(7)}); len(found) != 0 {
		s.Errorf("a list of others: got %+v, want none", found)
	}
	again, err := s.store.AddMemory(s.Context(), NewMemory{Content: changed, IfAbsent: true})
	if err != nil || again.ID != stays.ID {
		s.Errorf("AddMemory of the same content: got %+v and %v, want the memory that has it", again, err)
	}
	if _, err := s.store.Trash().Restore(s.Context(), trashed.ID); err != nil {
		s.Errorf("Restore: %v", err)
	}
	s.wantText(s.store, trashed.ID, secret+", deleted")
	s.wantSound(s.store)
}

func deletedTextsInABackup(s *safe) {
	ann, ben := s.user("ann"), s.user("ben")
	hers := mustAdd(s, ann, NewMemory{Content: "hers", Metadata: map[string]any{"colour": "red"}, Key: "hers",
		Tags: []string{"one", "two"}})
	his := mustAdd(s, ben, NewMemory{Content: "his"})
	changed := "hers, changed"
	if _, err := ann.UpdateMemory(s.Context(), hers.ID, MemoryUpdate{Content: &changed}); err != nil {
		s.Fatal(err)
	}
	trashed := mustAdd(s, ann, NewMemory{Content: "hers, deleted"})
	if err := ann.DeleteMemory(s.Context(), trashed.ID, nil); err != nil {
		s.Fatal(err)
	}
	if err := s.store.Close(); err != nil {
		s.Fatal(err)
	}
	backup := s.in.copied(s)
	s.store = s.open(s.in, s.ring, Options{})
	s.deleteUser("ann")
	s.wantSound(s.store)

	read := s.open(backup, s.ring, Options{ReadOnly: true})
	s.wantText(read.As(Access{User: his.Owner}), his.ID, "his")
	found := s.list(read.As(Access{User: hers.Owner}), nil)
	if len(found) != 1 || found[0].Content != "" || found[0].Metadata["colour"] != nil {
		s.Errorf("memories of the deleted user: got %+v, want one without its text", found)
	}
	if _, err := read.Upkeep().Export(s.Context(), io.Discard, nil); !errors.Is(err, ErrConflict) {
		s.Errorf("Export with erased texts: got %v, want ErrConflict", err)
	}
	s.wantErased(read, 3) // a memory, a past version and a part of the trash
	if err := read.Close(); err != nil {
		s.Fatal(err)
	}

	restored := s.open(backup, s.ring, Options{})
	s.wantSound(restored)
	s.wantText(restored.As(Access{User: his.Owner}), his.ID, "his")
	if _, err := restored.As(Access{User: hers.Owner}).GetMemory(s.Context(), hers.ID); !errors.Is(err, ErrNotFound) {
		s.Errorf("GetMemory after the deletion: got %v, want ErrNotFound", err)
	}
}

// givenMemoriesStay deletes the former owner of memories.
func givenMemoriesStay(s *safe) {
	ann, ben := s.user("ann"), s.user("ben")
	if _, err := ben.AddProject(s.Context(), NewProject{ID: "garden"}); err != nil {
		s.Fatal(err)
	}
	given := mustAdd(s, ann, NewMemory{Content: "of the garden", Metadata: map[string]any{"colour": "red"}})
	of := mustAdd(s, ben, NewMemory{Content: "x"}).Owner
	if _, err := s.store.AddMember(s.Context(), NewMember{Project: ProjectRef{ID: of + "/garden"}, User: given.Owner,
		Role: MemberWriter}); err != nil {
		s.Fatal(err)
	}
	written := mustAdd(s, ann, NewMemory{Content: "written there", ProjectID: of + "/garden"})
	if _, err := ann.UpdateMemory(s.Context(), given.ID, MemoryUpdate{ProjectID: new(of + "/garden")}); err != nil {
		s.Fatal(err)
	}
	s.deleteUser("ann")
	s.wantText(ben, given.ID, "of the garden")
	s.wantText(ben, written.ID, "written there")
	if m, err := ben.GetMemory(s.Context(), given.ID); err != nil || m.Metadata["colour"] != "red" {
		s.Errorf("metadata of a memory that was given: got %v and %v, want them", m.Metadata, err)
	}
	s.wantSound(s.store)
}

// copiedSealedText makes a user store a text that looks like another user's sealed text.
func copiedSealedText(s *safe) {
	ann, ben := s.user("ann"), s.user("ben")
	mustAdd(s, ann, NewMemory{Content: "the code of the gate is 4711"})
	stolen := s.stored(`SELECT content FROM memory`)[0]
	copied := mustAdd(s, ben, NewMemory{Content: stolen, Metadata: map[string]any{"a": stolen}})
	s.wantText(ben, copied.ID, stolen)
	if err := ben.DeleteMemory(s.Context(), copied.ID, nil); err != nil {
		s.Fatal(err)
	}
	if _, err := ben.Trash().Restore(s.Context(), copied.ID); err != nil {
		s.Fatal(err)
	}
	s.wantText(ben, copied.ID, stolen)
	ben = s.store.As(Access{User: copied.Owner})
	if _, err := ben.UpdateCollection(s.Context(), copied.Collection, CollectionUpdate{Description: &stolen}); err != nil {
		s.Fatal(err)
	}
	var export bytes.Buffer
	_, err := s.store.Upkeep().Export(s.Context(), &export, nil)
	if n := strings.Count(export.String(), "4711"); err != nil || n != 1 {
		s.Errorf("export: got the text %d times and %v, want it once", n, err)
	}
	s.wantSound(s.store)
}
