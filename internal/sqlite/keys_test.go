package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// A reader that needs another connection cannot open a file that has lost its name.
func TestKeysSayThatTheirFileIsGone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not rename a file that is open")
	}
	path := filepath.Join(t.TempDir(), "ring")
	k, err := OpenKeys(t.Context(), path, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	nothing := func(db.Tx) error { return nil }
	if err := k.Read(t.Context(), func(db.Tx) error { // which occupies the connection that is open
		if err := os.Rename(path, path+".away"); err != nil {
			return err
		}
		if err := k.Read(t.Context(), nothing); !errors.Is(err, errGone) {
			t.Errorf("a second reader: got %v, want %v", err, errGone)
		}
		return nil
	}); err != nil {
		t.Errorf("a reader with a connection: got %v, want no error", err)
	}
	if err := k.Write(t.Context(), nothing); !errors.Is(err, errGone) {
		t.Errorf("Write: got %v, want %v", err, errGone)
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	if err := k.Write(t.Context(), nothing); err != nil {
		t.Errorf("Write after the file came back: got %v, want no error", err)
	}
}
