package souvenir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/inspect"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/portions"
	"github.com/souvenir-ai/souvenir/internal/records/activitylog"
	"github.com/souvenir-ai/souvenir/internal/shorten"
	"github.com/souvenir-ai/souvenir/internal/transfer"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Activity is a recorded call: who made it, with which credential, on what, when, how long it took, and its outcome. It
// holds none of the data stored, searched for or returned.
type Activity struct {
	ID         string     `json:"id"`
	User       string     `json:"user"`                // user id
	UserName   string     `json:"user_name,omitempty"` // empty: no account, or no longer
	Credential Credential `json:"credential"`          // how the call was authenticated
	Client     string     `json:"client"`              // the program's own name; empty if it gives none
	// or the method and pattern of a route, such as "GET /api/files/{id}"
	Tool   string `json:"tool"`
	Action string `json:"action"` // of the tool; empty for those without actions
	// named by the call, or the project of its memory or file; empty: none, or none visible through this view
	ProjectID  string    `json:"project_id,omitempty"`
	MemoryID   string    `json:"memory_id,omitempty"` // the call's memory; it may have been deleted since
	FileID     string    `json:"file_id,omitempty"`   // the call's file; it may have been deleted since
	Outcome    Outcome   `json:"outcome"`
	StartedAt  time.Time `json:"started_at"`
	DurationMS float64   `json:"duration_ms"`    // milliseconds, to the microsecond
	Bytes      int64     `json:"bytes"`          // of the answer; 0: unknown
	Hits       *int      `json:"hits,omitempty"` // memories that a search found; nil: not a search, or unknown
}

// Credential identifies how a call was authenticated.
type Credential struct {
	// empty: none was needed, as in an embedding program or over standard input
	Kind CredentialKind `json:"kind"`
	ID   string         `json:"id,omitempty"`   // of the MCP token, the OAuth client or the sign-in
	Name string         `json:"name,omitempty"` // of the token or the client; empty if it no longer exists
}

// CredentialKind is the kind of a [Credential].
type CredentialKind string

// The values of [CredentialKind].
const (
	CredentialToken  CredentialKind = "token"   // an MCP token
	CredentialClient CredentialKind = "client"  // an OAuth client that the user has authorized
	CredentialSignIn CredentialKind = "session" // a person in a browser
)

// NewActivity is a call to record. Leave unknown fields empty.
type NewActivity struct {
	// Principal is the user and the credential of the call: only its Access and the ids of the credential count. The zero
	// value is the local user without a credential. Project is looked up through this access.
	Principal Principal

	// the program's own name: a User-Agent, or name and version. It is kept as one line of at most 100 bytes, without
	// tokens
	Client string
	// required: the name of the tool, or method and pattern of a route, never text from a caller; at most 200 bytes
	Tool   string
	Action string // of the tool, if it has actions; never text from a caller either
	// named by the call; left out if the principal cannot see it. Empty: the project of the memory or file, while it
	// exists
	Project  ProjectRef
	MemoryID string  // the call's memory. It must be visible to the principal: it is not looked up
	FileID   string  // the call's file. It must be visible, too
	Outcome  Outcome // empty: OutcomeOK

	StartedAt time.Time // zero: Duration ago, by the store's clock
	Duration  time.Duration
	Bytes     int64 // of the answer; 0: unknown
	Hits      *int  // memories that a search found; nil: not a search
}

const (
	maxActivityClient = 100 // bytes
	maxActivityTool   = 200 // bytes
)

// Outcome says how a call ended: OutcomeOK, or the kind of its error with underscores, such as not_found.
type Outcome string

// The values of [Outcome] besides the kinds of errors.
const (
	OutcomeOK        Outcome = activitylog.OK
	OutcomeCancelled Outcome = "cancelled" // the caller went away, or its deadline passed
	OutcomeError     Outcome = "error"     // in an [ActivityQuery]: every outcome but OutcomeOK
)

// OutcomeOf returns the outcome of a call that returned an error; nil is OutcomeOK.
func OutcomeOf(err error) Outcome {
	var known *Error
	switch {
	case err == nil:
		return OutcomeOK
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return OutcomeCancelled
	case errors.As(err, &known):
		return outcomeOfKind(known.Kind)
	}
	return outcomeOfKind(KindInternal)
}

func outcomeOfKind(kind Kind) Outcome {
	return Outcome(strings.NewReplacer(" ", "_", "-", "_").Replace(string(kind)))
}

// Outcomes returns every outcome that a call can have.
func Outcomes() []Outcome {
	all := []Outcome{OutcomeOK, OutcomeCancelled}
	for _, kind := range []Kind{KindInvalid, KindNotFound, KindUnauthenticated, KindForbidden, KindConflict, KindTooLarge,
		KindReadOnly, KindClosed, KindBusy, KindFull, KindForeign, KindMasterKey, KindUserKeys, KindNewer, KindCorrupt,
		KindOutcomeUnknown, KindInternal} {
		all = append(all, outcomeOfKind(kind))
	}
	return all
}

// RecordActivity records a call. It costs microseconds: recorded calls are written to the file in the background, once
// a second or when 256 calls are waiting, so that a crash loses at most the calls of the last second. Close writes the
// rest, unless another process holds the file for seconds. While 32,768 calls are waiting, RecordActivity waits for the
// writer, at most two seconds, or until ctx ends. When the file cannot be written to for that long, the oldest waiting
// calls are lost; [Stats] and [ActivityPage] count them. Beyond [Options.KeepActivity] and [Options.MaxActivity] the
// oldest calls are deleted.
//
// It is for the Store that Open returned; a view gets ErrForbidden. On a read-only store it is ErrReadOnly.
func (h *Upkeep) RecordActivity(ctx context.Context, n NewActivity) (err error) {
	defer setGoNames[NewActivity](&err)
	s, err := h.operator(ctx, "RecordActivity")
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.db.ReadOnly() {
		return wrap(db.ErrReadOnly)
	}
	if strings.TrimSpace(cleanUserAgent(n.Tool)) == "" {
		return invalid("tool", "{} is empty; give the name of the tool, or the method and pattern of the route")
	}
	if n.StartedAt.IsZero() {
		n.StartedAt = s.clock().Add(-n.Duration)
	}
	if err := valid.Time("started_at", n.StartedAt.UnixMicro()); err != nil {
		return err
	}
	if !s.activity.Add(ctx, waitingActivity{NewActivity: n, id: s.newID()}) {
		return newError(KindClosed, "", "the store is closed")
	}
	return nil
}

// MaxActivityLimit is the most calls that [Insights.ActivityPage] returns at once.
const MaxActivityLimit = 1000

// ActivityQuery asks for recorded calls. A call must match every field that is set.
type ActivityQuery struct {
	User       string         // id or name; empty: the view's user, or all users for the operator's store
	Credential CredentialKind // the kind of credential
	ID         string         // the id of the credential
	Client     string         // the program's own name: an exact match
	Tool       string
	Action     string
	Calls      []ToolAction // any of these, at most 64; none means all
	ProjectID  string       // a project that the view can see
	Outcome    Outcome
	Since      time.Time // calls that began then or later; zero: no bound
	Until      time.Time // calls that began before; zero: no bound

	Limit  int    // calls to return, 1 to 1,000; zero means 100
	Before string // id of a call: only calls recorded before it, as for the next page; empty: from the newest on
}

// ToolAction is an action of a tool, as [Activity] has them. Without an Action it stands for every call of the tool.
type ToolAction struct{ Tool, Action string }

// maxToolActions is how many actions of tools a query may name.
const maxToolActions = 64

// ActivityPage is a page of recorded calls.
type ActivityPage struct {
	Activities []Activity `json:"activities"` // the last recorded first; never nil
	HasMore    bool       `json:"has_more"`   // there are more: repeat with Before set to the id of the last one
	Lost       int        `json:"lost"`       // calls, of all users, that could not be recorded since the store was opened
}

func (q *ActivityQuery) check() error {
	switch {
	case q.Limit < 0 || q.Limit > MaxActivityLimit:
		return invalid("limit", "{} is %d; expected 1 to %d", q.Limit, MaxActivityLimit)
	case len(q.Calls) > maxToolActions:
		return newError(KindTooLarge, "calls", "{} are %d; at most %d are allowed", len(q.Calls), maxToolActions)
	case q.Outcome != "" && q.Outcome != OutcomeError:
		if err := valid.Enum("outcome", q.Outcome, append(Outcomes(), OutcomeError)); err != nil {
			return err
		}
	}
	if err := valid.Enum("credential", q.Credential,
		[]CredentialKind{CredentialToken, CredentialClient, CredentialSignIn}); err != nil {
		return err
	}
	for _, c := range q.Calls {
		if err := valid.UTF8("calls", c.Tool+c.Action); err != nil {
			return err
		}
	}
	for argument, value := range map[string]string{"id": q.ID, "client": q.Client, "tool": q.Tool, "action": q.Action} {
		if err := valid.UTF8(argument, value); err != nil {
			return err
		}
	}
	if q.ProjectID != "" {
		return valid.ProjectID(q.ProjectID)
	}
	return nil
}

// flushActivity writes the calls recorded so far, except within a snapshot or transaction, which sees only calls from
// before it began.
func (s *shared) flushActivity(ctx context.Context) {
	if s.db.InSnapshot(ctx) || s.db.InTransaction(ctx) {
		return
	}
	if err := s.activity.Flush(ctx); err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "could not write recorded calls yet", "error", err)
	}
}

// Activities iterates over the recorded calls that match when it begins to read them, including this handle's up to
// then, the last recorded first: a user's view sees the user's own, the operator's store those of all users in the
// default namespace. Limit must be zero: break the loop instead. It holds no lock and no transaction while the caller
// works, and the sequence ends after the first error. A view limited to projects may not call it, and another user's
// calls are ErrForbidden through a view.
func (h *Insights) Activities(ctx context.Context, q ActivityQuery) iter.Seq2[Activity, error] {
	const portion = 256
	return portions.Each(0, func(before int64) (found []Activity, next int64, more bool, err error) {
		defer setGoNames[ActivityQuery](&err)
		if q.Limit != 0 {
			return nil, 0, false, invalid("limit", "{} is %d; it must be 0 here; break out of the loop instead", q.Limit)
		}
		found, next, err = h.activities(ctx, q, before, portion)
		return found, next, len(found) == portion, err
	})
}

// ActivityPage returns a page of the recorded calls, as [Insights.Activities] does.
func (h *Insights) ActivityPage(ctx context.Context, q ActivityQuery) (_ ActivityPage, err error) {
	defer setGoNames[ActivityQuery](&err)
	limit := cmp.Or(q.Limit, 100)
	found, _, err := h.activities(ctx, q, 0, limit+1)
	if err != nil {
		return ActivityPage{}, err
	}
	return ActivityPage{Activities: found[:min(len(found), limit)], HasMore: len(found) > limit,
		Lost: h.s.activity.Lost()}, nil
}

// activities reads up to most calls before a row, 0 for the newest, and returns the row of the last one.
func (h *Insights) activities(ctx context.Context, q ActivityQuery, before int64, most int) (found []Activity,
	last int64, err error) {
	s, err := h.own()
	if err == nil {
		err = q.check()
	}
	if err != nil {
		return nil, 0, err
	}
	if before == 0 {
		s.flushActivity(ctx)
	} else {
		q.Before = ""
	}
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		found, last = []Activity{}, 0
		stored, some, err := s.storedActivity(tx, v, q)
		if err != nil || !some {
			return err
		}
		stored.Before = cmp.Or(before, stored.Before)
		visible, args := `true`, []any(nil)
		if !s.operator {
			visible, args = v.VisibleProject()
		}
		rows, err := stored.Read(tx, most, visible, args...)
		for _, r := range rows {
			last = r.Number
			found = append(found, activityOf(r))
		}
		return err
	})
	return found, last, err
}

// storedActivity returns a query as it selects rows; false: nothing can match.
func (s *Store) storedActivity(tx db.Tx, v viewer, q ActivityQuery) (a activitylog.Query, some bool, err error) {
	a = activitylog.Query{Namespace: s.access.Namespace, Credential: string(q.Credential), CredentialID: q.ID,
		Client: q.Client, Tool: q.Tool, Action: q.Action, Since: kernel.MicrosOf(q.Since), Until: kernel.MicrosOf(q.Until)}
	if a.Failed = q.Outcome == OutcomeError; !a.Failed {
		a.Outcome = string(q.Outcome)
	}
	for _, c := range q.Calls {
		a.Calls = append(a.Calls, activitylog.Action(c))
	}
	if a.User, err = s.activityUser(tx, q.User); err != nil {
		return a, false, err
	}
	if q.Before != "" {
		if a.Before, err = a.RowOf(tx, q.Before); err == nil && a.Before == 0 {
			err = newError(KindNotFound, "before",
				"{}: call %s not found, or you have no access to it; it may have been deleted, so start again", show(q.Before))
		}
		if err != nil {
			return a, false, err
		}
	}
	if q.ProjectID == "" {
		return a, true, nil
	}
	p, err := naming.Find(tx, v, q.ProjectID, "")
	if err != nil || p == nil {
		return a, false, err
	}
	a.Project = p.Row
	return a, true, nil
}

func activityOf(a activitylog.Found) Activity {
	return Activity{ID: a.ID, User: a.User, UserName: a.UserName, Client: a.Client, Tool: a.Tool, Action: a.Action,
		Credential: Credential{CredentialKind(a.Credential), a.CredentialID, a.CredentialName}, ProjectID: a.ProjectID,
		MemoryID: a.Memory, FileID: a.File, Outcome: Outcome(a.Outcome), StartedAt: kernel.ToTime(a.StartedAt),
		DurationMS: float64(a.Duration) / 1000, Bytes: a.Length, Hits: a.Hits}
}

// activityUser returns the user whose calls are asked for; empty: all users.
func (s *Store) activityUser(tx db.Tx, named string) (string, error) {
	if s.operator && named == "" {
		return "", nil
	}
	if named == "" || named == s.access.User {
		return s.access.User, nil
	}
	if !s.operator {
		return "", newError(KindForbidden, "user", "{} is %s; only the operator's store lists their calls", show(named))
	}
	u, err := findUser(tx, s.access.Namespace, named)
	if errors.Is(err, ErrNotFound) { // a user known from calls only
		found, err2 := db.Column[string](tx, `SELECT user_uid FROM activity WHERE user_uid = ? AND namespace = ? LIMIT 1`,
			named, s.access.Namespace)
		if err2 != nil || len(found) > 0 {
			return named, err2
		}
	}
	return u.ID, err
}

// cleanClient shortens a program's own name to one line. It removes tokens: a client should not put one there, but
// might.
func cleanClient(client string) string {
	client = cleanUserAgent(client)
	words := strings.Fields(client)
	for i, word := range words {
		for _, start := range []string{tokenStart, signInStart, invitationStart, "eyJ"} { // the last one begins a JWT
			if before, _, found := strings.Cut(word, start); found {
				words[i] = before + "…"
				word = words[i]
			}
		}
	}
	return strings.TrimSpace(shorten.Bytes(strings.Join(words, " "), maxActivityClient))
}

// activityRecord describes a valid row of a call.
func activityRecord() transfer.Record {
	outcomes := make([]string, 0)
	for _, o := range Outcomes() {
		outcomes = append(outcomes, string(o))
	}
	return inspect.ActivityRecord(maxActivityTool, outcomes)
}

// waitingActivity is a call that is not in the file yet.
type waitingActivity struct {
	NewActivity
	id string
}

const (
	boundEvery = 64   // batches between two counts of all calls
	purgeBatch = 5000 // rows that one transaction deletes

	defaultKeepActivity = 30 * 24 * time.Hour
	defaultMaxActivity  = 100_000
)

// writeActivities writes a batch of calls, and now and then deletes the oldest ones.
func (s *shared) writeActivities(ctx context.Context, batch []waitingActivity, flushes int) error {
	return s.db.Write(ctx, func(tx db.Tx) error {
		projects := activityProjects{s: s, tx: tx, known: map[string]any{}}
		for _, a := range batch {
			if err := insertActivity(tx, a, &projects); err != nil {
				return err
			}
		}
		if flushes%boundEvery != 0 {
			return nil
		}
		e, _, err := s.readDeadline(tx)
		if err == nil {
			_, err = s.deleteOldActivities(tx, e.at)
		}
		return err
	})
}

func insertActivity(tx db.Tx, a waitingActivity, projects *activityProjects) error {
	var kind CredentialKind
	var id string
	switch p := a.Principal; {
	case p.TokenID != "":
		kind, id = CredentialToken, p.TokenID
	case p.ClientID != "":
		kind, id = CredentialClient, p.ClientID
	case p.SignInID != "":
		kind, id = CredentialSignIn, p.SignInID
	}
	user := a.Principal.Access.User
	if user == "" {
		user = LocalUser
	}
	namespace := a.Principal.Access.Namespace
	if valid.Name("user", user) != nil || namespace != "" && valid.Name("namespace", namespace) != nil {
		return nil //nolint:nilerr // no user can have such an id, so no query could find it
	}
	project, err := projects.row(a.Principal.Access, a.Project)
	if err == nil && project == nil && a.Project == (ProjectRef{}) {
		project, err = activitylog.ProjectOf(tx, a.MemoryID, a.FileID)
	}
	if err != nil {
		return err
	}
	outcome := a.Outcome
	if valid.Enum("outcome", outcome, Outcomes()) != nil || outcome == "" {
		outcome = OutcomeOK
		if a.Outcome != "" {
			outcome = outcomeOfKind(KindInternal)
		}
	}
	line := func(text string, most int) string {
		return strings.TrimSpace(shorten.Bytes(cleanUserAgent(text), most))
	}
	return activitylog.Row{
		ID: a.id, Namespace: namespace, User: user, Credential: string(kind), CredentialID: line(id, valid.MaxName),
		Client: cleanClient(a.Client), Tool: line(a.Tool, maxActivityTool), Action: line(a.Action, maxActivityTool),
		Project: project, Memory: line(a.MemoryID, valid.MaxName), File: line(a.FileID, valid.MaxName),
		Outcome: string(outcome), StartedAt: a.StartedAt.UnixMicro(), Duration: max(a.Duration.Microseconds(), 0),
		Length: max(a.Bytes, 0), Hits: a.Hits,
	}.Insert(tx)
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
	key := fmt.Sprintf("%q %q %t %q %q %q", access.Namespace, access.User, access.Projects == nil, access.Projects,
		ref.ID, ref.Name)
	if row, known := p.known[key]; known {
		return row, nil
	}
	p.known[key] = nil
	if valid.Project(ref.ID, ref.Name) != nil {
		return nil, nil //nolint:nilerr // there can be no such project
	}
	v, err := (&Store{shared: p.s}).As(access).viewer(p.tx)
	if err != nil {
		return nil, err
	}
	found, err := naming.Find(p.tx, v, ref.ID, ref.Name)
	switch {
	case errors.Is(err, ErrInvalid): // it matches none, or two
		return nil, nil
	case err != nil:
		return nil, err
	case found != nil:
		p.known[key] = found.Row
	}
	return p.known[key], nil
}

// deleteOldActivities deletes a batch of the calls that are too old or too many, and counts them.
func (s *shared) deleteOldActivities(tx db.Tx, now int64) (int64, error) {
	o, err := s.limits(tx)
	if err != nil {
		return 0, err
	}
	return activitylog.DeleteOld(tx, int64(o.MaxActivity), now-o.KeepActivity.Microseconds(), purgeBatch)
}

// purgeActivities deletes all calls that are too old or too many, and counts them.
func (s *shared) purgeActivities(ctx context.Context, now int64) (deleted int, err error) {
	for {
		var some int64
		err := s.db.Write(ctx, func(tx db.Tx) (err error) {
			some, err = s.deleteOldActivities(tx, now)
			return err
		})
		deleted += int(some)
		if err != nil || some == 0 {
			return deleted, err
		}
	}
}
