package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
)

func (c *cli) checkCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "check [flags]", GroupID: groupFile,
		Short: "See whether everything in the file is sound",
		Long: `Looks at everything in the store: whether the file is sound, references lead somewhere, contents can be read, passages, vectors and
full text are those of the contents, counts are right, and all that was stored is still there, byte by byte: everything has a hash. It
changes nothing, unless --repair is given, which mends what can be made again from what is sound, and deletes no memory and no file.
Others may use the file meanwhile.

What was stored and has changed, or is lost, cannot be made again. It is named, and stays wrong until it is deleted, or until --accept
takes what is there for what was stored.

The exit status is 0 when all agrees and is verified, or all that was found is repaired; otherwise 1. A file that is no store, or is too
damaged to be opened, is left as it is, with --repair, too: "souvenir recover" gets out of it what can be read.`,
		Example: `  souvenir check
  souvenir check --repair
  souvenir check --repair --accept
  souvenir check --json --db /var/lib/souvenir/souvenir.db || mail -s "the memory is damaged" root < /dev/null`,
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	repair := command.Flags().Bool("repair", false, "mend what can be mended")
	accept := command.Flags().Bool("accept", false, "with --repair: take what has changed or is lost for what was stored")
	return c.command(command, func(ctx context.Context, _ []string) error {
		how := forReading
		if *accept && !*repair {
			return misused("--accept is given without --repair; give both")
		}
		if *repair {
			how = forWriting
		}
		var report souvenir.CheckReport
		err := withStore(ctx, *db, how, func(store *souvenir.Store) (err error) {
			progress, end := c.progress()
			defer end()
			report, err = store.Upkeep().Check(ctx, &souvenir.CheckOptions{Repair: *repair, Accept: *accept, Progress: progress})
			if err == nil && report.Repaired > 0 {
				err = store.Upkeep().WaitEmbedded(ctx) // damaged vectors are remade in the background
			}
			return err
		})
		if err != nil && *asJSON {
			// With --json, a file that cannot be opened gives JSON, too.
			if printed := printJSON(&c.out,
				checkResult{CheckReport: souvenir.CheckReport{Findings: []souvenir.Finding{}, Checked: map[string]int{},
					Damaged: []souvenir.DamagedRow{}}, Error: err.Error()}); printed != nil {
				return printed
			}
		}
		if err != nil {
			return err
		}
		if *asJSON {
			err = printJSON(&c.out, checkResult{CheckReport: report})
		} else {
			err = c.printCheck(report)
		}
		if err == nil && !report.OK {
			return errSilent
		}
		return err
	})
}

// checkResult is what --json prints.
type checkResult struct {
	souvenir.CheckReport
	Error string `json:"error,omitempty"` // why nothing was checked
}

func (c *cli) printCheck(report souvenir.CheckReport) error {
	if report.Total == 0 {
		fmt.Fprintf(&c.out, "ok: %d memories in %d passages, %d files; all agrees\n", report.Checked["memory"],
			report.Checked["passage"], report.Checked["file"])
		c.printVerified(report)
		return nil
	}
	var rows [][]string
	for _, f := range report.Findings {
		state := "cannot be repaired"
		switch {
		case f.Repaired:
			state = "repaired"
		case f.Repairable:
			state = "--repair mends it"
		}
		rows = append(rows, []string{f.Table, dash(f.ID), state, f.Problem})
	}
	if err := table(&c.out, []string{"WHERE", "ID", "STATE", "PROBLEM"}, rows); err != nil {
		return err
	}
	if more := report.Total - len(report.Findings); more > 0 {
		fmt.Fprintf(&c.out, "and %d more\n", more)
	}
	fmt.Fprintf(&c.out, "%d found, %d repaired\n", report.Total, report.Repaired)
	c.printVerified(report)
	if len(report.Damaged) > 0 || report.Unverified > 0 {
		fmt.Fprintln(&c.out, "what is damaged cannot be made again: take it from a backup, write it anew, delete it, or take it as it is with --repair --accept")
	}
	return nil
}

// printVerified says how much of the store is verified to be what was stored.
func (c *cli) printVerified(report souvenir.CheckReport) {
	fmt.Fprintf(&c.out, "%d rows are verified by their hashes, %d are damaged or lost, %d could not be verified\n",
		report.Verified, len(report.Damaged), report.Unverified)
	if !report.HashedSince.IsZero() {
		fmt.Fprintf(&c.out, "hashes are kept since %s: what was damaged before that is not found\n",
			moment(report.HashedSince))
	}
}
