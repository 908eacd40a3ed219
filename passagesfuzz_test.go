package souvenir

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/text"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

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
			if err := inMemory.DeleteMemory(ctx, added.ID); err != nil {
				t.Fatal(err)
			}
		}()
		if got, err := onDisk.GetMemory(ctx, added.ID); err != nil || got.Content != content {
			t.Fatalf("stored %q, read %q, %v, want no error and content %v", content, got.Content, err, content)
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
					t.Fatalf("passage from %d to %d of %d, want start at least 0, end at most %v and start at most %v", h.Start, h.End,
						len(content), len(content), h.End)
				}
			}
			if tried++; tried == 3 {
				break
			}
		}
	})
}

// checkPassages sees that the only memory's passages are pieces of its content, in order, that leave nothing out but
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
