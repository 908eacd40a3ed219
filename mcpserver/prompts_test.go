package mcpserver_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/documents"
	"github.com/souvenir-ai/souvenir/mcpserver"
)

func promptText(t *testing.T, session *mcp.ClientSession, name string, arguments map[string]string) string {
	t.Helper()
	result, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Messages) != 1 || result.Messages[0].Role != "user" || result.Description == "" {
		t.Fatalf(`the prompt is %s, want 1 message, role "user" and a description that is not empty`, asJSON(t, result))
	}
	return result.Messages[0].Content.(*mcp.TextContent).Text
}

func TestPromptsUseStoredFacts(t *testing.T) {
	w := newWorld(t)
	session := w.as("owner")
	for _, c := range []struct {
		name      string
		arguments map[string]string
		has       []string
		without   []string
	}{
		{"load_project_context", map[string]string{"project": "bridge", "task": "order granite for the pillars"},
			[]string{`Bridge (project_id "bridge")`, "order granite for the pillars", "spans the river", "Use granite.",
				"Never paint granite.",
				"- [ ] T2 order granite", w.ids["pillars"], "get_module_state"},
			[]string{"T1 measure", "Not there yet", "ask what is next"}},
		{"load_project_context", map[string]string{"project": "Timber bridge"},
			[]string{"timber", `"dora/bridge"`, "Not there yet", "rules on what to do, rules on what not to do, to-do document",
				"ask what is next"}, []string{"granite", "Open tasks"}},
		{"save_session", map[string]string{"project": "bridge", "focus": "the price"},
			[]string{`with project_id "bridge"`, "Retrieve memory " + w.ids["case"], "- [ ] T2 order granite", "the price"},
			[]string{"T1"}},
		{"save_session", nil, []string{"event_type conversation and state active", "no passwords"},
			[]string{"Open now", "project_id"}},
		{"save_session", map[string]string{"project": "Tunnel"}, []string{`with project_name "Tunnel"`},
			[]string{"Open now"}},
		{"review_gaps", map[string]string{"project": "Bridge"},
			[]string{"Who pays for the granite?", "T2 order granite", "update_section"}, []string{"## Not there"}},
		{"review_gaps", nil, []string{`- Bridge (project_id "bridge"): 1 open tasks`,
			`- Vault (project_id "vault"): no rules on what to do, no rules on what not to do, no to-do document; 0 open ` +
				`tasks, 1 memories`, `project_id "dora/bridge"`}, nil},
	} {
		text := promptText(t, session, c.name, c.arguments)
		for _, word := range c.has {
			if !strings.Contains(text, word) {
				t.Errorf("%s %v: got\n%s\nwant a text that contains %q", c.name, c.arguments, text, word)
			}
		}
		for _, word := range c.without {
			if strings.Contains(text, word) {
				t.Errorf("%s %v has %q, want it not in the text:\n%s", c.name, c.arguments, word, text)
			}
		}
	}
	if text := promptText(t, w.as("newcomer"), "review_gaps", nil); !strings.Contains(text, "There are no projects yet") {
		t.Errorf("without projects: %s; want in it \"There are no projects yet\"", text)
	}
}

func TestFailedPromptsSayWhy(t *testing.T) {
	w := newWorld(t)
	session := w.as("owner")
	for _, c := range []struct {
		name, project, has string
	}{
		{"load_project_context", "", "project is missing; the projects are Bridge, Vault, Timber bridge"},
		{"load_project_context", "Tunnel", `project "Tunnel" is not known; the projects are Bridge`},
		{"review_gaps", "Tunnel", `project "Tunnel" is not known`},
		{"none", "", `unknown prompt "none"`},
	} {
		_, err := session.GetPrompt(t.Context(),
			&mcp.GetPromptParams{Name: c.name, Arguments: map[string]string{"project": c.project}})
		checkCode(t, err, jsonrpc.CodeInvalidParams, c.has)
	}
	_, err := w.as("newcomer").GetPrompt(t.Context(),
		&mcp.GetPromptParams{Name: "load_project_context", Arguments: map[string]string{"project": "bridge"}})
	checkCode(t, err, jsonrpc.CodeInvalidParams, "there are no projects yet")
}

func TestChatGPTSearchesAndFetchesInItsShapes(t *testing.T) {
	w := newWorld(t)
	for publicURL, start := range map[string]string{"": "souvenir://memories/",
		"https://memory.example/at/": "https://memory.example/at/memories/"} {
		view, options := w.options("reader")
		options.Toolsets, options.PublicURL = []mcpserver.Toolset{mcpserver.ToolsetChatGPT}, publicURL
		session := connect(t, mcpserver.New(view, &options), handshake)
		text, result := call(t, session, "search", `{"query": "which granite are the pillars of"}`)
		if result.IsError || !strings.Contains(text, `{"id":"`+w.ids["pillars"]+
			`","title":"Pillars (project Bridge, shared by anna)","url":"`+start+w.ids["pillars"]+`"}`) ||
			strings.Contains(text, secretDiary) {
			t.Errorf("search gives %s, want the memory with its title and URL", text)
		}
		text, result = call(t, session, "fetch", `{"id": "`+w.ids["pillars"]+`"}`)
		for _, part := range []string{`"title":"Pillars (project Bridge, shared by anna)"`,
			`"text":"# Pillars\n\nThe pillars are of granite."`, `"url":"` + start, `"metadata":{`, `"event_type":"decision"`} {
			if result.IsError || !strings.Contains(text, part) {
				t.Errorf("fetch: got %s, want no error and %s in it", text, part)
			}
		}
		for call2, has := range map[string]string{`search {}`: `"query"`, `search {"query": 7}`: `"query"`,
			`search []`: "not a JSON object", `fetch {"id": " "}`: `"id"`, `fetch {"id": "` + w.ids["diary"] +
				`"}`: "not found, or you have no access"} {
			tool, arguments, _ := strings.Cut(call2, " ")
			if text, result := call(t, session, tool, arguments); !result.IsError || !strings.Contains(text, has) {
				t.Errorf("%s gives %s, want an error with %q", call2, text, has)
			}
		}
		if text, _ := call(t, session, "search", `{"query": "zzz"}`); strings.Contains(text, "null") {
			t.Errorf(`nothing found is %s, want no "null" in the text`, text)
		}
	}
}

// Files are found by their text, with the place of the passage, and fetch returns it. A caller who may not read files
// finds none.
func TestChatGPTFindsDocuments(t *testing.T) {
	store, err := souvenir.Open(t.Context(), ":memory:", &souvenir.Options{Documents: documents.New(nil)})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	anna := store.As(souvenir.Access{User: "anna"})
	text := "# On call\n\nThe deployment window opens on Tuesday at nine."
	file, err := anna.AddFile(t.Context(), souvenir.NewFile{Filename: "oncall.md"}, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := anna.WaitIndexed(t.Context(), file.ID); err != nil {
		t.Fatal(err)
	}
	begin := func(view *souvenir.Store, allows func(souvenir.Scope) bool) *mcp.ClientSession {
		return connect(t, mcpserver.New(view, &mcpserver.Options{Toolsets: []mcpserver.Toolset{mcpserver.ToolsetChatGPT},
			PublicURL: "https://memory.example", Allows: allows}), handshake)
	}
	session := begin(anna, nil)
	found, _ := call(t, session, "search", `{"query": "when does the deployment window open?"}`)
	var list struct {
		Results []struct{ ID, Title, URL string }
	}
	if err := json.Unmarshal([]byte(found), &list); err != nil || len(list.Results) != 1 {
		t.Fatalf("search gives %s, %v; want the file", found, err)
	}
	hit := list.Results[0]
	if hit.Title != "oncall.md (line 3, On call)" || hit.URL != "https://memory.example/files/"+file.ID {
		t.Errorf("search gives %+v, want the file with its place", hit)
	}
	fetch := `{"id": "` + hit.ID + `"}`
	got, _ := call(t, session, "fetch", fetch)
	for _, part := range []string{"opens on Tuesday at nine", `"filename":"oncall.md"`, `"place":"line 3, On call"`} {
		if !strings.Contains(got, part) {
			t.Errorf("fetch gives %s, want %s in it", got, part)
		}
	}
	eve := begin(store.As(souvenir.Access{User: "eve"}), nil)
	for _, id := range []string{fetch, `{"id": "file:x"}`, `{"id": "file:` + file.ID + `:?"}`} {
		if got, result := call(t, eve, "fetch", id); !result.IsError || strings.Contains(got, "Tuesday") {
			t.Errorf("fetch of %s by another user gives %s, want an error", id, got)
		}
	}
	without := begin(anna, func(s souvenir.Scope) bool { return s != souvenir.ScopeFilesRead })
	got, _ = call(t, without, "search", `{"query": "when does the deployment window open?"}`)
	if strings.Contains(got, "oncall") {
		t.Errorf("without files:read search gives %s, want no file", got)
	}
	if got, result := call(t, without, "fetch", fetch); !result.IsError || !strings.Contains(got, "files:read") {
		t.Errorf("without files:read fetch gives %s, want an error", got)
	}
}
