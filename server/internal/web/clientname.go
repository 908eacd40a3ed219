package web

import (
	"regexp"
	"strings"
)

// versioned is the name of a program with its version, as in "cursor/2.0.64".
var versioned = regexp.MustCompile(`^([^/]+)/v?[0-9][^/]*$`)

// products are the common names of programs that send other names.
var products = map[string]string{"claude-ai": "Claude", "claude-user": "Claude",
	"claude-code": "Claude Code", "codex": "Codex",
	"codex-mcp-client": "Codex", "cursor": "Cursor", "cursor-vscode": "Cursor", "gemini-cli": "Gemini CLI",
	"gemini-cli-mcp-client": "Gemini CLI", "openai-mcp": "ChatGPT", "visual studio code": "VS Code",
	"vscode": "VS Code", "windsurf": "Windsurf", "windsurf-client": "Windsurf"}

// ClientName returns a program's common name, without its version, from its User-Agent or the name that it gives.
func ClientName(client string) string {
	if IsBrowser(client) {
		return BrowserName(client)
	}
	if found := versioned.FindStringSubmatch(client); found != nil {
		client = found[1]
	}
	if product := products[strings.ToLower(client)]; product != "" {
		return product
	}
	return client
}

// ClientNames are the common names of programs. Where several would have the same, they keep their versions.
func ClientNames(clients []string) []string {
	var names []string
	times := map[string]int{}
	for _, client := range clients {
		name := ClientName(client)
		names = append(names, name)
		times[name]++
	}
	for i, client := range clients {
		if _, version, found := strings.Cut(client, "/"); found && times[names[i]] > 1 && !IsBrowser(client) {
			names[i] += " " + version
		}
	}
	return names
}

// IsBrowser reports whether a User-Agent is that of a browser.
func IsBrowser(client string) bool { return strings.HasPrefix(client, "Mozilla/") }
