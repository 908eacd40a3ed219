package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// request sends a request and returns the answer's status and body.
func request(t *testing.T, method, url, token string, body io.Reader) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(content)
}

func TestServeSaysWhereItListensAndNothingElse(t *testing.T) {
	c := newStore(t)
	c.ok(t, "user", "passwd", "anna", "--password", "nine blue kettles")
	p := c.start(t, "serve", "--listen", "127.0.0.1:0")
	status, body := request(t, "GET", p.url+"/health", "", nil)
	health := decode[server.Health](t, body)
	if status != http.StatusOK || health.Status != "ok" || health.Version != server.APIVersion || health.Program == "" {
		t.Errorf(`/health: %d %s, want status %v, status "ok", version %v and a program that is not empty`, status, body,
			http.StatusOK, server.APIVersion)
	}
	code, rest := p.stop(t)
	if code != exitOK || rest != "" {
		t.Errorf("exit status %d, more on standard output: %q; want 0 and nothing", code, rest)
	}
	if strings.Contains(p.stderr.String(), "can sign in yet") {
		t.Errorf(`a store with users is welcomed like a new one: %s, want no "can sign in yet" in the stderr`, p.stderr)
	}
	if _, err := os.Stat(filepath.Join(c.dir, "souvenir.db-wal")); err == nil {
		t.Error("the log of the file is left behind, want an error")
	}
}

func TestAddressesArePrintedAsAskedFor(t *testing.T) {
	for asked, want := range map[string][2]string{
		"127.0.0.1:0": {"127.0.0.1", "http://127.0.0.1"}, "localhost:0": {"localhost", "http://localhost"},
		"0.0.0.0:0": {"0.0.0.0", "http://localhost"},
	} {
		listener, err := net.Listen("tcp", asked)
		if err != nil {
			t.Fatal(err)
		}
		_, port, err := net.SplitHostPort(listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		shown := address(asked, listener)
		if shown != want[0]+":"+port || localURL(shown) != want[1]+":"+port {
			t.Errorf("--listen %s is shown as %q and %q; want %s and %s with the port %s", asked, shown, localURL(shown),
				want[0], want[1], port)
		}
		listener.Close()
	}
}

func TestSIGTERMFinishesRequests(t *testing.T) {
	c := newStore(t)
	token := strings.TrimSpace(c.ok(t, "token", "add", "--user", "anna", "--name", "test"))
	p := c.start(t, "serve", "--listen", "127.0.0.1:0")
	body, write := io.Pipe()
	type answer struct {
		status int
		body   string
	}
	answered := make(chan answer, 1)
	go func() {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, p.url+"/api/user-preferences", body)
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			answered <- answer{0, err.Error()}
			return
		}
		defer got.Body.Close()
		content, _ := io.ReadAll(got.Body)
		answered <- answer{got.StatusCode, string(content)}
	}()
	// The write returns when the client reads the body, so the client is connected. The server accepts connections in
	// order, so it has this one once it has answered another.
	if _, err := write.Write([]byte(`{"language":`)); err != nil {
		t.Fatal(err)
	}
	if status, body := request(t, "GET", p.url+"/api/user-preferences", token, nil); status != http.StatusOK {
		t.Fatalf("%d %s; want %v", status, body, http.StatusOK)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	// Wait until the server takes no new connections. Only then the request goes on.
	fresh := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		got, err := fresh.Get(p.url + "/health")
		if err != nil {
			break
		}
		got.Body.Close()
	}
	if _, err := write.Write([]byte(`"Frisian"}`)); err != nil {
		t.Fatal(err)
	}
	write.Close()
	if got := <-answered; got.status != http.StatusOK || !strings.Contains(got.body, "Frisian") {
		t.Errorf(`the request that was under way got %d %s, want status %v and "Frisian" in the body`, got.status, got.body,
			http.StatusOK)
	}
	if code, _ := p.wait(t); code != exitOK {
		t.Errorf("exit status %d; want 0\n%s", code, p.stderr)
	}
	store := openStore(t, filepath.Join(c.dir, "souvenir.db"))
	anna, err := store.Accounts().GetUser(t.Context(), "anna")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := store.As(souvenir.Access{User: anna.ID}).GetPreferences(t.Context()); err != nil ||
		got["language"] != "Frisian" {
		t.Errorf("an answered write is not stored: %v, %v; want \"Frisian\"", got, err)
	}
}

func TestCommandsWorkBesideAServer(t *testing.T) {
	longtest.Only(t)
	c := newStore(t)
	p := c.start(t, "serve", "--listen", "127.0.0.1:0")
	me := func(token string) (int, string) { return request(t, "GET", p.url+"/api/owner-ids/me", token, nil) }

	c.ok(t, "user", "add", "carla", "--no-password")
	token := strings.TrimSpace(c.ok(t, "token", "add", "--user", "carla", "--name", "laptop"))
	if status, body := me(token); status != http.StatusOK || !strings.Contains(body, "carla") {
		t.Errorf(`the running server does not know a new token: %d %s, want status %v and "carla" in the body`, status, body,
			http.StatusOK)
	}
	if status, body := request(t, "PUT", p.url+"/api/user-preferences", token,
		strings.NewReader(`{"theme":"dark"}`)); status != http.StatusOK {
		t.Errorf("%d %s; want %v", status, body, http.StatusOK)
	}
	c.ok(t, "backup", "copy.db")
	copied := openStore(t, filepath.Join(c.dir, "copy.db"))
	if _, err := copied.Accounts().GetUser(t.Context(), "carla"); err != nil {
		t.Error("the backup lacks what was written before it:", err)
	}
	c.ok(t, "check")
	c.ok(t, "reindex")
	c.ok(t, "purge", "--compact")
	if found := c.ok(t, "search", "kettle", "--user", "anna"); !strings.Contains(found, "blue") {
		t.Errorf("search beside a server: %s; want in it \"blue\"", found)
	}
	prefix := token[:8]
	c.ok(t, "token", "delete", prefix, "--user", "carla")
	if status, _ := me(token); status != http.StatusUnauthorized {
		t.Errorf("a deleted token gets %d; want 401", status)
	}
	if code, _ := p.stop(t); code != exitOK {
		t.Errorf("exit status %d: %s; want %v", code, p.stderr, exitOK)
	}
	if strings.Contains(p.stderr.String(), token) {
		t.Errorf("the log shows a token: got %v, want no %q in the stderr", p.stderr.String(), token)
	}
}

// setUpLink finds the setup link in what a server has printed or logged.
func setUpLink(t *testing.T, printed string) string {
	t.Helper()
	found := regexp.MustCompile(`http://[^ "]+/setup\?invitation=inv_[A-Za-z0-9]+`).FindAllString(printed, -1)
	if len(found) != 1 {
		t.Fatalf("%d links to the set-up:\n%s; want 1", len(found), printed)
	}
	return found[0]
}

func TestFirstStartPrintsTheNextSteps(t *testing.T) {
	c := call{dir: t.TempDir()}
	p := c.start(t, "serve", "--listen", "127.0.0.1:0", "--db", "my memories.db")
	p.stop(t)
	for _, line := range []string{
		"\n  " + p.url + "/setup?invitation=inv_",
		"souvenir user add NAME --admin --db 'my memories.db'\n",
		"souvenir token add --user NAME --name laptop --db 'my memories.db'\n",
		"claude mcp add --transport http --scope user souvenir " + p.url + "/mcp\n",
	} {
		if !strings.Contains(p.stderr.String(), line) {
			t.Errorf("the first start: got the standard error\n%s\nwant one that contains %q", p.stderr, line)
		}
	}
}

// pageOf returns a function that reads the page of an answer, which must be a 200.
func pageOf(t *testing.T) func(*http.Response, error) string {
	return func(answer *http.Response, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		page, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("got %v %v %v, want no error and status code %v", answer.Status, err, string(page), http.StatusOK)
		}
		return string(page)
	}
}

// The printed link leads to an account, a sign-in and the instructions for connecting a client. Links of earlier starts
// no longer work.
func TestTheSetUpLinkMakesTheFirstAccount(t *testing.T) {
	c := call{dir: t.TempDir(), env: []string{"SOUVENIR_LISTEN=127.0.0.1:0", "SOUVENIR_LOG_FORMAT=json"}}
	p := c.start(t, "serve")
	p.stop(t)
	var former string
	for line := range strings.Lines(p.stderr.String()) {
		if link, ok := decode[map[string]any](t, line)["set_up"].(string); ok {
			former = setUpLink(t, link)
		}
	}
	c.env = nil
	p = c.start(t, "serve", "--listen", "127.0.0.1:0", "--public-url", "https://memory.example.com/deep/")
	p.stop(t)
	link := setUpLink(t, strings.ReplaceAll(p.stderr.String(), "https://memory.example.com/deep/", "http://x/"))
	p = c.start(t, "serve", "--listen", "127.0.0.1:0")
	for _, replaced := range []string{former, link} {
		if status, page := request(t, "GET", p.url+replaced[strings.Index(replaced, "/setup"):], "",
			nil); status != http.StatusNotFound || !strings.Contains(page, "replaced") {
			t.Errorf(`an earlier link: %d %s, want status %v and "replaced" in the page`, status, page, http.StatusNotFound)
		}
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(p.stderr.String(),
		"user add NAME"); { // printed after the line that start waits for
		if time.Now().After(deadline) {
			t.Fatalf("nothing is said of the set-up, want it before the deadline:\n%s", p.stderr)
		}
		time.Sleep(time.Millisecond)
	}
	link = setUpLink(t, p.stderr.String())
	form := url.Values{"username": {"root"}, "password": {"nine blue kettles"}}
	for _, hidden := range regexp.MustCompile(`type="hidden" name="([^"]+)" value="([^"]+)"`).FindAllStringSubmatch(
		pageOf(t)(browser.Get(link)), -1) {
		form.Set(hidden[1], hidden[2])
	}
	page := pageOf(t)(browser.PostForm(p.url+"/setup", form))
	if !strings.Contains(page, "claude mcp add") || !strings.Contains(page, p.url+"/mcp") {
		t.Errorf(`the page lacks what to paste: %s, want "claude mcp add" and %s/mcp in the page`, page, p.url)
	}
	if token := regexp.MustCompile("mcp_[A-Za-z0-9]{40,}").FindString(page); token != "" {
		t.Error("the page has a token before one was requested, want none")
	}
	if page := pageOf(t)(browser.Get(p.url + "/users")); !strings.Contains(page, "root") {
		t.Errorf("the first user is no admin: %s; want in it \"root\"", page)
	}

	invited := strings.TrimSpace(c.ok(t, "user", "invite", "--public-url", p.url, "--email", "ben@example.com"))
	if page := pageOf(t)(http.Get(invited)); !strings.Contains(page, "ben@example.com") {
		t.Errorf("the page of the invitation: %s; want in it \"ben@example.com\"", page)
	}
	p.stop(t)
	for _, secret := range []string{"ses_", "nine blue"} {
		if strings.Contains(p.stderr.String(), secret) {
			t.Errorf("the log has %q, want it not in the stderr:\n%s", secret, p.stderr)
		}
	}
	if strings.Count(p.stderr.String(), "inv_") != 1 {
		t.Errorf("the log has invitations, want 1:\n%s", p.stderr)
	}
	p = c.start(t, "serve", "--listen", "127.0.0.1:0")
	p.stop(t)
	if strings.Contains(p.stderr.String(), "inv_") {
		t.Errorf("a store with an account is to be set up again, want no \"inv_\" in the stderr:\n%s", p.stderr)
	}
}

func TestInvitingUsers(t *testing.T) {
	c := newStore(t)
	link := c.ok(t, "user", "invite", "--public-url", "https://memory.example.com/deep/")
	if !strings.HasPrefix(link, "https://memory.example.com/deep/invite?invitation=inv_") ||
		strings.Count(link, "\n") != 1 {
		t.Errorf(`printed %q, want one line that begins with "https://memory.example.com/deep/invite?invitation=inv_"`,
			link)
	}
	got := decode[map[string]any](t, c.ok(t, "user", "invite", "--admin", "--note", "Ben", "--valid-for", "1h", "--json"))
	if got["role"] != "admin" || got["note"] != "Ben" ||
		!strings.HasPrefix(got["link"].(string), "http://127.0.0.1:8377/invite?invitation=inv_") {
		t.Errorf(`printed %v, want role "admin", note "Ben" and "http://127.0.0.1:8377/invite?invitation=inv_" at the `+
			"beginning of it", got)
	}
	c.fails(t, exitUsage, "--public-url", "user", "invite", "--public-url", "memory.example.com")
	c.fails(t, exitUsage, "--valid-for", "user", "invite", "--valid-for", "-1h")
	c.fails(t, exitError, "email", "user", "invite", "--email", "nonsense")
	c.fails(t, exitError, "--db", "user", "invite", "--db", "missing.db")
}

func TestFirstStartMakesTheAdminOnce(t *testing.T) {
	c := call{dir: t.TempDir()}
	secret := filepath.Join(c.dir, "secret")
	if err := os.WriteFile(secret, []byte("first-password\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.env = []string{"SOUVENIR_ADMIN_USER=root", "SOUVENIR_ADMIN_PASSWORD_FILE=" + secret, "SOUVENIR_LISTEN=127.0.0.1:0",
		"SOUVENIR_LOG_FORMAT=json"}
	p := c.start(t, "serve")
	p.stop(t)
	for line := range strings.Lines(p.stderr.String()) {
		decode[map[string]any](t, line)
	}
	if !strings.Contains(p.stderr.String(), "souvenir token add --user root") {
		t.Errorf(`it does not say how to continue: %s, want "souvenir token add --user root" in the stderr`, p.stderr)
	}
	if err := os.WriteFile(secret, []byte("second-password\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.env[0] = "SOUVENIR_ADMIN_USER=other"
	p = c.start(t, "serve")
	p.stop(t)
	store := openStore(t, filepath.Join(c.dir, "souvenir.db"))
	page, err := store.Accounts().UserPage(t.Context(), souvenir.UserQuery{})
	users := page.Users
	if err != nil || len(users) != 1 || users[0].Name != "root" || users[0].Role != souvenir.RoleAdmin {
		t.Errorf("users: %+v, %v; want the one admin root", users, err)
	}
	if _, err := store.Accounts().CheckPassword(t.Context(),
		souvenir.Credentials{Name: "root", Password: "first-password"}); err != nil {
		t.Error(err)
	}
}

func TestServeOffersTheToolsOfItsToolsets(t *testing.T) {
	c := newStore(t)
	p := c.start(t, "serve", "--listen", "127.0.0.1:0", "--toolsets", "chatgpt,memory", "--read-only")
	if _, body := request(t, "GET", p.url+"/tools", "", nil); !strings.Contains(body, "get_context") ||
		strings.Contains(body, "upload_document") {
		t.Errorf(`the tools are %s, want "get_context" and no "upload_document" in the body`, body)
	}
	token := strings.TrimSpace(c.ok(t, "token", "add", "--user", "anna", "--name", "test"))
	_, body := request(t, "POST", p.url+"/mcp", token, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
	if !strings.Contains(body, `"name":"fetch"`) || !strings.Contains(body, `"name":"memory"`) ||
		strings.Contains(body, "upload_document") {
		t.Errorf(`the tools over MCP are %s, want "name":"fetch", "name":"memory" in the body and no `+
			`"upload_document" in the body`, body)
	}
	p.stop(t)
}

func TestServeUsesItsSettings(t *testing.T) {
	c := newStore(t)
	c.ok(t, "user", "passwd", "anna", "--password", "nine blue kettles")
	token := strings.TrimSpace(c.ok(t, "token", "add", "--user", "anna", "--name", "test"))
	p := c.start(t, "serve", "--listen", "127.0.0.1:0", "--no-query-tokens", "--max-file", "1K", "--log-level", "error")
	if status, _ := request(t, "GET", p.url+"/api/owner-ids/me?token="+token, "", nil); status != http.StatusUnauthorized {
		t.Errorf("a token in the URL gets %d with --no-query-tokens; want 401", status)
	}
	for size, want := range map[int]int{1024: http.StatusOK, 1025: http.StatusBadRequest} {
		var form bytes.Buffer
		form.WriteString("--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\nContent-Type: " +
			"text/plain\r\n\r\n" + strings.Repeat("a", size) + "\r\n--x--\r\n")
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/api/files/upload", &form)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("a file of %d bytes gets %d with --max-file 1K; want %d", size, answer.StatusCode, want)
		}
	}
	c.fails(t, exitError, "--listen", "serve", "--listen", strings.TrimPrefix(p.url, "http://"))
	c.fails(t, exitUsage, "--toolsets", "serve", "--toolsets", "memory,other")
	p.stop(t)
	if p.stderr.Len() > 0 {
		t.Errorf("with --log-level error: got the log %s, want an empty one", p.stderr)
	}
}

// An environment with nothing but the program can ask whether a server works.
func TestHealth(t *testing.T) {
	c := newStore(t)
	p := c.start(t, "serve", "--listen", "127.0.0.1:0")
	where := strings.TrimPrefix(p.url, "http://")
	_, port, err := net.SplitHostPort(where)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--listen", where}, {p.url}, {p.url + "/"}, {"--listen", "0.0.0.0:" + port},
		{"--listen", ":" + port}} {
		if got := c.ok(t, append([]string{"health"}, args...)...); !strings.HasPrefix(got, "ok: http://") {
			t.Errorf("health %v prints %q, want at its start \"ok: http://\"", args, got)
		}
	}
	inContainer := c
	inContainer.env = []string{"SOUVENIR_LISTEN=0.0.0.0:" + port, "HTTP_PROXY=http://127.0.0.1:1",
		"http_proxy=http://127.0.0.1:1"}
	inContainer.ok(t, "health")
	if got := decode[server.Health](t, c.ok(t, "health", p.url, "--json")); got.Status != "ok" ||
		got.Version != server.APIVersion {
		t.Errorf(`got %+v, want status "ok" and version %v`, got, server.APIVersion)
	}
	c.fails(t, exitError, "404", "health", p.url+"/elsewhere")
	p.stop(t)
	c.fails(t, exitError, "no answer|refused", "health", p.url)

	other, hung := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_,
			_ = io.WriteString(w, "hello")
	})), make(chan struct{})
	defer other.Close()
	c.fails(t, exitError, "not a Souvenir server", "health", other.URL)
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hung }))
	defer silent.Close()
	c.fails(t, exitError, "deadline", "health", silent.URL, "--timeout", "50ms")
	close(hung)
}

// A long-running server deletes expired data, and nothing else, and logs it.
func TestServePurges(t *testing.T) {
	longtest.Only(t)
	c := newStore(t)
	store := openStore(t, filepath.Join(c.dir, "souvenir.db"))
	anna, err := store.Accounts().GetUser(t.Context(), "anna")
	if err != nil {
		t.Fatal(err)
	}
	view := store.As(souvenir.Access{User: anna.ID})
	found, err := view.Search(t.Context(), souvenir.Query{Text: "kettle"})
	if err != nil {
		t.Fatal(err)
	}
	id := found.Hits[0].ID
	for _, content := range []string{"The kettle is red.", "The kettle is green.", "The kettle is white."} {
		if _, err := view.UpdateMemory(t.Context(), id, souvenir.MemoryUpdate{Content: &content}); err != nil {
			t.Fatal(err)
		}
	}
	p := c.start(t, "serve", "--listen", "127.0.0.1:0", "--purge-every", "50ms", "--keep-revisions", "1")
	for former := 3; former != 1; {
		revisions, err := view.Revisions(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		former = len(revisions) - 1
		time.Sleep(10 * time.Millisecond)
	}
	for !strings.Contains(p.stderr.String(), "revisions=2") { // logged after the commit
		time.Sleep(10 * time.Millisecond)
	}
	if code, _ := p.stop(t); code != exitOK || !strings.Contains(p.stderr.String(), "revisions=2") {
		t.Errorf(`exit status %d: %s, want code %v and "revisions=2" in the stderr`, code, p.stderr, exitOK)
	}
	after, err := view.Search(t.Context(), souvenir.Query{Text: "kettle"})
	if err != nil || after.Total != found.Total || after.Hits[0].Content != "The kettle is white." {
		t.Errorf(`got %+v, %v, want no error, total %v and content "The kettle is white."`, after, err, found.Total)
	}
	if report, err := store.Upkeep().Check(t.Context(), nil); err != nil || !report.OK {
		t.Errorf("got %+v, %v, want no error and OK", report, err)
	}
}

func readDir(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
