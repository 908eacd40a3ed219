package eino_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/adapters/eino"
)

// set sets a checkpoint.
func set(t *testing.T, c *eino.CheckPointStore, id string, value []byte) {
	t.Helper()
	if err := c.Set(t.Context(), id, value); err != nil {
		t.Fatalf("%q: %v", id, err)
	}
}

// wantCheckPoint compares a checkpoint; nil means none.
func wantCheckPoint(t *testing.T, c *eino.CheckPointStore, id string, want []byte) {
	t.Helper()
	got, found, err := c.Get(t.Context(), id)
	if err != nil || found != (want != nil) || !bytes.Equal(got, want) {
		t.Errorf("%.40q: got %.40q, %v, %v, want %.40q", id, got, found, err, want)
	}
}

// files counts the files of a store.
func files(t *testing.T, store *souvenir.Store) (n int) {
	t.Helper()
	for _, err := range store.Files(t.Context(), souvenir.FileList{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func TestIDsAndCheckpointsMayBeAnyBytes(t *testing.T) {
	store := open(t)
	c := eino.NewCheckPointStore(store)
	large := make([]byte, 3<<20)
	if _, err := rand.Read(large); err != nil {
		t.Fatal(err)
	}
	ids := []string{"", "\x00", "\x00\x00", "a", "A", " a", "a ", "a\x00", "\xff", "\xfe\xff", "检查点", "\u00e9",
		"e\u0301", "../../a", "%", "_", "a\nb", strings.Repeat("k", 10_000), strings.Repeat("k", 10_001)}
	values := [][]byte{{}, {0}, []byte("\xff\xfe"), []byte(`{"json": true}`), []byte("%PDF-1.7"), []byte("GIF89a"), large}
	for i, id := range ids {
		wantCheckPoint(t, c, id, nil)
		set(t, c, id, values[i%len(values)])
	}
	for i, id := range ids {
		wantCheckPoint(t, c, id, values[i%len(values)])
		wantCheckPoint(t, eino.NewCheckPointStore(store), id, values[i%len(values)])
		set(t, c, id, []byte("second "+id))
	}
	for _, id := range ids {
		wantCheckPoint(t, c, id, []byte("second "+id))
	}
	if n := files(t, store); n != len(ids) {
		t.Errorf("got %d files, want %d: one for each checkpoint", n, len(ids))
	}
	for _, id := range ids {
		for range 2 {
			if err := c.Delete(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		wantCheckPoint(t, c, id, nil)
	}
	if n := files(t, store); n != 0 {
		t.Errorf("got %d files, want none", n)
	}
	set(t, c, "nil", nil)
	wantCheckPoint(t, c, "nil", []byte{})
}

func TestCheckpointsSurviveTheProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "test.db")
	for round := range 3 {
		store, err := souvenir.Open(t.Context(), file, nil)
		if err != nil {
			t.Fatal(err)
		}
		c := eino.NewCheckPointStore(store)
		if round > 0 {
			wantCheckPoint(t, c, "a", []byte{byte(round - 1)})
		}
		set(t, c, "a", []byte{byte(round)})
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestUsersHaveCheckpointsOfTheirOwn(t *testing.T) {
	store := open(t)
	anna := store.As(souvenir.Access{User: "anna"})
	if _, err := anna.AddProject(t.Context(), souvenir.NewProject{ID: "p"}); err != nil {
		t.Fatal(err)
	}
	ben := eino.NewCheckPointStore(store.As(souvenir.Access{User: "ben"}))
	set(t, ben, "other", nil) // Ben's first write
	if _, err := store.AddMember(t.Context(), souvenir.NewMember{Project: souvenir.ProjectRef{ID: "anna/p"}, User: "ben",
		Role: souvenir.MemberWriter}); err != nil {
		t.Fatal(err)
	}
	annas := eino.NewCheckPointStore(anna)
	inProject := eino.NewCheckPointStore(store.As(souvenir.Access{User: "anna", Projects: []string{"p"}}))
	bensInProject := eino.NewCheckPointStore(store.As(souvenir.Access{User: "ben", Projects: []string{"anna/p"}}))
	set(t, annas, "a", []byte("Anna's"))
	set(t, inProject, "a", []byte("the project's"))
	wantCheckPoint(t, ben, "a", nil)
	set(t, ben, "a", []byte("Ben's"))
	wantCheckPoint(t, annas, "a", []byte("Anna's"))
	wantCheckPoint(t, inProject, "a", []byte("the project's"))
	wantCheckPoint(t, bensInProject, "a", []byte("the project's"))
	set(t, bensInProject, "a", []byte("Ben's in the project"))
	wantCheckPoint(t, inProject, "a", []byte("Ben's in the project"))
	if err := ben.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	wantCheckPoint(t, annas, "a", []byte("Anna's"))
	wantCheckPoint(t, inProject, "a", []byte("Ben's in the project"))
}

// textReader reads files of text.
type textReader struct{}

func (textReader) ReadDocument(_ context.Context, d souvenir.Document) (souvenir.DocumentText, error) {
	if !strings.HasPrefix(d.MIMEType, "text/") {
		return souvenir.DocumentText{}, nil
	}
	text, err := io.ReadAll(io.NewSectionReader(d.Content, 0, d.Size))
	return souvenir.DocumentText{Text: string(text)}, err
}

func TestCheckpointsAreNoMemories(t *testing.T) {
	store, err := souvenir.Open(t.Context(), ":memory:", &souvenir.Options{Documents: textReader{}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	set(t, eino.NewCheckPointStore(store), "tea", []byte("tea tea tea"))
	for isRead := false; !isRead; time.Sleep(time.Millisecond) {
		for file, err := range store.Files(t.Context(), souvenir.FileList{}) {
			if err != nil {
				t.Fatal(err)
			}
			isRead = file.Text.State != souvenir.TextWaiting
		}
	}
	got, err := store.Search(t.Context(), souvenir.Query{Text: "tea", Documents: 1})
	if err != nil || got.Total != 0 || len(got.Documents) != 0 {
		t.Errorf("got %+v, %v, want nothing", got, err)
	}
	for entry, err := range store.Trash().All(t.Context(), souvenir.TrashList{}) {
		t.Errorf("got %+v, %v in the trash, want nothing", entry, err)
	}
}

func TestManyGoroutinesSetOneCheckpoint(t *testing.T) {
	store := open(t)
	c := eino.NewCheckPointStore(store)
	var group sync.WaitGroup
	for g := range 6 {
		group.Go(func() {
			for n := range 10 {
				if err := c.Set(t.Context(), "a", bytes.Repeat([]byte{byte(g)}, 1000+n)); err != nil {
					t.Error(err)
				}
				got, found, err := c.Get(t.Context(), "a")
				if err != nil || !found || len(got) < 1000 || !bytes.Equal(got, bytes.Repeat(got[:1], len(got))) {
					t.Errorf("got %.20q, %v, %v, want one that was set", got, found, err)
				}
			}
		})
	}
	group.Wait()
	set(t, c, "a", []byte("last"))
	wantCheckPoint(t, c, "a", []byte("last"))
	if n := files(t, store); n != 1 {
		t.Errorf("got %d files, want 1", n)
	}
}

func TestCancelledCallsWithCheckpointsEnd(t *testing.T) {
	c := eino.NewCheckPointStore(open(t))
	set(t, c, "a", []byte("before"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, found, err := c.Get(ctx, "a")
	if found {
		t.Error("Get: got found, want false")
	}
	for name, err := range map[string]error{"Get": err, "Set": c.Set(ctx, "a", []byte("x")),
		"Delete": c.Delete(ctx, "a")} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want context.Canceled", name, err)
		}
	}
	wantCheckPoint(t, c, "a", []byte("before"))
}

func BenchmarkCheckPointStore(b *testing.B) {
	store, err := souvenir.Open(b.Context(), filepath.Join(b.TempDir(), "test.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	c := eino.NewCheckPointStore(store)
	for i := range 1000 {
		if err := c.Set(b.Context(), fmt.Sprint("other ", i), []byte("x")); err != nil {
			b.Fatal(err)
		}
	}
	checkPoint := make([]byte, 100<<10)
	b.Run("Set", func(b *testing.B) {
		for b.Loop() {
			if err := c.Set(b.Context(), "a", checkPoint); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Get", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := c.Get(b.Context(), "a"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
