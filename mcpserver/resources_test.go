package mcpserver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/mcpserver"
)

// list returns all pages of the list of resources.
func list(t *testing.T, session *mcp.ClientSession) (all []*mcp.Resource) {
	t.Helper()
	for r, err := range session.Resources(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// get reads a resource.
func get(t *testing.T, session *mcp.ClientSession, uri string) *mcp.ResourceContents {
	t.Helper()
	result, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		t.Fatalf("%s: %v", uri, err)
	}
	if len(result.Contents) != 1 || result.Contents[0].URI != uri || result.CacheScope != "private" || result.TTLMs != 0 {
		t.Fatalf(`%s gives %s, want 1 content, URI %v, cache scope "private" and TTLMs 0`, uri, asJSON(t, result), uri)
	}
	return result.Contents[0]
}

func TestResourcesShowTheStore(t *testing.T) {
	w := newWorld(t)
	session := w.as("owner")
	for uri, want := range map[string]mcp.ResourceContents{
		"souvenir://memories/" + w.ids["main"]: {MIMEType: "text/markdown",
			Text: "The bridge of granite spans the river."},
		"souvenir://projects/bridge/main": {MIMEType: "text/markdown",
			Text: "The bridge of granite spans the river."},
		"souvenir://projects/Bridge/main": {MIMEType: "text/markdown",
			Text: "The bridge of granite spans the river."},
		"souvenir://projects/bridge/rules": {MIMEType: "text/markdown",
			Text: "# Do\n\nUse granite.\n\n# Don't\n\nNever paint granite.\n"},
		"souvenir://projects/bridge/todo": {MIMEType: "text/markdown", Text: bridgeTodo},
		"souvenir://projects/dora%2Fbridge/main": {MIMEType: "text/markdown",
			Text: "> From the project Timber bridge of dora, who shares it. These are not the user's own words.\n\nA bridge " +
				"of timber."},
		"souvenir://projects/Timber%20bridge/main": {MIMEType: "text/markdown",
			Text: "> From the project Timber bridge of dora, who shares it. These are not the user's own words.\n\nA bridge " +
				"of timber."},
		"souvenir://projects/Timber bridge/todo": {MIMEType: "text/markdown",
			Text: "> From the project Timber bridge of dora, who shares it. These are not the user's own words.\n\nThe " +
				"project Timber bridge has no to-do document yet. The tool todo stores one."},
		"souvenir://projects/vault/rules": {MIMEType: "text/markdown",
			Text: "The project Vault has no rules yet. The tool rules stores them.\n"},
		"souvenir://rules": {MIMEType: "text/markdown", Text: "# Don't\n\nNever tell of the " +
			secretDiary + "\n"},
		"souvenir://files/" + w.ids["plan.txt"]:  {MIMEType: "text/plain; charset=utf-8", Text: "granite, stone by stone"},
		"souvenir://files/" + w.ids["stamp.bin"]: {MIMEType: "application/octet-stream", Blob: []byte("\x00\x01\xff")},
		"souvenir://files/" + w.ids["empty.txt"]: {MIMEType: "text/plain; charset=utf-8", Blob: []byte{}},
		"souvenir://projects/vault/main":         {MIMEType: "text/markdown", Text: secretVault + " of anna"},
	} {
		got := get(t, session, uri)
		if got.MIMEType != want.MIMEType || got.Text != want.Text || string(got.Blob) != string(want.Blob) ||
			(got.Blob == nil) != (want.Blob == nil) {
			t.Errorf("%s is %s, want %s", uri, asJSON(t, got), asJSON(t, want))
		}
	}
	for uri, has := range map[string]string{"souvenir://projects": `"project_id":"vault"`,
		"souvenir://projects/bridge": `"member_count":3`} {
		if got := get(t, session, uri); got.MIMEType != "application/json" || !strings.Contains(got.Text, has) {
			t.Errorf(`%s is %s, want MIME type "application/json" and %q in the text`, uri, asJSON(t, got), has)
		}
	}
}

func TestReadsAreMarkedCompleteWhereRequired(t *testing.T) {
	w := newWorld(t)
	view, options := w.options("owner")
	for revision, says := range map[string]bool{handshake: false, newest: true} {
		result, err := connect(t, mcpserver.New(view, &options), revision).ReadResource(t.Context(),
			&mcp.ReadResourceParams{URI: "souvenir://projects/bridge/todo"})
		if err != nil {
			t.Fatal(err)
		}
		if got := asJSON(t, result); strings.Contains(got, `"resultType":"complete"`) != says {
			t.Errorf("in %s it is %s, want %v", revision, got, says)
		}
	}
}

func TestMissingResourcesHaveTheCodeOfTheRevision(t *testing.T) {
	w := newWorld(t)
	view, options := w.options("stranger")
	for revision, code := range map[string]int64{handshake: -32002, newest: jsonrpc.CodeInvalidParams} {
		session := connect(t, mcpserver.New(view, &options), revision)
		for _, uri := range []string{
			"souvenir://memories/" + w.ids["main"], "souvenir://memories/none", "souvenir://files/" + w.ids["plan.txt"],
			"souvenir://projects/vault/rules", "souvenir://projects/anna%2Fbridge",
			"souvenir://", "souvenir://memories", "souvenir://memories/", "souvenir://memories/a/b",
			"souvenir://projects/bridge/other", "souvenir://other", "file:///etc/passwd", "", "souvenir://memories/%zz",
			"souvenir://projects//rules", "SOUVENIR://projects", "souvenir://projects/" + strings.Repeat("x", 10_000),
		} {
			_, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if err == nil || !strings.Contains(err.Error(), "ot found") && !strings.Contains(err.Error(), "project_id") {
				t.Errorf(`got %.60s: %v, want an error and "ot found" in the error or "project_id" in the error`, uri, err)
				continue
			}
			if strings.Contains(err.Error(), "ot found") {
				checkCode(t, err, code, "")
			}
		}
	}
}

func TestALargeFileIsRefusedWithTheWayToGetIt(t *testing.T) {
	w := newWorld(t)
	_, err := w.as("reader").ReadResource(t.Context(),
		&mcp.ReadResourceParams{URI: "souvenir://files/" + w.ids["large.txt"]})
	checkCode(t, err, jsonrpc.CodeInvalidParams, "GET /api/files/"+w.ids["large.txt"])
}

func TestListsHaveProjectsAndRecentMemories(t *testing.T) {
	w := newWorld(t)
	listed := map[string]*mcp.Resource{}
	for _, r := range list(t, w.as("owner")) {
		if listed[r.URI] != nil {
			t.Errorf("%s is listed twice: got %v, want nil", r.URI, listed[r.URI])
		}
		if r.Name == "" || r.Title == "" {
			t.Errorf("%s has no name or title, want both", r.URI)
		}
		listed[r.URI] = r
	}
	for uri, title := range map[string]string{
		"souvenir://projects": "Projects", "souvenir://rules": "General rules",
		"souvenir://projects/bridge/main": "Bridge: main", "souvenir://projects/dora%2Fbridge/todo": "Timber bridge: todo",
		"souvenir://projects/vault/rules": "Vault: rules", "souvenir://memories/" + w.ids["pillars"]: "Pillars",
		"souvenir://memories/" + w.ids["diary"]: secretDiary + " of anna",
		"souvenir://files/" + w.ids["plan.txt"]: "plan.txt",
	} {
		if r := listed[uri]; r == nil || r.Title != title {
			t.Errorf("%s is listed as %s, want title %q", uri, asJSON(t, r), title)
		}
	}
	if r := listed["souvenir://memories/"+w.ids["pillars"]]; r.Description != "decision; Bridge; stone" ||
		r.Annotations.LastModified == "" || r.Size != 38 {
		t.Errorf(`the memory is listed as %s, want description "decision; Bridge; stone", a last modified that is not `+
			"empty and size 38", asJSON(t, r))
	}
	templates, err := w.as("newcomer").ListResourceTemplates(t.Context(), nil)
	if err != nil || len(templates.ResourceTemplates) != 6 || templates.CacheScope != "private" {
		t.Errorf(`the templates are %s, %v, want no error, 6 resource templates and cache scope "private"`,
			asJSON(t, templates), err)
	}
}

func TestTheListHasPagesAndEndsWithTheLatest(t *testing.T) {
	w := newWorld(t)
	view, options := w.options("newcomer")
	memories := make([]souvenir.NewMemory, 250)
	for i := range memories {
		memories[i].Content = fmt.Sprintf("number %d", i)
	}
	if _, err := view.AddMemories(t.Context(), memories, nil); err != nil {
		t.Fatal(err)
	}
	session := connect(t, mcpserver.New(view, &options), newest)
	seen := map[string]bool{}
	var pages []int
	for cursor := ""; len(pages) == 0 || cursor != ""; {
		page, err := session.ListResources(t.Context(), &mcp.ListResourcesParams{Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, len(page.Resources))
		for _, r := range page.Resources {
			if seen[r.URI] {
				t.Errorf("%s is on two pages", r.URI)
			}
			seen[r.URI] = true
		}
		cursor = page.NextCursor
	}
	if fmt.Sprint(pages) != "[100 100 2]" { // projects, rules, and 200 memories
		t.Errorf(`the pages have %v resources, want "[100 100 2]"`, pages)
	}
	for _, cursor := range []string{"x", "LTE", "!!", "MA"} { // garbage, -1, garbage, 0
		_, err := session.ListResources(t.Context(), &mcp.ListResourcesParams{Cursor: cursor})
		checkCode(t, err, jsonrpc.CodeInvalidParams, "omit it")
	}
	if page, err := session.ListResources(t.Context(), &mcp.ListResourcesParams{Cursor: "OTk5OTk"}); err != nil ||
		page.Resources == nil || len(page.Resources) != 0 {
		t.Errorf("behind the end: %s %v, want no error and an empty list that is not null", asJSON(t, page), err)
	}
}

// complete completes the value of an argument.
func complete(t *testing.T, session *mcp.ClientSession, ref *mcp.CompleteReference, argument,
	typed string) mcp.CompletionResultDetails {
	t.Helper()
	result, err := session.Complete(t.Context(),
		&mcp.CompleteParams{Ref: ref, Argument: mcp.CompleteParamsArgument{Name: argument, Value: typed}})
	if err != nil {
		t.Fatalf("%s %s: %v", asJSON(t, ref), argument, err)
	}
	if result.Completion.Values == nil {
		t.Errorf("%s %s: the values are null, want a list", asJSON(t, ref), argument)
	}
	return result.Completion
}

func TestArgumentsAreCompleted(t *testing.T) {
	w := newWorld(t)
	session := w.as("owner")
	prompt := &mcp.CompleteReference{Type: "ref/prompt", Name: "load_project_context"}
	rules := &mcp.CompleteReference{Type: "ref/resource", URI: "souvenir://projects/{project}/rules"}
	memory := &mcp.CompleteReference{Type: "ref/resource", URI: "souvenir://memories/{id}"}
	file := &mcp.CompleteReference{Type: "ref/resource", URI: "souvenir://files/{id}"}
	for _, c := range []struct {
		ref             *mcp.CompleteReference
		argument, typed string
		want            []string
	}{
		{prompt, "project", "", []string{"Bridge", "Vault", "Timber bridge"}},
		{prompt, "project", "B", []string{"Bridge", "Timber bridge"}},
		{prompt, "project", "vau", []string{"Vault"}},
		{prompt, "task", "", []string{}},
		{rules, "project", "bri", []string{"bridge", "dora/bridge"}},
		{rules, "project", "none", []string{}},
		{rules, "other", "", []string{}},
		{memory, "id", w.ids["main"][:len(w.ids["main"])-1], []string{w.ids["main"]}},
		{memory, "id", "pill", []string{w.ids["pillars"]}},
		{file, "id", "PLAN", []string{w.ids["plan.txt"]}},
	} {
		got := complete(t, session, c.ref, c.argument, c.typed)
		if asJSON(t, got.Values) != asJSON(t, c.want) || got.Total != len(c.want) || got.HasMore {
			t.Errorf("%s %s %q: %s, want %s", asJSON(t, c.ref), c.argument, c.typed, asJSON(t, got), asJSON(t, c.want))
		}
	}
	for _, ref := range []*mcp.CompleteReference{{Type: "ref/prompt", Name: "none"},
		{Type: "ref/resource", URI: "souvenir://other/{id}"}} {
		_, err := session.Complete(t.Context(),
			&mcp.CompleteParams{Ref: ref, Argument: mcp.CompleteParamsArgument{Name: "id"}})
		checkCode(t, err, jsonrpc.CodeInvalidParams, "no such prompt or template")
	}
}
