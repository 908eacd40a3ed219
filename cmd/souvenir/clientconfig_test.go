package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

func clientNames(configs []printedConfig) (names []string) {
	for _, s := range configs {
		names = append(names, s.Client)
	}
	return names
}

func TestClientConfigCanBePasted(t *testing.T) {
	dir := t.TempDir()
	c := call{dir: dir}
	anywhere := []string{"claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini", "windsurf"}
	everywhere := append(slices.Clone(anywhere), "claude-ai", "chatgpt")
	db := filepath.Join(dir, "it's mine.db")
	for _, test := range []struct {
		flags           []string
		clients         []string
		words, withouts []string
		shell           []string // what a shell passes to claude
	}{
		{
			[]string{"--public-url", "https://memory.example.com/", "--token", "mcp_abc"}, everywhere,
			[]string{"https://memory.example.com/mcp", "Bearer mcp_abc"}, nil,
			[]string{"mcp", "add", "--transport", "http", "--scope", "user", "souvenir", "https://memory.example.com/mcp",
				"--header", "Authorization: Bearer mcp_abc"},
		},
		{
			[]string{"--public-url", "https://memory.example.com", "--oauth"}, everywhere,
			[]string{"https://memory.example.com/mcp"}, []string{"Bearer", exampleToken, "eaders"},
			[]string{"mcp", "add", "--transport", "http", "--scope", "user", "souvenir", "https://memory.example.com/mcp"},
		},
		{
			[]string{"--stdio", "--db", "it's mine.db", "--user", "anna", "--read-only", "--toolsets", "memory,chatgpt"},
			anywhere,
			[]string{"mcp", "--db", db, "--user", "anna", "--read-only", "--toolsets", "memory,chatgpt"},
			[]string{"http", "Bearer"},
			[]string{"mcp", "add", "--scope", "user", "souvenir", "--", builtBinary, "mcp", "--db", db, "--user", "anna",
				"--toolsets", "memory,chatgpt", "--read-only"},
		},
	} {
		configs := decode[[]printedConfig](t, c.ok(t, append([]string{"client-config", "--json"}, test.flags...)...))
		if got := clientNames(configs); !slices.Equal(got, test.clients) {
			t.Errorf("%v: the clients are %q; want %q", test.flags, got, test.clients)
		}
		for _, s := range configs {
			for _, word := range test.words {
				inShell := strings.ReplaceAll(word, "'", `'\''`)
				if cloud := s.Client == "claude-ai" || s.Client == "chatgpt"; cloud && strings.HasPrefix(word, "Bearer") {
					continue // it takes no token
				}
				if !strings.Contains(s.Snippet, word) && !strings.Contains(s.Snippet, inShell) {
					t.Errorf("%s: want %q or %q in the snippet, got\n%s", s.Client, word, inShell, s.Snippet)
				}
			}
			for _, word := range test.withouts {
				if strings.Contains(s.Snippet, word) {
					t.Errorf("%s: got %q in the snippet, want it left out:\n%s", s.Client, word, s.Snippet)
				}
			}
			if strings.HasPrefix(s.Snippet, "{") {
				decode[map[string]any](t, s.Snippet)
			}
			if s.Where == "" {
				t.Errorf("%s: got no place for it, want one", s.Client)
			}
		}
		out, err := exec.CommandContext(t.Context(), "sh", "-c", `claude() { printf '%s\n' "$@"; }; `+
			configs[0].Snippet).Output()
		if err != nil || string(out) != strings.Join(test.shell, "\n")+"\n" {
			t.Errorf("%s\nis read by a shell as\n%s%v, want no error and out %v", configs[0].Snippet, out, err,
				strings.Join(test.shell, "\n")+"\n")
		}
	}
	if o := c.run(t, "client-config", "codex"); o.code != exitOK ||
		!strings.HasPrefix(o.stdout, "[mcp_servers.souvenir]\nurl = ") || !strings.Contains(o.stderr, exampleToken) {
		t.Errorf("without a token: %+v, want the settings and the example token", o)
	}
	if o := c.run(t, "client-config", "chatgpt"); o.code != exitOK || !strings.Contains(o.stderr, "on the internet") ||
		strings.Contains(o.stderr, exampleToken) {
		t.Errorf(`a client on the internet, with a server that is not: %+v, want code %v, "on the internet" in the stderr `+
			"and no %q in the stderr", o, exitOK, exampleToken)
	}
}

func TestClientConfigOverStdioStarts(t *testing.T) {
	c := newStore(t)
	configs := c.ok(t, "client-config", "cursor", "--stdio", "--user", "anna", "--read-only", "--toolsets", "chatgpt")
	config := decode[struct {
		MCPServers map[string]struct {
			Command string
			Args    []string
		}
	}](t, configs)
	started := config.MCPServers["souvenir"]
	if started.Command != builtBinary {
		t.Fatalf("the command is %q, want %v", started.Command, builtBinary)
	}
	p := call{dir: t.TempDir()}.startMCP(t, started.Args[1:]...)
	if names := p.tools(t); !slices.Equal(names, []string{"search", "fetch"}) {
		t.Errorf("the tools are %q; want search and fetch", names)
	}
	p.end(t)
}

func TestOnlyNearby(t *testing.T) {
	for _, host := range []string{"127.0.0.1:8377", "127.9.9.9", "localhost:8377", "LOCALHOST", "a.localhost",
		"[::1]:8377", "192.168.1.7:8377", "10.1.2.3", "172.31.0.9", "169.254.7.7",
		"[fd00::7]", "[fe80::7]", "[fe80::7%25eth0]", "100.64.0.1", "nas.local", "nas.local.", "nas", "[::ffff:10.0.0.1]",
		"memory.home.arpa", "0.0.0.0:8377"} {
		if !onlyNearby("https://" + host + "/mcp") {
			t.Errorf("%s counts as on the internet, want it nearby", host)
		}
	}
	for _, host := range []string{"memory.example.com", "203.0.113.7", "172.32.0.1", "100.128.0.1", "[2001:db8::1]",
		"local.example.com", "10.0.0.1.example.com", "mylocal.dev"} {
		if onlyNearby("https://" + host + "/mcp") {
			t.Errorf("%s counts as nearby, want it on the internet", host)
		}
	}
}

// A connector is called from its vendor's cloud, so its instructions must not use an address that only this machine
// reaches.
func TestClientConfigForServersThatOnlyThisMachineReaches(t *testing.T) {
	c := call{dir: t.TempDir()}
	for address, more := range map[string][]string{"http://127.0.0.1:8377": nil,
		"http://192.168.1.7:8377": {"--allow-http"}, "https://nas.local": nil} {
		o := c.run(t, "client-config", "claude-desktop", "--oauth", "--public-url", address)
		if o.code != exitOK || !strings.Contains(o.stderr, "cannot reach "+address+"/mcp") ||
			!strings.Contains(o.stderr, "--stdio") {
			t.Errorf(`%s: no warning: %+v, want code %v, %q in the stderr and "--stdio" in the stderr`, address, o, exitOK,
				"cannot reach "+address+"/mcp")
		}
		config := decode[struct{ MCPServers map[string]entry }](t, o.stdout).MCPServers["souvenir"]
		if config.Command != "npx" ||
			!slices.Equal(config.Args, append([]string{"-y", "mcp-remote", address + "/mcp"}, more...)) || len(config.Env) > 0 {
			t.Errorf("%s: got %s, want npx mcp-remote with the address and no variables", address, o.stdout)
		}
	}
	if o := c.run(t, "client-config", "claude-ai", "--public-url", "https://nas.local"); !strings.Contains(o.stderr,
		"cannot reach") {
		t.Errorf("Claude.ai: no warning: %+v; want stderr in it \"cannot reach\"", o)
	}
	if o := c.run(t, "client-config", "claude-desktop", "--oauth", "--public-url",
		"https://memory.example.com"); o.code != exitOK || o.stderr != "" ||
		!strings.HasPrefix(o.stdout, "Name: Souvenir\nURL:") {
		t.Errorf("a server on the internet: %+v, want the settings, and nothing on standard error", o)
	}
	for _, s := range decode[[]printedConfig](t, c.ok(t, "client-config", "--json", "--oauth")) {
		if s.Client == "claude-desktop" && !strings.HasPrefix(s.Where, "claude_desktop_config.json") {
			t.Errorf(`it belongs into %q, want "claude_desktop_config.json" at the beginning of the where`, s.Where)
		}
	}
	for _, s := range snippets("https://192.168.1.7/mcp", "") {
		if s.Client == "Claude.ai" || s.Client == "ChatGPT" || s.Client == "Claude Desktop" &&
			!strings.Contains(s.Text, "mcp-remote") {
			t.Errorf("a page shows %+v, want only clients that can have it", s)
		}
	}
}

func TestClientConfigOverStdioNamesTheUser(t *testing.T) {
	longtest.Only(t)
	alone := call{dir: t.TempDir(), stdin: "ten blue kettles"}
	alone.ok(t, "user", "add", "anna", "--password-stdin")
	if o := alone.run(t, "client-config", "claude-code", "--stdio", "--db", "souvenir.db"); o.code != exitOK ||
		strings.Contains(o.stdout, "--user") {
		t.Errorf(`a store of one user: %+v, want code %v and no "--user" in the stdout`, o, exitOK)
	}
	c := newStore(t) // two users
	for _, args := range [][]string{{"claude-code", "--stdio"}, {"cursor", "--stdio", "--json"}, {"--stdio"}} {
		o := c.run(t, append([]string{"client-config"}, args...)...)
		if o.code != exitUsage || o.stdout != "" ||
			!strings.Contains(o.stderr, "--user is missing, and the store has 2 users: anna, ben") {
			t.Errorf(`%v of a store of two users: %+v, want code %v, no stdout and "--user is missing, and the store has 2 `+
				`users: anna, ben" in the stderr`, args, o, exitUsage)
		}
	}
	if o := c.run(t, "client-config", "claude-code", "--stdio", "--user", "ben"); o.code != exitOK ||
		!strings.Contains(o.stdout, "--user ben") {
		t.Errorf(`with the user: %+v, want code %v and "--user ben" in the stdout`, o, exitOK)
	}
	if o := c.run(t, "client-config", "claude-code", "--stdio", "--user", "noah"); o.code == exitOK ||
		!strings.Contains(o.stderr, "noah") {
		t.Errorf("with an unknown user: got %+v, want an error that names it", o)
	}
}

// TestThePageOfClientsShowsWhatClientConfigPrints compares docs/clients.md with the command's output.
func TestThePageOfClientsShowsWhatClientConfigPrints(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(repository, "docs", "clients.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(content)
	c := call{dir: t.TempDir()}
	blocks := map[string]int{}
	for _, flags := range [][]string{
		{"claude-desktop", "--oauth"}, // on this machine
		{"--public-url", "https://memory.example.com", "--token", exampleToken},
		{"--public-url", "https://memory.example.com", "--oauth"},
		{"--stdio", "--db", "/home/anna/souvenir.db"},
	} {
		for _, s := range decode[[]printedConfig](t, c.ok(t, append([]string{"client-config", "--json"}, flags...)...)) {
			snippet := strings.ReplaceAll(s.Snippet, builtBinary, "/usr/local/bin/souvenir")
			blocks[snippet]++
			if !strings.Contains(page, "\n"+snippet+"\n```\n") {
				t.Errorf("got a docs/clients.md without what client-config %s %s prints, want one that shows it:\n%s", s.Client,
					strings.Join(flags, " "), snippet)
			}
			if !strings.Contains(page, "\n## "+titleOf(s.Client)+"\n") {
				t.Errorf("docs/clients.md has no section %s, want one", titleOf(s.Client))
			}
		}
	}
	// Every block of a configuration file must be one of them, so that none is outdated.
	for _, language := range []string{"```json\n", "```toml\n", "```text\n"} {
		rest := page
		for {
			_, after, found := strings.Cut(rest, language)
			if !found {
				break
			}
			block, after, _ := strings.Cut(after, "\n```\n")
			if rest = after; blocks[block] == 0 {
				t.Errorf("docs/clients.md shows what client-config does not print, want only what it prints:\n%s",
					block)
			}
			if language == "```json\n" && !json.Valid([]byte(block)) {
				t.Errorf("docs/clients.md shows what is no JSON:\n%s, want JSON", block)
			}
		}
	}
}

func titleOf(name string) string {
	for _, known := range clients() {
		if known.name == name {
			return known.title
		}
	}
	return ""
}
