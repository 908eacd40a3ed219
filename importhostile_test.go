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

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/longtest"
	"github.com/souvenir-ai/souvenir/internal/transfer"
)

func TestReadersAndWritersThatMisbehaveAreErrors(t *testing.T) {
	s := openCopy(t)
	if _, err := s.Upkeep().Export(t.Context(), nil, nil); !errors.Is(err, ErrInvalid) ||
		!strings.Contains(err.Error(), "w is nil") {
		t.Errorf(`export to nil: %v, want ErrInvalid that says "w is nil"`, err)
	}
	if _, err := s.Upkeep().Import(t.Context(), nil, nil); !errors.Is(err, ErrInvalid) ||
		!strings.Contains(err.Error(), "r is nil") {
		t.Errorf(`import of nil: %v, want ErrInvalid that says "r is nil"`, err)
	}
	early := fmt.Errorf("the connection broke: %w", io.EOF)
	for name, read := range map[string]readerFunc{
		"connection": func([]byte) (int, error) { return 0, early },
		"impossible": func([]byte) (int, error) { return -1, nil },
		"count":      func(p []byte) (int, error) { return len(p) + 1, nil },
		"no data":    func([]byte) (int, error) { return 0, nil },
	} {
		for _, before := range []string{"", byHand(`{"type":"memory","content":"kept"}`)} {
			if _, err := s.Upkeep().Import(t.Context(), io.MultiReader(strings.NewReader(before), read), nil); err == nil ||
				!strings.Contains(err.Error(), strings.Fields(name)[0]) {
				t.Errorf("a reader of %q after %q: %v", name, before, err)
			}
		}
		if _, err := s.AddFile(t.Context(), NewFile{},
			io.MultiReader(strings.NewReader("the first half"), read)); !errors.Is(err, ErrInvalid) ||
			filesHeld(t, s) != [3]int{} {
			t.Errorf("a file of %q: %v; the store holds %v", name, err, filesHeld(t, s))
		}
	}
	for _, n := range []int{-1, 1 << 40} {
		if _, err := s.Upkeep().Export(t.Context(), writerFunc(func([]byte) (int, error) { return n, nil }),
			nil); err == nil {
			t.Errorf("a writer that says it wrote %d bytes: no error, want an error", n)
		}
	}
}

// panics calls fn, which must panic.
func panics(t *testing.T, fn func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("got no panic, want one")
		}
	}()
	fn()
}

func TestCallersThatPanicLeaveTheStoreUsable(t *testing.T) {
	longtest.Only(t)
	for _, path := range []string{filepath.Join(t.TempDir(), "panic.db"), ":memory:"} {
		s := openWords(t, path, Options{})
		varied(t, s)
		big := byHand(strings.Split(strings.TrimSpace(string(exported(t, openRich(t), ExportOptions{}))), "\n")[1:]...)
		big = big[:strings.LastIndex(big, `{"type":"chunk"`)]
		folder := t.TempDir()
		boom := func(stage string, done, _ int) { panic(stage) }
		panics(t, func() {
			_, _ = s.Upkeep().Export(t.Context(), writerFunc(func([]byte) (int, error) { panic("w") }), nil)
		})
		panics(t, func() { _, _ = s.Upkeep().Export(t.Context(), io.Discard, &ExportOptions{Progress: boom}) })
		panics(t, func() {
			_, _ = s.Upkeep().BackupTo(t.Context(), writerFunc(func([]byte) (int, error) { panic("w") }), nil)
		})
		panics(t, func() { _, _ = s.Upkeep().BackupTo(t.Context(), io.Discard, &BackupOptions{Progress: boom}) })
		panics(t, func() {
			_ = s.Upkeep().Backup(t.Context(), filepath.Join(folder, "b.db"), &BackupOptions{Progress: boom})
		})
		panics(t, func() { _, _ = s.Upkeep().Check(t.Context(), &CheckOptions{Progress: boom}) })
		panics(t, func() { _ = s.Upkeep().Reindex(t.Context(), &ReindexingOptions{Progress: boom}) })
		panics(t, func() {
			_, _ = s.Upkeep().Import(t.Context(),
				io.MultiReader(strings.NewReader(big), readerFunc(func([]byte) (int, error) { panic("r") })), nil)
		})
		panics(t, func() {
			_, _ = s.AddFile(t.Context(), NewFile{},
				io.MultiReader(zeros(2*batchSize), readerFunc(func([]byte) (int, error) { panic("r") })))
		})
		if left := filesIn(t, folder); len(left) > 0 {
			t.Errorf("%s: a backup that panicked leaves %q, want none", path, left)
		}
		var unfinished int
		if err := s.db.Read(t.Context(), func(tx db.Tx) error {
			return tx.QueryRow(`SELECT count(*) FROM file WHERE state <> 'stored'`).Scan(&unfinished)
		}); err != nil || unfinished > 0 {
			t.Errorf("%s: %d unfinished files are left, %v; want none", path, unfinished, err)
		}
		mustAdd(t, s, NewMemory{Content: "stored after all that"})
		if report := mustCheck(t, s, nil); !report.OK {
			t.Errorf("%s: got %+v, want OK", path, report)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestUnrepresentableTimesAreNotImported(t *testing.T) {
	s := openCopy(t)
	for _, created := range []string{"9999-12-31T23:59:59-01:00", "0000-01-01T00:00:00+01:00"} {
		line := fmt.Sprintf(`{"type":"memory","content":"out of time","created_at":%q}`, created)
		if _, err := s.Upkeep().Import(t.Context(), strings.NewReader(byHand(line)), nil); !errors.Is(err, ErrInvalid) ||
			!strings.Contains(err.Error(), "line 2: created_at") {
			t.Errorf(`%s: got %v, want ErrInvalid and "line 2: created_at" in the error`, created, err)
		}
	}
	imported(t, s, []byte(byHand(`{"type":"memory","content":"just in time","created_at":"9999-12-31T23:59:59.999999Z"}`)),
		ImportOptions{})
	if report := mustCheck(t, s, nil); !report.OK {
		t.Errorf("got %+v, want OK", report)
	}
}

func TestAnInterruptedImportIsCompleteWhenRepeated(t *testing.T) {
	rich := openRich(t)
	o := ExportOptions{Credentials: true}
	export := exported(t, rich, o)
	lines := bytes.SplitAfter(export, []byte("\n"))
	for n := 1; n < len(lines)-1; n++ {
		if !longtest.Part(n, 1, 40) {
			continue
		}
		s := openWords(t, "", Options{Now: sealedClock})
		ctx, cancel := context.WithCancel(t.Context())
		broken := io.MultiReader(bytes.NewReader(bytes.Join(lines[:n], nil)),
			readerFunc(func([]byte) (int, error) { cancel(); return 0, context.Canceled }))
		report, err := s.Upkeep().Import(ctx, broken, nil)
		if !errors.Is(err, context.Canceled) || report.Line > n {
			t.Fatalf("broken off after line %d: %d lines, %v, want context.Canceled and line at most %v", n, report.Line, err, n)
		}
		if n%5 == 0 {
			if report := mustCheck(t, s, nil); !report.OK {
				t.Fatalf("broken off after line %d: %+v, want OK", n, report)
			}
		}
		if report := imported(t, s, export, ImportOptions{}); len(report.Conflicts) > 0 {
			t.Fatalf("after line %d: %+v; want none", n, report.Conflicts)
		}
		if again := exported(t, s, o); !bytes.Equal(again, export) {
			t.Fatalf("broken off after line %d and repeated: %s; got %v, want %v", n, lineDiff(again, export), again, export)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestExportsOfEndlesslyManyTypesAreRefused(t *testing.T) {
	lines := make([]string, transfer.MaxKinds+1)
	for i := range lines {
		lines[i] = fmt.Sprintf(`{"type":"kind-%d"}`, i)
	}
	s := openCopy(t)
	if _, err := s.Upkeep().Import(t.Context(), strings.NewReader(byHand(lines...)), nil); !errors.Is(err, ErrInvalid) ||
		!strings.Contains(err.Error(), "line 1002: type") {
		t.Errorf(`got %v, want ErrInvalid and "line 1002: type" in the error`, err)
	}
	if report := imported(t, s, []byte(byHand(lines[1:]...)), ImportOptions{}); report.Ignored != transfer.MaxKinds {
		t.Errorf("%+v; want ignored %v", report, transfer.MaxKinds)
	}
}

func TestExportOfAMemoryWhosePlaceIsLostSaysSo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lost.db")
	s := openWords(t, path, Options{})
	varied(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	withoutReferences(t, path, `UPDATE memory_revision SET partition_id = 77`)
	s = openWords(t, path, Options{})
	if _, err := s.Upkeep().Export(t.Context(), io.Discard, nil); !errors.Is(err, ErrCorrupt) ||
		!strings.Contains(err.Error(), "partition 77") {
		t.Errorf(`got %v, want ErrCorrupt and "partition 77" in the error`, err)
	}
}
