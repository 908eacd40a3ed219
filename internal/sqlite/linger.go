package sqlite

import (
	"cmp"
	"time"
)

// Callers that write again as soon as they are answered come back within the time of some of their own work. A commit
// costs much the same for one caller as for many, so the caller with the turn lingers a little before the commit if
// fewer callers have joined than took part in the last one. If that is in vain, it does not for the next few commits.
const (
	mostLinger = 2 * time.Millisecond // and at most half the time that a commit takes
	mostSkips  = 64
)

// lingering is the wait for more callers before a commit. Its fields belong to the caller with the turn, except those
// that writer.mu guards.
type lingering struct {
	// guarded: ends the wait of the caller with the turn, which the next one may take; nil: none waits.
	// true: another caller has taken the turn, false: it is in the queue
	end chan bool

	known  int           // callers of the last commit, and those who came during it
	took   time.Duration // how long commits take, the latest counting most
	until  time.Time     // the end of the wait in the present transaction; zero: it has not begun
	skips  int           // how many commits still come without a wait
	missed int           // waits in vain since one that was not
	most   time.Duration // in place of mostLinger; 0: that
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

// begin begins a wait, with writer.mu held, and returns what ends it and how long it may take.
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

// waitedInVain ends a wait, and reports whether no caller has come. One that has may wait itself by now: that goes on.
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
