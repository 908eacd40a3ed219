package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
)

// The variables about user keys. As with the master key, there are no flags: every command needs the same values.
const (
	userKeysVariable = "SOUVENIR_USER_KEYS"
	keyForVariable   = "SOUVENIR_MASTER_KEY_FOR"
)

// keysUse is the part of a store that the master key is for.
type keysUse string

const (
	keysAll   keysUse = "all"   // the file, if it is one, and the ring, if there is one
	keysFile  keysUse = "file"  // the file only: the store has no user keys
	keysUsers keysUse = "users" // the ring only: the file is not encrypted
	keysNone  keysUse = "none"
)

var keysUses = []string{string(keysAll), string(keysFile), string(keysUsers), string(keysNone)}

// ringsKey is the key of the context's user keys.
type ringsKey struct{}

// rings says which user keys the stores of a command have.
type rings struct {
	place    string // a path or an address; empty: beside each store
	on       bool
	use      keysUse
	beside   location           // the store beside which the ring is, for copies of it; empty: each store's own
	readOnly bool               // for copies
	older    bool               // an older copy of the ring is accepted
	master   souvenir.MasterKey // in place of the environment's; the zero value: none
	wrong    func() error       // the problem with the variables; nil: none
}

func ringsOf(ctx context.Context) rings {
	r, _ := ctx.Value(ringsKey{}).(rings)
	return r
}

func withRings(ctx context.Context, change func(*rings)) context.Context {
	r := ringsOf(ctx)
	change(&r)
	return context.WithValue(ctx, ringsKey{}, r)
}

// withUserKeys returns a context with the user keys of the environment.
func (c *cli) withUserKeys(ctx context.Context) context.Context {
	r := rings{use: keysAll}
	switch value, _ := c.lookup(userKeysVariable); value {
	case "", "off":
	case "on":
		r.on = true
	default:
		r.on, r.place = true, value
		if !strings.ContainsAny(value, `/`+string(filepath.Separator)) { // a mistyped on or off would be a place, too
			r.wrong = func() error {
				return misused("%s is %q; give on, off, a path with a folder such as ./keys.ring, or the address of "+
					"a database", userKeysVariable, value)
			}
		}
	}
	switch value, _ := c.lookup(keyForVariable); keysUse(value) {
	case "", keysAll:
	case keysUsers:
		r.use = keysUsers
	default:
		r.wrong = func() error {
			return misused("%s is %q; give all, or users for a file that is not encrypted", keyForVariable, value)
		}
	}
	return context.WithValue(ctx, ringsKey{}, r)
}

// using returns a context in which the master key is for a part of each store only.
func using(ctx context.Context, use string) (context.Context, error) {
	switch keysUse(use) {
	case "", keysAll:
		return ctx, nil
	case keysFile, keysUsers, keysNone:
		return withRings(ctx, func(r *rings) { r.use = keysUse(use) }), nil
	}
	return ctx, fmt.Errorf("it is %q; give %s", use, strings.Join(keysUses, ", "))
}

// fileKeyOf returns the key that encrypts the files of a command. The zero value is none.
func fileKeyOf(ctx context.Context) (souvenir.MasterKey, error) {
	if use := ringsOf(ctx).use; use == keysUsers || use == keysNone {
		return souvenir.MasterKey{}, nil
	}
	return masterKeyOf(ctx)
}

// userKeysOf returns the user keys of a store. The zero value is none.
func userKeysOf(ctx context.Context, l location) (souvenir.UserKeys, error) {
	r := ringsOf(ctx)
	if r.wrong != nil {
		return souvenir.UserKeys{}, r.wrong()
	}
	if !r.on || r.use == keysFile || r.use == keysNone {
		return souvenir.UserKeys{}, nil
	}
	key, err := r.master, error(nil)
	if key.IsZero() {
		key, err = masterKeyOf(ctx)
	}
	switch {
	case err != nil:
		return souvenir.UserKeys{}, err
	case key.IsZero():
		return souvenir.UserKeys{}, misused("%s is set, but there is no master key: set %s or %s", userKeysVariable,
			keyFileVariable, keyCommandVariable)
	}
	k := souvenir.UserKeys{MasterKey: key, Place: r.place, ReadOnly: r.readOnly, AcceptOlder: r.older}
	if k.Place == "" && r.beside != "" && !r.beside.isDatabase() && !l.isDatabase() {
		k.Place = souvenir.UserKeysFile(string(r.beside))
	}
	return k, nil
}

// withReadOnlyRings returns a context for copies of a store: they have its ring, which they only read.
func withReadOnlyRings(ctx context.Context, l location) context.Context {
	return withRings(ctx, func(r *rings) { r.beside, r.readOnly = l, true })
}

// inVariables names the variables in an error about user keys.
func inVariables(err error) error {
	return errors.New(strings.NewReplacer("set Options.UserKeys to the ring", "set "+userKeysVariable+" to on, or to "+
		"where the ring is", "leave Options.UserKeys out", "leave "+userKeysVariable+" out", "set UserKeys.Place to",
		"set "+userKeysVariable+" to", "open the store with UserKeys.AcceptOlder, and repair the ring (souvenir key users "+
			"repair)", "run \"souvenir key users repair\"", "set RecoveryOptions.UserKeys to its ring",
		"set "+userKeysVariable+" to on, or to where its ring is", "{}.Place", "it", "UserKeys ", userKeysVariable+" ").
		Replace(err.Error()))
}

func (c *cli) keyUsersCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "users COMMAND",
		Short: "Manage the user keys of a store",
		Long: `With SOUVENIR_USER_KEYS=on a new store has a key for each user, and seals the user's data with it. The
keys are in a separate key ring, encrypted with the master key: the file keys-of-NAME.ring beside the
file NAME, or the schema NAME_keys beside a schema. SOUVENIR_USER_KEYS=PLACE is another place: a path
or, for a store in a database, an address. Deleting a user erases the key, so that the user's data
cannot be read from old backups either. See docs/sealing.md.

Back up the ring separately from the store, and keep only its newest copy.

The master key also encrypts the store's file, unless SOUVENIR_MASTER_KEY_FOR is users. "souvenir key
change" changes it for both. "souvenir copy --from-keys none" creates a store with user keys from one
without.`,
	}, c.keyUsersStatus(), c.keyUsersCheck(), c.keyUsersBackup(), c.keyUsersRepair())
}

func (c *cli) keyUsersStatus() *cobra.Command {
	command := &cobra.Command{
		Use:     "status [flags]",
		Short:   "Show the number of user keys",
		Example: "  SOUVENIR_USER_KEYS=on souvenir key users status",
		Long:    "Prints the ring's id, the id of its master key, and how many keys it has and has erased. It prints no key.",
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	return c.command(command, func(ctx context.Context, _ []string) error {
		return c.withUserKeysOf(ctx, *db, forReading, nil, func(r souvenir.UserKeysReport) error {
			return c.printUserKeys(*asJSON, r)
		})
	})
}

// withUserKeysOf opens the store, and calls fn with the report on its user keys.
func (c *cli) withUserKeysOf(ctx context.Context, db location, how opening, o *souvenir.UserKeysOptions,
	fn func(souvenir.UserKeysReport) error) error {
	return withStore(ctx, db, how, func(store *souvenir.Store) error {
		r, err := store.Upkeep().CheckUserKeys(ctx, o)
		if errors.Is(err, souvenir.ErrUserKeys) {
			return inVariables(err)
		}
		if err != nil {
			return err
		}
		return fn(r)
	})
}

func (c *cli) printUserKeys(asJSON bool, r souvenir.UserKeysReport) error {
	if asJSON {
		return printJSON(&c.out, r)
	}
	fmt.Fprintf(&c.out, "ring %s, master key %s: %d keys", r.Ring, r.MasterKey, r.Keys)
	if !r.Since.IsZero() {
		fmt.Fprintf(&c.out, " since %s", moment(r.Since))
	}
	fmt.Fprintf(&c.out, ", %d erased", r.Erased)
	if !r.LastErased.IsZero() {
		fmt.Fprintf(&c.out, ", the last one %s", moment(r.LastErased))
	}
	if r.Leaving > 0 {
		fmt.Fprintf(&c.out, ", %d of users whose deletion has not finished", r.Leaving)
	}
	fmt.Fprintln(&c.out)
	return nil
}

func (c *cli) keyUsersCheck() *cobra.Command {
	command := &cobra.Command{
		Use:     "check [flags]",
		Short:   "Check that the ring has the keys of all rows",
		Example: "  SOUVENIR_USER_KEYS=on souvenir key users check --db souvenir.db",
		Long: `Reads all rows of the store and looks up their keys in the ring. Rows with erased keys belong to deleted
users, in a store from an older backup: "souvenir check --repair" removes them, but names of collections
and projects may stay, unreadable. Rows with unknown keys mean that the ring is older than the store:
put the current ring in its place, or run "souvenir key users repair" if it is lost.

The exit status is 0 if the ring has the keys of all rows, otherwise 1.`,
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	return c.command(command, func(ctx context.Context, _ []string) error {
		return c.withUserKeysOf(ctx, *db, forReading, &souvenir.UserKeysOptions{Check: true}, c.printKeysCheck(*asJSON))
	})
}

// printKeysCheck prints what a check of the keys found.
func (c *cli) printKeysCheck(asJSON bool) func(souvenir.UserKeysReport) error {
	return func(r souvenir.UserKeysReport) error {
		if err := c.printUserKeys(asJSON, r); err != nil {
			return err
		}
		if !asJSON {
			fmt.Fprintf(&c.out, "%d sealed values: %d with erased keys, %d with unknown keys\n",
				r.Values, r.ErasedValues, r.UnknownValues)
		}
		if r.UnknownValues > 0 {
			c.warn("the ring is older than the store: put the current one in its place, or run \"souvenir key users repair\"")
		}
		if r.ErasedValues > 0 {
			c.warn("the store is older than the deletion of some users: \"souvenir check --repair\" removes their data")
		}
		if r.UnknownValues > 0 {
			return errSilent
		}
		return nil
	}
}

func (c *cli) keyUsersBackup() *cobra.Command {
	command := &cobra.Command{
		Use:   "backup OUT [flags]",
		Short: "Copy the key ring to a new file",
		Long: `Copies the ring to the new file OUT, which only its owner can read, while servers run. The copy is
encrypted with the master key, too. It can replace a lost ring, also one in a database.

Keep the copy apart from the backups of the store, and keep only the newest: an older copy, with the
master key and a backup of the store, can decrypt the data of users deleted since. Make a copy after each
new user: without one, the user's data is lost if the ring is.`,
		Example: "  souvenir key users backup /media/keys/users-$(date +%F).ring",
		Args:    wants(1, 1, "OUT"),
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	return c.command(command, func(ctx context.Context, args []string) error {
		err := withStore(ctx, *db, forReading, func(store *souvenir.Store) error {
			return store.Upkeep().BackupUserKeys(ctx, args[0])
		})
		if errors.Is(err, souvenir.ErrUserKeys) {
			return inVariables(err)
		}
		if err != nil {
			return renamed(err, "path", "OUT")
		}
		err = c.printCopy(*asJSON, "wrote", args[0])
		if err == nil && !*asJSON {
			fmt.Fprintln(&c.out, "delete older copies: they can decrypt the data of users deleted since")
		}
		return err
	})
}

func (c *cli) keyUsersRepair() *cobra.Command {
	command := &cobra.Command{
		Use:   "repair [flags]",
		Short: "Continue with an older copy of a lost ring",
		Example: `  SOUVENIR_USER_KEYS=on souvenir key users repair
  SOUVENIR_USER_KEYS=on souvenir check --repair`,
		Long: `After a lost ring is replaced with an older copy, no command opens the store. This one does, and makes the
two match: it erases again the user keys deleted since, and marks keys that the copy does not have as
erased, so that "souvenir check --repair" removes the data sealed with them permanently. Run it on the
store itself, not on a copy or an older backup.`,
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	return c.command(command, func(ctx context.Context, _ []string) error {
		ctx = withRings(ctx, func(r *rings) { r.older = true })
		o := &souvenir.UserKeysOptions{Check: true, Repair: true}
		return c.withUserKeysOf(ctx, *db, forWriting, o, c.printKeysCheck(*asJSON))
	})
}

// changeMasterKey puts a store under another master key: the ring first, then the file. After a change that was
// interrupted in between, the ring already needs the new key.
func changeMasterKey(ctx context.Context, db location, to souvenir.MasterKey) error {
	keys, err := userKeysOf(ctx, db)
	if err != nil {
		return err
	}
	if keys.MasterKey.IsZero() {
		if err := db.needsFile(func(*engine) string { return "encrypt the disk of the database" }); err != nil {
			return err
		}
	}
	inFile := !db.isDatabase() && ringsOf(ctx).use != keysUsers
	change := func(store *souvenir.Store) error {
		if !keys.MasterKey.IsZero() {
			if err := store.Upkeep().ChangeUserKeysMaster(ctx, to); err != nil {
				return err
			}
		}
		if !inFile {
			return nil
		}
		return store.Upkeep().ChangeMasterKey(ctx, to)
	}
	err = withStore(ctx, db, forWriting, change)
	if err != nil && inFile && !keys.MasterKey.IsZero() {
		again := withRings(ctx, func(r *rings) { r.master = to })
		if withStore(again, db, forWriting, change) == nil {
			return nil
		}
	}
	return err
}

// ringHeader is how the file of a ring begins, at byte 68: the id of its application.
const ringHeader = "Svnk"

// ringsIn returns the files in a folder that hold user keys.
func ringsIn(dir string) (found []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			continue
		}
		header := make([]byte, 72)
		_, err = io.ReadFull(f, header)
		if err == nil && strings.HasPrefix(string(header), "SQLite format 3") && string(header[68:]) == ringHeader {
			found = append(found, e.Name())
		}
		_ = f.Close()
	}
	return found
}

// ringMissing returns an error that wraps fs.ErrNotExist if the ring of a store should be in a file that is not there.
func ringMissing(ctx context.Context, l location) error {
	keys, err := userKeysOf(ctx, l)
	if err != nil || keys.MasterKey.IsZero() || l.isDatabase() || location(keys.Place).isDatabase() {
		return err
	}
	path := keys.Place
	if path == "" {
		path = souvenir.UserKeysFile(string(l))
	}
	_, err = os.Stat(path)
	return err
}

// warnOfRings warns of user keys in the folder of backups: anyone who gets the backups gets the keys, too, and an old
// copy of the ring there brings back deleted users.
func warnOfRings(dir string, log *slog.Logger) {
	for _, name := range ringsIn(dir) {
		log.Warn("user keys are in the folder of the backups, where they can decrypt the data of deleted users; keep them "+
			"elsewhere", "folder", dir, "file", name)
	}
}
