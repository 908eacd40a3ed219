package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
)

func (c *cli) trashCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "trash", GroupID: groupMemories,
		Short: "List, restore and erase what was deleted",
		Long: `What users, agents and programs delete stays in the trash for 30 days, or as set with --trash-days
of "souvenir serve" and "souvenir mcp", and can be restored until then. These commands work whether
or not a server is running on the file.`,
	}, c.trashList(), c.trashRestore(), c.trashEmpty())
}

// withTrash opens the store, and calls fn with the view of the trash's owner.
func withTrash(ctx context.Context, db location, user string, how opening, fn func(view *souvenir.Store) error) error {
	return withStore(ctx, db, how, func(store *souvenir.Store) error {
		owner, err := chooseUser(ctx, store, user)
		if err != nil {
			return renamed(err, "user", "--user")
		}
		return fn(store.As(souvenir.Access{User: owner.ID, ReadOnly: how == forReading, Through: "cli"}))
	})
}

func (c *cli) trashList() *cobra.Command {
	command := &cobra.Command{
		Use:   "list [flags]",
		Short: "List what was deleted and can be restored",
		Long: `Lists what was deleted and can be restored, newest first: the user's own data, and memories and
files from projects that the user can write to.`,
		Example: "  souvenir trash list\n  souvenir trash list --user anna --kind project",
	}
	db, user, asJSON := dbFlag(command), userFlag(command, "the owner of the trash"), jsonFlag(command)
	kinds := command.Flags().StringSlice("kind", nil,
		"only entries of this `kind`, or of several, separated by commas: memory, file, project, collection")
	limits(command, "kind")
	limit := command.Flags().Int("limit", 100, fmt.Sprintf("`number` of entries, 1 to %d", souvenir.MaxTrashLimit))
	offset := command.Flags().Int("offset", 0, "`number` of entries to skip before them")
	_ = command.RegisterFlagCompletionFunc("kind",
		cobra.FixedCompletions([]string{"memory", "file", "project", "collection"}, cobra.ShellCompDirectiveNoFileComp))
	return c.command(command, func(ctx context.Context, _ []string) error {
		if *limit < 1 || *limit > souvenir.MaxTrashLimit {
			return misused("--limit is %d; give a number from 1 to %d", *limit, souvenir.MaxTrashLimit)
		}
		q := souvenir.TrashQuery{Limit: *limit, Offset: *offset}
		for _, kind := range *kinds {
			q.Kinds = append(q.Kinds, souvenir.TrashKind(kind))
		}
		return withTrash(ctx, *db, *user, forReading, func(view *souvenir.Store) error {
			p, err := view.Trash().Page(ctx, q)
			switch {
			case err != nil:
				return err
			case *asJSON:
				return printJSON(&c.out, struct {
					souvenir.TrashPage
					HasMore bool `json:"has_more"`
				}{p, p.HasMore()})
			case p.Total == 0:
				return c.none("the trash is empty")
			}
			var rows [][]string
			for _, e := range p.Entries {
				rows = append(rows, []string{moment(e.DeletedAt), moment(e.Until), string(e.Kind), e.ID,
					cmp.Or(e.DeletedByName, e.DeletedBy), shorten(plain(e.Title), 60)})
			}
			if err := table(&c.out, []string{"DELETED", "RESTORABLE UNTIL", "KIND", "ID", "BY", "TITLE"}, rows); err != nil {
				return err
			}
			if p.HasMore() {
				fmt.Fprintf(c.stderr, "%d more: --offset %d\n", p.Total-p.Offset-len(p.Entries), p.Offset+len(p.Entries))
			}
			return nil
		})
	})
}

func (c *cli) trashRestore() *cobra.Command {
	command := &cobra.Command{
		Use:   "restore ID... [flags]",
		Short: "Restore what was deleted",
		Long: `Restores entries of the trash to their places: a memory with its history, links and files, a project
with its members and memories. ID is listed by "souvenir trash list". An entry that cannot be
restored stays in the trash; the others are still restored.`,
		Example: "  souvenir trash restore 01989a0e-6d5c-7b1e-8f4a-2f6f0d8c1b11 --user anna",
		Args:    wants(1, -1, "ID"),
	}
	db, user, asJSON := dbFlag(command), userFlag(command, "the owner of the trash"), jsonFlag(command)
	return c.command(command, func(ctx context.Context, args []string) error {
		return withTrash(ctx, *db, *user, forWriting, func(view *souvenir.Store) error {
			var restored []souvenir.TrashEntry
			failed := 0
			for _, id := range args {
				end := c.busy("restoring")
				e, err := view.Trash().Restore(ctx, id)
				end()
				switch {
				case ctx.Err() != nil:
					return ctx.Err()
				case err != nil:
					c.warn("%s", fault.Text(renamed(err, "id", "ID")))
					failed++
				case *asJSON:
					restored = append(restored, e)
				default:
					fmt.Fprintf(&c.out, "restored %s %s\n", e.Kind, shorten(plain(e.Title), 60))
				}
			}
			if *asJSON {
				if err := printJSON(&c.out, jsonobject.List(restored)); err != nil {
					return err
				}
			}
			if failed > 0 {
				return errSilent
			}
			return nil
		})
	})
}

func (c *cli) trashEmpty() *cobra.Command {
	command := &cobra.Command{
		Use:   "empty [ID...] [flags]",
		Short: "Erase the trash permanently",
		Long: `Erases everything of the user in the trash, or only the entries with the given ids. This cannot be
undone; earlier backups still contain the data. On a terminal it asks first; without one it needs
--yes.`,
		Example: "  souvenir trash empty --user anna\n  souvenir trash empty 01989a0e-6d5c-7b1e-8f4a-2f6f0d8c1b11 --user " +
			"anna --yes",
		Args: wants(0, -1),
	}
	db, user, asJSON := dbFlag(command), userFlag(command, "the owner of the trash"), jsonFlag(command)
	sure := command.Flags().Bool("yes", false, "do not ask for confirmation")
	return c.command(command, func(ctx context.Context, args []string) error {
		slices.Sort(args)
		args = slices.Compact(args)
		return withTrash(ctx, *db, *user, forWriting, func(view *souvenir.Store) error {
			own, err := ownTrash(ctx, view, args)
			if err != nil {
				return err
			}
			if own == 0 {
				return c.printResult(*asJSON, object{"erased": 0}, "there is nothing to erase")
			}
			if !*sure {
				if err := c.confirmErasure(ctx, own); err != nil {
					return err
				}
			}
			erased, err := c.erase(ctx, view, args)
			if err != nil {
				return err
			}
			return c.printResult(*asJSON, object{"erased": erased}, "erased %s permanently; earlier backups still contain it",
				entryCount(erased))
		})
	})
}

// erase erases the entries with the ids, or without any, all of the user's own.
func (c *cli) erase(ctx context.Context, view *souvenir.Store, ids []string) (erased int, err error) {
	if len(ids) == 0 {
		defer c.busy("erasing")()
		return view.Trash().Empty(ctx)
	}
	progress, end := c.progress()
	defer end()
	for _, id := range ids {
		if progress != nil {
			progress("erase", erased, len(ids))
		}
		if err := view.Trash().Erase(ctx, id); err != nil {
			return erased, fmt.Errorf("after %d of %d: %w", erased, len(ids), renamed(err, "id", "ID"))
		}
		erased++
	}
	return erased, nil
}

// ownTrash counts the entries to be erased: the ones with the ids, which must all exist, or all of the user's
// own.
func ownTrash(ctx context.Context, view *souvenir.Store, ids []string) (n int, err error) {
	for _, id := range ids {
		e, err := view.Trash().Get(ctx, id)
		if err != nil {
			return 0, renamed(err, "id", "ID")
		}
		if !e.Own {
			return 0, fmt.Errorf("ID %q belongs to another user; only that user can erase it", id)
		}
	}
	if len(ids) > 0 {
		return len(ids), nil
	}
	for q := (souvenir.TrashQuery{Limit: souvenir.MaxTrashLimit}); ; q.Offset += q.Limit {
		p, err := view.Trash().Page(ctx, q)
		if err != nil {
			return 0, err
		}
		for _, e := range p.Entries {
			if e.Own {
				n++
			}
		}
		if !p.HasMore() {
			return n, nil
		}
	}
}

func entryCount(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}

// confirmErasure asks on the terminal. It is an error without a terminal, or without a yes.
func (c *cli) confirmErasure(ctx context.Context, n int) error {
	if !isTerminal(c.stdin) {
		return misused("--yes is missing: %s would be erased permanently", entryCount(n))
	}
	fmt.Fprintf(c.stderr, "Erase %s permanently? [y/N] ", entryCount(n))
	answered := make(chan string, 1)
	go func() { // if the context ends first, this goroutine is left: the program is about to end
		line, _ := bufio.NewReader(c.stdin).ReadString('\n')
		answered <- line
	}()
	select {
	case line := <-answered:
		if answer := strings.ToLower(strings.TrimSpace(line)); answer == "y" || answer == "yes" {
			return nil
		}
		return errors.New("nothing was erased")
	case <-ctx.Done():
		return ctx.Err()
	}
}

const mostTrashDays = 36500

func trashDaysFlag(command *cobra.Command) *int {
	return command.Flags().Int("trash-days", 30,
		"`number` of days for which deleted data can be restored; 0: delete permanently")
}

func checkTrashDays(days int) error {
	if days < 0 || days > mostTrashDays {
		return misused("--trash-days is %d; give 0 to %d days", days, mostTrashDays)
	}
	return nil
}

// keepTrash returns how long the trash keeps things, as an option of the store.
func keepTrash(days int) time.Duration {
	if days == 0 {
		return -1
	}
	return time.Duration(days) * 24 * time.Hour
}
