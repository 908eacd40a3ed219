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

// With many projects of long names, pages stay short: they offer the first ones, and find others by name.
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
	others := map[string]string{"": "", "memories": "project", "memories/compare": "a_project",
		"memories/duplicates": "project",
		"memories/new":        "project", "memories/" + ids[1] + "/edit": "project", "projects": "", "files": "project",
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

// Collections, types and users that a list does not offer are chosen by name.
func TestOthersOfManyAreChosenByName(t *testing.T) {
	w := servertest.New(t, server.Options{})
	sam := w.Store.As(souvenir.Access{User: w.Users[servertest.Admin]})
	var memories []souvenir.NewMemory
	for i := range 40 {
		memories = append(memories, souvenir.NewMemory{Content: fmt.Sprintf("Tea of the shelf %02d.", i),
			Collection: fmt.Sprintf("shelf %02d", i), EventType: fmt.Sprintf("tea %02d", i)})
		_, err := sam.AddCollection(t.Context(), souvenir.NewCollection{Name: memories[i].Collection})
		if err == nil {
			_, err = w.Store.Accounts().AddUser(t.Context(), souvenir.NewUser{Name: fmt.Sprintf("person %02d", i)})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := sam.AddMemories(t.Context(), memories, nil); err != nil {
		t.Fatal(err)
	}
	browser := w.SignedIn(servertest.Admin)
	for path, fields := range map[string][]string{"memories": {"collection_named", "event_type_named"},
		"graph": {"collection_named"}, "map": {"collection_named"}, "memories/new": {"collection_named"},
		"activity": {"user_named"}} {
		p := browser.Get("/" + path).Expect(http.StatusOK)
		for _, field := range fields {
			p.Expect(http.StatusOK, `name="`+field+`"`)
		}
		if n := strings.Count(p.Body, `<option value="shelf `); n > 25 {
			t.Errorf("/%s: got %d collections to choose from, want at most 25", path, n)
		}
	}
	for _, address := range []string{"collection_named=shelf+37", "event_type_named=tea+37"} {
		browser.Get("/memories?"+address).Expect(http.StatusOK, "Tea of the shelf 37.").Without("Tea of the shelf 12.")
	}
	browser.Get("/activity?user_named=person+37").Expect(http.StatusOK, "No calls match")
	browser.Get("/activity?user_named=nobody").Expect(http.StatusNotFound, "nobody")
	browser.Get("/collections?part=2").Expect(http.StatusOK, "shelf 37", "Page 2 of 2").Without("shelf 12")
	browser.Get("/collections?search=LF+37").Expect(http.StatusOK, "shelf 37", "1 collection of").Without("shelf 12")
	added := browser.Submit(browser.Get("/memories/new"), "/memories/new", url.Values{"content": {"Rooibos."},
		"collection": {""}, "collection_named": {"shelf 37"}})
	added.Expect(http.StatusSeeOther)
	found, err := sam.Search(t.Context(), souvenir.Query{Collections: []string{"shelf 37"}})
	if err != nil || found.Total != 2 {
		t.Errorf("the collection that was typed has %d memories, %v; want 2", found.Total, err)
	}
	for field, want := range map[string]string{"collection_named": "shelf 37", "event_type_named": "tea 37"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.HTTP.URL+"/find?"+field+"=37", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("HX-Request", "true")
		r.Header.Set("HX-Trigger-Name", field)
		browser.Send(r).Expect(http.StatusOK, `<option value="`+want).Without(" 12")
	}
}
