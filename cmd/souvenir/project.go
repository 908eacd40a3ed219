package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
)

func (c *cli) projectCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "project", GroupID: groupServer,
		Short: "Manage the members of projects",
		Long: `Manages the members of projects. These commands are for the operator of the store: they add members
at once. Users invite each other in the dashboard or over REST, and see nothing of a project until
they accept. The commands work whether or not a server is running on the file.`,
	}, group(&cobra.Command{
		Use:   "member",
		Short: "Add, list and remove the members of a project",
		Long:  `Adds, lists and removes the members of a project.`,
	}, c.memberAdd(), c.memberList(), c.memberRemove()))
}

// ownedProject finds a user's project by the id or name given to a command.
func ownedProject(ctx context.Context, store *souvenir.Store, ownerName, named string) (view *souvenir.Store,
	found souvenir.Project, err error) {
	owner, err := chooseUser(ctx, store, ownerName)
	if err != nil {
		var wrong usageError
		if errors.As(err, &wrong) {
			err = misused("%s", strings.Replace(wrong.message, "--user", "--owner", 1))
		}
		return nil, found, renamed(err, "user", "--owner")
	}
	view = store.As(souvenir.Access{User: owner.ID})
	found, err = view.GetProject(ctx, souvenir.ProjectRef{ID: named})
	if err != nil {
		found, err = view.GetProject(ctx, souvenir.ProjectRef{Name: named})
	}
	if err == nil && found.Owner != owner.ID {
		return nil, found, fmt.Errorf("PROJECT %q belongs to %s, not to %s; give the owner with --owner", named,
			plain(cmp.Or(found.OwnerName, found.Owner)), plain(nameOf(owner)))
	}
	if err != nil {
		return nil, found, fmt.Errorf("%s has no project %q; give the id or the name of one", plain(nameOf(owner)), named)
	}
	return view, found, nil
}

func ownerFlag(command *cobra.Command) *string {
	return command.Flags().String("owner", "",
		"the owner of the project, by `name` or id; needed only when the store has several users")
}

func (c *cli) memberAdd() *cobra.Command {
	command := &cobra.Command{
		Use:   "add PROJECT USER [flags]",
		Short: "Make a user a member of a project",
		Long: `Makes a user a member of a project, at once and without an invitation. PROJECT is the id or the name
of a project of --owner, USER the name or id of a user.`,
		Example: "  souvenir project member add atlas ben --role writer --owner anna",
		Args:    wants(2, 2, "PROJECT", "USER"),
	}
	db, owner, asJSON := dbFlag(command), ownerFlag(command), jsonFlag(command)
	role := command.Flags().String("role", string(souvenir.MemberReader),
		"the member's `role`: reader, writer or owner")
	_ = command.RegisterFlagCompletionFunc("role",
		cobra.FixedCompletions([]string{"reader", "writer", "owner"}, cobra.ShellCompDirectiveNoFileComp))
	return c.command(command, func(ctx context.Context, args []string) error {
		return withStore(ctx, *db, forWriting, func(store *souvenir.Store) error {
			_, project, err := ownedProject(ctx, store, *owner, args[0])
			if err != nil {
				return err
			}
			added, err := store.AddMember(ctx, souvenir.NewMember{
				Project: souvenir.ProjectRef{ID: project.Owner + "/" + project.ID}, User: args[1], Role: souvenir.MemberRole(*role),
			})
			if err != nil {
				return renamed(renamed(err, "role", "--role"), "user", "USER")
			}
			return c.printResult(*asJSON, added, "%s is a member of %s (%s)", plain(cmp.Or(added.Name, added.User)),
				plain(project.Name), added.Role)
		})
	})
}

func (c *cli) memberList() *cobra.Command {
	command := &cobra.Command{
		Use:     "list PROJECT [flags]",
		Short:   "List the members of a project",
		Long:    `Lists the members of a project, owner first, then the pending invitations.`,
		Example: "  souvenir project member list atlas --owner anna",
		Args:    wants(1, 1, "PROJECT"),
	}
	db, owner, asJSON := dbFlag(command), ownerFlag(command), jsonFlag(command)
	return c.command(command, func(ctx context.Context, args []string) error {
		return withStore(ctx, *db, forReading, func(store *souvenir.Store) error {
			view, project, err := ownedProject(ctx, store, *owner, args[0])
			if err != nil {
				return err
			}
			ref := souvenir.ProjectRef{ID: project.Owner + "/" + project.ID}
			members, err := view.Members(ctx, ref)
			if err != nil {
				return err
			}
			invited, err := view.InvitedMembers(ctx, ref)
			if err != nil {
				return err
			}
			if *asJSON {
				for _, i := range invited {
					members = append(members,
						souvenir.Member{User: i.User, Role: i.Role, Status: souvenir.MemberInvited, CreatedAt: i.CreatedAt})
				}
				return printJSON(&c.out, members)
			}
			var rows [][]string
			for _, m := range members {
				rows = append(rows, []string{cmp.Or(m.Name, m.User), string(m.Role), string(m.Status), moment(m.CreatedAt), m.User})
			}
			for _, i := range invited {
				rows = append(rows, []string{i.User, string(i.Role), string(souvenir.MemberInvited), moment(i.CreatedAt), ""})
			}
			return table(&c.out, []string{"NAME", "ROLE", "STATUS", "SINCE", "ID"}, rows)
		})
	})
}

func (c *cli) memberRemove() *cobra.Command {
	command := &cobra.Command{
		Use:   "remove PROJECT USER [flags]",
		Short: "Remove a member from a project, or withdraw an invitation",
		Long: `Removes a member from a project at once, or withdraws a pending invitation. For an invitation,
USER is the name as it was entered.`,
		Example: "  souvenir project member remove atlas ben --owner anna",
		Args:    wants(2, 2, "PROJECT", "USER"),
	}
	db, owner, asJSON := dbFlag(command), ownerFlag(command), jsonFlag(command)
	return c.command(command, func(ctx context.Context, args []string) error {
		return withStore(ctx, *db, forWriting, func(store *souvenir.Store) error {
			view, project, err := ownedProject(ctx, store, *owner, args[0])
			if err != nil {
				return err
			}
			ref := souvenir.ProjectRef{ID: project.Owner + "/" + project.ID}
			if err := view.DeleteMember(ctx, ref, args[1]); err != nil {
				return renamed(err, "user", "USER")
			}
			return c.printResult(*asJSON, map[string]string{"project_id": project.ID, "user": args[1]}, "removed %s from %s",
				plain(args[1]), plain(project.Name))
		})
	})
}
