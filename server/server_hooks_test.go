package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"context"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// card is a number that the hooks of these tests remove from every text.
const card = "4111111111111111"

// worldWithHooks is a world whose store has hooks that remove the card and refuse deletions.
func worldWithHooks(t *testing.T, log *servertest.SyncBuffer, seen *[]string) (w *servertest.World,
	d servertest.Database) {
	t.Helper()
	p := servertest.Template(t)
	redact := func(s *string) { *s = strings.ReplaceAll(*s, card, "[card]") }
	hooks := souvenir.Hooks{
		BeforeStore: func(_ context.Context, o souvenir.Operation, m *souvenir.NewMemory) error {
			*seen = append(*seen, string(o.Kind)+" for "+o.Access.User)
			redact(&m.Content)
			for key, value := range m.Metadata {
				if text, ok := value.(string); ok {
					redact(&text)
					m.Metadata[key] = text
				}
			}
			for i := range m.Tags {
				redact(&m.Tags[i])
			}
			return nil
		},
		BeforeUpdate: func(_ context.Context, o souvenir.Operation, u *souvenir.MemoryUpdate) error {
			*seen = append(*seen, string(o.Kind)+" for "+o.Access.User)
			if u.Content != nil {
				redact(u.Content)
			}
			return nil
		},
		BeforeDelete: func(_ context.Context, o souvenir.Operation) error {
			return &souvenir.Error{Kind: souvenir.KindForbidden, Message: "nothing is deleted here"}
		},
		BeforeSearch: func(_ context.Context, o souvenir.Operation, q *souvenir.Query) error {
			*seen = append(*seen, string(o.Kind)+" for "+o.Access.User)
			redact(&q.Text)
			return nil
		},
	}
	d = p.Copy(t)
	store := d.Open(t, &souvenir.Options{Hooks: []souvenir.Hooks{hooks},
		Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	return servertest.Serve(t, p, store, server.Options{}), d
}

func TestHooksApplyToToolsMCPAndPages(t *testing.T) {
	log, seen := &servertest.SyncBuffer{}, []string{}
	w, d := worldWithHooks(t, log, &seen)
	who := w.Users[servertest.Owner]
	expect := func(what, kind string) {
		t.Helper()
		if want := []string{kind + " for " + who}; !slices.Equal(seen, want) {
			t.Errorf("%s: the hooks saw %q, want %q", what, seen, want)
		}
		seen = nil
	}
	for _, call := range []struct{ tool, kind, arguments string }{
		{"memory", "store", `{"action": "store", "content": "pays with ` + card + `", "tags": "` + card +
			`", "metadata": {"number": "` + card + `"}}`},
		{"memory", "update", `{"action": "update", "id": "` + w.Private + `", "content": "now ` + card + `"}`},
		{"memory", "search", `{"action": "search", "query": "` + card + `"}`},
		{"memory", "search", `{"action": "get_context", "query": "` + card + `"}`},
		{"get_module_state", "search", `{"module_name": "` + card + `"}`},
	} {
		a, text := w.Call(servertest.Owner, call.tool, call.arguments)
		a.Expect(http.StatusOK).Without(card)
		if strings.Contains(text, card) {
			t.Errorf("%s answers with the removed text: %s, want no %q in the text", call.tool, text, card)
		}
		seen = slices.Compact(seen) // get_context searches memories and files
		expect("HTTP, "+call.kind, call.kind)
	}
	session := mustConnect(w, servertest.Owner, "2025-06-18")
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "memory", Arguments: map[string]any{
		"action": "store", "content": "over MCP " + card}})
	if err != nil || result.IsError {
		t.Fatalf("got %+v, %v, want a result without an error", result, err)
	}
	expect("MCP", "store")
	a, _ := w.Call(servertest.Owner, "memory", `{"action": "delete", "id": "`+w.Private+`"}`)
	a.Expect(http.StatusForbidden, "nothing is deleted here")
	w.HTTP.Close()
	if err := w.Store.Close(); err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{"the store's log": log.String(), "the server's log": w.Log.String()}
	if path := d.File(); path != "" {
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts["the file"] = string(file)
	}
	for where, text := range texts {
		if strings.Contains(text, card) {
			t.Errorf("%s still has the removed text: got %v, want no %q in the text", where, text, card)
		}
	}
}

// TestNoTextOfMemoriesInLogsOfAnyLevel calls tools with a text, with and without errors, and checks that no log
// contains it.
func TestNoTextOfMemoriesInLogsOfAnyLevel(t *testing.T) {
	p := servertest.Template(t)
	log := &servertest.SyncBuffer{}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w := servertest.Serve(t, p, p.Copy(t).Open(t, &souvenir.Options{Logger: logger}), server.Options{})
	for _, arguments := range []string{
		`{"action": "store", "content": "` + card + `", "tags": "` + card + `"}`,
		`{"action": "store", "content": "` + card + `", "importance": "` + card + `"}`,
		`{"action": "update", "id": "` + w.Private + `", "content": "` + card + `"}`,
		`{"action": "update", "id": "` + card + `", "content": "` + card + `"}`,
		`{"action": "search", "query": "` + card + `"}`,
		`{"action": "search", "query": "` + card + `", "limit": -1}`,
		`{"action": "` + card + `"}`,
	} {
		w.Call(servertest.Owner, "memory", arguments)
	}
	w.Call(servertest.Owner, card, `{}`)
	if log := log.String() + w.Log.String(); strings.Contains(log, card) || !strings.Contains(log, "request_id=") {
		t.Errorf("the logs have a text of a memory, or no requests, want no %q and \"request_id=\" in the log:\n%s", card,
			log)
	}
}
