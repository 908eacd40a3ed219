package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/storetest"
	"github.com/souvenir-ai/souvenir/mcpserver"
)

// The world: anna owns the projects bridge, which ben reads and carl writes, and vault, which is hers alone, and has
// memories and files outside of both. dora has her own memory, and a project with the same id, bridge, that she shares
// with anna. Words that begin with "secret" are never for everyone.

const (
	secretDiary  = "secretdiary"  // anna's, in no project
	secretVault  = "secretvault"  // anna's, in vault
	secretRecipe = "secretrecipe" // dora's
	granite      = "granite"      // in anna's bridge
	timber       = "timber"       // in dora's bridge
)

// persona sends messages, and must never see some words.
type persona struct {
	access souvenir.Access
	scopes []souvenir.Scope // nil: all
	never  []string
}

var personas = map[string]persona{
	"owner":    {access: souvenir.Access{User: "anna"}, never: []string{secretRecipe}},
	"reader":   {access: souvenir.Access{User: "ben"}, never: []string{secretDiary, secretVault, secretRecipe, timber}},
	"writer":   {access: souvenir.Access{User: "carl"}, never: []string{secretDiary, secretVault, secretRecipe, timber}},
	"stranger": {access: souvenir.Access{User: "dora"}, never: []string{secretDiary, secretVault, granite}},
	"newcomer": {access: souvenir.Access{User: "emil"},
		never: []string{secretDiary, secretVault, secretRecipe, granite, timber}},
	"limited": {access: souvenir.Access{User: "anna", Projects: []string{"bridge"}},
		never: []string{secretDiary, secretVault, secretRecipe, timber}},
	"nothing": {access: souvenir.Access{User: "anna", Projects: []string{}},
		never: []string{secretDiary, secretVault, secretRecipe, granite, timber}},
	"read-only": {access: souvenir.Access{User: "anna", ReadOnly: true}, never: []string{secretRecipe}},
	"files": {access: souvenir.Access{User: "anna"},
		scopes: []souvenir.Scope{souvenir.ScopeFilesRead, souvenir.ScopeFilesWrite},
		never:  []string{secretRecipe, "spans the river", "Bridge"}},
	"memories": {access: souvenir.Access{User: "anna"}, scopes: []souvenir.Scope{souvenir.ScopeMemoryRead},
		never: []string{secretRecipe, "granite, stone by stone", "souvenir://files/"}},
}

const bridgeTodo = "## Constitution\nTests first.\n\n## Spec\nA bridge of granite.\n\n## Plan\nStone by stone.\n\n## " +
	"Tasks\n- [x] T1 measure the river\n- [ ] T2 order granite\n\n## Gaps\nWho pays for the granite?\n"

// template returns a file of the world, and the ids in it.
var template = sync.OnceValues(func() (made struct {
	bytes []byte
	ids   map[string]string
}, err error) {
	folder, err := os.MkdirTemp("", "souvenir-mcp")
	if err != nil {
		return made, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "template.db")
	if made.ids, err = fill(context.Background(), path); err != nil {
		return made, err
	}
	made.bytes, err = os.ReadFile(path)
	return made, err
})

func fill(ctx context.Context, path string) (ids map[string]string, err error) {
	store, err := souvenir.Open(ctx, path, &souvenir.Options{Embedder: storetest.Words{}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	ids = map[string]string{}
	note := func(name, id string, failed error) {
		ids[name], err = id, errors.Join(err, failed)
	}
	views := map[string]*souvenir.Store{}
	for _, user := range []string{"anna", "ben", "carl", "dora", "emil"} {
		added, failed := store.Accounts().AddUser(ctx, souvenir.NewUser{ID: user, Name: user})
		note(user, added.ID, failed)
		views[user] = store.As(souvenir.Access{User: user})
	}
	for _, p := range []struct{ user, id, name string }{{"anna", "bridge", "Bridge"}, {"anna", "vault", "Vault"},
		{"dora", "bridge", "Timber bridge"}} {
		added, failed := views[p.user].AddProject(ctx, souvenir.NewProject{ID: p.id, Name: p.name})
		note(p.user+" "+p.id, added.ID, failed)
	}
	for _, m := range []struct {
		owner, user string
		role        souvenir.MemberRole
	}{{"anna", "ben", "reader"}, {"anna", "carl", "writer"}, {"dora", "anna", "reader"}} {
		_, failed := store.AddMember(ctx,
			souvenir.NewMember{Project: souvenir.ProjectRef{ID: m.owner + "/bridge"}, User: m.user, Role: m.role})
		note("member", m.user, failed)
	}
	for _, m := range []struct {
		name, user string
		souvenir.NewMemory
	}{
		{"diary", "anna", souvenir.NewMemory{Content: secretDiary + " of anna"}},
		{"vault", "anna", souvenir.NewMemory{Content: secretVault + " of anna", ProjectID: "vault",
			EventType: "project-main"}},
		{"pillars", "anna", souvenir.NewMemory{Content: "# Pillars\n\nThe pillars are of granite.", ProjectID: "bridge",
			EventType: "decision", Tags: []string{"stone"}}},
		{"main", "anna", souvenir.NewMemory{Content: "The bridge of granite spans the river.", ProjectID: "bridge",
			EventType: "project-main"}},
		{"case", "anna", souvenir.NewMemory{Content: "Which granite to order", ProjectID: "bridge",
			EventType: "conversation"}},
		{"recipe", "dora", souvenir.NewMemory{Content: secretRecipe + " of dora"}},
		{"timber", "dora", souvenir.NewMemory{Content: "A bridge of timber.", ProjectID: "bridge",
			EventType: "project-main"}},
	} {
		stored, failed := views[m.user].AddMemory(ctx, m.NewMemory)
		note(m.name, stored.ID, failed)
	}
	for _, r := range []souvenir.NewRule{{ProjectID: "bridge", Type: "do", Content: "Use granite."},
		{ProjectID: "bridge", Type: "dont", Content: "Never paint granite."},
		{Type: "dont", Content: "Never tell of the " + secretDiary}} {
		stored, failed := views["anna"].SetRule(ctx, r)
		note("rule", stored.ID, failed)
	}
	todo, failed := views["anna"].SetTodo(ctx, souvenir.NewTodo{ProjectID: "bridge", Content: bridgeTodo})
	note("todo", todo.ID, failed)
	for _, f := range []struct{ name, memory, content string }{
		{"plan.txt", "main", "granite, stone by stone"}, {"stamp.bin", "main", "\x00\x01\xff"},
		{"large.txt", "main", strings.Repeat("granite\n", 140_000)}, {secretDiary + ".txt", "diary", "dear"},
		{"empty.txt", "main", ""},
	} {
		stored, failed := views["anna"].AddFile(ctx, souvenir.NewFile{Filename: f.name, MemoryID: ids[f.memory]},
			strings.NewReader(f.content))
		note(f.name, stored.ID, failed)
	}
	return ids, err
}

// world is a store for one test.
type world struct {
	*testing.T
	store *souvenir.Store
	ids   map[string]string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	made, err := template()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "world.db")
	if err := os.WriteFile(path, made.bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := souvenir.Open(t.Context(), path, &souvenir.Options{Embedder: storetest.Words{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return &world{t, store, made.ids}
}

// options returns the options of a server for a persona; a test may set more.
func (w *world) options(who string) (view *souvenir.Store, options mcpserver.Options) {
	w.Helper()
	p, ok := personas[who]
	if !ok {
		w.Fatalf("got persona %q, want a known one", who)
	}
	if p.scopes != nil {
		options.Allows = souvenir.Principal{Scopes: p.scopes}.Allows
	}
	return w.store.As(p.access), options
}

// connect connects a client to a server.
func connect(t *testing.T, server *mcp.Server, revision string) *mcp.ClientSession {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	serving, err := server.Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), here, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(session.Close(), serving.Wait()); err != nil {
			t.Error(err)
		}
	})
	return session
}

// as connects a persona, with the newest revision.
func (w *world) as(who string) *mcp.ClientSession {
	w.Helper()
	view, options := w.options(who)
	return connect(w.T, mcpserver.New(view, &options), newest)
}

const (
	newest    = "2026-07-28"
	handshake = "2025-11-25" // the last one with initialize
)

// call calls a tool.
func call(t *testing.T, session *mcp.ClientSession, tool, arguments string) (text string, result *mcp.CallToolResult) {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatalf("%s %s: %v", tool, arguments, err)
	}
	for _, c := range result.Content {
		text += c.(*mcp.TextContent).Text
	}
	return text, result
}

// asJSON returns a value as JSON, to search it for words.
func asJSON(t *testing.T, value any) string {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}
