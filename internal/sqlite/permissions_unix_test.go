//go:build unix

package sqlite

import (
	"os"
	"testing"
)

// Memories are private: a new file is not readable by others, even if the system's default allows it. The permissions
// of an existing file are respected.
func TestNewFilesAreForTheirOwnerOnly(t *testing.T) {
	mode := func(path string) os.FileMode {
		t.Helper()
		info, err := os.Stat(path)
		must(t, err)
		return info.Mode().Perm()
	}
	path := newFile(t)
	db := openTest(t, testConfig(path))
	must(t, db.Write(t.Context(), insert("a")))
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if got := mode(name); got != 0o600 {
			t.Errorf("%s has the permissions %v, want 0o600", name, got)
		}
	}
	must(t, db.Close())
	must(t, os.Chmod(path, 0o640))
	again := openTest(t, testConfig(path))
	must(t, again.Write(t.Context(), insert("b")))
	for _, name := range []string{path, path + "-wal"} {
		if got := mode(name); got != 0o640 {
			t.Errorf("%s, which its owner shows to a group, has the permissions %v; want 0o640", name, got)
		}
	}
}
