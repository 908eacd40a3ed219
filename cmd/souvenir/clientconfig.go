package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir/server"
)

// connection is what a client needs to know: a URL and a token, or a command that speaks with it over standard input and output.
type connection struct {
	url, token string
	command    []string
}

// tokenStandIn stands where a token belongs.
const tokenStandIn = "mcp_YOUR_TOKEN"

// client is an AI client that can use the server.
type client struct {
	name, title string
	where       string // where the snippet belongs
	overHTTP    func(connection) string
	overStdio   func(connection) string
}

// object is a JSON object.
type object map[string]any

// entry is how the files of clients name a server.
type entry struct {
	Type    string            `json:"type,omitempty"`
	URL     string            `json:"url,omitempty"`
	HTTPURL string            `json:"httpUrl,omitempty"` // Gemini CLI's name; its url is for an older transport
	Headers map[string]string `json:"headers,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
}

var claudeCode = client{
	name: "claude-code", title: "Claude Code", where: "run in a shell",
	overHTTP: func(c connection) string {
		return fmt.Sprintf(`claude mcp add --transport http --scope user souvenir %s --header "Authorization: Bearer %s"`, shellQuote(c.url), c.token)
	},
	overStdio: func(c connection) string {
		var quoted []string
		for _, word := range c.command {
			quoted = append(quoted, shellQuote(word))
		}
		return "claude mcp add --scope user souvenir -- " + strings.Join(quoted, " ")
	},
}

// clients returns the clients that there are snippets for.
func clients() []client {
	return []client{
		claudeCode,
		{
			name: "claude-desktop", title: "Claude Desktop", where: "claude_desktop_config.json (Settings, Developer, Edit Config)",
			overHTTP: func(c connection) string { // Claude Desktop's file knows commands only; mcp-remote is one that speaks HTTP
				args := []string{"-y", "mcp-remote", c.url, "--header", "Authorization:${AUTHORIZATION}"}
				if u, err := url.Parse(c.url); err == nil && u.Scheme == "http" && u.Hostname() != "localhost" && u.Hostname() != "127.0.0.1" {
					args = append(args, "--allow-http")
				}
				return inFile("mcpServers", entry{Command: "npx", Args: args, Env: map[string]string{"AUTHORIZATION": "Bearer " + c.token}})
			},
			overStdio: func(c connection) string { return inFile("mcpServers", started(c)) },
		},
		{
			name: "cursor", title: "Cursor", where: "~/.cursor/mcp.json, or .cursor/mcp.json in a project",
			overHTTP:  func(c connection) string { return inFile("mcpServers", entry{URL: c.url, Headers: bearer(c)}) },
			overStdio: func(c connection) string { return inFile("mcpServers", started(c)) },
		},
		{
			name: "vscode", title: "VS Code", where: `.vscode/mcp.json in a project, or the command "MCP: Open User Configuration"`,
			overHTTP: func(c connection) string {
				return inFile("servers", entry{Type: "http", URL: c.url, Headers: bearer(c)})
			},
			overStdio: func(c connection) string {
				e := started(c)
				e.Type = "stdio"
				return inFile("servers", e)
			},
		},
		{
			name: "codex", title: "Codex", where: "~/.codex/config.toml",
			overHTTP: func(c connection) string {
				return fmt.Sprintf("[mcp_servers.souvenir]\nurl = %s\nhttp_headers = { Authorization = %s }", compact(c.url), compact("Bearer "+c.token))
			},
			overStdio: func(c connection) string {
				return fmt.Sprintf("[mcp_servers.souvenir]\ncommand = %s\nargs = %s", compact(c.command[0]), compact(c.command[1:]))
			},
		},
		{
			name: "gemini", title: "Gemini CLI", where: "~/.gemini/settings.json, or .gemini/settings.json in a project",
			overHTTP:  func(c connection) string { return inFile("mcpServers", entry{HTTPURL: c.url, Headers: bearer(c)}) },
			overStdio: func(c connection) string { return inFile("mcpServers", started(c)) },
		},
	}
}

func bearer(c connection) map[string]string {
	return map[string]string{"Authorization": "Bearer " + c.token}
}

func started(c connection) entry { return entry{Command: c.command[0], Args: c.command[1:]} }

// inFile is the JSON file of a client whose servers stand under a key. What is shown here always encodes.
func inFile(key string, e entry) string {
	var b bytes.Buffer
	_ = printJSON(&b, object{key: map[string]entry{"souvenir": e}})
	return strings.TrimSpace(b.String())
}

// compact is a value as JSON in one line, which is how TOML writes strings and lists of them, too.
func compact(value any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value)
	return strings.TrimSpace(b.String())
}

// shellQuote is a word as a POSIX shell reads it.
func shellQuote(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@%+,") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func isHTTPS(address string) bool { return strings.HasPrefix(address, "https://") }

func (c *cli) clientConfigCommand() *cobra.Command {
	var names []string
	for _, known := range clients() {
		names = append(names, known.name)
	}
	command := &cobra.Command{
		Use: "client-config [CLIENT] [flags]", GroupID: groupServer,
		Short: "Print what to paste into AI clients",
		Long: `Prints how to connect AI clients (MCP) with the server: a command to run, or a piece of a configuration file, for one client or for
all: ` + strings.Join(names, ", ") + `.

By default they speak HTTP with a running server, with a token, which "souvenir token add" makes. With --stdio they start "souvenir
mcp" themselves, on the file, without a server and without a token; several may do so at once.`,
		Example: `  souvenir client-config claude-code --token "$(souvenir token add --user anna --name laptop)"
  souvenir client-config cursor --public-url https://memory.example.com --token-file token.txt
  souvenir client-config --stdio --db ~/souvenir.db`,
		Args: wants(0, 1, "CLIENT"), ValidArgs: names,
	}
	flags := command.Flags()
	publicURL := flags.String("public-url", "http://"+defaultListen, "`url` where clients reach the server")
	token := secretFlag(command, "token", "the token")
	overStdio := flags.Bool("stdio", false, "have clients start \"souvenir mcp\" on the file, without a server")
	db := dbFlag(command)
	user := flags.String("user", "", "with --stdio: `name` or id of the user for whom it works")
	asJSON := jsonFlag(command)
	return c.command(command, func(_ context.Context, args []string) error {
		chosen, err := chooseClients(args, names)
		if err != nil {
			return err
		}
		to, err := connect(*publicURL, token, *overStdio, *db, *user)
		if err != nil {
			return err
		}
		shown := []shownConfig{}
		for _, each := range chosen {
			show := each.overHTTP
			if *overStdio {
				show = each.overStdio
			}
			shown = append(shown, shownConfig{each.name, each.where, show(to)})
		}
		switch {
		case *asJSON:
			return printJSON(&c.out, shown)
		case len(args) > 0: // the snippet alone, to be piped
			fmt.Fprintln(&c.out, shown[0].Snippet)
		default:
			for i, each := range chosen {
				fmt.Fprintf(&c.out, "%s: %s\n\n%s\n\n", each.title, each.where, shown[i].Snippet)
			}
		}
		if !*overStdio && to.token == tokenStandIn {
			fmt.Fprintf(c.stderr, "put a token in the place of %s; \"souvenir token add\" makes one\n", tokenStandIn)
		}
		return nil
	})
}

// shownConfig is what --json prints.
type shownConfig struct {
	Client  string `json:"client"`
	Where   string `json:"where"`
	Snippet string `json:"snippet"`
}

func chooseClients(args, names []string) ([]client, error) {
	if len(args) == 0 {
		return clients(), nil
	}
	for _, known := range clients() {
		if known.name == strings.ToLower(args[0]) {
			return []client{known}, nil
		}
	}
	return nil, misused("%q is no client that is known here; there are: %s", args[0], strings.Join(names, ", "))
}

// connect gathers what the flags say about the connection.
func connect(publicURL string, token *secret, overStdio bool, db, user string) (connection, error) {
	if !overStdio {
		if err := server.CheckPublicURL(publicURL); err != nil {
			return connection{}, misused("--public-url: %v", err)
		}
		value, err := token.read()
		if value == "" {
			value = tokenStandIn
		}
		return connection{url: strings.TrimSuffix(publicURL, "/") + "/mcp", token: value}, err
	}
	program, err := os.Executable()
	if err != nil {
		return connection{}, err
	}
	// Clients start programs in folders of their own.
	if db, err = filepath.Abs(db); err != nil {
		return connection{}, err
	}
	command := []string{program, "mcp", "--db", db}
	if user != "" {
		command = append(command, "--user", user)
	}
	return connection{command: command}, nil
}
