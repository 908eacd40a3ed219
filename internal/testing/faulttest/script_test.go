//go:build linux && !souvenir_cgo

package faulttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/souvenir-ai/souvenir"
)

// step is a call of the script, or several, each atomic.
type step struct {
	name string
	do   func(r *runner) error
	// parts: the call has several transactions, whose results become visible one by one. After a crash, any state between
	// may be there.
	// crash may be any state between.
	parts bool
	// random: the call makes values that differ each time.
	random bool
}

// runner runs steps on a store.
type runner struct {
	ctx   context.Context
	store *Store
	path  string
	step  int // the number of the current step
	ids   int // made in the current step
}

const storeName = "store.db"

// keys are the master key of the stores and that of their user keys. By default they have none.
var keys struct{ file, users MasterKey }

// encrypted encrypts the stores of a test.
func encrypted(t *testing.T) {
	keys.file = GenerateMasterKey()
	t.Cleanup(func() { keys.file = MasterKey{} })
}

// sealed gives the stores of a test user keys.
func sealed(t *testing.T) {
	keys.users = GenerateMasterKey()
	t.Cleanup(func() { keys.users = MasterKey{} })
}

func (r *runner) options() *Options {
	return &Options{
		Embedder: words, Now: r.now, MasterKey: keys.file, UserKeys: UserKeys{MasterKey: keys.users},
		NewID: func() string { r.ids++; return fmt.Sprintf("id-%02d-%d", r.step, r.ids) },
	}
}

func (r *runner) now() time.Time {
	return time.Date(2026, 11, 26, 8, r.step, 0, 0, time.UTC)
}

// open opens the store of a folder.
func (r *runner) open(folder string) (err error) {
	r.path = filepath.Join(folder, storeName)
	r.store, err = Open(r.ctx, r.path, r.options())
	return err
}

// isOpen reports whether the store is open; a step may have closed it.
func (r *runner) isOpen() bool {
	if r.store == nil {
		return false
	}
	_, err := r.store.Upkeep().Stats(r.ctx)
	return !errors.Is(err, ErrClosed)
}

func (r *runner) close() error {
	if !r.isOpen() {
		return nil
	}
	return r.store.Close()
}

// words is a small model: each word counts in one dimension.
var words = EmbedderFunc("words-1", 8, func(ctx context.Context, _ Purpose, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		vectors[i] = make([]float32, 8)
		for _, word := range strings.Fields(text) {
			h := fnv.New32a()
			h.Write([]byte(word))
			vectors[i][h.Sum32()%8]++
		}
	}
	return vectors, ctx.Err()
})

// id returns the id of the n-th item made by a step.
func id(step, n int) string { return fmt.Sprintf("id-%02d-%d", step, n) }

func pattern(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i*i>>8 ^ i)
	}
	return b
}

// trashed returns the id of the trash entry with a title.
func (r *runner) trashed(title string) (string, error) {
	for e, err := range r.store.Trash().All(r.ctx, TrashList{}) {
		if err != nil || strings.HasPrefix(e.Title, title) {
			return e.ID, err
		}
	}
	return "", fmt.Errorf("there is no %q in the trash", title)
}

func ref[T any](v T) *T { return &v }

// script does everything in a store that writes. The numbers in ids are those of the steps.
var script = []step{
	{name: "add a memory", do: func(r *runner) error {
		_, err := r.store.AddMemory(r.ctx, NewMemory{Content: "The kettle is blue.", Tags: []string{"tea"},
			ProjectName: "house", ShownMetadata: map[string]any{"n": 1}})
		return err
	}},
	{name: "add many memories", do: func(r *runner) error {
		many := make([]NewMemory, 30)
		for i := range many {
			text := strings.Repeat(fmt.Sprintf("w%d ", i), 5*i)
			many[i] = NewMemory{Content: fmt.Sprintf("memory %d of many: %s", i, text), ProjectName: fmt.Sprint("p", i%3),
				Key: fmt.Sprint("key ", i), Tags: []string{fmt.Sprint("t", i%4)}}
		}
		_, err := r.store.AddMemories(r.ctx, many, nil)
		return err
	}},
	{name: "update a memory", do: func(r *runner) error {
		_, err := r.store.UpdateMemory(r.ctx, id(0, 2), MemoryUpdate{Content: ref("The kettle is green now."),
			ShownMetadata: map[string]any{"n": 2}})
		return err
	}},
	{name: "put a memory", do: func(r *runner) error {
		_, err := r.store.PutMemory(r.ctx, NewMemory{Content: "another text", ProjectName: "p1", Key: "key 4"})
		return err
	}},
	{name: "add a collection", do: func(r *runner) error {
		_, err := r.store.AddCollection(r.ctx, NewCollection{Name: "own", OwnVectors: true, VectorSize: 3})
		return err
	}},
	{name: "add a vector", do: func(r *runner) error {
		_, err := r.store.AddMemory(r.ctx, NewMemory{Collection: "own", Content: "north", Embedding: []float32{0, 1, 0}})
		return err
	}},
	{name: "set a to-do list", do: func(r *runner) error {
		_, err := r.store.SetTodo(r.ctx, NewTodo{ProjectName: "house", Content: "## Constitution\n\n## Spec\n\nTea.\n\n" +
			"## Plan\n\n## Tasks\n\n- [ ] [T1] boil water\n- [ ] [T2] find cups\n\n## Gaps\n"})
		return err
	}},
	{name: "complete a task", do: func(r *runner) error {
		_, err := r.store.CompleteTask(r.ctx, TaskRef{ProjectName: "house", TaskID: "T2"})
		return err
	}},
	{name: "set a rule", do: func(r *runner) error {
		_, err := r.store.SetRule(r.ctx, NewRule{ProjectName: "house", Type: RuleDo, Content: "Warm the pot first."})
		return err
	}},
	{name: "transaction", do: func(r *runner) error {
		return r.store.Transaction(r.ctx, func(ctx context.Context) error {
			_, err := r.store.AddMemory(ctx, NewMemory{Content: "first half", ProjectName: "both"})
			if err == nil {
				_, err = r.store.AddMemory(ctx, NewMemory{Content: "second half", ProjectName: "both"})
			}
			if err == nil {
				_, err = r.store.UpdateMemory(ctx, id(0, 2), MemoryUpdate{Content: ref("The kettle is red for good.")})
			}
			return err
		})
	}},
	{name: "add a file", do: func(r *runner) error {
		_, err := r.store.AddFile(r.ctx, NewFile{Filename: "large.bin", ProjectName: "house"},
			bytes.NewReader(pattern(600_000)))
		return err
	}},
	{name: "add a linked file", do: func(r *runner) error {
		_, err := r.store.AddFile(r.ctx, NewFile{Filename: "small.txt", MemoryID: id(0, 2), Tags: []string{"paper"}},
			strings.NewReader("on paper"))
		return err
	}},
	{name: "update a file", do: func(r *runner) error {
		_, err := r.store.UpdateFile(r.ctx, id(10, 1), FileUpdate{Description: ref("a pattern")})
		return err
	}},
	{name: "delete a memory", do: func(r *runner) error { return r.store.DeleteMemory(r.ctx, id(0, 2), nil) }},
	{name: "delete a file", do: func(r *runner) error { return r.store.DeleteFile(r.ctx, id(10, 1), nil) }},
	{name: "restore a memory", do: func(r *runner) error {
		_, err := r.store.Trash().Restore(r.ctx, id(0, 2))
		return err
	}},
	{name: "update many memories", do: func(r *runner) error {
		_, err := r.store.UpdateMemories(r.ctx, MemoriesUpdate{MemoryList: MemoryList{Tags: []string{"t1"}},
			Change: MemoryUpdate{Tags: &[]string{"t1", "seen"}}})
		return err
	}},
	{name: "store the index", do: func(r *runner) error { return r.store.Upkeep().StoreIndex(r.ctx) }},
	{name: "delete many memories", do: func(r *runner) error {
		_, err := r.store.DeleteMemories(r.ctx, MemoriesDeletion{MemoryList: MemoryList{Tags: []string{"t2"}}})
		return err
	}},
	{name: "erase a memory", do: func(r *runner) error {
		return r.store.DeleteMemory(r.ctx, id(1, 12), &DeletionOptions{Erase: true})
	}, parts: true},
	{name: "store the index again", do: func(r *runner) error { return r.store.Upkeep().StoreIndex(r.ctx) }},
	{name: "import", do: func(r *runner) error {
		var lines strings.Builder
		lines.WriteString(`{"souvenir":"export","version":1}` + "\n")
		for i := range 20 {
			fmt.Fprintf(&lines, `{"type":"memory","id":"imported-%d","content":"imported number %d","tags":["old"]}`+"\n",
				i, i)
		}
		_, err := r.store.Upkeep().Import(r.ctx, strings.NewReader(lines.String()), nil)
		return err
	}, parts: true}, // on a slow machine it lets other writers in
	{name: "backup", do: func(r *runner) error {
		path := filepath.Join(filepath.Dir(filepath.Dir(r.path)), filepath.Base(filepath.Dir(r.path))+"-backup.db")
		_ = os.Remove(path)
		err := r.store.Upkeep().Backup(r.ctx, path, nil)
		if _, there := os.Stat(path); (there == nil) != (err == nil) {
			err = errors.Join(err, fmt.Errorf("%w: the file of the backup: %w", errHalf, there))
		}
		return err
	}},
	{name: "delete a project", do: func(r *runner) error {
		return r.store.DeleteProject(r.ctx, ProjectRef{Name: "p1"}, &DeletionOptions{WithMemories: true})
	}},
	{name: "restore a project", do: func(r *runner) error {
		entry, err := r.trashed("p1")
		if err == nil {
			_, err = r.store.Trash().Restore(r.ctx, entry)
		}
		return err
	}},
	{name: "reindex", do: func(r *runner) error { return r.store.Upkeep().Reindex(r.ctx, nil) }},
	{name: "purge past versions", do: func(r *runner) error {
		_, err := r.store.Upkeep().Purge(r.ctx, &PurgeOptions{KeepRevisions: 1})
		return err
	}, parts: true},
	{name: "compact", do: func(r *runner) error { return r.store.Upkeep().Compact(r.ctx) }},
	{name: "check and repair", do: func(r *runner) error {
		_, err := r.store.Upkeep().Check(r.ctx, &CheckOptions{Repair: true})
		return err
	}},
	{name: "empty the trash", do: func(r *runner) error {
		_, err := r.store.Trash().Empty(r.ctx)
		return err
	}, parts: true},
	{name: "a user with a token", do: func(r *runner) error {
		u, err := r.store.Accounts().AddUser(r.ctx, NewUser{Name: "ann", Password: "nine blue kettles"})
		if err == nil {
			_, err = r.store.As(Access{User: u.ID}).Accounts().AddToken(r.ctx, NewToken{Name: "laptop"})
		}
		return err
	}, parts: true, random: true},
	{name: "a memory of a new user", do: func(r *runner) error {
		_, err := r.store.As(Access{User: "bob"}).AddMemory(r.ctx, NewMemory{Content: "of bob alone", ProjectName: "shed"})
		return err
	}},
	{name: "a file of the user", do: func(r *runner) error {
		_, err := r.store.As(Access{User: "bob"}).AddFile(r.ctx, NewFile{Filename: "spade.txt"},
			strings.NewReader("in the shed"))
		return err
	}},
	{name: "delete the user", do: func(r *runner) error {
		return r.store.Accounts().DeleteUser(r.ctx, "bob", &DeletionOptions{WithMemories: true})
	}, parts: true},
	{name: "close and open", do: func(r *runner) error {
		if err := r.store.Close(); err != nil {
			return err
		}
		return r.open(filepath.Dir(r.path))
	}},
	{name: "a last memory", do: func(r *runner) error {
		_, err := r.store.AddMemory(r.ctx, NewMemory{Content: "the last of all"})
		return err
	}},
}

// errHalf reports something half done.
var errHalf = errors.New("half there")

// madeID matches an id that the script made. A repeated call makes other ids.
var madeID = regexp.MustCompile(`\bid-(\d\d)-\d+\b`)

// numbered renumbers the ids of each step by their order in a state.
func numbered(held string) string {
	seen, made := map[string]string{}, map[string]int{}
	return madeID.ReplaceAllStringFunc(held, func(id string) string {
		if seen[id] == "" {
			step := madeID.FindStringSubmatch(id)[1]
			made[step]++
			seen[id] = fmt.Sprintf("id %s.%d", step, made[step])
		}
		return seen[id]
	})
}

// state returns everything that a store holds, except what it can rebuild: vectors, indexes, counts.
func state(tb testing.TB, s *Store) (string, error) {
	tb.Helper()
	var out bytes.Buffer
	_, err := s.Upkeep().Export(tb.Context(), &out, &ExportOptions{Credentials: true, WithoutVectors: true})
	if err != nil {
		return "", err
	}
	lines := bytes.SplitAfter(out.Bytes(), []byte("\n"))
	held := string(bytes.Join(lines[1:len(lines)-2], nil)) // the first line has the time, the last a hash
	for e, err := range s.Trash().All(tb.Context(), TrashList{}) {
		if err != nil {
			return "", err
		}
		held += fmt.Sprintf("trash: %s %q %d %d %s\n", e.Kind, e.Title, e.Memories, e.Size, e.DeletedAt)
	}
	return numbered(held), nil
}
