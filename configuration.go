package souvenir

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Configuration is how a store works: the options that Open was given, with their defaults, and what they are about.
type Configuration struct {
	Path       string `json:"path"`       // of the file, from the root of the file system; ":memory:" for none
	ReadOnly   bool   `json:"read_only"`  // nothing is ever written to the file
	Engine     string `json:"sqlite"`     // version of what stores the data
	Model      string `json:"model"`      // of the embedder
	Dimensions int    `json:"dimensions"` // of its vectors

	IndexMemory  int64         `json:"index_memory"` // bytes; less than 0: no index in memory
	MaxFile      int64         `json:"max_file"`     // bytes of a file
	FileQuota    int64         `json:"file_quota"`   // bytes of all files of an owner; 0: no quota
	Quota        Quota         `json:"quota"`        // of memories
	KeepActivity time.Duration `json:"keep_activity"`
	MaxActivity  int           `json:"max_activity"` // recorded calls
	KeepTrash    time.Duration `json:"keep_trash"`   // less than 0: no trash, deletions are for good
}

// Configuration tells how the store works. It is for the Store that Open returned; a view gets ErrForbidden.
func (h *Upkeep) Configuration(ctx context.Context) (Configuration, error) {
	s, err := h.operator("Configuration")
	if err != nil {
		return Configuration{}, err
	}
	o := s.options
	c := Configuration{
		Path: s.db.Upkeep().Path(), ReadOnly: s.db.ReadOnly(), Model: s.embedder.Model(), Dimensions: s.embedder.Dimensions(),
		IndexMemory: o.IndexMemory, MaxFile: o.MaxFile, FileQuota: o.FileQuota, Quota: o.Quota, KeepActivity: o.KeepActivity, MaxActivity: o.MaxActivity,
		KeepTrash: o.KeepTrash,
	}
	if c.Path != ":memory:" {
		absolute, err := filepath.Abs(c.Path)
		if err != nil {
			return Configuration{}, wrap(err)
		}
		c.Path = absolute
	}
	c.Engine = strings.TrimPrefix(s.db.Upkeep().Name(), "SQLite ")
	return c, s.read(ctx, func(db.Tx, scope) error { return nil }) // an error on a closed store
}
