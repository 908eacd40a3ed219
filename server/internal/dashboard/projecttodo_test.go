package dashboard_test

import (
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

const shopTodo = `## Constitution

Be kind.

## Spec

A **till** that adds up.

## Plan

First this, then that.

## Tasks

### Till

- [ ] T1 add up
  With *care*.
  - [x] T2 borrow a till
- [ ] T3 close at six

## Gaps

- [ ] who cleans?
- No one knows the price of soup.
`

// withTodo returns a world in which the shop has a to-do, its store, and Olivia's browser.
func withTodo(t *testing.T, content string) (*servertest.World, *souvenir.Store, *servertest.Browser) {
	t.Helper()
	w := servertest.New(t, server.Options{})
	store := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	if _, err := store.SetTodo(t.Context(), souvenir.NewTodo{ProjectID: "shop", Content: content}); err != nil {
		t.Fatal(err)
	}
	return w, store, w.SignedIn(servertest.Owner)
}

// todoOf returns the to-do of the shop.
func todoOf(t *testing.T, store *souvenir.Store) souvenir.Todo {
	t.Helper()
	todo, err := store.GetTodo(t.Context(), souvenir.ProjectRef{ID: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	return todo
}

// ticks changes one check box of a form, by its position.
func ticks(form url.Values, place int) url.Values {
	line, _, _ := strings.Cut(form["box"][place], ".")
	if i := slices.Index(form["done"], line); i >= 0 {
		form["done"] = slices.Delete(form["done"], i, i+1)
	} else {
		form.Add("done", line)
	}
	return form
}

func TestTodoBoardShowsTheFiveSections(t *testing.T) {
	w, _, olivia := withTodo(t, shopTodo)
	p := olivia.Get(shop(w)+"/todo").Expect(http.StatusOK, "<b>1</b> of 3 tasks done, 33%",
		"A <strong>till</strong> that adds up.", "First this", "<h5>Till</h5>",
		"With <em>care</em>.", "No one knows the price", `>Constitution</h2>`, `>Spec</h2>`, `>Plan</h2>`)
	servertest.CheckPage(w, p)
	var lines []string
	for _, label := range p.HTML.All("label") {
		for _, input := range label.All("input") {
			if input.Attr("type") == "checkbox" {
				lines = append(lines, fmt.Sprintf("%s %v", strings.TrimSpace(label.Text), input.Has("checked")))
			}
		}
	}
	if want := []string{"T1 add up false", "T2 borrow a till true", "T3 close at six false",
		"who cleans? false"}; !slices.Equal(lines, want) {
		t.Errorf("the check boxes are %q, want %v", lines, want)
	}
	rita := w.SignedIn(servertest.Reader).Get(shop(w)+"/todo").Expect(http.StatusOK, "T1", "disabled").Without("/edit",
		"/todo/tick")
	servertest.CheckPage(w, rita)
}

func TestMissingTodo(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	olivia := w.SignedIn(servertest.Owner)
	servertest.CheckPage(w, olivia.Get(shop(w)+"/todo").Expect(http.StatusOK, "No to-do yet", "Write the to-do"))
	w.SignedIn(servertest.Reader).Get(shop(w)+"/todo").Expect(http.StatusOK, "No to-do yet").Without("Write the to-do")
	olivia.LeadsTo(olivia.Get(shop(w)+"/edit?text=tasks"), shop(w)+"/edit?text=todo").Expect(http.StatusOK,
		"## Constitution", "- [ ] T1")
	form := url.Values{"csrf": {olivia.Get("/profile").Hidden().Get("csrf")}, "text": {"todo"}, "base": {emptyDigest},
		"content": {"## Tasks\r\n"}}
	refused := olivia.Post(shop(w)+"/edit", form).Stays(http.StatusBadRequest,
		"The text is not a todo document: missing: ",
		"## Tasks")
	servertest.CheckPage(w, refused)
	form.Set("content", strings.ReplaceAll(shopTodo, "\n", "\r\n"))
	back := takesBack(olivia, olivia.Post(shop(w)+"/edit", form), "“The whole to-do” is saved.")
	olivia.LeadsTo(back, shop(w)+"/todo?done=undone").Expect(http.StatusOK, "No to-do yet")
}

func TestTickingWithAScript(t *testing.T) {
	w, store, olivia := withTodo(t, shopTodo)
	board := shop(w) + "/todo"
	form := ticks(olivia.Get(board).FormTo(board+"/tick", "section", "tasks"), 0)
	p := asks(olivia, http.MethodPost, board+"/tick", form).Expect(http.StatusOK, "T1 is done. 2 of 3 tasks done.",
		`id="card-tasks"`, `id="progress"`, `hx-swap-oob="true"`, "66%").Without("<html", "card-gaps", "card-spec")
	if got := todoOf(t, store); got.Content != strings.Replace(shopTodo, "- [ ] T1", "- [x] T1", 1) {
		t.Errorf("the to-do is %q, want other ticks only", got.Content)
	}
	form = ticks(ticks(p.FormTo(board+"/tick", "section", "tasks"), 0), 1)
	asks(olivia, http.MethodPost, board+"/tick", form).Expect(http.StatusOK, "2 lines changed. 0 of 3 tasks done.")
	if got := todoOf(t, store); got.Content != strings.Replace(shopTodo, "[x]", "[ ]", 1) {
		t.Errorf("the to-do is %q, want other ticks only", got.Content)
	}
	gaps := ticks(olivia.Get(board).FormTo(board+"/tick", "section", "gaps"), 0)
	asks(olivia, http.MethodPost, board+"/tick", gaps).Expect(http.StatusOK,
		"&#34;who cleans?&#34; is done. 0 of 3 tasks done.", `id="card-gaps"`)
	before := todoOf(t, store)
	asks(olivia, http.MethodPost, board+"/tick", gaps).Expect(http.StatusOK, "Nothing has changed.")
	if now := todoOf(t, store); now.Revision != before.Revision || !strings.Contains(now.Content, "- [x] who cleans?") {
		t.Errorf(`revision %d of %q, want revision %v and "- [x] who cleans?" in the content`, now.Revision, now.Content,
			before.Revision)
	}
}

func TestTickingWithoutAScript(t *testing.T) {
	longtest.Only(t)
	w, store, olivia := withTodo(t, shopTodo)
	board := shop(w) + "/todo"
	done := olivia.Post(board+"/tick", ticks(ticks(olivia.Get(board).FormTo(board+"/tick", "section", "tasks"), 0), 2))
	olivia.LeadsTo(done, board+"?done=ticked").Expect(http.StatusOK, "To-do saved.",
		"<b>3</b> of 3 tasks done, 100%")
	one := board + "?section=tasks&show=done"
	done = olivia.Post(board+"/tick", ticks(olivia.Get(one).FormTo(board+"/tick", "section", "tasks"), 1))
	olivia.LeadsTo(done, board+"?done=ticked&part=1&section=tasks&show=done").Expect(http.StatusOK, ">T1<",
		">T3<").Without(">T2<", "<h5>Till")
	if got := todoOf(t, store); got.Content != strings.NewReplacer("[ ] T1", "[x] T1", "[x] T2", "[ ] T2", "[ ] T3",
		"[x] T3").Replace(shopTodo) {
		t.Errorf("the to-do is %q, want other ticks only", got.Content)
	}
}

// Changes by others while a page is open are neither lost nor undone, and a line with a changed text is not ticked.
func TestTickingWhileOthersEdit(t *testing.T) {
	longtest.Only(t)
	w, store, olivia := withTodo(t, shopTodo)
	board := shop(w) + "/todo"
	tasks, gaps := olivia.Get(board).FormTo(board+"/tick", "section", "tasks"),
		olivia.Get(board).FormTo(board+"/tick", "section", "gaps")
	_, err := store.SetTodo(t.Context(),
		souvenir.NewTodo{ProjectID: "shop", Content: strings.NewReplacer("## Tasks\n", "## Tasks\n\n- [ ] T9 first of all\n",
			"[ ] T3", "[x] T3", "who cleans?", "who cleans up?").Replace(shopTodo)})
	if err != nil {
		t.Fatal(err)
	}
	asks(olivia, http.MethodPost, board+"/tick", ticks(tasks, 0)).Expect(http.StatusOK, "T1 is done. 3 of 4 tasks done.",
		"T9")
	want := strings.NewReplacer("## Tasks\n", "## Tasks\n\n- [ ] T9 first of all\n", "[ ] T1", "[x] T1", "[ ] T3",
		"[x] T3", "who cleans?", "who cleans up?").Replace(shopTodo)
	if got := todoOf(t, store); got.Content != want {
		t.Errorf("the to-do is %q, want %v", got.Content, want)
	}
	asks(olivia, http.MethodPost, board+"/tick", ticks(gaps, 0)).Expect(http.StatusOK,
		"Someone else has changed or removed that line meanwhile", "who cleans up?")
	servertest.CheckPage(w, olivia.Post(board+"/tick", gaps).Stays(http.StatusOK,
		"Someone else has changed or removed that line meanwhile"))
	if got := todoOf(t, store); got.Content != want {
		t.Errorf("the to-do is %q, want %v", got.Content, want)
	}
	for name, fields := range map[string]url.Values{
		"box is ": {"section": {"tasks"}, "box": {"x"}}, "section is ": {"section": {servertest.Hostile}},
		"show is ": {"section": {"tasks"}, "show": {"x"}},
	} {
		fields.Set("csrf", gaps.Get("csrf"))
		olivia.Post(board+"/tick", fields).Stays(http.StatusBadRequest, strings.ToUpper(name[:1])+name[1:])
	}
}

func TestManyTickAtOnce(t *testing.T) {
	longtest.Only(t)
	content := "## Constitution\n\n## Spec\n\n## Plan\n\n## Tasks\n\n"
	const many = 8
	for i := range many {
		content += fmt.Sprintf("- [ ] T%d do it\n", i)
	}
	w, store, olivia := withTodo(t, content+"\n## Gaps\n")
	board := shop(w) + "/todo"
	form := olivia.Get(board).FormTo(board+"/tick", "section", "tasks")
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			fields := url.Values{}
			for name, values := range form {
				fields[name] = slices.Clone(values)
			}
			asks(olivia, http.MethodPost, board+"/tick", ticks(fields, i)).Expect(http.StatusOK, fmt.Sprintf("T%d is done.", i))
		})
	}
	all.Wait()
	if done, total := todoOf(t, store).Document.Progress(); done != many || total != many {
		t.Errorf("%d of %d are done, want all %d:\n%s", done, total, many, todoOf(t, store).Content)
	}
}

// A to-do that is too long for a page comes in parts, each small and quick to load.
func TestLongTodosComeInParts(t *testing.T) {
	longtest.Only(t)
	const many = 10_000
	var b strings.Builder
	b.WriteString("## Constitution\n\n" +
		strings.Repeat("A principle that takes some room, with `code` and **weight**.\n\n", 2000) + "## Spec\n\n" +
		strings.Repeat("<", 9000) +
		"\n\n## Plan\n\n## Tasks\n\n")
	for i := range many {
		fmt.Fprintf(&b, "- [%s] T%d carry stone number %d\n", map[bool]string{true: "x", false: " "}[i < many/2], i, i)
	}
	b.WriteString("\n## Gaps\n")
	w, _, olivia := withTodo(t, b.String())
	board := shop(w) + "/todo"
	began := time.Now()
	p := olivia.Get(board).Expect(http.StatusOK, "<b>5,000</b> of 10,000 tasks", "T5000", "T5039",
		"All of Tasks, 10,000 lines", "All of Constitution").Without("T4999", "T5040")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the board took %v, want at most %v", took, 5*time.Second)
	}
	t.Logf("the board of %d tasks: %v, %d bytes", many, time.Since(began), len(p.Body))
	servertest.CheckPage(w, p)
	answer := asks(olivia, http.MethodPost, board+"/tick",
		ticks(p.FormTo(board+"/tick", "section", "tasks"), 3)).Expect(http.StatusOK,
		"T5003 is done. 5,001 of 10,000 tasks done.")
	if form := answer.FormTo(board+"/tick", "section", "tasks"); len(form["box"]) != 40 ||
		len(form["done"]) != 1 { // it stays in place, and can be unticked
		t.Errorf("got %d lines, %d of them done, want 40 and 1", len(form["box"]), len(form["done"]))
	}
	servertest.CheckPage(w, olivia.Get(board+"?section=tasks").Expect(http.StatusOK, "Page 1 of 100",
		"T99").Without("T100 "))
	servertest.CheckPage(w, olivia.Get(board+"?section=tasks&show=open&part=2").Expect(http.StatusOK, "Page 2 of 50",
		"T5101",
		`href="?part=3&amp;section=tasks&amp;show=open"`))
	olivia.Get(board+"?section=tasks&part=100").Expect(http.StatusOK, "T9999").Without(">Next<")
	olivia.Get(board+"?section=tasks&part=999999").Expect(http.StatusOK, "T9999")
	seen := 0
	for part := 1; part <= 10; part++ {
		p := olivia.Get(fmt.Sprintf("%s?section=constitution&part=%d", board, part)).Expect(http.StatusOK)
		servertest.CheckPage(w, p)
		if strings.Contains(p.Body, fmt.Sprintf("Page %d of", part)) {
			seen += strings.Count(p.Body, "A principle that")
		}
	}
	if seen != 2000 {
		t.Errorf("%d of 2000 paragraphs are shown, want 2000", seen)
	}
}

// A to-do from before validation can be read and repaired.
func TestInvalidTodoDocument(t *testing.T) {
	longtest.Only(t)
	servertest.NeedsFile(t)
	w, store, _ := withTodo(t, shopTodo)
	path := filepath.Join(t.TempDir(), "old.db")
	if err := w.Store.Upkeep().Backup(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open(sql.Drivers()[0], path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `UPDATE memory SET content = ? WHERE uid = ?`, "## Tasks\n\n"+
		servertest.Hostile+
		strings.Repeat(" ", len(shopTodo)), todoOf(t, store).ID); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	old, err := souvenir.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	w = servertest.Serve(t, w.Plan, old, server.Options{})
	olivia := w.SignedIn(servertest.Owner)
	servertest.CheckPage(w, olivia.Get(shop(w)+"/todo").Expect(http.StatusOK, "cannot be shown as a board", "Fix it",
		"&lt;script&gt;"))
	servertest.CheckPage(w, olivia.Get("/projects").Expect(http.StatusOK, "A to-do without tasks"))
	olivia.Get(shop(w)).Expect(http.StatusOK)
	olivia.LeadsTo(olivia.Get(shop(w)+"/edit?text=spec"), shop(w)+"/edit?text=todo").Expect(http.StatusOK, "## Tasks")
	olivia.Post(shop(w)+"/edit", writes(olivia, shop(w)+"/edit", "todo", shopTodo)).GoesTo(shop(w) + "/todo?undo=")
	olivia.Get(shop(w)+"/todo").Expect(http.StatusOK, "of 3 tasks done")
}

// markOf returns the form value of a task's check box.
func markOf(t *testing.T, p *servertest.Page, task string) string {
	t.Helper()
	for _, button := range p.HTML.All("button") {
		if strings.HasPrefix(button.Attr("value"), "up.") && button.Attr("aria-label") == "Move up: "+task {
			return strings.TrimPrefix(button.Attr("value"), "up.")
		}
	}
	t.Fatalf("no button moves %q", task)
	return ""
}

func TestTasksAreAddedWithTheNextID(t *testing.T) {
	w, store, olivia := withTodo(t, shopTodo)
	add := func(b *servertest.Browser, text string) *servertest.Page {
		return b.Submit(b.Get(shop(w)+"/todo"), shop(w)+"/todo/add", url.Values{"task": {text}})
	}
	add(olivia, "  count\nthe   coins ").Expect(http.StatusSeeOther)
	want := strings.Replace(shopTodo, "- [ ] T3 close at six\n", "- [ ] T3 close at six\n- [ ] T4 count the coins\n", 1)
	if got := todoOf(t, store).Content; got != want {
		t.Errorf("the document is\n%s\nwant\n%s", got, want)
	}
	add(olivia, " ").Expect(http.StatusBadRequest, "Task is empty")
	add(olivia, strings.Repeat("é", 1001)).Expect(http.StatusBadRequest, "at most 1000")
	add(olivia, servertest.Hostile).Expect(http.StatusSeeOther)
	servertest.CheckPage(w, olivia.Get(shop(w)+"/todo").Expect(http.StatusOK, "T5</b>"))
	rita := w.SignedIn(servertest.Reader)
	rita.Get(shop(w)+"/todo").Expect(http.StatusOK).Without("/todo/add", "/todo/move")
	csrf := rita.Get("/profile").Hidden().Get("csrf")
	rita.Post(shop(w)+"/todo/add", url.Values{"task": {"a"}, "csrf": {csrf}}).Expect(http.StatusForbidden)
}

func TestTheFirstTaskMakesTheTodo(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	olivia := w.SignedIn(servertest.Owner)
	olivia.Submit(olivia.Get(shop(w)+"/todo"), shop(w)+"/todo/add", url.Values{"task": {"open at nine"}})
	olivia.Get(shop(w)+"/todo").Expect(http.StatusOK, "T1</b> open at nine", "<b>0</b> of 1 task done")
}

func TestManyAddTheFirstTaskAtOnce(t *testing.T) {
	w := servertest.New(t, server.Options{})
	olivia := w.SignedIn(servertest.Owner)
	view := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	csrf := olivia.Get(shop(w) + "/todo").Hidden().Get("csrf")
	for round := range 5 {
		if err := view.DeleteRule(t.Context(), souvenir.ProjectRef{ID: "shop"}, souvenir.RuleTodo); err != nil &&
			!errors.Is(err, souvenir.ErrNotFound) {
			t.Fatal(err)
		}
		const many = 6
		var all sync.WaitGroup
		for n := range many {
			all.Go(func() {
				olivia.Post(shop(w)+"/todo/add", url.Values{"task": {fmt.Sprint("task ", n)}, "csrf": {csrf}}).Expect(
					http.StatusSeeOther)
			})
		}
		all.Wait()
		if got := todoOf(t, view); len(got.Document.Tasks) != many {
			t.Errorf("round %d: got %q, want %d tasks", round, got.Content, many)
		}
	}
}

func TestTasksAreOrdered(t *testing.T) {
	w, store, olivia := withTodo(t, shopTodo)
	move := func(how, task, onto string) *servertest.Page {
		page := olivia.Get(shop(w) + "/todo")
		values := url.Values{"move": {how + "." + markOf(t, page, task)}, "section": {"tasks"}}
		if onto != "" {
			values.Set("onto", markOf(t, page, onto))
		}
		return olivia.Submit(page, shop(w)+"/todo/move", values)
	}
	moved := strings.Replace(strings.Replace(shopTodo, "- [ ] T3 close at six\n", "", 1), "- [ ] T1",
		"- [ ] T3 close at six\n- [ ] T1", 1)
	for _, step := range []struct{ how, task, onto, want string }{
		{"up", "T3", "", moved}, {"up", "T3", "", moved}, {"down", "T3", "", shopTodo}, {"down", "T3", "", shopTodo},
		{"to", "T3", "T1", moved}, {"to", "T3", "T1", shopTodo}, {"up", "T2", "", shopTodo},
	} {
		move(step.how, step.task, step.onto).Expect(http.StatusSeeOther)
		if got := todoOf(t, store).Content; got != step.want {
			t.Fatalf("%s %s: the document is\n%s\nwant\n%s", step.how, step.task, got, step.want)
		}
	}
	page := olivia.Get(shop(w) + "/todo") // a task at another depth is not a valid place
	olivia.Submit(page, shop(w)+"/todo/move", url.Values{"move": {"to." + markOf(t, page, "T3")},
		"onto": {markOf(t, page, "T2")}, "section": {"tasks"}}).Expect(http.StatusOK, "nothing was moved")
	olivia.Submit(page, shop(w)+"/todo/move", url.Values{"move": {"over.1.x.0"}}).Expect(http.StatusBadRequest)
}

// A carriage return ends a line, too, alone or before a line feed.
func TestTasksAreAddedAndOrderedWithAnyLineEndings(t *testing.T) {
	for name, document := range map[string]string{
		"LF": shopTodo, "CR LF": strings.ReplaceAll(shopTodo, "\n", "\r\n"), "CR": strings.ReplaceAll(shopTodo, "\n", "\r"),
		"a lone CR before": strings.Replace(shopTodo, "adds up", "adds\rup\r\r", 1),
		"mixed":            strings.Replace(shopTodo, "With *care*.\n", "With *care*.\r\n  Or\r  not.\r", 1),
	} {
		t.Run(name, func(t *testing.T) {
			w, store, olivia := withTodo(t, document)
			submit := func(path string, values url.Values) {
				t.Helper()
				olivia.Submit(olivia.Get(shop(w)+"/todo"), shop(w)+path, values).Expect(http.StatusSeeOther)
			}
			check := func(before, after string) {
				t.Helper()
				was, got := wordsOf(document), wordsOf(todoOf(t, store).Content)
				if want := strings.Replace(was, before, after, 1); got != want {
					t.Errorf("the document has the words\n%s\nwant\n%s", got, want)
				}
			}
			submit("/todo/add", url.Values{"task": {"count"}})
			check("- [ ] T3 close at six", "- [ ] T3 close at six - [ ] T4 count")
			submit("/todo/move", url.Values{"section": {"tasks"},
				"move": {"up." + markOf(t, olivia.Get(shop(w)+"/todo"), "T4")}})
			check("- [ ] T3 close at six", "- [ ] T4 count - [ ] T3 close at six")
		})
	}
}

// wordsOf returns the words of a text, without its line ends.
func wordsOf(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestATickReturnsTheNewVersionAndOneCount(t *testing.T) {
	longtest.Only(t)
	w, store, olivia := withTodo(t, shopTodo)
	page := olivia.Get(shop(w) + "/todo")
	if n := strings.Count(page.Body, "1 of 3"); n > 0 || !strings.Contains(page.Body, "<b>1</b> of 3 tasks done") {
		t.Errorf("the count of the tasks is beside the heading %d times, want it at the head of the page alone", n)
	}
	form := ticks(page.FormTo(shop(w)+"/todo/tick", "section", "tasks"), 0)
	now := todoOf(t, store).Revision
	asks(olivia, http.MethodPost, shop(w)+"/todo/tick", form).Expect(http.StatusOK,
		fmt.Sprintf("Version %d</a>", now+1), `id="version" hx-swap-oob="true"`)
}
