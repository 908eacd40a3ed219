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
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// jobs runs work that takes longer than a request, one job at a time, so that the server stays fast for other
// users. A job continues when the page is left, and ends with the server.
type jobs struct {
	mu   sync.Mutex
	last *job // running, or the last that ended; nil: none yet
}

// job is a piece of work.
type job struct {
	kind  string // for the pages
	title string // a noun: Cleanup
	began time.Time
	stop  context.CancelFunc

	ended       time.Time // zero: running
	stage       string
	done, total int
	result      any
	err         error
}

// jobState is a job as a page shows it.
type jobState struct {
	Kind, Title  string
	At           string // path of its page
	Polls        bool   // the page may poll for progress; the response to a form may not
	Running      bool
	Began, Ended time.Time
	Stage        string
	Done, Total  int // total 0: unknown
	Result       any
	Error        string
	Stopped      bool
}

// Percent is the progress of the stage.
func (j jobState) Percent() int {
	if j.Total <= 0 {
		return 0
	}
	return min(100, 100*j.Done/j.Total)
}

// Took is the duration of the job.
func (j jobState) Took() string {
	if took := j.Ended.Sub(j.Began); took >= time.Second {
		return web.Wait(took)
	}
	return "less than a second"
}

// Begin starts a job, unless another one is running. The function gets a context that stops it, and reports its
// progress.
func (s *Service) Begin(r *http.Request, kind, title string,
	run func(context.Context, souvenir.Progress) (any, error)) error {
	w := &s.jobs
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last != nil && w.last.ended.IsZero() {
		return &souvenir.Error{Kind: souvenir.KindConflict,
			Message: fmt.Sprintf("%s has been running since %s; wait until it is done, or stop it", w.last.title,
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

// adminMessage returns an error's message for an admin. It reveals more than for other users, such as details of
// the machine.
func adminMessage(err error) string {
	var known *souvenir.Error
	if errors.As(err, &known) && known.Kind != souvenir.KindInternal {
		return fault.Text(known)
	}
	_, message := failure.Describe(err)
	return message
}

// state returns the running or last job, if it is of one of the kinds.
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
	if !slices.Contains(kinds, j.kind) && !state.Running { // another page shows its outcome
		return nil
	}
	return state
}

// stopWork stops the running job.
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
