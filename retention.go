package souvenir

import (
	"context"
	"math"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/records/audit"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
	"github.com/souvenir-ai/souvenir/internal/trash"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// How long data stays: rules for the memories of a collection or a project, and Purge, which deletes what has expired.
// The worker does the same in the background; see upkeep.go.

// Retention is a rule for how long the memories of a collection, or in a project, stay after their last change. The
// zero value means no rule: they stay.
//
// The background worker moves them to the trash, a thousand at a time; [Upkeep.Purge] does the same at once. If both
// the collection and the project of a memory have a rule, the one that ends earlier counts. Rules, dos and don'ts,
// memories of event type IDENTITY and project-main stay, and so do files. Every change of a memory starts its time
// again, and so does [Trash.Restore] in a place with a rule.
type Retention struct {
	// After is the time since the last change, in whole seconds: 24 hours to 36,500 days. 0: there is no rule.
	After  time.Duration `json:"after"`
	Delete bool          `json:"delete"` // delete them for good, instead of moving them to the trash
}

// The bounds of [Retention].After.
const (
	MinRetention = valid.MinRetention // 24 hours
	MaxRetention = valid.MaxRetention // 36,500 days
)

func (r Retention) check() error {
	switch {
	case r.After == 0 && r.Delete:
		return invalid("retention", "{} deletes without an age; set how long memories stay, %s to %s, or omit it for no rule",
			MinRetention, MaxRetention)
	case r.After != 0 && (r.After < MinRetention || r.After > MaxRetention):
		return invalid("retention", "{} is %s after the last change; expected %s to %s, or 0 for no rule", r.After,
			MinRetention, MaxRetention)
	}
	return nil
}

// stored returns the rule in its stored form, and retentionOf converts it back.
func (r Retention) stored() trash.Retention {
	return trash.Retention{After: r.After.Truncate(time.Second).Microseconds(), Deletes: r.Delete}
}

func retentionOf(after int64, deletes bool) Retention {
	return Retention{time.Duration(after) * time.Microsecond, deletes}
}

// details are the details for the audit log.
func (r Retention) details() audit.Details {
	return audit.Details{"seconds": int64(r.After / time.Second), "delete": r.Delete}
}

// setRetention sets the rule of a collection or a project (kind), unless it already has this one.
func (s *Store) setRetention(ctx context.Context, tx db.Tx, kind string, row int64, r Retention, object string) error {
	was, err := trash.ReadRetention(tx, kind, row)
	if err != nil || was == r.stored() {
		return err
	}
	return s.note(ctx, tx, trash.SetRetention(tx, kind, row, r.stored()),
		event{"retention.set", kind, object, r.details()})
}

// DueQuery asks how many memories a rule would remove now.
type DueQuery struct {
	Collection string     // the collection, one of the caller's own; empty if a project is given
	Project    ProjectRef // the project; one of the two is needed
	Retention  Retention  // the rule; the zero value means the one that the place has
}

// CountDue returns how many memories of a collection or a project a rule would remove now: memories that have not
// changed for its time. The caller must be allowed to change the rule.
func (h *Insights) CountDue(ctx context.Context, q DueQuery) (n int, err error) {
	defer setGoNames[ProjectRef](&err)
	defer setGoNames[DueQuery](&err)
	s := h.s
	if err := q.check(); err != nil {
		return 0, err
	}
	err = s.read(ctx, func(tx db.Tx, v viewer) (err error) {
		kind, condition, row := "collection", `p.collection_id = ?`, int64(0)
		if q.Collection != "" {
			row, err = s.writableCollection(tx, v, q.Collection)
		} else {
			var p naming.Project
			p, err = naming.Managed(tx, v, q.Project.ID, q.Project.Name)
			kind, condition, row = "project", `p.project_id = ?`, p.Row
		}
		if err != nil {
			return err
		}
		rule := q.Retention.stored()
		if rule.After == 0 {
			if rule, err = trash.ReadRetention(tx, kind, row); err != nil || rule.After == 0 {
				n = 0
				return err
			}
		}
		n, err = trash.CountDue(tx, s.now()-rule.After, condition, row)
		return err
	})
	return n, err
}

func (q DueQuery) check() error {
	if err := q.Retention.check(); err != nil {
		return err
	}
	if q.Collection == "" {
		return q.Project.check()
	}
	if err := valid.Project(q.Project.ID, q.Project.Name); err != nil {
		return err
	}
	if q.Project != (ProjectRef{}) {
		return invalid("collection_name", "{} %s is given together with a project; give one of them", show(q.Collection))
	}
	return valid.Name("collection_name", q.Collection)
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
	defer setGoNames[PurgeOptions](&err)
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
	err = s.purge(ctx, e.at, o, &p)
	if err != nil && p == (PurgeReport{HeldUntil: p.HeldUntil}) { // nothing is gone
		return p, wrap(err)
	}
	details := p.details(o)
	details["complete"] = err == nil
	_ = s.noteAlone(ctx, nil, event{"purge", "store", "", details}) // it reports a failure to the log itself
	return p, wrap(err)
}

// purge deletes expired data, up to a time, and the traces of deleted data. After an error the report counts the
// committed deletions.
func (s *Store) purge(ctx context.Context, until int64, o PurgeOptions, p *PurgeReport) error {
	err := s.purgeExpired(ctx, until, p)
	if err == nil && o.KeepRevisions > 0 {
		err = s.purgeRevisions(ctx, o.KeepRevisions, p)
	}
	if err == nil {
		err = s.scrub(ctx)
	}
	if err == nil {
		_, err = s.ring.FinishDeletions(ctx, keyring.Owners(ctx, s.db))
	}
	if err == nil {
		p.Objects, err = s.objects.Remove(ctx, math.MaxInt)
	}
	return err
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

// noteLastUse records when a store without settings was last used. What has expired since, such as the trash of an old
// file that was recovered, then stays for a day, as in a store that was not open for long.
func noteLastUse(tx db.Tx, now int64) error {
	var last int64
	err := tx.QueryRow(`SELECT coalesce(max(at), 0) FROM (SELECT max(updated_at) AS at FROM memory WHERE updated_at <= ?1
		UNION ALL SELECT max(deleted_at) FROM trash WHERE deleted_at <= ?1
		UNION ALL SELECT max(started_at) FROM activity WHERE started_at <= ?1) newest`, now).Scan(&last)
	if err != nil || last == 0 {
		return err
	}
	return kernel.SetSetting(tx, settingClock, last)
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
	p.Retained, p.Memories = retained.Trashed, p.Memories+retained.Deleted
	if err != nil {
		return err
	}
	if p.Trash, err = trash.EraseExpired(ctx, s.db, now); err != nil {
		return err
	}
	if p.Files, err = s.purgeFiles(ctx, s.clock()); err != nil {
		return err
	}
	if p.Activity, err = s.purgeActivities(ctx, now); err != nil {
		return err
	}
	before := *p
	err = s.db.Write(ctx, func(tx db.Tx) error {
		tokens, err := s.purgeTokens(tx, now)
		if err != nil {
			return err
		}
		signIns, err := purgeSignIns(tx, now)
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
		p.Tokens, p.SignIns, p.Invitations = int(tokens), int(signIns), int(invitations+toProjects)
		rows, err := oauthRows(tx)
		if err != nil {
			return err
		}
		if err := purgeOAuth(tx, now); err != nil {
			return err
		}
		after, err := oauthRows(tx)
		p.OAuth = rows - after
		return err
	})
	if err != nil {
		*p = before
	}
	return err
}

// keeper returns a keeper that removes memories by the rules of their places.
func (s *shared) keeper() *trash.Keeper {
	return &trash.Keeper{Store: s.db, NewID: s.newID, Keep: func(tx db.Tx) int64 { return s.keepTrash(tx).Microseconds() }}
}

// purgeInterval is how often a process purges what belongs to OAuth beside other writes.
const purgeInterval = time.Hour

// purgeNowAndThen purges occasionally, as part of a write that is rare anyway. It sets at to the time if it has purged,
// else to 0; the caller passes this on to [shared.purgedAt].
func (s *shared) purgeNowAndThen(tx db.Tx, at *int64) error {
	*at = 0
	now := s.now()
	if now-s.oauth.purged.Load() < purgeInterval.Microseconds() {
		return nil
	}
	*at = now
	return purgeOAuth(tx, now)
}

// purgedAt notes when the process has purged, once the write is over with an error or without: an undone one has not.
func (s *shared) purgedAt(at int64, err error) {
	if at != 0 && err == nil {
		s.oauth.purged.Store(at)
	}
}

// purgeOAuth deletes what can never be valid again of the clients, grants, tokens and keys of OAuth.
func purgeOAuth(tx db.Tx, now int64) error {
	for _, purge := range []func(db.Tx, int64) error{purgeRefreshTokens, purgeGrants, purgeClients, purgeKeys} {
		if err := purge(tx, now); err != nil {
			return err
		}
	}
	return nil
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
