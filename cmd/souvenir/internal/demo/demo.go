// Package demo fills the store of `souvenir demo` with a story: ten weeks of the work and the family of Mara, who leads
// engineering at a small company, as three clients remembered them for her. All of it is invented.
package demo

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/examples/quickstart/data"
	"github.com/souvenir-ai/souvenir/internal/seed/clock"
)

const (
	days = 70 // that the story lasts, today included

	related = 0.1 // the least score at which a client links a memory to another

	// KeepActivity keeps the calls of the whole story.
	KeepActivity = 365 * 24 * time.Hour
)

// Options are where the server of the demonstration will be.
type Options struct {
	PublicURL string // of the server, for which an application is authorized
	Password  string // of the user

	// Documents reads the files, so that searches find them by their content; nil: they are not read.
	Documents souvenir.DocumentReader

	Progress souvenir.Progress // nil: none
}

// Filled describes the filled store.
type Filled struct {
	User     souvenir.User
	Token    string // an MCP token of the user
	Memories int    // of the user
}

// Fill creates a store at a path and fills it.
func Fill(ctx context.Context, path string, o Options) (filled Filled, err error) {
	now := time.Now()
	began := now.AddDate(0, 0, 1-days).Truncate(24 * time.Hour)
	f := &filler{ctx: ctx, options: o, began: began, ends: now, clock: clock.At(began),
		random: rand.New(rand.NewPCG(9, 11)), latest: map[string]string{}, tokens: map[string]string{}}
	f.store, err = souvenir.Open(ctx, path, &souvenir.Options{Now: f.clock.Now, KeepActivity: KeepActivity,
		Documents: o.Documents})
	if err != nil {
		return Filled{}, err
	}
	defer func() { err = errors.Join(err, f.store.Close()) }()
	for _, step := range []func() error{f.people, f.connect, f.weeks, f.sharing, f.today} {
		if err := step(); err != nil {
			return Filled{}, err
		}
	}
	overview, err := f.view.Insights().Overview(ctx, souvenir.OverviewQuery{})
	return Filled{User: f.user, Token: f.token, Memories: overview.Memories}, err
}

// filler fills one store.
type filler struct {
	ctx         context.Context
	options     Options
	began, ends time.Time
	clock       *clock.Clock
	random      *rand.Rand
	store       *souvenir.Store
	user        souvenir.User
	others      map[string]souvenir.User
	tokens      map[string]string // of the others, by their names
	view        *souvenir.Store   // the user's, in a browser
	clients     []client
	token       string
	stored      []stored          // memories, the oldest first
	latest      map[string]string // id of the last memory by project and tag, and by project of its main memory
}

// client is a program that works for the user.
type client struct {
	agent     string // its User-Agent
	principal souvenir.Principal
	view      *souvenir.Store
	use       func() error // shows its credential to the server, which notes when
	used      time.Time    // when it last did
}

// Indexes of filler.clients.
const (
	claudeCode = iota
	cursor
	claude
)

// stored is a stored memory.
type stored struct {
	id, project string
	by          int // index of the client
}

// at moves the clock forward; a time in the past changes nothing, and one in the future is now.
func (f *filler) at(t time.Time) {
	if t.After(f.ends) {
		t = f.ends
	}
	f.clock.Set(t)
}

// weeks stores the memories day by day, and lets the clients do the other work of each day. It ends yesterday.
func (f *filler) weeks() error {
	all, err := data.Memories()
	if err != nil {
		return err
	}
	followed, err := matters()
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b souvenir.NewMemory) int { return strings.Compare(dateOf(a), dateOf(b)) })
	var busy [days - 1]int // how far the story is by the end of each day
	total := 0
	for day := range busy {
		total += 2 + f.random.IntN(9)
		if isWeekend(f.began.AddDate(0, 0, day)) {
			total -= 2
		}
		busy[day] = total
	}
	done := 0
	for day := range busy {
		if set := f.steps()[day]; set != nil {
			f.at(f.began.AddDate(0, 0, day).Add(6 * time.Hour))
			if err := set(); err != nil {
				return err
			}
		}
		upTo := len(all) * busy[day] / total
		if err := f.day(f.began.AddDate(0, 0, day), slices.Concat(followed[day], all[done:upTo])); err != nil {
			return err
		}
		done = upTo
		if f.options.Progress != nil {
			f.options.Progress("days", day+1, len(busy))
		}
	}
	return nil
}

func isWeekend(day time.Time) bool {
	return day.Weekday() == time.Saturday || day.Weekday() == time.Sunday
}

// dateOf returns the day that a memory is about. Documents have none; they come in the middle.
func dateOf(m souvenir.NewMemory) string {
	if date, ok := m.ShownMetadata["date"].(string); ok {
		return date
	}
	return "2025-12-01"
}

// day stores the memories of a day, and has the clients search, read and correct in between.
func (f *filler) day(day time.Time, memories []souvenir.NewMemory) error {
	calls := 10 + f.random.IntN(9)
	if isWeekend(day) {
		calls = 2 + f.random.IntN(3)
	}
	times := make([]time.Duration, len(memories)+calls)
	for i := range times {
		times[i] = 7*time.Hour + time.Duration(f.random.Int64N(int64(11*time.Hour)))
	}
	slices.Sort(times)
	for left := len(times); left > 0; left-- {
		if err := f.ctx.Err(); err != nil {
			return err
		}
		f.at(day.Add(times[len(times)-left]))
		var err error
		if f.random.IntN(left) < len(memories) {
			err = f.remember(memories[0], -1)
			memories = memories[1:]
		} else {
			err = f.call()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// remember stores one memory through a client (negative: the client that works in its project). It links the memory to
// earlier ones that share a tag, or else to the main memory of its project, or to the most similar memory.
func (f *filler) remember(m souvenir.NewMemory, by int) error {
	project, tags := m.ProjectName, m.Tags
	if name, ok := m.ShownMetadata["project_name"].(string); ok {
		project = name
	}
	if list, ok := m.ShownMetadata["tags"].([]any); ok {
		for _, tag := range list {
			if text, ok := tag.(string); ok {
				tags = append(tags, text)
			}
		}
	}
	for _, tag := range tags {
		if id := f.latest[project+"\x00"+tag]; id != "" && !slices.Contains(m.Related, id) && len(m.Related) < 2 {
			m.Related = append(m.Related, id)
		}
	}
	if id := f.latest[project]; id != "" && len(m.Related) == 0 {
		m.Related = []string{id}
	}
	if by < 0 {
		by = f.clientFor(project)
	}
	if len(m.Related) == 0 {
		near, err := f.clients[by].view.Search(f.ctx, souvenir.Query{Text: m.Content, Limit: 1, MinScore: related})
		if err != nil {
			return err
		}
		for _, hit := range near.Hits {
			m.Related = append(m.Related, hit.ID)
		}
	}
	added, err := f.clients[by].view.AddMemory(f.ctx, m)
	if err != nil {
		return err
	}
	for _, tag := range tags {
		f.latest[project+"\x00"+tag] = added.ID
	}
	if m.ShownMetadata["event_type"] == souvenir.EventProjectMain {
		f.latest[project] = added.ID
	} else { // a main memory is never settled
		f.stored = append(f.stored, stored{added.ID, project, by})
	}
	return f.record(by, souvenir.NewActivity{Tool: "memory", Action: "store", MemoryID: added.ID})
}

// clientFor returns the client that works in a project: editors in those of the company, Claude at home.
func (f *filler) clientFor(project string) int {
	switch project {
	case "berth", "driftwood":
		return f.random.IntN(2) // Claude Code or Cursor
	case "lantern":
		return cursor
	}
	return claude
}

// call makes a client use the store, mostly by searching.
func (f *filler) call() error {
	if len(f.stored) == 0 {
		return nil
	}
	recent := f.stored[max(0, len(f.stored)-60):]
	one := recent[f.random.IntN(len(recent))]
	hits := f.random.IntN(8) // one search in eight finds nothing
	call := souvenir.NewActivity{Tool: "memory", Action: "search", Hits: &hits}
	if one.project != "" && f.random.IntN(2) == 0 {
		call.Project = souvenir.ProjectRef{Name: one.project}
	}
	switch f.random.IntN(20) {
	case 0, 1, 2:
		call.Action, call.MemoryID = "retrieve", one.id
	case 3, 4:
		call.Action = "get_context"
	case 5:
		call.Tool, call.Action = "get_module_state", ""
	case 6:
		id := f.latest[one.project]
		if one.project == "" || id == "" {
			break
		}
		call.MemoryID, call.Project = id, souvenir.ProjectRef{Name: one.project}
		call.Tool, call.Action = "get_project_main_memory", ""
	case 7:
		call.Action, call.Outcome, call.Project = "retrieve", "not_found", souvenir.ProjectRef{}
	case 8:
		return f.correct(one)
	}
	if call.Action != "search" {
		call.Hits = nil
	}
	return f.record(one.by, call)
}

// correct has a client mark a memory as settled, or as superseded.
func (f *filler) correct(one stored) error {
	state := souvenir.StateCompleted
	if f.random.IntN(3) == 0 {
		state = souvenir.StateArchived
	}
	return f.update(one.by, one.id, souvenir.MemoryUpdate{State: &state})
}

// update has a client update a memory, during the call that is recorded for it.
func (f *filler) update(by int, id string, u souvenir.MemoryUpdate) error {
	f.pass()
	call := souvenir.NewActivity{Tool: "memory", Action: "update", MemoryID: id, StartedAt: f.clock.Now()}
	if _, err := f.clients[by].view.UpdateMemory(f.ctx, id, u); err != nil {
		return err
	}
	call.Duration = f.clock.Now().Sub(call.StartedAt)
	return f.record(by, call)
}

// pass lets a minute or so pass.
func (f *filler) pass() { f.at(f.clock.Now().Add(time.Duration(20+f.random.IntN(70)) * time.Second)) }

// record records a call of a client, a minute or so after the one before unless it has a time.
func (f *filler) record(by int, call souvenir.NewActivity) error {
	call.Principal, call.Client = f.clients[by].principal, f.clients[by].agent
	call.Bytes = int64(200 + f.random.IntN(6000))
	if call.StartedAt.IsZero() {
		call.Duration = time.Duration(900+f.random.IntN(14_000)) * time.Microsecond
		f.pass()
	}
	if err := f.show(&f.clients[by]); err != nil {
		return err
	}
	return f.store.Upkeep().RecordActivity(f.ctx, call)
}

// show has a client show its credential: once a day, and every hour of the last two days.
func (f *filler) show(c *client) error {
	now, every := f.clock.Now(), 24*time.Hour
	if f.ends.Sub(now) < 2*every {
		every = time.Hour
	}
	if now.Sub(c.used) < every {
		return nil
	}
	c.used = now
	return c.use()
}
