package memories

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

const (
	maxBulk = 1000 // memories per step

	// bulkAtOnce is how many of them are changed concurrently: concurrent writers share a flush of the disk.
	bulkAtOnce = 16
)

// bulkStep is a change to many memories.
type bulkStep struct {
	text   func(n int) string                            // describes the outcome for n memories
	change func(souvenir.Memory) (map[string]any, error) // the patch of a memory's metadata; nil: nothing to change
	remove bool                                          // the memories are deleted
}

// bulkResult is the outcome for the memories.
type bulkResult struct {
	changed []changedMemory
	deleted []string       // ids
	same    int            // unchanged
	gone    int            // deleted meanwhile
	refused map[string]int // number of refusals by reason
	failed  error          // an error that the user cannot fix; it ended the step early
}

// changedMemory is a memory before and after a change.
type changedMemory struct {
	id       string
	label    string
	back     map[string]any // patch of the metadata that undoes the change
	content  *string        // the content before; nil: unchanged
	revision int            // after the change
	givenTo  string         // name of the user to whom it belongs since; empty: its owner has not changed
}

// changeMemories changes many memories at once.
func (s *Service) changeMemories(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	query, err := url.ParseQuery(values.Get("back"))
	if err != nil {
		return nil, failure.Invalid("back", "back is "+failure.Quote(values.Get("back"))+
			"; expected the query of the list's address")
	}
	search := readMemorySearch(query, web.ZoneOf(r))
	ids, err := s.chosenMemories(r, c, values, search)
	if err != nil {
		return nil, err
	}
	if values.Get("action") == "merge" {
		return s.mergeOf(ids)
	}
	step, err := readBulkStep(values)
	if err != nil {
		return nil, err
	}
	path := listPath(search, values.Get("shown"))
	if step.remove && values.Get("sure") == "" {
		return s.askBulkDelete(r, ids, values, path)
	}
	result := runBulk(r.Context(), c.Store, ids, step)
	return s.bulkDone(r, c, result, step, path)
}

// askBulkDelete asks for confirmation before it deletes many memories. The form names each of them, so that exactly
// the counted ones are deleted.
func (s *Service) askBulkDelete(r *http.Request, ids []string, values url.Values, path string) (any, error) {
	until, err := web.TrashUntil(r, s.store)
	if err != nil {
		return nil, err
	}
	asks := &web.Question{ID: "delete", Title: "Delete " + web.Count(len(ids), "memory") + "?", Action: "/memories/bulk",
		Button: "Delete", Back: path,
		Text: web.TrashNote(len(ids), until),
		Kept: []web.Fact{{Key: "action", Value: "delete"}, {Key: "sure", Value: "yes"},
			{Key: "back", Value: values.Get("back")}, {Key: "shown", Value: values.Get("shown")}}}
	for _, id := range ids {
		asks.Kept = append(asks.Kept, web.Fact{Key: "id", Value: id})
	}
	return web.Page{Template: "asks", Title: "Delete memories", Data: &web.QuestionPage{Asks: asks}}, nil
}

// listPath is the path of a list of memories at the part that was visible.
func listPath(search memorySearch, part string) string {
	values := search.values()
	if number, err := strconv.Atoi(part); err == nil && number > 1 {
		values.Set("page", strconv.Itoa(number))
	}
	if len(values) == 0 {
		return "/memories"
	}
	return "/memories?" + values.Encode()
}

// chosenMemories returns the ids of the memories to change: the selected ones, or all matches.
func (s *Service) chosenMemories(r *http.Request, c request.Caller, values url.Values, search memorySearch) ([]string,
	error) {
	if values.Get("all") == "" {
		ids := values["id"]
		slices.Sort(ids)
		ids = slices.Compact(ids)
		switch {
		case len(ids) == 0:
			return nil, failure.Invalid("id",
				"no memory is selected; select memories, then choose the action again")
		case len(ids) > maxBulk:
			return nil, failure.Invalid("id", strconv.Itoa(len(ids))+" memories are selected; at most "+web.Thousands(maxBulk)+
				" can be changed at once")
		}
		return ids, nil
	}
	if search.Text != "" {
		return nil, failure.Invalid("all",
			"a search ranks all memories; select some of them, or use only filters")
	}
	list, err := search.list()
	if err != nil {
		return nil, err
	}
	list.Sort = cmp.Or(list.Sort, souvenir.SortUpdatedDesc)
	var ids []string
	for m, err := range c.Store.Memories(r.Context(), list) {
		if err != nil {
			return nil, err
		}
		if ids = append(ids, m.ID); len(ids) == maxBulk {
			break
		}
	}
	if len(ids) == 0 {
		return nil, &failure.Error{Status: http.StatusNotFound, Message: "no memory matches now; nothing was changed"}
	}
	return ids, nil
}

// readBulkStep reads the change to make.
func readBulkStep(values url.Values) (bulkStep, error) {
	tag := strings.TrimSpace(values.Get("bulk_tag"))
	set := func(what string, patch map[string]any) (bulkStep, error) {
		return bulkStep{text: func(n int) string { return are(n) + what },
			change: func(souvenir.Memory) (map[string]any, error) { return patch, nil }}, nil
	}
	switch action := values.Get("action"); action {
	case "archive":
		return set(" archived", map[string]any{"state": "archived"})
	case "state":
		state := strings.TrimSpace(values.Get("bulk_state"))
		if state == "" {
			return bulkStep{text: func(n int) string { return "State removed from " + web.Count(n, "memory") },
				change: func(souvenir.Memory) (map[string]any, error) { return map[string]any{"state": nil}, nil }}, nil
		}
		return bulkStep{text: func(n int) string { return have(n) + " the state " + state },
			change: func(souvenir.Memory) (map[string]any, error) { return map[string]any{"state": state}, nil }}, nil
	case "move":
		return readMove(values.Get("bulk_project"))
	case "delete":
		return bulkStep{text: func(n int) string { return are(n) + " deleted" }, remove: true}, nil
	case "tag", "untag":
		if tag == "" {
			return bulkStep{}, failure.Invalid("tag", "the tag is missing; enter it beside the button")
		}
		if action == "tag" {
			return bulkStep{text: func(n int) string { return have(n) + " the tag " + failure.Quote(tag) },
				change: func(m souvenir.Memory) (map[string]any, error) {
					if slices.Contains(m.Tags, tag) {
						return nil, nil
					}
					return map[string]any{"tags": append(slices.Clone(m.Tags), tag)}, nil
				}}, nil
		}
		return bulkStep{
			text: func(n int) string { return "Tag " + failure.Quote(tag) + " removed from " + web.Count(n, "memory") },
			change: func(m souvenir.Memory) (map[string]any, error) {
				if !slices.Contains(m.Tags, tag) {
					return nil, nil
				}
				return map[string]any{"tags": without(m.Tags, tag)}, nil
			}}, nil
	default:
		return bulkStep{}, failure.Invalid("action", "action is "+failure.Quote(action)+
			"; expected archive, delete, merge, move, state, tag or untag")
	}
}

// readMove reads the target of a move: OWNER/ID, or no project.
func readMove(project string) (bulkStep, error) {
	patch := map[string]any{"project_id": nil, "project_name": nil}
	text := func(n int) string { return are(n) + " no longer in a project" }
	if project != "" {
		_, id, found := strings.Cut(project, "/")
		if !found {
			id = project
		}
		patch = map[string]any{"project_id": project}
		text = func(n int) string { return are(n) + " in the project " + id + " now" }
	}
	return bulkStep{text: text, change: func(souvenir.Memory) (map[string]any, error) { return patch, nil }}, nil
}

func are(n int) string {
	if n == 1 {
		return "1 memory is"
	}
	return web.Count(n, "memory") + " are"
}

func have(n int) string {
	if n == 1 {
		return "1 memory has"
	}
	return web.Count(n, "memory") + " have"
}

// without returns a list without one of its values; never nil.
func without(all []string, value string) []string {
	kept := []string{}
	for _, other := range all {
		if other != value {
			kept = append(kept, other)
		}
	}
	return kept
}

// runBulk applies a step to some memories.
func runBulk(ctx context.Context, store *souvenir.Store, ids []string, step bulkStep) bulkResult {
	result := bulkResult{refused: map[string]int{}}
	var mu sync.Mutex
	var workers sync.WaitGroup
	next := make(chan string)
	for range min(bulkAtOnce, len(ids)) {
		workers.Go(func() {
			for id := range next {
				one := step.run(ctx, store, id)
				mu.Lock()
				result.add(one)
				mu.Unlock()
			}
		})
	}
	for _, id := range ids {
		mu.Lock()
		failed := result.failed
		mu.Unlock()
		if failed != nil {
			break
		}
		next <- id
	}
	close(next)
	workers.Wait()
	return result
}

// bulkOutcome is the outcome for one memory: changed, deleted, or neither.
type bulkOutcome struct {
	changed *changedMemory
	deleted string // its id
	err     error
}

func (b *bulkResult) add(one bulkOutcome) {
	switch {
	case one.deleted != "":
		b.deleted = append(b.deleted, one.deleted)
	case one.changed != nil:
		b.changed = append(b.changed, *one.changed)
	case one.err == nil:
		b.same++
	case errors.Is(one.err, souvenir.ErrNotFound) && aboutID(one.err):
		b.gone++
	default:
		status, message := failure.Describe(one.err)
		if status >= http.StatusInternalServerError {
			b.failed = cmp.Or(b.failed, one.err)
			return
		}
		b.refused[reason(one.err, message)]++
	}
}

// aboutID reports whether an error is about the memory itself.
func aboutID(err error) bool {
	var known *souvenir.Error
	return errors.As(err, &known) && known.Argument == "id"
}

// reason returns why a memory was refused, without the parts that differ between memories.
func reason(err error, message string) string {
	if errors.Is(err, souvenir.ErrForbidden) {
		if aboutID(err) {
			return "it is shared with you read-only"
		}
		return "only its owner can move it to another project"
	}
	return message
}

// run applies the step to one memory.
func (b bulkStep) run(ctx context.Context, store *souvenir.Store, id string) bulkOutcome {
	if b.remove {
		if err := store.DeleteMemory(ctx, id, nil); err != nil {
			return bulkOutcome{err: err}
		}
		return bulkOutcome{deleted: id}
	}
	const tries = 3 // for concurrent changes
	for try := 1; ; try++ {
		before, err := store.GetMemory(ctx, id)
		if err != nil {
			return bulkOutcome{err: err}
		}
		patch, err := b.change(before)
		if err != nil || patch == nil {
			return bulkOutcome{err: err}
		}
		changed, err := updateWithBack(ctx, store, before, souvenir.MemoryUpdate{ShownMetadata: patch})
		if errors.Is(err, souvenir.ErrConflict) && try < tries {
			continue
		}
		return bulkOutcome{changed: changed, err: err}
	}
}

// updateWithBack changes a memory, unless it has changed since it was read, and returns how to undo that; nil where
// nothing changed.
func updateWithBack(ctx context.Context, store *souvenir.Store, before souvenir.Memory,
	u souvenir.MemoryUpdate) (*changedMemory, error) {
	u.ExpectedRevision = before.Revision
	after, err := store.UpdateMemory(ctx, before.ID, u)
	if err != nil || after.Revision == before.Revision {
		return nil, err
	}
	changed := &changedMemory{id: before.ID, label: textview.Clip(before.Content, 60), back: map[string]any{},
		revision: after.Revision, givenTo: givenTo(before, after.Memory)}
	was := before.ShownMetadata()
	for key := range u.ShownMetadata {
		changed.back[key] = was[key] // nil, where the key was not set, removes it
	}
	if u.Content != nil && *u.Content != before.Content {
		changed.content = &before.Content
	}
	return changed, nil
}

// givenTo returns the name of the user to whom a memory belongs since it was moved into that user's project. Only that
// user can move it out again, so the step cannot be undone. Empty: its owner has not changed.
func givenTo(before, after souvenir.Memory) string {
	if after.Owner == before.Owner {
		return ""
	}
	return cmp.Or(after.SharedBy, after.Owner)
}

// belongsTo says what it means that memories were moved into another user's project.
func belongsTo(name string) string {
	return " Memories in a project of " + name + " belong to " + name + ", and only " + name + " can move them out again."
}

// bulkDone reports the outcome, and offers to undo it.
func (s *Service) bulkDone(r *http.Request, c request.Caller, result bulkResult, step bulkStep, path string) (any,
	error) {
	if result.failed != nil {
		if len(result.changed)+len(result.deleted) == 0 {
			return nil, result.failed
		}
		result.refused["the server failed before it finished"] = 1
	}
	n := len(result.changed) + len(result.deleted)
	var sentences []string
	if n > 0 {
		sentences = append(sentences, step.text(n)+".")
	}
	if result.same > 0 {
		sentences = append(sentences, web.Count(result.same, "memory")+" needed no change.")
	}
	if result.gone == 1 {
		sentences = append(sentences, "1 memory was deleted meanwhile.")
	} else if result.gone > 1 {
		sentences = append(sentences, web.Count(result.gone, "memory")+" were deleted meanwhile.")
	}
	for reason, times := range result.refused {
		sentences = append(sentences, web.Count(times, "memory")+" unchanged: "+web.Sentence(reason))
	}
	if n == 0 {
		if result.same > 0 && result.gone == 0 && len(result.refused) == 0 {
			return s.site.Done(path, "nothing-changed"), nil
		}
		return nil, &failure.Error{Status: http.StatusConflict, Message: "nothing was changed: " +
			strings.Join(sentences, " ")}
	}
	text := strings.Join(sentences, " ")
	if len(result.deleted) > 0 {
		last, err := c.Store.Trash().Get(r.Context(), result.deleted[len(result.deleted)-1])
		if err != nil {
			return s.site.Say(c, path, text), nil //nolint:nilerr // the trash is off
		}
		text += " The trash keeps them until " + web.Date(last.Until.In(web.ZoneOf(r).Location)) + "."
	}
	given := func(m changedMemory) bool { return m.givenTo != "" }
	if i := slices.IndexFunc(result.changed, given); i >= 0 {
		text += belongsTo(result.changed[i].givenTo) // a step has one target
		if result.changed = slices.DeleteFunc(result.changed, given); len(result.changed) == 0 {
			return s.site.Say(c, path, text), nil
		}
	}
	back := func(ctx context.Context) error { return takeBulkBack(ctx, c.Store, result) }
	return s.site.StepDone(c, path, web.Step{Text: text, Path: path, Back: back, Bytes: result.bytes()}), nil
}

// takeBulkBack restores the memories, except where they have changed since.
func takeBulkBack(ctx context.Context, store *souvenir.Store, result bulkResult) error {
	var kept []string
	var failed error
	note := func(label string, err error) {
		switch {
		case err == nil:
		case errors.Is(err, souvenir.ErrConflict), errors.Is(err, souvenir.ErrNotFound),
			errors.Is(err, souvenir.ErrForbidden), errors.Is(err, souvenir.ErrInvalid):
			kept = append(kept, "“"+label+"”")
		default:
			failed = cmp.Or(failed, err)
		}
	}
	for _, id := range result.deleted {
		title := id
		if entry, err := store.Trash().Get(ctx, id); err == nil {
			title = textview.Clip(entry.Title, 60)
		}
		_, err := store.Trash().Restore(ctx, id)
		note(title, err)
	}
	for _, m := range result.changed {
		_, err := store.UpdateMemory(ctx, m.id,
			souvenir.MemoryUpdate{Content: m.content, ShownMetadata: m.back, ExpectedRevision: m.revision})
		note(m.label, err)
	}
	if failed != nil || len(kept) == 0 {
		return failed
	}
	all := len(result.deleted) + len(result.changed)
	const most = 5
	names := strings.Join(kept[:min(len(kept), most)], ", ")
	if len(kept) > most {
		names += " and " + web.Thousands(len(kept)-most) + " more"
	}
	return &failure.Error{Status: http.StatusConflict, Message: are(all-len(kept)) +
		" as before. Not restored, because it has been changed or deleted since, or its place is gone: " + names +
		"; the history of each has its past versions"}
}
