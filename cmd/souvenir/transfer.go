package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/migrate"
)

// standardStream is the file name that means standard input or output.
const standardStream = "-"

func (c *cli) exportCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "export [OUT] [flags]", GroupID: groupMemories,
		Short: "Export everything as JSON Lines",
		Long: `Writes all users' data as JSON Lines to the file OUT, which must not exist, or to standard output if
OUT is - or missing. The export is one consistent state; others can read and write meanwhile.
"souvenir import" reads it, and so can any program. docs/export-format.md describes the format. To
copy a whole store, "souvenir backup" is quicker.

--credentials adds all credentials, including keys: protect such a file as you protect the store.

--user exports the data of one user only. --receipt writes a signed receipt of the export, which
"souvenir receipt verify" checks.`,
		Example: `  souvenir export memories.jsonl
  souvenir export anna.jsonl --user anna --receipt anna.receipt.json
  souvenir export --no-vectors | gzip > memories.jsonl.gz
  souvenir export --no-files --no-vectors | jq -r 'select(.type == "memory").content'`,
		Args: wants(0, 1, "OUT"),
	}
	flags := command.Flags()
	db := dbFlag(command)
	credentials := flags.Bool("credentials", false,
		"also hashes of passwords and tokens, OAuth clients and grants, signing keys")
	noFiles := flags.Bool("no-files", false, "omit files")
	noVectors := flags.Bool("no-vectors", false, "omit vectors, which an import can compute again")
	asJSON := flags.Bool("json", false, "print a summary as JSON, for programs; only with OUT")
	user := flags.String("user", "", "only the data of this user, by `name` or id")
	proof := flags.String("receipt", "", "new `file` for the receipt")
	limits(command, "user", "receipt")
	return c.storing(command, func(ctx context.Context, args []string) error {
		out := append(args, standardStream)[0]
		if out == standardStream && *asJSON {
			return misused("--json prints a summary to standard output, where the export also goes; give a file OUT for it")
		}
		progress, end := c.progress()
		defer end()
		options := &souvenir.ExportOptions{Credentials: *credentials, WithoutFiles: *noFiles, WithoutVectors: *noVectors,
			Progress: progress}
		how, err := proving(*proof, &options.Receipt)
		if err != nil {
			return err
		}
		return withStore(ctx, *db, how, func(store *souvenir.Store) error {
			store, err := ofUser(ctx, store, *user)
			if err != nil {
				return err
			}
			if out == standardStream {
				if !isRegular(c.stdout) {
					options.Progress = nil // both streams share the terminal, or the program that reads the pipe prints to it
				}
				_, err := store.Upkeep().Export(ctx, &c.out, options)
				if err == nil && *proof != "" {
					err = c.writeReceipt(*proof, *options.Receipt)
				}
				return err
			}
			var summary souvenir.ExportSummary
			err = writeNewFile(out, func(w io.Writer) (err error) {
				summary, err = store.Upkeep().Export(ctx, w, options)
				return err
			})
			end()
			if err == nil && *proof != "" {
				err = c.writeReceipt(*proof, *options.Receipt)
			}
			switch {
			case err != nil:
				return err
			case *asJSON:
				return printJSON(&c.out, summary)
			}
			fmt.Fprintf(&c.out, "exported %d memories and %d files to %s (%s)\n", summary.Counts["memory"],
				summary.Counts["file"], out, size(summary.Bytes))
			return nil
		})
	})
}

// ofUser returns the view of a user for --user; the store itself for none.
func ofUser(ctx context.Context, store *souvenir.Store, named string) (*souvenir.Store, error) {
	if named == "" {
		return store, nil
	}
	u, err := store.Accounts().GetUser(ctx, named)
	if err != nil {
		return nil, renamed(err, "user", "--user")
	}
	return store.As(souvenir.Access{User: u.ID}), nil
}

// writeNewFile creates a file that only its owner may read. After an error the file is gone.
func writeNewFile(path string, write func(io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%q already exists and is not overwritten; give a new path", path)
	case err != nil:
		return fmt.Errorf("%q cannot be written: %w", path, err)
	}
	err = write(file)
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

func (c *cli) importCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "import IN [flags]", GroupID: groupMemories,
		Short: "Import an export, or a handmade file",
		Long: `Reads the file IN, or standard input for -, into the store, and creates the store's file if it does
not exist. Ids, times and owners do not change. Existing data stays, so you can repeat an import:
the second run continues where the first was interrupted, and a complete one changes nothing. Before
anything is written, the whole file is checked.

A handmade file needs a header and one line per memory:

  {"souvenir":"export","version":1}
  {"type":"memory","content":"The kettle is blue.","owner":"anna","tags":["kitchen"]}

--secrets is for the memories of handmade files and of --from; exports do not change.

Import only files that you trust: they create users, and if a file has credentials, these users can
sign in.

With --from, IN is what another program stored, a file or a folder:
` + strings.Join(migrate.Sources(), ", ") + `.
Its memories belong to --user. A second import changes only what has changed there, and --dry-run
stores nothing. docs/migrating.md lists what each import reads.`,
		Example: `  souvenir import memories.jsonl
  zcat memories.jsonl.gz | souvenir import -
  souvenir import memories.jsonl --on-conflict replace
  souvenir import --from chatgpt export.zip --dry-run
  souvenir import --from server-memory memory.json --user anna --project atlas`,
		Args: wants(1, 1, "IN"),
	}
	ways := []string{string(souvenir.ConflictKeep), string(souvenir.ConflictReplace)}
	db, asJSON := dbFlag(command), jsonFlag(command)
	onConflict := command.Flags().String("on-conflict", ways[0],
		"`what` to do on conflict with existing data: keep it or replace it")
	_ = command.RegisterFlagCompletionFunc("on-conflict", cobra.FixedCompletions(ways, cobra.ShellCompDirectiveNoFileComp))
	other := migrationFlags(command)
	return c.storing(command, func(ctx context.Context, args []string) error {
		if *other.from != "" {
			return c.migrate(ctx, *db, args[0], other, *asJSON)
		}
		if err := other.check(); err != nil {
			return err
		}
		if !slices.Contains(ways, *onConflict) {
			return misused("--on-conflict is %q; give keep or replace", *onConflict)
		}
		in := c.stdin
		if args[0] != standardStream {
			file, err := os.Open(args[0])
			if err != nil {
				return fmt.Errorf("%q cannot be read: %w", args[0], err)
			}
			defer file.Close()
			in = file
		}
		report, err := c.importFile(ctx, *db, in, souvenir.ConflictPolicy(*onConflict), *other.secrets)
		switch {
		case err != nil && report.Line > 0:
			return fmt.Errorf("%w\neverything up to line %d is in the store; repeat the import to continue there", err,
				report.Line)
		case err != nil:
			return err
		case *asJSON:
			return printJSON(&c.out, report)
		}
		if report.Rewritten > 0 {
			c.warn("%d memories with possible secrets were %s", report.Rewritten, treated(*other.secrets))
		}
		return c.printImport(report)
	})
}

// importFile imports an export, or a handmade file.
func (c *cli) importFile(ctx context.Context, db location, in *os.File, onConflict souvenir.ConflictPolicy,
	secrets string) (report souvenir.ImportReport, err error) {
	var o souvenir.Options
	if err := treatSecrets(&o, secrets); err != nil {
		return report, err
	}
	progress, end := c.progress()
	defer end()
	lines := reader(in)
	if _, err := os.Stat(string(db)); !db.isDatabase() && errors.Is(err, fs.ErrNotExist) {
		if lines, err = checkBefore(ctx, lines, progress, o.Hooks); err != nil {
			return report, err
		}
	}
	err = withOptions(ctx, db, forMaking, o, func(store *souvenir.Store) (err error) {
		report, err = store.Upkeep().Import(ctx, lines,
			&souvenir.ImportOptions{OnConflict: onConflict, Progress: progress})
		return err
	})
	return report, err
}

// checkBefore checks that something can be imported before a store is created for it: a file to its end, a stream
// by its first line.
func checkBefore(ctx context.Context, in io.Reader, progress souvenir.Progress, hooks []souvenir.Hooks) (io.Reader,
	error) {
	if file, ok := in.(io.ReadSeeker); ok {
		start, err := file.Seek(0, io.SeekCurrent)
		if err == nil {
			err = souvenir.CheckExport(ctx, file, &souvenir.ExportCheckOptions{Hooks: hooks, Progress: progress})
		}
		if err == nil {
			_, err = file.Seek(start, io.SeekStart)
		}
		return file, err
	}
	stream := bufio.NewReaderSize(in, 64<<10)
	start, err := stream.Peek(stream.Size())
	if len(start) == 0 && err != nil && !errors.Is(err, io.EOF) { // such as of a folder
		return nil, fmt.Errorf("IN cannot be read: %w", err)
	}
	first, _, _ := bytes.Cut(bytes.TrimLeft(start, " \t\r\n"), []byte("\n")) // blank lines do not count
	err = souvenir.CheckExport(ctx, bytes.NewReader(first), nil)
	if errors.Is(err, souvenir.ErrForeign) || errors.Is(err, souvenir.ErrNewer) {
		return nil, err
	}
	return stream, nil // the rest has not arrived yet, and may still be invalid
}

// reader hides from the library that a pipe has a Seek method, which always fails.
func reader(file *os.File) io.Reader {
	if isRegular(file) {
		return file
	}
	return struct{ io.Reader }{file}
}

// isRegular reports whether a stream is a file, not a pipe or a terminal.
func isRegular(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode().IsRegular()
}

func (c *cli) printImport(report souvenir.ImportReport) error {
	var kinds []string
	for kind := range report.Counts {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	var rows [][]string
	for _, kind := range kinds {
		n := report.Counts[kind]
		rows = append(rows, []string{kind, fmt.Sprint(n.Added), fmt.Sprint(n.Unchanged), fmt.Sprint(n.Replaced),
			fmt.Sprint(n.Conflicts)})
	}
	if err := table(&c.out, []string{"KIND", "ADDED", "UNCHANGED", "REPLACED", "CONFLICTS"}, rows); err != nil {
		return err
	}
	for _, x := range report.Conflicts {
		c.warn("line %d: %s %q was not imported: %s", x.Line, x.Kind, x.ID, plain(x.Reason))
	}
	if report.MissingLinks > 0 {
		c.warn("%d links point to memories that are not in the store", report.MissingLinks)
	}
	if report.Ignored > 0 {
		c.warn("%d lines were ignored", report.Ignored)
	}
	if len(report.Warnings) > 0 {
		c.warn("%s", plain(strings.Join(report.Warnings, "; ")))
	}
	return nil
}
