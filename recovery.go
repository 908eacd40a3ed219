package souvenir

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/souvenir-ai/souvenir/internal/inspect"
	"github.com/souvenir-ai/souvenir/internal/recovery"
	"github.com/souvenir-ai/souvenir/internal/salvage"
	"github.com/souvenir-ai/souvenir/internal/transfer"
)

// RecoveryOptions change how [Recover] works. Nil means the zero value.
type RecoveryOptions struct {
	// Embedder makes the vectors of the new store, in the background and each time it is opened. Nil means [Builtin].
	Embedder Embedder

	// MasterKey is that of the damaged file, and of the new store. The zero value means that it is not encrypted.
	MasterKey MasterKey

	// UserKeys are those of the damaged store, if it has some; without a Place, the ring beside it. The new store belongs
	// to the same ring, so open it with UserKeys.Place.
	UserKeys UserKeys

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
// Rows that differ from what was stored never count as verified: the report lists them, and [Upkeep.Check] of the new
// store reports them until they are deleted or accepted. Lost memories are restored to their newest past version, if
// there is one. Passages, full text and vectors are rebuilt, except the caller's own vectors. Sessions and codes are
// left out: people sign in again.
//
// If the path out exists, the error is ErrConflict. A file without any part of a store is ErrForeign, one of a newer
// version ErrNewer.
func Recover(ctx context.Context, in, out string, options *RecoveryOptions) (_ RecoveryReport, err error) {
	defer inGo[RecoveryOptions](&err, "in", "in", "out", "out")
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
		return report, invalid("in", "{} is %s; give the path of the damaged file", show(in))
	}
	for argument, path := range map[string]string{"in": in, "out": out} {
		if err := checkPath(argument, path); err != nil {
			return report, err
		}
	}
	if err := checkFree("out", out); err != nil {
		return report, err
	}
	file, err := salvage.Open(in, options.MasterKey)
	if errors.Is(err, salvage.ErrNoFile) {
		return report, invalid("in", "{} %q cannot be recovered: %v", in, err)
	}
	if errors.Is(err, salvage.ErrKey) {
		return report, causedBy(err, newError(KindMasterKey, "in", "{} %q cannot be recovered: %v", in, err))
	}
	if err != nil {
		return report, newFileError("in", in, err)
	}
	defer file.Close()
	known, err := fs.Glob(fileConfig("", time.Now).Migrations, "*.sql")
	if err != nil {
		return report, wrap(err)
	}
	if file.Sound() && file.Application() != 0 && file.Application() != applicationID {
		return report, newError(KindForeign, "in", "{} %q is a file of another program", in)
	}
	if file.Version() > len(known) {
		return report, newError(KindNewer, "in",
			"{} %q has the schema version %d, this program knows up to %d; use a newer program", in, file.Version(), len(known))
	}
	version := file.Version()
	if version <= 0 {
		version = len(known)
	}
	config := fileConfig("", time.Now)
	config.MasterKey = options.MasterKey
	keys := options.UserKeys
	if err := keys.check(); err != nil {
		return report, err
	}
	if keys != (UserKeys{}) && keys.Place == "" {
		keys.Place = UserKeysFile(in)
	}
	r := recoverer{Recovery: recovery.New(file, version, config, progress), in: in, out: out,
		options: RecoveryOptions{Embedder: options.Embedder, MasterKey: options.MasterKey, UserKeys: keys,
			Progress: progress},
		report: &report}
	err = r.run(ctx)
	report.Notes = r.Notes
	for name, count := range r.Counts {
		report.Tables[name] = RecoveredTable(count)
	}
	report.OK = err == nil && r.complete()
	return report, err
}

// recoverer is a run of [Recover].
type recoverer struct {
	*recovery.Recovery
	in, out string
	options RecoveryOptions
	report  *RecoveryReport
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

// run makes the new store beside its final path, and renames it when it is complete.
func (r *recoverer) run(ctx context.Context) error {
	folder, err := os.MkdirTemp(filepath.Dir(r.out), ".souvenir-recover-*")
	if err != nil {
		return newFileError("out", r.out, err)
	}
	defer os.RemoveAll(folder)
	part := filepath.Join(folder, "store.db")
	if err := r.Read(ctx); err != nil {
		return wrap(err)
	}
	if err := r.Write(ctx, part); err != nil {
		return newFileError("out", r.out, err)
	}
	if r.Rows == 0 {
		return newError(KindForeign, "in", "{} %q has no readable row of a store", r.in)
	}
	if err := r.finish(ctx, part); err != nil {
		return newFileError("out", r.out, err)
	}
	if err := checkFree("out", r.out); err != nil { // another process may have created it meanwhile
		return err
	}
	if err := os.Link(part, r.out); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return newFileError("out", r.out, err)
		}
		return newFileError("out", r.out, os.Rename(part, r.out))
	}
	return nil
}

// finish migrates the new store, rebuilds the derived data, and checks all of it.
func (r *recoverer) finish(ctx context.Context, path string) error {
	if err := bindRecovered(ctx, path, r.options); err != nil {
		return err
	}
	s, err := Open(ctx, path, &Options{Embedder: r.options.Embedder, MasterKey: r.options.MasterKey, IndexMemory: -1,
		UserKeys: r.options.UserKeys})
	if err != nil {
		return err
	}
	err = r.Mend(ctx, s.db)
	if err == nil {
		r.report.Check, err = s.Upkeep().Check(ctx, &CheckOptions{Repair: true, Progress: r.options.Progress})
	}
	if closed := s.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	for _, d := range r.report.Check.Damaged {
		r.CountDamaged(d.Table, d.Lost)
	}
	return nil
}

// complete reports whether everything stored is in the new store, and verified.
func (r *recoverer) complete() bool {
	complete := r.report.Check.OK
	for _, t := range r.Counts {
		complete = complete && t.Refused == 0 && t.Cut == 0
	}
	return complete
}

// CheckOptions change how [Upkeep.Check] works. Nil means the zero value: a check that changes nothing.
type CheckOptions struct {
	// Repair rebuilds derived data (counts, full text, passages, vectors, indexes of the file) from intact data, and
	// deletes rows that belong to nothing. It deletes no memory and no file.
	Repair bool

	// Accept accepts damaged, lost and unverified data in its present state: from then on it counts as intact. Read the
	// report first, and repair what can be repaired. Only with Repair.
	Accept bool

	// Progress receives the stages "file", "references", "hashes", "memories", "full text", "files" and, with Repair,
	// "repair" and then the others once more. Nil disables it.
	Progress Progress
}

// CheckReport is what [Upkeep.Check] found.
type CheckReport struct {
	// nothing is wrong: there are no findings, or all are repaired, and all data is verified
	OK       bool           `json:"ok"`
	Findings []Finding      `json:"findings"` // the first 1,000; never nil
	Total    int            `json:"total"`    // how many there are
	Repaired int            `json:"repaired"` // how many of them have been repaired
	Checked  map[string]int `json:"checked"`  // checked rows per table

	// Stored data has hashes. Verified counts the rows (or lists of rows, such as the tags of a memory) that match their
	// hash. Unverified counts the rows without a hash and, as a lower bound, unreadable rows. Damaged lists the rows that
	// do not match, the first 1,000.
	Verified   int          `json:"verified"`
	Unverified int          `json:"unverified"`
	Damaged    []DamagedRow `json:"damaged"` // never nil

	// HashedSince is when a store made by a version without hashes got them for the data it held then: earlier damage to
	// that data is not found. Zero: hashes were kept from the start.
	HashedSince time.Time `json:"hashed_since,omitzero"`
}

// Finding is a problem in the file.
type Finding struct {
	Table      string `json:"table"`        // where; "file" for the engine's findings about the file as a whole
	ID         string `json:"id,omitempty"` // of the memory, file or collection it concerns, as callers know it
	Problem    string `json:"problem"`
	Repairable bool   `json:"repairable"` // a repair can fix it without losing stored data
	Repaired   bool   `json:"repaired"`
}

// DamagedRow is a row of the file that differs from what was stored, or is missing.
type DamagedRow struct {
	Table string `json:"table"`
	Row   int64  `json:"row"` // its number in the table
	// of the memory, file, user ... it belongs to, as callers know it; empty: no longer known
	ID   string `json:"id,omitempty"`
	Lost bool   `json:"lost"` // it is missing
}

// Check examines the whole store as it is at one moment: the database is sound, references have targets, values
// are valid, passages, vectors and full text match the contents, counts are right, and files have the bytes that were
// stored. Problems are in the report and are not an error; an error means that the check could not finish. A store
// opened with ReadOnly is checked without changing its file.
//
// Stored data has hashes, so Check finds a changed byte and names a lost row. No repair can restore either: the store
// is not OK until the damaged data is deleted or accepted. To save what remains of a badly damaged file, see [Recover].
//
// With Repair it repairs what it can, in short transactions between those of other writers, and checks again. Damaged
// vectors are rebuilt in the background; [Upkeep.WaitEmbedded] waits for them. Those of a collection with the caller's
// own vectors cannot be rebuilt: its memories are then found by their words only. On a read-only store, Repair is
// ErrReadOnly.
//
// It is for the Store that Open returned; a view gets ErrForbidden.
func (h *Upkeep) Check(ctx context.Context, options *CheckOptions) (_ CheckReport, err error) {
	defer inGo[CheckOptions](&err)
	s, err := h.operator(ctx, "Check")
	if err != nil {
		return CheckReport{}, err
	}
	if options == nil {
		options = &CheckOptions{}
	}
	progress := options.Progress
	if progress == nil {
		progress = func(string, int, int) {}
	}
	if options.Repair && s.db.ReadOnly() {
		return CheckReport{}, newError(KindReadOnly, "Repair",
			"the store is opened read-only, so it cannot be repaired; open it for writing, or only check it")
	}
	if options.Accept && !options.Repair {
		return CheckReport{}, invalid("Accept", "{} is set without Repair; set both, or none")
	}
	report, err := s.inspector(ctx).Check(ctx, options.Repair, options.Accept, progress)
	return checkReport(report), wrap(err)
}

// inspector returns what inspections need of the store.
func (s *Store) inspector(ctx context.Context) inspect.Store {
	return inspect.Store{
		DB: s.db, Profile: s.profile, Model: s.embedder.Model(), MaxInput: maxInput(s.embedder), Log: s.log,
		Wake:    s.worker.Wake,
		Objects: s.objects, Keys: s.ring, Actor: s.auditEntry(ctx, event{}),
		Records: append(transfer.Records(), signInRecord(), invitationRecord(), activityRecord()),
	}
}

func checkReport(r inspect.Report) CheckReport {
	report := CheckReport{OK: r.OK, Findings: []Finding{}, Total: r.Total, Repaired: r.Repaired, Checked: r.Checked,
		Verified: r.Verified, Unverified: r.Unverified, Damaged: []DamagedRow{}, HashedSince: r.HashedSince}
	for _, f := range r.Findings {
		report.Findings = append(report.Findings, Finding(f))
	}
	for _, d := range r.Damaged {
		report.Damaged = append(report.Damaged, DamagedRow(d))
	}
	return report
}
