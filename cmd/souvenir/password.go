package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// passwordFlags are the ways to give a password.
type passwordFlags struct {
	flags       *pflag.FlagSet
	secret      *secret
	stdin, none *bool
}

func newPasswordFlags(command *cobra.Command) passwordFlags {
	return passwordFlags{
		flags:  command.Flags(),
		secret: secretFlag(command, "password", "the password"),
		stdin:  command.Flags().Bool("password-stdin", false, "read the password from the first line of standard input"),
		none:   command.Flags().Bool("no-password", false, "create no password: the user has tokens only"),
	}
}

// password returns the password from the flags, or else asks on the terminal. --no-password gives "".
func (c *cli) password(ctx context.Context, p passwordFlags, prompt string) (string, error) {
	fromSecret := max(given(p.flags, p.secret.name), given(p.flags, p.secret.name+"-file"))
	fromStdin, none := 0, 0
	if *p.stdin {
		fromStdin = given(p.flags, "password-stdin")
	}
	if *p.none {
		none = given(p.flags, "no-password")
	}
	best := max(fromSecret, fromStdin, none)
	ways := 0
	for _, from := range []int{fromSecret, fromStdin, none} {
		if from == best {
			ways++
		}
	}
	switch {
	case best == 0 && !isTerminal(c.stdin):
		return "", misused("a password is missing; give --password-stdin or --password-file, or --no-password for a user " +
			"with tokens only")
	case best == 0:
		return c.askPassword(ctx, prompt)
	case ways > 1:
		return "", misused("the password is given in more than one way; give one of --password-stdin, --password-file and " +
			"--no-password")
	case none == best:
		return "", nil
	}
	var password string
	var err error
	if fromStdin == best {
		password, err = readPassword(c.stdin)
	} else {
		password, err = p.secret.read()
	}
	if err == nil && password == "" {
		err = errors.New("the password is empty; give at least 8 characters, or --no-password for a user with tokens only")
	}
	return password, err
}

// maxPasswordLine bounds the bytes read in search of the end of a line; no password is longer.
const maxPasswordLine = 64 << 10

func readPassword(r io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(r, maxPasswordLine)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("standard input cannot be read: %w", err)
	}
	return firstLine(line), nil
}

// askPassword asks twice, without echo.
func (c *cli) askPassword(ctx context.Context, prompt string) (string, error) {
	var typed [2]string
	for i, question := range []string{prompt, "Again"} {
		fmt.Fprintf(c.stderr, "%s: ", question)
		line, err := c.readHidden(ctx)
		fmt.Fprintln(c.stderr)
		if err != nil {
			return "", fmt.Errorf("the password cannot be read from the terminal: %w", err)
		}
		typed[i] = line
	}
	switch {
	case typed[0] != typed[1]:
		return "", errors.New("the two passwords differ; nothing was changed")
	case typed[0] == "":
		return "", errors.New("the password is empty; nothing was changed")
	}
	return typed[0], nil
}

// readHidden reads a line from the terminal. When the context ends first, it turns the echo on again and leaves
// the reading goroutine behind: nothing can wake it, and the program is about to end.
func (c *cli) readHidden(ctx context.Context) (string, error) {
	terminal := int(c.stdin.Fd())
	before, err := term.GetState(terminal)
	if err != nil {
		return "", err
	}
	type answer struct {
		line []byte
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		line, err := term.ReadPassword(terminal)
		answered <- answer{line, err}
	}()
	select {
	case a := <-answered:
		return string(a.line), a.err
	case <-ctx.Done():
		return "", errors.Join(ctx.Err(), term.Restore(terminal, before))
	}
}
