package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// printedInvitation is the output of --json.
type printedInvitation struct {
	souvenir.Invitation
	Link string `json:"link"`
}

func (c *cli) userInvite() *cobra.Command {
	command := &cobra.Command{
		Use:   "invite [flags]",
		Short: "Print a link to create an account",
		Long: `Prints a link to a page where a new user chooses a name and a password. The link works once, and for
--valid-for; anyone who has it can use it. A server must be running on the file, at --public-url.

Admins can do the same on the page "Invitations", where they can also revoke invitations.`,
		Example: `  souvenir user invite
  souvenir user invite --public-url https://memory.example.com --note "Ben, at home" --email ben@example.com`,
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	flags := command.Flags()
	publicURL := flags.String("public-url", "http://"+defaultListen, "`url` where people reach the server")
	roles := newRoleFlags(command)
	email := flags.String("email", "", "the user's e-mail `address`; nothing is sent to it")
	note := flags.String("note", "", "`text` to recognize the invitation by")
	validFor := flags.Duration("valid-for", 7*24*time.Hour, "`duration` for which the link works, such as 48h")
	return c.command(command, func(ctx context.Context, _ []string) error {
		if err := server.CheckPublicURL(*publicURL); err != nil {
			return misused("--public-url: %v", err)
		}
		if *validFor <= 0 {
			return misused("--valid-for is %s; give a duration such as 48h", *validFor)
		}
		role, err := roles.chosen()
		if err != nil {
			return err
		}
		n := souvenir.NewInvitation{Email: *email, Note: *note, Role: role, ExpiresAt: time.Now().Add(*validFor)}
		return withStore(ctx, *db, forWriting, func(store *souvenir.Store) error {
			added, err := store.Accounts().AddInvitation(ctx, n)
			if err != nil {
				return err
			}
			link := strings.TrimSuffix(*publicURL, "/") + server.InvitePath(added.Value)
			if *asJSON {
				return printJSON(&c.out, printedInvitation{added.Invitation, link})
			}
			fmt.Fprintln(&c.out, link)
			return nil
		})
	})
}
