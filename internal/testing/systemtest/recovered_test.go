package systemtest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/linediff"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

func TestRecoverOfASoundStoreIsTheSameStore(t *testing.T) {
	in := emptyInFile(t).(file)
	s := openWords(t, in, Options{Now: still, Documents: wordsReader{}})
	fillAll(t, s)
	mustAddCollection(t, s, NewCollection{Name: "own", OwnVectors: true, VectorSize: 3})
	mustAdd(t, s, NewMemory{Collection: "own", Content: "north kettle", Embedding: []float32{3, 0, 4}})
	out := filepath.Join(t.TempDir(), "out.db")
	before := exported(t, s, ExportOptions{Credentials: true})
	report, err := Recover(t.Context(), in.path, out,
		&RecoveryOptions{Embedder: wordEmbedder("words-1")}) // with its log, since the store is open
	if err != nil || !report.OK || report.Check.Verified < 50 || len(report.Notes) > 0 {
		t.Fatalf("got %+v, %v, want no error, OK, verified at least 50 and no notes", report, err)
	}
	copied := openWords(t, file{out}, Options{Now: still})
	if err := copied.Upkeep().WaitEmbedded(t.Context()); err != nil { // computes the models' vectors again
		t.Fatal(err)
	}
	if after := exported(t, copied, ExportOptions{Credentials: true}); !bytes.Equal(after, before) {
		t.Errorf("it differs: %v, want %.200q", linediff.First(after, before), before)
	}
	if report := mustCheck(t, copied, nil); !report.OK {
		t.Errorf("got %+v, want OK", report)
	}
	encoded, err := json.Marshal(report)
	if err != nil || !bytes.Contains(encoded, []byte(`"ok":true`)) || !bytes.Contains(encoded, []byte(`"damaged":[]`)) {
		t.Errorf(`got %s, %v, want no error, "ok":true and "damaged":[] in it`, encoded, err)
	}
	found, err := copied.Search(t.Context(),
		Query{Vector: []float32{3, 0, 4}, Collections: []string{"own"}, Limit: 1})
	if err != nil || len(found.Hits) != 1 || found.Hits[0].Parts.Vector < 0.99 {
		t.Errorf("a vector of the caller's own: %+v, %v, want no error, 1 hit and vector at least 0.99", found.Hits, err)
	}
}

// An old file is recovered to get back what it has, so the rules must wait.
func TestRecoverOfAnOldFileKeepsWhatIsDueSince(t *testing.T) {
	in := emptyInFile(t).(file)
	then := time.Now().Add(-60 * 24 * time.Hour)
	s := openWords(t, in, Options{Now: func() time.Time { return then }})
	mustAddCollection(t, s, NewCollection{Name: "diary"})
	rule := Retention{After: 30 * 24 * time.Hour, Delete: true}
	if _, err := s.UpdateCollection(t.Context(), "diary", CollectionUpdate{Retention: &rule}); err != nil {
		t.Fatal(err)
	}
	due := mustAdd(t, s, NewMemory{Collection: "diary", Content: "a page of the diary"})
	out := filepath.Join(t.TempDir(), "out.db")
	report, err := Recover(t.Context(), in.path, out, &RecoveryOptions{Embedder: wordEmbedder("words-1")})
	if err != nil || !report.OK {
		t.Fatalf("got %+v, %v, want no error and OK", report, err)
	}
	copied := openWords(t, file{out}, Options{})
	purged, err := copied.Upkeep().Purge(t.Context(), nil)
	if err != nil || purged.HeldUntil.IsZero() || purged.Memories != 0 {
		t.Errorf("a purge: got %+v, %v, want nothing deleted yet", purged, err)
	}
	if _, err := copied.GetMemory(t.Context(), due.ID); err != nil {
		t.Errorf("the page of the diary: got %v, want it", err)
	}
	purged, err = copied.Upkeep().Purge(t.Context(), &PurgeOptions{TrustClock: true})
	if err != nil || purged.Memories != 1 {
		t.Errorf("a purge that trusts the clock: got %+v, %v, want the page deleted", purged, err)
	}
}

func TestRecoverRefuses(t *testing.T) {
	dir := t.TempDir()
	path := func(name string, content []byte) string {
		writeFile(t, filepath.Join(dir, name), content)
		return filepath.Join(dir, name)
	}
	store, err := emptyStore()
	if err != nil {
		t.Fatal(err)
	}
	foreign, newer := bytes.Clone(store), bytes.Clone(store)
	binary.BigEndian.PutUint32(foreign[68:], 77)
	binary.BigEndian.PutUint32(newer[60:], 9999)
	sound, out := path("sound.db", store), filepath.Join(dir, "out.db")
	for name, c := range map[string]struct {
		in, out string
		kind    error
	}{
		"nothing":           {"", out, ErrInvalid},
		"no such file":      {filepath.Join(dir, "none.db"), out, ErrNotFound},
		"a folder":          {dir, out, ErrInvalid},
		"a text":            {path("text", bytes.Repeat([]byte("no store at all "), 1000)), out, ErrForeign},
		"another program's": {path("foreign.db", foreign), out, ErrForeign},
		"a newer one":       {path("newer.db", newer), out, ErrNewer},
		"no way out":        {sound, "", ErrInvalid},
		"a file is there":   {sound, path("taken", nil), ErrConflict},
		"a log is there":    {sound, strings.TrimSuffix(path("log-wal", nil), "-wal"), ErrConflict},
		"no folder":         {sound, filepath.Join(dir, "none", "out.db"), ErrNotFound},
	} {
		if _, err := Recover(t.Context(), c.in, c.out, nil); !errors.Is(err, c.kind) {
			t.Errorf("%s: %v, want %v", name, err, c.kind)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("something was written, want an error")
	}
}

func TestRecoverOfAFileWithoutHashesCallsNothingVerified(t *testing.T) {
	longtest.Only(t)
	path, out := filepath.Join(t.TempDir(), "old.db"), filepath.Join(t.TempDir(), "out.db")
	makeFileOfVersion(t, path, 11)
	report, err := Recover(t.Context(), path, out, &RecoveryOptions{Embedder: wordEmbedder("words-1")})
	if err != nil || report.OK || report.Check.Verified != 0 || report.Check.Unverified != 11 ||
		report.Tables["memory"].Rows != 2 {
		t.Fatalf("got %+v, %v; want two memories, and 11 rows that cannot be verified", report, err)
	}
	s := openWords(t, file{out}, Options{})
	if found, err := s.Search(t.Context(), Query{Text: "kettle"}); err != nil || len(found.Hits) == 0 ||
		found.Hits[0].ID != "one" {
		t.Errorf("%+v, %v; want the memory one first", found.Hits, err)
	}
}

// The trash of a damaged store can be restored from the recovered store.
func TestRecoverKeepsTheTrash(t *testing.T) {
	longtest.Only(t)
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
		MemoryUpdate{Content: new("goes, twice written"),
			ShownMetadata: map[string]any{"related_memory_ids": []string{stays}}}); err != nil {
		t.Fatal(err)
	}
	before, err := s.GetMemory(t.Context(), goes)
	if err != nil {
		t.Fatal(err)
	}
	f := mustAddFile(t, s, NewFile{Filename: "f"}, "a file")
	for _, remove := range []func() error{
		func() error { return s.DeleteMemory(t.Context(), goes, nil) },
		func() error { return s.DeleteFile(t.Context(), f.ID, nil) },
		func() error {
			return s.DeleteProject(t.Context(), ProjectRef{Name: "Gone"}, &DeletionOptions{WithMemories: true})
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
		t.Fatalf("the trash is %+v, %v; it was %+v, want it unchanged", is, err, was)
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
	if _, err := s.GetFile(t.Context(), f.ID); err != nil {
		t.Error(err)
	}
	if report, err := s.Upkeep().Check(t.Context(), nil); err != nil || !report.OK {
		t.Errorf("got %+v, %v, want no error and OK", report, err)
	}
}

// A file in the trash whose entry is lost goes back to its owner. Otherwise it could not be named, and would count
// towards the quota forever.
func TestRecoverRestoresFilesOfALostTrash(t *testing.T) {
	in := emptyInFile(t)
	s := openWords(t, in, Options{})
	mustAdd(t, s, NewMemory{Content: "stays"})
	f := mustAddFile(t, s, NewFile{Filename: "f"}, "a file")
	if err := s.DeleteFile(t.Context(), f.ID, nil); err != nil {
		t.Fatal(err)
	}
	mustExec(t, s, `DELETE FROM trash`)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out.db")
	report, err := Recover(t.Context(), in.where(), out, nil)
	if err != nil || !strings.Contains(strings.Join(report.Notes, "\n"), "among its owner's files again") {
		t.Fatalf(`got %+v, %v, want no error and "among its owner's files again" in the notes`, report.Notes, err)
	}
	s = openWords(t, file{out}, Options{})
	if names := fileNames(t, s, FileList{}); !slices.Equal(names, []string{"f"}) {
		t.Errorf("got the files %v, want f", names)
	}
}
