package web

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// undoParameter is the parameter of a page's address with the last step that can be undone: a random name, valid
// only for the user who took the step.
const undoParameter = "undo"

const (
	undoLife = time.Hour
	maxUndo  = 1000 // remembered steps of all users; the oldest are evicted first

	maxUndoBytes = 64 << 20 // that these steps hold
)

// undo remembers how to undo steps taken on pages. It is in memory: after a restart, each memory's history and the
// trash take its place.
type undo struct {
	mu    sync.Mutex
	steps map[string]Step
	bytes int64    // total size of the steps
	order []string // names of the steps, the oldest first
}

// Step is a user's step that can be undone.
type Step struct {
	user  string // id of the user
	Text  string // description, as a sentence
	Path  string // of the page to show after undoing
	until time.Time
	Back  func(context.Context) error // nil: cannot be undone
	Admin bool                        // only a user who is still an administrator may undo it
	Bytes int64                       // size of Back
}

// remember stores a step and returns its name.
func (u *undo) remember(step Step) string {
	name := rand.Text()
	if step.Bytes > maxUndoBytes { // it would evict all others, and still not fit
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

// keep stores a step again after undoing it failed.
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

// step returns a user's step that can still be undone; take removes it.
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

// DoneWithUndo redirects from a form to a page that reports its outcome, and offers to undo it. The function back
// is called within an hour and at most once, with the context of a later request.
func (s *Site) DoneWithUndo(c request.Caller, path, text string, back func(context.Context) error) Redirect {
	return s.StepDone(c, path, Step{Text: text, Path: path, Back: back})
}

// StepDone remembers a step, and redirects to a page that offers to undo it.
func (s *Site) StepDone(c request.Caller, path string, step Step) Redirect {
	step.user, step.until = c.User.ID, time.Now().Add(undoLife)
	name := s.undoing.remember(step)
	return Redirect(s.Path(withNotice(path, undoParameter, name)))
}

// takeBack undoes a step.
func (s *Site) takeBack(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	step, ok := s.undoing.step(c.User.ID, values.Get("step"), true)
	if !ok || step.Back == nil || step.Admin && c.User.Role != souvenir.RoleAdmin {
		return nil, &failure.Error{Status: http.StatusNotFound,
			Message: "this can no longer be undone: it was undone already, is more than an hour old, or the server has " +
				"restarted since; " +
				"the history of each memory has its past versions, and the trash has what was deleted"}
	}
	// Half a step is worse than a whole one: a client that disconnects does not end it.
	if err := step.Back(context.WithoutCancel(r.Context())); err != nil {
		if status, _ := failure.Describe(
			err); status != http.StatusConflict { // a deleted item exists nowhere else; a retry may restore it
			s.undoing.keep(values.Get("step"), step)
		}
		return nil, err
	}
	return s.Done(step.Path, "undone"), nil
}
