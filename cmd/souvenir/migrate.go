package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/migrate"
)

// migration are the flags of import --from.
type migration struct {
	from, user, project, collection *string
	secrets                         *string
	dryRun                          *bool
	flags                           *pflag.FlagSet
}

func migrationFlags(command *cobra.Command) migration {
	flags := command.Flags()
	m := migration{
		from:       flags.String("from", "", "the `program` that IN comes from: "+strings.Join(migrate.Sources(), ", ")),
		user:       userFlag(command, "with --from, the owner of the imported memories"),
		project:    flags.String("project", "", "with --from, the `name` of their project, created if it is missing"),
		collection: flags.String("collection", "", "with --from, the `name` of the collection for memories; it must exist"),
		secrets:    secretsFlag(command),
		dryRun:     flags.Bool("dry-run", false, "with --from, read everything and store nothing"),
		flags:      flags,
	}
	limits(command, "from", "project", "collection")
	_ = command.RegisterFlagCompletionFunc("from",
		cobra.FixedCompletions(migrate.Sources(), cobra.ShellCompDirectiveNoFileComp))
	return m
}

// check refuses flags that need --from.
func (m migration) check() error {
	for _, name := range []string{"user", "project", "collection", "dry-run"} {
		if given(m.flags, name) == 2 {
			return misused("--%s is given without --from; give both, or neither", name)
		}
	}
	return nil
}

// migrate imports the data of another program.
func (c *cli) migrate(ctx context.Context, db location, path string, m migration, asJSON bool) error {
	if !slices.Contains(migrate.Sources(), *m.from) {
		return misused("--from is %q; there are: %s", *m.from, strings.Join(migrate.Sources(), ", "))
	}
	if m.flags.Changed("on-conflict") {
		return misused("--on-conflict cannot be combined with --from, which always takes the memories of IN; omit it")
	}
	finder, err := finderOf(*m.secrets)
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("IN cannot be read: %w", err)
	}
	progress, end := c.progress()
	defer end()
	options := &migrate.Options{Collection: *m.collection, ProjectName: *m.project, DryRun: *m.dryRun,
		Treat: finder.Treat, Progress: progress}
	how := forMaking
	if *m.dryRun {
		how = forReading
		_, err := os.Stat(string(db))
		if !db.isDatabase() && errors.Is(err, fs.ErrNotExist) { // a dry run needs no store
			report, err := migrate.Import(ctx, nil, *m.from, path, options)
			return c.printMigration(report, err, end, *m.secrets, asJSON)
		}
	}
	return withStore(ctx, db, how, func(store *souvenir.Store) error {
		owner, err := chooseUser(ctx, store, *m.user)
		if err != nil {
			return err
		}
		view := store.As(souvenir.Access{User: owner.ID, Through: "import"})
		report, err := migrate.Import(ctx, view, *m.from, filepath.Clean(path), options)
		return c.printMigration(report, err, end, *m.secrets, asJSON)
	})
}

// printMigration prints the result of an import from another program, also before an error.
func (c *cli) printMigration(r migrate.Report, err error, end func(), secrets string, asJSON bool) error {
	end()
	if err != nil {
		if stored := r.Added + r.Updated + r.TurnsAdded; stored > 0 {
			err = fmt.Errorf("%w\n%d memories and turns are in the store; repeat the import to continue", err, stored)
		}
		return err
	}
	if asJSON {
		return printJSON(&c.out, r)
	}
	if r.DryRun {
		fmt.Fprintf(&c.out, "%d memories and %d turns of %d conversations can be imported; nothing was stored\n",
			r.Memories, r.Turns, r.Conversations)
	} else {
		fmt.Fprintf(&c.out, "%d memories: %d added, %d updated, %d unchanged; %d links\n", r.Memories, r.Added, r.Updated,
			r.Unchanged, r.Links)
		fmt.Fprintf(&c.out, "%d turns of %d conversations: %d added\n", r.Turns, r.Conversations, r.TurnsAdded)
	}
	c.warnOfSecrets(r.Secrets, secrets)
	for _, reason := range r.Reasons {
		c.warn("skipped %s", plain(reason))
	}
	if more := r.Skipped - len(r.Reasons); more > 0 {
		c.warn("skipped %d more", more)
	}
	if r.MissingLinks > 0 {
		c.warn("%d links point to memories that do not exist", r.MissingLinks)
	}
	return nil
}
