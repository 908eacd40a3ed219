package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (c *cli) manCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "man DIR [flags]",
		Short: "Write the manual pages",
		Long: `Writes a manual page for each command into the folder DIR, which is created if it does not exist:
souvenir.1, souvenir-serve.1 and so on. Existing pages are replaced. They have the same
texts as --help.`,
		Example: `  souvenir man /usr/local/share/man/man1 && man souvenir-user-add
  souvenir man . && man ./souvenir.1`,
		Args: wants(1, 1, "DIR"),
	}
	asJSON := jsonFlag(command)
	return c.command(command, func(_ context.Context, args []string) error {
		if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // manual pages are for all users
			return fmt.Errorf("DIR cannot be created: %w", err)
		}
		var written []string
		for _, page := range manPages(command.Root()) {
			path := filepath.Join(args[0], page.name)
			if err := os.WriteFile(path, page.text, 0o644); err != nil { //nolint:gosec // see above
				return fmt.Errorf("DIR cannot be written: %w", err)
			}
			written = append(written, path)
		}
		return c.printResult(*asJSON, object{"pages": written}, "wrote %d pages to %s", len(written), args[0])
	})
}

// manPage is a manual page, in the macros of man(7).
type manPage struct {
	name string // of its file
	text []byte
}

// manPages returns the pages of a command and of all visible commands below it.
func manPages(command *cobra.Command) []manPage {
	pages := []manPage{{name: manName(command) + ".1", text: manText(command)}}
	for _, child := range command.Commands() {
		if child.IsAvailableCommand() {
			pages = append(pages, manPages(child)...)
		}
	}
	return pages
}

// manName is the name of a command's page: souvenir-user-add.
func manName(command *cobra.Command) string {
	return strings.ReplaceAll(command.CommandPath(), " ", "-")
}

func manText(command *cobra.Command) []byte {
	m := &manual{}
	m.macro("TH", strings.ToUpper(manName(command)), "1", "", "souvenir "+readBuild().Version, "Souvenir")
	m.text.WriteString(".nh\n.ad l\n") // flags are not cut into two
	m.macro("SH", "NAME")
	m.line(manName(command) + " - " + command.Short)
	m.macro("SH", "SYNOPSIS")
	if command.HasAvailableSubCommands() {
		m.line(command.CommandPath() + " COMMAND")
	} else {
		m.line(command.UseLine())
	}
	m.macro("SH", "DESCRIPTION")
	long := command.Long
	if long == "" {
		long = command.Short + "."
	}
	m.paragraphs(long)
	if command.HasAvailableSubCommands() {
		m.macro("SH", "COMMANDS")
		for _, child := range command.Commands() {
			if child.IsAvailableCommand() {
				m.macro("TP")
				m.macro("B", child.Name())
				m.line(child.Short)
			}
		}
	}
	m.options(command)
	if command.HasExample() {
		m.macro("SH", "EXAMPLES")
		m.verbatim(command.Example)
	}
	m.seeAlso(command)
	return m.text.Bytes()
}

// manual is a page that is being written.
type manual struct{ text bytes.Buffer }

// roff escapes a text so that it is shown literally.
func roff(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", `\(ga`, "'", `\(aq`, "^", `\(ha`, "~", `\(ti`).Replace(text)
}

// macro writes a line that is a macro, with arguments.
func (m *manual) macro(name string, args ...string) {
	m.text.WriteString("." + name)
	for _, arg := range args {
		fmt.Fprintf(&m.text, ` "%s"`, strings.ReplaceAll(roff(arg), `"`, `\(dq`))
	}
	m.text.WriteByte('\n')
}

// line writes a line of text. At its start a full stop would be a macro.
func (m *manual) line(text string) {
	if strings.HasPrefix(text, ".") {
		m.text.WriteString(`\&`)
	}
	m.text.WriteString(roff(text) + "\n")
}

// paragraphs writes a text with paragraphs; indented ones keep their lines.
func (m *manual) paragraphs(text string) {
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			m.macro("PP")
		}
		if strings.HasPrefix(paragraph, " ") {
			m.verbatim(paragraph)
			continue
		}
		for line := range strings.SplitSeq(paragraph, "\n") {
			m.line(strings.TrimSpace(line))
		}
	}
}

// verbatim writes lines that stay as they are.
func (m *manual) verbatim(text string) {
	m.macro("EX")
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		m.line(strings.TrimPrefix(line, "  "))
	}
	m.macro("EE")
}

// options writes the flags, with the variables that set them.
func (m *manual) options(command *cobra.Command) {
	first := true
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden || !hasVariable(flag) {
			return
		}
		if first {
			m.macro("SH", "OPTIONS")
			first = false
		}
		name, usage := flagTexts(flag)
		m.macro("TP")
		m.macro("B", name)
		m.line(usage + ".")
		m.macro("br")
		m.line("Variable: " + variable(flag.Name))
	})
}

// seeAlso writes the pages of the commands above, below and beside a command.
func (m *manual) seeAlso(command *cobra.Command) {
	var names []string
	add := func(other *cobra.Command) {
		if other != command && other.IsAvailableCommand() {
			names = append(names, manName(other)+"(1)")
		}
	}
	if command.HasParent() {
		add(command.Root())
		if command.Parent() != command.Root() {
			add(command.Parent())
			for _, beside := range command.Parent().Commands() {
				add(beside)
			}
		}
	}
	for _, child := range command.Commands() {
		add(child)
	}
	if len(names) > 0 {
		m.macro("SH", "SEE ALSO")
		m.line(strings.Join(names, ", "))
	}
}
