package systemtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/postgres"
)

// smallTablespace makes a tablespace on a disk of its own, in the server of the tests, and returns the folder of that
// disk and its address for new tables. The server must be on this machine.
func smallTablespace(t *testing.T, size string) (folder, address string) {
	t.Helper()
	server := pgtest.Server(t)
	pgtest.NotOnCitus(t, "the tablespace is to be on each worker")
	data := pgtest.Query(t, server, `SHOW data_directory`)[0]
	owner, err := os.Stat(data)
	if os.Geteuid() != 0 || err != nil {
		t.Skip("not root, or the server is on another machine")
	}
	folder = t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", folder).CombinedOutput(); err != nil {
		t.Skipf("no mount: %v %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", folder).Run() })
	inside := filepath.Join(folder, "tables")
	ids, ok := owner.Sys().(*syscall.Stat_t)
	if err := os.Mkdir(inside, 0o700); err != nil || !ok {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chown(inside, int(ids.Uid), int(ids.Gid)), os.Chmod(folder, 0o755),
		os.Chmod(filepath.Dir(folder), 0o755)); err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(filepath.Dir(folder)) // which is new
	pgtest.Query(t, server, fmt.Sprintf(`CREATE TABLESPACE %q LOCATION '%s'`, name, inside))
	t.Cleanup(func() { pgtest.Query(t, server, fmt.Sprintf(`DROP TABLESPACE %q`, name)) })
	u, err := url.Parse(pgtest.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("default_tablespace", name)
	u.RawQuery = query.Encode()
	return folder, u.String()
}

// On a full disk of PostgreSQL, writes are ErrFull with nothing stored, reads go on, and writes go on with room.
func TestOnAFullDiskOfPostgreSQLNothingIsLost(t *testing.T) {
	longtest.Only(t)
	folder, address := smallTablespace(t, "24m")
	spare := filepath.Join(folder, "spare")
	if err := os.WriteFile(spare, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := postgres.Open(t.Context(), address, &Options{Embedder: wordEmbedder("words-1")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var answered []string
	add := func() error {
		stored, err := s.AddMemory(t.Context(), NewMemory{Content: strings.Repeat("The kettle is blue. ", 50)})
		if err == nil {
			answered = append(answered, stored.ID)
		}
		return err
	}
	for range 20 {
		if err := add(); err != nil {
			t.Fatal(err)
		}
	}
	for random := rand.NewChaCha8([32]byte{1}); err == nil; { // which the server cannot compress
		_, err = s.AddFile(t.Context(), NewFile{Filename: "filler"}, io.LimitReader(random, 200_000))
	}
	if !errors.Is(err, ErrFull) {
		t.Fatalf("got %v, want ErrFull", err)
	}
	for err = nil; err == nil && len(answered) < 1000; { // pages that are there have some room
		err = add()
	}
	if !errors.Is(err, ErrFull) {
		t.Fatalf("got %v after %d memories, want ErrFull", err, len(answered))
	}
	t.Logf("full after %d memories", len(answered))
	wantMemories(t, s, answered)
	last := answered[len(answered)-1]
	if err := s.DeleteMemory(t.Context(), last, &DeletionOptions{Erase: true}); err != nil {
		t.Errorf("erasing on a full disk: %v, want no error", err)
	} else {
		answered = answered[:len(answered)-1]
	}
	wantMemories(t, s, answered)

	if err := os.Remove(spare); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := add(); err != nil {
			t.Errorf("with room: %v, want no error", err)
		}
	}
	wantMemories(t, s, answered)
	if report := mustCheck(t, s, nil); !report.OK {
		t.Errorf("got %+v, want OK", report)
	}
}

// wantMemories compares the ids of all memories.
func wantMemories(t *testing.T, s *Store, want []string) {
	t.Helper()
	there := map[string]bool{}
	for m, err := range s.Memories(context.Background(), MemoryList{}) {
		if err != nil {
			t.Fatal(err)
		}
		there[m.ID] = true
	}
	for _, id := range want {
		if !there[id] {
			t.Errorf("the memory %s is missing", id)
		}
	}
	if len(there) != len(want) {
		t.Errorf("got %d memories, want the %d that were answered", len(there), len(want))
	}
}
