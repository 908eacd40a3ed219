package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// request asks a server and returns the status and the body of its answer.
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
	p := c.start(t, "serve", "--listen", "127.0.0.1:0")
	status, body := request(t, "GET", p.url+"/health", "", nil)
	health := decode[server.Health](t, body)
	if status != http.StatusOK || health.Status != "ok" || health.Version != server.APIVersion || health.Program == "" {
		t.Errorf("/health: %d %s", status, body)
	}
	code, rest := p.stop(t)
	if code != exitOK || rest != "" {
		t.Errorf("exit status %d, more on standard output: %q; want 0 and nothing", code, rest)
	}
	if strings.Contains(p.stderr.String(), "no user yet") {
		t.Errorf("a store with users is welcomed like a new one: %s", p.stderr)
	}
	if _, err := os.Stat(filepath.Join(c.dir, "souvenir.db-wal")); err == nil {
		t.Error("the log of the file is left behind")
	}
}

func TestAddressesAreShownAsAskedFor(t *testing.T) {
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
			t.Errorf("--listen %s is shown as %q and %q; want %s and %s with the port %s", asked, shown, localURL(shown), want[0], want[1], port)
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
	// The write returns when the client reads the body, and hence is connected; the server accepts connections in their order,
	// so that it has this one once another is answered.
	if _, err := write.Write([]byte(`{"language":`)); err != nil {
		t.Fatal(err)
	}
	if status, body := request(t, "GET", p.url+"/api/user-preferences", token, nil); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	// It takes no new connections from some moment on; only then the request goes on.
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
		t.Errorf("the request that was under way got %d %s", got.status, got.body)
	}
	if code, _ := p.wait(t); code != exitOK {
		t.Errorf("exit status %d; want 0\n%s", code, p.stderr)
	}
	store := openStore(t, filepath.Join(c.dir, "souvenir.db"))
	anna, err := store.GetUser(t.Context(), "anna")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := store.As(souvenir.Access{User: anna.ID}).Preferences(t.Context()); err != nil || got["language"] != "Frisian" {
		t.Errorf("what was answered is not stored: %v, %v", got, err)
	}
}

func TestCommandsWorkBesideAServer(t *testing.T) {
	c := newStore(t)
	p := c.start(t, "serve", "--listen", "127.0.0.1:0")
	me := func(token string) (int, string) { return request(t, "GET", p.url+"/api/owner-ids/me", token, nil) }

	c.ok(t, "user", "add", "carla", "--no-password")
	token := strings.TrimSpace(c.ok(t, "token", "add", "--user", "carla", "--name", "laptop"))
	if status, body := me(token); status != http.StatusOK || !strings.Contains(body, "carla") {
		t.Errorf("the running server does not know a new token: %d %s", status, body)
	}
	if status, body := request(t, "PUT", p.url+"/api/user-preferences", token, strings.NewReader(`{"theme":"dark"}`)); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
	c.ok(t, "backup", "copy.db")
	copied := openStore(t, filepath.Join(c.dir, "copy.db"))
	if _, err := copied.GetUser(t.Context(), "carla"); err != nil {
		t.Error("the backup lacks what was written before it:", err)
	}
	c.ok(t, "check")
	c.ok(t, "reindex")
	c.ok(t, "purge", "--compact")
	if found := c.ok(t, "search", "kettle", "--user", "anna"); !strings.Contains(found, "blue") {
		t.Errorf("search beside a server: %s", found)
	}
	prefix := token[:8]
	c.ok(t, "token", "delete", prefix, "--user", "carla")
	if status, _ := me(token); status != http.StatusUnauthorized {
		t.Errorf("a deleted token gets %d; want 401", status)
	}
	if code, _ := p.stop(t); code != exitOK {
		t.Errorf("exit status %d: %s", code, p.stderr)
	}
	if strings.Contains(p.stderr.String(), token) {
		t.Error("the log shows a token")
	}
}

func TestFirstStartTellsWhatToDo(t *testing.T) {
	c := call{dir: t.TempDir()}
	p := c.start(t, "serve", "--listen", "127.0.0.1:0", "--db", "my memories.db")
	p.stop(t)
	for _, line := range []string{
		"souvenir user add NAME --admin --db 'my memories.db'\n",
		"souvenir token add --user NAME --name laptop --db 'my memories.db'\n",
		"claude mcp add --transport http --scope user souvenir " + p.url + `/mcp --header "Authorization: Bearer `,
	} {
		if !strings.Contains(p.stderr.String(), line) {
			t.Errorf("the first start does not print %q:\n%s", line, p.stderr)
		}
	}
}

func TestFirstStartMakesTheAdminOnce(t *testing.T) {
	c := call{dir: t.TempDir()}
	secret := filepath.Join(c.dir, "secret")
	if err := os.WriteFile(secret, []byte("first-password\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.env = []string{"SOUVENIR_ADMIN_USER=root", "SOUVENIR_ADMIN_PASSWORD_FILE=" + secret, "SOUVENIR_LISTEN=127.0.0.1:0", "SOUVENIR_LOG_FORMAT=json"}
	p := c.start(t, "serve")
	p.stop(t)
	for line := range strings.Lines(p.stderr.String()) {
		decode[map[string]any](t, line)
	}
	if !strings.Contains(p.stderr.String(), "souvenir token add --user root") {
		t.Errorf("it does not tell how to go on: %s", p.stderr)
	}
	if err := os.WriteFile(secret, []byte("second-password\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.env[0] = "SOUVENIR_ADMIN_USER=other"
	p = c.start(t, "serve")
	p.stop(t)
	store := openStore(t, filepath.Join(c.dir, "souvenir.db"))
	users, err := store.Users(t.Context())
	if err != nil || len(users) != 1 || users[0].Name != "root" || users[0].Role != souvenir.RoleAdmin {
		t.Errorf("users: %+v, %v; want the one admin root", users, err)
	}
	if _, err := store.CheckPassword(t.Context(), souvenir.Credentials{Name: "root", Password: "first-password"}); err != nil {
		t.Error(err)
	}
}

func TestServeUsesItsSettings(t *testing.T) {
	c := newStore(t)
	token := strings.TrimSpace(c.ok(t, "token", "add", "--user", "anna", "--name", "test"))
	p := c.start(t, "serve", "--listen", "127.0.0.1:0", "--no-query-tokens", "--max-file", "1K", "--log-level", "error")
	if status, _ := request(t, "GET", p.url+"/api/owner-ids/me?token="+token, "", nil); status != http.StatusUnauthorized {
		t.Errorf("a token in the URL gets %d with --no-query-tokens; want 401", status)
	}
	for size, want := range map[int]int{1024: http.StatusOK, 1025: http.StatusBadRequest} {
		var form bytes.Buffer
		form.WriteString("--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\n" + strings.Repeat("a", size) + "\r\n--x--\r\n")
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
	p.stop(t)
	if p.stderr.Len() > 0 {
		t.Errorf("with --log-level error it logs %s", p.stderr)
	}
}

func TestDemoLeavesNothingBehind(t *testing.T) {
	folder := t.TempDir()
	c := call{dir: t.TempDir(), env: []string{"TMPDIR=" + folder, "TMP=" + folder}}
	p := c.start(t, "demo")
	page := ""
	for !strings.Contains(page, "Ctrl-C") {
		line, err := p.stdout.ReadString('\n')
		if err != nil {
			t.Fatal(err, page)
		}
		page += line
	}
	token := page[strings.Index(page, "mcp_"):][:47]
	call, err := json.Marshal(map[string]any{"name": "list_collections", "arguments": map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	if status, body := request(t, "POST", p.url+"/tools/call", token, bytes.NewReader(call)); status != http.StatusOK || !strings.Contains(body, "320") {
		t.Errorf("the token that is shown gets %d %s", status, body)
	}
	databases, err := filepath.Glob(filepath.Join(folder, "*", "demo.db"))
	if err != nil || len(databases) != 1 {
		t.Fatalf("databases: %v, %v", databases, err)
	}
	if found := c.run(t, "search", "which medicine is grandmother allergic to?", "--db", databases[0]); !strings.Contains(found.stdout, "penicillin") {
		t.Errorf("search in the demo's file: %+v", found)
	}
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code, _ := p.wait(t); code != exitOK {
		t.Errorf("exit status %d: %s", code, p.stderr)
	}
	if left := readDir(t, folder); len(left) > 0 {
		t.Errorf("left behind: %v", left)
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
