package systemtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// hiddenText returns the id of the memory with the text of a file.
func (r *reading) hiddenText(f File) (id string) {
	r.Helper()
	read(r, r.store, func(tx db.Tx) error {
		return tx.QueryRow(`SELECT t.uid FROM memory t JOIN file f ON f.text_id = t.id WHERE f.uid = ?`, f.ID).Scan(&id)
	})
	return id
}

// refuseText tests that no call takes the id of a file's text, not even beside those of a memory and another file.
func (r reading) refuseText(ann *Store, id, memory, file string) {
	r.Helper()
	ctx := r.Context()
	content, to := "changed", "q"
	related := []string{id}
	for name, call := range map[string]func() error{
		"GetMemory":       func() error { _, err := ann.GetMemory(ctx, id); return err },
		"MemoryStatus":    func() error { _, err := ann.Insights().MemoryStatus(ctx, id); return err },
		"UpdateMemory":    func() error { _, err := ann.UpdateMemory(ctx, id, MemoryUpdate{Content: &content}); return err },
		"a move":          func() error { _, err := ann.UpdateMemory(ctx, id, MemoryUpdate{ProjectID: &to}); return err },
		"DeleteMemory":    func() error { return ann.DeleteMemory(ctx, id, nil) },
		"erasing it":      func() error { return ann.DeleteMemory(ctx, id, &DeletionOptions{Erase: true}) },
		"Revisions":       func() error { _, err := ann.Revisions(ctx, id); return err },
		"RestoreRevision": func() error { _, err := ann.RestoreRevision(ctx, id, 1); return err },
		"RelatedMemories": func() error { _, err := ann.RelatedMemories(ctx, id, 2); return err },
		"a link of a memory": func() error {
			_, err := ann.UpdateMemory(ctx, memory, MemoryUpdate{Related: &related})
			return err
		},
		"a new memory's link": func() error {
			_, err := ann.AddMemory(ctx, NewMemory{Content: "linked", Related: related})
			return err
		},
		"superseding": func() error {
			_, err := ann.AddMemory(ctx, NewMemory{Content: "newer", Supersedes: id})
			return err
		},
		"a file for it": func() error {
			_, err := ann.AddFile(ctx, NewFile{Filename: "c.txt", MemoryID: id}, strings.NewReader("x"))
			return err
		},
		"a file linked to it": func() error {
			_, err := ann.UpdateFile(ctx, file, FileUpdate{MemoryID: &id})
			return err
		},
		"Restore":        func() error { _, err := ann.Trash().Restore(ctx, id); return err },
		"the collection": func() error { return ann.DeleteCollection(ctx, "", nil) },
		"a rename to no name": func() error {
			_, err := ann.UpdateCollection(ctx, DefaultCollection, CollectionUpdate{Name: new(string)})
			return err
		},
		"a collection of no name": func() error { _, err := ann.AddCollection(ctx, NewCollection{}); return err },
	} {
		if err := call(); err == nil || !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrInvalid) {
			r.Errorf("%s: got %v, want it unknown", name, err)
		}
	}
}

// hideText tests that no call returns a file's text or its id.
func (r reading) hideText(ann *Store, id, memory string) {
	r.Helper()
	ctx := r.Context()
	for name, call := range map[string]func() (any, error){
		"Graph":           func() (any, error) { return ann.Insights().Graph(ctx, GraphQuery{Similar: -1}) },
		"duplicates":      func() (any, error) { return ann.Insights().Graph(ctx, GraphQuery{Duplicates: 0.1}) },
		"Map":             func() (any, error) { return ann.Insights().Map(ctx, MapQuery{}) },
		"Overview":        func() (any, error) { return ann.Insights().Overview(ctx, OverviewQuery{Days: 3}) },
		"Owners":          func() (any, error) { return ann.Insights().Owners(ctx) },
		"Tags":            func() (any, error) { return ann.Insights().Tags(ctx) },
		"Modules":         func() (any, error) { return ann.Insights().Modules(ctx, ProjectRef{ID: "p"}) },
		"GetContext":      func() (any, error) { return ann.GetContext(ctx, ContextQuery{Query: "zebra", ProjectID: "p"}) },
		"RelatedMemories": func() (any, error) { return ann.RelatedMemories(ctx, memory, 2) },
		"an explanation":  func() (any, error) { return ann.Search(ctx, Query{Text: "zebra", Explain: true}) },
		"GetMainMemory":   func() (any, error) { return ann.GetMainMemory(ctx, ProjectRef{ID: "p"}) },
		"ActivityPage":    func() (any, error) { return ann.Insights().ActivityPage(ctx, ActivityQuery{}) },
		"Rules":           func() (any, error) { return ann.Rules(ctx, ProjectRef{ID: "p"}) },
		"the trash":       func() (any, error) { return ann.Trash().Page(ctx, TrashQuery{}) },
		"an export": func() (any, error) {
			var b strings.Builder
			_, err := ann.Upkeep().Export(ctx, &b, nil)
			return b.String(), err
		},
	} {
		got, err := call()
		if err != nil && !errors.Is(err, ErrForbidden) && !errors.Is(err, ErrNotFound) {
			r.Errorf("%s: got %v, want no error", name, err)
		}
		text, err := json.Marshal(got)
		if err != nil {
			r.Error(name, err)
		}
		if strings.Contains(string(text), id) || strings.Contains(string(text), "zebra") {
			r.Errorf("%s: got %s, want none of the text", name, text)
		}
	}
}

// No call returns or shows the text of a file by its id, even if the caller knows the id.
func TestTextsOfFilesAreOutOfReach(t *testing.T) {
	onEachEngine(t, func(t *testing.T, empty database) {
		r := newReading(t, empty)
		ctx, ann := r.Context(), r.store.As(Access{User: "ann"})
		m, err := ann.AddMemory(ctx, NewMemory{Content: "a memory in the project", ProjectID: "p"})
		if err != nil {
			t.Fatal(err)
		}
		f := r.read(ann, NewFile{Filename: "a.txt", ProjectID: "p"}, "a zebra in the project")
		other := r.read(ann, NewFile{Filename: "b.txt"}, "a zebra in the project")
		id := r.hiddenText(f)
		r.refuseText(ann, id, m.ID, other.ID)
		r.hideText(ann, id, m.ID)
		line := fmt.Sprintf(`{"souvenir":"export","version":1}`+"\n"+`{"type":"memory","id":%q,"owner":"ann",`+
			`"collection_name":"default","content":"taken","created_at":"2026-01-01T00:00:00Z",`+
			`"updated_at":"2026-01-01T00:00:00Z"}`+"\n", id)
		rep, err := r.store.Upkeep().Import(ctx, strings.NewReader(line),
			&ImportOptions{OnConflict: ConflictReplace})
		if err != nil || rep.Counts["memory"].Conflicts != 1 {
			t.Errorf("an import that names the text: got %+v and %v, want a conflict", rep, err)
		}
		r.wantSound()
		r.wantFound(ann, ProjectRef{ID: "p"}, "a.txt")
	})
}

// If the embedder is another program, texts of files get their vectors in the background.
func TestWaitEmbeddedWaitsForTextsOfFiles(t *testing.T) {
	onEachEngine(t, func(t *testing.T, empty database) {
		r := newReading(t, empty)
		ann := r.store.As(Access{User: "ann"})
		for i := range longtest.Size(20, 4) {
			r.read(ann, NewFile{Filename: fmt.Sprint(i, ".txt")}, strings.Repeat("a zebra and other words\n", 200))
			if err := ann.Upkeep().WaitEmbedded(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := count(t, r.store, `SELECT count(*) FROM passage WHERE vector IS NULL`); n > 0 {
				t.Fatalf("got %d passages without a vector, want none", n)
			}
		}
		status, err := r.store.As(Access{User: "bob"}).Upkeep().EmbeddingStatus(t.Context())
		if err != nil || status.Passages > 0 {
			t.Errorf("another user: got %+v and %v, want no passages", status, err)
		}
	})
}
