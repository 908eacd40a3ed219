package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// With very many projects of very long names, pages stay short: they offer the first ones, and others by name.
func TestPagesOfManyProjectsStayShort(t *testing.T) {
	w := servertest.New(t, server.Options{})
	sam := w.Store.As(souvenir.Access{User: w.Users[servertest.Stranger]})
	var last souvenir.Project
	for i := range 150 {
		name := fmt.Sprintf("%03d %s", i, strings.Repeat("茶の話", 40))
		p, err := sam.AddProject(t.Context(), souvenir.NewProject{
			ID: fmt.Sprintf("p%03d-%s", i, strings.Repeat("x", 100)), Name: name})
		if err != nil {
			t.Fatal(err)
		}
		last = p
	}
	ids := fill(w, servertest.Stranger, souvenir.NewMemory{Content: "Tea is in the last one.", ProjectID: last.ID},
		souvenir.NewMemory{Content: "Tea is in none."})
	file, err := sam.AddFile(t.Context(), souvenir.NewFile{Filename: "tea.txt"}, strings.NewReader("tea"))
	if err != nil {
		t.Fatal(err)
	}
	browser := w.SignedIn(servertest.Stranger)
	others := map[string]string{"": "", "memories": "project", "memories/compare": "a_project", "memories/duplicates": "project",
		"memories/new": "project", "memories/" + ids[1] + "/edit": "project", "projects": "", "files": "project",
		"files/" + file.ID: "project", "graph": "project", "map": "project", "context": "project", "activity": "project",
		"tokens": "", "connect": "", "proposals": "", "trash": ""}
	for path, field := range others {
		p := browser.Get("/" + path).Expect(http.StatusOK)
		if size := len(p.Body); size > mostPage {
			t.Errorf("/%s: got %d bytes, want at most %d", path, size, mostPage)
		}
		if field != "" {
			p.Expect(http.StatusOK, `name="`+field+`_named"`)
		}
	}
	name := url.QueryEscape("149 茶")
	browser.Get("/memories?project_named="+name).Expect(http.StatusOK, "Tea is in the last one.").
		Without("Tea is in none.")
	browser.Get("/memories?project_named=nowhere").Expect(http.StatusOK, "nowhere").Without("Tea is in")
	edit := browser.Get("/memories/" + ids[1] + "/edit")
	browser.Submit(edit, "/memories/"+ids[1]+"/edit", url.Values{"content": {"Tea."}, "project": {""},
		"project_named": {last.Name}}).Expect(http.StatusSeeOther)
	if m, err := sam.GetMemory(t.Context(), ids[1]); err != nil || m.ProjectID != last.ID {
		t.Errorf("the memory is in %q (%v), want in the project whose name was typed", m.ProjectID, err)
	}
	browser.Get("/memories/"+ids[1]+"/edit").Expect(http.StatusOK, "/"+last.ID+`" selected`)
	browser.Submit(browser.Get("/tokens"), "/tokens", url.Values{"name": {"one"}, "project_others": {"149\r\n148"}})
	tokens, err := sam.Accounts().Tokens(t.Context())
	if err != nil || len(tokens) == 0 || len(tokens[0].Projects) != 2 {
		t.Errorf("the tokens are %+v (%v), want one for the two projects of the lines", tokens, err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.HTTP.URL+"/find?project_named="+name, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("HX-Request", "true")
	r.Header.Set("HX-Trigger-Name", "project_named")
	browser.Send(r).Expect(http.StatusOK, `<option value="149 茶`).Without("148 茶")
}
