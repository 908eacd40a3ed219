package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// emptyDigest is the version in the form of a text that does not exist yet.
const emptyDigest = "47DEQpj8HBSa"

// writes opens the page of a text and returns its form with a new text, as browsers send it.
func writes(b *servertest.Browser, path, key, content string) url.Values {
	b.W.T.Helper()
	form := b.Get(path+"?text="+key).Expect(http.StatusOK).FormTo(path, "text", key)
	form.Set("content", strings.ReplaceAll(content, "\n", "\r\n"))
	return form
}

// says returns the content of a page's textarea.
func says(p *servertest.Page, id string) string {
	p.T.Helper()
	for _, area := range p.HTML.All("textarea") {
		if area.Attr("id") == id {
			return strings.TrimPrefix(area.Text, "\n")
		}
	}
	p.T.Fatalf("the page has no textarea %s:\n%s", id, p.Body)
	return ""
}

func TestRulesAreWrittenChangedAndDeleted(t *testing.T) {
	w := servertest.New(t, server.Options{})
	olivia, store := w.SignedIn(servertest.Owner), w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	for _, place := range []struct {
		page, edit, remove string
		ref                souvenir.ProjectRef
	}{
		{shop(w) + "/rules", shop(w) + "/edit", shop(w) + "/rules/delete", souvenir.ProjectRef{ID: "shop"}},
		{"/projects/rules", "/projects/rules/edit", "/projects/rules/delete", souvenir.ProjectRef{}},
	} {
		servertest.CheckPage(w, olivia.Get(place.page).Expect(http.StatusOK, "Nothing here yet.", ">Write<"))
		saved := olivia.Post(place.edit, writes(olivia, place.edit, "do", "# Smile\n\n- at *all*\n"))
		p := olivia.Get(saved.Header.Get("Location")).Expect(http.StatusOK, "“Do” is saved.", "<h3>Smile</h3>",
			"at <em>all</em>", "version 1")
		servertest.CheckPage(w, p)
		rule, err := store.GetRule(t.Context(), place.ref, souvenir.RuleDo)
		if err != nil || rule.Content != "# Smile\n\n- at *all*\n" {
			t.Fatalf("%v: %q, want %v", err, rule.Content, "# Smile\n\n- at *all*\n")
		}
		_, err = store.SetRule(t.Context(),
			souvenir.NewRule{ProjectID: place.ref.ID, Type: souvenir.RuleDo, Content: rule.Content, Tags: []string{"mood"}})
		if err != nil {
			t.Fatal(err)
		}
		back := takesBack(olivia, olivia.Post(place.edit, writes(olivia, place.edit, "do", "Frown.")), "“Do” is saved.")
		olivia.LeadsTo(back, place.page+"?done=undone").Expect(http.StatusOK, "Undone.", "<h3>Smile</h3>",
			"version 4")
		olivia.LeadsTo(olivia.Post(place.edit, writes(olivia, place.edit, "do", rule.Content)), place.page+
			"?done=unchanged").Expect(http.StatusOK, "No changes.", "version 4")

		gone := olivia.Post(place.remove, olivia.Get(place.page).FormTo(place.remove, "text", "do"))
		back = takesBack(olivia, gone, "“Do” is deleted.")
		olivia.LeadsTo(back, place.page+"?done=undone").Expect(http.StatusOK, "<h3>Smile</h3>", "version 4")
		if again, err := store.GetRule(t.Context(), place.ref, souvenir.RuleDo); err != nil || again.ID != rule.ID ||
			strings.Join(again.Tags, " ") != "mood" || again.Content != rule.Content {
			t.Errorf(`%v: %q with the tags %q, want no error, ID %v, tags "mood" and content %v`, err, again.Content, again.Tags,
				rule.ID, rule.Content)
		}
		olivia.Post(place.remove, url.Values{"csrf": {olivia.Get("/profile").Hidden().Get("csrf")},
			"text": {"todo"}}).Stays(http.StatusBadRequest, "expected do or dont")
	}
	w.SignedIn(servertest.Reader).Get(shop(w)+"/rules").Expect(http.StatusOK, "Smile").Without(">Edit<", ">Delete<")
	w.SignedIn(servertest.Stranger).Get("/projects/rules").Expect(http.StatusOK).Without("Smile")
}

// What agents get besides the rules is on the same pages.
func TestRulesPagesListShortDosAndDonts(t *testing.T) {
	w := servertest.New(t, server.Options{})
	fill(w, servertest.Owner,
		souvenir.NewMemory{Content: "Ask before a release.", Classification: souvenir.ClassDo},
		souvenir.NewMemory{Content: "Never on Fridays <b>.", Classification: souvenir.ClassDont, ProjectID: "shop"})
	olivia, stranger := w.SignedIn(servertest.Owner), w.SignedIn(servertest.Stranger)
	servertest.CheckPage(w, olivia.Get("/projects/rules").Expect(http.StatusOK, "Ask before a release.",
		"Short dos and don’ts").Without("Fridays"))
	olivia.Get(shop(w)+"/rules").Expect(http.StatusOK, "Never on Fridays &lt;b&gt;.", "Don’t").Without("Ask before")
	w.SignedIn(servertest.Reader).Get(shop(w)+"/rules").Expect(http.StatusOK, "Fridays").Without("Ask before")
	stranger.Get("/projects/rules").Expect(http.StatusOK).Without("Ask before", "Short dos")
}

// Undo never overwrites later changes of others.
func TestUndoKeepsOtherUsersChanges(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	olivia, walter := w.SignedIn(servertest.Owner), w.SignedIn(servertest.Writer)
	edit := shop(w) + "/edit"
	first := olivia.Post(edit, writes(olivia, edit, "do", "Smile."))
	walter.Post(edit, writes(walter, edit, "do", "Smile and wave.")).GoesTo(shop(w) + "/rules?undo=")
	takesBack(olivia, first, "“Do” is saved.").Stays(http.StatusBadRequest, "The text was saved again since")
	gone := olivia.Post(shop(w)+"/rules/delete",
		olivia.Get(shop(w)+"/rules").FormTo(shop(w)+"/rules/delete", "text", "do"))
	walter.Post(edit, writes(walter, edit, "do", "Wave.")).GoesTo(shop(w) + "/rules?undo=")
	takesBack(olivia, gone, "“Do” is deleted.").Stays(http.StatusBadRequest, "The text was saved again since")
	olivia.Get(shop(w)+"/rules").Expect(http.StatusOK, "<p>Wave.</p>")
}

// The second of two users to save sees both texts, and neither is lost.
func TestSavingOverAnotherUsersChange(t *testing.T) {
	longtest.Only(t)
	w, store, olivia := withTodo(t, shopTodo)
	walter, edit := w.SignedIn(servertest.Writer), shop(w)+"/edit"
	for _, key := range []string{"do", "todo", "plan", "main"} {
		was, mine, theirs := "Was.", "Mine, with\n\n- *care*.\n", "Theirs <b>."
		if key == "todo" {
			was = shopTodo
			mine, theirs = strings.Replace(shopTodo, "A **till**", "My **till**", 1),
				strings.Replace(shopTodo, "A **till**", "Their **till**", 1)
		}
		olivia.Post(edit, writes(olivia, edit, key, was))
		form := writes(olivia, edit, key, mine)
		walter.Post(edit, writes(walter, edit, key, theirs)).GoesTo(shop(w))
		p := olivia.Post(edit, form).Stays(http.StatusConflict, "Someone else saved this text while you were editing it.",
			"Replace with mine", "Keep the saved text",
			"What saving yours would change", "<del>", "<ins>")
		servertest.CheckPage(w, p)
		if says(p, "saved") != theirs || says(p, "content") != mine {
			t.Errorf("%s: saved is %q, yours %q; want both", key, says(p, "saved"), says(p, "content"))
		}
		again := p.FormTo(edit, "text", key)
		again.Set("content", "Both: "+mine)
		if key == "todo" {
			again.Set("content", mine)
		}
		walter.Post(edit, writes(walter, edit, key,
			strings.Replace(theirs, "heir", "HEIR", 1))).GoesTo(shop(w)) // once more
		p = olivia.Post(edit, again).Stays(http.StatusConflict, "HEIR")
		again = p.FormTo(edit, "text", key)
		again.Set("content", mine)
		saved := olivia.Post(edit, again)
		saved.GoesTo(shop(w))
		if got := says(olivia.Get(edit+"?text="+key), "content"); strings.TrimSpace(got) != strings.TrimSpace(mine) {
			t.Errorf("%s is %q, want %v", key, got, strings.TrimSpace(mine))
		}
	}
	if got := todoOf(t, store); !strings.Contains(got.Content, "My **till**") ||
		!strings.Contains(got.Content, "Be kind.") {
		t.Errorf(`the to-do is %q, want "My **till**" in the content and "Be kind." in the content`, got.Content)
	}
}

// Two people may edit two sections of a to-do at once. A text that was deleted meanwhile is also a conflict.
func TestEditingBesideOthers(t *testing.T) {
	longtest.Only(t)
	w, store, olivia := withTodo(t, shopTodo)
	walter, edit := w.SignedIn(servertest.Writer), shop(w)+"/edit"
	mine, theirs := writes(olivia, edit, "spec", "A till."), writes(walter, edit, "plan", "A plan.")
	walter.Post(edit, theirs).GoesTo(shop(w) + "/todo?undo=")
	saved := olivia.Post(edit, mine)
	saved.GoesTo(shop(w) + "/todo?undo=")
	if got := todoOf(t, store).Content; got != strings.NewReplacer("A **till** that adds up.", "A till.",
		"First this, then that.", "A plan.").Replace(shopTodo) {
		t.Errorf("the to-do is %q, want it edited as asked", got)
	}
	takesBack(olivia, saved, "“Spec” is saved.")
	if got := todoOf(t, store).Content; got != strings.Replace(shopTodo, "First this, then that.", "A plan.", 1) {
		t.Errorf("the to-do is %q, want it edited as asked", got)
	}
	form := writes(olivia, edit, "spec", "Lost?")
	if err := store.DeleteRule(t.Context(), souvenir.ProjectRef{ID: "shop"}, souvenir.RuleTodo); err != nil {
		t.Fatal(err)
	}
	p := olivia.Post(edit, form).Stays(http.StatusConflict, "It was deleted.")
	if says(p, "content") != "Lost?" {
		t.Errorf("yours is %q, want \"Lost?\"", says(p, "content"))
	}
}

func TestRefusedTexts(t *testing.T) {
	longtest.Only(t)
	w, store, olivia := withTodo(t, shopTodo)
	edit := shop(w) + "/edit"
	for _, c := range []struct{ key, content, says string }{
		{"tasks", "- [ ] T1 a\n- [ ] T1 b", "lines 1 and 2 are both the task"},
		{"plan", "## Tasks", "a section&#39;s content has no heading of that level"},
		{"spec", "```\nopen", "begins fenced code without an end"},
		{"todo", "nothing", "The text is not a todo document"},
		{"do", "", "The text is empty"},
		{"do", strings.Repeat("x", 1<<20+1), "The text is"},
	} {
		p := olivia.Post(edit, writes(olivia, edit, c.key, c.content)).Stays(http.StatusBadRequest, c.says,
			`aria-invalid="true"`)
		if says(p, "content") != c.content {
			t.Errorf("%s: %.100q is typed, want %v", c.key, says(p, "content"), c.content)
		}
	}
	if got := todoOf(t, store); got.Content != shopTodo || got.Revision != 1 {
		t.Errorf("revision %d is %q, want content %v and revision 1", got.Revision, got.Content, shopTodo)
	}
	olivia.Get(edit+"?text="+url.QueryEscape(servertest.Hostile)).Stays(http.StatusBadRequest,
		"expected do, dont, todo, constitution, spec, plan, tasks, gaps or main").Without("<script>alert")
	olivia.Get("/projects/rules/edit?text=todo").Stays(http.StatusBadRequest, "expected do or dont")
	olivia.Get(edit).Expect(http.StatusOK, "Main memory of The shop")
	olivia.Get("/projects/rules/edit").Expect(http.StatusOK, "“Do” for all your work")
}

func TestPreviewOfATextIsSafe(t *testing.T) {
	w := servertest.New(t, server.Options{})
	olivia, edit := w.SignedIn(servertest.Owner), shop(w)+"/edit"
	form := writes(olivia, edit, "do", "**bold** [x](javascript:alert(1)) "+servertest.Hostile)
	form.Set("preview", "yes")
	asks(olivia, http.MethodPost, edit, form).Expect(http.StatusOK, "<strong>bold</strong>",
		"&lt;script&gt;").Without("<script", "<img", "javascript:", "<html", "<textarea")
	p := olivia.Post(edit, form).Stays(http.StatusOK, "<strong>bold</strong>", "<h1>“Do” of The shop</h1>")
	servertest.CheckPage(w, p)
	if !strings.HasPrefix(says(p, "content"), "**bold**") {
		t.Errorf("typed is %q, want at its start \"**bold**\"", says(p, "content"))
	}
	form.Set("content", strings.Repeat("word\n\n", 50_000))
	if p := asks(olivia, http.MethodPost, edit, form).Expect(http.StatusOK,
		"Only the beginning is shown"); len(p.Body) > 300_000 {
		t.Errorf("the preview has %d bytes, want at most 300_000", len(p.Body))
	}
	olivia.Get(shop(w)+"/rules").Expect(http.StatusOK, "Nothing here yet.") // viewing saves nothing
}

// Unchanged text keeps every byte, whatever line endings a browser sends.
func TestEditingKeepsLineEndings(t *testing.T) {
	longtest.Only(t)
	w, store, olivia := withTodo(t, strings.ReplaceAll(shopTodo, "\n", "\r\n"))
	edit := shop(w) + "/edit"
	olivia.LeadsTo(olivia.Post(edit, writes(olivia, edit, "todo", shopTodo)), shop(w)+"/todo?done=unchanged")
	olivia.Post(edit, writes(olivia, edit, "todo",
		strings.Replace(shopTodo, "Be kind.", "Be\nvery kind.", 1))).GoesTo(shop(w) + "/todo?undo=")
	if got, want := todoOf(t, store).Content,
		strings.ReplaceAll(strings.Replace(shopTodo, "Be kind.", "Be\nvery kind.", 1), "\n", "\r\n"); got != want {
		t.Errorf("the to-do is %q, want %v", got, want)
	}
	first := "\n\n  leading blank lines\n"
	olivia.Post(edit, writes(olivia, edit, "main", first)).GoesTo(shop(w) + "?undo=")
	if p := olivia.Get(edit + "?text=main"); says(p, "content") != first || !strings.Contains(p.Body, ">\n"+first) {
		t.Errorf("the textarea has %q, want the whole text", says(p, "content"))
	}
}

func TestMainMemoryOfAProject(t *testing.T) {
	w := servertest.New(t, server.Options{})
	walter, edit := w.SignedIn(servertest.Writer), shop(w)+"/edit"
	walter.Get(shop(w)).Expect(http.StatusOK, "Nothing here yet. The main memory holds what to know first",
		"The shop opens at nine.")
	saved := walter.Post(edit, writes(walter, edit, "main", "# The shop\n\nSoup and fish."))
	p := walter.Get(saved.Header.Get("Location")).Expect(http.StatusOK, "“Main memory” is saved.", "<p>Soup and fish.</p>",
		"version 1")
	servertest.CheckPage(w, p)
	main, err := w.Store.As(souvenir.Access{User: w.Users[servertest.Reader]}).GetMainMemory(t.Context(),
		souvenir.ProjectRef{ID: w.Users[servertest.Owner] + "/shop"})
	if err != nil || main.Memory.Content != "# The shop\n\nSoup and fish." {
		t.Errorf("%v: %q, want %v", err, main.Memory.Content, "# The shop\n\nSoup and fish.")
	}
	second := walter.Post(edit, writes(walter, edit, "main", "Soup."))
	walter.LeadsTo(takesBack(walter, second, "“Main memory” is saved."), shop(w)+"?done=undone").Expect(http.StatusOK,
		"<p>Soup and fish.</p>", "version 3")
	w.SignedIn(servertest.Reader).Get(shop(w)).Expect(http.StatusOK, "Soup and fish.").Without(fmt.Sprintf("%s/edit",
		shop(w)))
}
