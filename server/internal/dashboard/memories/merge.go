package memories

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// maxMerge is how many memories can be merged at once.
const maxMerge = 8

// mergePage is the data of the page on which memories are merged.
type mergePage struct {
	Memories []mergeChoice
	Content  string // the new content of the memory that is kept; empty: unchanged
	Problem  string
	Gone     int // requested memories that are gone
	Tags     []string
}

// mergeChoice is one of the memories to merge.
type mergeChoice struct {
	souvenir.Memory
	Keep   bool
	Pieces []textview.Segment // its content; words that the first one does not have are marked
	Long   bool               // too long to compare
	Facts  []web.Fact
	Letter string // A, B, ...: its name on the page
}

// comparedContent is the maximum size, in bytes, of a text that is compared word by word.
const comparedContent = 16 << 10

// mergeAddress is the path of the page on which memories are merged.
func mergeAddress(ids []string) string {
	return "/memories/merge?" + url.Values{"id": ids}.Encode()
}

// mergeOf redirects to the merge page from a list in which memories were selected.
func (s *Service) mergeOf(ids []string) (any, error) {
	switch {
	case len(ids) < 2:
		return nil, failure.Invalid("id", "1 memory is selected; select 2 to "+strconv.Itoa(maxMerge)+" to merge")
	case len(ids) > maxMerge:
		return nil, failure.Invalid("id", web.Thousands(len(ids))+" memories are selected; at most "+strconv.Itoa(maxMerge)+
			" can be merged at once")
	}
	return web.Redirect(s.site.Path(mergeAddress(ids))), nil
}

func (s *Service) showMerge(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	ids := distinctIDs(r.URL.Query()["id"])
	if len(ids) > maxMerge {
		return nil, failure.Invalid("id", "the address names "+web.Thousands(len(ids))+" memories; at most "+
			strconv.Itoa(maxMerge)+" can be merged at once")
	}
	data, err := readMerge(r.Context(), c.Store, ids)
	if err != nil {
		return nil, err
	}
	if len(data.Memories) < 2 {
		if data.Gone > 0 {
			return s.site.Done("/memories/duplicates", "nothing-to-merge"), nil
		}
		return web.Redirect(s.site.Path("/memories/duplicates")), nil
	}
	return mergeShown(data), nil
}

func mergeShown(data mergePage) web.Page {
	return web.Page{Template: "merge", Title: "Merge memories: " + strconv.Itoa(len(data.Memories)), Data: data}
}

func distinctIDs(all []string) []string {
	var ids []string
	known := map[string]bool{"": true}
	for _, id := range all {
		if !known[id] {
			ids = append(ids, id)
		}
		known[id] = true
	}
	return ids
}

// readMerge reads the memories to merge. The first one is kept, unless the user chooses another.
func readMerge(ctx context.Context, store *souvenir.Store, ids []string) (mergePage, error) {
	var data mergePage
	all, err := readChoices(ctx, store, ids)
	if err != nil {
		return data, err
	}
	data.Gone = len(ids) - len(all)
	for i, choice := range all {
		m := choice.Memory
		if choice.Keep = i == 0; i > 0 {
			choice.Pieces, choice.Long = compared(m.Content, all[0].Content)
		} else {
			text, long := textview.Opening(m.Content, comparedContent)
			choice.Pieces, choice.Long = []textview.Segment{{Text: text}}, long
		}
		view := m.ShownMetadata()
		for _, key := range slices.Sorted(maps.Keys(view)) {
			if label := labelOf(key, view); key != "tags" && key != "related_memory_ids" && label != "" {
				choice.Facts = append(choice.Facts, web.Fact{Key: label, Value: factText(view[key])})
			}
		}
		for _, tag := range m.Tags {
			if !slices.Contains(data.Tags, tag) {
				data.Tags = append(data.Tags, tag)
			}
		}
		data.Memories = append(data.Memories, choice)
	}
	return data, nil
}

// readChoices reads the memories to merge, as far as they exist.
func readChoices(ctx context.Context, store *souvenir.Store, ids []string) (all []mergeChoice, err error) {
	for _, id := range ids {
		m, err := store.GetMemory(ctx, id)
		switch {
		case err == nil:
			all = append(all, mergeChoice{Memory: m, Letter: string(rune('A' + len(all)))})
		case !errors.Is(err, souvenir.ErrNotFound):
			return nil, err
		}
	}
	return all, nil
}

// Cut reports whether only the beginning is shown.
func (m mergeChoice) Cut() bool { return len(m.Content) > comparedContent }

// factText returns a metadata value as text.
func factText(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return "" // it came from JSON
	}
	return textview.Clip(string(encoded), 200)
}

// mergeMemories merges several memories into one: the one that is kept gets the metadata that only the others have,
// and the others are deleted.
func (s *Service) mergeMemories(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadLongForm(w, r)
	if err != nil {
		return nil, err
	}
	ids, revisions := distinctIDs(values["id"]), values["revision"]
	if len(ids) < 2 || len(ids) > maxMerge || len(revisions) != len(ids) {
		return nil, failure.Invalid("id", "the form names "+strconv.Itoa(len(ids))+" memories with "+
			strconv.Itoa(len(revisions))+" revisions; 2 to "+strconv.Itoa(maxMerge)+", each once, can be merged")
	}
	// A text area sends each line end as CR LF.
	form := mergeForm{ids, revisions, values.Get("keep"), strings.ReplaceAll(values.Get("content"), "\r\n", "\n")}
	done := merge{store: c.Store}
	// It goes on without a client that disconnects.
	err = c.Store.Transaction(context.WithoutCancel(r.Context()), func(ctx context.Context) error {
		done = merge{store: c.Store}
		return done.run(ctx, form)
	})
	if err != nil {
		return mergeAgain(r.Context(), c.Store, form, err)
	}
	return s.site.StepDone(c, "/memories/"+form.keep, web.Step{
		Text: web.Count(len(ids), "memory") + " merged. The result has the tags, metadata, links and files of all.",
		Path: mergeAddress(ids), Back: done.takeBack, Bytes: done.bytes(),
	}), nil
}

// mergeForm says what to merge.
type mergeForm struct {
	ids, revisions []string
	keep           string // id
	content        string // the new one; empty: that of the memory that is kept
}

// mergeAgain shows the form again, with the current versions, after a merge that changed nothing.
func mergeAgain(ctx context.Context, store *souvenir.Store, form mergeForm, problem error) (any, error) {
	status, message := failure.Describe(problem)
	if status >= http.StatusInternalServerError {
		return nil, problem
	}
	var refused *failure.Error
	if !errors.As(problem, &refused) {
		message = "nothing was changed: " + message
	}
	data, err := readMerge(ctx, store, form.ids)
	switch {
	case err != nil:
		return nil, err
	case len(data.Memories) < 2:
		return nil, &failure.Error{Status: status, Message: message}
	}
	keep := slices.IndexFunc(data.Memories, func(m mergeChoice) bool { return m.ID == form.keep })
	for i := range data.Memories {
		data.Memories[i].Keep = i == max(0, keep)
	}
	data.Content, data.Problem = form.content, web.Sentence(message)
	p := mergeShown(data)
	p.Status = status
	return p, nil
}

// outdated returns the memories that others supersede and that are not valid now, by their ids, without the kept one.
func outdated(ctx context.Context, store *souvenir.Store, others []mergeChoice, kept string) (map[string]bool, error) {
	ids, found := []any{}, map[string]bool{}
	for _, m := range others {
		if m.Supersedes != "" && m.Supersedes != kept {
			ids, found[m.Supersedes] = append(ids, m.Supersedes), true
		}
	}
	list := souvenir.MemoryList{Filter: souvenir.Filter{"id": ids}, WithoutContent: true}
	for m, err := range store.Memories(ctx, list) {
		if err != nil {
			return nil, err
		}
		delete(found, m.ID)
	}
	return found, nil
}

// revived says which memories must be kept, since without them outdated ones are valid again.
func revived(others []mergeChoice, kept mergeChoice, before, after map[string]bool) error {
	var needed []string
	apart := kept.Supersedes != "" // from what the others supersede
	same, replaced := true, ""
	for _, m := range others {
		if before[m.Supersedes] && !after[m.Supersedes] {
			same = same && (replaced == "" || replaced == m.Supersedes)
			needed, replaced = append(needed, m.Letter), m.Supersedes
			apart = apart && m.Supersedes != kept.Supersedes
		}
	}
	if len(needed) == 0 {
		return nil
	}
	if apart {
		same = false
		needed = slices.Sorted(slices.Values(append(needed, kept.Letter)))
	}
	message := needed[0] + " replaces an outdated memory, which would become valid again; keep " + needed[0]
	switch {
	case len(needed) > 1 && same:
		message = strings.Join(needed, " and ") + " replace the same outdated memory, which would become valid again; keep " +
			strings.Join(needed, " or ")
	case len(needed) > 1:
		message = strings.Join(needed, " and ") + " each replace an outdated memory, which would become valid again; merge " +
			"one of them at a time"
	}
	return &failure.Error{Status: http.StatusBadRequest, Message: message}
}

// merge records a merge, and how to undo it.
type merge struct {
	store *souvenir.Store
	bulkResult
	files []movedFile
}

// movedFile is a file that was linked to a deleted memory.
type movedFile struct{ id, from string }

// run merges the memories in a transaction, unless they have changed since the form was shown.
func (m *merge) run(ctx context.Context, form mergeForm) error {
	all, err := readChoices(ctx, m.store, form.ids)
	if err != nil {
		return err
	}
	if len(all) < len(form.ids) {
		return &failure.Error{Status: http.StatusConflict,
			Message: "some of them no longer exist; nothing was changed, and the rest are below"}
	}
	for i, one := range all {
		if form.revisions[i] != strconv.Itoa(one.Revision) {
			return &failure.Error{Status: http.StatusConflict, Message: "someone else has changed " + one.Letter +
				" meanwhile; nothing was changed, and these are the current versions"}
		}
	}
	keep := slices.Index(form.ids, form.keep)
	if keep < 0 {
		return &failure.Error{Status: http.StatusBadRequest, Message: "keep is " + failure.Quote(form.keep) +
			"; choose which memory to keep"}
	}
	return m.change(ctx, all, keep, form.content)
}

// change gives the kept memory what only the others have, and deletes these.
func (m *merge) change(ctx context.Context, all []mergeChoice, keep int, content string) error {
	kept := all[keep]
	others := slices.Delete(slices.Clone(all), keep, keep+1)
	patch := joined(kept.Memory, others)
	update := souvenir.MemoryUpdate{ShownMetadata: patch}
	if content != "" && content != kept.Content {
		update.Content = &content
	}
	if len(patch) > 0 || update.Content != nil {
		changed, err := updateWithBack(ctx, m.store, kept.Memory, update)
		if err != nil {
			return err
		}
		if changed != nil {
			m.changed = append(m.changed, *changed)
		}
	}
	for _, other := range others {
		if err := m.repoint(ctx, other.ID, kept.ID, all); err != nil {
			return err
		}
		if err := m.moveFiles(ctx, other.ID, kept.ID); err != nil {
			return err
		}
	}
	before, err := outdated(ctx, m.store, others, kept.ID)
	if err != nil {
		return err
	}
	for _, other := range others {
		if err := m.store.DeleteMemory(ctx, other.ID, nil); err != nil {
			return err
		}
		m.deleted = append(m.deleted, other.ID)
	}
	after, err := outdated(ctx, m.store, others, kept.ID)
	if err != nil {
		return err
	}
	return revived(others, kept, before, after)
}

// joined returns the patch with the metadata that the kept memory is missing and others have.
func joined(kept souvenir.Memory, others []mergeChoice) map[string]any {
	has := kept.ShownMetadata()
	patch := map[string]any{}
	tags, related := slices.Clone(kept.Tags), slices.Clone(kept.Related)
	gone := []string{kept.ID}
	for _, other := range others {
		gone = append(gone, other.ID)
	}
	for _, other := range others {
		for _, tag := range other.Tags {
			if !slices.Contains(tags, tag) {
				tags = append(tags, tag)
			}
		}
		for _, id := range other.Related {
			if !slices.Contains(related, id) {
				related = append(related, id)
			}
		}
		view := other.ShownMetadata()
		for key, value := range view {
			_, there := has[key]
			_, patched := patch[key]
			// A memory stays in its project, and a rule is the only one of its kind.
			if there || patched || slices.Contains([]string{"tags", "related_memory_ids", "project_id", "project_name",
				"rule_type"}, key) || value == souvenir.EventProjectRule {
				continue
			}
			patch[key] = value
		}
	}
	related = slices.DeleteFunc(related, func(id string) bool { return slices.Contains(gone, id) })
	if !slices.Equal(tags, kept.Tags) {
		patch["tags"] = tags
	}
	if !slices.Equal(related, kept.Related) {
		patch["related_memory_ids"] = related
	}
	return patch
}

// repoint changes links to a deleted memory into links to the kept one.
func (m *merge) repoint(ctx context.Context, from, to string, all []mergeChoice) error {
	for linking, err := range m.store.Memories(ctx,
		souvenir.MemoryList{Filter: souvenir.Filter{"related_memory_ids": from}}) {
		if err != nil {
			return err
		}
		if slices.ContainsFunc(all, func(one mergeChoice) bool { return one.ID == linking.ID }) {
			continue
		}
		related := without(linking.Related, from)
		if !slices.Contains(related, to) {
			related = slices.Insert(related, slices.Index(linking.Related, from), to)
		}
		changed, err := updateWithBack(ctx, m.store, linking,
			souvenir.MemoryUpdate{ShownMetadata: map[string]any{"related_memory_ids": related}})
		if errors.Is(err, souvenir.ErrForbidden) {
			continue // another user's memory: it loses the link
		}
		if err != nil {
			return err
		}
		if changed != nil {
			m.changed = append(m.changed, *changed)
		}
	}
	return nil
}

// moveFiles links the files of a deleted memory to the kept one.
func (m *merge) moveFiles(ctx context.Context, from, to string) error {
	var ids []string
	for file, err := range m.store.Files(ctx, souvenir.FileList{MemoryID: from}) {
		if err != nil {
			return err
		}
		ids = append(ids, file.ID)
	}
	for _, id := range ids {
		if _, err := m.store.UpdateFile(ctx, id, souvenir.FileUpdate{MemoryID: &to}); err != nil {
			return err
		}
		m.files = append(m.files, movedFile{id, from})
	}
	return nil
}

// takeBack undoes the merge.
func (m *merge) takeBack(ctx context.Context) error {
	slices.Reverse(m.changed) // a memory that was changed twice is restored step by step
	failed := takeBulkBack(ctx, m.store, bulkResult{deleted: m.deleted})
	for _, file := range m.files {
		_, err := m.store.UpdateFile(ctx, file.id, souvenir.FileUpdate{MemoryID: &file.from})
		if err != nil && !errors.Is(err, souvenir.ErrNotFound) {
			failed = cmp.Or(failed, err)
		}
	}
	for i := range m.changed {
		if i > 0 {
			m.follow(ctx, i)
		}
		failed = cmp.Or(takeBulkBack(ctx, m.store, bulkResult{changed: m.changed[i : i+1]}), failed)
	}
	return failed
}

// follow updates the expected revision of a memory that was changed twice, after one step was undone.
func (m *merge) follow(ctx context.Context, i int) {
	for before := range i {
		if m.changed[before].id != m.changed[i].id {
			continue
		}
		if now, err := m.store.GetMemory(ctx, m.changed[i].id); err == nil && now.Revision == m.changed[before].revision+1 {
			m.changed[i].revision = now.Revision
		}
	}
}

// bytes estimates how much memory the result takes to keep.
func (b *bulkResult) bytes() int64 {
	var n int64
	for _, id := range b.deleted {
		n += int64(len(id)) + 64
	}
	for _, c := range b.changed {
		n += 1024
		if c.content != nil {
			n += int64(len(*c.content))
		}
	}
	return n
}
