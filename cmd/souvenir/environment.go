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

// hasVariable is false for flags that are requests, not settings.
func hasVariable(flag *pflag.Flag) bool { return flag.Name != "help" && flag.Name != "version" }

// ofEnvironment marks the flags that a variable has set.
const ofEnvironment = "souvenir_environment"

// applyEnvironment sets the flags that are not on the command line from their variables. An empty variable counts
// as unset: compose files pass it for a variable that is not set.
func (c *cli) applyEnvironment(command *cobra.Command) error {
	wrong := checkLimits(command.Flags())
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		if flag.Changed || !hasVariable(flag) || wrong != nil {
			return
		}
		value, _ := c.lookup(variable(flag.Name))
		if value == "" {
			return
		}
		if err := flag.Value.Set(value); err != nil {
			wrong = wrongValue(variable(flag.Name), value, flag)
			return
		}
		flag.Changed = true
		if err := command.Flags().SetAnnotation(flag.Name, ofEnvironment, []string{"true"}); err != nil {
			wrong = err
		}
	})
	return wrong
}

// ofLimit marks the flags that limit what a command does, or prove something.
const ofLimit = "souvenir_limit"

// limits marks flags as limits: an empty one on the command line is an error. Otherwise a script with a variable that
// is not set would do more than it says: --project "$PROJECT" would add a token for all projects.
func limits(command *cobra.Command, names ...string) {
	for _, name := range names {
		_ = command.Flags().SetAnnotation(name, ofLimit, []string{"true"}) // it fails only for an unknown flag
	}
}

// checkLimits refuses limits without a value.
func checkLimits(flags *pflag.FlagSet) error {
	var wrong error
	flags.Visit(func(flag *pflag.Flag) {
		value := flag.Value.String()
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			value = strings.Join(list.GetSlice(), "")
		}
		if flag.Annotations[ofLimit] != nil && strings.TrimSpace(value) == "" {
			wrong = misused("--%s is empty; give a value, or omit the flag", flag.Name)
		}
	})
	return wrong
}

// flagError adds the valid values of a flag to its error.
func flagError(err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		return wrongValue("--"+invalid.GetFlag().Name, invalid.GetValue(), invalid.GetFlag())
	}
	return usageError{err.Error()}
}

// wrongValue says which value a flag, or its variable, has, and which values it can have.
func wrongValue(name, value string, flag *pflag.Flag) error {
	if scheme, rest := location(value).address(); rest != "" { // which may have a password
		value = scheme + "://..."
	}
	return misused("%s is %q; give %s", name, value, wanted(flag))
}

// wanted describes the valid values of a flag.
func wanted(flag *pflag.Flag) string {
	switch flag.Value.Type() {
	case new(location).Type():
		return "a file, or " + addressForms()
	case "bool":
		return "true or false"
	case "int":
		return "a whole number"
	case "duration":
		return "a duration, such as 30s or 5m"
	case "bytes":
		return "a number of bytes, such as 1048576 or 500MiB"
	case "networks":
		return "addresses or networks, such as 10.0.0.2 or 172.16.0.0/12, separated by commas, or none"
	}
	return "another value"
}

// ofSecret marks the flags whose values must not be printed.
const ofSecret = "souvenir_secret"

// secret is a value that should not be on a command line, where every user of the machine can read it.
type secret struct {
	name        string
	value, file string
	flags       *pflag.FlagSet
}

// secretFlag adds --NAME and --NAME-file.
func secretFlag(command *cobra.Command, name, what string) *secret {
	s := &secret{name: name, flags: command.Flags()}
	command.Flags().StringVar(&s.value, name, "", what+
		"; others on the machine can read command lines, so prefer a variable or a file")
	_ = command.Flags().SetAnnotation(name, ofSecret, []string{"true"}) // it fails only for an unknown flag
	command.Flags().StringVar(&s.file, name+"-file", "", "`file` with "+what)
	return s
}

// given returns where a value comes from: 2 for the command line, 1 for the environment, 0 for neither.
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
		return "", misused("both --%s and --%s-file are given; give one of them", s.name, s.name)
	case plain > file:
		return s.value, nil
	}
	content, err := os.ReadFile(s.file)
	if err != nil {
		return "", fmt.Errorf("--%s-file cannot be read: %w", s.name, err)
	}
	return firstLine(string(content)), nil
}

// firstLine returns the first line of a text without its end, which editors and echo append.
func firstLine(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return strings.TrimSuffix(text, "\r")
}
