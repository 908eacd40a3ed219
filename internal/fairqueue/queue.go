// Package fairqueue shares the processors among users: few calls run at a time, each user's calls wait in a line
// of their own, and the lines take turns. So a user with hundreds of calls delays the others by no more than the
// calls that are running.
//
// A call that waits for something other than a processor, such as the disk, releases its place while it waits; see
// [Pause].
package fairqueue

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"
)

// Limits bound a [Queue]. All must be at least 1.
type Limits struct {
	Running        int           // calls that run at once
	RunningPerUser int           // of these, one user's
	Begun          int           // calls that run or are paused
	BegunPerUser   int           // of these, one user's
	Waiting        int           // calls that wait to begin
	WaitingPerUser int           // of these, one user's
	Patience       time.Duration // how long a call waits to begin

	// Alone is how long all other users must have been idle until one user may run as many calls as all users may.
	// Zero: never.
	Alone time.Duration
}

// Refused is the error for a call that did not get its turn.
type Refused struct {
	Reason string
	After  time.Duration // when to try again
}

func (r *Refused) Error() string { return r.Reason }

// Queue lets calls begin. It is safe for concurrent use.
type Queue struct {
	limits Limits

	mu      sync.Mutex
	users   map[string]*user // users with calls, now or a moment ago
	turns   list.List        // of *user: those with waiting calls, in the order of their turns
	running int
	begun   int
	waiting int

	// A lone user may run more than RunningPerUser calls. The extra ones are borrowed, and do not block other users.
	borrowed       int
	latest, before asker       // the latest user to ask, and the latest other than that one
	wake           *time.Timer // starts calls that wait until their user is alone; nil: there are none
}

// asker is a user who asked for a turn, and when.
type asker struct {
	name string
	at   time.Time
}

// user is the line of one user.
type user struct {
	name            string
	running, begun  int
	resuming, fresh list.List     // of *call: begun calls go first
	turn            *list.Element // in Queue.turns; nil: nothing waits
}

// call waits for its turn.
type call struct {
	begins bool          // it has not begun yet
	ready  chan struct{} // closed when it may run
}

// New returns a queue.
func New(limits Limits) *Queue { return &Queue{limits: limits, users: map[string]*user{}} }

// Ticket is one call's place in a queue. Its methods may be called at any time, in any order, and from several
// goroutines; a nil ticket runs without waiting.
type Ticket struct {
	queue *Queue

	mu    sync.Mutex
	state state
	user  string
	depth int // of pauses
}

type state int

const (
	outside state = iota // not begun
	running
	paused
	left
)

// Ticket returns a ticket for a call.
func (q *Queue) Ticket() *Ticket { return &Ticket{queue: q} }

type ticketKey struct{}

// With returns a context that carries a ticket, for [Pause].
func With(ctx context.Context, t *Ticket) context.Context {
	return context.WithValue(ctx, ticketKey{}, t)
}

// Pause gives back the place of the call whose context this is, until the returned function is called: that waits
// for a new place, ahead of any call that has not begun. A context without a ticket, or with one that is not
// running, stays as it is.
func Pause(ctx context.Context) (resume func()) {
	t, _ := ctx.Value(ticketKey{}).(*Ticket)
	if t == nil || !t.pause() {
		return func() {}
	}
	return func() { t.resume(ctx) }
}

// Enter waits until the call of a user may run. The error is a [*Refused], or that of the context.
func (t *Ticket) Enter(ctx context.Context, name string) error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	entered := t.state != outside
	t.mu.Unlock()
	if entered {
		return nil
	}
	if err := t.queue.enter(ctx, name); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state, t.user = running, name
	return nil
}

// Leave ends the call.
func (t *Ticket) Leave() {
	if t == nil {
		return
	}
	t.mu.Lock()
	was := t.state
	t.state = left
	t.mu.Unlock()
	switch was {
	case running:
		t.queue.leave(t.user, true, true)
	case paused:
		t.queue.leave(t.user, false, true)
	case outside, left:
	}
}

// Turn waits for a turn of the user and ends it at once. It paces work that continues after a call or runs next to it,
// such as a stream. It is never refused.
func (t *Ticket) Turn(ctx context.Context, name string) {
	if t == nil || name == "" {
		return
	}
	t.mu.Lock()
	was := t.state
	t.mu.Unlock()
	if was == running || was == paused {
		return
	}
	if t.queue.again(ctx, name) {
		t.queue.leave(name, true, false)
	}
}

func (t *Ticket) pause() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch t.state {
	case running:
		t.state = paused
		t.depth = 1
		t.queue.leave(t.user, true, false)
		return true
	case paused:
		t.depth++
		return true
	}
	return false
}

func (t *Ticket) resume(ctx context.Context) {
	t.mu.Lock()
	t.depth--
	if t.state != paused || t.depth > 0 {
		t.mu.Unlock()
		return
	}
	t.mu.Unlock()
	runs := t.queue.again(ctx, t.user)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !runs: // its caller is gone, and it will end soon
	case t.state == paused && t.depth == 0:
		t.state = running
	default: // it has left in the meantime, or is paused again
		t.queue.leave(t.user, true, false)
	}
}

// enter waits for the turn of a call that has not begun.
func (q *Queue) enter(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	q.mu.Lock()
	u := q.userNamed(name)
	switch {
	case u.fresh.Len() >= q.limits.WaitingPerUser:
		q.forget(u)
		q.mu.Unlock()
		return q.refused("%d of your calls are already waiting, the maximum; wait for their answers",
			q.limits.WaitingPerUser)
	case q.waiting >= q.limits.Waiting:
		q.forget(u)
		q.mu.Unlock()
		return q.refused("the server is busy: %d calls are waiting, the maximum", q.limits.Waiting)
	}
	c := &call{begins: true, ready: make(chan struct{})}
	q.waiting++
	at := q.add(u, &u.fresh, c)
	q.start()
	q.mu.Unlock()

	select {
	case <-c.ready:
		return nil
	default:
	}
	timer := time.NewTimer(q.limits.Patience)
	defer timer.Stop()
	select {
	case <-c.ready:
		return nil
	case <-ctx.Done():
		if q.giveUp(u, &u.fresh, at, c) {
			return ctx.Err()
		}
		q.leave(name, true, true)
		return ctx.Err()
	case <-timer.C:
		if q.giveUp(u, &u.fresh, at, c) {
			return q.refused("the server is busy: the call has waited for its turn for %s", q.limits.Patience)
		}
		return nil // its turn came at the same moment
	}
}

// again waits for the turn of a call that has begun, and reports whether it came before the context ended.
func (q *Queue) again(ctx context.Context, name string) bool {
	q.mu.Lock()
	u := q.userNamed(name)
	c := &call{ready: make(chan struct{})}
	at := q.add(u, &u.resuming, c)
	q.start()
	q.mu.Unlock()
	select {
	case <-c.ready:
		return true
	case <-ctx.Done():
		return !q.giveUp(u, &u.resuming, at, c)
	}
}

func (q *Queue) refused(format string, args ...any) error {
	return &Refused{Reason: fmt.Sprintf(format, args...), After: max(time.Second, q.limits.Patience/4)}
}

func (q *Queue) userNamed(name string) *user {
	u := q.users[name]
	if u == nil {
		u = &user{name: name}
		q.users[name] = u
	}
	return u
}

// forget removes a user without calls.
func (q *Queue) forget(u *user) {
	if u.running == 0 && u.begun == 0 && u.turn == nil {
		delete(q.users, u.name)
	}
}

// add puts a call at the end of a line.
func (q *Queue) add(u *user, line *list.List, c *call) *list.Element {
	if u.name != q.latest.name {
		q.before = q.latest
	}
	q.latest = asker{u.name, time.Now()}
	if u.turn == nil {
		u.turn = q.turns.PushBack(u)
	}
	return line.PushBack(c)
}

// remove takes a call out of its line.
func (q *Queue) remove(u *user, line *list.List, at *list.Element) *call {
	c, _ := line.Remove(at).(*call)
	if c.begins {
		q.waiting--
	}
	if u.resuming.Len()+u.fresh.Len() == 0 {
		q.turns.Remove(u.turn)
		u.turn = nil
	}
	return c
}

// giveUp takes a call out of its line, unless its turn has come.
func (q *Queue) giveUp(u *user, line *list.List, at *list.Element, c *call) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-c.ready:
		return false
	default:
	}
	q.remove(u, line, at)
	q.forget(u)
	return true
}

// leave stops the running of a call, ends the call, or both.
func (q *Queue) leave(name string, runs, whole bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	u := q.userNamed(name)
	if runs {
		if u.running > q.limits.RunningPerUser {
			q.borrowed--
		}
		q.running--
		u.running--
	}
	if whole {
		q.begun--
		u.begun--
	}
	q.forget(u)
	q.start()
}

// start runs all calls that may run: of each user in turn, the call that has waited longest.
func (q *Queue) start() {
	for at := q.turns.Front(); at != nil && q.running-q.borrowed < q.limits.Running; {
		u, _ := at.Value.(*user)
		next := at.Next()
		line := q.lineOf(u)
		if line == nil {
			at = next
			continue
		}
		c := q.remove(u, line, line.Front())
		if u.running >= q.limits.RunningPerUser {
			q.borrowed++
		}
		q.running++
		u.running++
		if c.begins {
			q.begun++
			u.begun++
		}
		close(c.ready)
		if u.turn != nil {
			q.turns.MoveToBack(at)
			if next == nil && q.lineOf(u) != nil {
				next = at
			}
		}
		at = next
	}
}

// lineOf returns the line of a user from which the next call may run; nil for none.
func (q *Queue) lineOf(u *user) *list.List {
	switch {
	case u.running >= q.limits.RunningPerUser && !q.mayBorrow(u):
		return nil
	case u.resuming.Len() > 0:
		return &u.resuming
	case u.fresh.Len() > 0 && u.begun < q.limits.BegunPerUser && q.begun < q.limits.Begun:
		return &u.fresh
	}
	return nil
}

// mayBorrow reports whether a user may run more than RunningPerUser calls: no other user has a call that runs or waits,
// or had one lately.
func (q *Queue) mayBorrow(u *user) bool {
	if q.limits.Alone == 0 || q.running >= q.limits.Running || q.running > u.running || q.turns.Len() > 1 {
		return false
	}
	other := q.latest
	if other.name == u.name {
		other = q.before
	}
	left := q.limits.Alone - time.Since(other.at)
	if other.at.IsZero() || left <= 0 {
		return true
	}
	if q.wake == nil {
		q.wake = time.AfterFunc(left, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.wake = nil
			q.start()
		})
	}
	return false
}
