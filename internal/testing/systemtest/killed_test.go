package systemtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// What a killed process leaves behind, and what a process copies while others write.

// zeros is an endless reader.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// filesHeld counts the rows of files, their chunks and their tags.
func filesHeld(tb testing.TB, s *Store) (n [3]int) {
	tb.Helper()
	read(tb, s, func(tx db.Tx) error {
		return tx.QueryRow(`SELECT (SELECT count(*) FROM file), (SELECT count(*) FROM file_chunk),
			(SELECT count(*) FROM file_tag)`).Scan(&n[0], &n[1], &n[2])
	})
	return n
}

func mustCheck(tb testing.TB, s *Store, o *CheckOptions) CheckReport {
	tb.Helper()
	report, err := s.Upkeep().Check(context.Background(), o)
	if err != nil {
		tb.Fatal(err)
	}
	return report
}

// importedFile returns the lines of a file in an export.
func importedFile(data string) string {
	sum := sha256.Sum256([]byte(data))
	return fmt.Sprintf(`{"type":"file","id":"imported","owner":%q,"filename":"f.txt","mime_type":"text/plain","size":%d,`+
		`"sha256":"%x","created_at":"2024-01-01T00:00:00Z","updated_at":"2024-01-01T00:00:00Z"}
{"type":"chunk","file":"imported","n":0,"data":%q}`, LocalUser, len(data), sum,
		base64.StdEncoding.EncodeToString([]byte(data)))
}

func TestBackupWhileOthersWriteIsOneMoment(t *testing.T) {
	longtest.Only(t)
	in := emptyInFile(t)
	s := openWords(t, in, Options{})
	many := make([]NewMemory, 800)
	for i := range many {
		many[i] = NewMemory{Content: fmt.Sprintf("before everything n%d. %s", i, strings.Repeat("so it goes ", 20))}
	}
	if _, err := s.AddMemories(t.Context(), many, nil); err != nil {
		t.Fatal(err)
	}
	other := startProcess(t, job{Path: in.where(), Work: "in batches", Count: 1_000_000})
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		for ctx.Err() == nil {
			if _, err := s.AddMemories(ctx, many[:40], nil); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	for round := range 3 {
		if !longtest.Part(round, 1, 3) {
			continue
		}
		other.line()
		backup := filepath.Join(t.TempDir(), fmt.Sprint(round, ".db"))
		steps := 0
		err := s.Upkeep().Backup(t.Context(), backup, &BackupOptions{Progress: func(_ string, _, _ int) {
			if steps++; steps == 2 && round == 0 {
				other.line() // the other process completes a write during the copy
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		copied := openWords(t, file{backup}, Options{ReadOnly: true})
		if report := mustCheck(t, copied, nil); !report.OK {
			t.Errorf("got %+v, want OK", report)
		}
		if n := count(t, copied, `SELECT count(*) FROM memory`); n < 800 || n%40 != 0 {
			t.Errorf("%d memories: a batch is there in part, want at least 800 and a multiple of 40", n)
		}
	}
	cancel()
	group.Wait()
	_ = other.cmd.Process.Kill()
	_, _ = other.rest()
}

func TestKilledBackupLeavesNoHalfFile(t *testing.T) {
	longtest.Only(t)
	in := emptyInFile(t)
	s := openWords(t, in, Options{})
	mustAdd(t, s, NewMemory{Content: "the kettle is blue"})
	mustExec(t, s, `INSERT INTO file_chunk (id, sha256, data) VALUES (9 << 24, x'', zeroblob(30000000))`)
	mustExec(t, s, `DELETE FROM file_chunk WHERE id = 9 << 24`)
	backup := filepath.Join(t.TempDir(), "backup.db")
	if err := s.Upkeep().Backup(t.Context(), backup, nil); err != nil {
		t.Fatal(err)
	}
	for _, work := range []string{"backup", "restore"} {
		folder := t.TempDir()
		to := filepath.Join(folder, "to.db")
		p := startProcess(t, job{Path: in.where(), Work: work, Name: to, From: backup})
		p.line() // it has done a step, and waits
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if _, err := p.rest(); err == nil {
			t.Error("the process ended by itself, want an error")
		}
		for _, name := range filesIn(t, folder) {
			if !strings.Contains(name, ".part-") {
				t.Errorf("%s: %s was left, want in it \".part-\"", work, name)
			}
		}
		if err := s.Upkeep().Backup(t.Context(), to, nil); err != nil {
			t.Errorf("after a killed %s: %v", work, err)
		}
	}
}

// A process is killed while it receives a file.
func TestKilledProcessLeavesNoFile(t *testing.T) {
	longtest.Only(t)
	in := emptyInFile(t)
	p := startProcess(t, job{Path: in.where(), Work: "store a file without end"})
	for range 3 {
		p.line() // one line for each transaction
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.rest(); err == nil {
		t.Fatal("the process ended by itself, want an error")
	}
	s := openWords(t, in, Options{})
	checkConsistency(t, s)
	if names := fileNames(t, s, FileList{}); len(names) != 0 {
		t.Errorf("these files are there: %v, want none", names)
	}
	if _, err := s.Upkeep().Purge(t.Context(), nil); err != nil { // the file might still be arriving, and stays
		t.Error(err)
	}
	if held := filesHeld(t, s); held[0] != 1 || held[1] < 3*16 {
		t.Errorf("the store holds %v, want 1 file and at least %v bytes", held, 3*16)
	}
	mustAddFile(t, s, NewFile{Filename: "next"}, "stored after the kill")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	later := openWords(t, in, Options{Now: func() time.Time { return time.Now().Add(25 * time.Hour) }})
	for deadline := time.Now().Add(30 * time.Second); filesHeld(t, later) != [3]int{1, 1,
		0}; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the next day the store still holds %v, want it before the deadline", filesHeld(t, later))
		}
	}
	if names := fileNames(t, later, FileList{}); !slices.Equal(names, []string{"next"}) {
		t.Errorf("these files are there: %v, want %v", names, []string{"next"})
	}
	checkConsistency(t, later)
}

// storeWithoutEnd prints a line for each transaction.
func storeWithoutEnd(ctx context.Context, s *Store) error {
	_, err := s.AddFile(ctx, NewFile{Progress: func(_ string, done, _ int) { fmt.Println(done) }}, zeros{})
	return err
}

// upkeepWithoutEnd repeats everything that takes more than one transaction, and prints a line at each step.
func upkeepWithoutEnd(ctx context.Context, s *Store, path string) error {
	beside, err := file{path}.engine(false)
	if err != nil {
		return err
	}
	defer beside.Close()
	step := func(stage string, done, _ int) { fmt.Println(stage, done) }
	export := byHand(
		`{"type":"memory","content":"imported of old","embedding":[1],"collection_name":"own","id":"m0"}`,
		importedFile(strings.Repeat("x", kernel.ChunkSize)),
		`{"type":"memory","content":"imported and linked","id":"m1","metadata":{"project_id":"p1",`+
			`"related_memory_ids":["m0"]}}`,
	)
	export = strings.Replace(export, "\n", "\n"+`{"type":"collection","collection_name":"own","own_vectors":1}`+"\n", 1)
	for {
		f, err := s.AddFile(ctx, NewFile{ProjectID: "p0", Progress: step}, io.LimitReader(zeros{}, 32*kernel.ChunkSize+5))
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
			"delete file": func() error { return s.DeleteFile(ctx, f.ID, nil) },
			"delete project": func() error {
				return s.DeleteProject(ctx, ProjectRef{ID: "p1"}, &DeletionOptions{WithMemories: true})
			},
			"repair": func() error {
				if err := beside.Write(ctx, func(tx db.Tx) error {
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
	in := emptyInFile(t)
	for round := range 4 {
		p := startProcess(t, job{Path: in.where(), Work: "upkeep without end"})
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
		s := openWords(t, in, Options{})
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
	later := openWords(t, in, Options{Now: func() time.Time { return time.Now().Add(25 * time.Hour) }})
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
