package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
)

func (c *cli) backupCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "backup OUT [flags]", GroupID: groupFile,
		Short: "Copy the store to a new file, while it is in use",
		Long: `Writes a copy of the whole store, as it is at one moment, to the file OUT, which must not exist. Others, a server among them, go on
reading and writing. The copy is a store itself: any command can use it. It appears under its name only once it is whole and on disk.

Copying the file by other means while it is in use loses what its log (FILE-wal) holds; use this.`,
		Example: `  souvenir backup souvenir-$(date +%F).db
  souvenir backup /mnt/backup/souvenir.db --db /var/lib/souvenir/souvenir.db`,
		Args: wants(1, 1, "OUT"),
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	return c.command(command, func(ctx context.Context, args []string) error {
		progress, end := c.progress()
		defer end()
		err := withStore(ctx, *db, forReading, func(store *souvenir.Store) error {
			return store.Upkeep().Backup(ctx, args[0], &souvenir.BackupOptions{Progress: progress})
		})
		if errors.Is(err, souvenir.ErrReadOnly) {
			// The file has an older version, which cannot be read before it is migrated, and a backup is wanted
			// most before a migration. Restore copies any version as it is.
			err = souvenir.Restore(ctx, souvenir.Restoration{From: *db, To: args[0], Progress: progress})
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
	return c.tell(asJSON, object{"path": path, "bytes": info.Size()}, "%s %s (%s)", verb, path, size(info.Size()))
}

func (c *cli) restoreCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "restore IN [flags]", GroupID: groupFile,
		Short: "Make a store of a backup",
		Long: `Makes a new store of the backup IN, which stays as it is. The backup is checked first; one that is damaged, or is no store, is
refused. The store's file must not exist: to replace one, stop the server and move its file away, together with what lies beside
it under the same name with -wal and -shm behind.`,
		Example: `  souvenir restore souvenir-2026-11-21.db --db souvenir.db`,
		Args:    wants(1, 1, "IN"),
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	return c.command(command, func(ctx context.Context, args []string) error {
		progress, end := c.progress()
		defer end()
		err := souvenir.Restore(ctx, souvenir.Restoration{From: args[0], To: *db, Progress: progress})
		end()
		if err != nil {
			if errors.Is(err, souvenir.ErrForeign) || errors.Is(err, souvenir.ErrCorrupt) || errors.Is(err, souvenir.ErrNewer) {
				return fmt.Errorf("IN %q is no backup that can be restored, and nothing was written: %w", args[0], err)
			}
			return renamed(renamed(err, "From", "IN"), "To", "--db")
		}
		return c.printCopy(*asJSON, "restored", *db)
	})
}
