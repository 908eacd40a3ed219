package souvenir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

func FuzzVectorBlob(f *testing.F) {
	unit := kernel.EncodeVector(append(make([]float32, wordSize-1), 1))
	nan := bytes.Repeat([]byte{0, 0, 0xc0, 0x7f}, wordSize)
	for _, blob := range [][]byte{{}, {1}, {1, 2, 3, 4}, unit, unit[:127], append(slices.Clone(unit), 0),
		append(slices.Clone(unit), unit...), nan, bytes.Repeat([]byte{0xff, 0xff, 0x7f, 0x7f}, wordSize),
		kernel.EncodeVector(slices.Repeat([]float32{3}, wordSize)), bytes.Repeat([]byte{0xff}, 128), make([]byte, 128),
		bytes.Repeat([]byte{0, 0, 0x80, 0x7f}, wordSize), make([]byte, 65537)} {
		f.Add(blob)
	}
	inMemory, onDisk := openBoth(f)
	damaged := mustAdd(f, inMemory, NewMemory{Content: "the damaged one"})
	whole := mustAdd(f, inMemory, NewMemory{Content: "the other one stays as it is"})
	ctx := context.Background()
	f.Fuzz(func(t *testing.T, blob []byte) {
		v, err := kernel.DecodeVector(blob)
		if (err == nil) != (len(blob)%4 == 0) {
			t.Fatalf("%d bytes: %v, want no error only for a multiple of 4", len(blob), err)
		}
		if err == nil && blob != nil && !bytes.Equal(kernel.EncodeVector(v), blob) {
			t.Fatalf("%x becomes %x, want %.200q", blob, kernel.EncodeVector(v), blob)
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
					if !(h.Score >= 0 && h.Score <= 1.001) || !(math.Abs(h.Parts.Vector) <= 1.001) { // which NaN does not fulfil
						t.Fatalf("%s: %q scores %v %+v", name, h.Content, h.Score, h.Parts)
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
