package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// speakMCP sends a message over MCP as a client with the User-Agent of a library, in a session or in none.
func (w *world) speakMCP(session, message string) answer {
	w.t.Helper()
	r := w.request(owner, "POST", "/mcp", strings.NewReader(message))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("User-Agent", "python-httpx/0.28.1")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	return w.send(r)
}

func initializeAs(name string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
		`"clientInfo":{"name":"` + name + `","version":"1"}}}`
}

const searchOverMCP = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"memory",` +
	`"arguments":{"action":"search","query":"soup"}}}`

// Three clients with one token and one User-Agent, whose calls come in turns: each call is booked on the client that
// made it.
func TestCallsAreDistinguishedByTheirSession(t *testing.T) {
	w := newWorld(t, server.Options{})
	w.doc = nil
	names := []string{"claude-desktop", "cursor", "codex"}
	sessions := map[string]string{}
	for _, name := range names {
		a := w.speakMCP("", initializeAs(name)).expect(http.StatusOK, "souvenir")
		if sessions[name] = a.header.Get("Mcp-Session-Id"); sessions[name] == "" {
			t.Fatal("no session began")
		}
	}
	var want []string
	for range 3 {
		for _, name := range names {
			w.speakMCP(sessions[name], searchOverMCP).expect(http.StatusOK)
			want = append(want, name+" 1")
		}
	}
	w.speakMCP("", searchOverMCP).expect(http.StatusOK) // which of the three it is, no one can say
	w.speakMCP("made up", searchOverMCP).expect(http.StatusOK)
	w.speakMCP(strings.Repeat("x", 4000)+".y", searchOverMCP).expect(http.StatusOK)
	w.do(owner, "GET", "/api/projects", "").expect(http.StatusOK)
	want = append(want, "python-httpx/0.28.1", "python-httpx/0.28.1", "python-httpx/0.28.1", "Go-http-client/1.1")
	var got []string
	for _, a := range w.recorded(owner) {
		if a.Tool != "initialize" {
			got = append(got, a.Client)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("calls are booked on\n%s\nnot\n%s; got %v, want %v", strings.Join(got, "\n"), strings.Join(want, "\n"), got,
			want)
	}
}

// A client that keeps no session is known by what it told, as long as no other one has the same credential and
// User-Agent.
func TestAClientWithoutASession(t *testing.T) {
	w := newWorld(t, server.Options{})
	w.doc = nil
	w.speakMCP("", initializeAs("old-client")).expect(http.StatusOK)
	w.speakMCP("", searchOverMCP).expect(http.StatusOK)
	if all := w.recorded(owner); len(all) != 2 || all[1].Client != "old-client 1" {
		t.Errorf("recorded are %+v", all)
	}
}

// The filter by project finds what was changed and deleted there, by tools, endpoints and pages.
func TestTheProjectOfCallsThatChangeSomething(t *testing.T) {
	w := newWorld(t, server.Options{})
	stored := w.addMemory(owner, souvenir.NewMemory{Content: "To be changed and deleted.", ProjectID: "shop"})
	page := w.addMemory(owner, souvenir.NewMemory{Content: "To be deleted on a page.", ProjectID: "shop"})
	w.call(owner, "memory", `{"action":"update","id":"`+stored.ID+`","content":"Changed."}`)
	w.call(owner, "memory", `{"action":"delete","id":"`+stored.ID+`"}`)
	w.call(owner, "memory", `{"action":"delete","id":"`+w.private+`"}`)
	w.call(stranger, "memory", `{"action":"delete","id":"`+w.memory+`"}`)
	w.do(owner, "DELETE", "/api/files/"+w.file, "").expect(http.StatusOK)
	b := w.signedIn(owner)
	b.submit(b.get("/memories/"+page.ID), "/memories/"+page.ID+"/delete", nil)
	var listed struct{ Activities []souvenir.Activity }
	w.do(owner, "GET", "/api/activity?project_id=shop", "").expect(http.StatusOK).decode(&listed)
	var got []string
	for _, a := range listed.Activities {
		got = append(got, strings.TrimSpace(a.Tool+" "+a.Action))
	}
	slices.Sort(got)
	if want := []string{"DELETE /api/files/{id}", "POST /memories/{id}/delete", "memory delete",
		"memory update"}; !slices.Equal(got, want) {
		t.Errorf("in the project are %q, want %q", got, want)
	}
	w.doc = nil
	others, err := w.store.Insights().Activities(t.Context(), souvenir.ActivityQuery{User: w.users[stranger]})
	if err != nil || len(others.Activities) != 1 || others.Activities[0].ProjectID != "" {
		t.Errorf("of the stranger's calls %+v are recorded, %v", others, err)
	}
}

// However many calls come at once, each is recorded, or counted as lost.
func TestAFloodOfCallsIsCounted(t *testing.T) {
	w := newWorld(t, server.Options{QueuePerUser: 100_000})
	w.doc = nil
	const workers = 50
	calls := 20_000
	if !longtest.On() {
		calls = 6_000
	}
	var group sync.WaitGroup
	for i := range workers {
		group.Go(func() {
			for j := range calls / workers {
				err := w.store.Upkeep().RecordActivity(t.Context(), souvenir.NewActivity{
					Principal: souvenir.Principal{Access: souvenir.Access{User: w.users[owner]}},
					Tool:      fmt.Sprint("flood ", i, ".", j)})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 200 {
		w.do(owner, "GET", "/api/projects/shop", "").expect(http.StatusOK)
	}
	group.Wait()
	before, kept, lost := "", 0, 0
	for {
		page, err := w.store.Insights().Activities(t.Context(),
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
		t.Errorf("%d calls were made, %d are kept and %d counted as lost", calls+200, kept, lost)
	}
	w.signedIn(owner).get("/activity").expect(http.StatusOK).without("could not be recorded")
}
