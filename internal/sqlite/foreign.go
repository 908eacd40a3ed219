package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// ReadForeign runs fn in a read transaction on another program's SQLite file, and leaves no trace next to it. That
// program may have the file open: what it has committed to its write-ahead log is read, too. The schema may name
// modules and functions that are missing here, as long as fn does not use them.
func ReadForeign(ctx context.Context, path string, fn func(db.Tx) error) error {
	path, err := absolute(path)
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("sqlite: open: %w", err)
	}
	mode := modeImmutable
	if log, err := os.Stat(path + "-wal"); err == nil && log.Size() > 0 {
		mode = modeReadOnly // the index of the log exists, too, or is made temporarily
	}
	// A schema is not trusted: its views and triggers call no functions with side effects.
	c, err := connect(fileDSN(path, mode), []string{"trusted_schema = OFF", "query_only = ON", "cell_size_check = ON"})
	if err != nil {
		return classify("open "+path, err)
	}
	_, err = c.snapshot(ctx, patience{until: time.Now().Add(5 * time.Second), closed: make(chan struct{})}, fn)
	return errors.Join(err, c.close())
}
