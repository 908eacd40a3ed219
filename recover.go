package souvenir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/salvage"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// RecoveryOptions change how [Recover] works. Nil means the zero value.
type RecoveryOptions struct {
	// Embedder makes the vectors of the new store, in the background and whenever it is opened. Nil means [Builtin].
	Embedder Embedder

	// Progress hears of the stages "read" and "copy", counted in tables, and of those of [Upkeep.Check]. Nil means nobody does.
	Progress Progress
}

// RecoveryReport is what [Recover] could get.
type RecoveryReport struct {
	OK     bool                      `json:"ok"`     // all that was stored is in the new store, and verified
	Tables map[string]RecoveredTable `json:"tables"` // by name; those of which anything was there or is lost
	Notes  []string                  `json:"notes"`  // what is wrong with the file, and what was made up for it; never nil
	Check  CheckReport               `json:"check"`  // of the new store: what is damaged, lost or not verified
}

// RecoveredTable is what became of the rows of a table.
type RecoveredTable struct {
	Rows    int `json:"rows"`    // that are in the new store
	Stray   int `json:"stray"`   // of those: found in pages that nothing led to any more
	Cut     int `json:"cut"`     // of those: of which the end could not be read
	Damaged int `json:"damaged"` // of those, or of lists of those: not what was stored
	Lost    int `json:"lost"`    // that were stored, and are not there
	Refused int `json:"refused"` // that could be read, and fit nowhere: what they belong to is lost, or they contradict another
}

// Recover makes a new store, out, of all that can still be read of a damaged one, in, also of one that [Open] refuses. It reads the pages of the
// file, with those of the write-ahead log beside it, by itself: rows behind damaged pages are found wherever they lie, and what the file
// says is deleted stays out. The file stays as it is; no program may write it meanwhile, nor this one have it open.
//
// What was not read as it was stored is never called verified: it is in the report, and [Upkeep.Check] of the new store goes on
// saying so until it is deleted or accepted. Memories that are lost come back in their newest former state, if there is one. Passages, full text and
// vectors are made again, but for vectors of the caller's own. Sessions and codes are left out: people sign in again.
//
// The path out must not exist: ErrConflict. A file in which nothing of a store is found is ErrForeign, one of a newer version ErrNewer.
func Recover(ctx context.Context, in, out string, options *RecoveryOptions) (RecoveryReport, error) {
	if options == nil {
		options = &RecoveryOptions{}
	}
	progress := options.Progress
	if progress == nil {
		progress = func(string, int, int) {}
	}
	report := RecoveryReport{Tables: map[string]RecoveredTable{}, Notes: []string{}, Check: CheckReport{Findings: []Finding{}, Checked: map[string]int{}, Damaged: []DamagedRow{}}}
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
		return report, newError(KindNewer, "in", "in %q has the schema version %d, this program knows up to %d; use a newer program", in, file.Version(), len(known))
	}
	r := &recovery{file: file, report: &report, progress: progress, version: file.Version(), known: len(known)}
	if r.version <= 0 {
		r.version = r.known
	}
	return report, r.into(ctx, in, out, options)
}

// checkFree refuses the path of a file that exists, or beside which a log of another lies.
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

// into makes the new store beside its place, and gives it its name when it is whole.
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
		return newError(KindForeign, "in", "in %q holds nothing that could be a row of a store", in)
	}
	if err := r.finish(ctx, part, options); err != nil {
		return newFileError("out", out, err)
	}
	if err := checkFree("out", out); err != nil { // somebody may have been faster
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

// finish brings the new store up to date, makes again what is made of what was recovered, and looks at all of it.
func (r *recovery) finish(ctx context.Context, path string, options *RecoveryOptions) error {
	s, err := Open(ctx, path, &Options{Embedder: options.Embedder, IndexMemory: -1})
	if err != nil {
		return err
	}
	err = s.db.Write(ctx, r.mendTrash)
	if err == nil && !r.hashed { // there was nothing by which anything could be verified
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

// note keeps something that the reader of the report should know, once.
func (r *recovery) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if len(r.report.Notes) >= maxFindings {
		return
	}
	for _, n := range r.report.Notes {
		if n == text {
			return
		}
	}
	r.report.Notes = append(r.report.Notes, text)
}
