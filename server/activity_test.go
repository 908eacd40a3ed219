package server_test

import (
	"context"

	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/mcpserver"
	"github.com/souvenir-ai/souvenir/server"
)

// recorded waits until every request is finished, and returns the recorded calls of a caller, oldest first.
func recorded(w *servertest.World, caller string) []souvenir.Activity {
	w.T.Helper()
	w.HTTP.Close()
	page, err := w.Store.Insights().ActivityPage(context.Background(),
		souvenir.ActivityQuery{User: w.Users[caller], Limit: souvenir.MaxActivityLimit})
	if err != nil {
		w.T.Fatal(err)
	}
	slices.Reverse(page.Activities)
	return page.Activities
}

// briefActivity returns what the tests compare of a call.
func briefActivity(a souvenir.Activity) string {
	return strings.Join(strings.Fields(fmt.Sprint(a.Tool, " ", a.Action, " ", a.Outcome, " ", a.ProjectID)), " ")
}

func TestEveryCallIsRecorded(t *testing.T) {
	w := servertest.New(t, server.Options{})
	tool := func(name, arguments string) {
		w.Do(servertest.Owner, "POST", "/tools/call", `{"name":"`+name+`","arguments":`+arguments+`}`)
	}
	tool("memory", `{"action":"search","query":"`+servertest.Secret+`","project_id":"shop"}`)
	tool("memory", `{"action":"retrieve","id":"`+w.Memory+`"}`)
	tool("memory", `{"action":"retrieve","id":"`+servertest.Secret+`"}`)
	tool("memory", `{"action":"`+servertest.Secret+`"}`)
	tool("memory", `{"action":"store","content":"stored by a tool","project_name":"The shop"}`)
	tool("rules", `{"action":"store","rule_type":"do","content":"be kind","project_id":"shop"}`)
	tool(servertest.Secret, `{}`)
	w.Do(servertest.Owner, "POST", "/tools/call", `{`)
	file := uploadedFile(upload(w, servertest.Owner, servertest.Part{Name: "file", Filename: "plain.txt", Kind: "",
		Value: servertest.Secret}))
	w.Do(servertest.Owner, "GET", "/api/files/"+file.ID, "")
	w.Do(servertest.Owner, "GET", "/api/files/nowhere", "")
	w.Do(servertest.Owner, "GET", "/api/projects/shop", "")
	w.Do(servertest.Owner, "GET", "/api/projects/nowhere", "")
	w.Do(servertest.NoFiles, "GET", "/api/files", "")
	w.Do(servertest.Owner, "GET", "/api/activity", "")
	w.Do(servertest.Owner, "GET", "/health", "")
	w.Do(servertest.Garbage, "GET", "/api/files", "")
	w.Do(servertest.Guest, "GET", "/api/files", "")
	all := recorded(w, servertest.Owner)
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
	if all[1].MemoryID != w.Memory || all[2].MemoryID != "" || len(all[4].MemoryID) != 36 || all[8].FileID != file.ID ||
		all[9].FileID != file.ID || all[10].FileID != "" {
		t.Errorf("memories and files are %+v, want those of the calls", all)
	}
	for _, a := range all {
		if a.Credential.Kind != souvenir.CredentialToken || a.Credential.ID == "" ||
			!strings.HasPrefix(a.Client, "Go-http-client/") || a.DurationMS <= 0 || a.Bytes <= 0 || a.StartedAt.IsZero() {
			t.Errorf("a call is %+v, want its token, client, time and size", a)
		}
		if said := fmt.Sprintf("%+v", a); strings.Contains(said, servertest.Secret) || strings.Contains(said,
			w.Tokens[servertest.Owner]) {
			t.Errorf("a call returns %s, want no %q and no %q in it", said, servertest.Secret,
				w.Tokens[servertest.Owner])
		}
	}
	if everyone, err := w.Store.Insights().ActivityPage(context.Background(), souvenir.ActivityQuery{}); err != nil ||
		len(everyone.Activities) != len(want) {
		t.Errorf("of all users %d calls are recorded, %v; want %v", len(everyone.Activities), err, len(want))
	}
}

func TestEveryCallOverMCPIsRecordedWithItsClient(t *testing.T) {
	w := servertest.New(t, server.Options{Toolsets: mcpserver.Toolsets()})
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		session := mustConnect(w, servertest.Owner, revision)
		callOver(t.Context(), t, session, "memory", `{"action":"search","query":"`+servertest.Secret+`","project_id":"shop"}`)
		callOver(t.Context(), t, session, "memory", `{"action":"retrieve","id":"`+servertest.Secret+`"}`)
		callOver(t.Context(), t, session, "search", `{"query":"`+servertest.Secret+`"}`)
		callOver(t.Context(), t, session, "fetch", `{"id":"`+w.Memory+`"}`)
		if _, err := session.ListTools(t.Context(), nil); err != nil {
			t.Error(err)
		}
		_, _ = session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "souvenir://memories/" + w.Memory})
		_, _ = session.CallTool(t.Context(), &mcp.CallToolParams{Name: servertest.Secret})
		session.Close()
	}
	batch := w.Request(servertest.Owner, "POST", "/mcp",
		strings.NewReader(`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_collections"}},
		{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"memory","arguments":{"action":"delete","id":"`+
			w.Memory+`"}}}]`))
	batch.Header.Set("Content-Type", "application/json")
	w.Send(batch).Expect(http.StatusOK)
	all := recorded(w, servertest.Owner)
	var got []string
	for _, a := range all {
		brief := briefActivity(a)
		if brief == "fetch ok shop" { // recorded before the deletion of the memory; afterwards its project is unknown
			brief = "fetch ok"
		}
		got = append(got, brief)
		if said := fmt.Sprintf("%+v", a); strings.Contains(said, servertest.Secret) {
			t.Errorf("a call returns %s, want no %q in it", said, servertest.Secret)
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
	if all[4].MemoryID != w.Memory || all[len(all)-1].MemoryID != w.Memory {
		t.Errorf("the event lacks the memories: %+v, want memory ID %v", all, w.Memory)
	}
}

func TestActivityIsListedForItsUsers(t *testing.T) {
	w := servertest.New(t, server.Options{})
	w.Do(servertest.Owner, "POST", "/tools/call",
		`{"name":"memory","arguments":{"action":"search","query":"x"}}`).Expect(http.StatusOK)
	w.Do(servertest.Reader, "GET", "/api/projects", "").Expect(http.StatusOK)
	w.Do(servertest.Admin, "GET", "/api/projects", "").Expect(http.StatusOK)
	mine := `"tool":"memory","action":"search"`
	w.Do(servertest.Owner, "GET", "/api/activity?user=olivia", "").Expect(http.StatusOK, mine).Without("rita")
	w.Do(servertest.Owner, "GET", "/api/activity?tool=rules", "").Expect(http.StatusOK, `"activities":[]`)
	w.Do(servertest.Owner, "GET", "/api/activity?until=2001-01-01T00:00:00Z", "").Expect(http.StatusOK, `"activities":[]`)
	w.Do(servertest.Reader, "GET", "/api/activity", "").Expect(http.StatusOK, `"user_name":"rita"`).Without(mine)
	w.Do(servertest.Reader, "GET", "/api/activity?user=olivia", "").Expect(http.StatusForbidden, "admin")
	w.Do(servertest.Admin, "GET", "/api/activity", "").Expect(http.StatusOK, `"user_name":"ada"`).Without(mine)
	w.Do(servertest.Admin, "GET", "/api/activity?user=olivia", "").Expect(http.StatusOK, mine).Without("rita")
	w.Do(servertest.Admin, "GET", "/api/activity?user=*&limit=2", "").Expect(http.StatusOK, `"has_more":true`)
}

// Empty parameters are mistakes, except for free text.
func TestInvalidActivityQueries(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	for query, argument := range map[string]string{
		"since=": "since", "until=": "until", "since=2026-03-01T9:00:00Z": "since", "until=2026-03-01T09:00:00,5Z": "until",
		"until=2026-03-01": "until",
		"credential=":      "credential", "credential=password": "credential", "outcome=": "outcome",
		"outcome=good":   "outcome",
		"limit=":         "limit",
		"project_id=%0B": "project_id", "project_id=%20": "project_id", "project_id=" +
			strings.Repeat("x", 129): "project_id",
	} {
		w.Do(servertest.Owner, "GET", "/api/activity?"+query, "").Expect(http.StatusBadRequest, argument+" is ")
	}
	for _, query := range []string{
		"user=&credential_id=&client=&tool=&action=&project_id=&before=", "since=2026-03-01T09:00:00.25%2B05:30",
		"project_id=" + strings.Repeat("ä", 128),
		"project_id=" + strings.Repeat("ä", 128) + "/" + strings.Repeat("x", 128), "tool=%0B", "client=%00",
	} {
		w.Do(servertest.Owner, "GET", "/api/activity?"+query, "").Expect(http.StatusOK, `"activities":[`)
	}
	w.Do(servertest.Owner, "GET", "/api/activity?before=%0B", "").Expect(http.StatusNotFound, "before: call ")
}

func TestNoActivityRecordsNothing(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{NoActivity: true})
	w.Do(servertest.Owner, "POST", "/tools/call",
		`{"name":"memory","arguments":{"action":"search","query":"x"}}`).Expect(http.StatusOK)
	w.Do(servertest.Owner, "GET", "/api/projects", "").Expect(http.StatusOK)
	if all := recorded(w, servertest.Owner); len(all) > 0 {
		t.Errorf("recorded are %+v; want none", all)
	}
}
