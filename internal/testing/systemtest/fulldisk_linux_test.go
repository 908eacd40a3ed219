package systemtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/internal/trash"
)

func TestOnAFullDiskMemoriesCanBeDeletedAndHealthSaysWhy(t *testing.T) {
	longtest.Only(t)
	dir := smallDisk(t, "16m")
	s := openWords(t, file{filepath.Join(dir, "store.db")}, Options{Reserve: 3 << 20})
	if err := s.Upkeep().Health(t.Context()); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for range 20 {
		ids = append(ids, mustAdd(t, s, NewMemory{Content: strings.Repeat("kettle ", 500), Tags: []string{"t"}}).ID)
	}
	ballast, err := os.Create(filepath.Join(dir, "ballast"))
	for err == nil {
		_, err = ballast.Write(make([]byte, 512))
	}
	if err := ballast.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Upkeep().Health(t.Context()); err != nil {
		t.Errorf("before anything was written: %v", err)
	}
	for err = nil; err == nil; { // the log has some free space of its own
		_, err = s.AddMemory(t.Context(), NewMemory{Content: strings.Repeat("one more ", 2000)})
	}
	if !errors.Is(err, ErrFull) {
		t.Fatalf("got %v, want ErrFull", err)
	}
	if err := s.Upkeep().Health(t.Context()); !errors.Is(err, ErrFull) ||
		!strings.Contains(err.Error(), "the disk is full") {
		t.Errorf(`Health says %v, want ErrFull and "the disk is full" in the error`, err)
	}
	for _, id := range ids {
		if err := s.DeleteMemory(t.Context(), id, nil); err != nil {
			t.Fatalf("DeleteMemory on a full disk: %v", err)
		}
	}
	if _, err := s.Upkeep().Purge(t.Context(), nil); err != nil {
		t.Errorf("Purge on a full disk: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "ballast")); err != nil {
		t.Fatal(err)
	}
	mustAdd(t, s, NewMemory{Content: "there is room again"})
}

// smallDisk mounts a file system of the given size in MiB.
func smallDisk(t *testing.T, size string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("no small disk can be made here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return dir
}

// fillDisk fills the disk until the store has no room for another memory.
func fillDisk(t *testing.T, s *Store, dir string) {
	t.Helper()
	ballast, err := os.OpenFile(filepath.Join(dir, "ballast"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	for err == nil {
		_, err = ballast.Write(make([]byte, 512))
	}
	if err := ballast.Close(); err != nil {
		t.Fatal(err)
	}
	for err = nil; err == nil; { // the log has some free space of its own
		_, err = s.AddMemory(t.Context(), NewMemory{Content: strings.Repeat("one more ", 2000), Collection: "ballast"})
	}
	if !errors.Is(err, ErrFull) {
		t.Fatalf("got %v, want ErrFull", err)
	}
}

// As many memories as one transaction deletes elsewhere would not fit into this reserve.
func TestOnAFullDiskManyMemoriesAreDeletedAndTheTrashIsEmptied(t *testing.T) {
	longtest.Only(t)
	for name, test := range map[string]struct {
		memories, words, different int
		forGood                    bool
	}{
		"into the trash":              {3 * trash.FullRows / 2, 250, 1, false},
		"for good":                    {3 * trash.FullRows / 2, 2000, 1, true},
		"long ones into the trash":    {200, 2000, 5003, false}, // each changes much of the full text
		"longest ones into the trash": {60, 20_000, 50_021, false},
	} {
		if name != "into the trash" && !longtest.All() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			dir := smallDisk(t, "160m")
			s := openWords(t, file{filepath.Join(dir, "store.db")}, Options{Reserve: 8 << 20})
			for _, collection := range []string{"box", "ballast"} {
				if _, err := s.AddCollection(t.Context(), NewCollection{Name: collection}); err != nil {
					t.Fatal(err)
				}
			}
			all := make([]NewMemory, test.memories)
			for i := range all {
				content := fmt.Appendf(nil, "kettle %d", i)
				for j := range test.words {
					content = fmt.Appendf(content, " t%d", (i*7919+j*31)%test.different)
				}
				all[i] = NewMemory{Content: string(content), Tags: []string{"t"}, Collection: "box"}
			}
			if _, err := s.AddMemories(t.Context(), all, nil); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				id := mustAdd(t, s, NewMemory{Content: strings.Repeat("kettle ", 20_000)}).ID
				if err := s.DeleteMemory(t.Context(), id, nil); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Upkeep().Health(t.Context()); err != nil {
				t.Fatal(err)
			}
			fillDisk(t, s, dir)
			if err := s.DeleteCollection(t.Context(),
				"box", &DeletionOptions{WithMemories: true, Erase: test.forGood}); err != nil {
				t.Fatalf("DeleteCollection on a full disk: %v", err)
			}
			if n, err := s.Trash().Empty(t.Context()); err != nil || n < 3 {
				t.Fatalf("Trash.Empty on a full disk: %d, %v; want at least 3", n, err)
			}
			trash, err := s.Trash().Page(t.Context(), TrashQuery{})
			if err != nil || trash.Total != 0 {
				t.Errorf("left in the trash: %+v, %v; want total 0", trash, err)
			}
			if err := os.Remove(filepath.Join(dir, "ballast")); err != nil {
				t.Fatal(err)
			}
			if err := s.Upkeep().Health(t.Context()); err != nil {
				t.Error(err)
			}
			mustAdd(t, s, NewMemory{Content: "there is room again"})
			checkConsistency(t, s)
		})
	}
}

// A memory whose past versions do not fit into the reserve is not deleted. The error says what helps, and it does.
func TestOnAFullDiskAMemoryWithALongHistoryIsDeletedForGood(t *testing.T) {
	longtest.Only(t)
	dir := smallDisk(t, fmt.Sprint(longtest.Size(64, 24), "m"))
	s := openWords(t, file{filepath.Join(dir, "store.db")}, Options{Reserve: int64(longtest.Size(6, 2)) << 20})
	if _, err := s.AddCollection(t.Context(), NewCollection{Name: "ballast"}); err != nil {
		t.Fatal(err)
	}
	id := mustAdd(t, s, NewMemory{Content: "first"}).ID
	for i := range longtest.Size(160, 54) {
		if _, err := s.UpdateMemory(t.Context(), id,
			MemoryUpdate{Content: content(strings.Repeat(fmt.Sprintf("kettle %d ", i), 8_000))}); err != nil {
			t.Fatal(err)
		}
	}
	fillDisk(t, s, dir)
	err := s.DeleteMemory(t.Context(), id, nil)
	if !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "delete the memory permanently") {
		t.Fatalf(`DeleteMemory gives %v, want ErrFull and "delete the memory permanently" in the error`, err)
	}
	if _, err := s.GetMemory(t.Context(), id); err != nil {
		t.Fatalf("after that: %v", err)
	}
	if err := s.DeleteMemory(t.Context(), id, &DeletionOptions{Erase: true}); err != nil {
		t.Fatalf("DeleteMemory gives %v", err)
	}
	if _, err := s.GetMemory(t.Context(), id); !errors.Is(err, ErrNotFound) {
		t.Errorf("when it is erased: %v, want ErrNotFound", err)
	}
}
