package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/fault"
)

func (c *cli) checkCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "check [flags]", GroupID: groupFile,
		Short: "Check the whole file, and repair it",
		Long: `Checks everything in the store: the file, references, contents, passages, vectors, full text,
counts, and, by their hashes, every byte that was stored. It changes nothing, unless --repair is
given, which rebuilds what can be derived from intact data, and deletes no memory and no file.
Others may use the file meanwhile.

Stored data that has changed or is lost cannot be rebuilt. The check names it each time, until it is
deleted, or until --accept accepts it as it is now.

The exit status is 0 if everything is verified, or all problems are repaired; otherwise 1. A file
that is not a store, or is too damaged to open, is not changed, even with --repair: "souvenir
recover" extracts what can be read.`,
		Example: `  souvenir check
  souvenir check --repair
  souvenir check --repair --accept
  souvenir check --json --db /var/lib/souvenir/souvenir.db || mail -s "the memory is damaged" root < /dev/null`,
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	repair := command.Flags().Bool("repair", false, "repair what can be rebuilt")
	accept := command.Flags().Bool("accept", false, "with --repair: accept data that has changed or is lost as it is now")
	return c.storing(command, func(ctx context.Context, _ []string) error {
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
					Damaged: []souvenir.DamagedRow{}}, Error: fault.Text(err)}); printed != nil {
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

// checkResult is the output of --json.
type checkResult struct {
	souvenir.CheckReport
	Error string `json:"error,omitempty"` // why nothing was checked
}

func (c *cli) printCheck(report souvenir.CheckReport) error {
	if report.Total == 0 {
		fmt.Fprintf(&c.out, "%s %d memories in %d passages, %d files; everything is intact\n", c.out.in(green, "ok:"),
			report.Checked["memory"], report.Checked["passage"], report.Checked["file"])
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
			state = "--repair fixes it"
		}
		rows = append(rows, []string{f.Table, dash(f.ID), state, f.Problem})
	}
	if err := table(&c.out, []string{"WHERE", "ID", "STATE", "PROBLEM"}, rows); err != nil {
		return err
	}
	if more := report.Total - len(report.Findings); more > 0 {
		fmt.Fprintf(&c.out, "and %d more\n", more)
	}
	fmt.Fprintln(&c.out, c.out.in(red, fmt.Sprintf("%d found, %d repaired", report.Total, report.Repaired)))
	c.printVerified(report)
	if len(report.Damaged) > 0 || report.Unverified > 0 {
		fmt.Fprintln(&c.out, "damaged data cannot be rebuilt: restore it from a backup, write it again, delete it, or "+
			"accept it with --repair --accept")
	}
	return nil
}

// printVerified prints how much of the store is verified to be as it was stored.
func (c *cli) printVerified(report souvenir.CheckReport) {
	fmt.Fprintf(&c.out, "%d rows are verified by their hashes, %d are damaged or lost, %d could not be verified\n",
		report.Verified, len(report.Damaged), report.Unverified)
	if !report.HashedSince.IsZero() {
		fmt.Fprintf(&c.out, "hashes have been kept since %s: earlier damage is not found\n",
			moment(report.HashedSince))
	}
}
