package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
)

func (c *cli) userCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "user", GroupID: groupServer,
		Short: "Add, invite, list, change, disable and delete users",
		Long: `Users are the people and programs with their own memories in the store. Clients use a token of one
of them (see "souvenir token"); everything that they store belongs to that user. These commands work
whether or not a server is running on the file.`,
	}, c.userAdd(), c.userInvite(), c.userList(), c.userSwitch("disable", true), c.userSwitch("enable", false),
		c.userPassword(), c.userUpdate(), c.userDelete())
}

func (c *cli) userAdd() *cobra.Command {
	command := &cobra.Command{
		Use:   "add NAME [flags]",
		Short: "Add a user",
		Long: `Adds an account, and creates the store's file if it does not exist. The password has 8 characters or
more; on a terminal the command asks for it. A user without a password (--no-password) cannot sign
in with one, but tokens work.

Memories that a program stored without a user belong to the user "local"; "--id local" creates the
account of that user.`,
		Example: `  souvenir user add anna --admin
  printf %s "$PASSWORD" | souvenir user add ben --db souvenir.db --password-stdin
  souvenir user add builder --no-password
  souvenir user add anna --id local`,
		Args: wants(1, 1, "NAME"),
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	roles := newRoleFlags(command)
	email := command.Flags().String("email", "", "an e-mail `address`")
	id := command.Flags().String("id", "",
		"the user's permanent `id`, for a user with memories but no account yet; otherwise a new one is generated")
	password := newPasswordFlags(command)
	return c.command(command, func(ctx context.Context, args []string) error {
		role, err := roles.chosen()
		if err != nil {
			return err
		}
		secret, err := c.password(ctx, password, "Password for "+args[0])
		if err != nil {
			return err
		}
		n := souvenir.NewUser{ID: *id, Name: args[0], Email: *email, Password: secret, Role: role}
		return withStore(ctx, *db, forMaking, func(store *souvenir.Store) error {
			user, err := store.Accounts().AddUser(ctx, n)
			if err != nil {
				return err
			}
			if *asJSON {
				return printJSON(&c.out, user)
			}
			fmt.Fprintf(&c.out, "added user %s (%s)\n", plain(user.Name), user.Role)
			return nil
		})
	})
}

func (c *cli) userList() *cobra.Command {
	command := &cobra.Command{
		Use:     "list [flags]",
		Short:   "List the users",
		Long:    `Lists all users with an account or data in the store, by name; users without an account come last.`,
		Example: "  souvenir user list\n  souvenir user list --json",
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	return c.command(command, func(ctx context.Context, _ []string) error {
		return withStore(ctx, *db, forReading, func(store *souvenir.Store) error {
			var users []souvenir.User
			for u, err := range store.Accounts().Users(ctx) {
				if err != nil {
					return err
				}
				users = append(users, u)
			}
			if *asJSON {
				return printJSON(&c.out, jsonobject.List(users))
			}
			if len(users) == 0 {
				return c.none("there are no users; \"souvenir user add\" creates one")
			}
			var rows [][]string
			for _, u := range users {
				state := "active"
				switch {
				case u.Disabled:
					state = "disabled"
				case u.Name == "":
					state = "no account"
				}
				rows = append(rows, []string{dash(u.Name), string(u.Role), state, dash(u.Email), moment(u.CreatedAt), u.ID})
			}
			return table(&c.out, []string{"NAME", "ROLE", "STATE", "EMAIL", "ADDED", "ID"}, rows)
		})
	})
}

func (c *cli) userSwitch(verb string, disabled bool) *cobra.Command {
	command := &cobra.Command{
		Use:   verb + " NAME [flags]",
		Short: "Enable a disabled user",
		Long: `Lets a disabled user sign in again. The user's old tokens stay revoked; "souvenir token add" creates
new ones.`,
		Example: "  souvenir user " + verb + " ben",
		Args:    wants(1, 1, "NAME"),
	}
	if disabled {
		command.Short = "Disable a user and keep the memories"
		command.Long = `Rejects every further request of a user, and revokes the user's tokens permanently. The memories stay.
The last admin cannot be disabled.`
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	return c.command(command, func(ctx context.Context, args []string) error {
		return withStore(ctx, *db, forWriting, func(store *souvenir.Store) error {
			user, err := store.Accounts().UpdateUser(ctx, args[0], souvenir.UserUpdate{Disabled: &disabled})
			if err != nil {
				return err
			}
			return c.printResult(*asJSON, user, "%sd user %s", verb, plain(user.Name))
		})
	})
}

func (c *cli) userUpdate() *cobra.Command {
	command := &cobra.Command{
		Use:   "update NAME [flags]",
		Short: "Change a user's name, e-mail address or role",
		Long: `Changes the details of a user: the name to sign in with, the e-mail address, or the role. Details
that are not given do not change. Memories and tokens stay with the user. The last admin stays an admin.`,
		Example: "  souvenir user update ben --role admin\n  souvenir user update ben --name benjamin --email " +
			"ben@example.com",
		Args: wants(1, 1, "NAME"),
	}
	db, asJSON, roles := dbFlag(command), jsonFlag(command), newRoleFlags(command)
	name := command.Flags().String("name", "", "the new `name`")
	email := command.Flags().String("email", "", "the new `address`; - removes it")
	return c.command(command, func(ctx context.Context, args []string) error {
		role, err := roles.chosen()
		if err != nil {
			return err
		}
		var u souvenir.UserUpdate
		if role != "" {
			u.Role = &role
		}
		if *name != "" {
			u.Name = name
		}
		if *email == "-" {
			u.Email = new(string)
		} else if *email != "" {
			u.Email = email
		}
		if u == (souvenir.UserUpdate{}) {
			return misused("there is nothing to change; give --name, --email, --role or --admin")
		}
		return withStore(ctx, *db, forWriting, func(store *souvenir.Store) error {
			user, err := store.Accounts().UpdateUser(ctx, args[0], u)
			if err != nil {
				return err
			}
			return c.printResult(*asJSON, user, "changed user %s (%s)", plain(user.Name), user.Role)
		})
	})
}

func (c *cli) userPassword() *cobra.Command {
	command := &cobra.Command{
		Use:   "passwd NAME [flags]",
		Short: "Set a user's password",
		Long: `Sets a user's password without asking for the old one. On a terminal the command asks for the new
one. --no-password removes it: the user can then no longer sign in with one. Because others may know
the old one, the user is signed out everywhere and has to connect applications again; MCP tokens
stay active, unless --revoke-tokens revokes them.`,
		Example: "  souvenir user passwd anna\n  souvenir user passwd anna --password-file new-password.txt --revoke-tokens",
		Args:    wants(1, 1, "NAME"),
	}
	db, password, asJSON := dbFlag(command), newPasswordFlags(command), jsonFlag(command)
	revoke := command.Flags().Bool("revoke-tokens", false, "revoke all MCP tokens of the user, too")
	return c.command(command, func(ctx context.Context, args []string) error {
		secret, err := c.password(ctx, password, "New password for "+args[0])
		if err != nil {
			return err
		}
		return withStore(ctx, *db, forWriting, func(store *souvenir.Store) error {
			user, err := store.Accounts().UpdateUser(ctx, args[0], souvenir.UserUpdate{Password: &secret, EndTokens: *revoke})
			if err != nil {
				return err
			}
			tokens, err := store.As(souvenir.Access{User: user.ID}).Accounts().Tokens(ctx)
			if err != nil {
				return err
			}
			left := ""
			if len(tokens) > 0 {
				left = fmt.Sprintf("; %d MCP tokens still work, and --revoke-tokens revokes them", len(tokens))
			}
			return c.printResult(*asJSON, user, "changed the password of %s, who is signed out everywhere%s",
				plain(user.Name), left)
		})
	})
}

func (c *cli) userDelete() *cobra.Command {
	command := &cobra.Command{
		Use:   "delete NAME [flags]",
		Short: "Delete a user",
		Long: `Deletes an account with its tokens, preferences and memberships. A user who has memories, projects
or files is deleted only with --with-memories, which also deletes these, and everything that others
have stored in the user's projects. This cannot be undone; "souvenir backup" first, or "souvenir user disable"
instead.

--receipt writes a signed receipt of what was deleted, which "souvenir receipt verify" checks.`,
		Example: "  souvenir user delete ben\n  souvenir user delete ben --with-memories --receipt ben.receipt.json",
		Args:    wants(1, 1, "NAME"),
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	all := command.Flags().Bool("with-memories", false, "also delete the user's memories, collections, projects and files")
	proof := command.Flags().String("receipt", "", "new `file` for the receipt")
	limits(command, "receipt")
	return c.command(command, func(ctx context.Context, args []string) error {
		options := &souvenir.DeletionOptions{WithMemories: *all}
		if _, err := proving(*proof, &options.Receipt); err != nil {
			return err
		}
		return withStore(ctx, *db, forWriting, func(store *souvenir.Store) error {
			user, err := store.Accounts().GetUser(ctx, args[0])
			if err != nil {
				return err
			}
			end := c.busy("deleting")
			err = store.Accounts().DeleteUser(ctx, user.ID, options)
			end()
			if errors.Is(err, souvenir.ErrConflict) && !*all {
				return fmt.Errorf("%w (--with-memories)", err)
			}
			if err == nil && *proof != "" {
				err = c.writeReceipt(*proof, *options.Receipt)
			}
			if err != nil {
				return err
			}
			return c.printResult(*asJSON, user, "deleted user %s", plain(nameOf(user)))
		})
	})
}
