package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/mcpserver"
)

// mcpSettings are the flags of mcp.
type mcpSettings struct {
	db          location
	user        *string
	toolsets    *[]string
	secrets     *string
	readOnly    *bool
	indexMemory byteSize
	trashDays   *int
	changeable  func() []souvenir.SettingName // the settings that no flag fixes
	logLevel    *string
	embedder    embedderFlags
}

func (c *cli) mcpCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "mcp [flags]", GroupID: groupServer,
		Short: "Serve MCP over standard input and output, for clients that start it",
		Long: `Serves the Model Context Protocol over standard input and output, on the file, without a server and
without a token. AI clients start it themselves; "souvenir client-config --stdio" prints their
configuration. Any number of them can run on one file, alongside "souvenir serve" and the other
commands.

Without --db it uses souvenir.db in the working directory if it exists, else the file of a server
that this user runs, else souvenir.db in the user's data folder: ` + dataFolders + `.
A file that does not exist is created, unless --read-only is given.

It works for one user. A store with several needs --user. Anyone who can start it can read the file,
so it asks for no token.

It stops at the end of its input, or at SIGTERM or SIGINT, after it has answered all requests. Standard
output carries only messages of the protocol.`,
		Example: `  souvenir mcp
  souvenir mcp --db ~/souvenir.db --user anna
  souvenir mcp --read-only --toolsets memory,chatgpt
  claude mcp add --scope user souvenir -- souvenir mcp --db ~/souvenir.db`,
	}
	flags := command.Flags()
	s := &mcpSettings{
		user:        userFlag(command, "the user to act for"),
		toolsets:    toolsetsFlag(command),
		secrets:     secretsFlag(command),
		readOnly:    flags.Bool("read-only", false, "open the file read-only, and offer only tools that change nothing"),
		indexMemory: 256 << 20,
		trashDays:   trashDaysFlag(command),
		changeable:  func() []souvenir.SettingName { return changeable(flags) },
		embedder:    newEmbedderFlags(command),
		logLevel: flags.String("log-level", "warn",
			"minimum `level` of log messages, on standard error: debug, info, warn or error"),
	}
	locationFlag(command, &s.db, "db",
		"the store's `file`, or "+addressForms()+"; if empty, found as described above")
	flags.Var(&s.indexMemory, "index-memory",
		"maximum `bytes` of memory for the search index, which the first search starts to load; above it, and with 0, "+
			"searches run on disk")
	_ = command.RegisterFlagCompletionFunc("log-level",
		cobra.FixedCompletions([]string{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp))
	return c.storing(command, func(ctx context.Context, _ []string) error { return c.mcp(ctx, s) })
}

func toolsetsFlag(command *cobra.Command) *[]string {
	sets := command.Flags().StringSlice("toolsets", nil,
		"the `sets` of tools to offer to MCP clients, separated by commas: "+toolsetNames()+" (default memory)")
	limits(command, "toolsets")
	return sets
}

func toolsetNames() string {
	var names []string
	for _, each := range mcpserver.Toolsets() {
		names = append(names, string(each))
	}
	return strings.Join(names, ", ")
}

func (c *cli) mcp(ctx context.Context, s *mcpSettings) error {
	log, err := c.logger(*s.logLevel, "text")
	if err != nil {
		return err
	}
	chosen, err := chooseToolsets(*s.toolsets)
	if err != nil {
		return err
	}
	if err := checkTrashDays(*s.trashDays); err != nil {
		return err
	}
	if s.db == "" {
		path, why, err := c.findStore(!*s.readOnly)
		if err != nil {
			return err
		}
		log.Info("no --db is given", "file", path, "why", why)
		s.db = location(path)
	}
	embedder, err := s.embedder.embedder()
	if err != nil {
		return err
	}
	how := forMaking
	if *s.readOnly {
		how = forReading
	}
	options := &souvenir.Options{ReadOnly: *s.readOnly, IndexMemory: s.indexMemory.limit(),
		KeepTrash: keepTrash(*s.trashDays), Logger: log, Embedder: embedder, KeepModel: embedder == nil,
		Documents: documentReader(), Changeable: s.changeable()}
	if err := treatSecrets(options, *s.secrets); err != nil {
		return err
	}
	store, err := s.db.open(ctx, options)
	if err != nil {
		return openError(s.db, how, err)
	}
	defer store.Close()
	view, err := viewFor(ctx, store, *s.user, *s.readOnly)
	if err != nil {
		return err
	}
	if term.IsTerminal(int(c.stdin.Fd())) {
		fmt.Fprintf(c.stderr, "This serves MCP to a client that starts it: \"souvenir client-config --stdio\" prints its "+
			"configuration. Ctrl-D stops it.\n")
	}
	// A client that goes away must not end the process before the store is closed.
	signal.Ignore(syscall.SIGPIPE)
	server := mcpserver.New(view,
		&mcpserver.Options{Toolsets: chosen, ReadOnly: *s.readOnly, Version: readBuild().Version, Logger: log,
			OnCall: recorder(store, view.Access(), log)})
	if err := mcpserver.ServeStdio(ctx, server, c.stdin, c.stdout, &mcpserver.StdioOptions{Logger: log}); err != nil {
		return err
	}
	return store.Close()
}

// recorder records the calls of the one client for its user. A read-only store keeps no record.
func recorder(store *souvenir.Store, access souvenir.Access, log *slog.Logger) func(context.Context, mcpserver.Call) {
	return func(ctx context.Context, c mcpserver.Call) {
		n := c.Activity()
		n.Principal.Access, n.Client = access, c.Client
		if n.Tool == "" {
			n.Tool = "tools/call"
		}
		if err := store.Upkeep().RecordActivity(context.WithoutCancel(ctx), n); err != nil &&
			!errors.Is(err, souvenir.ErrReadOnly) {
			log.Debug("could not record a call", "tool", n.Tool, "error", err)
		}
	}
}

// chooseToolsets reads --toolsets.
func chooseToolsets(names []string) ([]mcpserver.Toolset, error) {
	var chosen []mcpserver.Toolset
	for _, name := range names {
		each := mcpserver.Toolset(strings.ToLower(strings.TrimSpace(name)))
		if !slices.Contains(mcpserver.Toolsets(), each) {
			return nil, misused("--toolsets has %q; give some of %s", name, toolsetNames())
		}
		chosen = append(chosen, each)
	}
	return chosen, nil
}

// viewFor returns the view of the user for whom a client works.
func viewFor(ctx context.Context, store *souvenir.Store, named string, readOnly bool) (*souvenir.Store, error) {
	user, err := chooseUser(ctx, store, named)
	var wrong usageError
	switch {
	case errors.As(err, &wrong):
		// The store has several users; the command line may come from a client's settings.
		return nil, errors.New(wrong.message)
	case err != nil:
		return nil, renamed(err, "user", "--user")
	case user.Disabled:
		return nil, fmt.Errorf("--user: %s is disabled; \"souvenir user enable %s\" enables the user again", nameOf(user),
			nameOf(user))
	}
	return store.As(souvenir.Access{User: user.ID, ReadOnly: readOnly, Through: "mcp"}), nil
}
