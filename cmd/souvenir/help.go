package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpCommand is "souvenir help COMMAND", as in git.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND...]",
		Short: "Show the help of a command",
		Long:  `Shows the help of a command, like --help after it.`,
		Example: `  souvenir help serve
  souvenir help user add`,
		RunE: func(command *cobra.Command, names []string) error {
			found, rest, err := command.Root().Find(names)
			if err != nil || len(rest) > 0 {
				return unknownCommand(found, rest[0])
			}
			return found.Help()
		},
	}
}

// printHelp prints a command's page, in the order of a manual page.
func (c *cli) printHelp(command *cobra.Command, _ []string) {
	w := command.OutOrStdout()
	long := command.Long
	if long == "" {
		long = command.Short + "."
	}
	fmt.Fprintf(w, "%s\n\n", strings.TrimSpace(long))

	paint := paintOf(w)
	fmt.Fprintln(w, paint(bold, "Usage:"))
	if command.Runnable() && !command.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s\n", command.UseLine())
	}
	if command.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s COMMAND\n", command.CommandPath())
		printChildren(w, command)
	}
	printFlags(w, command)
	if command.HasExample() {
		fmt.Fprintf(w, "\n%s\n%s\n", paint(bold, "Examples:"), strings.TrimRight(command.Example, "\n"))
	}
	if command.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\n\"%s COMMAND --help\" shows more about a command.\n", command.CommandPath())
	}
}

func printChildren(w io.Writer, command *cobra.Command) {
	paint, width := paintOf(w), 0
	for _, child := range command.Commands() {
		width = max(width, len(child.Name()))
	}
	list := func(title, group string) {
		printed := false
		for _, child := range command.Commands() {
			if !child.IsAvailableCommand() || child.GroupID != group {
				continue
			}
			if !printed {
				fmt.Fprintf(w, "\n%s\n", paint(bold, title))
				printed = true
			}
			fmt.Fprintf(w, "  %s  %s\n", paint(cyan, fmt.Sprintf("%-*s", width, child.Name())), child.Short)
		}
	}
	for _, g := range command.Groups() {
		list(g.Title, g.ID)
	}
	other := "Commands:"
	if len(command.Groups()) > 0 {
		other = "Other:"
	}
	list(other, "")
}

// printFlags prints each flag above its description: the variable's name leaves no room beside it.
func printFlags(w io.Writer, command *cobra.Command) {
	paint := paintOf(w)
	title := "\n" + paint(bold, "Flags, and the variables that set them:") + "\n"
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden || !hasVariable(flag) {
			return
		}
		fmt.Fprint(w, title)
		title = ""
		name, usage := flagTexts(flag)
		name = paint(cyan, fmt.Sprintf("%-34s", name)) + " " + paint(faint, variable(flag.Name))
		fmt.Fprintf(w, "  %s\n      %s\n", name, usage)
	})
}

// flagTexts returns how a flag is given, and what it means.
func flagTexts(flag *pflag.Flag) (name, usage string) {
	kind, usage := pflag.UnquoteUsage(flag)
	name = "--" + flag.Name
	if flag.Shorthand != "" {
		name = "-" + flag.Shorthand + ", " + name
	}
	if kind != "" {
		name += " " + strings.ToUpper(kind)
	}
	switch flag.DefValue {
	case "", "false", "0", "[]", "0s":
	default:
		usage += fmt.Sprintf(" (default %s)", shortDuration(flag))
	}
	return name, usage
}

// shortDuration formats a flag's default, a duration, without its zero units: 24h for 24h0m0s.
func shortDuration(flag *pflag.Flag) string {
	if flag.Value.Type() != "duration" {
		return flag.DefValue
	}
	short := flag.DefValue
	for _, zero := range []struct{ of, unit string }{{"m", "0s"}, {"h", "0m"}} {
		if rest, ok := strings.CutSuffix(short, zero.of+zero.unit); ok {
			short = rest + zero.of
		}
	}
	return short
}
