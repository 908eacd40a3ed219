// Package servertest runs a whole server for tests, with users, tokens and browsers.
//
// In each [World], Olivia has a project, shop, which Rita may read and Walter may write, and other data that only she
// may see. Sam has access to none of it. Ada is an admin, which gives her no access to other users' memories.
package servertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// The callers. Each has a token, except the guest.
const (
	Guest    = "guest"
	Stranger = "stranger"
	Reader   = "reader"
	Writer   = "writer"
	Owner    = "owner"
	Admin    = "admin"
	Limited  = "limited"   // Olivia's token for the project shop alone
	ReadOnly = "read-only" // Olivia's token that carries memory:read and files:read
	NoFiles  = "no-files"  // Olivia's token that carries memory:write alone
	NoMemory = "no-memory" // Olivia's token that carries files:write alone
	Revoked  = "revoked"   // Olivia's token that she has deleted
	Disabled = "disabled"  // the token of someone whose account is disabled
	Garbage  = "garbage"   // something that looks like a token
)

// Values that every World has.
const (
	Secret   = "swordfish"             // in all data that only Olivia may see
	PublicAt = "http://memory.example" // the default public URL of a World
)

// Plan holds the ids and tokens of the data in a World.
type Plan struct {
	Tokens   map[string]string // by caller
	TokenIDs map[string]string
	Users    map[string]string // ids, by caller
	Memory   string            // in shop
	Private  string            // Olivia's, in no project
	File     string            // linked to memory
	Hidden   string            // linked to private

	template Database // to copy, closed
	file     []byte   // its content, if it is a file
}

// newPlan fills a database, and closes it.
func newPlan(d Database) (Plan, error) {
	p := Plan{Tokens: map[string]string{Garbage: "mcp_" + strings.Repeat("x", 43)}, TokenIDs: map[string]string{},
		Users: map[string]string{}, template: d}
	store, err := d.open(nil)
	if err != nil {
		return p, err
	}
	return p, errors.Join(p.Fill(store), store.Close())
}

// Fill stores the data of a World in an empty store, and notes its ids and tokens.
func (p *Plan) Fill(store *souvenir.Store) error {
	steps := FirstError{}
	for caller, name := range map[string]string{Owner: "olivia", Reader: "rita", Writer: "walter", Stranger: "sam",
		Admin: "ada", Disabled: "dora"} {
		role := souvenir.RoleUser
		if caller == Admin {
			role = souvenir.RoleAdmin
		}
		u, err := store.Accounts().AddUser(background, souvenir.NewUser{Name: name, Role: role, Email: name + "@example.com"})
		steps.Note(err)
		p.Users[caller] = u.ID
	}
	view := store.As(souvenir.Access{User: p.Users[Owner]})
	shop := souvenir.ProjectRef{ID: "shop"}
	_, err := view.AddProject(background, souvenir.NewProject{ID: "shop", Name: "The shop"})
	steps.Note(err)
	_, err = view.AddProject(background, souvenir.NewProject{ID: "plot", Name: Secret})
	steps.Note(err)
	shop.ID = p.Users[Owner] + "/shop"
	_, err = store.AddMember(background, souvenir.NewMember{Project: shop, User: "rita", Role: souvenir.MemberReader})
	steps.Note(err)
	_, err = store.AddMember(background, souvenir.NewMember{Project: shop, User: "walter", Role: souvenir.MemberWriter})
	steps.Note(err)
	shared, err := view.AddMemory(background, souvenir.NewMemory{Content: "The shop opens at nine.", ProjectID: "shop"})
	steps.Note(err)
	private, err := view.AddMemory(background,
		souvenir.NewMemory{Content: "The word is " + Secret + ".", Tags: []string{Secret}})
	steps.Note(err)
	p.Memory, p.Private = shared.ID, private.ID
	file, err := view.AddFile(background,
		souvenir.NewFile{Filename: "menu.txt", MemoryID: p.Memory, Tags: []string{"food", "daily"}, Category: "card"},
		strings.NewReader("soup\nfish\n"))
	steps.Note(err)
	hidden, err := view.AddFile(background, souvenir.NewFile{Filename: Secret + ".txt", MemoryID: p.Private},
		strings.NewReader(Secret))
	steps.Note(err)
	p.File, p.Hidden = file.ID, hidden.ID
	_, err = view.SetPreferences(background, map[string]any{"theme": Secret})
	steps.Note(err)
	all := append(souvenir.DefaultScopes(), souvenir.ScopeAccount)
	for _, t := range []struct {
		caller string
		souvenir.NewToken
	}{
		{Owner, souvenir.NewToken{Scopes: all}},
		{Reader, souvenir.NewToken{Scopes: all}},
		{Writer, souvenir.NewToken{Scopes: all}},
		{Stranger, souvenir.NewToken{Scopes: all}},
		{Admin, souvenir.NewToken{Scopes: souvenir.Scopes()}},
		{Disabled, souvenir.NewToken{Scopes: all}},
		{Limited, souvenir.NewToken{User: "olivia", Scopes: all, Projects: []string{"shop"}}},
		{ReadOnly, souvenir.NewToken{User: "olivia",
			Scopes: []souvenir.Scope{souvenir.ScopeMemoryRead, souvenir.ScopeFilesRead}}},
		{NoFiles, souvenir.NewToken{User: "olivia", Scopes: []souvenir.Scope{souvenir.ScopeMemoryWrite}}},
		{NoMemory, souvenir.NewToken{User: "olivia", Scopes: []souvenir.Scope{souvenir.ScopeFilesWrite}}},
		{Revoked, souvenir.NewToken{User: "olivia"}},
	} {
		n := t.NewToken
		n.Name = t.caller
		if n.User == "" {
			n.User = p.Users[t.caller]
		}
		user, err := store.Accounts().GetUser(background, n.User)
		steps.Note(err)
		n.User = ""
		added, err := store.As(souvenir.Access{User: user.ID}).Accounts().AddToken(background, n)
		steps.Note(err)
		p.Tokens[t.caller], p.TokenIDs[t.caller] = added.Value, added.ID
	}
	_, err = view.Accounts().AddClient(background,
		souvenir.NewClient{ID: "app", Name: Secret, RedirectURIs: []string{"https://app.example/" + Secret}})
	steps.Note(err)
	steps.Note(view.Accounts().RevokeToken(background, p.TokenIDs[Revoked]))
	yes := true
	_, err = store.Accounts().UpdateUser(background, "dora", souvenir.UserUpdate{Disabled: &yes})
	steps.Note(err)
	steps.Note(store.Upkeep().WaitEmbedded(background))
	return steps.Err
}

// FirstError keeps the first error of several steps.
type FirstError struct{ Err error }

// Note keeps an error, if it is the first.
func (f *FirstError) Note(err error) {
	if f.Err == nil {
		f.Err = err
	}
}

// World is a server with a store of its own.
type World struct {
	Plan
	T        *testing.T
	Store    *souvenir.Store
	Database Database // of a World from New
	Server   *server.Server
	HTTP     *httptest.Server
	Log      *SyncBuffer
	Doc      *Document

	routes *sync.Map // by path, whether there is one
	sizes  *sync.Map // by address, the compressed size in bytes of a file that pages load
}

// New starts a server with a copy of the template. The options' zero values get defaults for tests.
func New(t *testing.T, options server.Options) *World {
	t.Helper()
	p := Template(t)
	d := p.Copy(t)
	w := Serve(t, p, d.Open(t, nil), options)
	w.Database = d
	return w
}

// Serve starts a server on a store. Both end with the test.
func Serve(t *testing.T, p Plan, store *souvenir.Store, options server.Options) *World {
	t.Helper()
	w := &World{Plan: p, T: t, Store: store, Log: &SyncBuffer{}, routes: &sync.Map{}, sizes: &sync.Map{}}
	if options.PublicURL == "" {
		options.PublicURL = PublicAt
	}
	options.Logger = slog.New(slog.NewTextHandler(w.Log, nil))
	w.Server = server.New(store, &options)
	w.HTTP = httptest.NewServer(w.Server)
	t.Cleanup(func() {
		w.HTTP.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		for caller, token := range w.Tokens {
			if strings.Contains(w.Log.String(), token) {
				t.Errorf("the log has the token of %s, want no %q in the log:\n%s", caller, token, w.Log.String())
			}
		}
	})
	w.Doc = documentOf(t, w, options)
	return w
}

// documents are the OpenAPI documents of servers, by the options that they depend on.
var documents sync.Map

func documentOf(t *testing.T, w *World, options server.Options) *Document {
	t.Helper()
	key := fmt.Sprint(options.PublicURL, options.NoQueryTokens)
	if d, ok := documents.Load(key); ok {
		return d.(*Document)
	}
	d := ReadDocument(t, w)
	documents.Store(key, d)
	return d
}

// In returns the same world for a subtest.
func (w *World) In(t *testing.T) *World {
	there := *w
	there.T = t
	return &there
}

// SyncBuffer is a buffer that a server can write to while a test reads it.
type SyncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write appends to the buffer.
func (b *SyncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *SyncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Answer is the answer to a request.
type Answer struct {
	T      *testing.T
	Status int
	Header http.Header
	Body   string
}

// Decode reads the body as JSON.
func (a Answer) Decode(v any) {
	a.T.Helper()
	if err := json.Unmarshal([]byte(a.Body), v); err != nil {
		a.T.Fatalf("%v in %s", err, a.Body)
	}
}

// Request returns a request with the token of a caller.
func (w *World) Request(caller, method, path string, body io.Reader) *http.Request {
	w.T.Helper()
	r, err := http.NewRequestWithContext(w.T.Context(), method, w.HTTP.URL+path, body)
	if err != nil {
		w.T.Fatal(err)
	}
	if caller != Guest {
		r.Header.Set("Authorization", "Bearer "+w.Tokens[caller])
	}
	return r
}

// Send sends a request, and checks the answer against the OpenAPI document.
func (w *World) Send(r *http.Request) Answer {
	w.T.Helper()
	response, err := w.HTTP.Client().Do(r)
	if err != nil {
		w.T.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		w.T.Fatal(err)
	}
	a := Answer{w.T, response.StatusCode, response.Header, string(body)}
	if w.Doc != nil {
		if err := w.Doc.check(r, a); err != nil {
			w.T.Errorf("%s %s: %d %.300s\nis not what the OpenAPI document says: %v", r.Method, r.URL.Path, a.Status, a.Body,
				err)
		}
	}
	return a
}

// Do sends JSON (none: "") as a caller.
func (w *World) Do(caller, method, path, body string) Answer {
	w.T.Helper()
	r := w.Request(caller, method, path, nil)
	if body != "" {
		r = w.Request(caller, method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
	}
	return w.Send(r)
}

// Call calls a tool and returns its result.
func (w *World) Call(caller, tool, arguments string) (Answer, string) {
	w.T.Helper()
	a := w.Do(caller, "POST", "/tools/call", `{"name": "`+tool+`", "arguments": `+arguments+`}`)
	if a.Status != http.StatusOK {
		return a, ""
	}
	var result struct{ Content []struct{ Text string } }
	a.Decode(&result)
	return a, result.Content[0].Text
}

// Expect checks the status, and that the body has some parts.
func (a Answer) Expect(status int, has ...string) Answer {
	a.T.Helper()
	if a.Status != status {
		a.T.Errorf("status is %d, want %d: %.400s", a.Status, status, a.Body)
	}
	for _, part := range has {
		if !a.has(part) {
			a.T.Errorf("got the answer %.600s, want one that contains %q", a.Body, part)
		}
	}
	return a
}

// has reports whether the body has a part. In HTML any white space is as good as a space, as for a reader.
func (a Answer) has(part string) bool {
	if strings.Contains(a.Body, part) || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
		return strings.Contains(a.Body, part)
	}
	return strings.Contains(oneSpace.ReplaceAllString(a.Body, " "), oneSpace.ReplaceAllString(part, " "))
}

// oneSpace matches white space.
var oneSpace = regexp.MustCompile(`\s+`)

// Without checks that the body does not have some parts.
func (a Answer) Without(parts ...string) Answer {
	a.T.Helper()
	for _, part := range parts {
		if a.has(part) {
			a.T.Errorf("the answer has %q: %.600s, want it not in the body", part, a.Body)
		}
	}
	return a
}

// SortedCallers returns the callers of a table in alphabetical order.
func SortedCallers(rows map[string]int) []string { return slices.Sorted(maps.Keys(rows)) }

// Soon is how long tests wait for something that should happen immediately.
const Soon = 10 * time.Second

// AddMemory adds a memory as a caller.
func (w *World) AddMemory(user string, m souvenir.NewMemory) souvenir.Memory {
	w.T.Helper()
	added, err := w.Store.As(souvenir.Access{User: w.Users[user]}).AddMemory(w.T.Context(), m)
	if err != nil {
		w.T.Fatal(err)
	}
	return added.Memory
}

// Calls of the tool memory.
const (
	SearchAll = `{"name": "memory", "arguments": {"action": "search", "query": "when does the shop open, and what is ` +
		`the word"}}`
	StoreInShop = `{"name": "memory", "arguments": {"action": "store", "content": "The shop closes at six.", ` +
		`"project_id": "shop"}}`
)
