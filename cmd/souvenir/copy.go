package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/storefile"
)

func (c *cli) copyCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "copy --from STORE --to STORE [flags]", GroupID: groupFile,
		Short: "Copy a store from a file to a database, or back",
		Long: `Copies everything that an export contains from one store to another, in a file or a database: users with their
passwords, memories with their past versions and vectors, files, projects, tokens, and OAuth clients,
grants and keys. Ids do not change, so clients notice nothing. The target is created if there is
none. --from is not changed, except that its audit log gets an entry; stop its servers first, since later
changes are not copied.

A copy can also add or remove user keys (SOUVENIR_USER_KEYS), and encrypt or decrypt a file: --from-keys
and --to-keys set what the master key protects in each store.

The trash, recorded calls, invitations and sign-ins are not copied: people sign in again.

If the copy is interrupted, run it again: it continues where it stopped. At the end it compares each
row of the target with what was copied, and checks the target. The exit status is 0 only if nothing
is missing or different.`,
		Example: `  souvenir copy --from souvenir.db --to postgres://souvenir@localhost/souvenir
  souvenir copy --from postgres://souvenir@localhost/souvenir --to copy.db
  SOUVENIR_USER_KEYS=on souvenir copy --from plain.db --from-keys none --to sealed.db`,
	}
	var from, to location
	locationFlag(command, &from, "from", "the store to copy: a `file`, or "+addressForms())
	locationFlag(command, &to, "to", "where to copy it: a `file`, or "+addressForms())
	asJSON := jsonFlag(command)
	fromKeys, toKeys := keysFlag(command, "from-keys", "--from"), keysFlag(command, "to-keys", "--to")
	return c.storing(command, func(ctx context.Context, _ []string) error {
		switch {
		case from == "" || to == "":
			return misused("copy needs --from and --to")
		case from == to || isSameFile(from, to):
			return misused("--from and --to are the same store, %s", from)
		}
		ofFrom, err := using(ctx, *fromKeys)
		if err != nil {
			return misused("--from-keys: %v", err)
		}
		ofTo, err := using(ctx, *toKeys)
		if err != nil {
			return misused("--to-keys: %v", err)
		}
		var done copied
		err = withStore(storefile.WithOnlyRecords(ofFrom), from, forRecord, func(source *souvenir.Store) error {
			return withStore(ofTo, to, forMaking, func(target *souvenir.Store) (err error) {
				done, err = c.copyStore(ctx, source, target)
				return err
			})
		})
		if err != nil {
			return errors.New(strings.ReplaceAll(err.Error(), "--db: ", "")) // the location in it tells which store it is
		}
		return c.printCopied(*asJSON, to, done)
	})
}

// isSameFile reports whether two locations are one file, under any names.
func isSameFile(a, b location) bool {
	if a.isDatabase() || b.isDatabase() {
		return false
	}
	first, err := os.Stat(string(a))
	second, missing := os.Stat(string(b))
	return err == nil && missing == nil && os.SameFile(first, second)
}

// keysFlag adds a flag for the part of a store that the master key is for.
func keysFlag(command *cobra.Command, name, of string) *string {
	value := command.Flags().String(name, string(keysAll), "what the master key protects in "+of+": `all`, file (no user "+
		"keys), users (the file is not encrypted), or none")
	_ = command.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(keysUses, cobra.ShellCompDirectiveNoFileComp))
	return value
}

// copied is the result of a copy.
type copied struct {
	Imported souvenir.ImportReport `json:"imported"`
	Missing  map[string]int        `json:"missing"` // by kind: rows that are missing in the target, or differ there
	Other    map[string]int        `json:"other"`   // by kind: rows of the target that were not copied
	Check    souvenir.CheckReport  `json:"check"`   // of the target
}

func (d copied) ok() bool { return len(d.Missing) == 0 && d.Check.OK }

// copyStore copies one store to another, and compares them.
func (c *cli) copyStore(ctx context.Context, source, target *souvenir.Store) (done copied, err error) {
	progress, end := c.progress()
	defer end()
	rows := rowSet{}
	read, write := io.Pipe()
	exported := make(chan error, 1)
	go func() {
		counted := rows.counting(1)
		// The progress is that of the export: it has a total, and is never far ahead of the import.
		_, err := source.Upkeep().Export(ctx, io.MultiWriter(write, counted), &souvenir.ExportOptions{Credentials: true,
			Progress: staged("copy", progress)})
		exported <- write.CloseWithError(err)
	}()
	done.Imported, err = target.Upkeep().Import(ctx, read, nil)
	_ = read.CloseWithError(err) // ends the export after an error
	if failed := <-exported; err == nil {
		err = failed
	}
	if err != nil {
		return done, err
	}
	counted := rows.counting(-1)
	if _, err = target.Upkeep().Export(ctx, counted, &souvenir.ExportOptions{Credentials: true,
		Progress: staged("compare", progress)}); err != nil {
		return done, err
	}
	done.Missing, done.Other = rows.left()
	done.Check, err = target.Upkeep().Check(ctx, &souvenir.CheckOptions{Progress: progress})
	return done, err
}

// staged puts a word before the stages of a progress; nil stays nil.
func staged(word string, progress souvenir.Progress) souvenir.Progress {
	if progress == nil {
		return nil
	}
	return func(stage string, done, total int) { progress(word+" "+stage, done, total) }
}

func (c *cli) printCopied(asJSON bool, to location, done copied) error {
	switch {
	case asJSON:
		if err := printJSON(&c.out, done); err != nil {
			return err
		}
	default:
		if err := c.printImport(done.Imported); err != nil {
			return err
		}
		for _, kind := range slices.Sorted(maps.Keys(done.Missing)) {
			c.warn("%d rows (%s) are missing in %s, or differ there", done.Missing[kind], kind, to)
		}
		for _, kind := range slices.Sorted(maps.Keys(done.Other)) {
			c.warn("%s has %d rows (%s) that were not copied", to, done.Other[kind], kind)
		}
		if !done.Check.OK {
			if err := c.printCheck(done.Check); err != nil {
				return err
			}
		}
		if done.ok() {
			fmt.Fprintf(&c.out, "copied to %s: all rows match\n", to)
		}
	}
	if !done.ok() {
		return errSilent
	}
	return nil
}

// rowSet counts rows of exports by their hashes.
type rowSet map[[sha256.Size]byte]rowCount

type rowCount struct {
	kind string
	n    int
}

// counting returns a writer that adds n to the count of each row of an export.
func (s rowSet) counting(n int) io.Writer { return &rowCounter{rows: s, n: n} }

// left returns by kind how many rows have a positive count, and how many a negative one.
func (s rowSet) left() (more, less map[string]int) {
	more, less = map[string]int{}, map[string]int{}
	for _, row := range s {
		switch {
		case row.n > 0:
			more[row.kind] += row.n
		case row.n < 0:
			less[row.kind] -= row.n
		}
	}
	return more, less
}

// rowCounter splits an export into lines.
type rowCounter struct {
	rows rowSet
	n    int
	rest []byte // the beginning of a line
}

func (c *rowCounter) Write(p []byte) (int, error) {
	for rest := p; ; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		c.rest = append(c.rest, line...)
		if !whole {
			return len(p), nil
		}
		if err := c.count(c.rest); err != nil {
			return 0, err
		}
		c.rest, rest = c.rest[:0], after
	}
}

// count counts a line, except the first and the last one, which say when and how much was exported.
func (c *rowCounter) count(line []byte) error {
	var row struct{ Type string }
	if err := json.Unmarshal(line, &row); err != nil {
		return err
	}
	if row.Type == "" || row.Type == "end" {
		return nil
	}
	hash := sha256.Sum256(line)
	counted := rowCount{kind: row.Type, n: c.rows[hash].n + c.n}
	if counted.n == 0 {
		delete(c.rows, hash)
		return nil
	}
	c.rows[hash] = counted
	return nil
}
