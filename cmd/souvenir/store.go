package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/fault"
)

func dbFlag(command *cobra.Command) *string {
	path := command.Flags().String("db", "souvenir.db", "the store's `file`")
	_ = command.MarkFlagFilename("db", "db") // for completion only; the flag is there
	return path
}

func jsonFlag(command *cobra.Command) *bool {
	return command.Flags().Bool("json", false, "print JSON, for programs")
}

// opening is the purpose for which a command opens the store.
type opening int

const (
	forReading opening = iota // the file must exist, and stays unchanged
	forWriting                // the file must exist
	forMaking                 // a file that does not exist is created
)

// withStore opens the store, calls fn and closes it.
func withStore(ctx context.Context, path string, how opening, fn func(*souvenir.Store) error) (err error) {
	if how == forWriting {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return noStore(path)
		}
	}
	// An index in memory would be loaded for a single query; on disk, the ranking is the same.
	store, err := souvenir.Open(ctx, path, &souvenir.Options{ReadOnly: how == forReading, IndexMemory: -1})
	if err != nil {
		return openError(path, how, err)
	}
	defer func() {
		if closed := store.Close(); err == nil {
			err = closed
		}
	}()
	return fn(store)
}

// openError rewrites an error of the library in the words of the command line.
func openError(path string, how opening, err error) error {
	switch {
	case errors.Is(err, souvenir.ErrNotFound) && how != forMaking:
		return noStore(path)
	case errors.Is(err, souvenir.ErrForeign):
		return fmt.Errorf("--db: %q is not a store of Souvenir, and was not changed: %w", path, err)
	case errors.Is(err, souvenir.ErrCorrupt):
		return fmt.Errorf("--db: %q is damaged, and was not changed; \"souvenir restore\" restores a backup, \"souvenir "+
			"recover\" extracts what can be read: %w", path, err)
	case errors.Is(err, souvenir.ErrNewer):
		return fmt.Errorf("--db: %q is from a newer version of Souvenir, and was not changed: %w", path, err)
	case errors.Is(err, souvenir.ErrReadOnly):
		return fmt.Errorf("--db: %q is from an older version of Souvenir; make a backup, then run \"souvenir serve\", or "+
			"any command that writes, to upgrade it: %w", path, err)
	}
	return renamed(err, "path", "--db")
}

// renamed replaces the argument in an error of the library with its name on the command line.
func renamed(err error, argument, name string) error {
	var known *souvenir.Error
	if !errors.As(err, &known) || known.Argument != argument {
		return err
	}
	if rest, ok := strings.CutPrefix(fault.Text(err), argument+" "); ok {
		return fmt.Errorf("%s %s", name, rest)
	}
	return fmt.Errorf("%s: %w", name, err)
}

func noStore(path string) error {
	return fmt.Errorf("--db: there is no store at %q; create one with \"souvenir serve\" or \"souvenir user add\", or "+
		"name another file", path)
}

func userFlag(command *cobra.Command, what string) *string {
	return command.Flags().String("user", "", what+", by `name` or id; needed only when the store has several users")
}

// chooseUser finds the user for a command: the named one, or else the store's only one.
func chooseUser(ctx context.Context, store *souvenir.Store, named string) (souvenir.User, error) {
	if named != "" {
		return store.Accounts().GetUser(ctx, named)
	}
	page, err := store.Accounts().UserPage(ctx, souvenir.UserQuery{Limit: 10})
	if err != nil {
		return souvenir.User{}, err
	}
	switch page.Total {
	case 0:
		return souvenir.User{ID: souvenir.LocalUser}, nil
	case 1:
		return page.Users[0], nil
	}
	var names []string
	for _, u := range page.Users {
		names = append(names, nameOf(u))
	}
	if page.Total > len(names) {
		names = append(names, "...")
	}
	return souvenir.User{}, misused("--user is missing, and the store has %d users: %s", page.Total,
		strings.Join(names, ", "))
}

// nameOf returns the name by which people know a user.
func nameOf(u souvenir.User) string {
	if u.Name != "" {
		return u.Name
	}
	return u.ID
}
