package web

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// undoParameter says, in the address of a page, which step led there and can be taken back: a random name that the user
// who took the step was given, and that is worth nothing to others.
const undoParameter = "undo"

const (
	undoLife = time.Hour
	maxUndo  = 1000 // steps of all users that are remembered; the oldest are forgotten first

	maxUndoBytes = 64 << 20 // of what these hold
)

// undo remembers how to take back what was done on pages. It is in memory: what was done before a restart is taken back
// by the history of each memory, and by the trash.
type undo struct {
	mu    sync.Mutex
	steps map[string]Step
	bytes int64    // that the steps hold
	order []string // names of the steps, the oldest first
}

// Step is what somebody has done.
type Step struct {
	user  string // id of who has done it
	Text  string // what was done, as a sentence
	Path  string // of the page to be shown when it is taken back
	until time.Time
	Back  func(context.Context) error // nil: it cannot be taken back
	Bytes int64                       // that back holds
}

// remember keeps a step and returns its name.
func (u *undo) remember(step Step) string {
	name := rand.Text()
	if step.Bytes > maxUndoBytes { // for which all others' steps would be forgotten, and still there would be no room
		return name
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.steps == nil {
		u.steps = map[string]Step{}
	}
	u.steps[name] = step
	u.bytes += step.Bytes
	u.order = append(u.order, name)
	for len(u.order) > 0 && (len(u.steps) > maxUndo || len(u.order) > 2*maxUndo || u.bytes > maxUndoBytes ||
		time.Now().After(u.steps[u.order[0]].until)) {
		u.forget(u.order[0]) // one that was taken is gone already
		u.order = u.order[1:]
	}
	return name
}

// keep keeps a step that was to be taken back, and could not be.
func (u *undo) keep(name string, step Step) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.steps[name] = step
	u.bytes += step.Bytes
	if !slices.Contains(u.order, name) {
		u.order = append(u.order, name)
	}
}

func (u *undo) forget(name string) {
	u.bytes -= u.steps[name].Bytes
	delete(u.steps, name)
}

// step returns a step of a user that can still be taken back; take makes it the last time.
func (u *undo) step(user, name string, take bool) (Step, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	step, ok := u.steps[name]
	if !ok || step.user != user || time.Now().After(step.until) {
		return Step{}, false
	}
	if take {
		u.forget(name)
	}
	return step, true
}

// DoneWithUndo is where a form leads that has done something: a page that says what, and offers to take it back. The
// function that does so is called within an hour and at most once, with the context of a later request.
func (s *Site) DoneWithUndo(c request.Caller, path, text string, back func(context.Context) error) Redirect {
	return s.StepDone(c, path, Step{Text: text, Path: path, Back: back})
}

// StepDone remembers a step, and leads to a page that offers to take it back.
func (s *Site) StepDone(c request.Caller, path string, step Step) Redirect {
	step.user, step.until = c.User.ID, time.Now().Add(undoLife)
	name := s.undoing.remember(step)
	return Redirect(s.Path(withNotice(path, undoParameter, name)))
}

// takeBack takes a step back.
func (s *Site) takeBack(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	step, ok := s.undoing.step(c.User.ID, values.Get("step"), true)
	if !ok || step.Back == nil {
		return nil, &failure.Error{Status: http.StatusNotFound,
			Message: "this cannot be taken back any more: it was taken back already, was done more than an hour ago, or the server has started anew since; " +
				"the history of each memory has what it was before, and the trash what was deleted"}
	}
	// Half of a step is worse than all of it: a browser that goes away does not end it.
	if err := step.Back(context.WithoutCancel(r.Context())); err != nil {
		if status, _ := failure.Describe(
			err); status != http.StatusConflict { // what was deleted is nowhere else, and may come back at the next try
			s.undoing.keep(values.Get("step"), step)
		}
		return nil, err
	}
	return s.Done(step.Path, "undone"), nil
}
