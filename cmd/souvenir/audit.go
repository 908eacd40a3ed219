package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
)

func (c *cli) auditCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "audit", GroupID: groupFile,
		Short: "Read and verify the log of administration",
		Long: `The audit log notes what was done to users, credentials, shares, OAuth clients and the store as a
whole. Each entry has a hash of itself and of the entry before it, so that no entry can be changed,
removed or put in between unseen. Keep the number and the hash of the newest entry elsewhere, such as
in another system's log: with it, "souvenir audit verify --anchor" also finds a log that was cut off
at the end, or written anew.`,
	}, c.auditList(), c.auditVerify(), c.auditCut())
}

func (c *cli) auditList() *cobra.Command {
	command := &cobra.Command{
		Use:   "list [flags]",
		Short: "List what was done, the newest first",
		Long: `Lists the entries of the audit log, the newest first: what was done, by whom, and to what. Users are
given by their ids: "souvenir user list" shows their names.`,
		Example: `  souvenir audit list
  souvenir audit list --action token --limit 20
  souvenir audit list --json --before 1200`,
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	var q souvenir.AuditQuery
	flags := command.Flags()
	flags.StringVar(&q.Action, "action", "",
		"only an `action`, such as token.add, or all that begin with it, such as token")
	flags.StringVar(&q.Actor, "actor", "", "only what the user with this `id` did")
	flags.StringVar(&q.Object, "object", "", "only what was done to this `id`")
	flags.Int64Var(&q.Before, "before", 0, "only entries before this `number`; 0: from the newest on")
	limit := flags.Int("limit", 100, "`number` of entries; 0: all")
	return c.command(command, func(ctx context.Context, _ []string) error {
		if *limit < 0 {
			return misused("--limit is %d; give 0 or more", *limit)
		}
		entries := []souvenir.AuditEntry{}
		err := withStore(ctx, *db, forReading, func(store *souvenir.Store) error {
			for e, err := range store.Upkeep().Audit(ctx, q) {
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
		Short: "Verify that the log is what was written",
		Long: `Follows the chain of hashes from the oldest entry to the newest, names each place where it is not what
was written, and prints the number and the hash of the newest entry as NUMBER:HASH. Keep it: given as
--anchor later, it shows that everything up to there is still the same.

The exit status is 0 if everything is verified, otherwise 1.`,
		Example: `  souvenir audit verify
  souvenir audit verify --anchor "$(cat /media/elsewhere/anchor)"
  souvenir audit verify --json | jq -r '"\(.head.seq):\(.head.hash)"' >> /media/elsewhere/anchors`,
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	anchor := command.Flags().String("anchor", "", "`number:hash` of an entry that was kept")
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
			report, err = store.Upkeep().VerifyAudit(ctx, kept)
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
		Long: `Removes the oldest entries of the audit log, up to the one with a number and a hash, as "souvenir audit
list --json" shows them. A new entry notes where the log was cut, so that the rest can be verified.
Write the entries elsewhere first, and verify the log with the anchor that was kept: afterwards an
anchor that was cut off shows nothing.`,
		Example: `  souvenir audit list --limit 0 --json > /media/elsewhere/audit-2026.json
  souvenir audit cut "$(cat /media/elsewhere/anchor)"`,
		Args: wants(1, 1, "NUMBER:HASH"),
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	return c.command(command, func(ctx context.Context, args []string) error {
		through, err := parseAnchor("NUMBER:HASH", args[0])
		if err != nil {
			return err
		}
		var removed int64
		err = withStore(ctx, *db, forWriting, func(store *souvenir.Store) (err error) {
			removed, err = store.Upkeep().CutAudit(ctx, through)
			return renamed(renamed(err, "seq", "NUMBER:HASH"), "hash", "NUMBER:HASH")
		})
		if err != nil {
			return err
		}
		return c.printResult(*asJSON, object{"removed": removed}, "removed %d entries, up to %d", removed, through.Seq)
	})
}
