package storetest

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func todo() concept {
	return concept{"Todo", []promise{
		{"a project has one todo, and storing another replaces it", todoInPlace},
		{"every method refuses a text that is not a todo document", todoValid},
		{"replacing a section changes no other byte", todoSection},
		{"invalid sections are refused", todoSectionArguments},
		{"a task is completed once", todoComplete},
		{"a task is found by its whole id only", todoCompleteArguments},
		{"editing a todo that does not exist is ErrNotFound", todoUnknown},
		{"concurrent edits lose nothing", todoConcurrent},
		{"only new passages are embedded", todoEmbedding},
		{"an edit is kept if the embedder fails", todoUnembedded},
	}}
}

// document returns a todo document with some lines under Tasks.
func document(tasks ...string) string {
	return "# Apollo\n\n## Constitution\n\nfly safely\n\n## Spec\n\nthe moon\n\n## Plan\n\n## Tasks\n\n" +
		strings.Join(tasks, "\n") + "\n\n## Gaps\n\nnone\n"
}

func (f *fixture) setTodo(content string) souvenir.StoredTodo {
	f.Helper()
	stored, err := f.store.SetTodo(f.ctx, souvenir.NewTodo{ProjectID: "apollo", Content: content})
	f.check("SetTodo", err)
	return stored
}

func (f *fixture) todo() souvenir.Todo {
	f.Helper()
	t, err := f.reader.GetTodo(f.ctx, souvenir.ProjectRef{ID: "apollo"})
	f.check("GetTodo", err)
	return t
}

func (f *fixture) completeTask(id string) souvenir.CompletedTask {
	f.Helper()
	c, err := f.store.CompleteTask(f.ctx, souvenir.TaskRef{ProjectID: "apollo", TaskID: id})
	f.check("CompleteTask "+id, err)
	return c
}

// list returns a list in its JSON form.
func list[T any](values []T) []any {
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = object(toJSON(v))
	}
	return all
}

func todoInPlace(f *fixture) {
	first := f.setTodo(document("- [ ] T1 build", "- [x] T2 think", "- [ ] walk the dog"))
	f.equal("created", []any{first.Created, first.Revision, first.EventType, first.RuleType},
		[]any{true, 1, souvenir.EventProjectRule, souvenir.RuleTodo})
	f.equal("a warning about the box without an id", contains(first.Warnings, "lines 17"), true)
	f.clock.Pass(time.Hour)
	content := document("- [x] T1 build")
	second := f.setTodo(content)
	f.equal("again", []any{second.ID, second.Created, second.Revision, len(second.Warnings)}, []any{first.ID, false, 2, 0})
	got := f.todo()
	f.equal("read", []any{got.Memory, len(got.Document.Sections), got.Document.Tasks[0].Text},
		[]any{second.Memory, 5, "build"})
	f.equal("among the rules", *f.rules("apollo").Todo, second.Memory)
	f.sameJSON("stored, as JSON", object(toJSON(second)), storedForm(second.StoredRule, map[string]any{
		"progress": map[string]int{"done": 1, "total": 1}}))
	f.sameJSON("read, as JSON", object(toJSON(got)), withKeys(got.Memory, map[string]any{
		"sections": list(got.Document.Sections), "tasks": list(got.Document.Tasks),
		"progress": map[string]int{"done": 1, "total": 1}}))
	f.same("found", f.find("moon"), content)
	m := f.add(souvenir.NewMemory{ProjectID: "apollo", EventType: "project-rule", RuleType: "todo",
		Content: document("- [ ] T9 land"), State: "active"})
	f.equal("as a memory", []any{m.ID, m.Revision}, []any{first.ID, 3})
	f.equal("the same again", f.setTodo(m.Content).Revision, 3)
}

func todoValid(f *fixture) {
	stored := f.setTodo(document("- [ ] T1 build"))
	bad := strings.Replace(stored.Content, "## Plan", "## plan", 1)
	_, err := f.store.SetTodo(f.ctx, souvenir.NewTodo{ProjectID: "apollo", Content: bad})
	f.failsAt("SetTodo", err, souvenir.ErrInvalid, "content", `line 11 is "## plan", which must read "## Plan"`)
	_, err = f.store.SetTodo(f.ctx, souvenir.NewTodo{Content: stored.Content})
	f.failsAt("SetTodo without a project", err, souvenir.ErrInvalid, "project_id", "project_name")
	_, err = f.store.SetTodo(f.ctx, souvenir.NewTodo{ProjectID: "apollo"})
	f.failsAt("SetTodo of nothing", err, souvenir.ErrInvalid, "content", "empty")
	_, err = f.store.SetTodo(f.ctx, souvenir.NewTodo{ProjectID: "apollo", Content: stored.Content, ExpectedRevision: 2})
	f.failsAt("SetTodo of another revision", err, souvenir.ErrConflict, "expected_revision", "revision 1")
	_, err = f.store.UpdateMemory(f.ctx, stored.ID, souvenir.MemoryUpdate{Content: &bad})
	f.failsAt("UpdateMemory", err, souvenir.ErrInvalid, "content", "line 11")
	_, err = f.store.UpdateMemory(f.ctx, stored.ID, souvenir.MemoryUpdate{ShownMetadata: object(`{"project_id":null}`)})
	f.failsAt("UpdateMemory out of its project", err, souvenir.ErrInvalid, "project_id", "project")
	f.equal("the todo", f.todo().Memory, stored.Memory)
	note := f.add(souvenir.NewMemory{ProjectID: "gemini", Content: "a note"})
	f.rewrite(note.ID, stored.Content)
	f.patch(note.ID, object(`{"event_type":"project-rule","rule_type":"todo"}`))
	_, err = f.store.RestoreRevision(f.ctx, note.ID, 1)
	f.check("RestoreRevision to what it was before it was a todo", err)
	good := document("- [ ] T2 rest")
	f.rewrite(stored.ID, good)
	f.equal("a good one", f.todo().Document.Tasks[0].ID, "T2")
}

func todoSection(f *fixture) {
	stored := f.setTodo(strings.ReplaceAll(document("- [ ] T1 build"), "\n", "\r\n"))
	f.clock.Pass(time.Minute)
	project, u := souvenir.ProjectRef{Name: "apollo"}, souvenir.TodoSectionUpdate{Content: "## Plan\n1. think\n2. heron"}
	changed, err := f.store.UpdateTodoSection(f.ctx, project, souvenir.SectionPlan, u)
	f.check("UpdateTodoSection", err)
	want := strings.Replace(stored.Content, "## Plan\r\n\r\n", "## Plan\r\n\r\n1. think\r\n2. heron\r\n\r\n", 1)
	f.equal("content", []any{changed.Content, changed.Revision, changed.ID, changed.Created, changed.Indexed},
		[]any{want, 2, stored.ID, false, true})
	f.equal("a warning about the heading", contains(changed.Warnings, "## Plan"), true)
	f.equal("read", f.todo().Memory, changed.Memory)
	f.equal("found", len(f.find("heron")), 1)
	f.equal("document", changed.Document.Section(souvenir.SectionGaps).Body, "\r\nnone\r\n")
	changed, err = f.store.UpdateTodoSection(f.ctx, project, souvenir.SectionPlan, u)
	f.check("UpdateTodoSection", err)
	f.equal("the same again", changed.Revision, 2)
	u.Content = "- [ ] T7 a\n- [ ] no id"
	changed, err = f.store.UpdateTodoSection(f.ctx, project, "Tasks", u)
	f.check("UpdateTodoSection of tasks", err)
	f.equal("tasks", []any{changed.Document.Tasks[0].ID, contains(changed.Warnings, "no task id")}, []any{"T7", true})
}

func todoSectionArguments(f *fixture) {
	apollo := souvenir.ProjectRef{ID: "apollo"}
	stored := f.setTodo(document("- [ ] T1 build"))
	for _, c := range []struct {
		project  souvenir.ProjectRef
		section  souvenir.Section
		u        souvenir.TodoSectionUpdate
		kind     *souvenir.Error
		argument string
		says     string
	}{
		{apollo, "", souvenir.TodoSectionUpdate{Content: "x"}, souvenir.ErrInvalid, "section",
			`"constitution", "spec", "plan", "tasks" or "gaps"`},
		{apollo, "notes", souvenir.TodoSectionUpdate{}, souvenir.ErrInvalid, "section", `"notes"`},
		{souvenir.ProjectRef{}, "plan", souvenir.TodoSectionUpdate{}, souvenir.ErrInvalid, "project_id", "project_name"},
		{apollo, "plan", souvenir.TodoSectionUpdate{Content: "a\n## Gaps"}, souvenir.ErrInvalid,
			"content", `line 2 is "## Gaps"`},
		{apollo, "plan", souvenir.TodoSectionUpdate{Content: "```"}, souvenir.ErrInvalid, "content",
			"line 1 begins fenced code"},
		{apollo, "tasks", souvenir.TodoSectionUpdate{Content: "- [ ] T1\n- [ ] T1"},
			souvenir.ErrInvalid, "content", "lines 1 and 2"},
		{apollo, "plan", souvenir.TodoSectionUpdate{Content: "\xff"}, souvenir.ErrInvalid, "content",
			"UTF-8"},
		{apollo, "plan", souvenir.TodoSectionUpdate{Content: strings.Repeat("x", souvenir.MaxContent+1)},
			souvenir.ErrTooLarge, "content", "1048577"},
		{apollo, "plan", souvenir.TodoSectionUpdate{Content: strings.Repeat("x", souvenir.MaxContent)},
			souvenir.ErrTooLarge, "content", "at most 1048576"},
		{apollo, "plan", souvenir.TodoSectionUpdate{ExpectedRevision: -1}, souvenir.ErrInvalid,
			"expected_revision", "-1"},
		{apollo, "plan", souvenir.TodoSectionUpdate{Content: "x", ExpectedRevision: 7},
			souvenir.ErrConflict, "expected_revision", "revision 1"},
	} {
		_, err := f.store.UpdateTodoSection(f.ctx, c.project, c.section, c.u)
		f.failsAt("UpdateTodoSection "+string(c.section)+brief(c.u), err, c.kind, c.argument, c.says)
	}
	f.equal("the todo", f.todo().Memory, stored.Memory)
}

func todoComplete(f *fixture) {
	stored := f.setTodo(document("- [ ] T1 build", "  * [ ] T12 fly", "+ [X] T2 think", "```", "- [ ] T3 in code", "```"))
	f.clock.Pass(time.Minute)
	done := f.completeTask("T12")
	f.equal("completed", []any{done.Task.ID, done.Task.Text, done.Task.Done, done.AlreadyCompleted, done.Progress,
		done.Memory.Revision, done.Memory.UpdatedAt},
		[]any{"T12", "fly", true, false, souvenir.TodoProgress{Done: 2, Total: 3}, 2, start.Add(time.Minute)})
	f.equal("content", f.todo().Content, strings.Replace(stored.Content, "[ ] T12", "[x] T12", 1))
	f.sameJSON("as JSON", object(toJSON(done)),
		map[string]any{"task": object(toJSON(done.Task)), "already_completed": false,
			"progress": map[string]int{"done": 2, "total": 3}, "memory": object(toJSON(done.Memory))})
	for _, id := range []string{"T12", "t12", "T2"} {
		again := f.completeTask(id)
		f.equal("again", []any{again.AlreadyCompleted, again.Task.Done, again.Progress, again.Memory},
			[]any{true, true, done.Progress, done.Memory})
	}
	f.equal("revisions", len(f.revisions(stored.ID)), 2)
	f.equal("the last one", f.completeTask("T1").Progress, souvenir.TodoProgress{Done: 3, Total: 3})
}

func todoCompleteArguments(f *fixture) {
	stored := f.setTodo(document("- [ ] T10 build", "- [ ] T11 fly"))
	for _, id := range []string{"T1", "T100", "T", "10", "build", "T10 build"} {
		_, err := f.store.CompleteTask(f.ctx, souvenir.TaskRef{ProjectID: "apollo", TaskID: id})
		f.failsAt("CompleteTask "+id, err, souvenir.ErrNotFound, "task_id", id, "T10", "T11")
	}
	for id, kind := range map[string]*souvenir.Error{"": souvenir.ErrInvalid, " ": souvenir.ErrInvalid,
		"T\n1": souvenir.ErrInvalid, strings.Repeat("T", 200): souvenir.ErrTooLarge} {
		_, err := f.store.CompleteTask(f.ctx, souvenir.TaskRef{ProjectID: "apollo", TaskID: id})
		f.failsAt("CompleteTask "+id, err, kind, "task_id")
	}
	_, err := f.store.CompleteTask(f.ctx, souvenir.TaskRef{TaskID: "T10"})
	f.failsAt("CompleteTask without a project", err, souvenir.ErrInvalid, "project_id")
	f.equal("the todo", f.todo().Memory, stored.Memory)
}

func todoUnknown(f *fixture) {
	f.add(souvenir.NewMemory{Content: "x", ProjectID: "empty"})
	for _, project := range []string{"empty", "nowhere", "a/b"} {
		_, err := f.reader.GetTodo(f.ctx, souvenir.ProjectRef{ID: project})
		f.failsAt("GetTodo", err, souvenir.ErrNotFound, "project_id", project)
		_, err = f.store.UpdateTodoSection(f.ctx, souvenir.ProjectRef{ID: project}, "plan", souvenir.TodoSectionUpdate{})
		f.failsAt("UpdateTodoSection", err, souvenir.ErrNotFound, "project_id", project)
		_, err = f.store.CompleteTask(f.ctx, souvenir.TaskRef{ProjectID: project, TaskID: "T1"})
		f.failsAt("CompleteTask", err, souvenir.ErrNotFound, "project_id", project)
		_, err = f.store.CompleteTask(f.ctx, souvenir.TaskRef{ProjectName: project, TaskID: "T1"})
		f.fails("CompleteTask", err, souvenir.ErrNotFound, project)
	}
	_, err := f.reader.GetTodo(f.ctx, souvenir.ProjectRef{})
	f.failsAt("GetTodo of no project", err, souvenir.ErrInvalid, "project_id")
	_, err = f.reader.GetTodo(f.ctx, souvenir.ProjectRef{ID: " "})
	f.failsAt("GetTodo of a blank one", err, souvenir.ErrInvalid, "project_id")
	f.equal("no project came into being", f.search(souvenir.Query{ProjectID: "nowhere"}).Total, 0)
}

func todoConcurrent(f *fixture) {
	var tasks []string
	for i := range workers {
		tasks = append(tasks, fmt.Sprintf("- [ ] T%d task of %s", i+1, nameOf(i)))
	}
	stored := f.setTodo(document(tasks...))
	stores := []*souvenir.Store{f.store, f.reader}
	sections := []souvenir.Section{souvenir.SectionConstitution, souvenir.SectionSpec, souvenir.SectionPlan,
		souvenir.SectionGaps}
	var group sync.WaitGroup
	for i := range workers {
		group.Go(func() {
			c, err := stores[i%2].CompleteTask(f.ctx, souvenir.TaskRef{ProjectID: "apollo", TaskID: fmt.Sprint("T", i+1)})
			if err != nil || c.AlreadyCompleted {
				f.Errorf("worker %d: %+v, %v, want no error and a task that was not completed before", i, c, err)
			}
		})
	}
	for i, section := range sections {
		group.Go(func() {
			u := souvenir.TodoSectionUpdate{Content: "written at once: " + string(section)}
			if _, err := stores[i%2].UpdateTodoSection(f.ctx, souvenir.ProjectRef{ID: "apollo"}, section, u); err != nil {
				f.Error(err)
			}
		})
	}
	group.Wait()
	got := f.todo()
	done, total := got.Document.Progress()
	f.equal("progress", []int{done, total}, []int{workers, workers})
	f.equal("revisions", got.Revision, 1+workers+len(sections))
	f.equal("tasks", got.Document.Section(souvenir.SectionTasks).Body,
		strings.ReplaceAll(stored.Document.Section(souvenir.SectionTasks).Body, "[ ]", "[x]"))
	for _, section := range sections {
		f.equal("section", strings.TrimSpace(got.Document.Section(section).Body), "written at once: "+string(section))
	}
	f.waitEmbedded(f.store)
	f.equal("indexed in the end", f.setTodo(got.Content).Indexed, true)
}

func todoEmbedding(f *fixture) {
	var tasks []string
	for i := range 400 {
		tasks = append(tasks, fmt.Sprintf("- [ ] T%d a task that takes an unknown time", i+1))
	}
	f.setTodo(document(tasks...))
	before := len(f.embedder.Texts())
	f.equal("passages are many", before > 10, true)
	f.completeTask("T200")
	f.equal("embedded for one task", len(f.embedder.Texts())-before, 1)
	f.completeTask("T200")
	f.equal("embedded for none", len(f.embedder.Texts())-before, 1)
	f.equal("indexed", f.setTodo(f.todo().Content).Indexed, true)
}

func todoUnembedded(f *fixture) {
	f.setTodo(document("- [ ] T1 heron"))
	f.embedder.Break(errOffline)
	done := f.completeTask("T1")
	f.equal("completed", []any{f.todo().Document.Tasks[0].Done, contains(done.Warnings, "by its words")},
		[]any{true, true})
	f.equal("by its words", len(f.byWord("heron")), 1)
	f.embedder.Mend()
	f.waitEmbedded(f.store)
	f.equal("indexed", f.setTodo(f.todo().Content).Indexed, true)
}
