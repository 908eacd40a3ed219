package systemtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/internal/testing/storetest"
)

// The texts of files, which let searches find them.

// wordsReader reads every file as text. It panics for *.panic and fails for *.bad.
type wordsReader struct{}

func (wordsReader) ReadDocument(_ context.Context, d Document) (DocumentText, error) {
	switch {
	case strings.HasSuffix(d.Filename, ".panic"):
		panic("made to fail")
	case strings.HasSuffix(d.Filename, ".bad"):
		return DocumentText{}, errors.New("it is broken")
	case strings.HasSuffix(d.Filename, ".png"):
		return DocumentText{Reason: "pictures are not read"}, nil
	}
	data, err := io.ReadAll(io.NewSectionReader(d.Content, 0, d.Size))
	return DocumentText{Text: string(data), Places: []DocumentPlace{{Start: 0, Name: "page 1"}}}, err
}

// reading is a store that reads documents.
type reading struct {
	*testing.T
	in    database
	store *Store
}

func newReading(t *testing.T, empty database) *reading {
	r := &reading{T: t, in: empty.copied(t)}
	r.store = r.open(Options{Documents: wordsReader{}})
	return r
}

func (r *reading) open(o Options) *Store {
	r.Helper()
	o.Embedder = storetest.Words{}
	store, err := r.in.open(o)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = store.Close() })
	know(r, store, r.in)
	return store
}

// read adds a file and waits until its text is read.
func (r *reading) read(view *Store, f NewFile, content string) File {
	r.Helper()
	return r.wait(view, mustAddFile(r, view, f, content).ID)
}

func (r *reading) wait(view *Store, id string) File {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
	defer cancel()
	f, err := view.WaitIndexed(ctx, id)
	if err != nil {
		r.Fatal(err)
	}
	return f
}

// await waits until a file is read, without making the worker look for work, as wait does. By itself, it looks every
// 30 seconds.
func (r *reading) await(view *Store, id string) File {
	r.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		f, err := view.GetFile(r.Context(), id)
		switch {
		case err != nil:
			r.Fatal(err)
		case f.Text.State != TextWaiting:
			return f
		case time.Now().After(deadline):
			r.Fatalf("got a file that still waits to be read, %+v, want it read at once", f)
		}
	}
}

// wantFound fails the test unless a search for a word in a project finds exactly these files.
func (r *reading) wantFound(view *Store, project ProjectRef, want ...string) {
	r.Helper()
	found, err := view.Search(r.Context(), Query{Text: "zebra", ProjectID: project.ID, Documents: MaxDocuments})
	if err != nil {
		r.Fatal(err)
	}
	var names []string
	for _, d := range found.Documents {
		names = append(names, d.Filename)
		if !strings.Contains(d.Text, "zebra") || d.Place != "page 1" {
			r.Errorf("got the passage %q at %q, want the one with the word, on page 1", d.Text, d.Place)
		}
	}
	slices.Sort(names)
	slices.Sort(want)
	if !slices.Equal(names, want) {
		r.Errorf("got the files %q, want %q", names, want)
	}
	for _, h := range found.Hits {
		if strings.Contains(h.Content, "zebra") {
			r.Errorf("got the memory %+v, want none: texts of files are none", h)
		}
	}
}

// wantSound fails the test unless a check finds nothing.
func (r *reading) wantSound() {
	r.Helper()
	report, err := r.store.Upkeep().Check(r.Context(), nil)
	if err != nil || !report.OK {
		r.Errorf("got %+v and %v, want nothing", report.Findings, err)
	}
}

func TestDocuments(t *testing.T) {
	onEachEngine(t, func(t *testing.T, empty database) {
		tests := map[string]func(*reading){
			"only those who see a file find it":            documentsOfOthers,
			"a text goes where its file goes":              documentsMove,
			"what cannot be read says why, and harms none": documentsUnread,
			"texts are no memories":                        documentsAreNoMemories,
			"files from before are read":                   documentsFromBefore,
			"an import has files read":                     documentsImported,
			"a check finds and repairs what is astray":     documentsRepaired,
		}
		for _, name := range longtest.Keys(tests, 1, 7) {
			t.Run(name, func(t *testing.T) {
				r := newReading(t, empty)
				tests[name](r)
				r.wantSound()
			})
		}
	})
}

func documentsOfOthers(r *reading) {
	ann, bob, eve := r.store.As(Access{User: "ann"}), r.store.As(Access{User: "bob"}), r.store.As(Access{User: "eve"})
	p := ProjectRef{ID: "p"}
	r.read(ann, NewFile{Filename: "own.txt"}, "a zebra of ann's")
	shared := r.read(ann, NewFile{Filename: "shared.txt", ProjectID: "p"}, "a zebra of the project's")
	r.read(bob, NewFile{Filename: "bobs.png"}, "nothing of the kind") // bob exists from now on
	if _, err := r.store.AddMember(r.Context(), NewMember{Project: ProjectRef{ID: "ann/p"}, User: "bob",
		Role: MemberWriter}); err != nil {
		r.Fatal(err)
	}
	r.read(bob, NewFile{Filename: "of-bob.txt", ProjectID: "ann/p"}, "bob has put zebra here")
	r.wantFound(ann, p, "of-bob.txt", "shared.txt")
	r.wantFound(bob, ProjectRef{}, "of-bob.txt", "shared.txt")
	r.wantFound(eve, ProjectRef{})
	r.wantFound(r.store.As(Access{User: "ann", Projects: []string{"p"}}), ProjectRef{}, "of-bob.txt", "shared.txt")
	r.wantFound(r.store.As(Access{User: "ann", Projects: []string{"other"}}), ProjectRef{})
	if err := ann.DeleteMember(r.Context(), p, "bob"); err != nil {
		r.Fatal(err)
	}
	r.wantFound(bob, ProjectRef{})
	if _, err := eve.WaitIndexed(r.Context(), shared.ID); !errors.Is(err, ErrNotFound) {
		r.Errorf("WaitIndexed of another's file: got %v, want %v", err, ErrNotFound)
	}
}

func documentsMove(r *reading) {
	ann, bob := r.store.As(Access{User: "ann"}), r.store.As(Access{User: "bob"})
	ctx := r.Context()
	f := r.read(ann, NewFile{Filename: "a.txt"}, "a zebra")
	p, q := ProjectRef{ID: "p"}, ProjectRef{ID: "q"}
	if _, err := ann.UpdateFile(ctx, f.ID, FileUpdate{Project: &p}); err != nil {
		r.Fatal(err)
	}
	r.wait(ann, f.ID)
	r.wantFound(ann, p, "a.txt")
	m, err := ann.AddMemory(ctx, NewMemory{Content: "linked", ProjectID: "q"})
	if err != nil {
		r.Fatal(err)
	}
	if _, err := ann.UpdateFile(ctx, f.ID, FileUpdate{MemoryID: &m.ID}); err != nil {
		r.Fatal(err)
	}
	r.wait(ann, f.ID)
	r.wantFound(ann, p)
	r.wantFound(ann, q, "a.txt")
	id := "p"
	if _, err := ann.UpdateMemory(ctx, m.ID, MemoryUpdate{ProjectID: &id}); err != nil {
		r.Fatal(err)
	}
	r.wantFound(ann, q)
	r.await(ann, f.ID)
	r.wantFound(ann, p, "a.txt")
	for _, to := range []string{"q", "p"} {
		change := MemoriesUpdate{All: true, Change: MemoryUpdate{ProjectID: &to}}
		if _, err := ann.UpdateMemories(ctx, change); err != nil {
			r.Fatal(err)
		}
		r.await(ann, f.ID)
		r.wantFound(ann, ProjectRef{ID: to}, "a.txt")
	}
	if err := ann.DeleteMemory(ctx, m.ID, nil); err != nil {
		r.Fatal(err)
	}
	if got := r.wait(ann, f.ID); got.MemoryID != "" || got.ProjectID != "p" {
		r.Errorf("got the file %+v, want it in the project, without the memory", got)
	}
	r.wantFound(ann, p, "a.txt")
	if err := ann.DeleteProject(ctx, p, &DeletionOptions{WithMemories: true}); err != nil {
		r.Fatal(err)
	}
	r.await(ann, f.ID)
	r.wantFound(ann, ProjectRef{}, "a.txt")
	if err := ann.DeleteFile(ctx, f.ID, nil); err != nil {
		r.Fatal(err)
	}
	r.wantFound(ann, ProjectRef{})
	if _, err := ann.Trash().Restore(ctx, f.ID); err != nil {
		r.Fatal(err)
	}
	r.await(ann, f.ID)
	r.wantFound(ann, ProjectRef{}, "a.txt")
	if err := ann.DeleteFile(ctx, f.ID, &DeletionOptions{Erase: true}); err != nil {
		r.Fatal(err)
	}
	r.wantFound(ann, ProjectRef{})
	r.read(bob, NewFile{Filename: "b.txt"}, "a zebra")
	if err := r.store.Accounts().DeleteUser(ctx, "bob", &DeletionOptions{WithMemories: true}); err != nil {
		r.Fatal(err)
	}
	r.wantFound(bob, ProjectRef{})
}

func documentsUnread(r *reading) {
	for _, c := range []struct{ name, content, reason string }{
		{"a.panic", "zebra", "it could not be read: it is broken"},
		{"a.bad", "zebra", "it could not be read: it is broken"},
		{"a.png", "zebra", "pictures are not read"},
		{"blank.txt", " \n\t", "it has no text"},
		{"empty.txt", "", "it has no text"},
	} {
		if got := r.read(r.store, NewFile{Filename: c.name}, c.content).Text; got.Reason != c.reason ||
			got.State == TextIndexed || got.Passages != 0 {
			r.Errorf("%s: got %+v, want the reason %q", c.name, got, c.reason)
		}
	}
	got := r.read(r.store, NewFile{Filename: "a.txt"}, "a\x00 \xff zebra\r\n").Text
	if got != (FileText{State: TextIndexed, Passages: 1, Characters: 10}) {
		r.Errorf("got %+v, want the text without what is no text", got)
	}
	r.wantFound(r.store, ProjectRef{}, "a.txt")
	long := r.read(r.store, NewFile{Filename: "long.txt"}, strings.Repeat("0123456789 abcde\n", 100_000)).Text
	if long.State != TextIndexed || !long.Truncated || long.Characters > 1<<20 {
		r.Errorf("got %+v, want a text that is cut", long)
	}
}

func documentsAreNoMemories(r *reading) {
	ctx, ann := r.Context(), r.store.As(Access{User: "ann"})
	r.read(ann, NewFile{Filename: "a.txt"}, "a zebra")
	r.read(ann, NewFile{Filename: "b.txt", ProjectID: "p"}, "a zebra")
	collections, err := ann.Collections(ctx)
	if err != nil || len(collections) > 0 {
		r.Errorf("got the collections %+v and %v, want none", collections, err)
	}
	page, err := ann.Search(ctx, Query{})
	if err != nil || page.Total > 0 {
		r.Errorf("got %+v and %v, want no memory", page, err)
	}
	projects, err := ann.Projects(ctx)
	if err != nil || len(projects) != 1 || projects[0].MemoryCount != 0 {
		r.Errorf("got the projects %+v and %v, want one without memories", projects, err)
	}
	usage, err := ann.Insights().Usage(ctx)
	if err != nil || usage.Memories > 0 || usage.Bytes > 0 {
		r.Errorf("got the usage %+v and %v, want no memories", usage, err)
	}
	stats, err := r.store.Upkeep().Stats(ctx)
	if err != nil || stats.Memories > 0 || stats.Collections > 0 {
		r.Errorf("got %+v and %v, want no memories and collections", stats, err)
	}
	cat := r.store.As(Access{User: "cat"})
	c := r.read(cat, NewFile{Filename: "c.txt"}, "a zebra")
	if err := cat.DeleteFile(ctx, c.ID, &DeletionOptions{Erase: true}); err != nil {
		r.Fatal(err)
	}
	for u, err := range r.store.Accounts().Users(ctx) {
		if err != nil || u.ID == "cat" {
			r.Errorf("got the user %+v and %v, want no user without data", u, err)
		}
	}
	if _, err := ann.GetCollection(ctx, ""); err == nil {
		r.Error("GetCollection of the empty name: got no error, want one")
	}
	for _, q := range []Query{{Text: "zebra", Collections: []string{"default"}}, {Text: "zebra", Tags: []string{"x"}},
		{Text: "zebra", Filter: Filter{"state": "open"}}, {Text: "zebra", AsOf: time.Now()}, {}} {
		q.Documents = 5
		if len(q.Collections) > 0 {
			if _, err := ann.AddMemory(ctx, NewMemory{Content: "something"}); err != nil {
				r.Fatal(err)
			}
		}
		if found, err := ann.Search(ctx, q); err != nil || len(found.Documents) > 0 {
			r.Errorf("%+v: got %+v and %v, want no documents", q, found.Documents, err)
		}
	}
}

func documentsFromBefore(r *reading) {
	if err := r.store.Close(); err != nil {
		r.Fatal(err)
	}
	r.store = r.open(Options{})
	var files []string
	for i := range 20 {
		view := r.store.As(Access{User: fmt.Sprint("user", i%3)})
		f := mustAddFile(r, view, NewFile{Filename: fmt.Sprint(i, ".txt")}, "a zebra")
		if got, err := view.WaitIndexed(r.Context(), f.ID); err != nil || got.Text.State != TextWaiting {
			r.Errorf("without a reader: got %+v and %v, want it to wait", got.Text, err)
		}
		files = append(files, f.ID)
	}
	if err := r.store.Close(); err != nil {
		r.Fatal(err)
	}
	r.store = r.open(Options{Documents: wordsReader{}})
	for i, id := range files {
		if got := r.wait(r.store.As(Access{User: fmt.Sprint("user", i%3)}), id); got.Text.State != TextIndexed {
			r.Errorf("got %+v, want it to be read", got.Text)
		}
	}
	if err := r.store.Upkeep().Reindex(r.Context(), nil); err != nil {
		r.Fatal(err)
	}
	r.wantFound(r.store.As(Access{User: "user2"}), ProjectRef{}, "17.txt", "14.txt", "11.txt", "8.txt", "5.txt", "2.txt")
}

func documentsImported(r *reading) {
	f := r.read(r.store, NewFile{Filename: "a.txt"}, "a zebra")
	var export strings.Builder
	if _, err := r.store.Upkeep().Export(r.Context(), &export, nil); err != nil {
		r.Fatal(err)
	}
	if strings.Contains(export.String(), `"a zebra"`) {
		r.Errorf("got %s, want no text of the file", export.String())
	}
	if err := r.store.DeleteFile(r.Context(), f.ID, &DeletionOptions{Erase: true}); err != nil {
		r.Fatal(err)
	}
	if _, err := r.store.Upkeep().Import(r.Context(), strings.NewReader(export.String()), nil); err != nil {
		r.Fatal(err)
	}
	r.wait(r.store, f.ID)
	r.wantFound(r.store, ProjectRef{}, "a.txt")
}

func documentsRepaired(r *reading) {
	kept := r.read(r.store, NewFile{Filename: "kept.txt"}, "a zebra")
	lost := r.read(r.store, NewFile{Filename: "lost.txt"}, "a zebra")
	if err := r.store.Close(); err != nil {
		r.Fatal(err)
	}
	past, err := r.in.engine(false)
	if err != nil {
		r.Fatal(err)
	}
	err = past.Write(r.Context(), func(tx db.Tx) error {
		_, err := tx.Exec(`UPDATE file SET text_id = NULL WHERE filename = 'lost.txt'`)
		return err
	})
	if err := errors.Join(err, past.Close()); err != nil {
		r.Fatal(err)
	}
	r.store = r.open(Options{})
	report, err := r.store.Upkeep().Check(r.Context(), nil)
	if err != nil || len(report.Findings) != 2 {
		r.Fatalf("got %+v and %v, want a text of no file, and a file without its text", report.Findings, err)
	}
	if _, err := r.store.Upkeep().Check(r.Context(), &CheckOptions{Repair: true}); err != nil {
		r.Fatal(err)
	}
	if err := r.store.Close(); err != nil {
		r.Fatal(err)
	}
	r.store = r.open(Options{Documents: wordsReader{}})
	r.wait(r.store, kept.ID)
	r.wait(r.store, lost.ID)
	r.wantFound(r.store, ProjectRef{}, "lost.txt", "kept.txt")
}
