package anthropic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/souvenir-ai/souvenir"
	adapter "github.com/souvenir-ai/souvenir/adapters/anthropic"
)

// Two programs on one file, each with goroutines that move, create and delete directories: no file is lost, duplicated
// or separated from its directory.
func TestConcurrentCommandsKeepDirectoriesWhole(t *testing.T) {
	const workers, rounds, size = 6, 25, 4
	name := filepath.Join(t.TempDir(), "memory.db")
	store := open(t, name)
	handles := []*adapter.Memory{adapter.NewMemory(store, nil), adapter.NewMemory(open(t, name), nil)}
	for i := range size {
		must(t, handles[0], create(fmt.Sprintf("/memories/0/sub/%d", i), fmt.Sprint(i)))
	}
	moved := make([]int, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			m := handles[w%2]
			for n := range rounds {
				own := fmt.Sprintf("/memories/own-%d", w)
				for _, input := range []string{rename(fmt.Sprintf("/memories/%d", rand.IntN(5)),
					fmt.Sprintf("/memories/%d", rand.IntN(5))), create(own+"/a", "x"), create(own+"/b", ""),
					create("/memories/same", "x"), remove("/memories/same"), remove(own)} {
					_, err := m.Execute(t.Context(), json.RawMessage(input))
					expected := err == nil || strings.Contains(err.Error(), "does not exist") ||
						strings.Contains(err.Error(), "already exists") || strings.Contains(err.Error(), "inside it")
					if !expected {
						t.Errorf("round %d, %s: got %v, want no such error", n, input, err)
					}
					if err == nil && strings.Contains(input, "rename") {
						moved[w]++
					}
				}
			}
		})
	}
	wg.Wait()
	got := files(t, store, handles[0])
	directory := ""
	for p, text := range got {
		if p == "/memories/same" {
			t.Errorf("got %s, want it deleted", p)
		}
		if path.Base(p) != text {
			t.Errorf("got the text %q in %s, want %q", text, p, path.Base(p))
		}
		if directory == "" {
			directory = path.Dir(p)
		}
		if path.Dir(p) != directory {
			t.Errorf("got the directories %s and %s, want one", directory, path.Dir(p))
		}
	}
	if len(got) != size {
		t.Errorf("got the files %q, want %d", names(got), size)
	}
	if slices.Max(moved) == 0 {
		t.Errorf("got the renames %v, want some that succeed", moved)
	}
}

func TestUsersAndApplicationsHaveFilesOfTheirOwn(t *testing.T) {
	store := newStore(t)
	views := []*souvenir.Store{store, store.As(souvenir.Access{User: "anna"}), store.As(souvenir.Access{User: "ben"}),
		store.As(souvenir.Access{User: "anna", Namespace: "shop"})}
	for i, v := range views {
		must(t, adapter.NewMemory(v, nil), create("/memories/a", fmt.Sprint(i)))
	}
	for i, v := range views {
		m := adapter.NewMemory(v, nil)
		text, failed := run(t, m, view("/memories/a"))
		if want := fmt.Sprintf("     1\t%d", i); failed || !strings.HasSuffix(text, want) {
			t.Errorf("view %d: got %q, want %q at the end", i, text, want)
		}
		must(t, m, rename("/memories/a", "/memories/b"))
	}
	must(t, adapter.NewMemory(views[1], nil), remove("/memories/b"))
	for i, v := range views {
		if text, failed := run(t, adapter.NewMemory(v, nil), view("/memories/b")); failed != (i == 1) {
			t.Errorf("view %d after anna's deletion: got %q, failed %v, want %v", i, text, failed, i == 1)
		}
	}
}

func TestMembersOfAProjectShareItsFiles(t *testing.T) {
	store := newStore(t)
	anna, ben := store.As(souvenir.Access{User: "anna"}), store.As(souvenir.Access{User: "ben"})
	project := souvenir.ProjectRef{ID: "bridge"}
	of := func(v *souvenir.Store) *adapter.Memory {
		return adapter.NewMemory(v, &adapter.MemoryOptions{Project: project})
	}
	must(t, of(anna), create("/memories/plan", "piers of granite"))
	if text, failed := run(t, of(ben), view("/memories/plan")); !failed {
		t.Errorf("before he is a member: got %q, want that it does not exist", text)
	}
	if _, err := ben.SetPreferences(t.Context(), nil); err != nil { // ben exists from now on
		t.Fatal(err)
	}
	if _, err := store.AddMember(t.Context(), souvenir.NewMember{Project: souvenir.ProjectRef{ID: "anna/bridge"},
		User: "ben", Role: souvenir.MemberReader}); err != nil {
		t.Fatal(err)
	}
	if text, failed := run(t, of(ben), view("/memories/plan")); failed || !strings.Contains(text, "granite") {
		t.Errorf("as a reader: got %q, want the plan", text)
	}
	for _, input := range []string{create("/memories/b", "x"), replace("/memories/plan", "granite", "wood"),
		insert("/memories/plan", 0, "x"), remove("/memories/plan"), rename("/memories/plan", "/memories/x")} {
		if text, failed := run(t, of(ben), input); !failed {
			t.Errorf("as a reader, %s: got %q, want that it is forbidden", input, text)
		}
	}
	if _, err := store.UpdateMember(t.Context(), souvenir.ProjectRef{ID: "anna/bridge"}, "ben",
		souvenir.MemberUpdate{Role: souvenir.MemberWriter}); err != nil {
		t.Fatal(err)
	}
	limited := store.As(souvenir.Access{User: "ben", Projects: []string{"bridge"}})
	must(t, adapter.NewMemory(limited, nil), replace("/memories/plan", "granite", "oak"),
		rename("/memories/plan", "/memories/b"))
	if text, failed := run(t, of(anna), view("/memories/b")); failed || !strings.Contains(text, "piers of oak") {
		t.Errorf("after a writer's change: got %q, want piers of oak", text)
	}
	readOnly := store.As(souvenir.Access{User: "anna", ReadOnly: true})
	if text, failed := run(t, of(readOnly), view("/memories/b")); failed {
		t.Errorf("through a view for reading: got %q, want the text", text)
	}
	if text, failed := run(t, of(readOnly), remove("/memories/b")); !failed {
		t.Errorf("through a view for reading: got %q, want that it is refused", text)
	}
}

// FuzzCommands: no input makes the tool panic, or leaves a file outside /memories or one that cannot be read.
func FuzzCommands(f *testing.F) {
	for _, seed := range []string{create("/memories/a", "x"), view("/memories", 1, 2), insert("/memories/a", 1<<62, "x"),
		replace("/memories/a", "x", ""), remove("/memories/../a"), rename("/memories/a", "/memories/a/b"), `{`, `7`,
		`{"command": "view", "path": "/memories/a", "view_range": [-9223372036854775808, 9223372036854775807]}`} {
		f.Add(seed, "/memories/a/b", "text")
	}
	store, err := souvenir.Open(context.Background(), ":memory:", nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = store.Close() })
	m := adapter.NewMemory(store, nil)
	f.Fuzz(func(t *testing.T, input, path, text string) {
		for _, input := range []string{create(path, text), input, insert(path, len(text), text), replace(path, text, path)} {
			_, _ = m.Execute(t.Context(), json.RawMessage(input))
		}
		for memory, err := range store.Memories(t.Context(), souvenir.MemoryList{}) {
			if err != nil {
				t.Fatal(err)
			}
			path := memory.Metadata["path"].(string)
			_, err := m.Execute(t.Context(), json.RawMessage(view(path)))
			if err != nil || !strings.HasPrefix(path, "/memories/") {
				t.Errorf("got the file %q, %v, want one below /memories that can be read", path, err)
			}
			if err := store.DeleteMemory(t.Context(), memory.ID, &souvenir.DeletionOptions{Erase: true}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
