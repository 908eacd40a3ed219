package server_test

import (
	"context"

	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// An application's access is what the person chose at consent, in every endpoint and every tool. It equals the access
// of an MCP token with the same limits, whose rows in the table of scenarios it must match.
func TestConsentedLimitsHoldEverywhere(t *testing.T) {
	all := []string{"memory:read", "memory:write", "files:read", "files:write", "account"}
	for like, chosen := range map[string]struct {
		by   string
		form url.Values
	}{
		servertest.Owner:    {servertest.Owner, url.Values{"scope": all}},
		servertest.Reader:   {servertest.Reader, url.Values{"scope": all}},
		servertest.Stranger: {servertest.Stranger, url.Values{"scope": all}},
		servertest.Limited:  {servertest.Owner, url.Values{"scope": all, "projects": {"some"}, "project": {"shop"}}},
		servertest.ReadOnly: {servertest.Owner, url.Values{"access": {"read"}, "scope": all}},
		servertest.NoFiles:  {servertest.Owner, url.Values{"scope": {"memory:write"}}},
		servertest.NoMemory: {servertest.Owner, url.Values{"scope": {"files:write"}}},
	} {
		t.Run(like, func(t *testing.T) {
			var shared *servertest.World
			for i, e := range endpoints() {
				status, listed := e.rows[like]
				if !listed || !longtest.Part(i+len(like), 1, 18) { // a different selection each time
					continue
				}
				if shared == nil {
					shared = servertest.New(t, server.Options{})
					app := shared.Register("none")
					shared.Hold(like, shared.Redeem(app,
						shared.SignedIn(chosen.by).Allow(app.AuthorizeURL("scope", strings.Join(all, " ")), chosen.form)).AccessToken)
				}
				t.Run(e.name, func(t *testing.T) {
					w := shared.In(t)
					if e.path == "/mcp" && like == servertest.NoMemory && strings.Contains(e.body, "retrieve") {
						status = http.StatusForbidden // an application gets a JSON-RPC error, so that it can ask for more
					}
					ids := strings.NewReplacer("{memory}", w.Memory, "{private}", w.Private, "{file}", w.File, "{hidden}", w.Hidden,
						"{token}", w.TokenIDs[servertest.Limited])
					a := knock(w, like, e.method, ids.Replace(e.path), ids.Replace(e.body), e.form)
					if a.Expect(status).Without(e.without...); e.changes(a) {
						shared = nil
					}
				})
			}
		})
	}
}

// An application that may read one project calls every tool: it sees nothing else and changes nothing.
func TestToolsStayWithinConsentedLimits(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	app := w.Register("none")
	w.Hold(servertest.Limited, w.Redeem(app,
		w.SignedIn(servertest.Owner).Allow(app.AuthorizeURL(),
			url.Values{"access": {"read"}, "projects": {"some"}, "project": {"shop"}})).AccessToken)
	before := everything(w)
	tried := map[string]bool{}
	for _, c := range []struct {
		tool, arguments string
		status          int
	}{
		{"create_collection", `{"collection_name": "new"}`, 403},
		{"list_collections", `{}`, 200},
		{"memory", `{"action": "get_context", "query": "` + servertest.Secret + `"}`, 200},
		{"memory", `{"action": "search", "query": "` + servertest.Secret + `"}`, 200},
		{"memory", `{"action": "search", "query": "` + servertest.Secret + `", "filter": {"project_id": "plot"}}`, 200},
		{"memory", `{"action": "retrieve", "id": "` + w.Private + `"}`, 404},
		{"memory", `{"action": "retrieve", "id": "` + w.Memory + `"}`, 200},
		{"memory", `{"action": "store", "content": "x", "project_id": "shop"}`, 403},
		{"memory", `{"action": "update", "id": "` + w.Memory + `", "content": "x"}`, 403},
		{"memory", `{"action": "delete", "id": "` + w.Memory + `"}`, 403},
		{"rules", `{"action": "store", "rule_type": "do", "content": "x", "project_id": "shop"}`, 403},
		{"todo", `{"action": "complete", "task_id": "T1", "project_id": "shop"}`, 403},
		{"get_project_main_memory", `{"project_id": "plot"}`, 404},
		{"get_module_state", `{"module_name": "` + servertest.Secret + `"}`, 200},
		{"upload_document", `{"filename": "a.txt", "mime_type": "text/plain", "content": "x", "memory_id": "` + w.Memory +
			`"}`, 403},
	} {
		tried[c.tool] = true
		a, _ := w.Call(servertest.Limited, c.tool, c.arguments)
		a.Expect(c.status)
		a.Body = strings.ReplaceAll(a.Body, `\"query\":\"`+servertest.Secret, "")
		a.Without("The word is", servertest.Secret+".txt")
	}
	var listed struct{ Tools []struct{ Name string } }
	w.Do(servertest.Guest, "GET", "/tools", "").Decode(&listed)
	for _, tool := range listed.Tools {
		if !tried[tool.Name] {
			t.Errorf("the tool %s was not tried", tool.Name)
		}
	}
	if after := everything(w); after != before {
		t.Errorf("there were %d revisions and files, and are %d, want no change", before, after)
	}
}

// everything counts the revisions of the owner's memories, and the files.
func everything(w *servertest.World) int {
	w.T.Helper()
	view := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	n := 0
	for m, err := range view.Memories(context.Background(), souvenir.MemoryList{}) {
		if err != nil {
			w.T.Fatal(err)
		}
		n += m.Revision
	}
	for _, err := range view.Files(context.Background(), souvenir.FileList{}) {
		if err != nil {
			w.T.Fatal(err)
		}
		n++
	}
	return n
}

// The page shows which application asks, where the answer goes, and for what. The application's own claims are shown as
// text.
func TestTheConsentPage(t *testing.T) {
	w := servertest.New(t, server.Options{})
	long := strings.Repeat("trust me ", 20)
	for name, c := range map[string]struct {
		client    string
		redirect  string
		has, none []string
	}{
		"a web application": {"Notes", servertest.Callback,
			[]string{"<bdi>Notes</bdi>", `<strong class="host">app.example</strong>`, "registered itself"}, []string{"Careful"}},
		"one on this device": {"Notes", "http://127.0.0.1:4000/cb",
			[]string{"this device", "a program on this computer, at 127.0.0.1:4000", "Careful"}, nil},
		"one of a scheme": {"Notes", "cursor://anysphere.cursor-mcp/oauth/callback",
			[]string{"opens links with cursor:", "Careful"}, nil},
		"a name with a script": {`<script>alert(1)</script>"'`, servertest.Callback,
			[]string{"&lt;script&gt;alert(1)&lt;/script&gt;&#34;&#39;"}, []string{"<script"}},
		"a name like an image": {`"><img src=x onerror=alert(1)>`, servertest.Callback, []string{"&#34;&gt;&lt;img src=x"},
			[]string{"<img"}},
		"a name like a letter":  {"Сlaude", servertest.Callback, []string{"app.example", "<bdi>Сlaude</bdi>"}, nil},
		"a name right to left":  {"אפליקציה", servertest.Callback, []string{"<bdi>אפליקציה</bdi>", "app.example"}, nil},
		"a name that is long":   {long, servertest.Callback, []string{"trust me trust …", "app.example"}, []string{long}},
		"no name":               {"", servertest.Callback, []string{"An application without a name", "app.example"}, nil},
		"a host of another one": {"Notes", "https://xn--pple-43d.example/cb", []string{"xn--pple-43d.example"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			app := w.RegisterAs(c.client, "none", c.redirect)
			a := w.SignedIn(servertest.Owner).Get(app.AuthorizeURL("state", `"><script>alert(2)</script>`)).Stays(http.StatusOK,
				c.has...).Without(append(c.none, "<script")...)
			a.Expect(http.StatusOK, app.ID, "olivia", "Read your memories", "Upload, change and delete files", "The shop",
				`name="decision" value="allow"`, `name="decision" value="deny"`)
			if forms := strings.Count(a.Body, "<form"); forms != 1 || len(a.Body) > 60_000 {
				t.Errorf("got %d forms in %d bytes, want 1 in at most 60000", forms, len(a.Body))
			}
		})
	}
	for _, c := range []struct {
		registration souvenir.DocumentClient
		has, without string
	}{
		{souvenir.DocumentClient{URL: "https://app.example/client.json",
			Registration: souvenir.ClientRegistration{ClientName: "Doc", RedirectURIs: []string{servertest.Callback}}},
			"described by app.example", "Careful"},
		{souvenir.DocumentClient{URL: "https://other.example/client.json",
			Registration: souvenir.ClientRegistration{ClientName: "Doc", RedirectURIs: []string{servertest.Callback}}},
			"but the answer goes to app.example", ""},
		{souvenir.DocumentClient{URL: "https://tool.example/client.json",
			Registration: souvenir.ClientRegistration{ClientName: "Doc", RedirectURIs: []string{"http://localhost/cb"}}},
			"Any program on this device", ""},
	} {
		c.registration.ExpiresAt = time.Now().Add(time.Hour)
		client, err := w.Store.Accounts().PutDocumentClient(context.Background(), c.registration)
		if err != nil {
			t.Fatal(err)
		}
		app := servertest.App{ID: client.ID, Redirect: client.Metadata.RedirectURIs}
		a := w.SignedIn(servertest.Owner).Get(app.AuthorizeURL()).Stays(http.StatusOK, client.ID, c.has)
		if c.without != "" {
			a.Without(c.without)
		}
	}
}

// with returns a form with one field changed.
func with(form url.Values, name string, values ...string) url.Values {
	changed := maps.Clone(form)
	changed[name] = values
	return changed
}

func TestThePagesOfAuthorizationRefuseFrames(t *testing.T) {
	w := servertest.New(t, server.Options{})
	app := w.Register("none")
	for _, a := range []*servertest.Page{w.SignedIn(servertest.Owner).Get(app.AuthorizeURL()),
		w.Browser().Get("/oauth/authorize"),
		w.Browser().Get(app.AuthorizeURL()), w.SignedIn(servertest.Owner).Allow(app.AuthorizeURL(), nil)} {
		csp := a.Header.Get("Content-Security-Policy")
		if !strings.Contains(csp, "frame-ancestors 'none'") || a.Header.Get("X-Frame-Options") != "DENY" ||
			a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf(`got %v, want a Content-Security-Policy with "frame-ancestors 'none'", X-Frame-Options "DENY", `+
				`Cache-Control "no-store" and no Access-Control-Allow-Origin`, a.Header)
		}
		if strings.Contains(csp, "form-action") || strings.Contains(csp, "unsafe") {
			t.Errorf(`the policy is %s, want no "form-action" and no "unsafe" in it`, csp)
		}
		// A client that opened the page in a window may communicate with it once it is back at the client's address.
		if a.Header.Get("Cross-Origin-Opener-Policy") != "" {
			t.Errorf("%v: got %v, want no Cross-Origin-Opener-Policy", a.Header, a.Header.Get("Cross-Origin-Opener-Policy"))
		}
		// With no-referrer a browser would send forms of a page without TLS with "Origin: null".
		if a.Header.Get("Referrer-Policy") != "same-origin" {
			t.Errorf(`%v: got %v, want "same-origin"`, a.Header, a.Header.Get("Referrer-Policy"))
		}
	}
}

// If a script posts only the decision and the hidden fields, it grants what was ticked.
func TestScriptsMayDecideWithoutChoosing(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	app := w.Register("none")
	b := w.SignedIn(servertest.Owner)
	form := b.Get(app.AuthorizeURL("scope", "memory:write files:read")).Hidden()
	form.Set("decision", "allow")
	if tokens := w.Redeem(app, b.Post("/oauth/authorize", form)); tokens.Scope != "memory:read memory:write files:read" {
		t.Errorf("%+v; want scope \"memory:read memory:write files:read\"", tokens)
	}
	form = b.Get(app.AuthorizeURL()).Hidden()
	form.Set("decision", "deny")
	if answer := b.Post("/oauth/authorize", form).GoesTo(servertest.Callback); answer.Get("error") != "access_denied" ||
		answer.Get("state") != "state of the client" || answer.Get("iss") != servertest.PublicAt || answer.Has("code") {
		t.Errorf(`got %v, want the state "line\nbreak"`, answer)
	}
	// The short path works as well.
	form = b.Get("/authorize?" + strings.TrimPrefix(app.AuthorizeURL(), "/oauth/authorize?")).Hidden()
	form.Set("decision", "allow")
	w.Redeem(app, b.Post("/authorize", form))
}

// An invalid form is shown again with its choices, and grants nothing.
func TestInvalidConsentForms(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	app := w.Register("none")
	b := w.SignedIn(servertest.Owner)
	many := []string{}
	for i := range 101 {
		many = append(many, fmt.Sprint("p", i))
	}
	for name, c := range map[string]struct {
		form url.Values
		says string
	}{
		"no right":           {url.Values{"scope": {}}, "No access is selected"},
		"rights of no name":  {url.Values{"scope": {"everything"}}, "No access is selected"},
		"more than asked":    {url.Values{"scope": {"admin"}}, "No access is selected"},
		"no project":         {url.Values{"projects": {"some"}}, "No project is selected"},
		"an unknown project": {url.Values{"projects": {"some"}, "project": {"nothing"}}, "nothing"},
		"another's project":  {url.Values{"projects": {"some"}, "project": {w.Users[servertest.Stranger] + "/x"}}, "project"},
		"too many projects":  {url.Values{"projects": {"some"}, "others": {strings.Join(many, "\r\n")}}, "at most 100"},
		"other projects":     {url.Values{"projects": {"few"}, "project": {"shop"}}, "The form was not valid"},
		"all and some":       {url.Values{"projects": {"all", "some"}, "project": {"shop"}}, "The form was not valid"},
		"another access":     {url.Values{"access": {"none"}}, "The form was not valid"},
		"no decision":        {url.Values{"decision": {}}, "one of the two buttons"},
		"another decision":   {url.Values{"decision": {"maybe"}}, "one of the two buttons"},
		"a script":           {url.Values{"projects": {"some"}, "project": {"<script>alert(1)</script>"}}, "&lt;script&gt;"},
	} {
		t.Run(name, func(t *testing.T) {
			again := b.Allow(app.AuthorizeURL(), c.form).Stays(http.StatusBadRequest, c.says, `role="alert"`).Without("<script")
			form := again.HTML.Fields()
			form["scope"], form["decision"] = []string{"memory:read"}, []string{"allow"}
			form.Set("projects", "all")
			form.Set("access", "write")
			w.Redeem(app, b.Post("/oauth/authorize", form))
		})
	}
	// A script that omits fields gets only what it names.
	for name, left := range map[string]string{"project": "shop", "access": "read"} {
		page := b.Get(app.AuthorizeURL()).Stays(http.StatusOK).Hidden()
		form := url.Values{"csrf": page["csrf"], "nonce": page["nonce"], "asked": page["asked"], "decision": {"allow"},
			name: {left}}
		w.Hold(servertest.Limited, w.Redeem(app, b.Post("/oauth/authorize", form)).AccessToken)
		w.Do(servertest.Limited, "GET", "/api/projects", "").Expect(http.StatusOK)
		if name == "project" {
			w.Do(servertest.Limited, "GET", "/api/user-preferences", "").Expect(http.StatusForbidden, "limited")
		} else {
			w.Do(servertest.Limited, "PUT", "/api/user-preferences", "{}").Expect(http.StatusForbidden, "memory:write")
		}
	}
	ticked := b.Allow(app.AuthorizeURL(), url.Values{"scope": {}, "projects": {"some"}, "project": {"shop"}}).HTML.Fields()
	if ticked.Get("projects") != "some" || !slices.Equal(ticked["project"], []string{"shop"}) || ticked.Has("scope") {
		t.Errorf("the choice is lost: %v, want it as it was", ticked)
	}
}

// Each page is valid for one answer, in its browser and for its request. Otherwise it is shown again.
func TestAConsentIsGivenOnce(t *testing.T) {
	w := servertest.New(t, server.Options{})
	app, other := w.Register("none"), w.RegisterAs("Other", "none")
	b := w.SignedIn(servertest.Owner)
	page := b.Get(app.AuthorizeURL()).Hidden()
	page.Set("decision", "allow")
	w.Redeem(app, b.Post("/oauth/authorize", page))
	fresh := func() url.Values {
		form := b.Get(app.AuthorizeURL()).Hidden()
		form.Set("decision", "allow")
		return form
	}
	stranger := w.SignedIn(servertest.Stranger)
	strangers := stranger.Get(app.AuthorizeURL()).Hidden()
	second := w.SignedIn(servertest.Owner) // the same person in another browser
	_, widerQuery, _ := strings.Cut(app.AuthorizeURL("scope", "memory:read"), "?")
	_, otherQuery, _ := strings.Cut(other.AuthorizeURL(), "?")
	for name, c := range map[string]struct {
		in   *servertest.Browser
		form url.Values
	}{
		"sent again":             {b, page},
		"without a nonce":        {b, with(fresh(), "nonce")},
		"with a made-up nonce":   {b, with(fresh(), "nonce", "AAAAAAAAAAAAAAAAAAAAAAAAAA")},
		"for another request":    {b, with(fresh(), "asked", widerQuery)},
		"for another client":     {b, with(fresh(), "asked", otherQuery)},
		"with another's nonce":   {b, with(fresh(), "nonce", strangers.Get("nonce"))},
		"in another's browser":   {stranger, with(fresh(), "csrf", strangers.Get("csrf"))},
		"in the other browser":   {second, with(fresh(), "csrf", second.Get(app.AuthorizeURL()).Hidden().Get("csrf"))},
		"denied with an old one": {b, with(page, "decision", "deny")},
	} {
		t.Run(name, func(t *testing.T) {
			again := c.in.Post("/oauth/authorize", c.form).Stays(http.StatusBadRequest, "out of date")
			form := again.Hidden()
			if form.Get("nonce") == c.form.Get("nonce") || form.Get("nonce") == "" {
				t.Errorf("the nonce is %q, want a new one", form.Get("nonce"))
			}
			form.Set("decision", "deny")
			if answer := c.in.Post("/oauth/authorize",
				form).GoesTo(servertest.Callback); answer.Get("error") != "access_denied" {
				t.Errorf(`got %v, want "access_denied"`, answer)
			}
		})
	}
}

// Another server on the store may take the answer, such as after a restart, but also only once.
func TestAConsentMayEndAtAnotherServer(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	app := w.Register("none")
	b := w.SignedIn(servertest.Owner)
	form := b.Get(app.AuthorizeURL("state", "line\nbreak")).Hidden()
	form.Set("decision", "allow")
	w.HTTP.Config.Handler = server.New(w.Store, &server.Options{PublicURL: servertest.PublicAt})
	if answer := b.Post("/oauth/authorize", form).GoesTo(servertest.Callback); answer.Get("state") != "line\nbreak" ||
		answer.Get("code") == "" {
		t.Errorf(`got %v, want a code and the state "line\nbreak"`, answer)
	}
	b.Post("/oauth/authorize", form).Stays(http.StatusBadRequest, "out of date")
}

func TestOnlyThisPageSendsTheForm(t *testing.T) {
	w := servertest.New(t, server.Options{})
	app := w.Register("none")
	b := w.SignedIn(servertest.Owner)
	fresh := func() url.Values {
		form := b.Get(app.AuthorizeURL()).Hidden()
		form.Set("decision", "allow")
		return form
	}
	b.Post("/oauth/authorize", with(fresh(), "csrf")).Stays(http.StatusForbidden)
	b.Post("/oauth/authorize", with(fresh(), "csrf", "wrong")).Stays(http.StatusForbidden)
	b.Post("/oauth/authorize", with(fresh(), "csrf",
		w.SignedIn(servertest.Owner).Get(app.AuthorizeURL()).Hidden().Get("csrf"))).Stays(http.StatusForbidden)
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
		r := w.Request(servertest.Guest, "POST", "/oauth/authorize", strings.NewReader(fresh().Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set(name, value)
		b.Send(r).Stays(http.StatusForbidden, "another site")
	}
	// Fields in the address are ignored.
	form := fresh()
	b.Post("/oauth/authorize?"+form.Encode(), url.Values{}).Stays(http.StatusForbidden)
	// So are requests without a question, or with an impossible one.
	b.Post("/oauth/authorize", with(fresh(), "asked")).Stays(http.StatusBadRequest, "Invalid client")
	b.Post("/oauth/authorize", with(fresh(), "asked", "client_id="+app.ID+
		"&redirect_uri=https://evil.example")).Stays(http.StatusBadRequest, "Invalid redirect_uri")
	b.Post("/oauth/authorize", with(fresh(), "asked", strings.Repeat("a", 70_000))).Stays(http.StatusBadRequest)
	b.Post("/oauth/authorize", fresh()).GoesTo(servertest.Callback)
}

// A person who is signed out or disabled while the page is open cannot consent.
func TestSignInsThatEndDuringConsent(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	app := w.Register("none")
	b := w.SignedIn(servertest.Owner)
	form := b.Get(app.AuthorizeURL()).Hidden()
	form.Set("decision", "allow")
	if err := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]}).Accounts().RevokeSignIns(context.Background(),
		"", nil); err != nil {
		t.Fatal(err)
	}
	next := b.Post("/oauth/authorize", form).GoesTo("/login?next=").Get("next")
	w.SignedIn(servertest.Owner).Get(next).Stays(http.StatusOK, "App")

	b = w.SignedIn(servertest.Stranger)
	form = b.Get(app.AuthorizeURL()).Hidden()
	form.Set("decision", "allow")
	yes := true
	if _, err := w.Store.Accounts().UpdateUser(context.Background(), "sam",
		souvenir.UserUpdate{Disabled: &yes}); err != nil {
		t.Fatal(err)
	}
	b.Post("/oauth/authorize", form).GoesTo("/login?next=")

	// The person sees that the client was deactivated meanwhile. It may no longer be the same client.
	mine := w.OwnApp(servertest.Owner, "mine")
	b = w.SignedIn(servertest.Owner)
	form = b.Get(mine.AuthorizeURL()).Hidden()
	form.Set("decision", "allow")
	if err := w.Store.Accounts().DeactivateClient(context.Background(), mine.ID); err != nil {
		t.Fatal(err)
	}
	b.Post("/oauth/authorize", form).Stays(http.StatusBadRequest, "Invalid client")
}

// The last choices are preselected, but the person is still asked.
func TestTheSameApplicationAgain(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	app := w.Register("none")
	b := w.SignedIn(servertest.Owner)
	b.Get(app.AuthorizeURL()).Stays(http.StatusOK).Without("allowed it before")
	w.Redeem(app, b.Allow(app.AuthorizeURL(),
		url.Values{"scope": {"memory:read", "files:read"}, "projects": {"some"}, "project": {"shop"}}))
	form := b.Get(app.AuthorizeURL()).Stays(http.StatusOK, "allowed it before").HTML.Fields()
	if !slices.Equal(form["scope"], []string{"memory:read", "files:read"}) || form.Get("projects") != "some" ||
		!slices.Equal(form["project"], []string{"shop"}) {
		t.Errorf("got %v, want what was allowed before", form)
	}
	// New scopes are ticked, as for the first time.
	more := w.RegisterAs("More", "none")
	w.Redeem(more, b.Allow(more.AuthorizeURL("scope", "memory:write files:read"), url.Values{"scope": {"memory:write"}}))
	if form := b.Get(more.AuthorizeURL("scope",
		"memory:read memory:write files:read files:write")).HTML.Fields(); !slices.Equal(form["scope"],
		[]string{"memory:read", "memory:write", "files:write"}) {
		t.Errorf("got %v, want %v", form["scope"], []string{"memory:read", "memory:write", "files:write"})
	}
	// A script that changes nothing gets only what the person granted before.
	hidden := b.Get(app.AuthorizeURL()).Hidden()
	hidden.Set("decision", "allow")
	w.Hold(servertest.Limited, w.Redeem(app, b.Post("/oauth/authorize", hidden)).AccessToken)
	w.Call(servertest.Limited, "memory", `{"action": "retrieve", "id": "`+w.Memory+`"}`)
	a, _ := w.Call(servertest.Limited, "memory", `{"action": "retrieve", "id": "`+w.Private+`"}`)
	a.Expect(http.StatusNotFound)
	// Other users are asked as for the first time.
	w.SignedIn(servertest.Writer).Get(app.AuthorizeURL()).Stays(http.StatusOK).Without("allowed it before")
}

func TestManyProjectsOnTheConsentPage(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	view := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	for i := range 300 {
		if _, err := view.AddProject(context.Background(),
			souvenir.NewProject{ID: fmt.Sprintf("project-%03d", i),
				Name: fmt.Sprintf("A project of many %03d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	app := w.Register("none")
	b := w.SignedIn(servertest.Owner)
	shown := b.Get(app.AuthorizeURL()).Stays(http.StatusOK, `name="others"`)
	if len(shown.Body) > 60_000 {
		t.Errorf("%d bytes, want at most 60_000", len(shown.Body))
	}
	tokens := w.Redeem(app, b.Allow(app.AuthorizeURL(),
		url.Values{"projects": {"some"}, "project": {"project-001"}, "others": {" project-299\r\n\r\nshop \r\n"}}))
	w.Hold(servertest.Limited, tokens.AccessToken)
	var listed struct{ Projects []souvenir.Project }
	w.Do(servertest.Limited, "GET", "/api/projects", "").Expect(http.StatusOK).Decode(&listed)
	if len(listed.Projects) != 3 {
		t.Errorf("%+v; want a length of 3", listed.Projects)
	}
	// A choice that does not fit the page is still kept.
	if again := b.Get(app.AuthorizeURL()).Stays(http.StatusOK,
		"project-299").HTML.Fields(); !slices.Equal(again["project"],
		[]string{"project-001"}) {
		t.Errorf("got %v, want %v", again, []string{"project-001"})
	}
}
