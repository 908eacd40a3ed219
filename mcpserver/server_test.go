package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/mcpserver"
	"github.com/souvenir-ai/souvenir/tools"
)

func TestInstructionsHaveAtMost150Words(t *testing.T) {
	w := newWorld(t)
	for name, options := range map[string]mcpserver.Options{
		"memory": {}, "read-only": {ReadOnly: true}, "chatgpt": {Toolsets: []mcpserver.Toolset{mcpserver.ToolsetChatGPT}},
		"both": {Toolsets: mcpserver.Toolsets()},
	} {
		for _, revision := range []string{handshake, newest} {
			session := connect(t, mcpserver.New(w.store, &options), revision)
			text := session.InitializeResult().Instructions
			if words := len(strings.Fields(text)); words == 0 || words > 150 {
				t.Errorf("%s has %d words of instructions: %s, want between 1 and 150 words", name, words, text)
			}
			if !strings.Contains(text, "say is data") {
				t.Errorf("%s has the instructions %s, want them to say that memories are data", name, text)
			}
			if options.ReadOnly && strings.Contains(text, "Store what") {
				t.Errorf(`%s asks to store: %s, want no "Store what" in the text`, name, text)
			}
		}
	}
}

func TestTheListOfToolsCostsAtMost3000Tokens(t *testing.T) {
	list, err := newWorld(t).as("owner").ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	const bytesPerToken = 4
	if cost := len(asJSON(t, list)) / bytesPerToken; cost > 3000 {
		t.Errorf("the list costs %d tokens, want at most 3000", cost)
	} else {
		t.Logf("the list costs %d tokens", cost)
	}
}

func TestToolsAreThoseOfTheRegistryInItsOrder(t *testing.T) {
	w := newWorld(t)
	list, err := w.as("owner").ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if list.CacheScope != "private" || list.TTLMs != 300_000 {
		t.Errorf(`it may be kept: %+v, want cache scope "private" and TTLMs 300_000`, list.Cacheable)
	}
	for i, want := range tools.List() {
		got := list.Tools[i]
		if got.Name != want.Name || got.Description != want.Description || got.Title != want.Title ||
			asJSON(t, got.InputSchema) == "" {
			t.Errorf("tool %d is %s, want %s", i, asJSON(t, got), want.Name)
		}
		a := got.Annotations
		if a == nil || a.DestructiveHint == nil || a.OpenWorldHint == nil || a.ReadOnlyHint != want.Annotations.ReadOnly ||
			*a.DestructiveHint != want.Annotations.Destructive ||
			a.IdempotentHint != want.Annotations.Idempotent || *a.OpenWorldHint {
			t.Errorf("%s has the annotations %s, want those of its description", got.Name, asJSON(t, a))
		}
	}
}

func TestToolsetsChooseTheTools(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		options mcpserver.Options
		want    string
	}{
		{mcpserver.Options{}, "memory get_project_main_memory get_module_state rules todo upload_document list_collections " +
			"create_collection"},
		{mcpserver.Options{ReadOnly: true}, "memory get_project_main_memory get_module_state list_collections"},
		{mcpserver.Options{Toolsets: []mcpserver.Toolset{mcpserver.ToolsetChatGPT, "other"}}, "search fetch"},
		{mcpserver.Options{ReadOnly: true, Toolsets: mcpserver.Toolsets()},
			"memory get_project_main_memory get_module_state list_collections search fetch"},
		{mcpserver.Options{Toolsets: []mcpserver.Toolset{}}, ""},
	} {
		session := connect(t, mcpserver.New(w.store, &c.options), newest)
		list, err := session.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
			if c.options.ReadOnly && !tool.Annotations.ReadOnlyHint {
				t.Errorf("%s is no tool for reading only", tool.Name)
			}
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%+v offers %q, want %q", c.options, got, c.want)
		}
	}
}

func TestReadOnlyServersRefuseChanges(t *testing.T) {
	w := newWorld(t)
	view, options := w.options("owner")
	options.ReadOnly = true
	session := connect(t, mcpserver.New(view, &options), newest)
	if text, result := call(t, session, "memory", `{"action": "store", "content": "x"}`); !result.IsError ||
		!strings.Contains(text, "read-only") {
		t.Errorf(`got error %v: %s, want an error with "read-only"`, result.IsError, text)
	}
	_, err := session.CallTool(t.Context(),
		&mcp.CallToolParams{Name: "rules",
			Arguments: json.RawMessage(`{"action": "store", "rule_type": "do", "content": "x"}`)})
	checkCode(t, err, jsonrpc.CodeInvalidParams, `unknown tool "rules"; there are memory,`)
	if prompts, err := session.ListPrompts(t.Context(), nil); err != nil || len(prompts.Prompts) != 1 {
		t.Errorf("%v %v, got %v, want 1", asJSON(t, prompts), err, len(prompts.Prompts))
	}
}

// checkCode checks an error of the protocol.
func checkCode(t *testing.T, err error, code int64, has string) {
	t.Helper()
	var rpcError *jsonrpc.Error
	if !errors.As(err, &rpcError) || rpcError.Code != code || !strings.Contains(rpcError.Message, has) {
		t.Errorf("the error is %v, want %d with %q", err, code, has)
	}
}

func TestOnlyExistingFeaturesAreAdvertised(t *testing.T) {
	w := newWorld(t)
	for _, revision := range []string{handshake, newest} {
		session := connect(t, mcpserver.New(w.store, &mcpserver.Options{Version: "1.2.3"}), revision)
		got := asJSON(t, session.InitializeResult().Capabilities)
		if want := `{"completions":{},"prompts":{},"resources":{},"tools":{}}`; got != want {
			t.Errorf("%s: capabilities are %s, want %s", revision, got, want)
		}
		if info := session.InitializeResult().ServerInfo; info == nil || info.Name != "souvenir" || info.Version != "1.2.3" {
			t.Errorf(`%s: the server is %s, want name "souvenir" and version "1.2.3"`, revision, asJSON(t, info))
		}
	}
}

func TestResultsAreStructureAndText(t *testing.T) {
	w := newWorld(t)
	text, result := call(t, w.as("owner"), "memory", `{"action": "retrieve", "id": "`+w.ids["main"]+`"}`)
	var fromText any
	if err := json.Unmarshal([]byte(text), &fromText); err != nil {
		t.Fatal(err)
	}
	if got, want := asJSON(t, result.StructuredContent), asJSON(t, fromText); got != want ||
		!strings.Contains(got, "spans the river") {
		t.Errorf("structure %s, want %s, with \"spans the river\" in it", got, want)
	}
}

func TestMistakesInArgumentsAreForgivenAsByTheTools(t *testing.T) {
	w := newWorld(t)
	session := w.as("owner")
	for _, arguments := range []string{
		`{"action": "search", "query": "granite", "limit": "2", "tags": "stone, other", "stray": 1}`,
		`{"Action": "SEARCH", "query": "granite", "includeFiles": "true"}`, `{"action": "get-context", "query": ""}`,
	} {
		if text, result := call(t, session, "memory", arguments); result.IsError {
			t.Errorf("%s: got the error %s, want none", arguments, text)
		}
	}
	for arguments, want := range map[string]string{
		`{}`: "action is missing", `{"action": "search", "limit": "many"}`: `limit is "many"`,
		`{"action": "forget"}`: "expected", `[1]`: "expected a JSON object",
	} {
		if text, result := call(t, session, "memory", arguments); !result.IsError || !strings.Contains(text, want) {
			t.Errorf("%s: got error %v: %s, want an error with %q", arguments, result.IsError, text, want)
		}
	}
}

// Everyone calls everything, reads everything, and sees only what they may.
func TestUsersSeeOnlyTheirOwn(t *testing.T) {
	for i, who := range slices.Sorted(maps.Keys(personas)) {
		for k, revision := range []string{handshake, newest} {
			if !longtest.Part(i+k, 1, 2) || !longtest.Part(i, 1, 6) { // each of them in one revision, or a sixth of them
				continue
			}
			t.Run(who+" "+revision, func(t *testing.T) {
				w := newWorld(t)
				view, options := w.options(who)
				options.Toolsets = mcpserver.Toolsets()
				session := connect(t, mcpserver.New(view, &options), revision)
				listed := w.everything(t, session)
				for _, word := range personas[who].never {
					if i := strings.Index(listed, word); i >= 0 {
						t.Errorf("%s: got %q in %.200s, want it nowhere", who, word, listed[max(0, i-100):])
					}
				}
				if who == "owner" {
					for _, word := range []string{secretDiary, secretVault, granite, timber} {
						if !strings.Contains(listed, word) {
							t.Errorf("the owner: got the resources %s, want %q among them", listed, word)
						}
					}
				}
			})
		}
	}
}

// everything lists and uses everything, with the ids of the whole world, and returns the answers. The ids are removed
// from the errors, which repeat the arguments.
func (w *world) everything(t *testing.T, session *mcp.ClientSession) string {
	t.Helper()
	var listed strings.Builder
	for _, arguments := range []string{
		`memory {"action": "get_context", "query": "granite timber secret", "project_id": "bridge"}`,
		`memory {"action": "search", "query": "granite timber diary", "limit": 50, "include_files": true}`,
		`get_project_main_memory {"project_id": "bridge"}`, `get_project_main_memory {"project_id": "vault"}`,
		`get_module_state {"module_name": "pillars"}`, `list_collections {}`,
		`search {"query": "granite timber diary recipe"}`,
		`todo {"action": "complete", "project_id": "bridge", "task_id": "T2"}`,
		`rules {"action": "store", "rule_type": "do", "project_id": "bridge", "content": "x"}`,
		`create_collection {"collection_name": "new"}`, `upload_document {"filename": "a.txt", "content": "x"}`,
	} {
		tool, given, _ := strings.Cut(arguments, " ")
		text, _ := call(t, session, tool, given)
		listed.WriteString(text)
	}
	var uris []string
	for r, err := range session.Resources(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		uris = append(uris, r.URI)
		listed.WriteString(asJSON(t, r))
	}
	for _, uri := range uris { // everything listed can be read, unless it is too large
		result, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil && !strings.Contains(err.Error(), "GET /api/files/") {
			t.Errorf("%s is listed, and: %v, want it read, or an error that names its address", uri, err)
		}
		if err == nil {
			listed.WriteString(asJSON(t, result))
		}
	}
	for name, id := range w.ids { // and by guessing
		for _, uri := range []string{"souvenir://memories/" + id, "souvenir://files/" + id, "souvenir://projects/" + id,
			"souvenir://projects/" + id + "/main", "souvenir://projects/" + id + "/rules",
			"souvenir://projects/anna%2Fbridge/todo", "souvenir://projects/Vault/main"} {
			if result, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
				listed.WriteString(asJSON(t, result))
			}
		}
		text, _ := call(t, session, "fetch", `{"id": "`+id+`"}`)
		listed.WriteString(text)
		if text, result := call(t, session, "memory", `{"action": "retrieve", "id": "`+id+`"}`); !result.IsError {
			listed.WriteString(name + text)
		}
	}
	prompts, err := session.ListPrompts(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range prompts.Prompts {
		for _, project := range []string{"", "bridge", "Vault", "dora/bridge"} {
			result, err := session.GetPrompt(t.Context(),
				&mcp.GetPromptParams{Name: p.Name, Arguments: map[string]string{"project": project, "task": "stones"}})
			if err != nil {
				listed.WriteString(err.Error())
			}
			listed.WriteString(asJSON(t, result))
		}
		listed.WriteString(asJSON(t, complete(t, session, &mcp.CompleteReference{Type: "ref/prompt", Name: p.Name}, "project",
			"")))
	}
	for _, template := range []string{"souvenir://memories/{id}", "souvenir://files/{id}"} {
		listed.WriteString(asJSON(t, complete(t, session, &mcp.CompleteReference{Type: "ref/resource", URI: template}, "id",
			"")))
	}
	return listed.String()
}

func TestAMissingScopeIsNamed(t *testing.T) {
	w := newWorld(t)
	var heard []string
	view, options := w.options("files")
	options.Toolsets = mcpserver.Toolsets()
	options.OnError = func(_ context.Context, method string, err error) {
		var missing *tools.MissingScope
		if errors.As(err, &missing) {
			heard = append(heard, method+" "+string(missing.Scope))
		}
	}
	session := connect(t, mcpserver.New(view, &options), newest)
	for tool, arguments := range map[string]string{"memory": `{"action": "search"}`, "search": `{"query": "granite"}`,
		"fetch": `{"id": "x"}`} {
		if text, result := call(t, session, tool, arguments); !result.IsError || !strings.Contains(text, "memory:read") {
			t.Errorf(`%s: got %s, want an error with "memory:read"`, tool, text)
		}
	}
	_, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "review_gaps"})
	checkCode(t, err, jsonrpc.CodeInvalidRequest, "memory:read")
	_, err = session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "souvenir://projects"})
	checkCode(t, err, jsonrpc.CodeInvalidRequest, "memory:read")
	slices.Sort(heard)
	if got, want := strings.Join(heard, ", "),
		"prompts/get memory:read, resources/read memory:read, tools/call memory:read, tools/call memory:read, tools/call "+
			"memory:read"; got != want {
		t.Errorf("heard %s, want %s", got, want)
	}
	for _, r := range list(t, session) {
		if !strings.HasPrefix(r.URI, "souvenir://files/") {
			t.Errorf("%s is listed, want at its start \"souvenir://files/\"", r.URI)
		}
	}
}

func TestOneServerAnswersManyCallers(t *testing.T) {
	w := newWorld(t)
	who := "reader"
	server := mcpserver.New(nil, &mcpserver.Options{View: func(context.Context) (*souvenir.Store,
		func(souvenir.Scope) bool) {
		view, _ := w.options(who)
		return view, func(souvenir.Scope) bool { return true }
	}})
	session := connect(t, server, newest)
	arguments := `{"action": "retrieve", "id": "` + w.ids["main"] + `"}`
	if text, result := call(t, session, "memory", arguments); result.IsError {
		t.Errorf("the reader: got the error %s, want none", text)
	}
	who = "newcomer"
	if text, result := call(t, session, "memory", arguments); !result.IsError {
		t.Errorf("without projects: got %s, want an error", text)
	}
}

func TestAPanicEndsOneRequestOnly(t *testing.T) {
	w := newWorld(t)
	var log strings.Builder
	broken := true
	server := mcpserver.New(w.store, &mcpserver.Options{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		View: func(context.Context) (*souvenir.Store, func(souvenir.Scope) bool) {
			if broken {
				panic("out of " + secretDiary)
			}
			return w.store, func(souvenir.Scope) bool { return true }
		},
	})
	session := connect(t, server, newest)
	_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_collections"})
	checkCode(t, err, jsonrpc.CodeInternalError, "its log has the cause")
	if strings.Contains(err.Error(), secretDiary) || !strings.Contains(log.String(), secretDiary) {
		t.Errorf("told %v, logged %s; want in it %v", err, log.String(), secretDiary)
	}
	broken = false
	if _, result := call(t, session, "list_collections", `{}`); result.IsError {
		t.Error("after the failure: got an error of list_collections, want none")
	}
}

func TestCausesAreLoggedNotAnswered(t *testing.T) {
	w := newWorld(t)
	path := t.TempDir() + "/closed.db"
	store, err := souvenir.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	var heard error
	session := connect(w.T, mcpserver.New(store, &mcpserver.Options{
		Logger:  slog.New(slog.NewTextHandler(&log, nil)),
		OnError: func(_ context.Context, _ string, err error) { heard = err },
	}), newest)
	text, result := call(t, session, "list_collections", `{}`)
	if !result.IsError || text != "Error: the server failed; its log has the cause" ||
		!strings.Contains(log.String(), "closed") || !errors.Is(heard, souvenir.ErrClosed) {
		t.Errorf(`got answer %q, log %q, error %v, want the failure without its cause as answer, "closed" in the `+
			`log and ErrClosed`, text, log.String(), heard)
	}
	_, err = session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "souvenir://projects"})
	checkCode(t, err, jsonrpc.CodeInternalError, "its log has the cause")
}

// If the store fails, every call is a server error without the cause.
func TestAStoreThatFailsFailsEverything(t *testing.T) {
	w := newWorld(t)
	store, err := souvenir.Open(t.Context(), t.TempDir()+"/closed.db", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	session := connect(w.T, mcpserver.New(store, &mcpserver.Options{Toolsets: mcpserver.Toolsets()}), newest)
	for name, ask := range map[string]func() error{
		"list": func() error { _, err := session.ListResources(t.Context(), nil); return err },
		"read": func() error {
			_, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "souvenir://files/x"})
			return err
		},
		"rules": func() error {
			_, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "souvenir://projects/x/rules"})
			return err
		},
		"complete": func() error {
			_, err := session.Complete(t.Context(),
				&mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/resource", URI: "souvenir://memories/{id}"},
					Argument: mcp.CompleteParamsArgument{Name: "id"}})
			return err
		},
		"prompt of all": func() error {
			_, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "review_gaps"})
			return err
		},
		"prompt of a project": func() error {
			_, err := session.GetPrompt(t.Context(),
				&mcp.GetPromptParams{Name: "load_project_context", Arguments: map[string]string{"project": "x"}})
			return err
		},
		"prompt of a session": func() error {
			_, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "save_session"})
			return err
		},
	} {
		var rpcError *jsonrpc.Error
		if err := ask(); !errors.As(err, &rpcError) || rpcError.Code != jsonrpc.CodeInternalError ||
			strings.Contains(rpcError.Message, "closed") {
			t.Errorf(`%s: got %v, want an error of code %v without "closed"`, name, err, jsonrpc.CodeInternalError)
		}
	}
	if text, result := call(t, session, "search", `{"query": "x"}`); !result.IsError || strings.Contains(text, "closed") {
		t.Errorf(`search: got %s, want an error without "closed"`, text)
	}
}

// Very long names do not make a message, a title or a prompt very long.
func TestLongTextsAreCutAndMarked(t *testing.T) {
	w := newWorld(t)
	view, options := w.options("newcomer")
	long := strings.Repeat("very long ", 50)
	var tasks strings.Builder
	for i := range 40 {
		fmt.Fprintf(&tasks, "- [ ] T%d %s\n", i, long)
	}
	if _, err := view.SetTodo(t.Context(),
		souvenir.NewTodo{ProjectID: "big", Content: "## Constitution\n\n## Spec\n\n## Plan\n\n## Tasks\n" + tasks.String() +
			"\n## Gaps\n"}); err != nil {
		t.Fatal(err)
	}
	if _, err := view.AddMemory(t.Context(),
		souvenir.NewMemory{Content: "\n#\n## " + long, ProjectID: "big", EventType: "Project-Main"}); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"a.json": `{"a": 1}`,
		"a.svg": `<svg xmlns="http://www.w3.org/2000/svg"/>`} {
		if _, err := view.AddFile(t.Context(), souvenir.NewFile{Filename: name, ProjectID: "big", Description: long},
			strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
	}
	session := connect(t, mcpserver.New(view, &options), newest)
	for _, r := range list(t, session) {
		if len(r.Title) > 100 || len(r.Description) > 210 {
			t.Errorf("%s is listed as %s, want a title of at most 100 and a description of at most 210 bytes", r.URI,
				asJSON(t, r))
		}
		if strings.HasPrefix(r.URI, "souvenir://files/") && get(t, session, r.URI).Text == "" {
			t.Errorf("%s is no text, want some", r.Title)
		}
	}
	text := promptText(t, session, "load_project_context", map[string]string{"project": "big"})
	if !strings.Contains(text, "- [ ] T29 ") || strings.Contains(text, "T30 ") || !strings.Contains(text, "and 10 more") ||
		len(text) > 20_000 {
		t.Errorf(`the prompt has %d bytes: %s, want at most 20000, with "- [ ] T29 " and "and 10 more" and without `+
			`"T30 "`, len(text), text)
	}
	_, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "other://" + long})
	checkCode(t, err, jsonrpc.CodeInvalidParams, "Resource not found")
	_, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: long})
	checkCode(t, err, jsonrpc.CodeInvalidParams, "…")
}
