package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/mcpserver"
	"github.com/souvenir-ai/souvenir/server"
)

// recorded waits until every request is over, and returns what was recorded of a caller, the oldest first.
func (w *world) recorded(caller string) []souvenir.Activity {
	w.t.Helper()
	w.at.Close()
	page, err := w.store.Insights().Activities(background,
		souvenir.ActivityQuery{User: w.users[caller], Limit: souvenir.MaxActivityLimit})
	if err != nil {
		w.t.Fatal(err)
	}
	slices.Reverse(page.Activities)
	return page.Activities
}

// brief is what the tests compare of a call.
func briefActivity(a souvenir.Activity) string {
	return strings.Join(strings.Fields(fmt.Sprint(a.Tool, " ", a.Action, " ", a.Outcome, " ", a.ProjectID)), " ")
}

func TestEveryCallIsRecorded(t *testing.T) {
	w := newWorld(t, server.Options{})
	tool := func(name, arguments string) {
		w.do(owner, "POST", "/tools/call", `{"name":"`+name+`","arguments":`+arguments+`}`)
	}
	tool("memory", `{"action":"search","query":"`+secret+`","project_id":"shop"}`)
	tool("memory", `{"action":"retrieve","id":"`+w.memory+`"}`)
	tool("memory", `{"action":"retrieve","id":"`+secret+`"}`)
	tool("memory", `{"action":"`+secret+`"}`)
	tool("memory", `{"action":"store","content":"stored by a tool","project_name":"The shop"}`)
	tool("rules", `{"action":"store","rule_type":"do","content":"be kind","project_id":"shop"}`)
	tool(secret, `{}`)
	w.do(owner, "POST", "/tools/call", `{`)
	file := w.upload(owner, part{"file", "plain.txt", "", secret}).file()
	w.do(owner, "GET", "/api/files/"+file.ID, "")
	w.do(owner, "GET", "/api/files/nowhere", "")
	w.do(owner, "GET", "/api/projects/shop", "")
	w.do(owner, "GET", "/api/projects/nowhere", "")
	w.do(noFiles, "GET", "/api/files", "")
	w.do(owner, "GET", "/api/activity", "")
	w.do(owner, "GET", "/health", "")
	w.do(garbage, "GET", "/api/files", "")
	w.do(guest, "GET", "/api/files", "")
	all := w.recorded(owner)
	var got []string
	for _, a := range all {
		got = append(got, briefActivity(a))
	}
	want := []string{
		"memory search ok shop", "memory retrieve ok shop", "memory retrieve not_found", "memory invalid",
		"memory store ok shop", "rules store ok shop",
		"POST /tools/call not_found", "POST /tools/call invalid",
		"POST /api/files/upload ok", "GET /api/files/{id} ok", "GET /api/files/{id} not_found",
		"GET /api/projects/{id} ok shop", "GET /api/projects/{id} not_found", "GET /api/files forbidden",
	}
	if !slices.Equal(got, want) {
		t.Fatalf("recorded are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if all[1].MemoryID != w.memory || all[2].MemoryID != "" || len(all[4].MemoryID) != 36 || all[8].FileID != file.ID ||
		all[9].FileID != file.ID || all[10].FileID != "" {
		t.Errorf("memories and files are %+v", all)
	}
	for _, a := range all {
		if a.Credential.Kind != souvenir.CredentialToken || a.Credential.ID == "" ||
			!strings.HasPrefix(a.Client, "Go-http-client/") || a.DurationMS <= 0 || a.Bytes <= 0 || a.StartedAt.IsZero() {
			t.Errorf("a call is %+v", a)
		}
		if said := fmt.Sprintf("%+v", a); strings.Contains(said, secret) || strings.Contains(said, w.tokens[owner]) {
			t.Errorf("a call tells %s", said)
		}
	}
	if everyone, err := w.store.Insights().Activities(background, souvenir.ActivityQuery{}); err != nil ||
		len(everyone.Activities) != len(want) {
		t.Errorf("of all users %d calls are recorded, %v; want %v", len(everyone.Activities), err, len(want))
	}
}

func TestEveryCallOverMCPIsRecordedWithItsClient(t *testing.T) {
	w := newWorld(t, server.Options{Toolsets: mcpserver.Toolsets()})
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		session := w.mustConnect(owner, revision)
		callOver(t.Context(), t, session, "memory", `{"action":"search","query":"`+secret+`","project_id":"shop"}`)
		callOver(t.Context(), t, session, "memory", `{"action":"retrieve","id":"`+secret+`"}`)
		callOver(t.Context(), t, session, "search", `{"query":"`+secret+`"}`)
		callOver(t.Context(), t, session, "fetch", `{"id":"`+w.memory+`"}`)
		if _, err := session.ListTools(t.Context(), nil); err != nil {
			t.Error(err)
		}
		_, _ = session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "souvenir://memories/" + w.memory})
		_, _ = session.CallTool(t.Context(), &mcp.CallToolParams{Name: secret})
		session.Close()
	}
	batch := w.request(owner, "POST", "/mcp",
		strings.NewReader(`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_collections"}},
		{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"memory","arguments":{"action":"delete","id":"`+
			w.memory+`"}}}]`))
	batch.Header.Set("Content-Type", "application/json")
	w.send(batch).expect(http.StatusOK)
	all := w.recorded(owner)
	var got []string
	for _, a := range all {
		brief := briefActivity(a)
		if brief == "fetch ok shop" { // recorded before the memory was deleted: later its project is not known
			brief = "fetch ok"
		}
		got = append(got, brief)
		if said := fmt.Sprintf("%+v", a); strings.Contains(said, secret) {
			t.Errorf("a call tells %s", said)
		}
	}
	calls := []string{"memory search ok shop", "memory retrieve not_found", "search ok", "fetch ok", "resources/read ok",
		"tools/call invalid"}
	want := slices.Concat([]string{"initialize ok"}, calls, calls,
		[]string{"list_collections ok", "memory delete ok shop"})
	if !slices.Equal(got, want) {
		t.Fatalf("recorded are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, a := range all[:len(all)-2] {
		if a.Client != "test 1" {
			t.Errorf("the client is %q: %+v; want \"test 1\"", a.Client, a)
		}
	}
	if all[4].MemoryID != w.memory || all[len(all)-1].MemoryID != w.memory {
		t.Errorf("the memories are not told: %+v", all)
	}
}

func TestActivityIsListedForItsUsers(t *testing.T) {
	w := newWorld(t, server.Options{})
	w.do(owner, "POST", "/tools/call",
		`{"name":"memory","arguments":{"action":"search","query":"x"}}`).expect(http.StatusOK)
	w.do(reader, "GET", "/api/projects", "").expect(http.StatusOK)
	w.do(admin, "GET", "/api/projects", "").expect(http.StatusOK)
	mine := `"tool":"memory","action":"search"`
	w.do(owner, "GET", "/api/activity?user=olivia", "").expect(http.StatusOK, mine).without("rita")
	w.do(owner, "GET", "/api/activity?tool=rules", "").expect(http.StatusOK, `"activities":[]`)
	w.do(owner, "GET", "/api/activity?until=2001-01-01T00:00:00Z", "").expect(http.StatusOK, `"activities":[]`)
	w.do(reader, "GET", "/api/activity", "").expect(http.StatusOK, `"user_name":"rita"`).without(mine)
	w.do(reader, "GET", "/api/activity?user=olivia", "").expect(http.StatusForbidden, "admin")
	w.do(admin, "GET", "/api/activity", "").expect(http.StatusOK, `"user_name":"ada"`).without(mine)
	w.do(admin, "GET", "/api/activity?user=olivia", "").expect(http.StatusOK, mine).without("rita")
	w.do(admin, "GET", "/api/activity?user=*&limit=2", "").expect(http.StatusOK, `"has_more":true`)
}

// What is there and says nothing is a mistake, but for words that are free.
func TestWhatActivityCannotBeAskedFor(t *testing.T) {
	w := newWorld(t, server.Options{})
	for query, argument := range map[string]string{
		"since=": "since", "until=": "until", "since=2026-03-01T9:00:00Z": "since", "until=2026-03-01T09:00:00,5Z": "until",
		"until=2026-03-01": "until",
		"credential=":      "credential", "credential=password": "credential", "outcome=": "outcome",
		"outcome=good":   "outcome",
		"limit=":         "limit",
		"project_id=%0B": "project_id", "project_id=%20": "project_id", "project_id=" +
			strings.Repeat("x", 129): "project_id",
	} {
		w.do(owner, "GET", "/api/activity?"+query, "").expect(http.StatusBadRequest, argument+" is ")
	}
	for _, query := range []string{
		"user=&credential_id=&client=&tool=&action=&project_id=&before=", "since=2026-03-01T09:00:00.25%2B05:30",
		"project_id=" + strings.Repeat("ä", 128),
		"project_id=" + strings.Repeat("ä", 128) + "/" + strings.Repeat("x", 128), "tool=%0B", "client=%00",
	} {
		w.do(owner, "GET", "/api/activity?"+query, "").expect(http.StatusOK, `"activities":[`)
	}
	w.do(owner, "GET", "/api/activity?before=%0B", "").expect(http.StatusNotFound, "before: call ")
}

func TestNothingIsRecordedWhereThatIsSwitchedOff(t *testing.T) {
	w := newWorld(t, server.Options{NoActivity: true})
	w.do(owner, "POST", "/tools/call",
		`{"name":"memory","arguments":{"action":"search","query":"x"}}`).expect(http.StatusOK)
	w.do(owner, "GET", "/api/projects", "").expect(http.StatusOK)
	if all := w.recorded(owner); len(all) > 0 {
		t.Errorf("recorded are %+v; want none", all)
	}
}
