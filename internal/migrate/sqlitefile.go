package migrate

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"os"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// isSQLite reports whether a file is an SQLite database.
func isSQLite(path string) bool {
	const magic = "SQLite format 3\x00"
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false
	}
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	start := make([]byte, len(magic))
	_, err = io.ReadFull(file, start)
	return err == nil && bytes.Equal(start, []byte(magic))
}

// hasFile reports whether a folder has a file, named with slashes. A link that leads out of the folder does not count.
func hasFile(folder, name string) bool {
	root, err := openFolder(folder)
	if err != nil {
		return false
	}
	defer root.Close()
	info, err := root.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// inSQLite yields the items that read reads from an SQLite database, in one transaction.
func inSQLite(
	ctx context.Context, path string, read func(tx db.Tx, yield func(Item) error) error,
) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		stopped := errors.New("stopped")
		err := sqlite.ReadForeign(ctx, path, func(tx db.Tx) error {
			return read(tx, func(item Item) error {
				if !yield(item, nil) {
					return stopped
				}
				return nil
			})
		})
		if err != nil && !errors.Is(err, stopped) {
			yield(Item{}, err)
		}
	}
}

// columns returns the names of a table's columns; none if there is no such table. Views, virtual tables and computed
// columns do not count: the programs have none, and reading them could take forever.
func columns(tx db.Tx, table string) (map[string]bool, error) {
	names, err := db.Column[string](tx, `SELECT i.name FROM pragma_table_list(?1) t, pragma_table_info(?1) i
		WHERE t.schema = 'main' AND t.type = 'table'`, table)
	known := map[string]bool{}
	for _, name := range names {
		known[name] = true
	}
	return known, err
}
