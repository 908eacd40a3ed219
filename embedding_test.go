package souvenir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/text"
	"github.com/souvenir-ai/souvenir/internal/valid"
	"github.com/souvenir-ai/souvenir/internal/vectorform"
)

// picky fails for texts with the forbidden word and, while off, for all texts.
func picky(model string, off *atomic.Bool) Embedder {
	return EmbedderFunc(model, 2, func(_ context.Context, _ Purpose, texts []string) ([][]float32, error) {
		if off.Load() || slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(t, "forbidden") }) {
			return nil, errors.New("refused")
		}
		return slices.Repeat([][]float32{{1, 0}}, len(texts)), nil
	})
}

func TestRefusedTextsDoNotBlockOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "picky.db")
	var off atomic.Bool
	off.Store(true)
	pendingIs := func(s *Store, want int) {
		t.Helper()
		for start := time.Now(); ; time.Sleep(time.Millisecond) {
			e, err := s.Upkeep().EmbeddingStatus(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if e.Pending == want && !e.Changing {
				return
			}
			if time.Since(start) > time.Minute {
				t.Fatalf("after a minute the state is %+v, want %d pending", e, want)
			}
			s.worker.Wake()
		}
	}
	for _, model := range []string{"first", "second"} { // the second model embeds all of them again
		s, err := Open(t.Context(), path, &Options{Embedder: picky(model, &off)})
		if err != nil {
			t.Fatal(err)
		}
		if model == "first" {
			for _, content := range []string{"forbidden fruit", "an apple", "a pear"} {
				if _, err := s.AddMemory(t.Context(), NewMemory{Content: content}); err != nil {
					t.Fatal(err)
				}
			}
		}
		off.Store(false)
		pendingIs(s, 1)
		results, err := s.Search(t.Context(), Query{Text: "fruit"})
		if err != nil || results.Total != 3 || len(results.Warnings) != 1 {
			t.Errorf("%s: found %+v, %v, want no error, total 3 and 1 warning", model, results, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// narrow takes texts of at most 200 bytes.
type narrow struct{ Embedder }

func (narrow) MaxInput() int { return 200 }

func TestEmbedderNeverGetsMoreThanItTakes(t *testing.T) {
	longest := 0
	embedder := narrow{EmbedderFunc("narrow", 2, func(_ context.Context, _ Purpose, texts []string) ([][]float32, error) {
		for _, text := range texts {
			longest = max(longest, len(text))
		}
		return slices.Repeat([][]float32{{1, 0}}, len(texts)), nil
	})}
	s, err := Open(t.Context(), ":memory:", &Options{Embedder: embedder})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	long := strings.Repeat("The pear tree in the garden blossoms early. ", 100)
	if _, err := s.AddMemory(t.Context(), NewMemory{Content: long}); err != nil {
		t.Fatal(err)
	}
	results, err := s.Search(t.Context(), Query{Text: long})
	if err != nil || results.Total != 1 || len(results.Warnings) > 0 {
		t.Errorf("found %d, warned %v, %v, want no error, total 1 and no warnings", results.Total, results.Warnings, err)
	}
	if longest == 0 || longest > 200 {
		t.Errorf("the longest text has %d bytes, want 1 to 200", longest)
	}
}

func TestVectorOfAWrongSizeIsRefusedBeforeAnythingIsStored(t *testing.T) {
	var off atomic.Bool
	s, err := Open(t.Context(), ":memory:", &Options{Embedder: picky("two", &off)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for range 2 {
		_, err := s.Search(t.Context(), Query{Vector: []float32{1, 2, 3}})
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "3 dimensions") ||
			!strings.Contains(err.Error(), "have 2") {
			t.Errorf(`the error is %v, want ErrInvalid, "3 dimensions" in the error and "have 2" in the error`, err)
		}
		if _, err := s.Search(t.Context(), Query{Vector: []float32{1, 2}}); err != nil {
			t.Error(err)
		}
		if _, err := s.AddMemory(t.Context(), NewMemory{Content: "x"}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestKeepModelKeepsAnotherProgramsModel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kept.db")
	chosen := openWords(t, path, Options{Embedder: wordEmbedder("words-2")})
	addNumbered(t, chosen, 10)
	guest := openWords(t, path, Options{Embedder: Builtin(), KeepModel: true})
	if e, err := chosen.Upkeep().EmbeddingStatus(t.Context()); err != nil || e.Changing || e.Pending != 0 {
		t.Errorf("once the guest is open: got %+v and %v, want no change of the model", e, err)
	}
	if _, err := guest.AddMemory(t.Context(), NewMemory{Content: "a guest's memory"}); err != nil {
		t.Fatal(err)
	}
	found, err := guest.Search(t.Context(), Query{Text: "guest's"})
	if err != nil || len(found.Hits) == 0 {
		t.Errorf("the guest's search by words: got %v and %v, want its memory", found.Hits, err)
	}
	const warning = "has vectors of the embedding model words-2"
	if got := strings.Join(found.Warnings, "; "); !strings.Contains(got, warning) {
		t.Errorf("the guest's warnings: got %q, want %q in them", got, warning)
	}
	if e, err := guest.Upkeep().EmbeddingStatus(t.Context()); err != nil || e.Changing || e.StoredModel != "words-2" {
		t.Errorf("the guest's state: got %+v and %v, want no change, and the model words-2 of the file", e, err)
	}
	if err := guest.Upkeep().WaitEmbedded(t.Context()); !errors.Is(err, ErrConflict) ||
		!strings.Contains(err.Error(), "keeps the embedding model") {
		t.Errorf("a guest that waits for vectors: got %v, want ErrConflict, and that the store keeps its model", err)
	}
	if err := chosen.Upkeep().Reindex(t.Context(), nil); err != nil {
		t.Errorf("the program that chose the model: got %v, want that it embeds the guest's memory", err)
	}
	if e, err := chosen.Upkeep().EmbeddingStatus(t.Context()); err != nil || e.Changing || e.Pending != 0 {
		t.Errorf("afterwards: got %+v and %v, want nothing pending", e, err)
	}
	checkConsistency(t, chosen)
}

func TestKeepModelChangesAFileWithTheBuiltInModelOrNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new.db")
	for _, embedder := range []Embedder{Builtin(), wordEmbedder("words-2")} {
		s := openWords(t, path, Options{Embedder: embedder, KeepModel: true})
		addNumbered(t, s, 3)
		if err := s.Upkeep().WaitEmbedded(t.Context()); err != nil {
			t.Errorf("%s: got %v, want that the file changes to it", embedder.Model(), err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzContent(f *testing.F) {
	for _, m := range library {
		f.Add([]byte(m.Content))
	}
	for _, c := range []string{"", " ", "\n\n\n", "\x00", "\xff", "a\xc3", "\xed\xa0\x80", "\ufeffBOM",
		"# Heading\n\ntext\n\n```\ncode\n```\n", strings.Repeat("word ", 2000), strings.Repeat("語", 2000),
		strings.Repeat("e\u0301", 1000), "?!.,", "a.b.c-d_e"} {
		f.Add([]byte(c))
	}
	inMemory, onDisk := openBoth(f)
	ctx := context.Background()
	f.Fuzz(func(t *testing.T, raw []byte) {
		content := string(raw)
		added, err := inMemory.AddMemory(ctx, NewMemory{Content: content})
		if right := !valid.Blank(content) && len(content) <= MaxContent &&
			valid.Text("content", content) == nil; right != (err == nil) {
			t.Fatalf("storing %q: got %v, want no error: %v", content, err, right)
		}
		if err != nil {
			mustBeRefusal(t, err)
			return
		}
		defer func() {
			if err := inMemory.DeleteMemory(ctx, added.ID, nil); err != nil {
				t.Fatal(err)
			}
		}()
		if got, err := onDisk.GetMemory(ctx, added.ID); err != nil || got.Content != content {
			t.Fatalf("read %q, %v, want no error and content %v", got.Content, err, content)
		}
		checkPassages(t, inMemory, content)
		tried := 0
		for _, word := range strings.Fields(content) {
			if len(word) > 200 || len(text.QueryTerms(word)) == 0 {
				continue
			}
			for name, s := range map[string]*Store{"in memory": inMemory, "on disk": onDisk} {
				found, err := s.Search(ctx, Query{Text: word})
				if err != nil {
					t.Fatal(err)
				}
				if len(found.Hits) != 1 || found.Hits[0].Parts.Text <= 0 {
					t.Fatalf("%s: %q is not found by its word %q: %+v, want 1 hit and text more than 0", name, content, word,
						found.Hits)
				}
				if h := found.Hits[0]; h.Start < 0 || h.End > len(content) || h.Start > h.End {
					t.Fatalf("passage from %d to %d, want it not empty and within 0 to %d", h.Start, h.End, len(content))
				}
			}
			if tried++; tried == 3 {
				break
			}
		}
	})
}

// checkPassages checks that the only memory's passages are consecutive pieces of its content that leave out nothing but
// space.
func checkPassages(t *testing.T, s *Store, content string) {
	t.Helper()
	end := 0
	err := s.db.Read(context.Background(), func(tx db.Tx) error {
		return tx.Each(func(row db.Rows) error {
			var start, length int
			if err := row.Scan(&start, &length); err != nil {
				return err
			}
			if start < end || length <= 0 || start+length > len(content) || !utf8.ValidString(content[start:start+length]) ||
				strings.TrimSpace(content[end:start]) != "" {
				return fmt.Errorf("passage of %d bytes at %d, after one that ends at %d, of %d", length, start, end, len(content))
			}
			end = start + length
			return nil
		}, `SELECT start, length FROM passage ORDER BY id`)
	})
	if err == nil && strings.TrimSpace(content[end:]) != "" {
		err = fmt.Errorf("nothing of %q after %d is in a passage", content, end)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func FuzzVectorBlob(f *testing.F) {
	unit := vectorform.Exact(append(make([]float32, wordSize-1), 1))
	nan := bytes.Repeat([]byte{0, 0, 0xc0, 0x7f}, wordSize)
	shortForm := vectorform.Short(slices.Repeat([]float32{1, -2}, 64))
	for _, blob := range [][]byte{{}, {1}, {1, 2, 3, 4}, unit, unit[:127], append(slices.Clone(unit), 0),
		append(slices.Clone(unit), unit...), nan, bytes.Repeat([]byte{0xff, 0xff, 0x7f, 0x7f}, wordSize),
		vectorform.Exact(slices.Repeat([]float32{3}, wordSize)), bytes.Repeat([]byte{0xff}, 128), make([]byte, 128),
		bytes.Repeat([]byte{0, 0, 0x80, 0x7f}, wordSize), make([]byte, 65537), make([]byte, 1+2*wordSize),
		append([]byte{1}, make([]byte, 2*wordSize)...), append([]byte{1}, make([]byte, 534)...), shortForm} {
		f.Add(blob)
	}
	inMemory, onDisk := openBoth(f)
	damaged := mustAdd(f, inMemory, NewMemory{Content: "the damaged one"})
	whole := mustAdd(f, inMemory, NewMemory{Content: "the other one stays as it is"})
	ctx := context.Background()
	f.Fuzz(func(t *testing.T, blob []byte) {
		v, err := kernel.DecodeVector(blob)
		short := len(blob)%2 == 1 && len(blob) >= 129 && blob[0] == 2
		if (err == nil) != (len(blob)%4 == 0 || short) {
			t.Fatalf("%d bytes: %v, want no error only for a multiple of 4, and for the short form", len(blob), err)
		}
		if err == nil && !short && blob != nil && !bytes.Equal(vectorform.Exact(v), blob) {
			t.Fatalf("%x becomes %x, want %.200q", blob, vectorform.Exact(v), blob)
		}
		err = inMemory.db.Write(ctx, func(tx db.Tx) error {
			_, err := tx.Exec(`UPDATE passage SET vector = ? WHERE memory_id = (SELECT id FROM memory WHERE uid = ?)`, blob,
				damaged.ID)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for name, s := range map[string]*Store{"in memory": inMemory, "on disk": onDisk} {
			found, err := s.Search(ctx, Query{Text: "other one"})
			switch {
			case err != nil:
				if !errors.Is(err, ErrCorrupt) {
					t.Fatalf("%s: %v, want ErrCorrupt", name, err)
				}
			case !slices.ContainsFunc(found.Hits, func(h Hit) bool { return h.ID == whole.ID }):
				t.Fatalf("%s: the whole one is not found: %+v", name, found.Hits)
			default:
				for _, h := range found.Hits {
					if !(h.Score >= 0 && h.Score <= 1.001) || !(math.Abs(h.Parts.Vector) <= 1.001) { // which is false for NaN
						t.Fatalf("%s: %q scores %v %+v, want both within 1", name, h.Content, h.Score, h.Parts)
					}
				}
			}
			if _, err := s.GetMemory(ctx, damaged.ID); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := inMemory.UpdateMemory(ctx, damaged.ID,
			MemoryUpdate{ShownMetadata: map[string]any{"tags": []string{fmt.Sprint("t", len(blob))}}}); err != nil &&
			!errors.Is(err, ErrCorrupt) {
			t.Fatalf("moving the passage gives %v, want no error or ErrCorrupt", err)
		}
	})
}
