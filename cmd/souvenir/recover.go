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
	"github.com/souvenir-ai/souvenir/internal/fault"
)

func (c *cli) recoverCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "recover IN OUT [flags]", GroupID: groupFile,
		Short: "Recover the readable content of a damaged store",
		Long: `Reads the damaged file IN page by page, with its log (IN-wal) if there is one, even if "check" and
"restore" refuse it, and creates the new store OUT, which must not exist, from all rows that can
still be read. IN is not changed; stop the server first, so that the file is not written meanwhile.

Data that differs from what was stored is never reported as verified: the command lists it, and so
does "souvenir check" of the new store, until it is deleted, or accepted with "souvenir check --repair
--accept". A lost memory is restored from its newest past version, if there is one. Full text and
vectors are rebuilt. People have to sign in again.

A store with user keys (SOUVENIR_USER_KEYS) needs its key ring, which is looked up beside IN. OUT uses
the same ring: give its path in SOUVENIR_USER_KEYS, or give OUT the name that IN had.

The exit status is 0 if everything was recovered and verified; otherwise 1, even if OUT was created.`,
		Example: `  souvenir recover souvenir.db recovered.db
  souvenir check --db recovered.db`,
		Args: wants(2, 2, "IN and OUT"),
	}
	asJSON := jsonFlag(command)
	return c.command(command, func(ctx context.Context, args []string) error {
		progress, end := c.progress()
		defer end()
		key, err := fileKeyOf(ctx)
		if err != nil {
			return err
		}
		keys, err := userKeysOf(ctx, location(args[0]))
		if err != nil {
			return err
		}
		report, err := souvenir.Recover(ctx, args[0], args[1],
			&souvenir.RecoveryOptions{MasterKey: key, UserKeys: keys, Progress: progress})
		end()
		if err != nil && *asJSON {
			if printed := printJSON(&c.out, recoverResult{RecoveryReport: report, Error: fault.Text(err)}); printed != nil {
				return printed
			}
		}
		if errors.Is(err, souvenir.ErrUserKeys) {
			return inVariables(err)
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

// recoverResult is the output of --json.
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
		fmt.Fprintf(&c.out, "created %s: everything was recovered and verified\n", out)
		return nil
	}
	fmt.Fprintln(&c.out)
	if err := c.printCheck(report.Check); err != nil {
		return err
	}
	fmt.Fprintf(&c.out, "created %s from what could be read; some data differs from what was stored\n", out)
	return nil
}
