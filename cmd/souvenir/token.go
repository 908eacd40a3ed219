package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
)

func (c *cli) tokenCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "token", GroupID: groupServer,
		Short: "Add, list and revoke the tokens of clients",
		Long: `A token lets a program act for one user. It begins with mcp_ and is sent as "Authorization: Bearer
TOKEN". The store keeps only a hash: a token is printed only once, when it is added. These commands
work whether or not a server is running on the file.`,
	}, c.tokenAdd(), c.tokenList(), c.tokenDelete())
}

func (c *cli) tokenAdd() *cobra.Command {
	command := &cobra.Command{
		Use:   "add --name LABEL [flags]",
		Short: "Add a token and print it",
		Long: `Adds a token and prints it, as the only line on standard output. Protect it like a password; it is
printed only once.

Without --scope it can do everything that the user can with memories and files. Scopes: memory:read,
memory:write (which includes reading), files:read, files:write, account (manage the user's tokens,
OAuth clients and the members of projects), and admin, for admins only.`,
		Example: `  souvenir token add --user anna --name laptop
  TOKEN=$(souvenir token add --db souvenir.db --user anna --name ci --expires-in 90d)
  souvenir token add --user anna --name reader --scope memory:read --project atlas`,
	}
	db, user := dbFlag(command), userFlag(command, "the token's owner")
	name := command.Flags().String("name", "",
		"a `label` to recognize it by, such as its device or program (required)")
	scopes := command.Flags().StringSlice("scope", nil, "what it can do: a `scope`, or several, separated by commas")
	projects := command.Flags().StringSlice("project", nil,
		"limit it to a `project`, by name or id, or to several, separated by commas")
	expires := command.Flags().String("expires-in", "",
		"the `time` after which it expires, such as 12h, 90d or 1y; if omitted, never")
	asJSON := jsonFlag(command)
	limits(command, "scope", "project", "expires-in")
	_ = command.RegisterFlagCompletionFunc("scope",
		cobra.FixedCompletions(scopeNames(), cobra.ShellCompDirectiveNoFileComp))
	return c.command(command, func(ctx context.Context, _ []string) error {
		if *name == "" {
			return misused("--name is missing; give a label to recognize the token by")
		}
		n := souvenir.NewToken{Name: *name}
		for _, scope := range *scopes {
			n.Scopes = append(n.Scopes, souvenir.Scope(strings.TrimSpace(scope)))
		}
		var err error
		if n.ExpiresIn, err = parseAge("--expires-in", *expires); err != nil {
			return err
		}
		return withStore(ctx, *db, forWriting, func(store *souvenir.Store) error {
			owner, err := chooseUser(ctx, store, *user)
			if err != nil {
				return err
			}
			n.User = owner.ID
			for _, named := range *projects {
				project, err := projectRef(ctx, store.As(souvenir.Access{User: owner.ID}), named)
				if err != nil {
					return err
				}
				n.Projects = append(n.Projects, project)
			}
			added, err := store.Accounts().AddToken(ctx, n)
			if err != nil {
				return renamed(err, "scopes", "--scope")
			}
			if *asJSON {
				return printJSON(&c.out, added)
			}
			fmt.Fprintln(&c.out, added.Value)
			return nil
		})
	})
}

func scopeNames() []string {
	var names []string
	for _, scope := range souvenir.Scopes() {
		names = append(names, string(scope))
	}
	return names
}

// ages are the units of time besides those of Go's durations.
var ages = map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour, "y": 365 * 24 * time.Hour}

// parseAge parses a length of time: a Go duration, or a whole number of days (d), weeks (w) or years (y).
func parseAge(flag, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	if unit, ok := ages[text[len(text)-1:]]; ok {
		if n, err := strconv.Atoi(text[:len(text)-1]); err == nil && n > 0 && time.Duration(n) < time.Duration(1<<63-1)/unit {
			return time.Duration(n) * unit, nil
		}
	} else if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return d, nil
	}
	return 0, misused("%s is %q; give a time such as 30m, 12h, 90d, 8w or 1y", flag, text)
}

func (c *cli) tokenList() *cobra.Command {
	command := &cobra.Command{
		Use:     "list [flags]",
		Short:   "List a user's tokens",
		Long:    `Lists the tokens of a user, newest first, each with its first characters.`,
		Example: "  souvenir token list --user anna\n  souvenir token list --user anna --json",
	}
	db, user, asJSON := dbFlag(command), userFlag(command, "whose"), jsonFlag(command)
	return c.command(command, func(ctx context.Context, _ []string) error {
		return withStore(ctx, *db, forReading, func(store *souvenir.Store) error {
			owner, err := chooseUser(ctx, store, *user)
			if err != nil {
				return err
			}
			tokens, err := store.As(souvenir.Access{User: owner.ID}).Accounts().Tokens(ctx)
			if err != nil {
				return err
			}
			if *asJSON {
				return printJSON(&c.out, jsonobject.List(tokens))
			}
			if len(tokens) == 0 {
				return c.none("%s has no tokens; \"souvenir token add\" creates one", plain(nameOf(owner)))
			}
			var rows [][]string
			for _, t := range tokens {
				var scopes []string
				for _, scope := range t.Scopes {
					scopes = append(scopes, string(scope))
				}
				projects := "all"
				if t.Projects != nil {
					projects = strings.Join(t.Projects, " ")
				}
				rows = append(rows, []string{t.Name, t.Prefix + "…", strings.Join(scopes, " "), projects,
					moment(t.CreatedAt), moment(t.LastUsedAt), moment(t.ExpiresAt), t.ID})
			}
			return table(&c.out, []string{"NAME", "TOKEN", "SCOPES", "PROJECTS", "ADDED", "LAST USED", "EXPIRES", "ID"}, rows)
		})
	})
}

func (c *cli) tokenDelete() *cobra.Command {
	command := &cobra.Command{
		Use:   "delete ID [flags]",
		Short: "Revoke a token",
		Long: `Revokes a token at once: the next request with it is rejected. ID is the token's id, or its first
characters, as listed by "souvenir token list", if no other token of the user begins with them.`,
		Example: "  souvenir token delete mcp_4kXz --user anna",
		Args:    wants(1, 1, "ID"),
	}
	db, user, asJSON := dbFlag(command), userFlag(command, "whose"), jsonFlag(command)
	return c.command(command, func(ctx context.Context, args []string) error {
		return withStore(ctx, *db, forWriting, func(store *souvenir.Store) error {
			owner, err := chooseUser(ctx, store, *user)
			if err != nil {
				return err
			}
			view := store.As(souvenir.Access{User: owner.ID})
			tokens, err := view.Accounts().Tokens(ctx)
			if err != nil {
				return err
			}
			token, err := findToken(tokens, args[0], nameOf(owner))
			if err != nil {
				return err
			}
			if err := view.Accounts().RevokeToken(ctx, token.ID); err != nil {
				return err
			}
			return c.printResult(*asJSON, token, "revoked token %s (%s…)", plain(token.Name), token.Prefix)
		})
	})
}

// findToken finds a token by its id, or by its displayed beginning.
func findToken(tokens []souvenir.Token, named, owner string) (souvenir.Token, error) {
	var found []souvenir.Token
	for _, t := range tokens {
		if t.ID == named {
			return t, nil
		}
		if t.Prefix == strings.TrimSuffix(named, "…") {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 0:
		return souvenir.Token{}, fmt.Errorf(
			"%s has no token %q; give the id or the first characters of one in \"souvenir token list\"", plain(owner), named)
	case 1:
		return found[0], nil
	}
	return souvenir.Token{}, fmt.Errorf("%d tokens of %s begin with %q; give the id of one", len(found), plain(owner),
		named)
}
