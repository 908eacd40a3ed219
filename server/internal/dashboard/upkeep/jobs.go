package upkeep

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// jobs is what goes on for longer than a request: one thing at a time, so that the server stays quick for everybody
// else. It goes on when the page is left, and ends with the server.
type jobs struct {
	mu   sync.Mutex
	last *job // under way, or the one that ended last; nil: none yet
}

// job is a piece of work.
type job struct {
	kind  string // what it does, for the pages
	title string // a noun: Check of the file
	began time.Time
	stop  context.CancelFunc

	ended       time.Time // zero: it goes on
	stage       string
	done, total int
	result      any
	err         error
}

// jobState is what a page shows of a job.
type jobState struct {
	Kind, Title  string
	At           string // path of the page that shows it
	Polls        bool   // the page may be asked for how far it is; one that a form has led to may not
	Running      bool
	Began, Ended time.Time
	Stage        string
	Done, Total  int // total 0: not known
	Result       any
	Error        string
	Stopped      bool
}

// Percent is how much of the stage is done.
func (j jobState) Percent() int {
	if j.Total <= 0 {
		return 0
	}
	return min(100, 100*j.Done/j.Total)
}

// Took is how long it took.
func (j jobState) Took() string {
	if took := j.Ended.Sub(j.Began); took >= time.Second {
		return web.Wait(took)
	}
	return "less than a second"
}

// Begin begins a job, unless another one is under way. The function is told what to stop by, and tells how far it is.
func (s *Service) Begin(r *http.Request, kind, title string,
	run func(context.Context, souvenir.Progress) (any, error)) error {
	w := &s.jobs
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last != nil && w.last.ended.IsZero() {
		return &souvenir.Error{Kind: souvenir.KindConflict,
			Message: fmt.Sprintf("%s is under way, since %s; wait until it has ended, or stop it", w.last.title,
				web.Ago(w.last.began, time.Now()))}
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(r.Context()))
	j := &job{kind: kind, title: title, began: time.Now(), stop: stop}
	w.last = j
	if at, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok {
		at.RegisterOnShutdown(stop)
	}
	progress := func(stage string, done, total int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		j.stage, j.done, j.total = stage, done, total
	}
	go func() {
		defer stop()
		result, err := failure.Guard(ctx, s.log, title, func() (any, error) { return run(ctx, progress) })
		w.mu.Lock()
		defer w.mu.Unlock()
		j.result, j.err, j.ended = result, err, time.Now()
	}()
	return nil
}

// adminMessage is what an admin is told of an error: more than others, for it may be about the machine.
func adminMessage(err error) string {
	var known *souvenir.Error
	if errors.As(err, &known) && known.Kind != souvenir.KindInternal {
		return known.Error()
	}
	_, message := failure.Describe(err)
	return message
}

// state is the job that is under way or ended last, if it is of one of some kinds.
func (w *jobs) state(r *http.Request, at string, kinds []string) *jobState {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.last
	if j == nil {
		return nil
	}
	state := &jobState{
		Kind: j.kind, Title: j.title, At: at, Polls: r.Method == http.MethodGet, Running: j.ended.IsZero(), Began: j.began,
		Ended: j.ended,
		Stage: j.stage, Done: j.done, Total: j.total, Result: j.result, Stopped: j.err != nil && failure.GivenUp(j.err),
	}
	if j.err != nil && !state.Stopped {
		state.Error = web.Sentence(adminMessage(j.err))
	}
	if !slices.Contains(kinds, j.kind) && !state.Running { // another page tells how it ended
		return nil
	}
	return state
}

// stopWork ends what is under way.
func (s *Service) stopWork(w http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	s.jobs.mu.Lock()
	if j := s.jobs.last; j != nil && j.ended.IsZero() {
		j.stop()
	}
	s.jobs.mu.Unlock()
	if at := values.Get("at"); at == "/transfer" {
		return s.site.Done(at, "stopped"), nil
	}
	return s.site.Done("/backup", "stopped"), nil
}
