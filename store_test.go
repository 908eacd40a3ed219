package souvenir

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

func TestConfiguration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := Open(t.Context(), path,
		&Options{MaxFile: -1, FileQuota: 7, KeepActivity: time.Hour, MaxActivity: 9, KeepTrash: 3 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := s.Upkeep().Configuration(t.Context())
	if err != nil || c.Path != path || c.ReadOnly || c.Engine == "" || c.Model != s.embedder.Model() || c.Dimensions < 1 ||
		c.IndexMemory != defaultIndexMemory || c.MaxFile != kernel.LargestFile || c.FileQuota != 7 ||
		c.KeepActivity != time.Hour ||
		c.MaxActivity != 9 || c.KeepTrash != 3*time.Hour {
		t.Errorf("got %+v, %v; want the options as they were given", c, err)
	}
	// A relative path becomes an absolute one.
	t.Chdir(filepath.Dir(path))
	reader, err := Open(t.Context(), "store.db", &Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if c, err := reader.Upkeep().Configuration(t.Context()); err != nil || filepath.Base(c.Path) != "store.db" ||
		!filepath.IsAbs(c.Path) || !c.ReadOnly || c.KeepActivity != defaultKeepActivity {
		t.Errorf("got %+v, %v; want an absolute path, read-only, and the default activity", c, err)
	}
	memory, err := Open(t.Context(), ":memory:", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	if c, err := memory.Upkeep().Configuration(t.Context()); err != nil || c.Path != ":memory:" {
		t.Errorf("%+v %v, want path \":memory:\"", c, err)
	}
	if _, err := s.As(Access{User: "anna"}).Upkeep().Configuration(t.Context()); !errors.Is(err, ErrForbidden) {
		t.Errorf("a view gets %v, want ErrForbidden", err)
	}
}

// A snapshot shows the state of one moment, through every view, whatever is written meanwhile.
func TestAnAddressIsNoPath(t *testing.T) {
	s, err := Open(t.Context(), "Engine://anna:hunter2@db/x", nil)
	if err == nil {
		_ = s.Close()
	}
	const want = "path is an address, engine://..., and not a file; open the store with the package of its engine"
	if !errors.Is(err, ErrInvalid) || err.Error() != want {
		t.Errorf("Open with an address: got %v, want %s", err, want)
	}
}

func TestASnapshotIsTheStateOfOneMoment(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "snapshot.db"), Options{})
	ann := s.As(Access{User: "ann"})
	first := mustAdd(t, ann, NewMemory{Content: "kettle", ProjectID: "p"})
	var after context.Context
	err := s.Snapshot(t.Context(), func(ctx context.Context) error {
		after = ctx
		if _, err := ann.GetMemory(ctx, first.ID); err != nil {
			return err
		}
		mustAdd(t, ann, NewMemory{Content: "kettle again", ProjectID: "p"})
		if err := ann.DeleteMemory(t.Context(), first.ID, nil); err != nil {
			return err
		}
		if m, err := ann.GetMemory(ctx, first.ID); err != nil || m.Content != "kettle" {
			t.Errorf("the memory deleted since is %v, %v; want it", m, err)
		}
		n := 0
		for _, err := range ann.Memories(ctx, MemoryList{}) {
			if n++; err != nil {
				return err
			}
		}
		if n != 1 {
			t.Errorf("the snapshot lists %d memories; want 1", n)
		}
		found, err := ann.Search(ctx, Query{Text: "kettle"})
		if err != nil || len(found.Hits) != 1 || found.Hits[0].ID != first.ID {
			t.Errorf("the snapshot finds %v, %v; want the first memory", found.Hits, err)
		}
		if o, err := ann.Insights().Overview(ctx, OverviewQuery{}); err != nil || o.Memories != 1 {
			t.Errorf("the snapshot's overview has %d memories, %v; want 1", o.Memories, err)
		}
		return ann.Snapshot(ctx, func(inner context.Context) error { // nested in this one
			_, err := ann.GetMemory(inner, first.ID)
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ann.GetMemory(after, first.ID); !errors.Is(err, ErrClosed) {
		t.Errorf("reading after the end gives %v; want ErrClosed", err)
	}
	if _, err := ann.GetMemory(t.Context(), first.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("after the snapshot the deleted memory gives %v; want ErrNotFound", err)
	}
}

func TestASnapshotRefusesWrites(t *testing.T) {
	for _, path := range []string{":memory:", filepath.Join(t.TempDir(), "snapshot.db")} {
		s := openWords(t, path, Options{})
		failed := errors.New("failed")
		err := s.Snapshot(t.Context(), func(ctx context.Context) error {
			if _, err := s.AddMemory(ctx, NewMemory{Content: "x"}); !errors.Is(err, ErrReadOnly) {
				t.Errorf("AddMemory in a snapshot gives %v; want ErrReadOnly", err)
			}
			if _, err := s.Accounts().AddUser(ctx, NewUser{Name: "ann", Password: "right password"}); !errors.Is(err,
				ErrReadOnly) {
				t.Errorf("AddUser in a snapshot gives %v; want ErrReadOnly", err)
			}
			return failed
		})
		if !errors.Is(err, failed) {
			t.Errorf("the error of fn comes back as %v, want %v", err, failed)
		}
		if _, err := s.AddMemory(t.Context(), NewMemory{Content: "x"}); err != nil {
			t.Errorf("AddMemory after a snapshot: %v", err)
		}
	}
}

// cancelling is where calls are cancelled.
type cancelling struct {
	path     string
	s, other *Store // on the same file
	id       string // of a memory
	many     []NewMemory
	waiting  chan struct{} // receives when the embedder of s blocks
}

// locked calls a function while another process, as far as SQLite can tell, is in a write.
func (c cancelling) locked(t *testing.T, call func() error) error {
	var result error
	over := errors.New("undone")
	err := c.other.db.Write(context.Background(), func(tx db.Tx) error {
		if _, err := tx.Exec(`UPDATE setting SET value = value`); err != nil {
			return err
		}
		result = call()
		return over
	})
	if !errors.Is(err, over) {
		t.Fatalf("got %v, want %v", err, over)
	}
	return result
}

func soon() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 30*time.Millisecond)
}

var cancelledCalls = []struct {
	name string
	call func(t *testing.T, c cancelling) error
	want error
}{
	{"add behind another's lock", func(t *testing.T, c cancelling) error {
		ctx, cancel := soon()
		defer cancel()
		return c.locked(t, func() error { _, err := c.s.AddMemory(ctx, NewMemory{Content: "x"}); return err })
	}, context.DeadlineExceeded},
	{"update behind another's lock", func(t *testing.T, c cancelling) error {
		ctx, cancel := soon()
		defer cancel()
		return c.locked(t, func() error {
			_, err := c.s.UpdateMemory(ctx, c.id, MemoryUpdate{Content: content("x")})
			return err
		})
	}, context.DeadlineExceeded},
	{"delete behind another's lock", func(t *testing.T, c cancelling) error {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		time.AfterFunc(20*time.Millisecond, cancel)
		return c.locked(t, func() error { return c.s.DeleteMemory(ctx, c.id, nil) })
	}, context.Canceled},
	{"open behind another's lock", func(t *testing.T, c cancelling) error {
		ctx, cancel := soon()
		defer cancel()
		return c.locked(t, func() error { // with a new model, there is something to write
			opened, err := Open(ctx, c.path, &Options{Embedder: wordEmbedder("words-2")})
			if err == nil {
				opened.Close()
			}
			return err
		})
	}, context.DeadlineExceeded},
	{"a long AddMemories, embedding", func(_ *testing.T, c cancelling) error {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		_, err := c.s.AddMemories(ctx, c.many, &BatchOptions{Progress: func(stage string, done, _ int) {
			if stage == "embed" && done > 500 {
				cancel()
			}
		}})
		return err
	}, context.Canceled},
	{"a long AddMemories, storing", func(_ *testing.T, c cancelling) error {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		_, err := c.s.AddMemories(ctx, c.many, &BatchOptions{Progress: func(stage string, done, _ int) {
			if stage == "store" && done < len(c.many) {
				cancel()
			}
		}})
		return err
	}, context.Canceled},
	{"a search whose text is being embedded", func(_ *testing.T, c cancelling) error {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() { <-c.waiting; cancel() }()
		_, err := c.s.Search(ctx, Query{Text: "block this"})
		return err
	}, context.Canceled},
	{"an add whose content is being embedded", func(_ *testing.T, c cancelling) error {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() { <-c.waiting; cancel() }()
		_, err := c.s.AddMemory(ctx, NewMemory{Content: "block this"})
		return err
	}, context.Canceled},
	{"an update whose content is being embedded", func(_ *testing.T, c cancelling) error {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() { <-c.waiting; cancel() }()
		_, err := c.s.UpdateMemory(ctx, c.id, MemoryUpdate{Content: content("block this")})
		return err
	}, context.Canceled},
	{"a listing between two pages", func(_ *testing.T, c cancelling) error {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		for _, err := range c.s.Memories(ctx, MemoryList{}) {
			if err != nil {
				return err
			}
			cancel()
		}
		return nil
	}, context.Canceled},
	{"searches on disk, one after the other", func(_ *testing.T, c cancelling) error {
		ctx, cancel := soon()
		defer cancel()
		for {
			if _, err := c.s.Search(ctx, Query{Text: "apple pear plum stored before"}); err != nil {
				return err
			}
		}
	}, context.DeadlineExceeded},
}

func TestCancelledCallsEndWithTheContextsErrorAndLeaveNothing(t *testing.T) {
	longtest.Only(t)
	path := filepath.Join(t.TempDir(), "cancel.db")
	waiting := make(chan struct{}, 1)
	s := openWords(t, path, Options{Embedder: blocked(waiting), IndexMemory: -1})
	other := openWords(t, path, Options{IndexMemory: -1}) // so that it stores no segments meanwhile
	many := make([]NewMemory, 1500)
	for i := range many {
		many[i] = NewMemory{Content: fmt.Sprintf("stored %d before: apple pear plum w%d", i, i)}
	}
	if _, err := s.AddMemories(t.Context(), many, nil); err != nil {
		t.Fatal(err)
	}
	id := mustAdd(t, s, NewMemory{Content: "to be changed"}).ID
	before := rowsOf(t, s)
	where := cancelling{path: path, s: s, other: other, id: id, many: many, waiting: waiting}
	for _, c := range cancelledCalls {
		t.Run(c.name, func(t *testing.T) {
			began := time.Now()
			if err := c.call(t, where); !errors.Is(err, c.want) {
				t.Errorf("error is %v, want %v", err, c.want)
			}
			// It should stop at once. Waiting for the lock would take twice as long.
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("it took %v, want at most %v", took, 15*time.Second)
			}
			if rowsOf(t, s) != before {
				t.Error("a cancelled call left something behind, want no change")
			}
		})
	}
	mustAdd(t, s, NewMemory{Content: "after all of it"})
	checkConsistency(t, s)
}

func TestCloseWhileOthersWork(t *testing.T) {
	longtest.Only(t)
	before := runtime.NumGoroutine()
	for _, path := range []string{filepath.Join(t.TempDir(), "close.db"), ":memory:"} {
		s, err := Open(t.Context(), path, &Options{Embedder: wordEmbedder("words-1")})
		if err != nil {
			t.Fatal(err)
		}
		var stored sync.Map
		var group sync.WaitGroup
		started := make(chan struct{}, 16)
		for g := range 16 {
			group.Go(func() {
				defer func() {
					if r := recover(); r != nil {
						t.Errorf("panic: %v, want nil", r)
					}
				}()
				for i := 0; ; i++ {
					m, err := s.AddMemory(context.Background(), NewMemory{Content: fmt.Sprint("writer ", g, " number ", i)})
					if err == nil {
						stored.Store(m.ID, true)
						_, err = s.Search(context.Background(), Query{Text: "number writer"})
					}
					if err == nil && i%4 == 0 {
						for _, err = range s.Memories(context.Background(), MemoryList{}) {
							break
						}
					}
					if err != nil {
						if !errors.Is(err, ErrClosed) {
							t.Errorf("error is %v, want ErrClosed", err)
						}
						return
					}
					if i == 2 {
						started <- struct{}{}
					}
				}
			})
		}
		for range 16 {
			<-started
		}
		var closers sync.WaitGroup
		for range 3 { // more calls of Close change nothing
			closers.Go(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		closers.Wait()
		group.Wait()
		if path == ":memory:" {
			continue
		}
		again := openWords(t, path, Options{})
		got := idsOf(t, again)
		stored.Range(func(id, _ any) bool {
			if got[id.(string)] == "" {
				t.Errorf("memory %s was answered and is not there, want it stored", id)
			}
			return true
		})
		checkConsistency(t, again)
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<16)
			t.Fatalf("%d goroutines before, %d after, want it before the deadline:\n%s", before, runtime.NumGoroutine(),
				stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// TestStoresHoldNoGenericTypes finds generic types of the module, and sync.Map, in the fields of Store, at any depth
// but not behind interfaces: each package that uses Store would compile their methods again. The index has one, for its
// inner loops, without methods.
func TestStoresHoldNoGenericTypes(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var look func(t reflect.Type, path string)
	look = func(of reflect.Type, path string) {
		if seen[of] {
			return
		}
		seen[of] = true
		own := strings.HasPrefix(of.PkgPath(), "github.com/souvenir-ai/souvenir") && strings.Contains(of.Name(), "[") &&
			!strings.HasPrefix(of.Name(), "blocks[")
		if own || of == reflect.TypeFor[sync.Map]() {
			t.Errorf("%s is a %s, want it behind an interface, or not generic", path, of)
		}
		switch of.Kind() {
		case reflect.Struct:
			for i := range of.NumField() {
				look(of.Field(i).Type, path+"."+of.Field(i).Name)
			}
		case reflect.Map:
			look(of.Key(), path+"[key]")
			look(of.Elem(), path+"[]")
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Chan:
			look(of.Elem(), path)
		}
	}
	look(reflect.TypeFor[Store](), "Store")
	if len(seen) < 100 {
		t.Errorf("got %d types, want at least 100", len(seen))
	}
}
