package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// emptyDigest is what the form of a text that does not exist yet says that it was made from.
const emptyDigest = "47DEQpj8HBSa"

// writes opens the page of a text and returns what its form sends with a new text, as browsers send it.
func (b *browser) writes(path, key, content string) url.Values {
	b.w.t.Helper()
	form := b.get(path+"?text="+key).expect(http.StatusOK).formTo(path, "text", key)
	form.Set("content", strings.ReplaceAll(content, "\n", "\r\n"))
	return form
}

// says is what a textarea of a page has in it.
func (p *gotPage) says(id string) string {
	p.t.Helper()
	for _, area := range p.html.all("textarea") {
		if area.attr("id") == id {
			return strings.TrimPrefix(area.text, "\n")
		}
	}
	p.t.Fatalf("the page has no textarea %s:\n%s", id, p.body)
	return ""
}

func TestRulesAreWrittenChangedAndDeleted(t *testing.T) {
	w := newWorld(t, server.Options{})
	olivia, store := w.signedIn(owner), w.store.As(souvenir.Access{User: w.users[owner]})
	for _, place := range []struct {
		page, edit, remove string
		ref                souvenir.ProjectRef
	}{
		{w.shop() + "/rules", w.shop() + "/edit", w.shop() + "/rules/delete", souvenir.ProjectRef{ID: "shop"}},
		{"/projects/rules", "/projects/rules/edit", "/projects/rules/delete", souvenir.ProjectRef{}},
	} {
		checkPage(w, olivia.get(place.page).expect(http.StatusOK, "Nothing here yet.", ">Write<"))
		saved := olivia.post(place.edit, olivia.writes(place.edit, "do", "# Smile\n\n- at *all*\n"))
		p := olivia.get(saved.header.Get("Location")).expect(http.StatusOK, "“Do” is saved.", "<h3>Smile</h3>",
			"at <em>all</em>", "version 1")
		checkPage(w, p)
		rule, err := store.GetRule(t.Context(), place.ref, souvenir.RuleDo)
		if err != nil || rule.Content != "# Smile\n\n- at *all*\n" {
			t.Fatalf("%v: %q, want %v", err, rule.Content, "# Smile\n\n- at *all*\n")
		}
		_, err = store.SetRule(t.Context(),
			souvenir.NewRule{ProjectID: place.ref.ID, Type: souvenir.RuleDo, Content: rule.Content, Tags: []string{"mood"}})
		if err != nil {
			t.Fatal(err)
		}
		back := olivia.takesBack(olivia.post(place.edit, olivia.writes(place.edit, "do", "Frown.")), "“Do” is saved.")
		olivia.leadsTo(back, place.page+"?done=undone").expect(http.StatusOK, "Undone.", "<h3>Smile</h3>",
			"version 4")
		olivia.leadsTo(olivia.post(place.edit, olivia.writes(place.edit, "do", rule.Content)), place.page+
			"?done=unchanged").expect(http.StatusOK, "No changes.", "version 4")

		gone := olivia.post(place.remove, olivia.get(place.page).formTo(place.remove, "text", "do"))
		back = olivia.takesBack(gone, "“Do” is deleted.")
		olivia.leadsTo(back, place.page+"?done=undone").expect(http.StatusOK, "<h3>Smile</h3>", "version 4")
		if again, err := store.GetRule(t.Context(), place.ref, souvenir.RuleDo); err != nil || again.ID != rule.ID ||
			strings.Join(again.Tags, " ") != "mood" || again.Content != rule.Content {
			t.Errorf("%v: %q with the tags %q", err, again.Content, again.Tags)
		}
		olivia.post(place.remove, url.Values{"csrf": {olivia.get("/profile").hidden().Get("csrf")},
			"text": {"todo"}}).stays(http.StatusBadRequest, "allowed are do and dont")
	}
	w.signedIn(reader).get(w.shop()+"/rules").expect(http.StatusOK, "Smile").without(">Edit<", ">Delete<")
	w.signedIn(stranger).get("/projects/rules").expect(http.StatusOK).without("Smile")
}

// A step is not taken back over what someone has saved since.
func TestTakingBackDoesNotUndoTheWorkOfOthers(t *testing.T) {
	w := newWorld(t, server.Options{})
	olivia, walter := w.signedIn(owner), w.signedIn(writer)
	edit := w.shop() + "/edit"
	first := olivia.post(edit, olivia.writes(edit, "do", "Smile."))
	walter.post(edit, walter.writes(edit, "do", "Smile and wave.")).goesTo(w.shop() + "/rules?undo=")
	olivia.takesBack(first, "“Do” is saved.").stays(http.StatusBadRequest, "The text was saved again since")
	gone := olivia.post(w.shop()+"/rules/delete",
		olivia.get(w.shop()+"/rules").formTo(w.shop()+"/rules/delete", "text", "do"))
	walter.post(edit, walter.writes(edit, "do", "Wave.")).goesTo(w.shop() + "/rules?undo=")
	olivia.takesBack(gone, "“Do” is deleted.").stays(http.StatusBadRequest, "The text was saved again since")
	olivia.get(w.shop()+"/rules").expect(http.StatusOK, "<p>Wave.</p>")
}

// Someone who saves second sees both texts, and neither is lost.
func TestSavingOverAnotherUsersChange(t *testing.T) {
	w, store, olivia := withTodo(t, shopTodo)
	walter, edit := w.signedIn(writer), w.shop()+"/edit"
	for _, key := range []string{"do", "todo", "plan", "main"} {
		was, mine, theirs := "Was.", "Mine, with\n\n- *care*.\n", "Theirs <b>."
		if key == "todo" {
			was = shopTodo
			mine, theirs = strings.Replace(shopTodo, "A **till**", "My **till**", 1),
				strings.Replace(shopTodo, "A **till**", "Their **till**", 1)
		}
		olivia.post(edit, olivia.writes(edit, key, was))
		form := olivia.writes(edit, key, mine)
		walter.post(edit, walter.writes(edit, key, theirs)).goesTo(w.shop())
		p := olivia.post(edit, form).stays(http.StatusConflict, "Someone else saved this text while you were editing it.",
			"Replace with mine", "Keep the saved text",
			"What saving yours would change", "<del>", "<ins>")
		checkPage(w, p)
		if p.says("saved") != theirs || p.says("content") != mine {
			t.Errorf("%s: saved is %q, yours %q", key, p.says("saved"), p.says("content"))
		}
		again := p.formTo(edit, "text", key)
		again.Set("content", "Both: "+mine)
		if key == "todo" {
			again.Set("content", mine)
		}
		walter.post(edit, walter.writes(edit, key,
			strings.Replace(theirs, "heir", "HEIR", 1))).goesTo(w.shop()) // and once more
		p = olivia.post(edit, again).stays(http.StatusConflict, "HEIR")
		again = p.formTo(edit, "text", key)
		again.Set("content", mine)
		saved := olivia.post(edit, again)
		saved.goesTo(w.shop())
		if got := olivia.get(edit + "?text=" + key).says("content"); strings.TrimSpace(got) != strings.TrimSpace(mine) {
			t.Errorf("%s is %q", key, got)
		}
	}
	if got := todoOf(t, store); !strings.Contains(got.Content, "My **till**") ||
		!strings.Contains(got.Content, "Be kind.") {
		t.Errorf("the to-do is %q", got.Content)
	}
}

// Two people may edit two sections of a to-do at once; and a text that was deleted meanwhile is a conflict, too.
func TestEditingBesideOthers(t *testing.T) {
	w, store, olivia := withTodo(t, shopTodo)
	walter, edit := w.signedIn(writer), w.shop()+"/edit"
	mine, theirs := olivia.writes(edit, "spec", "A till."), walter.writes(edit, "plan", "A plan.")
	walter.post(edit, theirs).goesTo(w.shop() + "/todo?undo=")
	saved := olivia.post(edit, mine)
	saved.goesTo(w.shop() + "/todo?undo=")
	if got := todoOf(t, store).Content; got != strings.NewReplacer("A **till** that adds up.", "A till.",
		"First this, then that.", "A plan.").Replace(shopTodo) {
		t.Errorf("the to-do is %q", got)
	}
	olivia.takesBack(saved, "“Spec” is saved.")
	if got := todoOf(t, store).Content; got != strings.Replace(shopTodo, "First this, then that.", "A plan.", 1) {
		t.Errorf("the to-do is %q", got)
	}
	form := olivia.writes(edit, "spec", "Lost?")
	if err := store.DeleteRule(t.Context(), souvenir.ProjectRef{ID: "shop"}, souvenir.RuleTodo); err != nil {
		t.Fatal(err)
	}
	p := olivia.post(edit, form).stays(http.StatusConflict, "It was deleted.")
	if p.says("content") != "Lost?" {
		t.Errorf("yours is %q, want \"Lost?\"", p.says("content"))
	}
}

func TestTextsThatCannotBeSaved(t *testing.T) {
	w, store, olivia := withTodo(t, shopTodo)
	edit := w.shop() + "/edit"
	for _, c := range []struct{ key, content, says string }{
		{"tasks", "- [ ] T1 a\n- [ ] T1 b", "lines 1 and 2 are both the task"},
		{"plan", "## Tasks", "a section&#39;s content has no heading of that level"},
		{"spec", "```\nopen", "begins fenced code without an end"},
		{"todo", "nothing", "The text is not a todo document"},
		{"do", "", "The text is empty"},
		{"do", strings.Repeat("x", 1<<20+1), "The text is"},
	} {
		p := olivia.post(edit, olivia.writes(edit, c.key, c.content)).stays(http.StatusBadRequest, c.says,
			`aria-invalid="true"`)
		if p.says("content") != c.content {
			t.Errorf("%s: %.100q is typed, want %v", c.key, p.says("content"), c.content)
		}
	}
	if got := todoOf(t, store); got.Content != shopTodo || got.Revision != 1 {
		t.Errorf("revision %d is %q", got.Revision, got.Content)
	}
	olivia.get(edit+"?text="+url.QueryEscape(hostile)).stays(http.StatusBadRequest,
		"allowed are do, dont, todo, constitution, spec, plan, tasks, gaps and main").without("<script>alert")
	olivia.get("/projects/rules/edit?text=todo").stays(http.StatusBadRequest, "allowed are do and dont")
	olivia.get(edit).expect(http.StatusOK, "Main memory of The shop")
	olivia.get("/projects/rules/edit").expect(http.StatusOK, "“Do” for all your work")
}

func TestPreviewOfATextIsSafe(t *testing.T) {
	w := newWorld(t, server.Options{})
	olivia, edit := w.signedIn(owner), w.shop()+"/edit"
	form := olivia.writes(edit, "do", "**bold** [x](javascript:alert(1)) "+hostile)
	form.Set("preview", "yes")
	olivia.asks(http.MethodPost, edit, form).expect(http.StatusOK, "<strong>bold</strong>",
		"&lt;script&gt;").without("<script", "<img", "javascript:", "<html", "<textarea")
	p := olivia.post(edit, form).stays(http.StatusOK, "<strong>bold</strong>", "<h1>“Do” of The shop</h1>")
	checkPage(w, p)
	if !strings.HasPrefix(p.says("content"), "**bold**") {
		t.Errorf("typed is %q, want at its start \"**bold**\"", p.says("content"))
	}
	form.Set("content", strings.Repeat("word\n\n", 50_000))
	if p := olivia.asks(http.MethodPost, edit, form).expect(http.StatusOK,
		"Only the beginning is shown"); len(p.body) > 300_000 {
		t.Errorf("the preview has %d bytes, want at most 300_000", len(p.body))
	}
	olivia.get(w.shop()+"/rules").expect(http.StatusOK, "Nothing here yet.") // looking saves nothing
}

// What is not touched keeps every byte, whatever line endings a browser sends.
func TestEditingKeepsLineEndings(t *testing.T) {
	w, store, olivia := withTodo(t, strings.ReplaceAll(shopTodo, "\n", "\r\n"))
	edit := w.shop() + "/edit"
	olivia.leadsTo(olivia.post(edit, olivia.writes(edit, "todo", shopTodo)), w.shop()+"/todo?done=unchanged")
	olivia.post(edit, olivia.writes(edit, "todo",
		strings.Replace(shopTodo, "Be kind.", "Be\nvery kind.", 1))).goesTo(w.shop() + "/todo?undo=")
	if got, want := todoOf(t, store).Content,
		strings.ReplaceAll(strings.Replace(shopTodo, "Be kind.", "Be\nvery kind.", 1), "\n", "\r\n"); got != want {
		t.Errorf("the to-do is %q, want %v", got, want)
	}
	first := "\n\n  leading blank lines\n"
	olivia.post(edit, olivia.writes(edit, "main", first)).goesTo(w.shop() + "?undo=")
	if p := olivia.get(edit + "?text=main"); p.says("content") != first || !strings.Contains(p.body, ">\n"+first) {
		t.Errorf("the textarea has %q", p.says("content"))
	}
}

func TestMainMemoryOfAProject(t *testing.T) {
	w := newWorld(t, server.Options{})
	walter, edit := w.signedIn(writer), w.shop()+"/edit"
	walter.get(w.shop()).expect(http.StatusOK, "Nothing here yet. The main memory holds what to know first",
		"The shop opens at nine.")
	saved := walter.post(edit, walter.writes(edit, "main", "# The shop\n\nSoup and fish."))
	p := walter.get(saved.header.Get("Location")).expect(http.StatusOK, "“Main memory” is saved.", "<p>Soup and fish.</p>",
		"version 1")
	checkPage(w, p)
	main, err := w.store.As(souvenir.Access{User: w.users[reader]}).MainMemory(t.Context(),
		souvenir.ProjectRef{ID: w.users[owner] + "/shop"})
	if err != nil || main.Memory.Content != "# The shop\n\nSoup and fish." {
		t.Errorf("%v: %q, want %v", err, main.Memory.Content, "# The shop\n\nSoup and fish.")
	}
	second := walter.post(edit, walter.writes(edit, "main", "Soup."))
	walter.leadsTo(walter.takesBack(second, "“Main memory” is saved."), w.shop()+"?done=undone").expect(http.StatusOK,
		"<p>Soup and fish.</p>", "version 3")
	w.signedIn(reader).get(w.shop()).expect(http.StatusOK, "Soup and fish.").without(fmt.Sprintf("%s/edit", w.shop()))
}
