package faulttest

import (
	"archive/tar"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// oldFile is a file of an old program.
type oldFile struct {
	version int
	content []byte
}

// oldFiles returns the files that e2e/oldfiles.sh made with the programs of earlier schema versions.
func oldFiles(tb testing.TB) (all []oldFile) {
	tb.Helper()
	packed, err := os.Open(filepath.Join("testdata", "oldfiles.tar.bz2"))
	if err != nil {
		tb.Fatal(err)
	}
	defer packed.Close()
	for archive := tar.NewReader(bzip2.NewReader(packed)); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		old := oldFile{}
		if err == nil {
			_, err = fmt.Sscanf(header.Name, "%d.db", &old.version)
		}
		if err == nil {
			old.content, err = io.ReadAll(archive)
		}
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, old)
	}
}

// kept are texts of the export, by the first version whose file has them.
var kept = map[int][]string{
	1: {`"The kettle is blue."`, `"The kettle is red."`, `"tea"`, `"votes":3`, `"work"`, `東京の天気 and Ünïcode`,
		`"related_memory_ids":["`},
	4: {`"ann@example.com"`, `"project_name":"Garden"`, `"user":"ben","role":"writer"`, `Roses grow`, `"plan.txt"`,
		`"data":"YWJj"`, `[ ] T001 boil`, `[x] T002 find`, `"Warm the pot first."`, `{"theme":"dark"}`, `"laptop"`, `"sub-1"`,
		`"https://app.example/cb"`, `"type":"grant"`, `"type":"refresh_token"`, `"type":"signing_key"`},
	5:  {`"A gardener."`, `"nicknames":["Annie"]`},
	24: {`"key":"kettle"`, `"event_time":"2024-05-01T16:00:00`},
	25: {`"Is the water hot?"`},
	29: {`"expires_at":"2199-01-01`},
	42: {`"retention`},
}

// The files hold users, projects with members, memories with links and past versions, files, a to-do list, rules,
// tokens, an application with a grant, sign-ins, invitations, recorded calls, and from version 18 on the trash.
func TestFilesOfOldProgramsOpenMigrateCheckAndExport(t *testing.T) {
	now := time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC) // the trash has not expired
	for i, old := range oldFiles(t) {
		if !longtest.Part(i, 4, 16) {
			continue
		}
		t.Run(fmt.Sprint("version ", old.version), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "old.db")
			if err := os.WriteFile(path, old.content, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := Open(t.Context(), path, &Options{Now: func() time.Time { return now }})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.Upkeep().WaitEmbedded(t.Context()); err != nil { // with the current model
				t.Fatal(err)
			}
			if report, err := s.Upkeep().Check(t.Context(), nil); err != nil || !report.OK || report.Unverified > 0 {
				t.Errorf("got %+v, %v, want OK and each row verified", report, err)
			}
			var export bytes.Buffer
			if _, err := s.Upkeep().Export(t.Context(), &export, &ExportOptions{Credentials: true}); err != nil {
				t.Error(err)
			}
			for since, texts := range kept {
				for _, want := range texts {
					if old.version >= since && !strings.Contains(export.String(), want) {
						t.Errorf("the export has no %s, want it: %s", want, export.String())
					}
				}
			}
			found, err := s.Search(t.Context(), Query{Text: "kettle"})
			if err != nil || len(found.Hits) == 0 || found.Hits[0].Content != "The kettle is blue." {
				t.Errorf("a search finds %+v, %v, want the kettle first", found.Hits, err)
			}
			if old.version >= 18 {
				restoreAll(t, s)
			}
		})
	}
}

// restoreAll restores what an old program moved to the trash.
func restoreAll(t *testing.T, s *Store) {
	t.Helper()
	restored := map[string]bool{}
	for _, user := range []string{"local", "ann"} {
		trash := s.As(Access{User: user}).Trash()
		for e, err := range trash.All(t.Context(), TrashList{}) {
			if err == nil {
				_, err = trash.Restore(t.Context(), e.ID)
			}
			if err != nil {
				t.Errorf("%s of %s: %v", e.Title, user, err)
			}
			restored[e.Title] = true
		}
	}
	for _, want := range []string{"A cup that broke.", "lost.txt", "Shed"} {
		if !restored[want] {
			t.Errorf("the trash held %v, want %s, too", restored, want)
		}
	}
}
