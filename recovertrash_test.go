package souvenir

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// What was in the trash of a damaged store can be restored from that of the new one.
func TestRecoverKeepsTheTrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := Open(t.Context(), path, &Options{Embedder: wordEmbedder("words-1")})
	if err != nil {
		t.Fatal(err)
	}
	added, err := s.AddMemories(t.Context(),
		[]NewMemory{{Content: "stays"}, {Content: "goes", ProjectName: "Kept"},
			{Content: "in a project", ProjectName: "Gone"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	stays, goes := added[0].ID, added[1].ID
	if _, err := s.UpdateMemory(t.Context(), goes,
		MemoryUpdate{Content: content("goes, twice written"),
			ShownMetadata: map[string]any{"related_memory_ids": []string{stays}}}); err != nil {
		t.Fatal(err)
	}
	before, err := s.GetMemory(t.Context(), goes)
	if err != nil {
		t.Fatal(err)
	}
	putFile(t, s, "a-file", LocalUser, "", "", pattern(100))
	for _, remove := range []func() error{
		func() error { return s.DeleteMemory(t.Context(), goes) },
		func() error { return s.DeleteFile(t.Context(), "a-file") },
		func() error {
			return s.DeleteProject(t.Context(), ProjectRef{Name: "Gone"}, &DeleteOptions{WithMemories: true})
		},
	} {
		if err := remove(); err != nil {
			t.Fatal(err)
		}
	}
	was, err := s.Trash().Page(t.Context(), TrashQuery{})
	if err != nil || len(was.Entries) != 3 {
		t.Fatalf("%+v, %v; got %v, want 3", was, err, len(was.Entries))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out.db")
	report, err := Recover(t.Context(), path, out, &RecoveryOptions{Embedder: wordEmbedder("words-1")})
	if err != nil || !report.OK {
		t.Fatalf("got %+v, %v, want no error and OK", report, err)
	}
	if s, err = Open(t.Context(), out, &Options{Embedder: wordEmbedder("words-1")}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	is, err := s.Trash().Page(t.Context(), TrashQuery{})
	if err != nil || !reflect.DeepEqual(is, was) {
		t.Fatalf("the trash is %+v, %v; it was %+v", is, err, was)
	}
	for _, e := range is.Entries {
		if _, err := s.Trash().Restore(t.Context(), e.ID); err != nil {
			t.Errorf("%s: %v", e.Kind, err)
		}
	}
	after, err := s.GetMemory(t.Context(), goes)
	if err != nil || after.Content != before.Content || after.Revision != before.Revision ||
		!slices.Equal(after.Related, before.Related) {
		t.Errorf("%+v, %v; it was %+v, want no error, content %v, revision %v and related %v", after, err, before,
			before.Content, before.Revision, before.Related)
	}
	if _, err := s.GetFile(t.Context(), "a-file"); err != nil {
		t.Error(err)
	}
	if report, err := s.Upkeep().Check(t.Context(), nil); err != nil || !report.OK {
		t.Errorf("got %+v, %v, want no error and OK", report, err)
	}
}

// A file in the trash whose entry is lost is its owner's again: otherwise no one could name it, and it would count for
// ever.
func TestRecoverRestoresFilesOfALostTrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddMemory(t.Context(), NewMemory{Content: "stays"}); err != nil {
		t.Fatal(err)
	}
	putFile(t, s, "a-file", LocalUser, "", "", pattern(100))
	if err := s.DeleteFile(t.Context(), "a-file"); err != nil {
		t.Fatal(err)
	}
	if err := s.db.Write(t.Context(),
		func(tx db.Tx) error { _, err := tx.Exec(`DELETE FROM trash`); return err }); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out.db")
	report, err := Recover(t.Context(), path, out, nil)
	if err != nil || !strings.Contains(strings.Join(report.Notes, "\n"), "among its owner's files again") {
		t.Fatalf(`got %+v, %v, want no error and "among its owner's files again" in the notes`, report.Notes, err)
	}
	if s, err = Open(t.Context(), out, nil); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var state string
	err = s.db.Read(t.Context(), func(tx db.Tx) error { return tx.QueryRow(`SELECT state FROM file`).Scan(&state) })
	if err != nil || state != "stored" {
		t.Errorf("the file is %q, %v; want \"stored\"", state, err)
	}
}
