package souvenir

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/files/objects"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/records/audit"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
	"github.com/souvenir-ai/souvenir/internal/trash"
)

// Upkeep maintains a store: backup, check, export, import, statistics, the activity log, embeddings and indexes. Get it
// with [Store.Upkeep].
//
// It is for the Store that [Open] returned. On a view all methods return ErrForbidden, except Export,
// GetEmbeddingStatus and WaitEmbedded, which are limited to the data of the view's user.
type Upkeep struct {
	handle
}

// Upkeep returns the methods that maintain the store.
func (s *Store) Upkeep() *Upkeep {
	return &Upkeep{handle{s.handled("Upkeep")}}
}

// PurgeOptions select what [Upkeep.Purge] deletes besides expired data. Nil means the zero value.
type PurgeOptions struct {
	// KeepRevisions is how many past versions of each memory to keep, the newest ones. Zero keeps all.
	KeepRevisions int

	// TrustClock deletes everything that has expired according to the clock, even if the clock is far past the time when
	// the store was last used.
	TrustClock bool
}

// PurgeReport counts what [Upkeep.Purge] has deleted.
type PurgeReport struct {
	Revisions   int `json:"revisions"`   // past versions of memories
	Memories    int `json:"memories"`    // expired, or deleted by a [Retention]
	Retained    int `json:"retained"`    // memories that a [Retention] has moved to the trash
	Trash       int `json:"trash"`       // entries that can no longer be restored
	Files       int `json:"files"`       // incomplete uploads and partly deleted files
	Tokens      int `json:"tokens"`      // revoked or expired long ago
	SignIns     int `json:"sessions"`    // expired
	Invitations int `json:"invitations"` // used or expired long ago
	Activity    int `json:"activity"`    // recorded calls, too old or too many
	OAuth       int `json:"oauth"`       // rows of expired codes, tokens, grants, clients and keys
	Objects     int `json:"objects"`     // in object storage, of files that are gone

	// HeldUntil is not zero if expired data was kept, because the clock is far past the time when the store was last used.
	// From HeldUntil on, a purge deletes it if the clock still agrees.
	HeldUntil time.Time `json:"held_until,omitzero"`
}

// Purge deletes data that is no longer needed: expired memories, expired entries of the trash, uploads without progress
// for 24 hours, expired sign-ins, recorded calls that are too old or too many, and invitations, tokens and OAuth state
// used or expired long ago; and, if asked to, old revisions. It works in short transactions, so that other writers get
// their turn. No trace of data erased now or since the last purge is left in the file and its log, unless readers hold
// the log all the time. Objects of files that are gone are deleted; while the object storage cannot be reached, Purge
// does the rest and returns ErrBusy. Free space stays in the file, for new content, until [Upkeep.Compact].
//
// A clock that is a year ahead must not empty the trash. So if the clock is more than two days past the last purge, or
// the last check by the background worker, nothing that expires by time is deleted until the clock has stayed ahead for
// a day, or TrustClock is set; the report says so.
//
// It is for the Store that Open returned; a view gets ErrForbidden. On a read-only store it is ErrReadOnly.
func (h *Upkeep) Purge(ctx context.Context, options *PurgeOptions) (_ PurgeReport, err error) {
	defer inGo[PurgeOptions](&err)
	s, err := h.operator(ctx, "Purge")
	if err != nil {
		return PurgeReport{}, err
	}
	ctx = db.Freeing(ctx)
	var o PurgeOptions
	if options != nil {
		o = *options
	}
	if o.KeepRevisions < 0 {
		return PurgeReport{}, invalid("KeepRevisions", "{} is %d; expected 1 or more, or 0 to keep all",
			o.KeepRevisions)
	}
	var p PurgeReport
	e, err := s.deadline(ctx, o.TrustClock)
	if err != nil {
		return p, wrap(err)
	}
	if e.ahead != 0 {
		p.HeldUntil = kernel.ToTime(e.ahead + leapLasts.Microseconds())
	}
	if err := s.purgeExpired(ctx, e.at, &p); err != nil {
		return p, wrap(err)
	}
	if o.KeepRevisions > 0 {
		if err := s.purgeRevisions(ctx, o.KeepRevisions, &p); err != nil {
			return p, wrap(err)
		}
	}
	if err := s.scrub(ctx); err != nil {
		return p, wrap(err)
	}
	if _, err := s.ring.Settle(ctx, keyring.Owners(ctx, s.db)); err != nil {
		return p, wrap(err)
	}
	p.Objects, err = s.objects.Remove(ctx, math.MaxInt)
	return p, s.noteAlone(ctx, wrap(err), event{"purge", "store", "", p.details(o)})
}

// details returns the counts for the audit log.
func (p PurgeReport) details(o PurgeOptions) audit.Details {
	return audit.Details{"keep_revisions": o.KeepRevisions, "trust_clock": o.TrustClock, "revisions": p.Revisions,
		"memories": p.Memories, "retained": p.Retained, "trash": p.Trash, "files": p.Files, "tokens": p.Tokens,
		"activity": p.Activity}
}

const (
	// settingClock is the time up to which upkeep has deleted expired data; settingAhead is the time since which the
	// clock has been far past that, 0 if it is not.
	settingClock = "clock_seen"
	settingAhead = "clock_ahead"

	maxLeap   = 48 * time.Hour // by which the clock may exceed the last time seen
	leapLasts = 24 * time.Hour // for which it must stay ahead to be trusted
	noteEvery = time.Hour      // interval between records of the time
)

// deadline is the time up to which expired data may be deleted.
type deadline struct {
	at    int64 // now, or while the clock is not trusted, the last time seen
	ahead int64 // since when the clock has been far ahead; 0: it is not
}

// readDeadline compares the clock with the last time seen.
func (s *shared) readDeadline(tx db.Tx) (e deadline, seen int64, err error) {
	now := s.now()
	if seen, err = kernel.Setting(tx, settingClock); err != nil {
		return e, 0, err
	}
	last := seen
	if last == 0 { // a new file, or one from before this was recorded
		if err := tx.QueryRow(`SELECT coalesce(max(at), 0) FROM (SELECT (SELECT deleted_at FROM trash
			ORDER BY id DESC LIMIT 1) AS at
			UNION ALL SELECT (SELECT started_at FROM activity ORDER BY id DESC LIMIT 1)) newest`).Scan(&last); err != nil {
			return e, 0, err
		}
	}
	ahead, err := kernel.Setting(tx, settingAhead)
	switch {
	case err != nil:
		return e, 0, err
	case last == 0 || now <= last+maxLeap.Microseconds() || ahead != 0 && now >= ahead+leapLasts.Microseconds():
		return deadline{at: now}, seen, nil
	case ahead == 0 || now < ahead:
		ahead = now
	}
	return deadline{at: last, ahead: ahead}, seen, nil
}

// deadline returns the time up to which expired data may be deleted, and records the time for the next call.
func (s *shared) deadline(ctx context.Context, trust bool) (e deadline, err error) {
	note := trust
	look := func(tx db.Tx) error {
		var seen, ahead int64
		if e, seen, err = s.readDeadline(tx); err != nil {
			return err
		}
		if trust {
			e = deadline{at: s.now()}
		}
		if ahead, err = kernel.Setting(tx, settingAhead); err != nil {
			return err
		}
		passed := max(e.at-seen, seen-e.at)
		note = note || e.ahead != ahead || e.ahead == 0 && passed >= noteEvery.Microseconds()
		return nil
	}
	if err := s.db.Read(ctx, look); err != nil || !note {
		return e, err
	}
	err = s.db.Write(db.Freeing(ctx), func(tx db.Tx) error {
		if err := look(tx); err != nil {
			return err
		}
		if e.ahead == 0 {
			if err := kernel.SetSetting(tx, settingClock, e.at); err != nil {
				return err
			}
		}
		return kernel.SetSetting(tx, settingAhead, e.ahead)
	})
	if err == nil && e.ahead != 0 {
		s.log.Warn("the clock is far ahead of the last use of this store; expired data is not deleted until "+
			"the clock has stayed there for a day",
			"last used", kernel.ToTime(e.at), "now", kernel.ToTime(s.now()), "until",
			kernel.ToTime(e.ahead+leapLasts.Microseconds()))
	}
	return e, err
}

// purgeExpired deletes everything that has expired by a time, regardless of the options.
func (s *Store) purgeExpired(ctx context.Context, now int64, p *PurgeReport) error {
	var err error
	if p.Memories, err = trash.EraseMemoriesExpired(ctx, s.db, now); err != nil {
		return err
	}
	retained, err := s.keeper().Remove(ctx, now)
	if err != nil {
		return err
	}
	p.Retained, p.Memories = retained.Trashed, p.Memories+retained.Deleted
	if p.Trash, err = trash.EraseExpired(ctx, s.db, now); err != nil {
		return err
	}
	if p.Files, err = s.purgeFiles(ctx, s.clock()); err != nil {
		return err
	}
	if p.Activity, err = s.purgeActivities(ctx, now); err != nil {
		return err
	}
	return s.db.Write(ctx, func(tx db.Tx) error {
		tokens, err := s.purgeTokens(tx, now)
		if err != nil {
			return err
		}
		sessions, err := purgeSignIns(tx, now)
		if err != nil {
			return err
		}
		invitations, err := purgeInvitations(tx, now)
		if err != nil {
			return err
		}
		toProjects, err := purgeProjectInvitations(tx, now)
		if err != nil {
			return err
		}
		p.Tokens, p.SignIns, p.Invitations = int(tokens), int(sessions), int(invitations+toProjects)
		before, err := oauthRows(tx)
		if err != nil {
			return err
		}
		if err := purgeOAuth(tx, now); err != nil {
			return err
		}
		after, err := oauthRows(tx)
		p.OAuth = before - after
		return err
	})
}

// oauthRows counts the rows in the tables that purgeOAuth deletes from.
func oauthRows(tx db.Tx) (n int, err error) {
	err = tx.QueryRow(`SELECT (SELECT count(*) FROM oauth_code) + (SELECT count(*) FROM oauth_token) + (SELECT count(*)
		FROM oauth_grant)
		+ (SELECT count(*) FROM oauth_client) + (SELECT count(*) FROM signing_key)`).Scan(&n)
	return n, err
}

// purgeRevisions deletes all but the newest past versions of each memory.
func (s *Store) purgeRevisions(ctx context.Context, keep int, p *PurgeReport) error {
	const batch = 100
	for after := int64(0); ; {
		var memories []int64
		deleted := 0
		err := s.db.Write(ctx, func(tx db.Tx) (err error) {
			deleted = 0
			if memories, err = db.Column[int64](tx, `SELECT memory_id FROM memory_revision WHERE memory_id > ?
				GROUP BY memory_id HAVING count(*) > ? ORDER BY memory_id LIMIT ?`, after, keep, batch); err != nil {
				return err
			}
			for _, m := range memories {
				r, err := tx.Exec(`DELETE FROM memory_revision WHERE memory_id = ?1 AND revision <=
					(SELECT revision FROM memory_revision WHERE memory_id = ?1 ORDER BY revision DESC LIMIT 1 OFFSET ?2)`, m, keep)
				if err != nil {
					return err
				}
				deleted += int(r.RowsAffected)
			}
			return nil
		})
		if err != nil {
			return err
		}
		p.Revisions += deleted
		if len(memories) < batch {
			return nil
		}
		after = memories[len(memories)-1]
	}
}

// Compact returns the free pages of the file to the system, by rewriting it. Searches and reads continue meanwhile;
// writes wait, including those of other processes. It needs room for two more copies of the file until it is done: one
// in the system's folder for temporary files, one in the log beside the file. If the context ends first, or a disk is
// full (ErrFull), nothing has changed.
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

// StoreIndex writes the search index of large collections and projects to the file (to the database, with PostgreSQL)
// and returns when that is done, so that the next process loads it in a fraction of the time that reading all texts
// takes. A store does this by itself, in the background, within half a minute or so; call StoreIndex at the end of a
// program that stores much and ends, such as an import. Parts that are up to date are not written again. It waits for
// another process that does the same, and returns ErrBusy if the store changes too fast.
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

// maintain lets the engine do its own work in the background.
func (s *shared) maintain(ctx context.Context, wait bool) error {
	engine, able := s.engine.(db.Maintainer)
	if !able {
		return nil
	}
	return engine.Maintain(ctx, wait)
}

// FileMove is the result of [Upkeep.MoveFiles].
type FileMove struct {
	Chunks  int   `json:"chunks"`  // moved
	Bytes   int64 `json:"bytes"`   // of them
	Damaged int   `json:"damaged"` // chunks that were not moved, because they are damaged
}

// MoveFiles moves the content of all files to a place, those in the trash included, in short transactions: others read
// and write meanwhile. Each chunk is compared with its hash. If it is interrupted, call it again: it moves the rest.
// Files that others store meanwhile go where their Options.NewFiles says. Progress receives the stage "move", in
// chunks; nil disables it.
//
// Space freed in the database is available for new content; [Upkeep.Compact] returns it to the system. Objects that are
// no longer needed are deleted in the background.
//
// It is for the Store that Open returned; a view gets ErrForbidden. On a read-only store it is ErrReadOnly.
func (h *Upkeep) MoveFiles(ctx context.Context, to FilePlace, progress Progress) (_ FileMove, err error) {
	defer inGo[struct{}](&err, "to", "to")
	s, err := h.operator(ctx, "MoveFiles")
	if err == nil {
		err = s.checkWritable()
	}
	some := false
	if err == nil {
		err = s.readStore(ctx, func(tx db.Tx) error {
			return tx.QueryRow(`SELECT EXISTS (SELECT 1 FROM file_chunk WHERE object IS NOT NULL)`).Scan(&some)
		})
	}
	if err == nil {
		err = s.options.checkPlace("to", to)
	}
	if err == nil && some && s.options.Objects == nil {
		err = invalid("to", "{} is %s, but there is no object storage to move from; set Options.Objects", show(string(to)))
	}
	if err != nil {
		return FileMove{}, err
	}
	moved, err := s.objects.Move(ctx, to, progress)
	return FileMove(moved), s.noteAlone(ctx, wrap(err),
		event{"files.move", "store", "", audit.Details{"to": to, "chunks": moved.Chunks, "damaged": moved.Damaged}})
}

// AdoptObjects makes this database the one that deletes objects in Options.Objects. Each database changes a mark there
// every few minutes, and deletes nothing if its original or a copy of it has changed the mark. Call AdoptObjects on a
// restored or copied database when the original is no longer in use.
//
// It is for the Store that Open returned; a view gets ErrForbidden. On a read-only store it is ErrReadOnly, without
// Options.Objects ErrInvalid, and ErrBusy if the storage does not answer.
func (h *Upkeep) AdoptObjects(ctx context.Context) (err error) {
	s, err := h.operator(ctx, "AdoptObjects")
	if err == nil {
		err = s.checkWritable()
	}
	if err == nil {
		err = s.readStore(ctx, func(db.Tx) error { return nil }) // unless the store is closed, or the call has ended
	}
	if err == nil && s.options.Objects == nil {
		err = invalid("", "there is no object storage to adopt; set Options.Objects")
	}
	if err != nil {
		return err
	}
	return s.noteAlone(ctx, wrap(s.objects.Adopt(ctx)), event{"files.adopt", "store", "", nil})
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
	if err != nil && ctx.Err() == nil && !errors.Is(err, db.ErrClosed) {
		s.log.Warn("could not erase deleted data yet", "error", err)
	}
	if _, err := s.purgeFiles(ctx, s.clock()); err != nil && ctx.Err() == nil {
		s.log.Warn("could not remove the remains of unfinished files", "error", err)
	}
	_ = s.removeObjects(ctx, math.MaxInt) // logged; the next time tries again
	if _, err := s.ring.Settle(ctx, keyring.Owners(ctx, s.db)); err != nil && ctx.Err() == nil {
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

// keeper returns a keeper that removes memories by the rules of their places.
func (s *shared) keeper() *trash.Keeper {
	return &trash.Keeper{Store: s.db, NewID: s.newID, Keep: func(tx db.Tx) int64 { return s.keepTrash(tx).Microseconds() }}
}

// objectsNow is how many objects an erasure deletes before it returns; the worker deletes the others.
const objectsNow = 2000

// removeObjects deletes the objects of files that are gone, up to a number of them.
func (s *shared) removeObjects(ctx context.Context, most int) error {
	_, err := s.objects.Remove(ctx, most)
	if err != nil && ctx.Err() == nil && !errors.Is(err, db.ErrClosed) && s.objects.Warn() {
		s.log.Warn("could not remove objects of deleted files yet", "error", objects.Cause(err))
	}
	return err
}

// purgeFiles removes files that crashes left behind: files that were being deleted, and files that were being stored
// and got no data since olderThan. A time within the last 24 hours counts as 24 hours ago: another process may still be
// storing them. It returns how many it removed.
func (s *shared) purgeFiles(ctx context.Context, olderThan time.Time) (int, error) {
	before := min(olderThan.UnixMicro(), s.now()-kernel.Abandoned.Microseconds())
	var rows []int64
	err := s.db.Read(ctx, func(tx db.Tx) (err error) {
		rows, err = db.Column[int64](tx,
			`SELECT id FROM file WHERE state IN ('arriving', 'leaving') AND (state = 'leaving' OR updated_at < ?)`, before)
		return err
	})
	if err != nil {
		return 0, wrap(err)
	}
	for i, row := range rows {
		if err := s.removeAbandoned(ctx, row, before); err != nil {
			return i, wrap(err)
		}
	}
	return len(rows), nil
}
