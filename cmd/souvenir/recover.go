package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
)

func (c *cli) recoverCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "recover IN OUT [flags]", GroupID: groupFile,
		Short: "Make a new store of what can be read of a damaged one",
		Long: `Reads the damaged file IN page by page, with its log (IN-wal) where one lies beside it, also where "check" and "restore" refuse it, and
makes the new store OUT, which must not exist, of all rows that can still be read. IN stays as it is; stop the server before, so that
nobody writes it.

What was not read as it was stored is never called verified: the command names it, and "souvenir check" of the new store goes on doing
so, until it is deleted, or accepted with "souvenir check --repair --accept". A memory that is lost comes back in its newest former
state, if there is one. Full text and vectors are made again. People have to sign in again.

The exit status is 0 when everything came over and is verified; otherwise 1, also when OUT was made.`,
		Example: `  souvenir recover souvenir.db recovered.db
  souvenir check --db recovered.db`,
		Args: wants(2, 2, "IN and OUT"),
	}
	asJSON := jsonFlag(command)
	return c.command(command, func(ctx context.Context, args []string) error {
		progress, end := c.progress()
		defer end()
		report, err := souvenir.Recover(ctx, args[0], args[1], &souvenir.RecoveryOptions{Progress: progress})
		end()
		if err != nil && *asJSON {
			if printed := printJSON(&c.out, recoverResult{RecoveryReport: report, Error: err.Error()}); printed != nil {
				return printed
			}
		}
		if errors.Is(err, souvenir.ErrForeign) {
			return fmt.Errorf("nothing could be recovered: %w", renamed(err, "in", "IN"))
		}
		if err != nil {
			return renamed(renamed(err, "in", "IN"), "out", "OUT")
		}
		if *asJSON {
			err = printJSON(&c.out, recoverResult{RecoveryReport: report})
		} else {
			err = c.printRecovered(args[1], report)
		}
		if err == nil && !report.OK {
			return errSilent
		}
		return err
	})
}

// recoverResult is what --json prints.
type recoverResult struct {
	souvenir.RecoveryReport
	Error string `json:"error,omitempty"` // why there is no result
}

func (c *cli) printRecovered(out string, report souvenir.RecoveryReport) error {
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(report.Tables)) {
		t := report.Tables[name]
		row := []string{name}
		for _, n := range []int{t.Rows, t.Stray, t.Damaged, t.Cut, t.Lost, t.Refused} {
			row = append(row, strconv.Itoa(n))
		}
		rows = append(rows, row)
	}
	if err := table(&c.out, []string{"TABLE", "ROWS", "STRAY", "DAMAGED", "CUT", "LOST", "REFUSED"}, rows); err != nil {
		return err
	}
	for _, note := range report.Notes {
		fmt.Fprintf(&c.out, "note: %s\n", plain(note))
	}
	if report.OK {
		fmt.Fprintf(&c.out, "made %s: everything came over, and is verified\n", out)
		return nil
	}
	fmt.Fprintln(&c.out)
	if err := c.printCheck(report.Check); err != nil {
		return err
	}
	fmt.Fprintf(&c.out, "made %s of what could be read; not all of it is what was stored\n", out)
	return nil
}
