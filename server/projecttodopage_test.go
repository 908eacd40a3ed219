package server_test

import (
	"database/sql"
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
	"github.com/souvenir-ai/souvenir/server"
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
- Nobody knows the price of soup.
`

// withTodo is a world in which the shop has a to-do, and Olivia's browser.
func withTodo(t *testing.T, content string) (*world, *souvenir.Store, *browser) {
	t.Helper()
	w := newWorld(t, server.Options{})
	store := w.store.As(souvenir.Access{User: w.users[owner]})
	if _, err := store.SetTodo(t.Context(), souvenir.NewTodo{ProjectID: "shop", Content: content}); err != nil {
		t.Fatal(err)
	}
	return w, store, w.signedIn(owner)
}

// todoOf is the to-do of the shop.
func todoOf(t *testing.T, store *souvenir.Store) souvenir.Todo {
	t.Helper()
	todo, err := store.GetTodo(t.Context(), souvenir.ProjectRef{ID: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	return todo
}

// ticks changes one check box of a form, found by its place.
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
	p := olivia.get(w.shop()+"/todo").expect(http.StatusOK, "<b>1</b> of 3 tasks done, 33%",
		"A <strong>till</strong> that adds up.", "First this", "<h5>Till</h5>",
		"With <em>care</em>.", "Nobody knows the price", `>Constitution</h2>`, `>Spec</h2>`, `>Plan</h2>`)
	checkPage(w, p)
	var lines []string
	for _, label := range p.html.all("label") {
		for _, input := range label.all("input") {
			if input.attr("type") == "checkbox" {
				lines = append(lines, fmt.Sprintf("%s %v", strings.TrimSpace(label.text), input.has("checked")))
			}
		}
	}
	if want := []string{"T1 add up false", "T2 borrow a till true", "T3 close at six false",
		"who cleans? false"}; !slices.Equal(lines, want) {
		t.Errorf("the check boxes are %q, want %v", lines, want)
	}
	rita := w.signedIn(reader).get(w.shop()+"/todo").expect(http.StatusOK, "T1", "disabled").without("/edit", "/todo/tick")
	checkPage(w, rita)
}

func TestTodoThatIsNotThere(t *testing.T) {
	w := newWorld(t, server.Options{})
	olivia := w.signedIn(owner)
	checkPage(w, olivia.get(w.shop()+"/todo").expect(http.StatusOK, "No to-do yet", "Write the to-do"))
	w.signedIn(reader).get(w.shop()+"/todo").expect(http.StatusOK, "No to-do yet").without("Write the to-do")
	olivia.leadsTo(olivia.get(w.shop()+"/edit?text=tasks"), w.shop()+"/edit?text=todo").expect(http.StatusOK,
		"## Constitution", "- [ ] T1")
	form := url.Values{"csrf": {olivia.get("/profile").hidden().Get("csrf")}, "text": {"todo"}, "base": {emptyDigest},
		"content": {"## Tasks\r\n"}}
	refused := olivia.post(w.shop()+"/edit", form).stays(http.StatusBadRequest,
		"The text is not a todo document: missing: ",
		"## Tasks")
	checkPage(w, refused)
	form.Set("content", strings.ReplaceAll(shopTodo, "\n", "\r\n"))
	back := olivia.takesBack(olivia.post(w.shop()+"/edit", form), "“The whole to-do” is saved.")
	olivia.leadsTo(back, w.shop()+"/todo?done=undone").expect(http.StatusOK, "No to-do yet")
}

func TestTickingWithAScript(t *testing.T) {
	w, store, olivia := withTodo(t, shopTodo)
	board := w.shop() + "/todo"
	form := ticks(olivia.get(board).formTo(board+"/tick", "section", "tasks"), 0)
	p := olivia.asks(http.MethodPost, board+"/tick", form).expect(http.StatusOK, "T1 is done. 2 of 3 tasks done.",
		`id="card-tasks"`, `id="progress"`, `hx-swap-oob="true"`, "66%").without("<html", "card-gaps", "card-spec")
	if got := todoOf(t, store); got.Content != strings.Replace(shopTodo, "- [ ] T1", "- [x] T1", 1) {
		t.Errorf("the to-do is %q", got.Content)
	}
	form = ticks(ticks(p.formTo(board+"/tick", "section", "tasks"), 0), 1)
	olivia.asks(http.MethodPost, board+"/tick", form).expect(http.StatusOK, "2 lines changed. 0 of 3 tasks done.")
	if got := todoOf(t, store); got.Content != strings.Replace(shopTodo, "[x]", "[ ]", 1) {
		t.Errorf("the to-do is %q", got.Content)
	}
	gaps := ticks(olivia.get(board).formTo(board+"/tick", "section", "gaps"), 0)
	olivia.asks(http.MethodPost, board+"/tick", gaps).expect(http.StatusOK,
		"&#34;who cleans?&#34; is done. 0 of 3 tasks done.", `id="card-gaps"`)
	before := todoOf(t, store)
	olivia.asks(http.MethodPost, board+"/tick", gaps).expect(http.StatusOK, "Nothing has changed.")
	if now := todoOf(t, store); now.Revision != before.Revision || !strings.Contains(now.Content, "- [x] who cleans?") {
		t.Errorf("revision %d of %q", now.Revision, now.Content)
	}
}

func TestTickingWithoutAScript(t *testing.T) {
	w, store, olivia := withTodo(t, shopTodo)
	board := w.shop() + "/todo"
	done := olivia.post(board+"/tick", ticks(ticks(olivia.get(board).formTo(board+"/tick", "section", "tasks"), 0), 2))
	olivia.leadsTo(done, board+"?done=ticked").expect(http.StatusOK, "To-do saved.",
		"<b>3</b> of 3 tasks done, 100%")
	one := board + "?section=tasks&show=done"
	done = olivia.post(board+"/tick", ticks(olivia.get(one).formTo(board+"/tick", "section", "tasks"), 1))
	olivia.leadsTo(done, board+"?done=ticked&part=1&section=tasks&show=done").expect(http.StatusOK, ">T1<",
		">T3<").without(">T2<", "<h5>Till")
	if got := todoOf(t, store); got.Content != strings.NewReplacer("[ ] T1", "[x] T1", "[x] T2", "[ ] T2", "[ ] T3",
		"[x] T3").Replace(shopTodo) {
		t.Errorf("the to-do is %q", got.Content)
	}
}

// What others do while a page is open is neither lost nor undone, and no line is ticked that says something else by
// now.
func TestTickingWhileOthersEdit(t *testing.T) {
	w, store, olivia := withTodo(t, shopTodo)
	board := w.shop() + "/todo"
	tasks, gaps := olivia.get(board).formTo(board+"/tick", "section", "tasks"),
		olivia.get(board).formTo(board+"/tick", "section", "gaps")
	_, err := store.SetTodo(t.Context(),
		souvenir.NewTodo{ProjectID: "shop", Content: strings.NewReplacer("## Tasks\n", "## Tasks\n\n- [ ] T9 first of all\n",
			"[ ] T3", "[x] T3", "who cleans?", "who cleans up?").Replace(shopTodo)})
	if err != nil {
		t.Fatal(err)
	}
	olivia.asks(http.MethodPost, board+"/tick", ticks(tasks, 0)).expect(http.StatusOK, "T1 is done. 3 of 4 tasks done.",
		"T9")
	want := strings.NewReplacer("## Tasks\n", "## Tasks\n\n- [ ] T9 first of all\n", "[ ] T1", "[x] T1", "[ ] T3",
		"[x] T3", "who cleans?", "who cleans up?").Replace(shopTodo)
	if got := todoOf(t, store); got.Content != want {
		t.Errorf("the to-do is %q, want %v", got.Content, want)
	}
	olivia.asks(http.MethodPost, board+"/tick", ticks(gaps, 0)).expect(http.StatusOK,
		"Someone else has changed or removed that line meanwhile", "who cleans up?")
	checkPage(w, olivia.post(board+"/tick", gaps).stays(http.StatusOK,
		"Someone else has changed or removed that line meanwhile"))
	if got := todoOf(t, store); got.Content != want {
		t.Errorf("the to-do is %q, want %v", got.Content, want)
	}
	for name, fields := range map[string]url.Values{
		"box is ": {"section": {"tasks"}, "box": {"x"}}, "section is ": {"section": {hostile}},
		"show is ": {"section": {"tasks"}, "show": {"x"}},
	} {
		fields.Set("csrf", gaps.Get("csrf"))
		olivia.post(board+"/tick", fields).stays(http.StatusBadRequest, strings.ToUpper(name[:1])+name[1:])
	}
}

func TestManyTickAtOnce(t *testing.T) {
	content := "## Constitution\n\n## Spec\n\n## Plan\n\n## Tasks\n\n"
	const many = 8
	for i := range many {
		content += fmt.Sprintf("- [ ] T%d do it\n", i)
	}
	w, store, olivia := withTodo(t, content+"\n## Gaps\n")
	board := w.shop() + "/todo"
	form := olivia.get(board).formTo(board+"/tick", "section", "tasks")
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			fields := url.Values{}
			for name, values := range form {
				fields[name] = slices.Clone(values)
			}
			olivia.asks(http.MethodPost, board+"/tick", ticks(fields, i)).expect(http.StatusOK, fmt.Sprintf("T%d is done.", i))
		})
	}
	all.Wait()
	if done, total := todoOf(t, store).Document.Progress(); done != many || total != many {
		t.Errorf("%d of %d are done:\n%s", done, total, todoOf(t, store).Content)
	}
}

// A to-do that is too long for a page comes in parts, each small and soon there.
func TestLongTodosComeInParts(t *testing.T) {
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
	board := w.shop() + "/todo"
	began := time.Now()
	p := olivia.get(board).expect(http.StatusOK, "5,000 of 10,000", "T5000", "T5039", "All of Tasks, 10,000 lines",
		"All of Constitution").without("T4999", "T5040")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the board took %v, want at most %v", took, 5*time.Second)
	}
	t.Logf("the board of %d tasks: %v, %d bytes", many, time.Since(began), len(p.body))
	checkPage(w, p)
	answer := olivia.asks(http.MethodPost, board+"/tick",
		ticks(p.formTo(board+"/tick", "section", "tasks"), 3)).expect(http.StatusOK,
		"T5003 is done. 5,001 of 10,000 tasks done.")
	if form := answer.formTo(board+"/tick", "section", "tasks"); len(form["box"]) != 40 ||
		len(form["done"]) != 1 { // it stays where it was, and can be unticked
		t.Errorf("%d lines, %d of them done", len(form["box"]), len(form["done"]))
	}
	checkPage(w, olivia.get(board+"?section=tasks").expect(http.StatusOK, "Page 1 of 100", "T99").without("T100 "))
	checkPage(w, olivia.get(board+"?section=tasks&show=open&part=2").expect(http.StatusOK, "Page 2 of 50", "T5101",
		`href="?part=3&amp;section=tasks&amp;show=open"`))
	olivia.get(board+"?section=tasks&part=100").expect(http.StatusOK, "T9999").without(">Next<")
	olivia.get(board+"?section=tasks&part=999999").expect(http.StatusOK, "T9999")
	seen := 0
	for part := 1; part <= 10; part++ {
		p := olivia.get(fmt.Sprintf("%s?section=constitution&part=%d", board, part)).expect(http.StatusOK)
		checkPage(w, p)
		if strings.Contains(p.body, fmt.Sprintf("Page %d of", part)) {
			seen += strings.Count(p.body, "A principle that")
		}
	}
	if seen != 2000 {
		t.Errorf("%d of 2000 paragraphs are shown, want 2000", seen)
	}
}

// A to-do from before they were checked can be read and mended.
func TestTodoThatIsNoTodoDocument(t *testing.T) {
	w, store, _ := withTodo(t, shopTodo)
	path := filepath.Join(t.TempDir(), "old.db")
	if err := w.store.Upkeep().Backup(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open(sql.Drivers()[0], path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `UPDATE memory SET content = ? WHERE uid = ?`, "## Tasks\n\n"+hostile+
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
	w = serve(t, w.plan, old, server.Options{})
	olivia := w.signedIn(owner)
	checkPage(w, olivia.get(w.shop()+"/todo").expect(http.StatusOK, "cannot be shown as a board", "Fix it",
		"&lt;script&gt;"))
	checkPage(w, olivia.get("/projects").expect(http.StatusOK, "A to-do without tasks"))
	olivia.get(w.shop()).expect(http.StatusOK)
	olivia.leadsTo(olivia.get(w.shop()+"/edit?text=spec"), w.shop()+"/edit?text=todo").expect(http.StatusOK, "## Tasks")
	olivia.post(w.shop()+"/edit", olivia.writes(w.shop()+"/edit", "todo", shopTodo)).goesTo(w.shop() + "/todo?undo=")
	olivia.get(w.shop()+"/todo").expect(http.StatusOK, "of 3 tasks done")
}
