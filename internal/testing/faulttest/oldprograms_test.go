package faulttest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	. "github.com/souvenir-ai/souvenir"
)

// Old programs made the files of testdata: those of the commits 986e336 (schema version 12), 472d0a3 (18) and c6b1978
// (33). Each imported three memories with the built-in model of its time.
func TestFilesOfOldProgramsOpenMigrateCheckAndExport(t *testing.T) {
	for _, old := range oldFiles(t) {
		name, path := fmt.Sprint("version ", old.version), filepath.Join(t.TempDir(), "old.db")
		if err := os.WriteFile(path, old.content, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), path, nil)
		if err != nil {
			t.Errorf("%s: %v, want no error", name, err)
			continue
		}
		if err := s.Upkeep().WaitEmbedded(t.Context()); err != nil { // with the current model
			t.Errorf("%s: %v, want no error", name, err)
		}
		if report, err := s.Upkeep().Check(t.Context(), nil); err != nil || !report.OK {
			t.Errorf("%s: got %+v, %v, want OK", name, report, err)
		}
		var export bytes.Buffer
		if _, err := s.Upkeep().Export(t.Context(), &export, nil); err != nil {
			t.Errorf("%s: %v, want no error", name, err)
		}
		for _, want := range []string{`"The kettle is blue."`, `"votes":3`, `"tea"`, `"collection_name":"house"`,
			`"2024-05-01T16:00:00.000000Z"`, `東京の天気 and Ünïcode`, `"related_memory_ids":["old-1"]`} {
			if !strings.Contains(export.String(), want) {
				t.Errorf("%s: got no %s in %s, want it", name, want, export.String())
			}
		}
		found, err := s.Search(t.Context(), Query{Text: "kettle"})
		if err != nil || len(found.Hits) == 0 || found.Hits[0].ID != "old-1" {
			t.Errorf("%s: got %v, %v, want the memory old-1 first", name, found.Hits, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// oldFile is a file of an old program.
type oldFile struct {
	version int
	content []byte
}

// oldFiles returns the files of testdata.
func oldFiles(tb testing.TB) (all []oldFile) {
	tb.Helper()
	names, err := filepath.Glob("testdata/*.db.gz")
	if err != nil || len(names) == 0 {
		tb.Fatalf("got %q, %v, want files", names, err)
	}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			tb.Fatal(err)
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			tb.Fatal(err)
		}
		content, err := io.ReadAll(z)
		if err != nil {
			tb.Fatal(err)
		}
		version, _, _ := strings.Cut(filepath.Base(name), ".")
		n, err := strconv.Atoi(version)
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, oldFile{n, content})
	}
	return all
}
