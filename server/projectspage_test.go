package server_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// hostileTodo is a to-do that would run if it were no text.
const hostileTodo = "## Constitution\n\n" + hostile +
	"\n\n## Spec\n\n[x](javascript:alert(1))\n\n## Plan\n\n## Tasks\n\n- [ ] T1 " + hostile + "\n  more " + hostile +
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
	_, err = ada.AddMemory(w.t.Context(),
		souvenir.NewMemory{ProjectID: "p", EventType: souvenir.EventProjectMain, State: souvenir.StateActive,
			Content: hostile,
			Tags:    []string{"module:" + hostile}, ShownMetadata: map[string]any{"module_name": hostile}})
	steps.note(err)
	_, err = w.store.AddMember(w.t.Context(),
		souvenir.NewMember{Project: souvenir.ProjectRef{ID: w.users[admin] + "/p"}, User: "olivia",
			Role: souvenir.MemberWriter})
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

	sam.get("/projects").expect(http.StatusOK, "No projects yet", `action="/projects"`).without("The shop")
	olivia.get("/projects").expect(http.StatusOK, "The shop", w.shop(), "Shared by you", "1 memory", "3 members",
		"No to-do yet")
	rita.get("/projects").expect(http.StatusOK, "The shop", "Shared by olivia", "reader").without(secret)

	made := olivia.submit(olivia.get("/projects"), "/projects", url.Values{"name": {"Garden"}, "project": {"garden"}})
	olivia.leadsTo(made, "/projects/"+w.users[owner]+"/garden?done=project").expect(http.StatusOK, "<h1>Garden</h1>",
		"Project created.")
	olivia.submit(olivia.get("/projects"), "/projects", url.Values{"name": {"Garden"}, "project": {"other"}}).
		stays(http.StatusBadRequest, "Name", "is taken by the project", `value="other"`)
	olivia.submit(olivia.get("/projects"), "/projects",
		url.Values{"name": {"New"}, "project": {"a/b"}}).stays(http.StatusBadRequest, "Id", "a/b")
	olivia.submit(olivia.get("/projects"), "/projects", url.Values{"name": {"  "}}).stays(http.StatusBadRequest,
		`role="alert"`)
}

// asks sends a request as the script of the pages does, for a part of a page.
func (b *browser) asks(method, path string, fields url.Values) *gotPage {
	b.w.t.Helper()
	r, err := http.NewRequestWithContext(b.w.t.Context(), method, b.w.at.URL+path, strings.NewReader(fields.Encode()))
	if err != nil {
		b.w.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r.Header.Set("Origin", b.w.at.URL)
	r.Header.Set("HX-Request", "true")
	return b.send(r)
}

// formTo is what a browser would send of a form that leads to a path and has a value in a hidden field.
func (p *gotPage) formTo(path, name, value string) url.Values {
	p.t.Helper()
	for _, form := range p.html.all("form") {
		if fields := form.fields(); form.attr("action") == path && (name == "" || fields.Get(name) == value) {
			return fields
		}
	}
	p.t.Fatalf("the page has no form to %s with %s=%s:\n%s", path, name, value, p.body)
	return nil
}

// takesBack opens the page that says what was done, and takes it back there.
func (b *browser) takesBack(done *gotPage, says string) *gotPage {
	b.w.t.Helper()
	location := done.header.Get("Location")
	if done.status != http.StatusSeeOther || !strings.Contains(location, "undo=") {
		b.w.t.Fatalf("%d to %q: %.500s", done.status, location, done.body)
	}
	page := b.get(location).expect(http.StatusOK, says, ">Undo<")
	return b.submit(page, "/undo", nil)
}

// What only those who see a project may open, and what only some of them may change.
func TestProjectPagesAreForThePeopleOfTheProject(t *testing.T) {
	w := newWorld(t, server.Options{})
	_, err := w.store.As(souvenir.Access{User: w.users[owner]}).SetTodo(t.Context(),
		souvenir.NewTodo{ProjectID: "shop", Content: shopTodo})
	if err != nil {
		t.Fatal(err)
	}
	shop, plot := w.shop(), "/projects/"+w.users[owner]+"/plot"
	pages := []string{"", "/rules", "/todo", "/todo?section=tasks", "/members", "/modules", "/modules?module=till",
		"/context", "/settings", "/edit?text=do", "/edit?text=tasks", "/edit?text=main"}
	for caller, forbidden := range map[string]string{owner: "", writer: "/settings",
		reader: "/settings /edit?text=do /edit?text=tasks /edit?text=main"} {
		b := w.signedIn(caller)
		for _, path := range pages {
			want := http.StatusOK
			if strings.Contains(forbidden+" ", path+" ") && path != "" {
				want = http.StatusForbidden
			}
			p := b.get(shop + path)
			if p.status != want {
				t.Errorf("%s opens %s: %d, want %d", caller, path, p.status, want)
			}
			if caller != owner { // who is shown what she has elsewhere, too
				p.without(secret)
			}
			checkPage(w, p)
		}
	}
	for _, caller := range []string{stranger, admin} {
		b := w.signedIn(caller)
		for _, path := range pages {
			b.get(shop+path).expect(http.StatusNotFound).without("The shop", "olivia")
		}
	}
	for _, caller := range []string{reader, writer, stranger, admin} {
		for _, path := range pages {
			w.signedIn(caller).get(plot + path).expect(http.StatusNotFound).without(secret)
		}
	}
	w.signedIn(owner).get(plot).expect(http.StatusOK, secret)
	w.browser().get(shop).goesTo("/login?next=")
}

// Anyone who may not change a project is shown no form for it, and refused with one made by hand.
func TestChangesOfProjectsNeedTheRole(t *testing.T) {
	w := newWorld(t, server.Options{})
	store := w.store.As(souvenir.Access{User: w.users[owner]})
	if _, err := store.SetTodo(t.Context(), souvenir.NewTodo{ProjectID: "shop", Content: shopTodo}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.SetRule(t.Context(),
		souvenir.NewRule{ProjectID: "shop", Type: souvenir.RuleDo, Content: "Smile."}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.AddMember(t.Context(),
		souvenir.NewMember{Project: souvenir.ProjectRef{ID: w.users[owner] + "/shop"}, User: "dora",
			Role: souvenir.MemberReader}); err != nil {
		t.Fatal(err)
	}
	shop := w.shop()
	tasks := w.signedIn(owner).get(shop+"/todo").formTo(shop+"/todo/tick", "section", "tasks")
	tasks.Add("done", strings.Split(tasks["box"][0], ".")[0])
	changes := []struct {
		path   string
		fields url.Values
		least  souvenir.MemberRole // that may
	}{
		{"/todo/tick", tasks, souvenir.MemberWriter},
		{"/edit", url.Values{"text": {"dont"}, "content": {"Frown."}, "base": {emptyDigest}}, souvenir.MemberWriter},
		{"/rules/delete", url.Values{"text": {"do"}}, souvenir.MemberWriter},
		{"/members", url.Values{"change": {"add"}, "user": {"sam"}, "role": {"reader"}}, souvenir.MemberOwner},
		{"/members", url.Values{"change": {"role"}, "user": {w.users[disabled]}, "role": {"owner"}}, souvenir.MemberOwner},
		{"/members", url.Values{"change": {"end"}, "user": {w.users[disabled]}}, souvenir.MemberOwner},
		{"/settings", url.Values{"name": {"Mine"}}, souvenir.MemberOwner},
		{"/delete", url.Values{"typed": {"The shop"}}, souvenir.MemberOwner},
	}
	may := map[string][]souvenir.MemberRole{
		stranger: nil, admin: nil, reader: {souvenir.MemberReader}, writer: {souvenir.MemberReader, souvenir.MemberWriter},
		owner: {souvenir.MemberReader, souvenir.MemberWriter, souvenir.MemberOwner},
	}
	for _, caller := range []string{stranger, admin, reader, writer, owner} { // the owner last, who deletes it
		b := w.signedIn(caller)
		csrf := b.get("/profile").hidden().Get("csrf")
		for _, change := range changes {
			if caller == owner && change.path == "/rules/delete" { // the writer has deleted it
				continue
			}
			fields := maps.Clone(change.fields)
			fields.Set("csrf", csrf)
			if caller == owner && change.fields.Get("text") == "dont" {
				fields.Set("base", b.get(shop+"/edit?text=dont").formTo(shop+"/edit", "text", "dont").Get("base"))
				fields.Set("content", "Frown much.")
			}
			want := http.StatusForbidden
			switch {
			case may[caller] == nil:
				want = http.StatusNotFound
			case slices.Contains(may[caller], change.least):
				want = http.StatusSeeOther
			}
			if caller == owner && change.path == "/delete" {
				fields.Set("typed", "Mine") // its name by now
			}
			if p := b.post(shop+change.path, fields); p.status != want {
				t.Errorf("%s: POST %s %s: %d, want %d: %.300s", caller, change.path, fields.Encode(), p.status, want, p.body)
			}
		}
	}
	w.signedIn(owner).get("/projects").expect(http.StatusOK).without(shop)
}

func TestProjectsAreFoundByName(t *testing.T) {
	w := newWorld(t, server.Options{})
	store := w.store.As(souvenir.Access{User: w.users[owner]})
	for i := range 60 {
		if _, err := store.AddProject(t.Context(),
			souvenir.NewProject{ID: fmt.Sprintf("n%02d", i), Name: fmt.Sprintf("Number %02d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	olivia := w.signedIn(owner)
	p := olivia.get("/projects").expect(http.StatusOK, "Page 1 of 3", `href="?part=2"`, `type="search"`)
	checkPage(w, p)
	olivia.get("/projects?part=3").expect(http.StatusOK, "Page 3 of 3", "Number 59")
	olivia.get("/projects?search=number&part=2").expect(http.StatusOK, "60 projects of 62",
		`href="?part=3&amp;search=number"`)
	found := olivia.asks(http.MethodGet, "/projects?search=NUMBER+07", nil).expect(http.StatusOK, "1 project of 62",
		"Number 07").without("<html", "Number 08")
	if !strings.HasPrefix(strings.TrimSpace(found.body), "<p class=\"meta\">") {
		t.Errorf("the part begins with %.100q", found.body)
	}
	olivia.get("/projects?search="+url.QueryEscape(hostile)).expect(http.StatusOK, "No project has",
		"Show all projects").without("<script>alert")
}

// An id may be anything but a slash: every project has an address, and a browser keeps it as it is.
func TestEveryProjectHasAnAddress(t *testing.T) {
	w := newWorld(t, server.Options{})
	olivia, store := w.signedIn(owner), w.store.As(souvenir.Access{User: w.users[owner]})
	for i, id := range []string{".", "..", "~", "~~x", "rules", "a b", "50%", "ü/"[:2], "q?x#y", "%2E", "<b>", "a&b",
		"...", `"`, `\`, "members"} {
		added, err := store.AddProject(t.Context(), souvenir.NewProject{ID: id, Name: fmt.Sprintf("Odd %d", i)})
		if err != nil {
			t.Fatal(err)
		}
		path := server.ProjectPath(added)
		if u, err := url.Parse(w.at.URL + path); err != nil || u.JoinPath().String() != w.at.URL+path {
			t.Errorf("%q has the path %q, which is not clean: %v", id, path, err)
		}
		olivia.get(path).expect(http.StatusOK, fmt.Sprintf("<h1>Odd %d</h1>", i))
		olivia.get(path+"/todo").expect(http.StatusOK, fmt.Sprintf("To-do of Odd %d", i))
		saved := olivia.post(path+"/edit",
			url.Values{"csrf": {olivia.get("/profile").hidden().Get("csrf")}, "text": {"do"}, "content": {"Be odd."},
				"base": {emptyDigest}})
		olivia.get(saved.header.Get("Location")).expect(http.StatusOK, "Be odd.", fmt.Sprintf("Rules of Odd %d", i))
	}
	p := olivia.get("/projects").expect(http.StatusOK)
	checkPage(w, p)
}
