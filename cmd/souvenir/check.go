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
full text are those of the contents, counts are right, and files have the bytes that were stored. It changes nothing, unless
--repair is given, which mends what can be made again from what is sound, and deletes no memory and no file. Others may use the
file meanwhile.

The exit status is 0 when all agrees, or all that was found is repaired; otherwise 1. A file that is no store, or is too damaged to be
read, is left as it is, with --repair, too.`,
		Example: `  souvenir check
  souvenir check --repair
  souvenir check --json --db /var/lib/souvenir/souvenir.db || mail -s "the memory is damaged" root < /dev/null`,
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	repair := command.Flags().Bool("repair", false, "mend what can be mended")
	return c.command(command, func(ctx context.Context, _ []string) error {
		how := forReading
		if *repair {
			how = forWriting
		}
		var report souvenir.CheckReport
		err := withStore(ctx, *db, how, func(store *souvenir.Store) (err error) {
			progress, end := c.progress()
			defer end()
			report, err = store.Check(ctx, &souvenir.CheckOptions{Repair: *repair, Progress: progress})
			if err == nil && report.Repaired > 0 {
				err = store.WaitEmbedded(ctx) // vectors that were damaged are made in the background
			}
			return err
		})
		if err != nil && *asJSON {
			// Who reads JSON gets JSON of a file that cannot be opened, too.
			if printed := printJSON(&c.out, checkResult{CheckReport: souvenir.CheckReport{Findings: []souvenir.Finding{}, Checked: map[string]int{}}, Error: err.Error()}); printed != nil {
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
	Error string `json:"error,omitempty"` // why there was nothing to look at
}

func (c *cli) printCheck(report souvenir.CheckReport) error {
	if report.Total == 0 {
		fmt.Fprintf(&c.out, "ok: %d memories in %d passages, %d files; all agrees\n", report.Checked["memory"], report.Checked["passage"], report.Checked["file"])
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
	return nil
}
