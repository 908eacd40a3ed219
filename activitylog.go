package souvenir

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir/internal/check"
	"github.com/souvenir-ai/souvenir/internal/db"
)

// activityLog holds calls that wait to be written. A call must not wait for the commit of its own log entry, so entries
// are written together, in the background.
type activityLog struct {
	s    *shared
	keep time.Duration // how long calls are kept
	most int           // how many

	mu      sync.Mutex
	waiting []waitingActivity
	dropped int           // calls that were lost because too many waited
	warned  int           // how many of them were logged
	room    chan struct{} // closed, and replaced, when something was written
	failing time.Time     // until when calls do not wait for room, since waiting was in vain; zero: they may wait
	closed  bool          // no longer accepts calls

	writing chan struct{} // holds one token: its holder writes
	some    chan struct{} // a call waits
	many    chan struct{} // a batch waits
	flushes int           // number of flushes so far; guarded by writing
	ctx     context.Context
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

// waitingActivity is a call that is not in the file yet.
type waitingActivity struct {
	NewActivity
	id string
}

const (
	activityBatch    = 256 // calls that are written at once
	activityRoom     = 32 << 10
	activityInterval = time.Second
	activityPatience = 5 * time.Second // with other writing processes
	activityWait     = 2 * time.Second // for room, when too many calls wait
	boundEvery       = 64              // batches between two counts of all calls
	purgeBatch       = 5000            // rows that one transaction deletes

	defaultKeepActivity = 30 * 24 * time.Hour
	defaultMaxActivity  = 100_000
)

func newActivityLog(s *shared, keep time.Duration, most int) *activityLog {
	l := &activityLog{s: s, keep: keep, most: most, room: make(chan struct{}), writing: make(chan struct{}, 1),
		some: make(chan struct{}, 1), many: make(chan struct{}, 1)}
	l.writing <- struct{}{}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// start begins to write in the background.
func (l *activityLog) start() {
	l.done.Add(1)
	go l.run()
}

// stop ends the background work and writes the remaining calls.
func (l *activityLog) stop() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel()
	l.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), activityPatience)
	defer cancel()
	if err := l.flush(ctx); err != nil {
		l.s.log.Warn("the last recorded calls could not be written", "error", err)
	}
}

// add accepts a call; it reports false when the store is closed. When too many calls wait, it waits briefly for the
// writer, so that a burst of calls loses none. If nothing is written in that time, it drops and counts the oldest.
func (l *activityLog) add(ctx context.Context, a waitingActivity) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= activityRoom && !l.closed && time.Now().After(l.failing) {
		l.waitForRoom(ctx)
	}
	if l.closed {
		return false
	}
	if len(l.waiting) >= activityRoom { // in steps, since moving the rest takes time
		l.dropped += activityBatch
		l.waiting = append(l.waiting[:0], l.waiting[activityBatch:]...)
	}
	l.waiting = append(l.waiting, a)
	switch len(l.waiting) {
	case 1:
		signal(l.some)
	case activityBatch:
		signal(l.many)
	}
	return true
}

// waitForRoom waits until a batch was written, and releases the lock meanwhile.
func (l *activityLog) waitForRoom(ctx context.Context) {
	timer := time.NewTimer(activityWait)
	defer timer.Stop()
	for len(l.waiting) >= activityRoom && !l.closed {
		room := l.room
		signal(l.many)
		signal(l.some)
		l.mu.Unlock()
		ended := false
		select {
		case <-room:
		case <-ctx.Done():
			ended = true
		case <-timer.C:
			ended = true
		}
		l.mu.Lock()
		if ended {
			if ctx.Err() == nil && len(l.waiting) >= activityRoom {
				l.failing = time.Now().Add(activityPatience)
			}
			return
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (l *activityLog) run() {
	defer l.done.Done()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-l.some:
		}
		timer := time.NewTimer(activityInterval)
		select {
		case <-l.ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		case <-l.many:
			timer.Stop()
		}
		ctx, cancel := context.WithTimeout(l.ctx, activityPatience)
		err := l.flush(ctx)
		cancel()
		if err != nil && l.ctx.Err() == nil {
			l.s.log.Warn("recorded calls could not be written; trying again", "error", err)
			signal(l.some)
		}
	}
}

// flush writes all calls that were waiting when it began.
func (l *activityLog) flush(ctx context.Context) error {
	l.mu.Lock()
	left := len(l.waiting)
	l.mu.Unlock()
	if left == 0 {
		return ctx.Err()
	}
	select {
	case <-l.writing:
		defer func() { l.writing <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for left > 0 {
		n, err := l.writeBatch(ctx)
		if err != nil || n == 0 {
			return err
		}
		left -= n
	}
	l.warn()
	return nil
}

// warn logs how many calls were lost since the last warning.
func (l *activityLog) warn() {
	l.mu.Lock()
	lost := l.dropped - l.warned
	l.warned = l.dropped
	l.mu.Unlock()
	if lost > 0 {
		l.s.log.Warn("calls were not recorded, because the file could not be written to in time", "calls", lost)
	}
}

// lost is how many calls were not recorded since the store was opened.
func (l *activityLog) lost() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped
}

// writeBatch writes some calls and returns how many. Calls that could not be written wait again, at the front.
func (l *activityLog) writeBatch(ctx context.Context) (int, error) {
	l.mu.Lock()
	n := min(len(l.waiting), activityBatch)
	batch := append([]waitingActivity(nil), l.waiting[:n]...)
	l.waiting = append(l.waiting[:0], l.waiting[n:]...)
	clear(l.waiting[len(l.waiting):cap(l.waiting)])
	l.mu.Unlock()
	if n == 0 {
		return 0, nil
	}
	bound := l.flushes%boundEvery == 0
	err := l.s.db.Write(ctx, func(tx db.Tx) error {
		projects := activityProjects{s: l.s, tx: tx, known: map[string]any{}}
		for _, a := range batch {
			if err := insertActivity(tx, a, &projects); err != nil {
				return err
			}
		}
		if !bound {
			return nil
		}
		e, _, err := l.s.readDeadline(tx)
		if err == nil {
			_, err = l.deleteOld(tx, e.at)
		}
		return err
	})
	if err == nil {
		l.flushes++
		l.mu.Lock()
		defer l.mu.Unlock()
		l.failing = time.Time{}
		close(l.room)
		l.room = make(chan struct{})
		return n, nil
	}
	if errors.Is(err, db.ErrClosed) {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(batch, l.waiting...)
	if over := len(l.waiting) - activityRoom; over > 0 {
		l.dropped += over
		l.waiting = l.waiting[over:]
	}
	return 0, err
}

func insertActivity(tx db.Tx, a waitingActivity, projects *activityProjects) error {
	var kind CredentialKind
	var id string
	switch p := a.Principal; {
	case p.TokenID != "":
		kind, id = CredentialToken, p.TokenID
	case p.ClientID != "":
		kind, id = CredentialClient, p.ClientID
	case p.SessionID != "":
		kind, id = CredentialSession, p.SessionID
	}
	user := a.Principal.Access.User
	if user == "" {
		user = LocalUser
	}
	if check.Name("user", user) != nil {
		return nil //nolint:nilerr // nobody can have such an id, so nobody could ask for it
	}
	project, err := projects.row(a.Principal.Access, a.Project)
	if err == nil && project == nil && a.Project == (ProjectRef{}) {
		project, err = projectOfSubject(tx, a)
	}
	if err != nil {
		return err
	}
	outcome := a.Outcome
	if check.Enum("outcome", outcome, Outcomes()) != nil || outcome == "" {
		outcome = OutcomeOK
		if a.Outcome != "" {
			outcome = outcomeOfKind(KindInternal)
		}
	}
	line := func(text string, most int) string { return cutLine(cleanUserAgent(text), most) }
	_, err = tx.Exec(`INSERT INTO activity (uid, user_uid, credential, credential_id, client, tool, action, project_id, memory, file, outcome, started_at, duration, bytes)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		a.id, user, string(kind), line(id, check.MaxName), cleanClient(a.Client), line(a.Tool, maxActivityTool),
		line(a.Action, maxActivityTool), project,
		line(a.MemoryID, check.MaxName), line(a.FileID, check.MaxName), string(outcome), a.StartedAt.UnixMicro(),
		max(a.Duration.Microseconds(), 0), max(a.Bytes, 0))
	return err
}

// projectOfSubject is the row of the project of a call's memory or file, if it still exists; nil: none.
func projectOfSubject(tx db.Tx, a waitingActivity) (any, error) {
	for _, subject := range []struct{ id, query string }{
		{a.MemoryID, `SELECT p.project_id FROM memory m JOIN partition p ON p.id = m.partition_id WHERE m.uid = ? AND p.project_id IS NOT NULL`},
		{a.FileID, `SELECT coalesce(p.project_id, f.project_id) FROM file f LEFT JOIN memory m ON m.id = f.memory_id LEFT JOIN partition p ON p.id = m.partition_id
			WHERE f.uid = ? AND coalesce(p.project_id, f.project_id) IS NOT NULL`},
	} {
		if subject.id == "" {
			continue
		}
		rows, err := db.Column[int64](tx, subject.query, subject.id)
		if err != nil || len(rows) > 0 {
			return firstOrNil(rows), err
		}
	}
	return nil, nil
}

func firstOrNil(rows []int64) any {
	if len(rows) == 0 {
		return nil
	}
	return rows[0]
}

// activityProjects finds the rows of the projects that calls named, if their callers can see them.
type activityProjects struct {
	s     *shared
	tx    db.Tx
	known map[string]any // row, or nil for none
}

func (p *activityProjects) row(access Access, ref ProjectRef) (any, error) {
	if ref == (ProjectRef{}) {
		return nil, nil
	}
	key := fmt.Sprintf("%q %t %q %q %q", access.User, access.Projects == nil, access.Projects, ref.ID, ref.Name)
	if row, known := p.known[key]; known {
		return row, nil
	}
	p.known[key] = nil
	if check.Project(ref.ID, ref.Name) != nil {
		return nil, nil //nolint:nilerr // there can be no such project
	}
	sc, err := (&Store{shared: p.s}).As(access).scope(p.tx)
	if err != nil {
		return nil, err
	}
	found, err := findProject(p.tx, sc, ref.ID, ref.Name)
	switch {
	case errors.Is(err, ErrInvalid): // it matches none, or two
		return nil, nil
	case err != nil:
		return nil, err
	case found != nil:
		p.known[key] = found.row
	}
	return p.known[key], nil
}

// deleteOld deletes a batch of the calls that are too old or too many, and counts them.
func (l *activityLog) deleteOld(tx db.Tx, now int64) (int64, error) {
	// The newest surplus call is found from the end of the table, by the primary key.
	result, err := tx.Exec(`DELETE FROM activity WHERE id IN (SELECT id FROM activity WHERE id <= (SELECT id FROM activity ORDER BY id DESC LIMIT 1 OFFSET ?1) LIMIT ?2)`, l.most, purgeBatch)
	if err != nil {
		return 0, err
	}
	old, err := tx.Exec(`DELETE FROM activity WHERE id IN (SELECT id FROM activity WHERE started_at < ? LIMIT ?)`,
		now-l.keep.Microseconds(), purgeBatch)
	return result.RowsAffected + old.RowsAffected, err
}

// purge deletes all calls that are too old or too many, and counts them.
func (l *activityLog) purge(ctx context.Context, now int64) (deleted int, err error) {
	for {
		var some int64
		err := l.s.db.Write(ctx, func(tx db.Tx) (err error) {
			some, err = l.deleteOld(tx, now)
			return err
		})
		deleted += int(some)
		if err != nil || some == 0 {
			return deleted, err
		}
	}
}
