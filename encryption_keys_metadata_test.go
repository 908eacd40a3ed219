package souvenir

import (
	"path/filepath"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// Sealed metadata does not look like metadata, but Recover keeps it: of memories, of past versions, and of a lost
// memory that its past version replaces.
func TestRecoverKeepsSealedMetadata(t *testing.T) {
	longtest.Only(t)
	k := newKeyed(t)
	ann, _ := k.user("ann", "the code of the gate is 4711")
	var ids []string
	for _, says := range []string{"the garden", "the house"} {
		m, err := ann.AddMemory(t.Context(), NewMemory{Content: says, Metadata: map[string]any{"colour": "grün"}})
		noError(t, err)
		_, err = ann.UpdateMemory(t.Context(), m.ID, MemoryUpdate{Content: content(says + " again")})
		noError(t, err)
		ids = append(ids, m.ID)
	}
	k.close()
	k.keys.Place = UserKeysFile(k.path)
	recovered := func() (*Store, RecoveryReport) {
		out := filepath.Join(t.TempDir(), "recovered.db")
		report, err := Recover(t.Context(), k.path, out, &RecoveryOptions{UserKeys: k.keys,
			Embedder: wordEmbedder("words-1")})
		noError(t, err)
		return k.openAt(out, k.keys).As(ann.access), report
	}
	view, report := recovered()
	if !report.OK || len(report.Notes) > 0 {
		t.Errorf("Recover: got %+v, want all recovered", report)
	}
	for _, id := range ids {
		m, err := view.GetMemory(t.Context(), id)
		if err != nil || len(m.Metadata) != 1 || m.Metadata["colour"] != "grün" {
			t.Errorf("the metadata of a recovered memory: got %v and %v, want it as it was", m.Metadata, err)
		}
		past, err := view.Revisions(t.Context(), id)
		if err != nil || len(past) != 2 || past[1].Metadata["colour"] != "grün" {
			t.Errorf("its past version: got %+v and %v, want its metadata as it was", past, err)
		}
	}

	withoutReferencesOrHashes(t, k.path, `DELETE FROM memory WHERE uid = '`+ids[1]+`'`)
	view, report = recovered()
	found := false
	for m, err := range view.Memories(t.Context(), MemoryList{}) { // it has a new id
		noError(t, err)
		found = found || m.Content == "the house" && m.Metadata["colour"] == "grün"
	}
	if !found {
		t.Errorf("got no past version with its metadata in place of the lost memory, and %q; want one", report.Notes)
	}
}

// Metadata that an earlier version sealed without lookups can be found, and gets its lookups when the store is opened.
func TestSealedMetadataFromBeforeGetLookups(t *testing.T) {
	k := newKeyed(t)
	ann, _ := k.user("ann", "the code of the gate is 4711")
	_, err := ann.AddMemory(t.Context(), NewMemory{Content: "the garden", Metadata: map[string]any{"colour": "grün"}})
	noError(t, err)
	lines := func(s *Store) (n int) {
		noError(t, s.db.Read(t.Context(), func(tx db.Tx) error {
			return db.Stored(tx).QueryRow(`SELECT count(*) FROM memory WHERE instr(metadata, char(10)) > 0`).Scan(&n)
		}))
		return n
	}
	found := func(view *Store) {
		t.Helper()
		for _, f := range []Filter{{"colour": "grün"}, {"colour": Condition{MoreThan: "g"}},
			{"colour": Condition{Not: []any{nil}}}} {
			results, err := view.Search(t.Context(), Query{Filter: f})
			if err != nil || results.Total != 1 {
				t.Errorf("%v: got %d memories and %v, want 1", f, results.Total, err)
			}
		}
	}
	found(ann)
	before := lines(k.s)
	noError(t, k.s.db.Write(t.Context(), func(tx db.Tx) error {
		_, err := db.Stored(tx).Exec(`UPDATE memory SET metadata = substr(metadata, 1, instr(metadata, char(10)) - 1)
			WHERE instr(metadata, char(10)) > 0`)
		return err
	}))
	if n := lines(k.s); before != 1 || n != 0 {
		t.Fatalf("memories with lookups: got %d, and %d without these; want 1 and 0", before, n)
	}
	found(ann)
	k.close()
	k.open()
	if n := lines(k.s); n != 1 {
		t.Errorf("memories with lookups after opening the store again: got %d, want 1", n)
	}
	found(k.s.As(ann.access))
	report, err := k.s.Upkeep().Check(t.Context(), nil)
	if err != nil || !report.OK {
		t.Errorf("Check: got %+v and %v, want it sound", report, err)
	}
}
