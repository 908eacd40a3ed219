package souvenir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/longtest"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// upkeepWithoutEnd does everything that takes more than one transaction again and again, and prints a line at each
// step.
func upkeepWithoutEnd(ctx context.Context, s *Store) error {
	step := func(stage string, done, _ int) { fmt.Println(stage, done) }
	export := byHand(
		`{"type":"memory","content":"imported of old","embedding":[1],"collection_name":"own","id":"m0"}`,
		fileLines("imported", LocalUser, strings.Repeat("x", kernel.ChunkSize)),
		`{"type":"memory","content":"imported and linked","id":"m1","metadata":{"project_id":"p1",`+
			`"related_memory_ids":["m0"]}}`,
	)
	export = strings.Replace(export, "\n", "\n"+`{"type":"collection","collection_name":"own","own_vectors":1}`+"\n", 1)
	for {
		f, err := s.AddFile(ctx, NewFile{ProjectID: "p0", Progress: step}, zeros(2*batchSize+5))
		if err != nil {
			return err
		}
		memories := make([]NewMemory, 300)
		for i := range memories {
			memories[i] = NewMemory{Content: fmt.Sprint("number ", i, " of many"), ProjectID: fmt.Sprint("p", i%2),
				Tags: []string{fmt.Sprint("t", i)}}
		}
		if _, err := s.AddMemories(ctx, memories, nil); err != nil {
			return err
		}
		for what, call := range map[string]func() error{
			"export": func() error { _, err := s.Upkeep().Export(ctx, io.Discard, &ExportOptions{Progress: step}); return err },
			"import": func() error {
				_, err := s.Upkeep().Import(ctx, strings.NewReader(export),
					&ImportOptions{Progress: step, OnConflict: ConflictReplace})
				return err
			},
			"reindex": func() error { return s.Upkeep().Reindex(ctx, &ReindexingOptions{Progress: step}) },
			"compact": func() error { return s.Upkeep().Compact(ctx) },
			"purge":   func() error { _, err := s.Upkeep().Purge(ctx, &PurgeOptions{KeepRevisions: 1}); return err },
			"restore": func() error {
				p, err := s.Trash().Page(ctx, TrashQuery{Limit: 20})
				for _, e := range p.Entries {
					if _, err := s.Trash().Restore(ctx, e.ID); err != nil && !isAny(err, ErrNotFound, ErrConflict) {
						return err
					}
				}
				return err
			},
			"empty trash": func() error { _, err := s.Trash().Empty(ctx); return err },
			"delete file": func() error { return s.DeleteFile(ctx, f.ID) },
			"delete project": func() error {
				return s.DeleteProject(ctx, ProjectRef{ID: "p1"}, &DeleteOptions{WithMemories: true})
			},
			"repair": func() error {
				if err := s.db.Write(ctx, func(tx db.Tx) error {
					return tx.(*sqlite.Tx).ExecScript(`UPDATE passage SET start = start + 1; DELETE FROM passage_text ` +
						`WHERE rowid & 1; UPDATE partition SET memories = 0;`)
				}); err != nil {
					return err
				}
				_, err := s.Upkeep().Check(ctx, &CheckOptions{Repair: true, Progress: step})
				return err
			},
		} {
			fmt.Println("begin", what)
			if err := call(); err != nil && !errors.Is(err, ErrNotFound) {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
	}
}

func TestKilledUpkeepCanBeRepaired(t *testing.T) {
	longtest.Only(t)
	path := filepath.Join(t.TempDir(), "killed.db")
	for round := range 6 {
		if !longtest.Part(round+4, 1, 6) {
			continue
		}
		p := startProcess(t, job{Path: path, Work: "upkeep without end"})
		last := ""
		for range 5 + 41*round {
			last = p.line()
		}
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if lines, err := p.rest(); err == nil {
			t.Fatal("the process ended by itself, want an error")
		} else if len(lines) > 0 {
			last = lines[len(lines)-1]
		}
		s := openWords(t, path, Options{})
		report := mustCheck(t, s, &CheckOptions{Repair: true}) // the process damages the store itself
		if !report.OK {
			t.Fatalf("killed after %q: %+v, want OK", last, report)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := s.Upkeep().WaitEmbedded(ctx); err != nil {
			t.Fatal(err)
		}
		cancel()
		checkConsistency(t, s)
		var out bytes.Buffer
		if _, err := s.Upkeep().Export(t.Context(), &out, nil); err != nil {
			t.Fatalf("killed after %q: %v", last, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	later := openWords(t, path, Options{Now: func() time.Time { return time.Now().Add(25 * time.Hour) }})
	if _, err := later.Upkeep().Purge(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := later.Trash().Empty(t.Context()); err != nil {
		t.Fatal(err)
	}
	if held := filesHeld(t, later); held[0] != len(fileNames(t, later, FileList{})) {
		t.Errorf("after a purge on the next day the store holds %v, want %d files", held,
			len(fileNames(t, later, FileList{})))
	}
}
