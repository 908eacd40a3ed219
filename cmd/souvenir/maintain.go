package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
)

func (c *cli) reindexCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "reindex [flags]", GroupID: groupFile,
		Short: "Rebuild everything that searches use",
		Long: `Splits, analyses and embeds all memories again. This is needed only if "souvenir check" says so.
Searches and writes continue meanwhile. If it is interrupted, the next run continues where it
stopped. Files whose text could not be read are read again when "souvenir serve" runs.`,
		Example: "  souvenir reindex",
	}
	db, asJSON, embedder := dbFlag(command), jsonFlag(command), newEmbedderFlags(command)
	return c.command(command, func(ctx context.Context, _ []string) error {
		chosen, err := embedder.embedder()
		if err != nil {
			return err
		}
		if chosen == nil {
			chosen = souvenir.Builtin()
		}
		progress, end := c.progress()
		defer end()
		return withEmbedder(ctx, *db, forWriting, chosen, func(store *souvenir.Store) error {
			if err := store.Upkeep().Reindex(ctx, &souvenir.ReindexingOptions{Progress: progress}); err != nil {
				return err
			}
			stats, err := store.Upkeep().Stats(ctx)
			end()
			if err != nil {
				return err
			}
			return c.printResult(*asJSON, object{"memories": stats.Memories, "passages": stats.Passages},
				"reindexed %d memories in %d passages", stats.Memories, stats.Passages)
		})
	})
}

func (c *cli) purgeCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "purge [flags]", GroupID: groupFile,
		Short: "Clean up expired and unfinished data",
		Long: `Deletes unfinished uploads, expired sessions, and invitations, tokens and OAuth state that were used
or expired long ago, as "souvenir serve" does daily; with --keep-revisions, past versions of
memories, too. The space becomes free within the file; --compact returns it to the system. For this
it rewrites the file, which needs disk space for a second copy; others can read but not write
meanwhile.`,
		Example: `  souvenir purge
  souvenir purge --keep-revisions 10 --compact`,
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	keep := keepRevisionsFlag(command, "keep the newest `number` of past versions of each memory; 0 keeps all")
	trust := command.Flags().Bool("trust-clock", false,
		"delete expired data even if the clock is far ahead of the time when the store was last used")
	compact := command.Flags().Bool("compact", false, "return free space in the file to the operating system")
	return c.storing(command, func(ctx context.Context, _ []string) error {
		if *keep < 0 {
			return badKeepRevisions(*keep)
		}
		return withStore(ctx, *db, forWriting, func(store *souvenir.Store) error {
			before, err := store.Upkeep().Stats(ctx)
			if err != nil {
				return err
			}
			end := c.busy("purging")
			purged, err := store.Upkeep().Purge(ctx, &souvenir.PurgeOptions{KeepRevisions: *keep, TrustClock: *trust})
			end()
			if err == nil && *compact {
				end = c.busy("compacting")
				err = store.Upkeep().Compact(ctx)
				end()
			}
			if err != nil {
				return err
			}
			after, err := store.Upkeep().Stats(ctx)
			switch {
			case err != nil:
				return err
			case *asJSON:
				return printJSON(&c.out, struct {
					souvenir.PurgeReport
					Before int64 `json:"database_bytes_before"`
					After  int64 `json:"database_bytes"`
				}{purged, before.DatabaseBytes, after.DatabaseBytes})
			}
			fmt.Fprintf(&c.out,
				"deleted %d past versions, %d expired memories, %d entries of the trash, %d unfinished files, "+
					"%d tokens, %d sessions, %d invitations, %d recorded calls, %d rows of OAuth state, %d objects\n",
				purged.Revisions, purged.Memories, purged.Trash, purged.Files, purged.Tokens, purged.SignIns, purged.Invitations,
				purged.Activity, purged.OAuth, purged.Objects)
			if purged.Retained > 0 {
				fmt.Fprintf(&c.out, "moved %s to the trash by retention rules\n", memoryCount(purged.Retained))
			}
			if !purged.HeldUntil.IsZero() {
				fmt.Fprintf(&c.out, "the clock is far ahead of the time when the store was last used, so nothing expired was "+
					"deleted; "+
					"if the clock is right, use --trust-clock, or purge again after %s\n", purged.HeldUntil.Format(time.RFC3339))
			}
			fmt.Fprintf(&c.out, "the store takes %s, %s of it free\n", size(after.DatabaseBytes), size(after.FreeBytes))
			return nil
		})
	})
}

func keepRevisionsFlag(command *cobra.Command, what string) *int {
	return command.Flags().Int("keep-revisions", 0, what)
}

func badKeepRevisions(n int) error {
	return misused("--keep-revisions is %d; give 0, which keeps all, or more", n)
}

func (c *cli) statsCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "stats [flags]", GroupID: groupFile,
		Short: "Show the size and contents of the store",
		Long: "Counts everything in the store, for all users, and shows the size of its file and the progress of its " +
			"vectors.",
		Example: "  souvenir stats\n  souvenir stats --json",
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	return c.command(command, func(ctx context.Context, _ []string) error {
		return withStore(ctx, *db, forReading, func(store *souvenir.Store) error {
			s, err := store.Upkeep().Stats(ctx)
			if err != nil {
				return err
			}
			if *asJSON {
				return printJSON(&c.out, s)
			}
			vectors := fmt.Sprintf("%s, %d dimensions", s.Embedding.Model, s.Embedding.Dimensions)
			if s.Embedding.Pending > 0 {
				vectors += fmt.Sprintf("; %d passages are not embedded yet", s.Embedding.Pending)
			}
			if s.Embedding.Changing {
				vectors += fmt.Sprintf("; the model is changing: %d of %d memories done", s.Embedding.Changed, s.Embedding.Memories)
			}
			if other := s.Embedding.StoredModel; other != "" {
				vectors += "; the store has vectors of " + other
			}
			rows := [][]string{
				{"users", fmt.Sprint(s.Users)},
				{"collections", fmt.Sprint(s.Collections)},
				{"projects", fmt.Sprint(s.Projects)},
				{"memories", fmt.Sprint(s.Memories)},
				{"passages", fmt.Sprint(s.Passages)},
				{"past versions", fmt.Sprint(s.Revisions)},
				{"files", fmt.Sprintf("%d, %s", s.Files, size(s.FileBytes))},
				{"database", fmt.Sprintf("%s, %s of it free", size(s.DatabaseBytes), size(s.FreeBytes))},
				{"log", size(s.LogBytes)},
				{"vectors", vectors},
			}
			if s.Objects+s.GoneObjects > 0 {
				rows = append(rows, []string{"in object storage", fmt.Sprintf("%d objects, %s; %d to be deleted", s.Objects,
					size(s.ObjectBytes), s.GoneObjects)})
			}
			return table(&c.out, []string{"WHAT", "AMOUNT"}, rows)
		})
	})
}
