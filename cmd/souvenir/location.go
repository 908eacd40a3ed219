package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// location is the path of a file, or the address of a database. Its String, for messages and pages, omits the password;
// convert it to a string for the value itself.
type location string

// address returns the scheme of an address, in small letters, and the rest; "" for a file, also on a drive such as C.
func (l location) address() (scheme, rest string) {
	if scheme = valid.Scheme(string(l)); scheme != "" {
		_, rest, _ = strings.Cut(string(l), "://")
	}
	return scheme, rest
}

// isDatabase reports whether the store is in a database, not in a file.
func (l location) isDatabase() bool { return l.engine() != nil }

// String returns the location without a password.
func (l location) String() string {
	e := l.engine()
	if e == nil {
		return string(l)
	}
	address, err := url.Parse(string(l))
	if err != nil || address.Fragment != "" || strings.Contains(address.EscapedPath()+address.RawQuery, "@") {
		scheme, _ := l.address()
		return scheme + "://..." // the rest may be part of a password with /, ? or #
	}
	if address.User != nil {
		address.User = url.User(address.User.Username())
	}
	query := address.Query()
	for _, secret := range e.secrets {
		query.Del(secret)
	}
	address.RawQuery = query.Encode()
	return address.String()
}

// Set and Type make location a flag value. A scheme may be in capitals (RFC 3986).
func (l *location) Set(value string) error {
	*l = location(value)
	scheme, rest := l.address()
	switch {
	case l.isDatabase():
		*l = location(scheme + "://" + rest)
	case scheme != "":
		return errors.New("no engine has such addresses")
	}
	return nil
}

// Type is the name of the value in help.
func (l *location) Type() string { return "file" }

// open opens the store.
func (l location) open(ctx context.Context, options *souvenir.Options) (*souvenir.Store, error) {
	options = objectsOf(ctx).into(options)
	var err error
	if options.UserKeys, err = userKeysOf(ctx, l); err != nil {
		return nil, err
	}
	if !l.isDatabase() || options.UserKeys.MasterKey.IsZero() { // otherwise the key is for the ring only
		if options.MasterKey, err = fileKeyOf(ctx); err != nil {
			return nil, err
		}
	}
	options.MasterKeyNow = func(context.Context) (souvenir.MasterKey, error) { return fileKeyOf(withKeyAnew(ctx)) }
	if options.Logger == nil { // otherwise the log shows the progress
		defer showOpening(ctx)()
	}
	if e := l.engine(); e != nil {
		return e.open(ctx, string(l), options)
	}
	return souvenir.Open(ctx, string(l), options)
}

// needsFile refuses a database for a command that only works with files, and names the alternative.
func (l location) needsFile(instead func(e *engine) string) error {
	e := l.engine()
	if e == nil {
		return nil
	}
	return fmt.Errorf("--db: %s is a %s database, but this command needs a file: %s", l, e.name, instead(e))
}

func dbFlag(command *cobra.Command) *location {
	l := location(defaultFile)
	locationFlag(command, &l, "db", "the store's `file`, or "+addressForms())
	return &l
}

// locationFlag adds a flag with the location of a store.
func locationFlag(command *cobra.Command, l *location, name, usage string) {
	command.Flags().Var(l, name, usage)
	_ = command.MarkFlagFilename(name, "db") // for completion only; the flag is there
}
