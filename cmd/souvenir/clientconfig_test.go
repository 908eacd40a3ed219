package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func clientNames(shown []shownConfig) (names []string) {
	for _, s := range shown {
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
			[]string{"mcp", "add", "--transport", "http", "--scope", "user", "souvenir", "https://memory.example.com/mcp", "--header", "Authorization: Bearer mcp_abc"},
		},
		{
			[]string{"--public-url", "https://memory.example.com", "--oauth"}, everywhere,
			[]string{"https://memory.example.com/mcp"}, []string{"Bearer", tokenStandIn, "eaders"},
			[]string{"mcp", "add", "--transport", "http", "--scope", "user", "souvenir", "https://memory.example.com/mcp"},
		},
		{
			[]string{"--stdio", "--db", "it's mine.db", "--user", "anna", "--read-only", "--toolsets", "memory,chatgpt"}, anywhere,
			[]string{"mcp", "--db", db, "--user", "anna", "--read-only", "--toolsets", "memory,chatgpt"}, []string{"http", "Bearer"},
			[]string{"mcp", "add", "--scope", "user", "souvenir", "--", builtBinary, "mcp", "--db", db, "--user", "anna", "--toolsets", "memory,chatgpt", "--read-only"},
		},
	} {
		shown := decode[[]shownConfig](t, c.ok(t, append([]string{"client-config", "--json"}, test.flags...)...))
		if got := clientNames(shown); !slices.Equal(got, test.clients) {
			t.Errorf("%v: the clients are %q; want %q", test.flags, got, test.clients)
		}
		for _, s := range shown {
			for _, word := range test.words {
				inShell := strings.ReplaceAll(word, "'", `'\''`)
				if cloud := s.Client == "claude-ai" || s.Client == "chatgpt"; cloud && strings.HasPrefix(word, "Bearer") {
					continue // it takes no token
				}
				if !strings.Contains(s.Snippet, word) && !strings.Contains(s.Snippet, inShell) {
					t.Errorf("%s: %q is not in\n%s", s.Client, word, s.Snippet)
				}
			}
			for _, word := range test.withouts {
				if strings.Contains(s.Snippet, word) {
					t.Errorf("%s: %q is in\n%s", s.Client, word, s.Snippet)
				}
			}
			if strings.HasPrefix(s.Snippet, "{") {
				decode[map[string]any](t, s.Snippet)
			}
			if s.Where == "" {
				t.Errorf("%s: nothing says where it belongs", s.Client)
			}
		}
		out, err := exec.CommandContext(t.Context(), "sh", "-c", `claude() { printf '%s\n' "$@"; }; `+shown[0].Snippet).Output()
		if err != nil || string(out) != strings.Join(test.shell, "\n")+"\n" {
			t.Errorf("%s\nis read by a shell as\n%s%v", shown[0].Snippet, out, err)
		}
	}
	if o := c.run(t, "client-config", "codex"); o.code != exitOK || !strings.HasPrefix(o.stdout, "[mcp_servers.souvenir]\nurl = ") || !strings.Contains(o.stderr, tokenStandIn) {
		t.Errorf("without a token: %+v", o)
	}
	if o := c.run(t, "client-config", "chatgpt"); o.code != exitOK || !strings.Contains(o.stderr, "https") || strings.Contains(o.stderr, tokenStandIn) {
		t.Errorf("a client on the internet, with a server that is not: %+v", o)
	}
}

func TestClientConfigOverStdioStarts(t *testing.T) {
	c := newStore(t)
	shown := c.ok(t, "client-config", "cursor", "--stdio", "--user", "anna", "--read-only", "--toolsets", "chatgpt")
	config := decode[struct {
		MCPServers map[string]struct {
			Command string
			Args    []string
		}
	}](t, shown)
	started := config.MCPServers["souvenir"]
	if started.Command != builtBinary {
		t.Fatalf("the command is %q", started.Command)
	}
	p := call{dir: t.TempDir()}.startMCP(t, started.Args[1:]...)
	if names := p.tools(t); !slices.Equal(names, []string{"search", "fetch"}) {
		t.Errorf("the tools are %q; want search and fetch", names)
	}
	p.end(t)
}

// TestThePageOfClientsShowsWhatClientConfigPrints keeps docs/clients.md and the command the same.
func TestThePageOfClientsShowsWhatClientConfigPrints(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(repository, "docs", "clients.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(content)
	c := call{dir: t.TempDir()}
	blocks := map[string]int{}
	for _, flags := range [][]string{
		{"--public-url", "https://memory.example.com", "--token", tokenStandIn},
		{"--public-url", "https://memory.example.com", "--oauth"},
		{"--stdio", "--db", "/home/anna/souvenir.db"},
	} {
		for _, s := range decode[[]shownConfig](t, c.ok(t, append([]string{"client-config", "--json"}, flags...)...)) {
			snippet := strings.ReplaceAll(s.Snippet, builtBinary, "/usr/local/bin/souvenir")
			blocks[snippet]++
			if !strings.Contains(page, "\n"+snippet+"\n```\n") {
				t.Errorf("docs/clients.md does not show what client-config %s %s prints:\n%s", s.Client, strings.Join(flags, " "), snippet)
			}
			if !strings.Contains(page, "\n## "+titleOf(s.Client)+"\n") {
				t.Errorf("docs/clients.md has no section %s", titleOf(s.Client))
			}
		}
	}
	// Every block of a configuration file is one of them, so that none is left behind when they change.
	for _, language := range []string{"```json\n", "```toml\n", "```text\n"} {
		rest := page
		for {
			_, after, found := strings.Cut(rest, language)
			if !found {
				break
			}
			block, after, _ := strings.Cut(after, "\n```\n")
			if rest = after; blocks[block] == 0 {
				t.Errorf("docs/clients.md shows what client-config does not print:\n%s", block)
			}
			if language == "```json\n" && !json.Valid([]byte(block)) {
				t.Errorf("docs/clients.md shows what is no JSON:\n%s", block)
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
