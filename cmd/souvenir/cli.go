package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/spf13/cobra"
)

// Exit statuses.
const (
	exitOK    = 0
	exitError = 1 // the command failed, or a check found something
	exitUsage = 2 // the command line, or a variable, is wrong
)

// cli is the outside world, which all commands share.
type cli struct {
	stdin          *os.File
	stdout, stderr *os.File
	lookup         func(name string) (string, bool) // the environment

	out     output // standard output, for all output
	running bool   // the command line is valid; later failures are not usage errors
}

// usageError is a mistake in the command line or in a variable.
type usageError struct{ message string }

func (e usageError) Error() string { return e.message }

func misused(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// errSilent ends a command with exitError when the reason is already printed.
var errSilent = errors.New("")

// run executes a command line and returns the exit status.
func (c *cli) run(ctx context.Context, args []string) int {
	root := c.rootCommand()
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	if err == nil && c.out.err != nil {
		c.running = true
		err = fmt.Errorf("standard output cannot be written, and the output is lost: %w", c.out.err)
	}
	var wrong usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errSilent):
		return exitError
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		c.complain(red, "interrupted")
		return exitError
	case errors.As(err, &wrong) || !c.running:
		c.complain(red, "%s\nsee: %s --help", strings.TrimSpace(fault.Text(err)), command.CommandPath())
		return exitUsage
	}
	c.complain(red, "%s", fault.Text(inFlags(command, err)))
	return exitError
}

// inFlags replaces the argument in an error of the library with the command's flag for it: redirect_uris and
// RedirectURIs become --redirect-uri.
func inFlags(command *cobra.Command, err error) error {
	var known *souvenir.Error
	if !errors.As(err, &known) || known.Argument == "" {
		return err
	}
	words := wordStart.ReplaceAllString(known.Argument, "$1-$2")
	flag := strings.ToLower(strings.ReplaceAll(words, "_", "-"))
	for _, name := range []string{flag, strings.TrimSuffix(flag, "s")} {
		if command.Flags().Lookup(name) != nil {
			return renamed(err, known.Argument, "--"+name)
		}
	}
	return err
}

// wordStart matches where a word begins in a Go name.
var wordStart = regexp.MustCompile(`([a-z])([A-Z])`)

func (c *cli) rootCommand() *cobra.Command {
	c.out.file, c.out.painted = c.stdout, c.paints(c.stdout)
	root := &cobra.Command{
		Use:     "souvenir",
		Version: readBuild().Version,
		Short:   "A memory for AI agents, in one file",
		Long: `Souvenir stores memories (text, metadata, vectors) in one file and finds them again by meaning and
by word. "souvenir serve" serves it to AI clients over HTTP; the other commands manage the file,
whether or not a server is running on it.

Every flag can also be set with an environment variable: SOUVENIR_ and the flag's name in capitals,
with _ for -. --public-url is SOUVENIR_PUBLIC_URL. A flag on the command line wins over a variable.
Secrets can be read from a file, with --NAME-file, or with SOUVENIR_NAME_FILE.

On a terminal, output is coloured, unless NO_COLOR is set or TERM is dumb, and long operations show
their progress. Pipes and files get neither.

Exit status: 0 on success, 1 on failure, 2 if the command line is wrong. Results go to standard
output, everything else to standard error.`,
		Example: `  souvenir demo                                   try it: a temporary server with example memories
  souvenir user add anna --admin                  the first user
  souvenir serve                                  the server, on http://127.0.0.1:8377
  souvenir token add --user anna --name laptop    a credential for a client
  souvenir client-config                          what to paste into Claude Code, Cursor, VS Code, ...
  souvenir search "what did we decide about the database?"`,
		Args:              cobra.ArbitraryArgs, // see group
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(command *cobra.Command, _ []string) error { return c.applyEnvironment(command) },
	}
	root.SetIn(c.stdin)
	root.SetOut(&c.out)
	root.SetErr(c.stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	root.SetHelpFunc(c.printHelp)
	root.SetUsageFunc(func(command *cobra.Command) error { c.printHelp(command, nil); return nil })
	root.AddGroup(
		&cobra.Group{ID: groupServer, Title: "Server and clients:"},
		&cobra.Group{ID: groupMemories, Title: "Memories:"},
		&cobra.Group{ID: groupFile, Title: "Store:"},
	)
	root.AddCommand(
		c.serveCommand(), c.mcpCommand(), c.demoCommand(), c.healthCommand(), c.doctorCommand(), c.userCommand(),
		c.projectCommand(), c.tokenCommand(), c.clientCommand(), c.clientConfigCommand(),
		c.searchCommand(), c.learnCommand(), c.exportCommand(), c.importCommand(), c.copyCommand(), c.trashCommand(),
		c.retentionCommand(),
		c.filesCommand(), c.keyCommand(), c.backupCommand(), c.restoreCommand(), c.checkCommand(), c.recoverCommand(),
		c.reindexCommand(), c.purgeCommand(), c.auditCommand(), c.receiptCommand(),
		c.statsCommand(),
		c.manCommand(), c.versionCommand(), c.readDocumentCommand(),
	)
	root.SetHelpCommand(helpCommand())
	group(root)
	root.RunE = func(command *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(command, args[0])
		}
		return command.Help() // the name alone prints the help
	}
	return root
}

// Groups of commands in the help.
const (
	groupServer   = "server"
	groupMemories = "memories"
	groupFile     = "file"
)

// command builds a command from its description and its function.
func (c *cli) command(command *cobra.Command, run func(ctx context.Context, args []string) error) *cobra.Command {
	if command.Args == nil {
		command.Args = cobra.NoArgs
	}
	command.RunE = func(command *cobra.Command, args []string) error {
		c.running = true
		return run(actingAs(c.withUserKeys(c.withMasterKey(c.showsOpening(command.Context()))), souvenir.ViaCommand), args)
	}
	return command
}

// actingAs returns a context whose calls the audit log attributes to a way of access, and to no user.
func actingAs(ctx context.Context, via souvenir.ActorVia) context.Context {
	return souvenir.WithActor(ctx, func() souvenir.Actor { return souvenir.Actor{Via: via} })
}

// group builds a command that only has subcommands.
func group(command *cobra.Command, children ...*cobra.Command) *cobra.Command {
	command.AddCommand(children...)
	command.Args = cobra.ArbitraryArgs
	command.RunE = func(command *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(command, args[0])
		}
		return misused("%s needs a command; give one of %s", command.CommandPath(), strings.Join(childNames(command), ", "))
	}
	return command
}

func unknownCommand(command *cobra.Command, name string) error {
	message := fmt.Sprintf("%s has no command %q", command.CommandPath(), name)
	command.SuggestionsMinimumDistance = 2
	if near := command.SuggestionsFor(name); len(near) > 0 {
		return misused("%s; did you mean %s?", message, strings.Join(near, " or "))
	}
	names := childNames(command)
	if len(names) == 0 {
		return misused("%s: it is a command itself", message)
	}
	return misused("%s; give one of %s", message, strings.Join(names, ", "))
}

func childNames(command *cobra.Command) []string {
	var names []string
	for _, child := range command.Commands() {
		if child.IsAvailableCommand() {
			names = append(names, child.Name())
		}
	}
	return names
}

// wants checks the number of arguments and names missing ones.
func wants(least, most int, names ...string) cobra.PositionalArgs {
	return func(command *cobra.Command, given []string) error {
		switch {
		case len(given) < least:
			return misused("%s needs %s", command.CommandPath(), strings.Join(names[len(given):least], " and "))
		case most >= 0 && len(given) > most && most == 0:
			return misused("%s takes no arguments, but got %q", command.CommandPath(), given[0])
		case most >= 0 && len(given) > most:
			return misused("%s takes only %s, but got %q as well", command.CommandPath(), strings.Join(names, " and "),
				given[most])
		}
		return nil
	}
}
