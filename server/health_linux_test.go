package server_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

func TestOnAFullDiskHealthIsDegraded(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("no small disk can be made here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	store, err := souvenir.Open(t.Context(), filepath.Join(dir, "store.db"),
		&souvenir.Options{Reserve: 1 << 20, IndexMemory: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	at := httptest.NewServer(server.New(store, &server.Options{}))
	t.Cleanup(at.Close)
	health := func(parts ...string) {
		t.Helper()
		answer, err := http.Get(at.URL + "/health") //nolint:noctx // a test
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%d, %v; want %v", answer.StatusCode, err, http.StatusOK)
		}
		for _, part := range parts {
			if !strings.Contains(string(body), part) {
				t.Errorf("/health says %s, want %s in it", body, part)
			}
		}
		if strings.Contains(string(body), dir) {
			t.Errorf("/health reveals the path of the store: %s, want no %q in the body", body, dir)
		}
	}
	health(`"status":"ok"`)
	ballast, err := os.Create(filepath.Join(dir, "ballast"))
	for err == nil {
		_, err = ballast.Write(make([]byte, 512))
	}
	if err := ballast.Close(); err != nil {
		t.Fatal(err)
	}
	for err = nil; err == nil; {
		_, err = store.AddMemory(t.Context(), souvenir.NewMemory{Content: strings.Repeat("one more ", 2000)})
	}
	if !errors.Is(err, souvenir.ErrFull) {
		t.Fatalf("got %v, want souvenir.ErrFull", err)
	}
	health(`"status":"degraded"`, "the disk is full")
}
