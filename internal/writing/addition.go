package writing

import (
	"context"
	"errors"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/batch"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// Addition holds the drafts that a call stores, each with Write.
type Addition struct {
	Drafts   []kernel.Draft
	Write    func(*Writer, *kernel.Draft) (Result, error) // nil: [Writer.Add]
	Progress func(stage string, done, total int)

	Stored []Result // set by Run
}

// Run stores the drafts; the caller must flush the writer afterwards.
func (a *Addition) Run(w *Writer) error {
	a.Stored = make([]Result, 0, len(a.Drafts))
	write := a.Write
	if write == nil {
		write = (*Writer).Add
	}
	for i := range a.Drafts {
		stored, err := write(w, &a.Drafts[i])
		if err != nil {
			return fault.Located(err, "memories", i, len(a.Drafts))
		}
		a.Stored = append(a.Stored, stored)
		if (i+1)%1000 == 0 {
			a.Progress("store", i+1, len(a.Drafts))
		}
	}
	return nil
}

// Ahead announces that the places of drafts outside projects will be read; see [db.Ahead].
func (a *Addition) Ahead(tx db.Tx, v kernel.Viewer) {
	for i, d := range a.Drafts {
		if !v.Limited && d.ProjectID == "" && d.ProjectName == "" && (i == 0 || d.Collection != a.Drafts[i-1].Collection) {
			kernel.PlaceAhead(tx, v.User, d.Collection)
		}
	}
}

// SharesCommit reports whether the drafts depend on nothing but their places.
func (a *Addition) SharesCommit() bool {
	return a.Write == nil && !slices.ContainsFunc(a.Drafts, func(d kernel.Draft) bool {
		return d.RuleType != "" || d.Key != "" || d.Times.Supersedes != "" || len(d.Related) > 0
	})
}

// Shared is an addition that may share a transaction with those of other callers; see [batch.Call].
type Shared struct {
	Addition *Addition
	Ctx      context.Context // of the call
	View     *View
	Key      any                                                         // identifies the caller
	Known    func() (v kernel.Viewer, known bool)                        // without a transaction
	Viewer   func(tx db.Tx, other *kernel.Viewer) (kernel.Viewer, error) // other has been read in this transaction; or nil
	RunAlone func(context.Context) error

	User   int64 // row of the caller, set by a shared transaction
	writer *Writer
}

// Context returns the context of the call.
func (c *Shared) Context() context.Context { return c.Ctx }

// Caller identifies the caller.
func (c *Shared) Caller() any { return c.Key }

// Rows is the number of memories.
func (c *Shared) Rows() int { return len(c.Addition.Drafts) }

// Alone runs the addition in a transaction of its own.
func (c *Shared) Alone(ctx context.Context) error {
	c.User = 0
	return c.RunAlone(ctx)
}

// Ahead announces what will be read.
func (c *Shared) Ahead(tx db.Tx) {
	if v, known := c.Known(); known {
		c.Addition.Ahead(tx, v)
	}
}

// Prepare leaves out a call that would have to create a project or a collection.
func (c *Shared) Prepare(tx db.Tx, first batch.Call) (bool, error) {
	var previous *Writer
	var known *kernel.Viewer
	if first != nil {
		previous = first.(*Shared).writer
		known = &previous.Viewer
	}
	v, err := c.Viewer(tx, known)
	if err != nil || v.User == 0 {
		return false, ignoreRefusal(err)
	}
	c.User = v.User
	if c.writer, err = c.View.NewWriter(tx, v); err != nil {
		return false, err
	}
	if previous != nil {
		c.writer.ShareCounts(previous)
	}
	exist := true
	err = c.forItsViewer(func() error {
		for i := range c.Addition.Drafts {
			if exist, err = c.writer.PlaceExists(&c.Addition.Drafts[i]); err != nil || !exist {
				return ignoreRefusal(err)
			}
		}
		return nil
	})
	return exist && err == nil, err
}

// Write stores the memories.
func (c *Shared) Write(db.Tx) error {
	return c.forItsViewer(func() error { return c.Addition.Run(c.writer) })
}

// Flush writes what the writer holds in memory.
func (c *Shared) Flush(db.Tx) error { return c.forItsViewer(c.writer.Flush) }

// forItsViewer runs fn for the call's viewer.
func (c *Shared) forItsViewer(fn func() error) error {
	return db.As(c.writer.Tx, c.View.Caller(c.writer.Viewer), fn)
}

// ignoreRefusal drops the error of a refused call: run alone, the call is refused again.
func ignoreRefusal(err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return nil
	}
	return err
}
