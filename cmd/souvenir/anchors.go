package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
)

// anchorsFile is a file in the folder of scheduled backups with a line for each of them, TIME NUMBER:HASH: the newest
// entry that the audit log had then.
const anchorsFile = "souvenir-audit-anchors.txt"

// errNoFit means that an audit log does not fit the newest anchor.
var errNoFit = errors.New("it has been altered")

// anchor verifies the audit log with the newest anchor in the folder, adds a new one, and logs it. An anchor that does
// not fit stays the newest, so that each backup reports it until a person has looked.
func (b schedule) anchor(ctx context.Context, store *souvenir.Store, log *slog.Logger) {
	path := filepath.Join(b.dir, anchorsFile)
	head, err := keepAnchor(ctx, store, path, b.now())
	if err != nil {
		log.Error("the audit log has no new anchor", "file", path, "error", err)
		return
	}
	log.Info("verified the audit log, and kept an anchor", "file", path, "anchor", head)
}

// keepAnchor verifies the audit log with the newest anchor in a file, and adds a new one, which it returns.
func keepAnchor(ctx context.Context, store *souvenir.Store, path string, now time.Time) (head string, err error) {
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	r, err := store.Upkeep().CheckAudit(ctx, newestAnchor(string(content)))
	switch {
	case err != nil:
		return "", err
	case !r.OK:
		return "", fmt.Errorf("%w, or the store was restored from an earlier backup: entry %d: %s; if that was intended, "+
			"run \"souvenir audit anchor --start-over %s\"", errNoFit, r.Problems[0].Seq, r.Problems[0].Problem,
			filepath.Dir(path))
	}
	head = fmt.Sprintf("%d:%s", r.Head.Seq, r.Head.Hash)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return "", err
	}
	line := fmt.Sprintf("%s %s\n", now.UTC().Format(time.RFC3339), head)
	if len(content) > 0 && content[len(content)-1] != '\n' { // after a crash
		line = "\n" + line
	}
	_, err = file.WriteString(line)
	return head, errors.Join(err, file.Sync(), file.Close())
}

// newestAnchor returns the newest anchor in the content of a file; nil if there is none. It passes over lines that a
// crash left incomplete.
func newestAnchor(content string) *souvenir.AuditAnchor {
	for _, line := range slices.Backward(strings.Split(content, "\n")) {
		_, text, _ := strings.Cut(line, " ")
		if a, err := parseAnchor(anchorsFile, text); err == nil && len(a.Hash) == 64 {
			return &a
		}
	}
	return nil
}

func (c *cli) auditAnchor() *cobra.Command {
	command := &cobra.Command{
		Use:   "anchor FOLDER [flags]",
		Short: "Verify the log with the anchors of backups, and keep a new one",
		Long: `Verifies the audit log with the newest anchor in a folder of scheduled backups, and adds a new one to
its file ` + anchorsFile + `, as each scheduled backup does.

With --start-over, anchors that do not fit are put aside: their file gets another name, and a new one
begins. Do this only if you know why they do not fit, for example after a restore from an earlier
backup, after damage that "souvenir check --repair --accept" has accepted, or after a cut without
--anchors. The log must be sound without an anchor. Keep the old file: it is the evidence.`,
		Example: `  souvenir audit anchor /media/backups
  souvenir audit anchor --start-over /media/backups`,
		Args: wants(1, 1, "FOLDER"),
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	again := command.Flags().Bool("start-over", false, "put anchors aside that do not fit")
	return c.command(command, func(ctx context.Context, args []string) error {
		path := filepath.Join(args[0], anchorsFile)
		var head, aside string
		err := withStore(ctx, *db, forReading, func(store *souvenir.Store) (err error) {
			head, err = keepAnchor(ctx, store, path, time.Now())
			if !errors.Is(err, errNoFit) || !*again {
				return err
			}
			if r, err := store.Upkeep().CheckAudit(ctx, nil); err != nil || !r.OK {
				return cmp.Or(err, errors.New("the audit log is damaged, whatever the anchors say; \"souvenir audit verify\" "+
					"says where, and \"souvenir check --repair --accept\" accepts that"))
			}
			aside = strings.TrimSuffix(path, ".txt") + time.Now().UTC().Format("-20060102T150405Z") + ".txt"
			if err := os.Rename(path, aside); err != nil {
				return err
			}
			head, err = keepAnchor(ctx, store, path, time.Now())
			return err
		})
		if err != nil {
			return err
		}
		if aside != "" && !*asJSON {
			fmt.Fprintf(&c.out, "put the anchors that do not fit aside, in %s\n", aside)
		}
		return c.printResult(*asJSON, object{"anchor": head, "aside": aside}, "%s", head)
	})
}
