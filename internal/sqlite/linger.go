package sqlite

import (
	"cmp"
	"time"
)

// Callers that write again right after an answer come back after a little work of their own. A commit costs much the
// same for one caller as for many, so the caller with the turn lingers a little before the commit if fewer callers have
// joined than took part in the last one. If none comes, it does not linger before the next few commits.
const (
	mostLinger = 2 * time.Millisecond // and at most half the time that a commit takes
	mostSkips  = 64
)

// lingering is the wait for more callers before a commit. Its fields belong to the caller with the turn, except those
// that writer.mu guards.
type lingering struct {
	// end, guarded, ends the wait of the caller with the turn, which the next caller may take; nil: no caller waits. It
	// receives true if another caller has taken the turn, and false if one is in the queue.
	end chan bool

	known  int           // callers of the last commit, and those who came during it
	took   time.Duration // how long commits take, the latest counting most
	until  time.Time     // the end of the wait in the present transaction; zero: it has not begun
	skips  int           // how many further commits come without a wait
	missed int           // waits in vain since the last one that was not
	most   time.Duration // replaces mostLinger; 0: mostLinger
}

// expected reports whether the caller with the turn should wait for more before the commit.
func (w *writer) expected() bool {
	l := &w.linger
	if w.alone || len(w.members) >= l.known || l.skips > 0 || time.Since(w.began) >= maxGroupAge {
		return false
	}
	if l.until.IsZero() {
		l.until = time.Now().Add(min(l.took/2, cmp.Or(l.most, mostLinger)))
		return true
	}
	return time.Now().Before(l.until)
}

// begin begins a wait, with writer.mu held, and returns the channel that ends it and the longest time that it may take.
func (l *lingering) begin() (end chan bool, most time.Duration) {
	l.end = make(chan bool, 1)
	return l.end, time.Until(l.until)
}

// lingered waits until another caller takes the turn, and reports whether one has.
func (w *writer) lingered(end chan bool, most time.Duration) (taken bool) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case taken := <-end:
		return taken
	case <-timer.C:
		return !w.waitedInVain(end) && <-end
	}
}

// waitedInVain ends a wait, and reports whether no caller has come. A caller that has come may itself wait by now: that
// wait goes on.
func (w *writer) waitedInVain(end chan bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.linger.end != end {
		return false
	}
	w.linger.end = nil
	return true
}

// committed records a commit: how many callers shared it, how many came meanwhile, and how long it took.
func (l *lingering) committed(callers, waiting int, took time.Duration) {
	switch {
	case l.skips > 0:
		l.skips--
	case l.until.IsZero():
	case callers < l.known:
		l.missed++
		l.skips = min(1<<min(l.missed, 8)-1, mostSkips)
	default:
		l.missed = 0
	}
	l.known, l.until = callers+waiting, time.Time{}
	l.took += (took - l.took) / 4
}
