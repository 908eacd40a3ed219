package souvenir

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// redactFiles replaces the secret in all texts of a file.
func redactFiles(_ context.Context, _ Operation, f *FileTexts) error {
	for _, text := range []*string{&f.Filename, &f.Description, &f.Category} {
		*text = strings.ReplaceAll(*text, secret, redacted)
	}
	for i, tag := range f.Tags {
		f.Tags[i] = strings.ReplaceAll(tag, secret, redacted)
	}
	if f.Content != nil {
		f.Content = []byte(strings.ReplaceAll(string(f.Content), secret, redacted))
	}
	return nil
}

func TestHooksRewriteFiles(t *testing.T) {
	s := openHooks(t, Hooks{BeforeFile: redactFiles})
	const said = "the word is " + secret + secret
	for kind, c := range map[string]struct{ content, want string }{
		"a text":               {said, strings.ReplaceAll(said, secret, redacted)},
		"a text of a batch":    {strings.Repeat("x", batchSize-1-len(said)) + said, ""},
		"a text that is empty": {"", ""},
		"bytes":                {"\x00" + said, "\x00" + said},
		"PDF":                  {"%PDF-1.7\n" + said, "%PDF-1.7\n" + said},
	} {
		if kind == "a text of a batch" {
			c.want = strings.ReplaceAll(c.content, secret, redacted)
		}
		declared := ""
		if kind == "PDF" {
			declared = "application/pdf"
		}
		f, err := s.AddFile(t.Context(), NewFile{Filename: secret + ".txt", Description: said, Category: secret,
			MIMEType: declared, Tags: []string{secret}, Size: int64(len(c.content))}, strings.NewReader(c.content))
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		r, err := s.OpenFile(t.Context(), f.ID)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		got, err := io.ReadAll(r)
		if err != nil || string(got) != c.want || f.Size != int64(len(c.want)) {
			t.Errorf("%s: got %d bytes of %d, %v, ending in %.30q, want %.30q", kind, len(got), f.Size, err,
				got[max(0, len(got)-30):], c.want[max(0, len(c.want)-30):])
		}
		if all := f.Filename + f.Description + f.Category + strings.Join(f.Tags, ""); strings.Contains(all, secret) ||
			f.Filename != redacted+".txt" {
			t.Errorf("%s: got %s, want no secret", kind, all)
		}
	}
	if r, err := s.Upkeep().Check(t.Context(), nil); err != nil || len(r.Findings) > 0 {
		t.Errorf("got %+v, %v, want a sound store", r, err)
	}
}

func TestHooksSeeThatATextIsTooLongForThem(t *testing.T) {
	long := strings.Repeat("word\n", batchSize/5+1)
	var seen []FileTexts
	s := openHooks(t, Hooks{BeforeFile: func(_ context.Context, _ Operation, f *FileTexts) error {
		seen = append(seen, *f)
		f.Filename = "kept.txt"
		return nil
	}})
	f, err := s.AddFile(t.Context(), NewFile{}, strings.NewReader(long))
	if err != nil || f.Filename != "kept.txt" || f.Size != int64(len(long)) {
		t.Errorf("got %+v, %v, want kept.txt", f, err)
	}
	if _, err := s.AddFile(t.Context(), NewFile{}, strings.NewReader("\x00"+long)); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 2 || !seen[0].LongText || seen[0].Content != nil || seen[1].LongText || seen[1].Content != nil {
		t.Errorf("got %+v, want a long text, and other bytes", seen)
	}
}

func TestHooksReadOtherFilesBeforeTheyAreVisible(t *testing.T) {
	var got []byte
	var loses bool
	var s *Store
	s = openHooks(t, Hooks{BeforeFile: func(ctx context.Context, _ Operation, f *FileTexts) (err error) {
		if p, err := s.FilePage(ctx, FileQuery{}); err != nil || p.Total > 0 {
			t.Errorf("got %+v, %v, want no visible file", p, err)
		}
		if loses {
			if err := s.write(ctx, func(tx db.Tx, _ viewer) error {
				_, err := tx.Exec(`UPDATE file_chunk SET data = substr(data, 2)`)
				return err
			}); err != nil {
				t.Error(err)
			}
		}
		got, err = io.ReadAll(io.NewSectionReader(f.Other.Content, 0, f.Other.Size))
		if loses {
			err = nil // the hook takes no notice
		}
		return err
	}})
	for _, size := range []int{0, batchSize - 1, batchSize, 2*batchSize + kernel.ChunkSize + 7} {
		content := append([]byte{0}, bytes.Repeat([]byte("abc"), size/3+1)...)[:size+1]
		f, err := s.AddFile(t.Context(), NewFile{}, bytes.NewReader(content))
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d bytes: got %d bytes, %v, want all of them", len(content), len(got), err)
		}
		if err := s.DeleteFile(t.Context(), f.ID, &DeletionOptions{Erase: true}); err != nil {
			t.Error(err)
		}
	}
	loses = true
	_, err := s.AddFile(t.Context(), NewFile{}, bytes.NewReader(make([]byte, 2*batchSize)))
	if !errors.Is(err, ErrInternal) {
		t.Errorf("with a chunk that cannot be read: got %v, want ErrInternal", err)
	}
	if p, err := s.FilePage(t.Context(), FileQuery{}); err != nil || p.Total != 0 {
		t.Errorf("got %+v, %v, want no file", p, err)
	}
}

func TestHooksRewriteAndRefuseChangesOfFiles(t *testing.T) {
	s := openHooks(t, Hooks{BeforeFile: redactFiles})
	f, err := s.AddFile(t.Context(), NewFile{Filename: "a.txt", Description: "kept", Tags: []string{"kept"}},
		strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	given := FileUpdate{Filename: new(secret), Category: new(secret)}
	changed, err := s.UpdateFile(t.Context(), f.ID, given)
	if err != nil || changed.Filename != redacted || changed.Category != redacted || changed.Description != "kept" ||
		len(changed.Tags) != 1 || *given.Filename != secret {
		t.Errorf("got %+v, %v, want the name and the category without the secret, and the rest as it was", changed, err)
	}
	if changed, err = s.UpdateFile(t.Context(), f.ID, FileUpdate{Tags: []string{}}); err != nil || len(changed.Tags) > 0 {
		t.Errorf("got %+v, %v, want no tags", changed, err)
	}
	s.options.Hooks = []Hooks{{BeforeFile: func(_ context.Context, o Operation, _ *FileTexts) error {
		return errors.New("no " + o.Method)
	}}}
	if _, err = s.UpdateFile(t.Context(), f.ID, FileUpdate{Filename: new("b")}); !errors.Is(err, ErrForbidden) {
		t.Errorf("got %v, want ErrForbidden", err)
	}
	if _, err = s.AddFile(t.Context(), NewFile{}, strings.NewReader(strings.Repeat("\x00", batchSize+1))); err == nil ||
		err.Error() != "no AddFile" {
		t.Errorf("got %v, want the error of the hook", err)
	}
	if p, err := s.FilePage(t.Context(), FileQuery{}); err != nil || p.Total != 1 || p.Files[0].Filename != redacted {
		t.Errorf("got %+v, %v, want the first file unchanged", p, err)
	}
}

// Memories of a handmade file are new content, those of an export are restored.
func TestHooksRewriteMemoriesOfHandmadeFiles(t *testing.T) {
	refuse := errors.New("no kettles")
	s := openHooks(t, Hooks{BeforeStore: func(_ context.Context, o Operation, m *NewMemory) error {
		if o.Method == "Import" && strings.Contains(m.Content, "kettle") {
			return refuse
		}
		m.Content = strings.ReplaceAll(m.Content, "secret", "[masked]")
		if m.Metadata["pin"] != nil {
			m.Metadata["pin"] = "[masked]"
		}
		return nil
	}})
	file := byHand(`{"type":"memory","content":"a secret","tags":["a"],"metadata":{"pin":7}}`,
		`{"type":"memory","content":"no news"}`)
	for _, want := range []ImportCount{{Added: 2}, {Unchanged: 2}} {
		report, err := s.Upkeep().Import(t.Context(), strings.NewReader(file), nil)
		if err != nil || report.Rewritten != 1 || report.Counts["memory"] != want {
			t.Fatalf("got %+v and %v, want %+v and 1 rewritten", report, err, want)
		}
	}
	for m, err := range s.Memories(t.Context(), MemoryList{}) {
		if err != nil || m.Content != "no news" && (m.Content != "a [masked]" || m.Metadata["pin"] != "[masked]") {
			t.Errorf("got %q with %v, %v, want the text and the metadata of the hook", m.Content, m.Metadata, err)
		}
	}
	kettle := byHand(`{"type":"memory","content":"before"}`, `{"type":"memory","content":"a kettle"}`)
	_, err := s.Upkeep().Import(t.Context(), strings.NewReader(kettle), nil)
	if !errors.Is(err, refuse) || !errors.Is(err, ErrForbidden) || !strings.Contains(err.Error(), "line 3") ||
		slices.Contains(contentsOf(t, s), "before") {
		t.Errorf("got %v and %q, want nothing stored, and the hook's error with the line", err, contentsOf(t, s))
	}

	plain := openCopy(t)
	var export bytes.Buffer
	if _, err := plain.AddMemory(t.Context(), NewMemory{Content: "the secret kettle"}); err != nil {
		t.Fatal(err)
	}
	if _, err := plain.Upkeep().Export(t.Context(), &export, nil); err != nil {
		t.Fatal(err)
	}
	report, err := s.Upkeep().Import(t.Context(), &export, nil)
	if err != nil || report.Rewritten != 0 || !slices.Contains(contentsOf(t, s), "the secret kettle") {
		t.Errorf("got %+v, %v and %q, want the export as it is", report, err, contentsOf(t, s))
	}
}
