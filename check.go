package souvenir

import (
	"context"
	"time"

	"github.com/souvenir-ai/souvenir/internal/inspect"
	"github.com/souvenir-ai/souvenir/internal/transfer"
)

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

// Check examines the whole store as it is at one moment: the file is sound for SQLite, references have targets, values
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
	report, err := s.inspector().Check(ctx, options.Repair, options.Accept, progress)
	return checkReport(report), wrap(err)
}

// inspector returns what inspections need of the store.
func (s *Store) inspector() inspect.Store {
	return inspect.Store{
		DB: s.db, Profile: s.profile, Model: s.embedder.Model(), MaxInput: maxInput(s.embedder), Log: s.log,
		Wake:    s.worker.Wake,
		Objects: s.objects,
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
