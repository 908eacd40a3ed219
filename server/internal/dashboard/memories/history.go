package memories

import (
	"cmp"
	"context"
	"maps"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/shorten"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// memoryHistory is the data of the page of a memory's past versions.
type memoryHistory struct {
	memoryHead
	States []memoryState
	Pages  web.Pager
	Kept   int // number of past versions
	One    *memoryState
	Shown  textview.Cut // the text of that version
	Facts  []memoryFact
}

// memoryState is a version with its differences: from the previous one, or, for a single version, from the current
// one.
type memoryState struct {
	souvenir.Revision
	First  bool // the oldest one kept
	Text   *textview.Diff
	Fields []fieldChange
	Path   string
	Action string // how it was made, in a word or two
	By     string // the user's own program or browser that made it; empty: unknown
}

// fieldChange is a metadata key that differs. Empty: not set.
type fieldChange struct{ Key, Before, After string }

// Same reports whether there are no differences.
func (s memoryState) Same() bool { return s.Text == nil && len(s.Fields) == 0 }

// historyShown is how many versions a page shows.
const historyShown = 10

// showHistory shows a memory's past versions, or one of them.
func (s *Service) showHistory(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	head, err := s.memoryHead(r, c, "History")
	if err != nil {
		return nil, err
	}
	if asked := r.URL.Query().Get("revision"); asked != "" {
		return memoryHistory{memoryHead: head}.one(r.Context(), c, asked)
	}
	part := web.PageNumber(r, "part")
	page, err := partOfHistory(r.Context(), c, head, part)
	if err != nil {
		return nil, err
	}
	data := memoryHistory{memoryHead: head, Kept: head.Revision - page.Oldest}
	data.Pages = web.Pager{Name: "part", Page: part, Pages: data.Kept/historyShown + 1}
	if part > data.Pages.Pages {
		data.Pages.Page = data.Pages.Pages
		if page, err = partOfHistory(r.Context(), c, head, data.Pages.Page); err != nil {
			return nil, err
		}
	}
	lowest, left := head.Revision-data.Pages.Page*historyShown, textview.MaxDiffsShown
	for i, revision := range page.Revisions {
		if revision.Number <= lowest {
			break // only to compare with
		}
		state := memoryState{Revision: revision, First: i == len(page.Revisions)-1, Path: head.historyPath(revision.Number)}
		if state.First {
			state.Action = firstState(revision)
		} else {
			state.compare(page.Revisions[i+1], revision, min(left, textview.MaxDiffShown))
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

// partOfHistory loads the versions of a part of the history, and the one before them.
func partOfHistory(ctx context.Context, c request.Caller, head memoryHead, part int) (souvenir.RevisionPage, error) {
	newest := head.Revision - (part-1)*historyShown
	return c.Store.Insights().RevisionPage(ctx, head.ID,
		souvenir.RevisionQuery{Before: max(newest, 0) + 1, Limit: historyShown + 1})
}

// versionOf loads one version of a memory; false: it is not kept, or the caller cannot see it.
func versionOf(ctx context.Context, c request.Caller, id string, number int) (souvenir.Revision, bool, error) {
	if number < 1 || number == math.MaxInt {
		return souvenir.Revision{}, false, nil
	}
	page, err := c.Store.Insights().RevisionPage(ctx, id, souvenir.RevisionQuery{Before: number + 1, Limit: 1})
	if err != nil || len(page.Revisions) == 0 || page.Revisions[0].Number != number {
		return souvenir.Revision{}, false, err
	}
	return page.Revisions[0], true, nil
}

// firstState describes the oldest version kept.
func firstState(r souvenir.Revision) string {
	if r.Number > 1 {
		return "The oldest version that is kept"
	}
	return "Stored"
}

// one shows a single version, with its differences from the current one.
func (p memoryHistory) one(ctx context.Context, c request.Caller, asked string) (any, error) {
	number, _ := strconv.Atoi(asked) // 0 if it is no number
	state, known, err := versionOf(ctx, c, p.ID, number)
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, &souvenir.Error{Kind: souvenir.KindNotFound, Argument: "revision", Message: "revision " +
			failure.Quote(asked) + " of this memory is not kept, or you have no access to it; " +
			"its history lists the versions that are kept"}
	}
	p.One = &memoryState{Revision: state}
	now, _, err := versionOf(ctx, c, p.ID, p.Revision)
	if err != nil {
		return nil, err
	}
	p.One.compare(state, now, textview.MaxDiffShown)
	p.Shown = textview.CutTo(state.Content, shownContent)
	for _, key := range slices.Sorted(maps.Keys(state.Metadata)) {
		if label := labelOf(key, state.Metadata); label != "" {
			p.Facts = append(p.Facts, memoryFact{Key: label, Value: textview.Plain(state.Metadata[key])})
		}
	}
	return web.Page{Template: "memoryhistory", Title: "Version " + asked + " of “" + p.Title + "”", Data: p}, nil
}

// compare records the differences between two versions, with at most the given bytes of their texts.
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
	either := map[string]any{"project_name": cmp.Or(before.Metadata["project_name"], after.Metadata["project_name"])}
	var changed []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if reflect.DeepEqual(before.Metadata[key], after.Metadata[key]) {
			continue
		}
		label := labelOf(key, either)
		if label == "" {
			continue
		}
		change := fieldChange{Key: label}
		if value, there := before.Metadata[key]; there {
			change.Before = shortly(textview.Plain(value))
		}
		if value, there := after.Metadata[key]; there {
			change.After = shortly(textview.Plain(value))
		}
		s.Fields = append(s.Fields, change)
		changed = append(changed, label)
	}
	switch {
	case s.Text != nil && len(changed) > 0:
		s.Action = "Text and metadata changed"
	case s.Text != nil:
		s.Action = "Text changed"
	case len(changed) == 1:
		s.Action = changed[0] + " changed"
	case len(changed) > 0:
		s.Action = "Metadata changed"
	default:
		s.Action = "As before"
	}
}

// shortly shortens a long value.
func shortly(value string) string {
	const most = 500
	if view := shorten.Bytes(value, most); len(view) < len(value) {
		return view + "…"
	}
	if value == "" {
		return "(empty)"
	}
	return value
}

// restoreRevision restores a past version of a memory.
func (s *Service) restoreRevision(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(values.Get("revision"))
	if err != nil {
		return nil, failure.Invalid("revision", "revision is "+failure.Quote(values.Get("revision"))+
			"; give the number of a version in the history")
	}
	before, err := c.Store.GetMemory(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	stored, err := c.Store.RestoreRevision(r.Context(), before.ID, number)
	if err != nil {
		return nil, err
	}
	return s.changedWithUndo(c, web.MemoryPath(before.ID), "Restored: the memory is as it was in version "+
		strconv.Itoa(number)+".",
		before, stored.Memory), nil
}

// longCall is the maximum time between the start of a call and the version that it stored.
const longCall = time.Minute

// changedBy returns which of the user's own recorded calls since a time has made the memory's version.
func (s *Service) changedBy(ctx context.Context, c request.Caller, id string, at time.Time) (string, error) {
	calls, err := c.Store.Insights().ActivityPage(ctx,
		souvenir.ActivityQuery{Since: at.Add(-longCall), Until: at.Add(time.Millisecond), Outcome: souvenir.OutcomeOK})
	if err != nil {
		return "", err
	}
	for _, call := range calls.Activities {
		ended := call.StartedAt.Add(time.Duration(call.DurationMS * float64(time.Millisecond))).Add(time.Millisecond)
		if call.MemoryID != id || ended.Before(at) || call.Action == "retrieve" {
			continue
		}
		if call.Credential.Kind == souvenir.CredentialSignIn {
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
