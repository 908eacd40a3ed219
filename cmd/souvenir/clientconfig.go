package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// connection holds everything a client needs to connect: a URL and a token; or a URL alone, where the user signs in
// with OAuth; or a command that speaks the protocol over standard input and output.
type connection struct {
	url, token string
	command    []string
}

// exampleToken is the token of examples.
const exampleToken = "mcp_YOUR_TOKEN"

// client is an AI client that can use the server.
type client struct {
	name, title string
	where       string                  // where the snippet belongs
	overHTTP    func(connection) string // with the token, or with OAuth without one
	overOAuth   string                  // where the snippet without a token belongs, if not there
	overStdio   func(connection) string // nil for clients that run elsewhere and cannot start a program here
	connectors  bool                    // with OAuth, the requests come from the vendor's cloud
}

// inCloud reports whether a client connects from the internet, and with OAuth only.
func (c client) inCloud() bool { return c.overStdio == nil }

// place is where a snippet for a connection belongs.
func (c client) place(to connection) string {
	if to.command == nil && to.token == "" && c.overOAuth != "" && (!c.connectors || !onlyNearby(to.url)) {
		return c.overOAuth
	}
	return c.where
}

// snippet is the text to paste for a connection.
func (c client) snippet(to connection) string {
	if to.command != nil {
		return c.overStdio(to)
	}
	return c.overHTTP(to)
}

// object is a JSON object.
type object map[string]any

// entry is a server in the files of clients.
type entry struct {
	Type    string            `json:"type,omitempty"`
	URL     string            `json:"url,omitempty"`
	HTTPURL string            `json:"httpUrl,omitempty"`   // Gemini CLI's name; its url is for an older transport
	Server  string            `json:"serverUrl,omitempty"` // Windsurf's name
	Headers map[string]string `json:"headers,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
}

var claudeCode = client{
	name: "claude-code", title: "Claude Code", where: "run in a shell",
	overHTTP: func(c connection) string {
		add := "claude mcp add --transport http --scope user souvenir " + shellQuote(c.url)
		if c.token != "" {
			add += fmt.Sprintf(` --header "Authorization: Bearer %s"`, c.token)
		}
		return add
	},
	overStdio: func(c connection) string {
		var quoted []string
		for _, word := range c.command {
			quoted = append(quoted, shellQuote(word))
		}
		return "claude mcp add --scope user souvenir -- " + strings.Join(quoted, " ")
	},
}

// clients returns the clients that have snippets.
func clients() []client {
	return []client{
		claudeCode,
		{
			name: "claude-desktop", title: "Claude Desktop",
			where:     "claude_desktop_config.json (Settings, Developer, Edit Config)",
			overOAuth: connectorsOfClaude, connectors: true,
			overHTTP: func(c connection) string {
				if c.token == "" && !onlyNearby(c.url) {
					return connector(c)
				}
				return inFile("mcpServers", overRemote(c))
			},
			overStdio: func(c connection) string { return inFile("mcpServers", started(c)) },
		},
		{
			name: "cursor", title: "Cursor", where: "~/.cursor/mcp.json, or .cursor/mcp.json in a project",
			overHTTP:  func(c connection) string { return inFile("mcpServers", entry{URL: c.url, Headers: bearer(c)}) },
			overStdio: func(c connection) string { return inFile("mcpServers", started(c)) },
		},
		{
			name: "vscode", title: "VS Code",
			where: `.vscode/mcp.json in a project, or the command "MCP: Open User Configuration"`,
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
				table := "[mcp_servers.souvenir]\nurl = " + compact(c.url)
				if c.token != "" {
					table += fmt.Sprintf("\nhttp_headers = { Authorization = %s }", compact("Bearer "+c.token))
				}
				return table
			},
			overOAuth: "~/.codex/config.toml; then run: codex mcp login souvenir",
			overStdio: func(c connection) string {
				return fmt.Sprintf("[mcp_servers.souvenir]\ncommand = %s\nargs = %s", compact(c.command[0]), compact(c.command[1:]))
			},
		},
		{
			name: "gemini", title: "Gemini CLI", where: "~/.gemini/settings.json, or .gemini/settings.json in a project",
			overHTTP:  func(c connection) string { return inFile("mcpServers", entry{HTTPURL: c.url, Headers: bearer(c)}) },
			overStdio: func(c connection) string { return inFile("mcpServers", started(c)) },
		},
		{
			name: "windsurf", title: "Windsurf", where: "~/.codeium/windsurf/mcp_config.json",
			overHTTP:  func(c connection) string { return inFile("mcpServers", entry{Server: c.url, Headers: bearer(c)}) },
			overStdio: func(c connection) string { return inFile("mcpServers", started(c)) },
		},
		{name: "claude-ai", title: "Claude.ai", where: connectorsOfClaude, overHTTP: connector},
		{
			name: "chatgpt", title: "ChatGPT",
			where:    "Settings, Apps, Advanced settings: turn on Developer mode; then Create, with OAuth",
			overHTTP: connector,
		},
	}
}

// snippets returns, for the pages of the server, how to connect each client: with a token, or with OAuth if the
// token is "". Clients in the cloud support OAuth only, and are listed only where the internet reaches the server.
func snippets(address, token string) []server.Snippet {
	to := connection{url: address, token: token}
	var all []server.Snippet
	for _, known := range clients() {
		if known.inCloud() && (token != "" || !isHTTPS(address) || onlyNearby(address)) {
			continue
		}
		all = append(all, server.Snippet{Client: known.title, Where: known.place(to), Text: known.snippet(to)})
	}
	return all
}

// connectorsOfClaude is where Claude's apps add a server on the internet.
const connectorsOfClaude = "Customize, Connectors, +, Add custom connector"

// connector holds the fields in the forms of cloud clients. They sign in with OAuth and take no token.
func connector(c connection) string { return "Name: Souvenir\nURL:  " + c.url }

// bearer returns the header with the token; nil without one.
func bearer(c connection) map[string]string {
	if c.token == "" {
		return nil
	}
	return map[string]string{"Authorization": "Bearer " + c.token}
}

// overRemote lets mcp-remote speak HTTP for a client whose file supports commands only. Without a token it opens a
// browser to sign in.
func overRemote(c connection) entry {
	e := entry{Command: "npx", Args: []string{"-y", "mcp-remote", c.url}}
	if c.token != "" {
		e.Args = append(e.Args, "--header", "Authorization:${AUTHORIZATION}")
		e.Env = map[string]string{"AUTHORIZATION": "Bearer " + c.token}
	}
	if u, err := url.Parse(c.url); err == nil && u.Scheme == "http" && u.Hostname() != "localhost" &&
		u.Hostname() != "127.0.0.1" {
		e.Args = append(e.Args, "--allow-http")
	}
	return e
}

func started(c connection) entry { return entry{Command: c.command[0], Args: c.command[1:]} }

// inFile is the JSON file of a client whose servers are listed under a key. Its values always encode.
func inFile(key string, e entry) string {
	var b bytes.Buffer
	_ = printJSON(&b, object{key: map[string]entry{"souvenir": e}})
	return strings.TrimSpace(b.String())
}

// compact formats a value as JSON in one line, which is also valid TOML for strings and lists of them.
func compact(value any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value)
	return strings.TrimSpace(b.String())
}

// shellQuote quotes a word for a POSIX shell.
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
		Long: `Prints how to connect AI clients (MCP) with the server: a command to run, or a piece of a
configuration file, for one client or for all: ` + strings.Join(names[:6], ", ") + `,
` + strings.Join(names[6:], ", ") + `.

By default they connect to a running server over HTTP, with a token from "souvenir token add". With
--oauth they get only the URL, and ask their user to sign in there. With --stdio they start "souvenir
mcp" on the file themselves, without a server and without a token; several can do so at once; a file
with several users needs --user. claude-ai and chatgpt run elsewhere: they connect over HTTPS, with
OAuth, and so does Claude Desktop with --oauth, unless the URL leads to this machine or a private network.

Without --db, --stdio uses the file that "souvenir mcp" would find now.`,
		Example: `  souvenir client-config claude-code --token "$(souvenir token add --user anna --name laptop)"
  souvenir client-config cursor --public-url https://memory.example.com --token-file token.txt
  souvenir client-config --oauth --public-url https://memory.example.com
  souvenir client-config --stdio --db ~/souvenir.db`,
		Args: wants(0, 1, "CLIENT"), ValidArgs: names,
	}
	s := newConfigSettings(command)
	return c.command(command, func(ctx context.Context, args []string) error {
		chosen, err := chooseClients(args, names, *s.overStdio)
		if err != nil {
			return err
		}
		to, err := c.connect(ctx, s)
		if err != nil {
			return err
		}
		configs := []printedConfig{}
		for _, each := range chosen {
			configs = append(configs, printedConfig{each.name, each.place(to), each.snippet(to)})
		}
		switch {
		case *s.asJSON:
			return printJSON(&c.out, configs)
		case len(args) > 0: // the snippet alone, for pipes
			fmt.Fprintln(&c.out, configs[0].Snippet)
		default:
			for i, each := range chosen {
				fmt.Fprintf(&c.out, "%s: %s\n\n%s\n\n", each.title, configs[i].Where, configs[i].Snippet)
			}
		}
		c.adviseOnConfig(chosen, to)
		return nil
	})
}

// configSettings are the flags of client-config.
type configSettings struct {
	publicURL                *string
	token                    *secret
	oauth, overStdio, asJSON *bool
	db                       location
	user                     *string
	toolsets                 *[]string
	readOnly                 *bool
}

func newConfigSettings(command *cobra.Command) *configSettings {
	flags := command.Flags()
	s := &configSettings{
		publicURL: flags.String("public-url", "http://"+defaultListen, "`url` where clients reach the server"),
		token:     secretFlag(command, "token", "the token"),
		oauth:     flags.Bool("oauth", false, "no token: clients ask their user to sign in"),
		overStdio: flags.Bool("stdio", false, "let clients start \"souvenir mcp\" on the file, without a server"),
		user:      flags.String("user", "", "with --stdio: `name` or id of the user"),
		toolsets: flags.StringSlice("toolsets", nil, "with --stdio: the `sets` of tools to offer, separated by commas: "+
			toolsetNames()),
		readOnly: flags.Bool("read-only", false, "with --stdio: offer only tools that change nothing"),
		asJSON:   jsonFlag(command),
	}
	locationFlag(command, &s.db, "db", "with --stdio: the store's `file`, or "+addressForms())
	limits(command, "toolsets")
	return s
}

// printedConfig is the output of --json.
type printedConfig struct {
	Client  string `json:"client"`
	Where   string `json:"where"`
	Snippet string `json:"snippet"`
}

// chooseClients finds the named client, or else all that can connect in the requested way.
func chooseClients(args, names []string, overStdio bool) ([]client, error) {
	var chosen []client
	for _, known := range clients() {
		switch {
		case len(args) > 0 && known.name != strings.ToLower(args[0]):
		case !overStdio || !known.inCloud():
			chosen = append(chosen, known)
		case len(args) > 0:
			return nil, misused("%s runs elsewhere and cannot start a program here; omit --stdio", known.name)
		}
	}
	if len(chosen) == 0 {
		return nil, misused("%q is not a known client; give one of %s", args[0], strings.Join(names, ", "))
	}
	return chosen, nil
}

// connect collects the connection from the flags.
func (c *cli) connect(ctx context.Context, s *configSettings) (connection, error) {
	if *s.overStdio {
		return c.connectStdio(ctx, s)
	}
	if err := server.CheckPublicURL(*s.publicURL); err != nil {
		return connection{}, misused("--public-url: %v", err)
	}
	token, err := s.token.read()
	const onCommandLine = 2
	tokenFrom := max(given(s.token.flags, "token"), given(s.token.flags, "token-file"))
	switch {
	case err != nil:
		return connection{}, err
	case *s.oauth && tokenFrom == onCommandLine && given(s.token.flags, "oauth") == onCommandLine:
		return connection{}, misused("both --oauth and a token are given; give one of them")
	case *s.oauth && tokenFrom < onCommandLine: // a flag overrides a variable
		token = ""
	case token == "":
		token = exampleToken
	}
	return connection{url: strings.TrimSuffix(*s.publicURL, "/") + "/mcp", token: token}, nil
}

func (c *cli) connectStdio(ctx context.Context, s *configSettings) (connection, error) {
	if _, err := chooseToolsets(*s.toolsets); err != nil {
		return connection{}, err
	}
	program, err := os.Executable()
	if err != nil {
		return connection{}, err
	}
	db, err := c.absoluteStore(s.db)
	if err != nil {
		return connection{}, err
	}
	if err := c.checkUserGiven(ctx, db, *s.user); err != nil {
		return connection{}, err
	}
	command := []string{program, "mcp", "--db", db.String()}
	if *s.user != "" {
		command = append(command, "--user", *s.user)
	}
	if len(*s.toolsets) > 0 {
		command = append(command, "--toolsets", strings.Join(*s.toolsets, ","))
	}
	if *s.readOnly {
		command = append(command, "--read-only")
	}
	return connection{command: command}, nil
}

// absoluteStore returns the store that a client's settings name: clients start programs in folders of their own.
func (c *cli) absoluteStore(given location) (location, error) {
	if given.isDatabase() {
		return given, nil
	}
	path, err := string(given), error(nil)
	if path == "" {
		if path, _, err = c.findStore(false); err != nil {
			return "", err
		}
	}
	path, err = filepath.Abs(path)
	return location(path), err
}

// checkUserGiven refuses a command that would fail when the client starts it, because the store has several users and
// none is named. A file that does not exist yet will have one.
func (c *cli) checkUserGiven(ctx context.Context, db location, user string) error {
	if _, err := os.Stat(string(db)); err != nil && !db.isDatabase() {
		return nil // no file yet, or not readable by this user
	}
	return withStore(ctx, db, forReading, func(store *souvenir.Store) error {
		_, err := chooseUser(ctx, store, user)
		return renamed(err, "user", "--user")
	})
}

// adviseOnConfig prints what to do before a snippet works.
func (c *cli) adviseOnConfig(chosen []client, to connection) {
	if to.command != nil {
		return
	}
	for _, each := range chosen {
		if !onlyNearby(to.url) || to.token != "" && !each.inCloud() {
			continue
		}
		switch {
		case each.inCloud():
			fmt.Fprintf(c.stderr, "%s cannot reach %s: it connects from its vendor's cloud, and this address works only on "+
				"this machine or its network; give a --public-url on the internet\n", each.title, to.url)
		case each.connectors:
			fmt.Fprintf(c.stderr, "%s's connectors connect from its vendor's cloud and cannot reach %s. So this uses "+
				"mcp-remote (needs Node.js) to connect from this machine; --stdio needs neither that nor a "+
				"server\n", each.title, to.url)
		}
	}
	cloudOnly := !slices.ContainsFunc(chosen, func(each client) bool { return !each.inCloud() })
	if to.token == exampleToken && !cloudOnly {
		fmt.Fprintf(c.stderr, "replace %s with a token; \"souvenir token add\" creates one\n", exampleToken)
	}
	if cloudOnly && !isHTTPS(to.url) && !onlyNearby(to.url) {
		fmt.Fprintf(c.stderr, "%s connects from the internet, and only over https: give the server's --public-url\n",
			chosen[0].title)
	}
}
