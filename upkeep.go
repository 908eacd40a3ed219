package souvenir

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/inspect"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
	"github.com/souvenir-ai/souvenir/internal/transfer"
	"github.com/souvenir-ai/souvenir/internal/trash"
)

// Work on a whole store: checking it, making it smaller, loading and storing its index, what keeps it from working, and
// what the worker tidies up.

// Upkeep maintains a store: backup, check, export, import, statistics, the activity log, embeddings and indexes. Get it
// with [Store.Upkeep].
//
// It is for the Store that [Open] returned. On a view all methods return ErrForbidden, except Export,
// EmbeddingStatus and WaitEmbedded, which are limited to the data of the view's user.
type Upkeep struct {
	handle
}

// Upkeep returns the methods that maintain the store.
func (s *Store) Upkeep() *Upkeep {
	return &Upkeep{handle{s.handled("Upkeep")}}
}

// Compact returns the free pages of the file to the system, by rewriting it. Searches and reads continue meanwhile;
// writes wait, including those of other processes. It needs room for two more copies of the file until it is done: one
// in the system's folder for temporary files, one in the log beside the file. If the context ends first, or a disk is
// full (ErrFull), nothing has changed. In PostgreSQL it vacuums the store's tables, which makes room in them for new
// content.
//
// It is for the Store that Open returned; a view gets ErrForbidden. On a read-only store it is ErrReadOnly.
func (h *Upkeep) Compact(ctx context.Context) error {
	s, err := h.operator(ctx, "Compact")
	if err != nil {
		return err
	}
	return wrap(s.db.Upkeep().Compact(ctx))
}

// LoadIndex starts loading the search index into memory, as far as IndexMemory allows, and does not wait for it: a
// program that answers many searches calls it at its start, so that the first of them need not read from disk. Without
// it, a search starts loading the data that it covers, after it is answered. Loaded parts are not loaded again.
func (h *Upkeep) LoadIndex(ctx context.Context) error {
	s, err := h.operator(ctx, "LoadIndex")
	if err != nil {
		return err
	}
	defer s.index.LoadIfDue()
	return s.readStore(ctx, func(tx db.Tx) error {
		return s.index.Want(tx)
	})
}

// StoreIndex writes the search index of large collections and projects to the file or the database, and returns when
// that is done, so that the next process loads it in a fraction of the time that reading all texts takes. A store does
// this by itself, in the background, within half a minute or so; call StoreIndex at the end of a program that stores
// much and ends, such as an import. Parts that are up to date are not written again. It waits for another process that
// does the same, and returns ErrBusy if the store changes too fast.
//
// It is for the Store that Open returned; a view gets ErrForbidden. On a read-only store it is ErrReadOnly.
func (h *Upkeep) StoreIndex(ctx context.Context) error {
	s, err := h.operator(ctx, "StoreIndex")
	if err == nil {
		err = s.checkWritable()
	}
	if err == nil {
		err = s.readStore(ctx, func(db.Tx) error { return nil }) // fails on a closed store
	}
	if err != nil {
		return err
	}
	if err = s.index.Persist(ctx, true); err == nil {
		err = s.maintain(ctx, true)
	}
	return wrap(err)
}

// CheckOptions change how [Upkeep.Check] works. Nil means the zero value: a check that changes nothing.
type CheckOptions struct {
	// Repair rebuilds derived data (counts, full text, passages, vectors, indexes of the file) from intact data, and
	// deletes rows that belong to nothing. It deletes no memory and no file.
	Repair bool

	// Accept accepts damaged, lost and unverified data in its current state: from then on it counts as intact. Read the
	// report first, and repair what can be repaired. Only with Repair.
	Accept bool

	// Progress receives the stages "file", "references", "hashes", "memories", "full text", "files" and, with Repair,
	// "repair" and then the others once more. Nil disables it.
	Progress Progress
}

// CheckReport is the result of [Upkeep.Check].
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
// With Repair it repairs what it can, in short transactions between other writers' transactions, and checks again.
// Damaged vectors are rebuilt in the background; [Upkeep.WaitEmbedded] waits for them. Those of a collection with the
// caller's own vectors cannot be rebuilt: its memories are then found by their words only. On a read-only store, Repair
// is ErrReadOnly.
//
// It is for the Store that Open returned; a view gets ErrForbidden.
func (h *Upkeep) Check(ctx context.Context, options *CheckOptions) (_ CheckReport, err error) {
	defer setGoNames[CheckOptions](&err)
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
			"the store is open read-only, so it cannot be repaired; open it for writing, or only check it")
	}
	if options.Accept && !options.Repair {
		return CheckReport{}, invalid("Accept", "{} is set without Repair; set both, or neither")
	}
	report, err := s.inspector(ctx).Check(ctx, options.Repair, options.Accept, progress)
	checked := checkReport(report)
	if back := s.restoredUserFindings(); len(back) > 0 {
		checked.OK, checked.Total, checked.Findings = false, checked.Total+len(back), append(checked.Findings, back...)
	}
	return checked, wrap(err)
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

// Health returns nil if the store works, or an error that describes the problem. ErrFull means that the disk is full:
// reading works, deleting works while [Options].Reserve lasts, and nothing new is stored. ErrReadOnly means that the
// disk has become read-only: reading works. Each call checks again, so the result becomes nil once the problem is gone.
//
// It is for the Store that Open returned; a view gets ErrForbidden.
func (h *Upkeep) Health(ctx context.Context) error {
	s, err := h.operator(ctx, "Health")
	if err != nil {
		return err
	}
	if err := s.db.Read(ctx, func(tx db.Tx) error { _, err := tx.Exec(`SELECT 1`); return err }); err != nil {
		return wrap(err)
	}
	err = s.db.Upkeep().Room(ctx)
	switch {
	case errors.Is(err, db.ErrFull):
		return &Error{Kind: KindFull,
			Message: fmt.Sprintf("the disk is full: nothing new is stored until there is space; reading and deleting work (%v)",
				err), Err: err}
	case errors.Is(err, db.ErrReadOnly):
		return &Error{Kind: KindReadOnly,
			Message: fmt.Sprintf("the disk is read-only: nothing is stored or deleted; reading works (%v)", err), Err: err}
	}
	return wrap(err)
}

// Problem describes a problem of a store that can be read.
type Problem struct {
	Kind    ProblemKind `json:"kind"`
	Message string      `json:"message"` // for the operator: it may hold paths, addresses and texts of other services
}

// ProblemKind is a kind of [Problem]. It reveals nothing about the machine, so it can be shown to every user.
type ProblemKind string

// The values of [ProblemKind].
const (
	ProblemDiskFull     ProblemKind = "disk_full"      // nothing new is stored; reading and deleting work
	ProblemDiskReadOnly ProblemKind = "disk_read_only" // nothing is stored or deleted; reading works
	ProblemEmbedder     ProblemKind = "embedder_down"  // new memories are found by words only, until it works again
	ProblemIndexBehind  ProblemKind = "index_behind"   // searches are slower until the index is loaded again
)

// ProblemKinds returns all kinds.
func ProblemKinds() []ProblemKind {
	return []ProblemKind{ProblemDiskFull, ProblemDiskReadOnly, ProblemEmbedder, ProblemIndexBehind}
}

// Problems returns the problems of a store that can be read; never nil without an error. An error means that the
// database cannot be read. A larger store does not make it slower, so it can be called every few seconds.
//
// It is for the Store that Open returned; a view gets ErrForbidden.
func (h *Upkeep) Problems(ctx context.Context) ([]Problem, error) {
	s, err := h.operator(ctx, "Problems")
	if err != nil {
		return nil, err
	}
	all := []Problem{}
	switch err := h.Health(ctx); {
	case errors.Is(err, ErrFull):
		all = append(all, Problem{ProblemDiskFull, err.Error()})
	case errors.Is(err, ErrReadOnly):
		all = append(all, Problem{ProblemDiskReadOnly, err.Error()})
	case err != nil:
		return nil, err
	}
	if failure := s.worker.LastError(); failure != "" {
		all = append(all, Problem{ProblemEmbedder, "texts cannot be embedded: " + failure})
	}
	index, err := s.index.Counts(ctx)
	if err != nil {
		return nil, wrap(err)
	}
	if index.Behind() {
		all = append(all, Problem{ProblemIndexBehind, fmt.Sprintf(
			"the search index is still loading: %d collections or projects, and %d memories of loaded ones",
			index.Wanted, index.Stale)})
	}
	return all, nil
}

// maintain lets the engine do its own work in the background.
func (s *shared) maintain(ctx context.Context, wait bool) error {
	engine, able := s.engine.(db.Maintainer)
	if !able {
		return nil
	}
	return engine.Maintain(ctx, wait)
}

// lookForTraces is how often the traces of single permanent deletions are removed, which takes longer than the rest.
const lookForTraces = time.Hour

// tidy does the periodic work: it erases expired memories and trash entries, applies the rules for how long memories
// stay, and removes the traces of erased data and the remains of files after crashes. Only the worker calls it.
func (s *shared) tidy(ctx context.Context) {
	var erased, expired int
	e, err := s.deadline(ctx, false)
	if err == nil {
		erased, err = trash.EraseExpired(ctx, s.db, e.at)
	}
	if err == nil {
		expired, err = trash.EraseMemoriesExpired(ctx, s.db, e.at)
	}
	if err == nil {
		var retained trash.Retained
		retained, err = s.keeper().Remove(ctx, e.at)
		expired += retained.Deleted
	}
	if now := s.erased.Swap(false); err == nil && (now || erased+expired > 0 || time.Since(s.scrubbed) > lookForTraces) {
		err = s.scrub(ctx)
		s.scrubbed = time.Now()
	}
	if err != nil {
		s.erased.Store(true) // the next time tries again
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, db.ErrClosed) {
		s.log.Warn("could not erase deleted data yet", "error", err)
	}
	if _, err := s.purgeFiles(ctx, s.clock()); err != nil && ctx.Err() == nil {
		s.log.Warn("could not remove the remains of unfinished files", "error", err)
	}
	_ = s.removeObjects(ctx, math.MaxInt) // logged; the next time tries again
	if _, err := s.ring.FinishDeletions(ctx, keyring.Owners(ctx, s.db)); err != nil && ctx.Err() == nil {
		s.log.Warn("could not erase the keys of deleted users yet", "error", err)
	}
	if err := s.ring.Note(ctx, s.db); err != nil && ctx.Err() == nil && !errors.Is(err, db.ErrClosed) {
		s.log.Warn("could not record the number of user keys in the store", "error", err)
	}
	err = s.index.Persist(ctx, false)
	if err != nil && ctx.Err() == nil && !errors.Is(err, db.ErrClosed) && !errors.Is(err, db.ErrBusy) {
		s.log.Warn("could not store the search index; the next start reads the texts instead", "error", err)
	}
	err = s.maintain(ctx, false)
	if err != nil && ctx.Err() == nil && !errors.Is(err, db.ErrClosed) && !errors.Is(err, db.ErrBusy) {
		s.log.Warn("could not update the database's vector index", "error", err)
	}
}

// Runtime holds numbers about a store's work in this process, counted since it was opened.
type Runtime struct {
	IndexBytes      int64 `json:"index_bytes"`      // memory of the search index, about
	IndexLimit      int64 `json:"index_limit"`      // Options.IndexMemory; negative: no index in memory
	IndexPartitions int   `json:"index_partitions"` // parts that it holds: a collection, or its memories in a project
	IndexStale      int   `json:"index_stale"`      // memories to be read again
	IndexWanted     int   `json:"index_wanted"`     // parts to be loaded

	SearchesInMemory     uint64 `json:"searches_in_memory"`     // by the index
	SearchesWithSegments uint64 `json:"searches_with_segments"` // likewise, after loading stored parts of it
	SearchesInDatabase   uint64 `json:"searches_in_database"`   // without the index
	IndexEvictions       uint64 `json:"index_evictions"`        // parts dropped to make room

	Writing int `json:"writing"` // writes that run or wait now
}

// Runtime returns numbers about the store's work in this process, from memory.
//
// It is for the Store that Open returned; a view gets ErrForbidden.
func (h *Upkeep) Runtime(ctx context.Context) (Runtime, error) {
	s, err := h.operator(ctx, "Runtime")
	if err == nil {
		err = s.readStore(ctx, func(db.Tx) error { return nil }) // fails on a closed store
	}
	if err != nil {
		return Runtime{}, err
	}
	n, err := s.index.Counts(ctx)
	return Runtime{IndexBytes: n.Bytes, IndexLimit: n.Limit, IndexPartitions: n.Partitions, IndexStale: n.Stale,
		IndexWanted: n.Wanted, SearchesInMemory: n.InMemory, SearchesWithSegments: n.WithSegments,
		SearchesInDatabase: n.InDatabase, IndexEvictions: n.Evictions, Writing: s.db.Writing()}, wrap(err)
}

// Stats holds numbers about a whole store.
type Stats struct {
	// as many as [Accounts.Users] returns in all namespaces: users with an account or with anything in the store
	Users       int `json:"users"`
	Collections int `json:"collections"`
	Projects    int `json:"projects"`
	Memories    int `json:"memories"`
	Passages    int `json:"passages"`  // the searched units: a long memory has several
	Revisions   int `json:"revisions"` // past versions of memories
	Files       int `json:"files"`

	FileBytes     int64 `json:"file_bytes"`     // of all uploaded files
	Objects       int   `json:"objects"`        // chunks of files in object storage, those of the trash included
	ObjectBytes   int64 `json:"object_bytes"`   // of these
	GoneObjects   int   `json:"gone_objects"`   // no longer needed, or never finished, and not deleted yet
	DatabaseBytes int64 `json:"database_bytes"` // the store's file; in PostgreSQL its tables and indexes
	FreeBytes     int64 `json:"free_bytes"`     // free for new content; Compact shortens the file by them; in PostgreSQL 0
	LogBytes      int64 `json:"log_bytes"`      // the write-ahead log beside a file; in PostgreSQL 0

	LostActivity int `json:"lost_activity"` // calls that this handle could not record; see RecordActivity

	// Embedding is the state of the vectors of all users.
	Embedding EmbeddingStatus `json:"embedding"`
}

// Stats returns numbers about the whole store. It is for the Store that Open returned; a view gets ErrForbidden.
func (h *Upkeep) Stats(ctx context.Context) (Stats, error) {
	s, err := h.operator(ctx, "Stats")
	if err != nil {
		return Stats{}, err
	}
	st := Stats{LostActivity: s.activity.Lost()}
	err = s.read(ctx, func(tx db.Tx, _ viewer) error {
		err := tx.QueryRow(`SELECT (SELECT count(*) FROM users u WHERE `+listed+
			`), (SELECT count(*) FROM collection WHERE name <> ''), (SELECT count(*) FROM project),
				(SELECT coalesce(sum(memories), 0) FROM partition WHERE id NOT IN (`+kernel.TextPartitions+`)),
				(SELECT coalesce(sum(passages), 0) FROM partition),
				(SELECT count(*) FROM memory_revision), count(*), coalesce(sum(size), 0) FROM file WHERE state = 'stored'`).
			Scan(&st.Users, &st.Collections, &st.Projects, &st.Memories, &st.Passages, &st.Revisions, &st.Files, &st.FileBytes)
		if err != nil {
			return err
		}
		if err := tx.QueryRow(`SELECT count(*) FILTER (WHERE state = 'stored'),
			coalesce(sum(size) FILTER (WHERE state = 'stored'), 0), count(*) FILTER (WHERE state = 'leaving')
			FROM file_object`).Scan(&st.Objects, &st.ObjectBytes, &st.GoneObjects); err != nil {
			return err
		}
		size, err := s.db.Upkeep().Size(tx)
		if err != nil {
			return err
		}
		st.DatabaseBytes, st.FreeBytes, st.LogBytes = size.Database, size.Free, size.Log
		all, err := db.Column[int64](tx, `SELECT id FROM partition`)
		if err != nil {
			return err
		}
		return s.embeddingStatus(tx, db.List(all), &st.Embedding)
	})
	return st, err
}
