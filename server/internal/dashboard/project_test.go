package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

func TestFirstPageOfAProject(t *testing.T) {
	w, store, olivia := withTodo(t, shopTodo)
	linked, err := store.AddMemory(t.Context(),
		souvenir.NewMemory{Content: "\n# Soup of the day\nPea.", ProjectID: "shop", EventType: "decision",
			Tags: []string{"soup"}})
	if err != nil {
		t.Fatal(err)
	}
	main, err := store.AddMemory(t.Context(),
		souvenir.NewMemory{Content: "We sell *soup*.", ProjectID: "shop", EventType: "project-main", State: "active",
			Related: []string{linked.ID}})
	if err != nil {
		t.Fatal(err)
	}
	servertest.CheckPage(w, olivia.Get(shop(w)))
	if _, err := store.UpdateFile(t.Context(), w.File, souvenir.FileUpdate{MemoryID: &main.ID}); err != nil {
		t.Fatal(err)
	}
	olivia.Get(shop(w)).Expect(http.StatusOK, "We sell <em>soup</em>.", "menu.txt", "10 bytes", "Soup of the day</a>",
		"linked from it", ">soup<", "1 of 3 tasks done", "T1</b> add up",
		"T3</b> close at six", "</b> tokens at the start of their work", "rules</a> yet", "The shop opens at nine.",
		`data-copy="project-id"`).Without("T2</b>")
	w.SignedIn(servertest.Reader).Get(shop(w)).Expect(http.StatusOK, "olivia", "reader", "We sell").Without("/edit?")
	empty := w.SignedIn(servertest.Stranger)
	made := empty.Submit(empty.Get("/projects"), "/projects", url.Values{"name": {"Empty"}, "project": {"empty"}})
	servertest.CheckPage(w, empty.Get(made.Header.Get("Location")).Expect(http.StatusOK, "Nothing here yet. Agents store",
		"project_id: empty", "Nothing here yet."))
}

func TestModulesOfAProject(t *testing.T) {
	longtest.Only(t)
	w, store, olivia := withTodo(t, strings.Replace(shopTodo, "T1 add up", "T1 add up in the till", 1))
	modules := shop(w) + "/modules"
	servertest.CheckPage(w, olivia.Get(modules).Expect(http.StatusOK, "No modules yet"))
	for i := range 3 {
		_, err := store.AddMemory(t.Context(),
			souvenir.NewMemory{Content: fmt.Sprintf("Drawer %d sticks.", i), ProjectID: "shop", EventType: "bug",
				State: "active", ShownMetadata: map[string]any{"module_name": "Till"}})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tags := range [][]string{{"module:till", "Module:Oven"}, {"module:" + servertest.Hostile}, {"module:"}} {
		if _, err := store.AddMemory(t.Context(),
			souvenir.NewMemory{Content: "Both are warm.", ProjectID: "shop", Tags: tags}); err != nil {
			t.Fatal(err)
		}
	}
	p := olivia.Get(modules).Expect(http.StatusOK, ">4</span>", "Oven", `<option value="Oven">`).Without("No modules yet")
	servertest.CheckPage(w, p)
	if chips := strings.Count(p.Body, `href="?module=`); chips != 3 {
		t.Errorf("%d modules, want 3", chips)
	}
	p = w.SignedIn(servertest.Reader).Get(modules+"?module=TILL").Expect(http.StatusOK, "<h1>Module TILL of The shop</h1>",
		"Drawer 2 sticks.", "Both are warm.", "T1</b> add up in the till", "<dt>bug</dt><dd>3</dd>",
		"<dt>active</dt><dd>3</dd>")
	servertest.CheckPage(w, p)
	servertest.CheckPage(w, olivia.Get(modules+"?module="+url.QueryEscape(servertest.Hostile)).Expect(http.StatusOK,
		"Both are warm."))
	servertest.CheckPage(w, olivia.Get(modules+"?module=cellar").Expect(http.StatusOK,
		"Nothing here yet. A memory belongs to the module", "module:cellar"))
	p = olivia.Get(modules+"?module="+strings.Repeat("x", 129)).Stays(http.StatusBadRequest, "Module_name is",
		`aria-invalid="true"`)
	servertest.CheckPage(w, p)
}

func TestContextOfAProject(t *testing.T) {
	w, store, olivia := withTodo(t, shopTodo)
	if _, err := store.SetRule(t.Context(),
		souvenir.NewRule{ProjectID: "shop", Type: souvenir.RuleDo, Content: "Smile. " +
			strings.Repeat("Always. ", 800)}); err != nil {
		t.Fatal(err)
	}
	path := shop(w) + "/context"
	p := olivia.Get(path).Expect(http.StatusOK, "tokens in total", "Identity", "Nothing here yet. To set it, store",
		"Smile. Always.", "Only the beginning is shown.", "The shop opens at nine.", "Call get_context first")
	servertest.CheckPage(w, p)
	part := asks(olivia, http.MethodGet, path+"?query=when+does+it+open&budget=", nil).Expect(http.StatusOK,
		"tokens in total", "relevance ").Without("<html", "<input")
	if !strings.Contains(part.Body, "The shop opens") {
		t.Errorf("the part is %s; want in it \"The shop opens\"", part.Body)
	}
	servertest.CheckPage(w, olivia.Get(path+"?budget=600").Expect(http.StatusOK, "shortened for the agent",
		`class="note"`, "“Project rules: do”").Without("project_rules.do"))
	for _, budget := range []string{"7", "-1", "many", "99999999999999999999"} {
		p := olivia.Get(path+"?query=x&budget="+budget).Stays(http.StatusBadRequest, "budget", `aria-invalid="true"`,
			`value="x"`)
		servertest.CheckPage(w, p)
	}
	w.SignedIn(servertest.Reader).Get(path).Expect(http.StatusOK, "Smile.").Without(servertest.Secret)
}
