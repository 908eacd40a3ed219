package server_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// hostileTodo is a to-do that would run if it were no text.
const hostileTodo = "## Constitution\n\n" + hostile + "\n\n## Spec\n\n[x](javascript:alert(1))\n\n## Plan\n\n## Tasks\n\n- [ ] T1 " + hostile + "\n  more " + hostile +
	"\n- [x] T2 `code`\n\n## Gaps\n\n- [ ] " + hostile + "\n"

// furnishProjects gives the pages something to show.
func (w *world) furnishProjects(paths map[string]string) {
	w.t.Helper()
	steps := firstError{}
	ada := w.store.As(souvenir.Access{User: w.users[admin]})
	_, err := ada.SetTodo(w.t.Context(), souvenir.NewTodo{ProjectID: "p", Content: hostileTodo})
	steps.note(err)
	for _, project := range []string{"p", ""} {
		for _, rule := range []souvenir.RuleType{souvenir.RuleDo, souvenir.RuleDont} {
			_, err = ada.SetRule(w.t.Context(), souvenir.NewRule{ProjectID: project, Type: rule, Content: hostile})
			steps.note(err)
		}
	}
	_, err = ada.AddMemory(w.t.Context(), souvenir.NewMemory{ProjectID: "p", EventType: souvenir.EventProjectMain, State: souvenir.StateActive, Content: hostile,
		Tags: []string{"module:" + hostile}, Metadata: map[string]any{"module_name": hostile}})
	steps.note(err)
	_, err = ada.AddMember(w.t.Context(), souvenir.NewMember{Project: souvenir.ProjectRef{ID: "p"}, User: "olivia", Role: souvenir.MemberWriter})
	steps.note(err)
	if steps.err != nil {
		w.t.Fatal(steps.err)
	}
	for pattern := range paths {
		if rest, ok := strings.CutPrefix(pattern, "/projects/{owner}/{id}"); ok {
			paths[pattern] = "/projects/" + w.users[admin] + "/p" + rest
		}
	}
	paths["/projects/{owner}/{id}/edit"] += "?text=todo"
	paths["/projects/rules/edit"] += "?text=do"
}

// shop is the path of the project that the world's people share.
func (w *world) shop() string { return "/projects/" + w.users[owner] + "/shop" }

func TestProjectsPage(t *testing.T) {
	w := newWorld(t, server.Options{})
	olivia, rita, sam := w.signedIn(owner), w.signedIn(reader), w.signedIn(stranger)

	sam.get("/projects").expect(http.StatusOK, "There is none yet", `action="/projects"`).lacks("The shop")
	olivia.get("/projects").expect(http.StatusOK, "The shop", w.shop(), "Shared by you", "1 memory", "3 members", "No to-do yet")
	rita.get("/projects").expect(http.StatusOK, "The shop", "Shared by olivia", "reader").lacks(secret)

	made := olivia.submit(olivia.get("/projects"), "/projects", url.Values{"name": {"Garden"}, "project": {"garden"}})
	olivia.leadsTo(made, "/projects/"+w.users[owner]+"/garden?done=project").expect(http.StatusOK, "<h1>Garden</h1>", "The project is there.")
	olivia.submit(olivia.get("/projects"), "/projects", url.Values{"name": {"Garden"}, "project": {"other"}}).
		stays(http.StatusBadRequest, "Name", "is taken by the project", `value="other"`)
	olivia.submit(olivia.get("/projects"), "/projects", url.Values{"name": {"New"}, "project": {"a/b"}}).stays(http.StatusBadRequest, "Id", "a/b")
	olivia.submit(olivia.get("/projects"), "/projects", url.Values{"name": {"  "}}).stays(http.StatusBadRequest, `role="alert"`)
}
