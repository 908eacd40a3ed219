package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
)

func (c *cli) auditCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "audit", GroupID: groupFile,
		Short: "Read and verify the audit log",
		Long: `The audit log records changes to users, credentials, shares, OAuth clients and the store as a whole.
Each entry carries a hash of itself and of the entry before it, so that changed, removed and inserted
entries are found. Keep the number and the hash of the newest entry elsewhere, such as in another
system's log: with it, "souvenir audit verify --anchor" also detects a log that was truncated or
rewritten.`,
	}, c.auditList(), c.auditVerify(), c.auditAnchor(), c.auditCut())
}

func (c *cli) auditList() *cobra.Command {
	command := &cobra.Command{
		Use:   "list [flags]",
		Short: "List the entries, newest first",
		Long: `Lists the entries of the audit log, newest first: what was done, by whom, and to what. Users are
identified by id; "souvenir user list" shows their names.`,
		Example: `  souvenir audit list
  souvenir audit list --action token --limit 20
  souvenir audit list --json --before 1200`,
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	var q souvenir.AuditQuery
	flags := command.Flags()
	flags.StringVar(&q.Action, "action", "",
		"only this `action`, such as token.add, or a group of actions, such as token")
	flags.StringVar(&q.Actor, "actor", "", "only actions of the user with this `id`")
	flags.StringVar(&q.Object, "object", "", "only actions on the user, client or other object with this `id`")
	limits(command, "action", "actor", "object")
	flags.Int64Var(&q.Before, "before", 0, "only entries before this `number`; 0: start with the newest")
	limit := flags.Int("limit", 100, "maximum `number` of entries; 0: all")
	return c.command(command, func(ctx context.Context, _ []string) error {
		if *limit < 0 {
			return misused("--limit is %d; give 0 or more", *limit)
		}
		entries := []souvenir.AuditEntry{}
		err := withStore(ctx, *db, forReading, func(store *souvenir.Store) error {
			for e, err := range store.Upkeep().AuditEntries(ctx, q) {
				if err != nil {
					return renamed(err, "before", "--before")
				}
				if entries = append(entries, e); len(entries) == *limit {
					break
				}
			}
			return nil
		})
		switch {
		case err != nil:
			return err
		case *asJSON:
			return printJSON(&c.out, object{"entries": entries})
		case len(entries) == 0:
			return c.none("the audit log has no such entry")
		}
		return c.printAudit(entries)
	})
}

func (c *cli) printAudit(entries []souvenir.AuditEntry) error {
	var rows [][]string
	for _, e := range entries {
		details, err := json.Marshal(e.Details)
		if err != nil {
			return err
		}
		by := cmp.Or(e.Actor.User, "operator")
		if e.Actor.Via != "" {
			by += " (" + string(e.Actor.Via) + ")"
		}
		rows = append(rows, []string{strconv.FormatInt(e.Seq, 10), moment(e.At), e.Action, plain(by), dash(plain(e.Object)),
			shorten(plain(string(details)), 80)})
	}
	return table(&c.out, []string{"NUMBER", "AT", "ACTION", "BY", "ON", "DETAILS"}, rows)
}

func (c *cli) auditVerify() *cobra.Command {
	command := &cobra.Command{
		Use:   "verify [flags]",
		Short: "Verify that the log is unchanged",
		Long: `Follows the chain of hashes from the oldest entry to the newest, reports each entry that does not match
it, and prints the number and the hash of the newest entry as NUMBER:HASH. Keep it: passed as --anchor
later, it proves that everything up to this entry is unchanged.

The exit status is 0 if everything is verified, otherwise 1.`,
		Example: `  souvenir audit verify
  souvenir audit verify --anchor "$(cat /media/elsewhere/anchor)"
  souvenir audit verify --json | jq -r '"\(.head.seq):\(.head.hash)"' >> /media/elsewhere/anchors`,
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	anchor := command.Flags().String("anchor", "", "`number:hash` of an entry, kept from an earlier run")
	limits(command, "anchor")
	return c.command(command, func(ctx context.Context, _ []string) error {
		var kept *souvenir.AuditAnchor
		if *anchor != "" {
			a, err := parseAnchor("--anchor", *anchor)
			if err != nil {
				return err
			}
			kept = &a
		}
		var report souvenir.AuditReport
		end := c.busy("verifying")
		err := withStore(ctx, *db, forReading, func(store *souvenir.Store) (err error) {
			report, err = store.Upkeep().CheckAudit(ctx, kept)
			return renamed(renamed(err, "seq", "--anchor"), "hash", "--anchor")
		})
		end()
		if err != nil {
			return err
		}
		if *asJSON {
			err = printJSON(&c.out, report)
		} else {
			err = c.printAuditReport(report)
		}
		if err == nil && !report.OK {
			return errSilent
		}
		return err
	})
}

// parseAnchor reads NUMBER:HASH.
func parseAnchor(flag, text string) (souvenir.AuditAnchor, error) {
	number, hash, _ := strings.Cut(strings.TrimSpace(text), ":")
	seq, err := strconv.ParseInt(number, 10, 64)
	if err != nil || hash == "" {
		return souvenir.AuditAnchor{},
			misused("%s is %q; give NUMBER:HASH, as \"souvenir audit verify\" prints it", flag, text)
	}
	return souvenir.AuditAnchor{Seq: seq, Hash: hash}, nil
}

func (c *cli) printAuditReport(r souvenir.AuditReport) error {
	for _, p := range r.Problems {
		fmt.Fprintf(&c.out, "%s entry %d: %s\n", c.out.in(red, "wrong:"), p.Seq, p.Problem)
	}
	if r.OK {
		fmt.Fprintf(&c.out, "%s %d entries, from %d to %d\n", c.out.in(green, "ok:"), r.Entries, r.First, r.Head.Seq)
	}
	if r.Accepted > 0 {
		fmt.Fprintf(&c.out, "%d more problems were accepted with \"souvenir check --repair --accept\"\n", r.Accepted)
	}
	fmt.Fprintf(&c.out, "%d:%s\n", r.Head.Seq, r.Head.Hash)
	return nil
}

func (c *cli) auditCut() *cobra.Command {
	command := &cobra.Command{
		Use:   "cut NUMBER:HASH [flags]",
		Short: "Remove the oldest entries",
		Long: `Removes the oldest entries of the audit log, up to the one with this number and hash, as "souvenir audit
list --json" shows them. A new entry records the cut, so that the rest can still be verified. Save the
entries elsewhere first, and verify the log with the anchor you kept: the anchor of a removed entry
proves nothing afterwards.

With --anchors, the folder of scheduled backups, the command verifies the log with the newest anchor
there, and keeps a new one there, before it removes anything. So later backups can go on.`,
		Example: `  souvenir audit list --limit 0 --json > /media/elsewhere/audit-2026.json
  souvenir audit cut "$(cat /media/elsewhere/anchor)"
  souvenir audit cut 1000:71ab... --anchors /media/backups`,
		Args: wants(1, 1, "NUMBER:HASH"),
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	anchors := command.Flags().String("anchors", "", "the `folder` of scheduled backups, whose newest anchor has to fit")
	limits(command, "anchors")
	return c.command(command, func(ctx context.Context, args []string) error {
		through, err := parseAnchor("NUMBER:HASH", args[0])
		if err != nil {
			return err
		}
		var removed int64
		err = withStore(ctx, *db, forWriting, func(store *souvenir.Store) (err error) {
			if *anchors != "" {
				path := filepath.Join(*anchors, anchorsFile)
				if _, err := os.Stat(path); err != nil { // otherwise a new file would hold no earlier anchor
					return fmt.Errorf("--anchors: %w", err)
				}
				if _, err := keepAnchor(ctx, store, path, time.Now()); err != nil {
					return fmt.Errorf("--anchors: %w", err)
				}
			}
			removed, err = store.Upkeep().CutAudit(ctx, through)
			return renamed(renamed(err, "seq", "NUMBER:HASH"), "hash", "NUMBER:HASH")
		})
		if err != nil {
			return err
		}
		return c.printResult(*asJSON, object{"removed": removed}, "removed %d entries, up to %d", removed, through.Seq)
	})
}
