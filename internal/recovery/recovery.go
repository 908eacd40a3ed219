// Package recovery copies the readable parts of a damaged store into a new file. It knows the tables of a store and the
// relations between rows. Package salvage reads the pages of the damaged file.
package recovery

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/files/filetext"
	"github.com/souvenir-ai/souvenir/internal/inspect"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/recovery/salvage"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// Recovery copies the readable rows of one damaged file. Read reads the file, Write makes a new file, and Mend
// completes that file once it is migrated to the newest version.
type Recovery struct {
	Tables []*Table          // the tables of a file of this version, referenced tables first
	Roots  map[string]uint32 // table or index -> its first page

	Counts map[string]Count // by table; tables with recovered or lost rows
	Notes  []string         // problems of the file, and rows made in place of lost ones
	Rows   int              // that are in the new file
	Hashed bool             // the file has hashes

	file     *salvage.File
	store    sqlite.Config
	progress func(stage string, done, total int)
	version  int  // of the file's schema
	later    bool // rows have more columns than that version's
	hashes   map[int]map[int64][]byte

	present    map[string]map[int64]bool // referenced table -> the ids of its rows in the new file
	ownPlaces  map[int64]bool            // partitions with the caller's own vectors
	ownVectors map[int64]bool            // collections with the caller's own vectors
	names      map[int64]string          // memory -> uid, from the index
}

// Count counts the recovered and lost rows of a table.
type Count struct {
	Rows, Stray, Cut, Damaged, Lost, Refused int
}

// New prepares the recovery of a file with a version of the schema. store is the configuration to open the new store;
// its path is not used. Progress receives the stages "read" and "copy", counted in tables.
func New(file *salvage.File, version int, store sqlite.Config, progress func(stage string, done, total int)) *Recovery {
	return &Recovery{file: file, version: version, store: store, progress: progress, Counts: map[string]Count{},
		Notes: []string{}}
}

// Read finds the tables of the file, their pages and their hashes.
func (r *Recovery) Read(ctx context.Context) error {
	if err := r.readSchema(ctx); err != nil {
		return err
	}
	if err := r.readFile(ctx); err != nil {
		return err
	}
	newest, err := fs.Glob(r.store.Migrations, "*.sql")
	if err != nil || r.version >= len(newest) || !r.later {
		return err
	}
	said := r.version
	r.version, r.Tables, r.Notes = len(newest), nil, nil
	r.note("the file claims schema version %d, but has rows of a later one", said)
	if err := r.readSchema(ctx); err != nil {
		return err
	}
	return r.readFile(ctx)
}

// Mend completes a new store that has the newest version of the schema.
func (r *Recovery) Mend(ctx context.Context, store db.DB) error {
	err := store.Write(ctx, r.mendTrash)
	if err == nil {
		err = store.Write(ctx, filetext.Repair)
	}
	if err == nil {
		err = store.Write(ctx, kernel.FillTurns)
	}
	if err == nil && !r.Hashed { // there were no hashes to verify anything with
		err = store.Write(ctx, func(tx db.Tx) error { _, err := tx.Exec(`DELETE FROM row_hash`); return err })
		r.note("the file has no hashes, so nothing in it can be verified")
	}
	return err
}

// CountDamaged counts a row that the check of the new store found damaged or lost.
func (r *Recovery) CountDamaged(table string, lost bool) {
	count := r.Counts[table]
	if lost {
		count.Lost++
	} else {
		count.Damaged++
	}
	r.Counts[table] = count
}

// note adds a note to the report, once.
func (r *Recovery) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if len(r.Notes) >= inspect.MaxFindings {
		return
	}
	for _, n := range r.Notes {
		if n == text {
			return
		}
	}
	r.Notes = append(r.Notes, text)
}

// migrations holds only the first migrations.
type migrations struct {
	fs.FS
	version int
}

// Migrations returns the migrations of all that lead to a version of the schema.
func Migrations(all fs.FS, version int) fs.FS { return migrations{all, version} }

func (f migrations) Glob(pattern string) ([]string, error) {
	names, err := fs.Glob(f.FS, pattern)
	return names[:min(f.version, len(names))], err
}

// config returns the configuration for a file of the same version, without maintaining hashes.
func (r *Recovery) config(path string) sqlite.Config {
	config := r.store
	config.Path, config.Migrations = path, Migrations(config.Migrations, r.version)
	config.BeforeMigrations, config.AfterMigrations, config.Hashed = nil, nil, nil
	return config
}
