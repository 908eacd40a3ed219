package souvenir

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestOnAFullDiskMemoriesCanBeDeletedAndHealthSaysWhy(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("no small disk can be made here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	s := openWords(t, filepath.Join(dir, "store.db"), Options{Reserve: 3 << 20})
	if err := s.Health(t.Context()); err != nil {
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
	if err := s.Health(t.Context()); err != nil {
		t.Errorf("before anything was written: %v", err)
	}
	for err = nil; err == nil; { // the log has some room of its own
		_, err = s.AddMemory(t.Context(), NewMemory{Content: strings.Repeat("one more ", 2000)})
	}
	if !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	if err := s.Health(t.Context()); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("Health says %v", err)
	}
	for _, id := range ids {
		if err := s.DeleteMemory(t.Context(), id); err != nil {
			t.Fatalf("DeleteMemory on a full disk: %v", err)
		}
	}
	if _, err := s.Purge(t.Context(), nil); err != nil {
		t.Errorf("Purge on a full disk: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "ballast")); err != nil {
		t.Fatal(err)
	}
	mustAdd(t, s, NewMemory{Content: "there is room again"})
}
