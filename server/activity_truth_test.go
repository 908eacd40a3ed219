package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// speakMCP sends a message over MCP as a client with a library's User-Agent, with or without a session.
func speakMCP(w *servertest.World, session, message string) servertest.Answer {
	w.T.Helper()
	r := w.Request(servertest.Owner, "POST", "/mcp", strings.NewReader(message))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("User-Agent", "python-httpx/0.28.1")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	return w.Send(r)
}

func initializeAs(name string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
		`"clientInfo":{"name":"` + name + `","version":"1"}}}`
}

const searchOverMCP = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"memory",` +
	`"arguments":{"action":"search","query":"soup"}}}`

// Three clients with the same token and User-Agent call in turns. Each call is recorded for the client that made it.
func TestCallsAreDistinguishedByTheirSession(t *testing.T) {
	w := servertest.New(t, server.Options{})
	w.Doc = nil
	names := []string{"claude-desktop", "cursor", "codex"}
	sessions := map[string]string{}
	for _, name := range names {
		a := speakMCP(w, "", initializeAs(name)).Expect(http.StatusOK, "souvenir")
		if sessions[name] = a.Header.Get("Mcp-Session-Id"); sessions[name] == "" {
			t.Fatalf("got no session of %s, want an Mcp-Session-Id", name)
		}
	}
	var want []string
	for range 3 {
		for _, name := range names {
			speakMCP(w, sessions[name], searchOverMCP).Expect(http.StatusOK)
			want = append(want, name+" 1")
		}
	}
	speakMCP(w, "", searchOverMCP).Expect(http.StatusOK) // it could be any of the three
	speakMCP(w, "made up", searchOverMCP).Expect(http.StatusOK)
	speakMCP(w, strings.Repeat("x", 4000)+".y", searchOverMCP).Expect(http.StatusOK)
	w.Do(servertest.Owner, "GET", "/api/projects", "").Expect(http.StatusOK)
	want = append(want, "python-httpx/0.28.1", "python-httpx/0.28.1", "python-httpx/0.28.1", "Go-http-client/1.1")
	var got []string
	for _, a := range recorded(w, servertest.Owner) {
		if a.Tool != "initialize" {
			got = append(got, a.Client)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got the calls of\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A client without a session is identified by what it reported, unless another one has the same credential and
// User-Agent.
func TestAClientWithoutASession(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	w.Doc = nil
	speakMCP(w, "", initializeAs("old-client")).Expect(http.StatusOK)
	speakMCP(w, "", searchOverMCP).Expect(http.StatusOK)
	if all := recorded(w, servertest.Owner); len(all) != 2 || all[1].Client != "old-client 1" {
		t.Errorf(`recorded are %+v, want two calls, the second of client "old-client 1"`, all)
	}
}

// A writer who has a project of the same id deletes a file of the shared one.
func TestTheProjectOfAChangedFileIsItsOwn(t *testing.T) {
	w := servertest.New(t, server.Options{})
	w.Doc = nil
	writer, shop := w.Users[servertest.Writer], w.Users[servertest.Owner]+"/shop"
	if _, err := w.Store.As(souvenir.Access{User: writer}).AddProject(t.Context(),
		souvenir.NewProject{ID: "shop", Name: "My shop"}); err != nil {
		t.Fatal(err)
	}
	w.Do(servertest.Writer, "DELETE", "/api/files/"+w.File, "").Expect(http.StatusOK)
	for project, want := range map[string]int{writer + "/shop": 0, shop: 1} {
		page, err := w.Store.As(souvenir.Access{User: writer}).Insights().ActivityPage(t.Context(),
			souvenir.ActivityQuery{ProjectID: project})
		if err != nil || len(page.Activities) != want {
			t.Errorf("in %s are %+v, %v, want no error and %d", project, page.Activities, err, want)
		}
	}
}

// The filter by project finds changes and deletions in it, by tools, endpoints and pages.
func TestTheProjectOfCallsThatChangeSomething(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	stored := w.AddMemory(servertest.Owner, souvenir.NewMemory{Content: "To be changed and deleted.", ProjectID: "shop"})
	page := w.AddMemory(servertest.Owner, souvenir.NewMemory{Content: "To be deleted on a page.", ProjectID: "shop"})
	w.Call(servertest.Owner, "memory", `{"action":"update","id":"`+stored.ID+`","content":"Changed."}`)
	w.Call(servertest.Owner, "memory", `{"action":"delete","id":"`+stored.ID+`"}`)
	w.Call(servertest.Owner, "memory", `{"action":"delete","id":"`+w.Private+`"}`)
	w.Call(servertest.Stranger, "memory", `{"action":"delete","id":"`+w.Memory+`"}`)
	w.Do(servertest.Owner, "DELETE", "/api/files/"+w.File, "").Expect(http.StatusOK)
	b := w.SignedIn(servertest.Owner)
	b.Submit(b.Get("/memories/"+page.ID), "/memories/"+page.ID+"/delete", nil)
	var listed struct{ Activities []souvenir.Activity }
	w.Do(servertest.Owner, "GET", "/api/activity?project_id=shop", "").Expect(http.StatusOK).Decode(&listed)
	var got []string
	for _, a := range listed.Activities {
		got = append(got, strings.TrimSpace(a.Tool+" "+a.Action))
	}
	slices.Sort(got)
	if want := []string{"DELETE /api/files/{id}", "POST /memories/{id}/delete", "memory delete",
		"memory update"}; !slices.Equal(got, want) {
		t.Errorf("in the project are %q, want %q", got, want)
	}
	w.Doc = nil
	others, err := w.Store.Insights().ActivityPage(t.Context(), souvenir.ActivityQuery{User: w.Users[servertest.Stranger]})
	if err != nil || len(others.Activities) != 1 || others.Activities[0].ProjectID != "" {
		t.Errorf("of the stranger's calls %+v are recorded, %v, want no error, 1 activity and no project ID", others, err)
	}
}

// If many calls come at once, each is recorded or counted as lost.
func TestAFloodOfCallsIsCounted(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{QueuePerUser: 100_000})
	w.Doc = nil
	const workers = 50
	calls := 20_000
	if !longtest.On() {
		calls = 6_000
	}
	var group sync.WaitGroup
	for i := range workers {
		group.Go(func() {
			for j := range calls / workers {
				err := w.Store.Upkeep().RecordActivity(t.Context(), souvenir.NewActivity{
					Principal: souvenir.Principal{Access: souvenir.Access{User: w.Users[servertest.Owner]}},
					Tool:      fmt.Sprint("flood ", i, ".", j)})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 200 {
		w.Do(servertest.Owner, "GET", "/api/projects/shop", "").Expect(http.StatusOK)
	}
	group.Wait()
	before, kept, lost := "", 0, 0
	for {
		page, err := w.Store.Insights().ActivityPage(t.Context(),
			souvenir.ActivityQuery{Limit: souvenir.MaxActivityLimit, Before: before})
		if err != nil {
			t.Fatal(err)
		}
		kept, lost = kept+len(page.Activities), page.Lost
		if !page.HasMore {
			break
		}
		before = page.Activities[len(page.Activities)-1].ID
	}
	if kept+lost != calls+200 || lost != 0 {
		t.Errorf("%d calls are kept and %d counted as lost, want %d kept and none lost", kept, lost, calls+200)
	}
	w.SignedIn(servertest.Owner).Get("/activity").Expect(http.StatusOK).Without("could not be recorded")
}
