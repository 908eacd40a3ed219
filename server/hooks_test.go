package server_test

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// card is a number that the hooks of these tests take out of every text.
const card = "4111111111111111"

// worldWithHooks is a world whose store has hooks that take out the card, and refuse to delete.
func worldWithHooks(t *testing.T, log *syncBuffer, seen *[]string) (w *world, path string) {
	t.Helper()
	p, err := template()
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "world.db")
	if err := os.WriteFile(path, p.database, 0o600); err != nil {
		t.Fatal(err)
	}
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
	store, err := souvenir.Open(t.Context(), path, &souvenir.Options{Hooks: []souvenir.Hooks{hooks},
		Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, p, store, server.Options{}), path
}

func TestHooksApplyToToolsMCPAndPages(t *testing.T) {
	log, seen := &syncBuffer{}, []string{}
	w, path := worldWithHooks(t, log, &seen)
	who := w.users[owner]
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
		{"memory", "update", `{"action": "update", "id": "` + w.private + `", "content": "now ` + card + `"}`},
		{"memory", "search", `{"action": "search", "query": "` + card + `"}`},
		{"memory", "search", `{"action": "get_context", "query": "` + card + `"}`},
		{"get_module_state", "search", `{"module_name": "` + card + `"}`},
	} {
		a, text := w.call(owner, call.tool, call.arguments)
		a.expect(http.StatusOK).without(card)
		if strings.Contains(text, card) {
			t.Errorf("%s answers with what was taken out: %s", call.tool, text)
		}
		expect("HTTP, "+call.kind, call.kind)
	}
	session := w.mustConnect(owner, "2025-06-18")
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "memory", Arguments: map[string]any{
		"action": "store", "content": "over MCP " + card}})
	if err != nil || result.IsError {
		t.Fatal(err, result)
	}
	expect("MCP", "store")
	a, _ := w.call(owner, "memory", `{"action": "delete", "id": "`+w.private+`"}`)
	a.expect(http.StatusForbidden, "nothing is deleted here")
	w.at.Close()
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{"the file": string(file), "the store's log": log.String(),
		"the server's log": w.log.String()} {
		if strings.Contains(text, card) {
			t.Errorf("%s has what was taken out", where)
		}
	}
}

// TestNoTextOfMemoriesInLogsOfAnyLevel calls tools with a text that is in no log afterwards, with errors and without.
func TestNoTextOfMemoriesInLogsOfAnyLevel(t *testing.T) {
	p, err := template()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "world.db")
	if err := os.WriteFile(path, p.database, 0o600); err != nil {
		t.Fatal(err)
	}
	log := &syncBuffer{}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	store, err := souvenir.Open(t.Context(), path, &souvenir.Options{Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	w := serve(t, p, store, server.Options{})
	for _, arguments := range []string{
		`{"action": "store", "content": "` + card + `", "tags": "` + card + `"}`,
		`{"action": "store", "content": "` + card + `", "importance": "` + card + `"}`,
		`{"action": "update", "id": "` + w.private + `", "content": "` + card + `"}`,
		`{"action": "update", "id": "` + card + `", "content": "` + card + `"}`,
		`{"action": "search", "query": "` + card + `"}`,
		`{"action": "search", "query": "` + card + `", "limit": -1}`,
		`{"action": "` + card + `"}`,
	} {
		w.call(owner, "memory", arguments)
	}
	w.call(owner, card, `{}`)
	if log := log.String() + w.log.String(); strings.Contains(log, card) || !strings.Contains(log, "request_id=") {
		t.Errorf("the logs have a text of a memory, or no requests:\n%s", log)
	}
}
