package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
)

func (c *cli) clientCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "client", GroupID: groupServer,
		Short: "Add, list and deactivate OAuth clients",
		Long: `An OAuth client is an application that asks users for access, instead of using a token. Many
register themselves and need no command. These commands work whether or not a server is running
on the file.`,
	}, c.clientAdd(), c.clientList(), c.clientRegenerate(), c.clientDeactivate())
}

func (c *cli) clientAdd() *cobra.Command {
	command := &cobra.Command{
		Use:   "add --redirect-uri URI [flags]",
		Short: "Add an OAuth client and print its id and secret",
		Long: `Adds an OAuth client of a user and prints its id and its secret. The secret is stored as a hash and
is printed only once. The id and the secret are generated unless given.

The redirect URIs are where users return to the application, exactly as it sends them: https, http
on this machine only (127.0.0.1, [::1], localhost; any port), or a scheme of the application's own.
An application that cannot keep a secret, such as one that runs on its users' machines, gets none
(--public).`,
		Example: `  souvenir client add --user anna --name "Team wiki" --redirect-uri https://wiki.example.com/oauth/callback
  souvenir client add --user anna --id notes --public --redirect-uri http://127.0.0.1/callback --json`,
	}
	db, user, asJSON := dbFlag(command), userFlag(command, "the client's owner"), jsonFlag(command)
	redirects := command.Flags().StringArray("redirect-uri", nil,
		"a redirect `uri`; required, and can be repeated")
	name := command.Flags().String("name", "", "the `name` shown to people; if empty, the id")
	id := command.Flags().String("id", "", "the client's `id`, which the application sends; if empty, a generated one")
	public := command.Flags().Bool("public", false, "create a public client, without a secret")
	given := secretFlag(command, "client-secret", "the client's secret")
	return c.command(command, func(ctx context.Context, _ []string) error {
		secret, err := given.read()
		switch {
		case err != nil:
			return err
		case len(*redirects) == 0:
			return misused("--redirect-uri is missing; give the address to which users return in the application")
		case *public && secret != "":
			return misused("both --public and a secret are given; give one of them")
		}
		n := souvenir.NewClient{ID: *id, Secret: secret, Name: *name, RedirectURIs: *redirects}
		if *public {
			n.AuthMethod = souvenir.AuthNone
		}
		return withStore(ctx, *db, forWriting, func(store *souvenir.Store) error {
			owner, err := chooseUser(ctx, store, *user)
			if err != nil {
				return err
			}
			added, err := store.As(souvenir.Access{User: owner.ID}).Accounts().AddClient(ctx, n)
			switch {
			case err != nil:
				return renamed(renamed(err, "client_name", "--name"), "client_id", "--id")
			case *asJSON:
				return printJSON(&c.out, added)
			}
			fmt.Fprintf(&c.out, "client_id      %s\n", added.ID)
			if added.Secret != "" {
				fmt.Fprintf(&c.out, "client_secret  %s\n", added.Secret)
			}
			return nil
		})
	})
}

func (c *cli) clientList() *cobra.Command {
	command := &cobra.Command{
		Use:   "list [flags]",
		Short: "List the OAuth clients",
		Long: `Lists all OAuth clients by name: clients that users added ("admin"), that registered themselves
("registered"), and that are known by the URL of their description ("document"). With --user, only
clients that this user added.`,
		Example: "  souvenir client list\n  souvenir client list --user anna --json",
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	user := command.Flags().String("user", "", "only clients of a user, by `name` or id")
	limits(command, "user")
	return c.command(command, func(ctx context.Context, _ []string) error {
		return withStore(ctx, *db, forReading, func(store *souvenir.Store) error {
			names := map[string]string{}
			for u, err := range store.Accounts().Users(ctx) {
				if err != nil {
					return err
				}
				names[u.ID] = nameOf(u)
			}
			view := store // the whole store
			if *user != "" {
				owner, err := store.Accounts().GetUser(ctx, *user)
				if err != nil {
					return err
				}
				view = store.As(souvenir.Access{User: owner.ID})
			}
			clients, err := view.Accounts().Clients(ctx)
			if err != nil {
				return err
			}
			if *asJSON {
				return printJSON(&c.out, jsonobject.List(clients))
			}
			if len(clients) == 0 {
				return c.none("there are no OAuth clients")
			}
			var rows [][]string
			for _, x := range clients {
				state := "active"
				if !x.Active {
					state = "deactivated"
				}
				rows = append(rows, []string{dash(x.Metadata.ClientName), x.ID, string(x.Kind), state, dash(names[x.Owner]),
					moment(x.CreatedAt), strings.Join(x.Metadata.RedirectURIs, " ")})
			}
			return table(&c.out, []string{"NAME", "CLIENT ID", "KIND", "STATE", "USER", "ADDED", "REDIRECT URIS"}, rows)
		})
	})
}

func (c *cli) clientRegenerate() *cobra.Command {
	command := &cobra.Command{
		Use:   "regenerate-secret CLIENT-ID [flags]",
		Short: "Give an OAuth client a new secret",
		Long: `Gives an OAuth client a new secret and prints it, as the only line on standard output. The old one
stops working; users of the client stay signed in.`,
		Example: "  souvenir client regenerate-secret notes",
		Args:    wants(1, 1, "CLIENT-ID"),
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	return c.command(command, func(ctx context.Context, args []string) error {
		return withStore(ctx, *db, forWriting, func(store *souvenir.Store) error {
			client, err := store.Accounts().RegenerateClientSecret(ctx, args[0])
			switch {
			case err != nil:
				return err
			case *asJSON:
				return printJSON(&c.out, client)
			}
			fmt.Fprintln(&c.out, client.Secret)
			return nil
		})
	})
}

func (c *cli) clientDeactivate() *cobra.Command {
	command := &cobra.Command{
		Use:   "deactivate CLIENT-ID [flags]",
		Short: "Deactivate an OAuth client permanently",
		Long: `Deactivates an OAuth client permanently, and revokes at once all access that users granted it,
tokens included. If the application registers again, it becomes a new client.`,
		Example: "  souvenir client deactivate notes",
		Args:    wants(1, 1, "CLIENT-ID"),
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	return c.command(command, func(ctx context.Context, args []string) error {
		return withStore(ctx, *db, forWriting, func(store *souvenir.Store) error {
			if err := store.Accounts().DeactivateClient(ctx, args[0]); err != nil {
				return err
			}
			client, err := store.Accounts().GetClient(ctx, args[0])
			if err != nil {
				return err
			}
			return c.printResult(*asJSON, client, "deactivated client %s", plain(client.ID))
		})
	})
}
