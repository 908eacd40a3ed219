package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
)

func (c *cli) backupCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "backup OUT [flags]", GroupID: groupFile,
		Short: "Back up the store to a new file, while it is in use",
		Long: `Writes a copy of the whole store, at one point in time, to the file OUT, which must not exist.
Others, including a server, can keep reading and writing. The copy is a store itself: every command
can use it. It appears under its name only once it is complete and on disk.

Copying the file in other ways while it is in use loses the content of its log (FILE-wal); use this
command.`,
		Example: `  souvenir backup souvenir-$(date +%F).db
  souvenir backup /mnt/backup/souvenir.db --db /var/lib/souvenir/souvenir.db`,
		Args: wants(1, 1, "OUT"),
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	return c.command(command, func(ctx context.Context, args []string) error {
		if err := db.needsFile(func(e *engine) string {
			return "back up the database with " + e.backup + ", or write an export with \"souvenir export --credentials\""
		}); err != nil {
			return err
		}
		progress, end := c.progress()
		defer end()
		err := withStore(ctx, *db, forRecord, func(store *souvenir.Store) error {
			return store.Upkeep().Backup(ctx, args[0], &souvenir.BackupOptions{Progress: progress})
		})
		if errors.Is(err, souvenir.ErrReadOnly) {
			// The file has an older version, which only a migration makes readable. A backup is most useful before
			// that, and Restore copies any version as it is.
			err = restore(ctx, string(*db), args[0], progress)
		}
		end()
		if err != nil {
			return renamed(renamed(err, "path", "OUT"), "To", "OUT")
		}
		return c.printCopy(*asJSON, "wrote", args[0])
	})
}

func (c *cli) printCopy(asJSON bool, verb, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return c.printResult(asJSON, object{"path": path, "bytes": info.Size()}, "%s %s (%s)", verb, path, size(info.Size()))
}

// restore copies one file of a store to another.
func restore(ctx context.Context, from, to string, progress souvenir.Progress) error {
	key, err := fileKeyOf(ctx)
	if err != nil {
		return err
	}
	return souvenir.Restore(ctx, souvenir.Restoration{From: from, To: to, MasterKey: key, Progress: progress})
}

func (c *cli) restoreCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "restore IN [flags]", GroupID: groupFile,
		Short: "Restore a backup to a new store",
		Long: `Creates a new store from the backup IN, which is not changed. The backup is checked first; a file
that is damaged, or is not a store, is refused. The store's file must not exist: to replace one,
stop the server and move its file away, together with the files of the same name that end in -wal
and -shm.

With --drill it restores into a temporary folder beside the backup, opens the result, checks
all of it, and deletes it: the exit status is 0 if everything is sound, otherwise 1.
IN can then also be the folder of "souvenir serve --backup-to": it takes the newest backup in it. It
needs as much space as the backup.`,
		Example: `  souvenir restore souvenir-2026-11-21.db --db souvenir.db
  souvenir restore --drill /mnt/backup`,
		Args: wants(1, 1, "IN"),
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	rehearse := command.Flags().Bool("drill", false,
		"restore into a temporary folder, check everything, and delete it")
	return c.storing(command, func(ctx context.Context, args []string) error {
		if *rehearse {
			return c.rehearse(withReadOnlyRings(ctx, *db), args[0], *asJSON)
		}
		if err := db.needsFile(func(e *engine) string {
			return "restore the database with " + e.restore + ", or read an export with \"souvenir import\""
		}); err != nil {
			return err
		}
		progress, end := c.progress()
		defer end()
		err := restore(ctx, args[0], string(*db), progress)
		end()
		if err != nil {
			if errors.Is(err, souvenir.ErrForeign) || errors.Is(err, souvenir.ErrCorrupt) || errors.Is(err, souvenir.ErrNewer) {
				return fmt.Errorf("IN %q is not a backup that can be restored; nothing was written: %w", args[0], err)
			}
			return renamed(renamed(err, "From", "IN"), "To", "--db")
		}
		if errors.Is(ringMissing(ctx, *db), fs.ErrNotExist) {
			c.warn("its key ring is not beside %s: put the current one there, or set %s", *db,
				userKeysVariable)
		}
		return c.printCopy(*asJSON, "restored", string(*db))
	})
}

// rehearse carries out a drill.
func (c *cli) rehearse(ctx context.Context, in string, asJSON bool) error {
	path, err := newestBackup(in)
	if err != nil {
		return err
	}
	progress, end := c.progress()
	defer end()
	d, err := drill(ctx, path, filepath.Dir(path), progress)
	end()
	if err != nil {
		return fmt.Errorf("IN %q cannot be restored: %w", path, err)
	}
	return c.printDrill(asJSON, d)
}
