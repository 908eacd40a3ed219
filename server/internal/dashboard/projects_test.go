package dashboard_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
	"github.com/souvenir-ai/souvenir/server/internal/web"

	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// shop returns the path of the project that the world's people share.
func shop(w *servertest.World) string { return "/projects/" + w.Users[servertest.Owner] + "/shop" }

func TestProjectsPage(t *testing.T) {
	w := servertest.New(t, server.Options{})
	olivia, rita, sam := w.SignedIn(servertest.Owner), w.SignedIn(servertest.Reader), w.SignedIn(servertest.Stranger)

	sam.Get("/projects").Expect(http.StatusOK, "No projects yet", `action="/projects"`).Without("The shop")
	olivia.Get("/projects").Expect(http.StatusOK, "The shop", shop(w), "Shared by you", "1 memory", "3 members",
		"No to-do yet")
	rita.Get("/projects").Expect(http.StatusOK, "The shop", "Shared by olivia", "reader").Without(servertest.Secret)

	made := olivia.Submit(olivia.Get("/projects"), "/projects", url.Values{"name": {"Garden"}, "project": {"garden"}})
	olivia.LeadsTo(made, "/projects/"+w.Users[servertest.Owner]+"/garden?done=project").Expect(http.StatusOK,
		"<h1>Garden</h1>",
		"Project created.")
	olivia.Submit(olivia.Get("/projects"), "/projects", url.Values{"name": {"Garden"}, "project": {"other"}}).
		Stays(http.StatusBadRequest, "Name", "is taken by the project", `value="other"`)
	olivia.Submit(olivia.Get("/projects"), "/projects",
		url.Values{"name": {"New"}, "project": {"a/b"}}).Stays(http.StatusBadRequest, "Id", "a/b")
	olivia.Submit(olivia.Get("/projects"), "/projects", url.Values{"name": {"  "}}).Stays(http.StatusBadRequest,
		`role="alert"`)
}

// asks sends a request for a part of a page, as the pages' script does.
func asks(b *servertest.Browser, method, path string, fields url.Values) *servertest.Page {
	b.W.T.Helper()
	r, err := http.NewRequestWithContext(b.W.T.Context(), method, b.W.HTTP.URL+path, strings.NewReader(fields.Encode()))
	if err != nil {
		b.W.T.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r.Header.Set("Origin", b.W.HTTP.URL)
	r.Header.Set("HX-Request", "true")
	return b.Send(r)
}

// takesBack opens the page that reports a change, and undoes it there.
func takesBack(b *servertest.Browser, done *servertest.Page, says string) *servertest.Page {
	b.W.T.Helper()
	location := done.Header.Get("Location")
	if done.Status != http.StatusSeeOther || !strings.Contains(location, "undo=") {
		b.W.T.Fatalf(`%d to %q: %.500s, want status %v and "undo=" in the location`, done.Status, location, done.Body,
			http.StatusSeeOther)
	}
	page := b.Get(location).Expect(http.StatusOK, says, ">Undo<")
	return b.Submit(page, "/undo", nil)
}

// Pages that only members of a project may open, and that only some may change.
func TestProjectPagesAreForThePeopleOfTheProject(t *testing.T) {
	w := servertest.New(t, server.Options{})
	_, err := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]}).SetTodo(t.Context(),
		souvenir.NewTodo{ProjectID: "shop", Content: shopTodo})
	if err != nil {
		t.Fatal(err)
	}
	shop, plot := shop(w), "/projects/"+w.Users[servertest.Owner]+"/plot"
	pages := []string{"", "/rules", "/todo", "/todo?section=tasks", "/members", "/modules", "/modules?module=till",
		"/context", "/settings", "/edit?text=do", "/edit?text=tasks", "/edit?text=main"}
	for caller, forbidden := range map[string]string{servertest.Owner: "", servertest.Writer: "/settings",
		servertest.Reader: "/settings /edit?text=do /edit?text=tasks /edit?text=main"} {
		b := w.SignedIn(caller)
		for i, path := range pages {
			if !longtest.Part(i, 1, 3) {
				continue
			}
			want := http.StatusOK
			if strings.Contains(forbidden+" ", path+" ") && path != "" {
				want = http.StatusForbidden
			}
			p := b.Get(shop + path)
			if p.Status != want {
				t.Errorf("%s opens %s: %d, want %d", caller, path, p.Status, want)
			}
			if caller != servertest.Owner { // who also sees her other projects
				p.Without(servertest.Secret)
			}
			servertest.CheckPage(w, p)
		}
	}
	for _, caller := range []string{servertest.Stranger, servertest.Admin} {
		b := w.SignedIn(caller)
		for _, path := range pages {
			b.Get(shop+path).Expect(http.StatusNotFound).Without("The shop", "olivia")
		}
	}
	for _, caller := range []string{servertest.Reader, servertest.Writer, servertest.Stranger, servertest.Admin} {
		for i, path := range pages {
			if !longtest.Part(i, 1, 3) {
				continue
			}
			w.SignedIn(caller).Get(plot + path).Expect(http.StatusNotFound).Without(servertest.Secret)
		}
	}
	w.SignedIn(servertest.Owner).Get(plot).Expect(http.StatusOK, servertest.Secret)
	w.Browser().Get(shop).GoesTo("/login?next=")
}

// Users who may not change a project get no form for it, and cannot change it with a handmade one.
func TestChangesOfProjectsNeedTheRole(t *testing.T) {
	w := servertest.New(t, server.Options{})
	store := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	if _, err := store.SetTodo(t.Context(), souvenir.NewTodo{ProjectID: "shop", Content: shopTodo}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.SetRule(t.Context(),
		souvenir.NewRule{ProjectID: "shop", Type: souvenir.RuleDo, Content: "Smile."}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Store.AddMember(t.Context(),
		souvenir.NewMember{Project: souvenir.ProjectRef{ID: w.Users[servertest.Owner] + "/shop"}, User: "dora",
			Role: souvenir.MemberReader}); err != nil {
		t.Fatal(err)
	}
	shop := shop(w)
	tasks := w.SignedIn(servertest.Owner).Get(shop+"/todo").FormTo(shop+"/todo/tick", "section", "tasks")
	tasks.Add("done", strings.Split(tasks["box"][0], ".")[0])
	changes := []struct {
		path   string
		fields url.Values
		least  souvenir.MemberRole // the lowest role that may
	}{
		{"/todo/tick", tasks, souvenir.MemberWriter},
		{"/edit", url.Values{"text": {"dont"}, "content": {"Frown."}, "base": {emptyDigest}}, souvenir.MemberWriter},
		{"/rules/delete", url.Values{"text": {"do"}}, souvenir.MemberWriter},
		{"/members", url.Values{"change": {"add"}, "user": {"sam"}, "role": {"reader"}}, souvenir.MemberOwner},
		{"/members", url.Values{"change": {"role"}, "user": {w.Users[servertest.Disabled]}, "role": {"owner"}},
			souvenir.MemberOwner},
		{"/members", url.Values{"change": {"end"}, "user": {w.Users[servertest.Disabled]}}, souvenir.MemberOwner},
		{"/settings", url.Values{"name": {"Mine"}}, souvenir.MemberOwner},
		{"/delete", url.Values{"typed": {"The shop"}}, souvenir.MemberOwner},
	}
	may := map[string][]souvenir.MemberRole{
		servertest.Stranger: nil, servertest.Admin: nil, servertest.Reader: {souvenir.MemberReader},
		servertest.Writer: {souvenir.MemberReader, souvenir.MemberWriter},
		servertest.Owner:  {souvenir.MemberReader, souvenir.MemberWriter, souvenir.MemberOwner},
	}
	for _, caller := range []string{servertest.Stranger, servertest.Admin, servertest.Reader, servertest.Writer,
		servertest.Owner} { // the owner last, who deletes it
		b := w.SignedIn(caller)
		csrf := b.Get("/profile").Hidden().Get("csrf")
		for _, change := range changes {
			if caller == servertest.Owner && change.path == "/rules/delete" { // the writer has deleted it
				continue
			}
			fields := maps.Clone(change.fields)
			fields.Set("csrf", csrf)
			if caller == servertest.Owner && change.fields.Get("text") == "dont" {
				fields.Set("base", b.Get(shop+"/edit?text=dont").FormTo(shop+"/edit", "text", "dont").Get("base"))
				fields.Set("content", "Frown much.")
			}
			want := http.StatusForbidden
			switch {
			case may[caller] == nil:
				want = http.StatusNotFound
			case slices.Contains(may[caller], change.least):
				want = http.StatusSeeOther
			}
			if caller == servertest.Owner && change.path == "/delete" {
				fields.Set("typed", "Mine") // its current name
			}
			if p := b.Post(shop+change.path, fields); p.Status != want {
				t.Errorf("%s: POST %s %s: %d, want %d: %.300s", caller, change.path, fields.Encode(), p.Status, want, p.Body)
			}
		}
	}
	w.SignedIn(servertest.Owner).Get("/projects").Expect(http.StatusOK).Without(shop)
}

func TestProjectsAreFoundByName(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	store := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	for i := range 60 {
		if _, err := store.AddProject(t.Context(),
			souvenir.NewProject{ID: fmt.Sprintf("n%02d", i), Name: fmt.Sprintf("Number %02d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	olivia := w.SignedIn(servertest.Owner)
	p := olivia.Get("/projects").Expect(http.StatusOK, "Page 1 of 3", `href="?part=2"`, `type="search"`)
	servertest.CheckPage(w, p)
	olivia.Get("/projects?part=3").Expect(http.StatusOK, "Page 3 of 3", "Number 59")
	olivia.Get("/projects?search=number&part=2").Expect(http.StatusOK, "60 projects of 62",
		`href="?part=3&amp;search=number"`)
	found := asks(olivia, http.MethodGet, "/projects?search=NUMBER+07", nil).Expect(http.StatusOK, "1 project of 62",
		"Number 07").Without("<html", "Number 08")
	if !strings.HasPrefix(strings.TrimSpace(found.Body), "<p class=\"meta\">") {
		t.Errorf(`the part begins with %.100q, want <p class="meta"> at the beginning of the body`, found.Body)
	}
	olivia.Get("/projects?search="+url.QueryEscape(servertest.Hostile)).Expect(http.StatusOK, "No project has",
		"Show all projects").Without("<script>alert")
}

// An id may contain anything but a slash: every project has an address that browsers preserve.
func TestEveryProjectHasAnAddress(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	olivia, store := w.SignedIn(servertest.Owner), w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	for i, id := range []string{".", "..", "~", "~~x", "rules", "a b", "50%", "ü/"[:2], "q?x#y", "%2E", "<b>", "a&b",
		"...", `"`, `\`, "members"} {
		added, err := store.AddProject(t.Context(), souvenir.NewProject{ID: id, Name: fmt.Sprintf("Odd %d", i)})
		if err != nil {
			t.Fatal(err)
		}
		path := web.ProjectPath(added)
		if u, err := url.Parse(w.HTTP.URL + path); err != nil || u.JoinPath().String() != w.HTTP.URL+path {
			t.Errorf("%q has the path %q, which is not clean: %v, want no error and join path %v", id, path, err,
				w.HTTP.URL+path)
		}
		olivia.Get(path).Expect(http.StatusOK, fmt.Sprintf("<h1>Odd %d</h1>", i))
		olivia.Get(path+"/todo").Expect(http.StatusOK, fmt.Sprintf("To-do of Odd %d", i))
		saved := olivia.Post(path+"/edit",
			url.Values{"csrf": {olivia.Get("/profile").Hidden().Get("csrf")}, "text": {"do"}, "content": {"Be odd."},
				"base": {emptyDigest}})
		olivia.Get(saved.Header.Get("Location")).Expect(http.StatusOK, "Be odd.", fmt.Sprintf("Rules of Odd %d", i))
	}
	p := olivia.Get("/projects").Expect(http.StatusOK)
	servertest.CheckPage(w, p)
}
