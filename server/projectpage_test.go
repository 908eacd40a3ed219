package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
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
	checkPage(w, olivia.get(w.shop()))
	if _, err := store.UpdateFile(t.Context(), w.file, souvenir.FileUpdate{MemoryID: &main.ID}); err != nil {
		t.Fatal(err)
	}
	olivia.get(w.shop()).expect(http.StatusOK, "We sell <em>soup</em>.", "menu.txt", "10 bytes", "Soup of the day</a>",
		"linked from it", ">soup<", "1 of 3 tasks done", "T1</b> add up",
		"T3</b> close at six", "</b> tokens at the start of their work", "rules</a> yet", "The shop opens at nine.",
		`data-copy="project-id"`).without("T2</b>")
	w.signedIn(reader).get(w.shop()).expect(http.StatusOK, "olivia", "reader", "We sell").without("/edit?")
	empty := w.signedIn(stranger)
	made := empty.submit(empty.get("/projects"), "/projects", url.Values{"name": {"Empty"}, "project": {"empty"}})
	checkPage(w, empty.get(made.header.Get("Location")).expect(http.StatusOK, "Nothing here yet. Agents store",
		"project_id: empty", "Nothing here yet."))
}

func TestModulesOfAProject(t *testing.T) {
	w, store, olivia := withTodo(t, strings.Replace(shopTodo, "T1 add up", "T1 add up in the till", 1))
	modules := w.shop() + "/modules"
	checkPage(w, olivia.get(modules).expect(http.StatusOK, "No modules yet"))
	for i := range 3 {
		_, err := store.AddMemory(t.Context(),
			souvenir.NewMemory{Content: fmt.Sprintf("Drawer %d sticks.", i), ProjectID: "shop", EventType: "bug",
				State: "active", ShownMetadata: map[string]any{"module_name": "Till"}})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tags := range [][]string{{"module:till", "Module:Oven"}, {"module:" + hostile}, {"module:"}} {
		if _, err := store.AddMemory(t.Context(),
			souvenir.NewMemory{Content: "Both are warm.", ProjectID: "shop", Tags: tags}); err != nil {
			t.Fatal(err)
		}
	}
	p := olivia.get(modules).expect(http.StatusOK, ">4</span>", "Oven", `<option value="Oven">`).without("No modules yet")
	checkPage(w, p)
	if chips := strings.Count(p.body, `href="?module=`); chips != 3 {
		t.Errorf("%d modules, want 3", chips)
	}
	p = w.signedIn(reader).get(modules+"?module=TILL").expect(http.StatusOK, "<h1>Module TILL of The shop</h1>",
		"Drawer 2 sticks.", "Both are warm.", "T1</b> add up in the till", "<dt>bug</dt><dd>3</dd>",
		"<dt>active</dt><dd>3</dd>")
	checkPage(w, p)
	checkPage(w, olivia.get(modules+"?module="+url.QueryEscape(hostile)).expect(http.StatusOK, "Both are warm."))
	checkPage(w, olivia.get(modules+"?module=cellar").expect(http.StatusOK,
		"Nothing here yet. A memory belongs to the module", "module:cellar"))
	p = olivia.get(modules+"?module="+strings.Repeat("x", 129)).stays(http.StatusBadRequest, "Module_name is",
		`aria-invalid="true"`)
	checkPage(w, p)
}

func TestContextOfAProject(t *testing.T) {
	w, store, olivia := withTodo(t, shopTodo)
	if _, err := store.SetRule(t.Context(),
		souvenir.NewRule{ProjectID: "shop", Type: souvenir.RuleDo, Content: "Smile. " +
			strings.Repeat("Always. ", 800)}); err != nil {
		t.Fatal(err)
	}
	path := w.shop() + "/context"
	p := olivia.get(path).expect(http.StatusOK, "tokens in total", "Identity", "Nothing here yet. To set it, store",
		"Smile. Always.", "Only the beginning is shown.", "The shop opens at nine.", "Call get_context first")
	checkPage(w, p)
	part := olivia.asks(http.MethodGet, path+"?query=when+does+it+open&budget=", nil).expect(http.StatusOK,
		"tokens in total", "relevance ").without("<html", "<input")
	if !strings.Contains(part.body, "The shop opens") {
		t.Errorf("the part is %s; want in it \"The shop opens\"", part.body)
	}
	checkPage(w, olivia.get(path+"?budget=600").expect(http.StatusOK, "shortened for the agent", `class="note"`))
	for _, budget := range []string{"7", "-1", "many", "99999999999999999999"} {
		p := olivia.get(path+"?query=x&budget="+budget).stays(http.StatusBadRequest, "budget", `aria-invalid="true"`,
			`value="x"`)
		checkPage(w, p)
	}
	w.signedIn(reader).get(path).expect(http.StatusOK, "Smile.").without(secret)
}
