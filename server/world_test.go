package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// The world that the scenarios play in: Olivia has a project, shop, in which Rita may read and Walter may write, and
// other things that are no one's business. Sam knows none of them. Ada is an admin, which opens no one's memories to
// her.

// who are the callers: each has a token, but for guest.
const (
	guest    = "guest"
	stranger = "stranger"
	reader   = "reader"
	writer   = "writer"
	owner    = "owner"
	admin    = "admin"
	limited  = "limited"   // Olivia's token for the project shop alone
	readOnly = "read-only" // Olivia's token that carries memory:read and files:read
	noFiles  = "no-files"  // Olivia's token that carries memory:write alone
	noMemory = "no-memory" // Olivia's token that carries files:write alone
	revoked  = "revoked"   // Olivia's token that she has deleted
	disabled = "disabled"  // the token of someone whose account is disabled
	garbage  = "garbage"   // something that looks like a token
	secret   = "swordfish" // is in everything that only Olivia may see
	publicAt = "http://memory.example"
)

// plan is what was made when the template was filled.
type plan struct {
	database []byte
	tokens   map[string]string // by caller
	tokenIDs map[string]string
	users    map[string]string // ids, by caller
	memory   string            // in shop
	private  string            // Olivia's, in no project
	file     string            // linked to memory
	hidden   string            // linked to private
}

// template fills a store once; each world is a copy.
var template = sync.OnceValues(func() (p plan, err error) {
	dir, err := os.MkdirTemp("", "souvenir-world")
	if err != nil {
		return p, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "template.db")
	store, err := souvenir.Open(background, path, nil)
	if err != nil {
		return p, err
	}
	p = plan{tokens: map[string]string{garbage: "mcp_" + strings.Repeat("x", 43)}, tokenIDs: map[string]string{},
		users: map[string]string{}}
	if err := p.fill(store); err != nil {
		return p, err
	}
	if err := store.Upkeep().Backup(background, filepath.Join(dir, "copy.db"), nil); err != nil {
		return p, err
	}
	if err := store.Close(); err != nil {
		return p, err
	}
	p.database, err = os.ReadFile(filepath.Join(dir, "copy.db"))
	return p, err
})

func (p *plan) fill(store *souvenir.Store) error {
	steps := firstError{}
	for caller, name := range map[string]string{owner: "olivia", reader: "rita", writer: "walter", stranger: "sam",
		admin: "ada", disabled: "dora"} {
		role := souvenir.RoleUser
		if caller == admin {
			role = souvenir.RoleAdmin
		}
		u, err := store.Accounts().AddUser(background, souvenir.NewUser{Name: name, Role: role, Email: name + "@example.com"})
		steps.note(err)
		p.users[caller] = u.ID
	}
	view := store.As(souvenir.Access{User: p.users[owner]})
	shop := souvenir.ProjectRef{ID: "shop"}
	_, err := view.AddProject(background, souvenir.NewProject{ID: "shop", Name: "The shop"})
	steps.note(err)
	_, err = view.AddProject(background, souvenir.NewProject{ID: "plot", Name: secret})
	steps.note(err)
	shop.ID = p.users[owner] + "/shop"
	_, err = store.AddMember(background, souvenir.NewMember{Project: shop, User: "rita", Role: souvenir.MemberReader})
	steps.note(err)
	_, err = store.AddMember(background, souvenir.NewMember{Project: shop, User: "walter", Role: souvenir.MemberWriter})
	steps.note(err)
	shared, err := view.AddMemory(background, souvenir.NewMemory{Content: "The shop opens at nine.", ProjectID: "shop"})
	steps.note(err)
	private, err := view.AddMemory(background,
		souvenir.NewMemory{Content: "The word is " + secret + ".", Tags: []string{secret}})
	steps.note(err)
	p.memory, p.private = shared.ID, private.ID
	file, err := view.AddFile(background,
		souvenir.NewFile{Filename: "menu.txt", MemoryID: p.memory, Tags: []string{"food", "daily"}, Category: "card"},
		strings.NewReader("soup\nfish\n"))
	steps.note(err)
	hidden, err := view.AddFile(background, souvenir.NewFile{Filename: secret + ".txt", MemoryID: p.private},
		strings.NewReader(secret))
	steps.note(err)
	p.file, p.hidden = file.ID, hidden.ID
	_, err = view.SetPreferences(background, map[string]any{"theme": secret})
	steps.note(err)
	all := append(souvenir.DefaultScopes(), souvenir.ScopeAccount)
	for _, t := range []struct {
		caller string
		souvenir.NewToken
	}{
		{owner, souvenir.NewToken{Scopes: all}},
		{reader, souvenir.NewToken{Scopes: all}},
		{writer, souvenir.NewToken{Scopes: all}},
		{stranger, souvenir.NewToken{Scopes: all}},
		{admin, souvenir.NewToken{Scopes: souvenir.Scopes()}},
		{disabled, souvenir.NewToken{Scopes: all}},
		{limited, souvenir.NewToken{User: "olivia", Scopes: all, Projects: []string{"shop"}}},
		{readOnly, souvenir.NewToken{User: "olivia",
			Scopes: []souvenir.Scope{souvenir.ScopeMemoryRead, souvenir.ScopeFilesRead}}},
		{noFiles, souvenir.NewToken{User: "olivia", Scopes: []souvenir.Scope{souvenir.ScopeMemoryWrite}}},
		{noMemory, souvenir.NewToken{User: "olivia", Scopes: []souvenir.Scope{souvenir.ScopeFilesWrite}}},
		{revoked, souvenir.NewToken{User: "olivia"}},
	} {
		n := t.NewToken
		n.Name = t.caller
		if n.User == "" {
			n.User = p.users[t.caller]
		}
		user, err := store.Accounts().GetUser(background, n.User)
		steps.note(err)
		n.User = ""
		added, err := store.As(souvenir.Access{User: user.ID}).Accounts().AddToken(background, n)
		steps.note(err)
		p.tokens[t.caller], p.tokenIDs[t.caller] = added.Value, added.ID
	}
	_, err = view.Accounts().AddClient(background,
		souvenir.NewClient{ID: "app", Name: secret, RedirectURIs: []string{"https://app.example/" + secret}})
	steps.note(err)
	steps.note(view.Accounts().DeleteToken(background, p.tokenIDs[revoked]))
	yes := true
	_, err = store.Accounts().UpdateUser(background, "dora", souvenir.UserUpdate{Disabled: &yes})
	steps.note(err)
	steps.note(store.Upkeep().WaitEmbedded(background))
	return steps.err
}

// firstError keeps the first of many errors.
type firstError struct{ err error }

func (f *firstError) note(err error) {
	if f.err == nil {
		f.err = err
	}
}

// world is a server on a store of its own.
type world struct {
	plan
	t     *testing.T
	store *souvenir.Store
	inner *server.Server
	at    *httptest.Server
	log   *syncBuffer
	doc   *document
}

// newWorld starts a server. What the options do not say is as scenarios need it.
func newWorld(t *testing.T, options server.Options) *world {
	t.Helper()
	p, err := template()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "world.db")
	if err := os.WriteFile(path, p.database, 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := souvenir.Open(background, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, p, store, options)
}

// serve starts a server on a store, both of which end with the test.
func serve(t *testing.T, p plan, store *souvenir.Store, options server.Options) *world {
	t.Helper()
	w := &world{plan: p, t: t, store: store, log: &syncBuffer{}}
	if options.PublicURL == "" {
		options.PublicURL = publicAt
	}
	options.Logger = slog.New(slog.NewTextHandler(w.log, nil))
	w.inner = server.New(store, &options)
	w.at = httptest.NewServer(w.inner)
	t.Cleanup(func() {
		w.at.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		for caller, token := range w.tokens {
			if strings.Contains(w.log.String(), token) {
				t.Errorf("the log has the token of %s:\n%s", caller, w.log.String())
			}
		}
	})
	w.doc = documentOf(t, w, options)
	return w
}

// documents are the OpenAPI documents of servers, by the options that they depend on.
var documents sync.Map

func documentOf(t *testing.T, w *world, options server.Options) *document {
	t.Helper()
	key := fmt.Sprint(options.PublicURL, options.NoQueryTokens)
	if d, ok := documents.Load(key); ok {
		return d.(*document)
	}
	d := readDocument(t, w)
	documents.Store(key, d)
	return d
}

// in returns the same world for a subtest.
func (w *world) in(t *testing.T) *world {
	there := *w
	there.t = t
	return &there
}

// syncBuffer is a buffer that a server writes while a test reads.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// answer is what came back.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   string
}

// decode reads the body as JSON.
func (a answer) decode(v any) {
	a.t.Helper()
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		a.t.Fatalf("%v in %s", err, a.body)
	}
}

// request makes a request of a caller, without sending it.
func (w *world) request(caller, method, path string, body io.Reader) *http.Request {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.at.URL+path, body)
	if err != nil {
		w.t.Fatal(err)
	}
	if caller != guest {
		r.Header.Set("Authorization", "Bearer "+w.tokens[caller])
	}
	return r
}

// send sends a request, and holds the answer to what the OpenAPI document says.
func (w *world) send(r *http.Request) answer {
	w.t.Helper()
	response, err := w.at.Client().Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	a := answer{w.t, response.StatusCode, response.Header, string(body)}
	if w.doc != nil {
		if err := w.doc.check(r, a); err != nil {
			w.t.Errorf("%s %s: %d %.300s\nis not what the OpenAPI document says: %v", r.Method, r.URL.Path, a.status, a.body,
				err)
		}
	}
	return a
}

// do sends JSON (none: "") as a caller.
func (w *world) do(caller, method, path, body string) answer {
	w.t.Helper()
	r := w.request(caller, method, path, nil)
	if body != "" {
		r = w.request(caller, method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
	}
	return w.send(r)
}

// call calls a tool and returns its result.
func (w *world) call(caller, tool, arguments string) (answer, string) {
	w.t.Helper()
	a := w.do(caller, "POST", "/tools/call", `{"name": "`+tool+`", "arguments": `+arguments+`}`)
	if a.status != http.StatusOK {
		return a, ""
	}
	var result struct{ Content []struct{ Text string } }
	a.decode(&result)
	return a, result.Content[0].Text
}

// expect checks what an answer has and has not.
func (a answer) expect(status int, has ...string) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Errorf("status is %d, want %d: %.400s", a.status, status, a.body)
	}
	for _, part := range has {
		if !strings.Contains(a.body, part) {
			a.t.Errorf("the answer lacks %q: %.600s", part, a.body)
		}
	}
	return a
}

// without checks what an answer must not have.
func (a answer) without(parts ...string) answer {
	a.t.Helper()
	for _, part := range parts {
		if strings.Contains(a.body, part) {
			a.t.Errorf("the answer has %q: %.600s", part, a.body)
		}
	}
	return a
}

// sortedCallers are the callers of a table, in an order that is always the same.
func sortedCallers(rows map[string]int) []string { return slices.Sorted(maps.Keys(rows)) }

// soon is how long tests wait for what happens at once.
const soon = 10 * time.Second
