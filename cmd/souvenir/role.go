package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/souvenir-ai/souvenir"
)

// roleFlags are --role and, for short, --admin, for every command that gives a user a role.
type roleFlags struct {
	flags *pflag.FlagSet
	role  *string
	admin *bool
}

func newRoleFlags(command *cobra.Command) roleFlags {
	roles := roleNames()
	f := roleFlags{
		flags: command.Flags(),
		role:  command.Flags().String("role", "", "the `role`: "+strings.Join(roles, " or ")),
		admin: command.Flags().Bool("admin", false,
			"shorthand for --role admin: the user manages users, clients and the store as a whole"),
	}
	_ = command.RegisterFlagCompletionFunc("role", cobra.FixedCompletions(roles, cobra.ShellCompDirectiveNoFileComp))
	return f
}

func roleNames() []string { return []string{string(souvenir.RoleUser), string(souvenir.RoleAdmin)} }

// chosen returns the role that the flags give; "" for none.
func (f roleFlags) chosen() (souvenir.Role, error) {
	role := souvenir.Role(*f.role)
	if role != "" && !slices.Contains(roleNames(), *f.role) {
		return "", misused("--role is %q; give %s", *f.role, strings.Join(roleNames(), " or "))
	}
	if given(f.flags, "admin") == 0 {
		return role, nil
	}
	short := souvenir.RoleUser
	if *f.admin {
		short = souvenir.RoleAdmin
	}
	if role != "" && role != short {
		return "", misused("--role is %q and --admin is %t; give one of them", role, *f.admin)
	}
	return short, nil
}
