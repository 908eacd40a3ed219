package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// variable is the name of the environment variable that sets a flag.
func variable(flag string) string {
	return "SOUVENIR_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// hasVariable is false for the flags that ask for something instead of setting it.
func hasVariable(flag *pflag.Flag) bool { return flag.Name != "help" && flag.Name != "version" }

// ofEnvironment marks the flags that a variable has set.
const ofEnvironment = "souvenir_environment"

// applyEnvironment gives the flags that are not on the command line the values of their variables. An empty variable is
// as good as none: it is what compose files make of one that is not set.
func (c *cli) applyEnvironment(command *cobra.Command) error {
	var wrong error
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		if flag.Changed || !hasVariable(flag) || wrong != nil {
			return
		}
		value, _ := c.lookup(variable(flag.Name))
		if value == "" {
			return
		}
		if err := flag.Value.Set(value); err != nil {
			wrong = misused("%s is %q; give %s", variable(flag.Name), value, wanted(flag))
			return
		}
		flag.Changed = true
		if err := command.Flags().SetAnnotation(flag.Name, ofEnvironment, []string{"true"}); err != nil {
			wrong = err
		}
	})
	return wrong
}

// flagError says of a flag's value what would be right.
func flagError(err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		return misused("--%s is %q; give %s", invalid.GetFlag().Name, invalid.GetValue(), wanted(invalid.GetFlag()))
	}
	return usageError{err.Error()}
}

// wanted describes the values that a flag takes.
func wanted(flag *pflag.Flag) string {
	switch flag.Value.Type() {
	case "bool":
		return "true or false"
	case "int":
		return "a whole number"
	case "duration":
		return "a duration, such as 30s or 5m"
	case "bytes":
		return "a number of bytes, such as 1048576 or 500MiB"
	case "networks":
		return "addresses or networks, such as 10.0.0.2 or 172.16.0.0/12, with commas between, or none"
	}
	return "another value"
}

// ofSecret marks the flags whose values nobody is shown.
const ofSecret = "souvenir_secret"

// secret is a value that should not stand on a command line, where every user of the machine can read it.
type secret struct {
	name        string
	value, file string
	flags       *pflag.FlagSet
}

// secretFlag adds --NAME and --NAME-file.
func secretFlag(command *cobra.Command, name, what string) *secret {
	s := &secret{name: name, flags: command.Flags()}
	command.Flags().StringVar(&s.value, name, "", what+
		"; others on the machine can read command lines, so better a variable or a file")
	_ = command.Flags().SetAnnotation(name, ofSecret, []string{"true"}) // it fails for a flag that there is not
	command.Flags().StringVar(&s.file, name+"-file", "", "`file` with "+what)
	return s
}

// given says where a value comes from: 2 for the command line, 1 for the environment, 0 for nowhere.
func given(flags *pflag.FlagSet, name string) int {
	flag := flags.Lookup(name)
	switch {
	case !flag.Changed:
		return 0
	case flag.Annotations[ofEnvironment] != nil:
		return 1
	}
	return 2
}

// read returns the secret; "" when it is not given.
func (s *secret) read() (string, error) {
	plain, file := given(s.flags, s.name), given(s.flags, s.name+"-file")
	switch {
	case plain == 0 && file == 0:
		return "", nil
	case plain == file:
		return "", misused("both --%s and --%s-file are given; one of them is enough", s.name, s.name)
	case plain > file:
		return s.value, nil
	}
	content, err := os.ReadFile(s.file)
	if err != nil {
		return "", fmt.Errorf("--%s-file cannot be read: %w", s.name, err)
	}
	return firstLine(string(content)), nil
}

// firstLine is a text without its line's end, as editors and echo leave one behind.
func firstLine(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return strings.TrimSuffix(text, "\r")
}
