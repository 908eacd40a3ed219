package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/fault"
)

func jsonFlag(command *cobra.Command) *bool {
	return command.Flags().Bool("json", false, "print JSON, for programs")
}

// opening is the purpose for which a command opens the store.
type opening int

const (
	forReading opening = iota // the store must exist, and stays unchanged
	forWriting                // the store must exist
	forMaking                 // a store that does not exist is created
	forRecord                 // the store is read, and its audit log gets an entry if it can be written
)

// withStore opens the store, calls fn and closes it. It keeps the store's embedding model.
func withStore(ctx context.Context, db location, how opening, fn func(*souvenir.Store) error) (err error) {
	if how != forRecord {
		return withEmbedder(ctx, db, how, nil, fn)
	}
	// A store of an older version is not upgraded, and one on a full disk can still be read.
	if err := withStore(ctx, db, forReading, func(*souvenir.Store) error { return nil }); err != nil {
		return err
	}
	opened := false
	if err := withStore(ctx, db, forWriting, func(store *souvenir.Store) error {
		opened = true
		return fn(store)
	}); opened || err == nil {
		return err
	}
	return withStore(ctx, db, forReading, fn)
}

// withEmbedder does the same, and switches the store to the given embedder unless it opens it for reading. Nil means
// the store's model if that is the built-in one; otherwise searches work by words.
func withEmbedder(ctx context.Context, db location, how opening, embedder souvenir.Embedder,
	fn func(*souvenir.Store) error) error {
	return withOptions(ctx, db, how, souvenir.Options{Embedder: embedder}, fn)
}

// withOptions does the same, with an embedder and hooks.
func withOptions(ctx context.Context, db location, how opening, o souvenir.Options,
	fn func(*souvenir.Store) error) (err error) {
	if how == forWriting {
		if err := mustExist(ctx, db); err != nil {
			return err
		}
	}
	// An index in memory would be loaded for a single query; on disk, the ranking is the same.
	o.ReadOnly, o.IndexMemory, o.KeepModel = how == forReading, -1, o.Embedder == nil
	o.Changeable = slices.Collect(maps.Values(settingsOfFlags))
	store, err := db.open(ctx, &o)
	if err != nil {
		return openError(db, how, err)
	}
	defer func() {
		if closed := store.Close(); err == nil {
			err = closed
		}
	}()
	return fn(store)
}

// mustExist refuses to create a store where there is none.
func mustExist(ctx context.Context, db location) error {
	if !db.isDatabase() {
		if _, err := os.Stat(string(db)); errors.Is(err, fs.ErrNotExist) {
			return noStore(db)
		}
		return nil
	}
	store, err := db.open(ctx, &souvenir.Options{ReadOnly: true, IndexMemory: -1})
	switch {
	case errors.Is(err, souvenir.ErrReadOnly): // of an older version, which writing upgrades
		return nil
	case err != nil:
		return openError(db, forWriting, err)
	}
	return store.Close()
}

// openError rewrites an error of the library in terms of the command line.
func openError(path location, how opening, err error) error {
	if path.isDatabase() {
		return databaseError(path, how, err)
	}
	switch {
	case errors.Is(err, souvenir.ErrNotFound) && how != forMaking:
		return noStore(path)
	case errors.Is(err, souvenir.ErrForeign):
		return fmt.Errorf("--db: %q is not a Souvenir store, and was not changed: %w", path, err)
	case errors.Is(err, souvenir.ErrCorrupt):
		return fmt.Errorf("--db: %q is damaged, and was not changed; \"souvenir restore\" restores a backup, \"souvenir "+
			"recover\" extracts the readable content: %w", path, err)
	case errors.Is(err, souvenir.ErrMasterKey):
		return fmt.Errorf("--db: %w; \"souvenir key --help\" says where the key is set", err)
	case errors.Is(err, souvenir.ErrUserKeys):
		return fmt.Errorf("--db: %w; see \"souvenir key users --help\"", inVariables(err))
	case errors.Is(err, souvenir.ErrNewer):
		return fmt.Errorf("--db: %q is from a newer version of Souvenir, and was not changed: %w", path, err)
	case errors.Is(err, souvenir.ErrReadOnly):
		return fmt.Errorf("--db: %q is from an older version of Souvenir; make a backup, then run \"souvenir serve\", or "+
			"any command that writes, to upgrade it: %w", path, err)
	}
	return renamed(err, "path", "--db")
}

// databaseError is openError for a store in a database.
func databaseError(db location, how opening, err error) error {
	switch {
	case errors.Is(err, souvenir.ErrNotFound) && how != forMaking:
		return noStore(db)
	case errors.Is(err, souvenir.ErrUserKeys), errors.Is(err, souvenir.ErrMasterKey):
		return fmt.Errorf("--db: %w; see \"souvenir key users --help\"", inVariables(err))
	case errors.Is(err, souvenir.ErrForeign):
		return fmt.Errorf("--db: %s has tables of another program, and was not changed; give %s: %w", db,
			db.engine().empty, err)
	case errors.Is(err, souvenir.ErrNewer):
		return fmt.Errorf("--db: %s is from a newer version of Souvenir, and was not changed: %w", db, err)
	case errors.Is(err, souvenir.ErrReadOnly):
		return fmt.Errorf("--db: %s is from an older version of Souvenir; make a backup with %s, then run "+
			"\"souvenir serve\", or any command that writes, to upgrade it: %w", db, db.engine().backup, err)
	}
	var known *souvenir.Error
	if errors.As(err, &known) && known.Err != nil { // the reason, such as that it refuses the password
		err = known.Err
	}
	return fmt.Errorf("--db: %s cannot be opened: %w", db, err)
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

func noStore(path location) error {
	return fmt.Errorf("--db: there is no store at %q; create one with \"souvenir serve\" or \"souvenir user add\", or "+
		"give another path", path)
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
