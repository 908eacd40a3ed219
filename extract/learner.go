package extract

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

const (
	defaultBatch = 3000 // tokens
	maxBatch     = 1_000_000
	maxShown     = 100  // turns of a batch
	maxPassed    = 1000 // turns of a batch, with the ones not shown
	context4     = 4    // turns before a batch
	maxUnread    = 3    // turns in a row without a usable answer from the model
	overhead     = 1500 // tokens of the instructions
)

// Options say what a [Learner] reads, and where it stores facts.
type Options struct {
	// Extractor makes the proposals. If nil, nothing is learned and no position is stored, so that a later Extractor
	// starts at the beginning. Searches find the turns in any case.
	Extractor Extractor

	ProjectID   string // the project of the conversations and of the learned facts; empty: outside of any
	ProjectName string // the same by name

	Collection    string // where to store learned facts; empty means souvenir.DefaultCollection
	Conversations string // where the turns are; empty means souvenir.ConversationCollection

	// Review keeps proposals until [Learner.Accept] or [Learner.Refuse]. False applies them, except for ones that would
	// change a memory that was not learned: these wait for review.
	Review bool

	// Roles are the roles of the turns to learn from. Empty means all but tool and system, whose texts often come from
	// elsewhere.
	Roles []string

	// BatchTokens is the number of tokens of turns in an extraction: 100 to 1,000,000. Zero means 3,000.
	BatchTokens int

	// MaxCalls and MaxTokens bound the cost of a call of Learn or Consolidate: extractions, and tokens in and out. Zero
	// means no bound. The answer of a running extraction may exceed MaxTokens.
	MaxCalls, MaxTokens int

	// DryRun stores nothing, not even the position. The report shows what would be applied or kept; new memories have no
	// ids. Later batches do not know what earlier ones would store, so they may propose it again.
	DryRun bool

	// Progress is called after each batch of Learn with the number of turns read in this call, and after each group of
	// Consolidate; nil means none.
	Progress func(done int)
}

// Learner learns from the conversations of a place. It is safe for concurrent use, also by several processes.
type Learner struct {
	store   *souvenir.Store
	options Options
}

// New returns a learner with the access of a view of the store. It neither reads the store nor calls the extractor.
func New(store *souvenir.Store, o Options) (*Learner, error) {
	o.Collection = cmp.Or(o.Collection, souvenir.DefaultCollection)
	o.Conversations = cmp.Or(o.Conversations, souvenir.ConversationCollection)
	o.BatchTokens = cmp.Or(o.BatchTokens, defaultBatch)
	switch {
	case store == nil:
		return nil, invalid("store", "is nil; give an open store")
	case o.BatchTokens < 100 || o.BatchTokens > maxBatch:
		return nil, invalid("Options.BatchTokens", "is out of range; give 100 to 1,000,000 tokens, or 0 for 3,000")
	case o.MaxCalls < 0 || o.MaxTokens < 0:
		return nil, invalid("Options.MaxCalls or MaxTokens", "is negative; give a number, or 0 for no bound")
	}
	if projects := store.Access().Projects; o.ProjectID == "" && o.ProjectName == "" && len(projects) == 1 {
		o.ProjectID = projects[0]
	}
	o.Roles = slices.Clone(o.Roles)
	return &Learner{store, o}, nil
}

// Report is the result of a call.
type Report struct {
	Turns   int       `json:"turns"` // read, including those with other roles
	Usage   Usage     `json:"usage"`
	Applied []Applied `json:"applied,omitempty"` // in order, None included
	Kept    []Pending `json:"kept,omitempty"`    // for review
	Refused []Refused `json:"refused,omitempty"` // proposals that are not allowed
	Unread  []string  `json:"unread,omitempty"`  // ids of turns without a usable answer from the model
	More    bool      `json:"more,omitempty"`    // a bound was reached: the next call continues
}

// Refused is a proposal that was not applied.
type Refused struct {
	Proposal Proposal `json:"proposal"`
	Why      string   `json:"why"`
}

// Learn reads the turns of a conversation that were stored since the last call, in batches. The proposals of a batch
// and the new position in the conversation are stored in one transaction: after a crash the next call continues there,
// and applies nothing twice. A turn that is stored later with an earlier time is not read.
//
// After an error, the report covers the work done before it.
func (l *Learner) Learn(ctx context.Context, key string) (Report, error) {
	var r Report
	if l.options.Extractor == nil {
		return r, nil
	}
	s, err := l.scope(ctx)
	if err == nil {
		err = l.checkWritable(s)
	}
	if err != nil {
		return r, err
	}
	run := &run{Learner: l, scope: s, report: &r, key: key, conversation: l.store.Conversation(key,
		souvenir.ConversationPlace{Collection: l.options.Conversations, ProjectID: s.ref})}
	err = run.all(ctx)
	return r, err
}

// checkWritable returns an error if the place is not writable, before a model costs anything.
func (l *Learner) checkWritable(s scope) error {
	if l.options.DryRun {
		return nil
	}
	if s.role == souvenir.MemberReader {
		return &souvenir.Error{Kind: souvenir.KindForbidden, Field: "Options.ProjectID", Argument: "Options.ProjectID",
			Message: "project " + s.ref + " is shared read-only; its owner can make you a writer"}
	}
	if l.store.Access().ReadOnly {
		return &souvenir.Error{Kind: souvenir.KindReadOnly, Message: "this view only reads; give one that may write"}
	}
	return nil
}

// run is a call of Learn.
type run struct {
	*Learner
	scope        scope
	key          string
	conversation *souvenir.Conversation
	report       *Report
	unread       []string  // turns skipped since the last commit
	dry          *position // the position of a dry run
	offers       time.Time // when the latest proposal was stored that this call knows of
}

// batch is the input of one extraction, and the position after it.
type batch struct {
	Conversation
	passed int
	end    position
	more   bool
}

func (r *run) all(ctx context.Context) error {
	lost := 0
	from, err := r.position(ctx)
	if err != nil {
		return err
	}
	at, most := from, maxShown
	for {
		b, err := r.next(ctx, at, most)
		if err != nil || b.passed == 0 {
			return err
		}
		var x Extraction
		if len(b.Turns) > 0 {
			if r.options.Review {
				if err := r.checkRoom(ctx); err != nil {
					return err
				}
			}
			if b.Known, err = r.known(ctx, b.Turns); err != nil {
				return err
			}
			if r.exhausted(b.Conversation) {
				r.report.More = true
				return nil
			}
			x, err = r.options.Extractor.Extract(ctx, b.Conversation)
			r.report.Usage.add(x.Usage)
			switch {
			case errors.Is(err, ErrAnswer) && len(b.Turns) > 1:
				most = len(b.Turns) / 2
				continue
			case errors.Is(err, ErrAnswer) && len(r.unread) < maxUnread:
				r.unread = append(r.unread, b.Turns[0].ID)
				if !b.more { // the next turns are tried as well
					return err
				}
				at, most = b.end, 1
				continue
			case err != nil:
				return err
			}
		}
		ok, err := r.commit(ctx, from, b, x.Proposals)
		if err != nil {
			return err
		}
		if at = b.end; !ok { // another call has read these turns in the meantime
			if lost++; lost > maxUnread {
				return &souvenir.Error{Kind: souvenir.KindConflict, Message: "other calls learn from this conversation at the " +
					"same time; call Learn again when they are done"}
			}
			if at, err = r.position(ctx); err != nil {
				return err
			}
		}
		if from, most = at, maxShown; ok && !b.more {
			return nil
		}
	}
}

// exhausted reports whether a bound allows no further extraction.
func (r *run) exhausted(c Conversation) bool {
	u, o := r.report.Usage, r.options
	return o.MaxCalls > 0 && u.Calls >= o.MaxCalls ||
		o.MaxTokens > 0 && u.InputTokens+u.OutputTokens+estimate(c) > o.MaxTokens
}

// estimate returns the estimated tokens of a conversation and the instructions.
func estimate(c Conversation) int {
	tokens := overhead
	for _, t := range slices.Concat(c.Before, c.Turns) {
		tokens += t.Tokens()
	}
	for _, m := range c.Known {
		tokens += len(m.Content) / 4
	}
	return tokens
}

// next returns the batch after a position, with a maximum number of turns.
func (r *run) next(ctx context.Context, at position, most int) (batch, error) {
	b := batch{end: at}
	room := r.options.BatchTokens
	for t, err := range r.conversation.Since(ctx, at.At) {
		if err != nil {
			return b, err
		}
		if at.passed(t) {
			continue
		}
		learns := r.learnsFrom(t)
		if learns {
			t.ToolCalls, t.Metadata = nil, nil
			t.Content = cut(t.Content, 4*r.options.BatchTokens)
			room -= t.Tokens()
		}
		if b.passed == maxPassed || learns && (len(b.Turns) == most || len(b.Turns) > 0 && room < 0) {
			b.more = true
			break
		}
		b.passed++
		if b.end = b.end.after(t); learns {
			b.Turns = append(b.Turns, t)
		}
	}
	if len(b.Turns) == 0 || at.At.IsZero() || len(at.IDs) == 0 {
		return b, nil
	}
	before, err := r.conversation.Around(ctx, at.IDs[len(at.IDs)-1], context4-1, 0)
	if err != nil && !errors.Is(err, souvenir.ErrNotFound) { // it was deleted
		return b, err
	}
	for _, t := range before {
		if r.learnsFrom(t) {
			t.ToolCalls, t.Metadata, t.Content = nil, nil, cut(t.Content, MaxContent)
			b.Before = append(b.Before, t)
		}
	}
	return b, nil
}

func (r *run) learnsFrom(t souvenir.Turn) bool {
	if strings.TrimSpace(t.Content) == "" {
		return false
	}
	role := strings.ToLower(t.Role)
	if len(r.options.Roles) > 0 {
		return slices.ContainsFunc(r.options.Roles, func(s string) bool { return strings.EqualFold(s, role) })
	}
	return role != "tool" && role != "system" && role != "developer" && role != "function"
}
