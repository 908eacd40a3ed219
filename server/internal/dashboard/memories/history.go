package memories

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// memoryHistory is what the page shows of the states that a memory was in.
type memoryHistory struct {
	memoryHead
	States []memoryState
	Pages  web.Pager
	Kept   int // states before the present one
	One    *memoryState
	Shown  textview.Cut // the text of that one
	Facts  []memoryFact
}

// memoryState is a state with what differs from another one: the one before, or for a single state the present one.
type memoryState struct {
	souvenir.Revision
	First  bool // nothing is known before it
	Text   *textview.Diff
	Fields []fieldChange
	Path   string
	Action string // how it came about, in a word or two
	By     string // by which of the user's own programs or browsers; empty: not known
}

// fieldChange is a key of the metadata that differs. Empty: it is not there.
type fieldChange struct{ Key, Before, After string }

// Same reports whether nothing differs.
func (s memoryState) Same() bool { return s.Text == nil && len(s.Fields) == 0 }

// historyShown is how many states a page shows.
const historyShown = 10

// showHistory shows the states that a memory was in, or one of them.
func (s *Service) showHistory(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	head, err := s.memoryHead(r, c, "History")
	if err != nil {
		return nil, err
	}
	revisions, err := c.Store.Revisions(r.Context(), head.ID)
	if err != nil {
		return nil, err
	}
	data := memoryHistory{memoryHead: head, Kept: len(revisions) - 1}
	if asked := r.URL.Query().Get("revision"); asked != "" {
		return data.one(revisions, asked)
	}
	begin, left := 0, textview.MaxDiffsShown
	data.Pages = web.Pager{Name: "part", Page: 1, Pages: max(1, (len(revisions)+historyShown-1)/historyShown)}
	if n, err := strconv.Atoi(r.URL.Query().Get("part")); err == nil {
		data.Pages.Page = min(max(n, 1), data.Pages.Pages)
		begin = (data.Pages.Page - 1) * historyShown
	}
	for i := begin; i < min(begin+historyShown, len(revisions)); i++ {
		state := memoryState{Revision: revisions[i], First: i == len(revisions)-1,
			Path: head.historyPath(revisions[i].Number)}
		if state.First {
			state.Action = firstState(revisions[i])
		} else {
			state.compare(revisions[i+1], revisions[i], min(left, textview.MaxDiffShown))
		}
		if state.Text != nil && !state.Text.TooLarge {
			left -= min(left, textview.MaxDiffShown) - max(0, state.Text.Left)
		}
		if state.By, err = s.changedBy(r.Context(), c, head.ID, state.CreatedAt); err != nil {
			return nil, err
		}
		data.States = append(data.States, state)
	}
	return web.Page{Template: "memoryhistory", Title: "History of “" + head.Title + "”", Data: data}, nil
}

// firstState says what the first state that is known is.
func firstState(r souvenir.Revision) string {
	if r.Number > 1 {
		return "The first that is kept"
	}
	return "Stored"
}

// one shows a single state, with what differs between it and the present one.
func (p memoryHistory) one(revisions []souvenir.Revision, asked string) (any, error) {
	number, err := strconv.Atoi(asked)
	state, known := stateAt(revisions, number)
	if err != nil || !known {
		return nil, &souvenir.Error{Kind: souvenir.KindNotFound, Argument: "revision", Message: "revision " +
			failure.Quote(asked) + " of this memory is not kept, or cannot be seen by you; " +
			"its history lists those that are"}
	}
	p.One = &memoryState{Revision: state}
	p.One.compare(state, revisions[0], textview.MaxDiffShown)
	p.Shown = textview.CutTo(state.Content, shownContent)
	for _, key := range slices.Sorted(maps.Keys(state.Metadata)) {
		p.Facts = append(p.Facts, memoryFact{Key: key, Value: textview.Plain(state.Metadata[key])})
	}
	return web.Page{Template: "memoryhistory", Title: "Version " + asked + " of “" + p.Title + "”", Data: p}, nil
}

// compare notes what differs between two states, and of their texts so many bytes of it.
func (s *memoryState) compare(before, after souvenir.Revision, most int) {
	if before.Content != after.Content {
		s.Text = textview.Compare(before.Content, after.Content, most)
	}
	keys := map[string]bool{}
	for key := range before.Metadata {
		keys[key] = true
	}
	for key := range after.Metadata {
		keys[key] = true
	}
	var changed []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if reflect.DeepEqual(before.Metadata[key], after.Metadata[key]) {
			continue
		}
		change := fieldChange{Key: key}
		if value, there := before.Metadata[key]; there {
			change.Before = shortly(textview.Plain(value))
		}
		if value, there := after.Metadata[key]; there {
			change.After = shortly(textview.Plain(value))
		}
		s.Fields = append(s.Fields, change)
		changed = append(changed, key)
	}
	switch {
	case s.Text != nil && len(changed) > 0:
		s.Action = "Text and metadata changed"
	case s.Text != nil:
		s.Action = "Text changed"
	case len(changed) == 1:
		s.Action = "Changed: " + strings.ReplaceAll(changed[0], "_", " ")
	case len(changed) > 0:
		s.Action = "Metadata changed"
	default:
		s.Action = "As before"
	}
}

// shortly is the beginning of a value that is long.
func shortly(value string) string {
	const most = 500
	if shown := textview.CutBytes(value, most); len(shown) < len(value) {
		return shown + "…"
	}
	if value == "" {
		return "(empty)"
	}
	return value
}

// restoreRevision brings a memory back to a former state.
func (s *Service) restoreRevision(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(values.Get("revision"))
	if err != nil {
		return nil, failure.Invalid("revision", "revision is "+failure.Quote(values.Get("revision"))+
			"; the number of one in the history is needed")
	}
	before, err := c.Store.GetMemory(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	stored, err := c.Store.RestoreRevision(r.Context(), before.ID, number)
	if err != nil {
		return nil, err
	}
	return s.changedWithUndo(c, web.MemoryPath(before.ID), "The memory is as it was in version "+strconv.Itoa(number)+".",
		before, stored.Memory), nil
}

// longCall is how long before a state was stored the call may have begun that stored it.
const longCall = time.Minute

// changedBy says which of the user's own calls, as far as they are recorded, has brought a memory into the state that
// it is in since a time.
func (s *Service) changedBy(ctx context.Context, c request.Caller, id string, at time.Time) (string, error) {
	calls, err := c.Store.Insights().Activities(ctx,
		souvenir.ActivityQuery{Since: at.Add(-longCall), Until: at.Add(time.Millisecond), Outcome: souvenir.OutcomeOK})
	if err != nil {
		return "", err
	}
	for _, call := range calls.Activities {
		ended := call.StartedAt.Add(time.Duration(call.DurationMS * float64(time.Millisecond))).Add(time.Millisecond)
		if call.MemoryID != id || ended.Before(at) || call.Action == "retrieve" {
			continue
		}
		if call.Credential.Kind == souvenir.CredentialSession {
			return "by you, in " + web.BrowserName(call.Client), nil
		}
		by := "by " + cmp.Or(call.Client, "a program")
		if call.Credential.Name != "" && call.Credential.Name != call.Client {
			by += " (" + call.Credential.Name + ")"
		}
		return by, nil
	}
	return "", nil
}
