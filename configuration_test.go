package souvenir

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/kernel"
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
	// A relative path is shown as an absolute one.
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
