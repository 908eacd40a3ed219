package server_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// What is let in through consent reaches as far as the person chose, in every endpoint and every tool: as far as an MCP
// token with the same limits, whose rows in the table of scenarios it has to keep.
func TestWhatAPersonChoosesHoldsEverywhere(t *testing.T) {
	all := []string{"memory:read", "memory:write", "files:read", "files:write", "account"}
	for like, chosen := range map[string]struct {
		by   string
		form url.Values
	}{
		owner:    {owner, url.Values{"scope": all}},
		reader:   {reader, url.Values{"scope": all}},
		stranger: {stranger, url.Values{"scope": all}},
		limited:  {owner, url.Values{"scope": all, "projects": {"some"}, "project": {"shop"}}},
		readOnly: {owner, url.Values{"access": {"read"}, "scope": all}},
		noFiles:  {owner, url.Values{"scope": {"memory:write"}}},
		noMemory: {owner, url.Values{"scope": {"files:write"}}},
	} {
		t.Run(like, func(t *testing.T) {
			var shared *world
			for i, e := range endpoints() {
				status, listed := e.rows[like]
				if !listed || !longtest.Part(i+len(like), 1, 3) { // always others, as the lengths differ
					continue
				}
				if shared == nil {
					shared = newWorld(t, server.Options{})
					app := shared.register("none")
					shared.hold(like, shared.redeem(app,
						shared.signedIn(chosen.by).letIn(app.asks("scope", strings.Join(all, " ")), chosen.form)).AccessToken)
				}
				t.Run(e.name, func(t *testing.T) {
					w := shared.in(t)
					if e.path == "/mcp" && like == noMemory && strings.Contains(e.body, "retrieve") {
						status = http.StatusForbidden // an application gets a JSON-RPC answer to ask for more
					}
					ids := strings.NewReplacer("{memory}", w.memory, "{private}", w.private, "{file}", w.file, "{hidden}", w.hidden,
						"{token}", w.tokenIDs[limited])
					a := w.knock(like, e.method, ids.Replace(e.path), ids.Replace(e.body), e.form)
					if a.expect(status).without(e.without...); e.changes(a) {
						shared = nil
					}
				})
			}
		})
	}
}

// hold gives a caller of this world a token.
func (w *world) hold(caller, token string) {
	w.tokens = maps.Clone(w.tokens)
	w.tokens[caller] = token
}

// Every tool, called through an application that was let in to read one project: nothing else is seen, and nothing
// changes.
func TestEveryToolKeepsToWhatAPersonChose(t *testing.T) {
	w := newWorld(t, server.Options{})
	app := w.register("none")
	w.hold(limited, w.redeem(app,
		w.signedIn(owner).letIn(app.asks(),
			url.Values{"access": {"read"}, "projects": {"some"}, "project": {"shop"}})).AccessToken)
	before := everything(w)
	tried := map[string]bool{}
	for _, c := range []struct {
		tool, arguments string
		status          int
	}{
		{"create_collection", `{"collection_name": "new"}`, 403},
		{"list_collections", `{}`, 200},
		{"memory", `{"action": "get_context", "query": "` + secret + `"}`, 200},
		{"memory", `{"action": "search", "query": "` + secret + `"}`, 200},
		{"memory", `{"action": "search", "query": "` + secret + `", "filter": {"project_id": "plot"}}`, 200},
		{"memory", `{"action": "retrieve", "id": "` + w.private + `"}`, 404},
		{"memory", `{"action": "retrieve", "id": "` + w.memory + `"}`, 200},
		{"memory", `{"action": "store", "content": "x", "project_id": "shop"}`, 403},
		{"memory", `{"action": "update", "id": "` + w.memory + `", "content": "x"}`, 403},
		{"memory", `{"action": "delete", "id": "` + w.memory + `"}`, 403},
		{"rules", `{"action": "store", "rule_type": "do", "content": "x", "project_id": "shop"}`, 403},
		{"todo", `{"action": "complete", "task_id": "T1", "project_id": "shop"}`, 403},
		{"get_project_main_memory", `{"project_id": "plot"}`, 404},
		{"get_module_state", `{"module_name": "` + secret + `"}`, 200},
		{"upload_document", `{"filename": "a.txt", "mime_type": "text/plain", "content": "x", "memory_id": "` + w.memory +
			`"}`, 403},
	} {
		tried[c.tool] = true
		a, _ := w.call(limited, c.tool, c.arguments)
		a.expect(c.status)
		a.body = strings.ReplaceAll(a.body, `\"query\":\"`+secret, "")
		a.without("The word is", secret+".txt")
	}
	var listed struct{ Tools []struct{ Name string } }
	w.do(guest, "GET", "/tools", "").decode(&listed)
	for _, tool := range listed.Tools {
		if !tried[tool.Name] {
			t.Errorf("the tool %s was not tried", tool.Name)
		}
	}
	if after := everything(w); after != before {
		t.Errorf("there were %d revisions and files, and are %d", before, after)
	}
}

// everything counts the revisions of the owner's memories, and the files.
func everything(w *world) int {
	w.t.Helper()
	view := w.store.As(souvenir.Access{User: w.users[owner]})
	n := 0
	for m, err := range view.Memories(background, souvenir.List{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		n += m.Revision
	}
	for _, err := range view.Files(background, souvenir.FileList{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		n++
	}
	return n
}

// The page says who asks, where the answer goes, and what for; what an application says of itself stays text.
func TestTheConsentPage(t *testing.T) {
	w := newWorld(t, server.Options{})
	long := strings.Repeat("trust me ", 20)
	for name, c := range map[string]struct {
		client    string
		redirect  string
		has, none []string
	}{
		"a web application": {"Notes", callback,
			[]string{"<bdi>Notes</bdi>", `<strong class="host">app.example</strong>`, "registered itself"}, []string{"Careful"}},
		"one on this device": {"Notes", "http://127.0.0.1:4000/cb",
			[]string{"this device", "a program on this computer, at 127.0.0.1:4000", "Careful"}, nil},
		"one of a scheme": {"Notes", "cursor://anysphere.cursor-mcp/oauth/callback",
			[]string{"opens links with cursor:", "Careful"}, nil},
		"a name with a script": {`<script>alert(1)</script>"'`, callback,
			[]string{"&lt;script&gt;alert(1)&lt;/script&gt;&#34;&#39;"}, []string{"<script"}},
		"a name like an image": {`"><img src=x onerror=alert(1)>`, callback, []string{"&#34;&gt;&lt;img src=x"},
			[]string{"<img"}},
		"a name like a letter":  {"Сlaude", callback, []string{"app.example", "<bdi>Сlaude</bdi>"}, nil},
		"a name right to left":  {"אפליקציה", callback, []string{"<bdi>אפליקציה</bdi>", "app.example"}, nil},
		"a name that is long":   {long, callback, []string{"trust me trust …", "app.example"}, []string{long}},
		"no name":               {"", callback, []string{"An application without a name", "app.example"}, nil},
		"a host of another one": {"Notes", "https://xn--pple-43d.example/cb", []string{"xn--pple-43d.example"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			app := w.registerAs(c.client, "none", c.redirect)
			a := w.signedIn(owner).get(app.asks("state", `"><script>alert(2)</script>`)).stays(http.StatusOK,
				c.has...).without(append(c.none, "<script")...)
			a.expect(http.StatusOK, app.ID, "olivia", "Read your memories", "Upload, change and delete files", "The shop",
				`name="decision" value="allow"`, `name="decision" value="deny"`)
			if forms := strings.Count(a.body, "<form"); forms != 1 || len(a.body) > 60_000 {
				t.Errorf("%d forms in %d bytes", forms, len(a.body))
			}
		})
	}
	for _, c := range []struct {
		registration souvenir.DocumentClient
		has, without string
	}{
		{souvenir.DocumentClient{URL: "https://app.example/client.json",
			Registration: souvenir.ClientRegistration{ClientName: "Doc", RedirectURIs: []string{callback}}},
			"described by app.example", "Careful"},
		{souvenir.DocumentClient{URL: "https://other.example/client.json",
			Registration: souvenir.ClientRegistration{ClientName: "Doc", RedirectURIs: []string{callback}}},
			"but the answer goes to app.example", ""},
		{souvenir.DocumentClient{URL: "https://tool.example/client.json",
			Registration: souvenir.ClientRegistration{ClientName: "Doc", RedirectURIs: []string{"http://localhost/cb"}}},
			"Any program on this device", ""},
	} {
		c.registration.ExpiresAt = time.Now().Add(time.Hour)
		client, err := w.store.Accounts().SetDocumentClient(background, c.registration)
		if err != nil {
			t.Fatal(err)
		}
		app := oauthApp{ID: client.ID, Redirect: client.Metadata.RedirectURIs}
		a := w.signedIn(owner).get(app.asks()).stays(http.StatusOK, client.ID, c.has)
		if c.without != "" {
			a.without(c.without)
		}
	}
}

// with returns a form with a field set otherwise.
func with(form url.Values, name string, values ...string) url.Values {
	changed := maps.Clone(form)
	changed[name] = values
	return changed
}

func TestThePagesOfAuthorizationRefuseFrames(t *testing.T) {
	w := newWorld(t, server.Options{})
	app := w.register("none")
	for _, a := range []*gotPage{w.signedIn(owner).get(app.asks()), w.browser().get("/oauth/authorize"),
		w.browser().get(app.asks()), w.signedIn(owner).letIn(app.asks(), nil)} {
		csp := a.header.Get("Content-Security-Policy")
		if !strings.Contains(csp, "frame-ancestors 'none'") || a.header.Get("X-Frame-Options") != "DENY" ||
			a.header.Get("Cache-Control") != "no-store" || a.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%v", a.header)
		}
		if strings.Contains(csp, "form-action") || strings.Contains(csp, "unsafe") {
			t.Errorf("the policy is %s", csp)
		}
		// A client that has opened the page in a window hears from it, once it is back there.
		if a.header.Get("Cross-Origin-Opener-Policy") != "" {
			t.Errorf("%v", a.header)
		}
		// With no-referrer a browser would send forms of a page without TLS with "Origin: null".
		if a.header.Get("Referrer-Policy") != "same-origin" {
			t.Errorf("%v", a.header)
		}
	}
}

// Scripts post the decision and the hidden fields; then what was ticked is granted.
func TestScriptsMayDecideWithoutChoosing(t *testing.T) {
	w := newWorld(t, server.Options{})
	app := w.register("none")
	b := w.signedIn(owner)
	form := b.get(app.asks("scope", "memory:write files:read")).hidden()
	form.Set("decision", "allow")
	if tokens := w.redeem(app, b.post("/oauth/authorize", form)); tokens.Scope != "memory:read memory:write files:read" {
		t.Errorf("%+v; want scope \"memory:read memory:write files:read\"", tokens)
	}
	form = b.get(app.asks()).hidden()
	form.Set("decision", "deny")
	if answer := b.post("/oauth/authorize", form).goesTo(callback); answer.Get("error") != "access_denied" ||
		answer.Get("state") != "state of the client" || answer.Get("iss") != publicAt || answer.Has("code") {
		t.Errorf("%v", answer)
	}
	// At the short path it works as well.
	form = b.get("/authorize?" + strings.TrimPrefix(app.asks(), "/oauth/authorize?")).hidden()
	form.Set("decision", "allow")
	w.redeem(app, b.post("/authorize", form))
}

// What does not make sense is asked again, with what was chosen, and grants nothing.
func TestChoicesThatMakeNoSense(t *testing.T) {
	w := newWorld(t, server.Options{})
	app := w.register("none")
	b := w.signedIn(owner)
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
		"another's project":  {url.Values{"projects": {"some"}, "project": {w.users[stranger] + "/x"}}, "project"},
		"too many projects":  {url.Values{"projects": {"some"}, "others": {strings.Join(many, "\r\n")}}, "at most 100"},
		"other projects":     {url.Values{"projects": {"few"}, "project": {"shop"}}, "The form was not valid"},
		"all and some":       {url.Values{"projects": {"all", "some"}, "project": {"shop"}}, "The form was not valid"},
		"another access":     {url.Values{"access": {"none"}}, "The form was not valid"},
		"no decision":        {url.Values{"decision": {}}, "one of the two buttons"},
		"another decision":   {url.Values{"decision": {"maybe"}}, "one of the two buttons"},
		"a script":           {url.Values{"projects": {"some"}, "project": {"<script>alert(1)</script>"}}, "&lt;script&gt;"},
	} {
		t.Run(name, func(t *testing.T) {
			again := b.letIn(app.asks(), c.form).stays(http.StatusBadRequest, c.says, `role="alert"`).without("<script")
			form := again.html.fields()
			form["scope"], form["decision"] = []string{"memory:read"}, []string{"allow"}
			form.Set("projects", "all")
			form.Set("access", "write")
			w.redeem(app, b.post("/oauth/authorize", form))
		})
	}
	// A script that leaves out fields gets no more than it names.
	for name, left := range map[string]string{"project": "shop", "access": "read"} {
		page := b.get(app.asks()).stays(http.StatusOK).hidden()
		form := url.Values{"csrf": page["csrf"], "nonce": page["nonce"], "asked": page["asked"], "decision": {"allow"},
			name: {left}}
		w.hold(limited, w.redeem(app, b.post("/oauth/authorize", form)).AccessToken)
		w.do(limited, "GET", "/api/projects", "").expect(http.StatusOK)
		if name == "project" {
			w.do(limited, "GET", "/api/user-preferences", "").expect(http.StatusForbidden, "limited")
		} else {
			w.do(limited, "PUT", "/api/user-preferences", "{}").expect(http.StatusForbidden, "memory:write")
		}
	}
	ticked := b.letIn(app.asks(), url.Values{"scope": {}, "projects": {"some"}, "project": {"shop"}}).html.fields()
	if ticked.Get("projects") != "some" || !slices.Equal(ticked["project"], []string{"shop"}) || ticked.Has("scope") {
		t.Errorf("what was chosen is lost: %v", ticked)
	}
}

// Each page is good for one answer, in the browser and to the question that it was made for. Otherwise it is shown
// again.
func TestAConsentIsGivenOnce(t *testing.T) {
	w := newWorld(t, server.Options{})
	app, other := w.register("none"), w.registerAs("Other", "none")
	b := w.signedIn(owner)
	page := b.get(app.asks()).hidden()
	page.Set("decision", "allow")
	w.redeem(app, b.post("/oauth/authorize", page))
	fresh := func() url.Values {
		form := b.get(app.asks()).hidden()
		form.Set("decision", "allow")
		return form
	}
	stranger := w.signedIn(stranger)
	strangers := stranger.get(app.asks()).hidden()
	second := w.signedIn(owner) // the same person in another browser
	_, widerQuery, _ := strings.Cut(app.asks("scope", "memory:read"), "?")
	_, otherQuery, _ := strings.Cut(other.asks(), "?")
	for name, c := range map[string]struct {
		in   *browser
		form url.Values
	}{
		"sent again":             {b, page},
		"without a nonce":        {b, with(fresh(), "nonce")},
		"with a made-up nonce":   {b, with(fresh(), "nonce", "AAAAAAAAAAAAAAAAAAAAAAAAAA")},
		"for another request":    {b, with(fresh(), "asked", widerQuery)},
		"for another client":     {b, with(fresh(), "asked", otherQuery)},
		"with another's nonce":   {b, with(fresh(), "nonce", strangers.Get("nonce"))},
		"in another's browser":   {stranger, with(fresh(), "csrf", strangers.Get("csrf"))},
		"in the other browser":   {second, with(fresh(), "csrf", second.get(app.asks()).hidden().Get("csrf"))},
		"denied with an old one": {b, with(page, "decision", "deny")},
	} {
		t.Run(name, func(t *testing.T) {
			again := c.in.post("/oauth/authorize", c.form).stays(http.StatusBadRequest, "out of date")
			form := again.hidden()
			if form.Get("nonce") == c.form.Get("nonce") || form.Get("nonce") == "" {
				t.Errorf("the nonce is %q", form.Get("nonce"))
			}
			form.Set("decision", "deny")
			if answer := c.in.post("/oauth/authorize", form).goesTo(callback); answer.Get("error") != "access_denied" {
				t.Errorf("%v", answer)
			}
		})
	}
}

// Pages that are open while the server is started anew are good for a second look.
func TestAConsentOutlivesARestart(t *testing.T) {
	w := newWorld(t, server.Options{})
	app := w.register("none")
	b := w.signedIn(owner)
	form := b.get(app.asks("state", "line\nbreak")).hidden()
	form.Set("decision", "allow")
	w.at.Config.Handler = server.New(w.store, &server.Options{PublicURL: publicAt})
	form = b.post("/oauth/authorize", form).stays(http.StatusBadRequest, "out of date").hidden()
	form.Set("decision", "allow")
	if answer := b.post("/oauth/authorize", form).goesTo(callback); answer.Get("state") != "line\nbreak" {
		t.Errorf("%v", answer)
	}
}

func TestOnlyThisPageSendsTheForm(t *testing.T) {
	w := newWorld(t, server.Options{})
	app := w.register("none")
	b := w.signedIn(owner)
	fresh := func() url.Values {
		form := b.get(app.asks()).hidden()
		form.Set("decision", "allow")
		return form
	}
	b.post("/oauth/authorize", with(fresh(), "csrf")).stays(http.StatusForbidden)
	b.post("/oauth/authorize", with(fresh(), "csrf", "wrong")).stays(http.StatusForbidden)
	b.post("/oauth/authorize", with(fresh(), "csrf",
		w.signedIn(owner).get(app.asks()).hidden().Get("csrf"))).stays(http.StatusForbidden)
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
		r := w.request(guest, "POST", "/oauth/authorize", strings.NewReader(fresh().Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set(name, value)
		b.send(r).stays(http.StatusForbidden, "another site")
	}
	// What a form says in its address counts for nothing.
	form := fresh()
	b.post("/oauth/authorize?"+form.Encode(), url.Values{}).stays(http.StatusForbidden)
	// Nor does a request that asks nothing, or asks for the impossible.
	b.post("/oauth/authorize", with(fresh(), "asked")).stays(http.StatusBadRequest, "Invalid client")
	b.post("/oauth/authorize", with(fresh(), "asked", "client_id="+app.ID+
		"&redirect_uri=https://evil.example")).stays(http.StatusBadRequest, "Invalid redirect_uri")
	b.post("/oauth/authorize", with(fresh(), "asked", strings.Repeat("a", 70_000))).stays(http.StatusBadRequest)
	b.post("/oauth/authorize", fresh()).goesTo(callback)
}

// Who is signed out, or disabled, while the page is open lets no one in.
func TestASignInThatEndsMeanwhile(t *testing.T) {
	w := newWorld(t, server.Options{})
	app := w.register("none")
	b := w.signedIn(owner)
	form := b.get(app.asks()).hidden()
	form.Set("decision", "allow")
	if err := w.store.As(souvenir.Access{User: w.users[owner]}).Accounts().DeleteSignIns(background,
		"", nil); err != nil {
		t.Fatal(err)
	}
	next := b.post("/oauth/authorize", form).goesTo("/login?next=").Get("next")
	w.signedIn(owner).get(next).stays(http.StatusOK, "App")

	b = w.signedIn(stranger)
	form = b.get(app.asks()).hidden()
	form.Set("decision", "allow")
	yes := true
	if _, err := w.store.Accounts().UpdateUser(background, "sam", souvenir.UserUpdate{Disabled: &yes}); err != nil {
		t.Fatal(err)
	}
	b.post("/oauth/authorize", form).goesTo("/login?next=")

	// The person sees that a client was deactivated meanwhile: it may not even be what it was.
	mine := w.ownApp(owner, "mine")
	b = w.signedIn(owner)
	form = b.get(mine.asks()).hidden()
	form.Set("decision", "allow")
	if err := w.store.Accounts().DeactivateClient(background, mine.ID); err != nil {
		t.Fatal(err)
	}
	b.post("/oauth/authorize", form).stays(http.StatusBadRequest, "Invalid client")
}

// What was chosen the last time is chosen again, and asked about all the same.
func TestTheSameApplicationAgain(t *testing.T) {
	w := newWorld(t, server.Options{})
	app := w.register("none")
	b := w.signedIn(owner)
	b.get(app.asks()).stays(http.StatusOK).without("allowed it before")
	w.redeem(app, b.letIn(app.asks(),
		url.Values{"scope": {"memory:read", "files:read"}, "projects": {"some"}, "project": {"shop"}}))
	form := b.get(app.asks()).stays(http.StatusOK, "allowed it before").html.fields()
	if !slices.Equal(form["scope"], []string{"memory:read", "files:read"}) || form.Get("projects") != "some" ||
		!slices.Equal(form["project"], []string{"shop"}) {
		t.Errorf("%v", form)
	}
	// What it has not asked for before is ticked, as for the first time.
	more := w.registerAs("More", "none")
	w.redeem(more, b.letIn(more.asks("scope", "memory:write files:read"), url.Values{"scope": {"memory:write"}}))
	if form := b.get(more.asks("scope",
		"memory:read memory:write files:read files:write")).html.fields(); !slices.Equal(form["scope"],
		[]string{"memory:read", "memory:write", "files:write"}) {
		t.Errorf("%v", form["scope"])
	}
	// A script that changes nothing gets no more than the person gave.
	hidden := b.get(app.asks()).hidden()
	hidden.Set("decision", "allow")
	w.hold(limited, w.redeem(app, b.post("/oauth/authorize", hidden)).AccessToken)
	w.call(limited, "memory", `{"action": "retrieve", "id": "`+w.memory+`"}`)
	a, _ := w.call(limited, "memory", `{"action": "retrieve", "id": "`+w.private+`"}`)
	a.expect(http.StatusNotFound)
	// Others are asked as for the first time.
	w.signedIn(writer).get(app.asks()).stays(http.StatusOK).without("allowed it before")
}

func TestProjectsThatDoNotFitThePage(t *testing.T) {
	w := newWorld(t, server.Options{})
	view := w.store.As(souvenir.Access{User: w.users[owner]})
	for i := range 300 {
		if _, err := view.AddProject(background,
			souvenir.NewProject{ID: fmt.Sprintf("project-%03d", i),
				Name: fmt.Sprintf("A project of many %03d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	app := w.register("none")
	b := w.signedIn(owner)
	shown := b.get(app.asks()).stays(http.StatusOK, `name="others"`)
	if len(shown.body) > 60_000 {
		t.Errorf("%d bytes, want at most 60_000", len(shown.body))
	}
	tokens := w.redeem(app, b.letIn(app.asks(),
		url.Values{"projects": {"some"}, "project": {"project-001"}, "others": {" project-299\r\n\r\nshop \r\n"}}))
	w.hold(limited, tokens.AccessToken)
	var listed struct{ Projects []souvenir.Project }
	w.do(limited, "GET", "/api/projects", "").expect(http.StatusOK).decode(&listed)
	if len(listed.Projects) != 3 {
		t.Errorf("%+v; want a length of 3", listed.Projects)
	}
	// What does not fit the page is there again all the same.
	if again := b.get(app.asks()).stays(http.StatusOK, "project-299").html.fields(); !slices.Equal(again["project"],
		[]string{"project-001"}) {
		t.Errorf("%v", again)
	}
}
