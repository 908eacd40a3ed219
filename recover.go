package souvenir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/inspect"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/rowhash"
	"github.com/souvenir-ai/souvenir/internal/salvage"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// RecoveryOptions change how [Recover] works. Nil means the zero value.
type RecoveryOptions struct {
	// Embedder makes the vectors of the new store, in the background and each time it is opened. Nil means [Builtin].
	Embedder Embedder

	// Progress receives the stages "read" and "copy", counted in tables, and the stages of [Upkeep.Check]. Nil means no
	// progress reports.
	Progress Progress
}

// RecoveryReport describes what [Recover] recovered.
type RecoveryReport struct {
	OK     bool                      `json:"ok"`     // everything stored is in the new store, and verified
	Tables map[string]RecoveredTable `json:"tables"` // by name; tables with recovered or lost rows
	// problems of the file, and rows made in place of lost ones; never nil
	Notes []string    `json:"notes"`
	Check CheckReport `json:"check"` // of the new store: damaged, lost and unverified rows
}

// RecoveredTable counts the recovered and lost rows of a table.
type RecoveredTable struct {
	Rows    int `json:"rows"`    // that are in the new store
	Stray   int `json:"stray"`   // of these: found in pages that are no longer referenced
	Cut     int `json:"cut"`     // of these: truncated, since the end could not be read
	Damaged int `json:"damaged"` // of these, or of lists of these: not as stored
	Lost    int `json:"lost"`    // stored, but missing
	// readable, but left out: the row they belong to is lost, or they contradict another row
	Refused int `json:"refused"`
}

// Recover makes a new store, out, from everything still readable in a damaged one, in, even if [Open] refuses it. It
// reads the pages of the file and of the write-ahead log beside it without SQLite: it finds rows behind damaged pages
// anywhere in the file, and leaves out rows that the file marks as deleted. The file itself does not change; no program
// may write to it meanwhile, and this one must not have it open.
//
// Rows that were not read as stored never count as verified: the report lists them, and [Upkeep.Check] of the new store
// reports them until they are deleted or accepted. Lost memories are restored to their newest past version, if there is
// one. Passages, full text and vectors are made again, except for the caller's own vectors. Sessions and codes are left
// out: people sign in again.
//
// If the path out exists, the error is ErrConflict. A file without any part of a store is ErrForeign, one of a newer
// version ErrNewer.
func Recover(ctx context.Context, in, out string, options *RecoveryOptions) (RecoveryReport, error) {
	if options == nil {
		options = &RecoveryOptions{}
	}
	progress := options.Progress
	if progress == nil {
		progress = func(string, int, int) {}
	}
	report := RecoveryReport{Tables: map[string]RecoveredTable{}, Notes: []string{},
		Check: CheckReport{Findings: []Finding{}, Checked: map[string]int{}, Damaged: []DamagedRow{}}}
	if in == "" || in == ":memory:" {
		return report, invalid("in", "in is %s; give the path of the damaged file", show(in))
	}
	for argument, path := range map[string]string{"in": in, "out": out} {
		if err := checkPath(argument, path); err != nil {
			return report, err
		}
	}
	if err := checkFree("out", out); err != nil {
		return report, err
	}
	file, err := salvage.Open(in)
	if errors.Is(err, salvage.ErrNoFile) {
		return report, invalid("in", "in %q cannot be recovered: %v", in, err)
	}
	if err != nil {
		return report, newFileError("in", in, err)
	}
	defer file.Close()
	known, err := fs.Glob(sqlite.Migrations(), "*.sql")
	if err != nil {
		return report, wrap(err)
	}
	if file.Sound() && file.Application() != 0 && file.Application() != applicationID {
		return report, newError(KindForeign, "in", "in %q is a file of another program", in)
	}
	if file.Version() > len(known) {
		return report, newError(KindNewer, "in",
			"in %q has the schema version %d, this program knows up to %d; use a newer program", in, file.Version(), len(known))
	}
	r := &recovery{file: file, report: &report, progress: progress, version: file.Version(), known: len(known)}
	if r.version <= 0 {
		r.version = r.known
	}
	return report, r.into(ctx, in, out, options)
}

// checkFree refuses the path of an existing file, and a path with another file's log beside it.
func checkFree(argument, path string) error {
	if err := checkNewPath(argument, path); err != nil {
		return err
	}
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if _, err := os.Lstat(path + suffix); err == nil {
			return newFileError(argument, path, &fs.PathError{Op: "create", Path: path + suffix, Err: fs.ErrExist})
		}
	}
	return nil
}

// into makes the new store beside its final path, and renames it when it is complete.
func (r *recovery) into(ctx context.Context, in, out string, options *RecoveryOptions) error {
	folder, err := os.MkdirTemp(filepath.Dir(out), ".souvenir-recover-*")
	if err != nil {
		return newFileError("out", out, err)
	}
	defer os.RemoveAll(folder)
	part := filepath.Join(folder, "store.db")
	if err := r.readSchema(ctx); err != nil {
		return wrap(err)
	}
	if err := r.readFile(ctx); err != nil {
		return wrap(err)
	}
	if err := r.write(ctx, part); err != nil {
		return newFileError("out", out, err)
	}
	if r.rows == 0 {
		return newError(KindForeign, "in", "in %q has no readable row of a store", in)
	}
	if err := r.finish(ctx, part, options); err != nil {
		return newFileError("out", out, err)
	}
	if err := checkFree("out", out); err != nil { // another process may have created it meanwhile
		return err
	}
	if err := os.Link(part, out); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return newFileError("out", out, err)
		}
		return newFileError("out", out, os.Rename(part, out))
	}
	return nil
}

// finish migrates the new store, rebuilds the derived data, and checks all of it.
func (r *recovery) finish(ctx context.Context, path string, options *RecoveryOptions) error {
	s, err := Open(ctx, path, &Options{Embedder: options.Embedder, IndexMemory: -1})
	if err != nil {
		return err
	}
	err = s.db.Write(ctx, r.mendTrash)
	if err == nil {
		err = s.db.Write(ctx, kernel.FillTurns)
	}
	if err == nil && !r.hashed { // there were no hashes to verify anything with
		err = s.db.Write(ctx, func(tx db.Tx) error { _, err := tx.Exec(`DELETE FROM row_hash`); return err })
	}
	if err == nil {
		r.report.Check, err = s.Upkeep().Check(ctx, &CheckOptions{Repair: true, Progress: r.progress})
	}
	if closed := s.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if !r.hashed {
		r.note("the file has no hashes, so nothing in it can be verified")
	}
	for _, d := range r.report.Check.Damaged {
		t := r.report.Tables[d.Table]
		if d.Lost {
			t.Lost++
		} else {
			t.Damaged++
		}
		r.report.Tables[d.Table] = t
	}
	r.report.OK = r.report.Check.OK
	for _, t := range r.report.Tables {
		r.report.OK = r.report.OK && t.Refused == 0 && t.Cut == 0
	}
	return nil
}

// note adds a note to the report, once.
func (r *recovery) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if len(r.report.Notes) >= inspect.MaxFindings {
		return
	}
	for _, n := range r.report.Notes {
		if n == text {
			return
		}
	}
	r.report.Notes = append(r.report.Notes, text)
}

// recovery is a run of [Recover].
type recovery struct {
	file     *salvage.File
	report   *RecoveryReport
	progress Progress
	version  int // of the file's schema
	known    int // the newest one
	hashed   bool
	rows     int // that are in the new store

	tables []*recoveredTable // referenced tables first
	roots  map[string]uint32 // table or index -> its first page
	hashes map[int]map[int64][]byte

	present    map[string]map[int64]bool // referenced table -> the ids of its rows in the new store
	ownPlaces  map[int64]bool            // partitions with the caller's own vectors
	ownVectors map[int64]bool            // collections with the caller's own vectors
	names      map[int64]string          // memory -> uid, from the index
}

// recoveredTable is a table of the file's schema.
type recoveredTable struct {
	name    string
	columns []recoveredColumn
	order   []int // the columns in the order of the records
	rowID   int   // the column that is the rowid; -1 for none
	tree    bool  // it has rowids, unlike WITHOUT ROWID tables
	hash    *kernel.HashedTable
	strays  []uint32 // its pages that are not referenced
}

type recoveredColumn struct {
	name, kind string
	required   bool
	key        int    // its place in the primary key, from 1; 0: none
	parent     string // the table whose id it is; empty: none
}

// migrationsUpTo holds only the first migrations.
type migrationsUpTo struct {
	fs.FS
	version int
}

func (f migrationsUpTo) Glob(pattern string) ([]string, error) {
	names, err := fs.Glob(f.FS, pattern)
	return names[:min(f.version, len(names))], err
}

// config returns the configuration for a file of the same version, without maintaining hashes.
func (r *recovery) config(path string) sqlite.Config {
	config := fileConfig(path, time.Now)
	config.Migrations = migrationsUpTo{config.Migrations, r.version}
	config.BeforeMigrations, config.AfterMigrations, config.Prepare = nil, nil, nil
	return config
}

// notRecovered lists tables that are rebuilt, or hold short-lived rows.
var notRecovered = []string{"setting", "change", "session", "oauth_code", "row_hash"}

// readSchema learns from the migrations which tables a file of this version has.
func (r *recovery) readSchema(ctx context.Context) error {
	file, err := sqlite.Open(ctx, r.config(":memory:"))
	if err != nil {
		return err
	}
	defer file.Close()
	hashed := kernel.HashedTables()
	return file.Read(ctx, func(tx db.Tx) error {
		names, err := db.Column[string](tx,
			`SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND strict ORDER BY name`)
		if err != nil {
			return err
		}
		for _, name := range names {
			t := &recoveredTable{name: name, rowID: -1}
			if i := slices.IndexFunc(hashed,
				func(h kernel.HashedTable) bool { return h.Name == name || h.Former == name }); i >= 0 {
				t.hash = &hashed[i]
			}
			if err := t.readColumns(tx); err != nil {
				return err
			}
			r.tables = append(r.tables, t)
			r.hashed = r.hashed || name == "row_hash"
		}
		r.sortTables()
		return nil
	})
}

func (t *recoveredTable) readColumns(tx db.Tx) error {
	err := tx.Each(func(row db.Rows) error {
		var c recoveredColumn
		err := row.Scan(&c.name, &c.kind, &c.required, &c.key, &c.parent)
		t.columns = append(t.columns, c)
		return err
	}, `SELECT c.name, c.type, c."notnull", c.pk, coalesce((SELECT f."table" FROM pragma_foreign_key_list(?1) f
		WHERE f."from" = c.name), '')
		FROM pragma_table_info(?1) c ORDER BY c.cid`, t.name)
	if err != nil {
		return err
	}
	var without bool
	if err := tx.QueryRow(`SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = ?`,
		t.name).Scan(&without); err != nil {
		return err
	}
	t.tree = !without
	for i, c := range t.columns {
		if t.tree && c.key == 1 && c.kind == "INTEGER" {
			t.rowID = i
		}
		t.order = append(t.order, i)
	}
	if without { // the key comes first
		slices.SortStableFunc(t.order, func(a, b int) int {
			ka, kb := t.columns[a].key, t.columns[b].key
			switch {
			case ka == 0 && kb == 0:
				return 0
			case ka == 0:
				return 1
			case kb == 0:
				return -1
			}
			return ka - kb
		})
	}
	return nil
}

// sortTables sorts tables after the tables that they reference.
func (r *recovery) sortTables() {
	var sorted []*recoveredTable
	placed := map[string]bool{}
	for len(sorted) < len(r.tables) {
		before := len(sorted)
		for _, t := range r.tables {
			waits := slices.ContainsFunc(t.columns,
				func(c recoveredColumn) bool { return c.parent != "" && c.parent != t.name && !placed[c.parent] })
			if !placed[t.name] && !waits {
				placed[t.name] = true
				sorted = append(sorted, t)
			}
		}
		if len(sorted) == before { // a cycle: break it anywhere
			for _, t := range r.tables {
				if !placed[t.name] {
					placed[t.name] = true
					sorted = append(sorted, t)
					break
				}
			}
		}
	}
	r.tables = sorted
}

func (r *recovery) table(name string) *recoveredTable {
	if i := slices.IndexFunc(r.tables, func(t *recoveredTable) bool { return t.name == name }); i >= 0 {
		return r.tables[i]
	}
	return nil
}

// values puts the values of a record into the order of the table's columns. ok is false if it is not a row of the
// table.
func (t *recoveredTable) values(row salvage.Row) ([]any, bool) {
	if len(row.Values) > len(t.columns) {
		return nil, false
	}
	values := make([]any, len(t.columns))
	for i, v := range row.Values {
		values[t.order[i]] = v
	}
	if t.rowID >= 0 {
		if values[t.rowID] != nil {
			return nil, false
		}
		values[t.rowID] = row.ID
	}
	for i, v := range values {
		c := t.columns[i]
		given := i < len(row.Values)
		switch v.(type) {
		case nil:
			if c.required && given && c.key == 0 && i != t.rowID {
				return nil, false
			}
		case int64:
			if c.kind != "INTEGER" {
				return nil, false
			}
		case string:
			if c.kind != "TEXT" {
				return nil, false
			}
		case []byte:
			if c.kind != "BLOB" {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return values, true
}

// sum returns the hash of a row, and the key that it is stored under.
func (t *recoveredTable) sum(values []any) (key int64, sum []byte) {
	var names []string
	var hashed []any
	for i, c := range t.columns {
		if c.name == t.hash.Key {
			key, _ = values[i].(int64)
			if !t.hash.Set {
				continue
			}
		}
		if slices.Contains(t.hash.Except, c.name) {
			continue
		}
		names, hashed = append(names, c.name), append(hashed, values[i])
	}
	sum, err := rowhash.Hash(strings.Join(names, ","), hashed)
	if err != nil {
		return key, nil
	}
	return key, sum
}

// readFile assigns the pages to tables, and reads the hashes.
func (r *recovery) readFile(ctx context.Context) error {
	r.roots, r.hashes, r.names = map[string]uint32{}, map[int]map[int64][]byte{}, map[int64]string{}
	found := &salvage.Found{Pages: map[uint32]bool{}}
	err := r.file.Walk(1, found, func(row salvage.Row) error {
		if len(row.Values) < 4 {
			return nil
		}
		name, _ := row.Values[1].(string)
		root, _ := row.Values[3].(int64)
		if name != "" && root > 1 && root <= int64(r.file.Pages()) {
			r.roots[name] = uint32(root)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if found.Problems > 0 || len(r.roots) == 0 {
		r.note("the list of tables is damaged")
	}
	done := 0
	for name, root := range r.roots {
		r.progress("read", done, len(r.roots))
		done++
		if err := ctx.Err(); err != nil {
			return err
		}
		before := found.Problems
		err := r.file.Walk(root, found, func(row salvage.Row) error {
			switch {
			case name == "row_hash":
				r.keepHash(row)
			case name == "sqlite_autoindex_memory_1" && len(row.Values) == 2:
				uid, _ := row.Values[0].(string)
				id, _ := row.Values[1].(int64)
				r.names[id] = uid
			}
			return nil
		})
		if err != nil {
			return err
		}
		if n := found.Problems - before; n > 0 && !strings.HasPrefix(name, "sqlite_") &&
			!strings.HasPrefix(name, "passage_text") && r.table(name) != nil {
			r.note("%s: %d pages or rows cannot be read", name, n)
		}
	}
	r.progress("read", done, len(r.roots))
	for _, p := range r.file.Problems {
		r.note("%s", p)
	}
	return r.readStrays(ctx, found)
}

func (r *recovery) keepHash(row salvage.Row) {
	if len(row.Values) != 3 {
		return
	}
	kind, ok1 := row.Values[0].(int64)
	id, ok2 := row.Values[1].(int64)
	hash, ok3 := row.Values[2].([]byte)
	if !ok1 || !ok2 || !ok3 || row.Cut || len(hash) != rowhash.Size && len(hash) != 0 || kind < 1 || kind > 1000 {
		return
	}
	if r.hashes[int(kind)] == nil {
		r.hashes[int(kind)] = map[int64][]byte{}
	}
	r.hashes[int(kind)][id] = hash
}

// readStrays finds table pages that no tree references: the ones behind a damaged page.
func (r *recovery) readStrays(ctx context.Context, found *salvage.Found) error {
	free := r.file.Free()
	var strays []uint32
	hashes := r.table("row_hash")
	for n := uint32(2); n <= r.file.Pages(); n++ {
		if free[n] || found.Pages[n] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		rows, inTable, ok := r.file.Leaf(n, &salvage.Found{Pages: map[uint32]bool{}})
		if !ok {
			continue
		}
		if !inTable && hashes != nil && r.fits(hashes, rows) == len(rows) {
			for _, row := range rows {
				r.keepHash(row)
			}
			continue
		}
		strays = append(strays, n)
	}
	for _, n := range strays {
		rows, inTable, _ := r.file.Leaf(n, &salvage.Found{Pages: map[uint32]bool{}})
		var best *recoveredTable
		most := 0
		for _, t := range r.tables {
			if t.tree != inTable || slices.Contains(notRecovered, t.name) {
				continue
			}
			score := r.fits(t, rows)
			if 2*score <= len(rows) {
				continue
			}
			if score = 2*score + 4*r.verifies(t, rows); score > most {
				best, most = t, score
			}
		}
		if best != nil {
			best.strays = append(best.strays, n)
		}
	}
	return nil
}

// fits counts the rows that could belong to a table.
func (r *recovery) fits(t *recoveredTable, rows []salvage.Row) (n int) {
	for _, row := range rows {
		if _, ok := t.values(row); ok && len(row.Values) > len(t.columns)/2 {
			n++
		}
	}
	return n
}

// verifies counts the rows whose hash shows that they belong to a table.
func (r *recovery) verifies(t *recoveredTable, rows []salvage.Row) (n int) {
	if t.hash == nil {
		return 0
	}
	for _, row := range rows {
		values, ok := t.values(row)
		if !ok {
			continue
		}
		key, sum := t.sum(values)
		stored, kept := r.hashes[t.hash.Kind][key]
		if kept && (t.hash.Set || bytes.Equal(stored, sum)) {
			n++
		}
	}
	return n
}
