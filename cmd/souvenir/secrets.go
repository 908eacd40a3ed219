package main

import (
	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/secrets"
)

// secretsFlag is --secrets.
func secretsFlag(command *cobra.Command) *string {
	modes := []string{string(secrets.Off), string(secrets.Flag), string(secrets.Mask), string(secrets.Refuse)}
	flag := command.Flags().String("secrets", string(secrets.Flag),
		"`how` to treat API keys, tokens and private keys in new content: off (store them), flag (mark them), "+
			"mask (replace them), refuse (reject the call)")
	_ = command.RegisterFlagCompletionFunc("secrets",
		cobra.FixedCompletions(modes, cobra.ShellCompDirectiveNoFileComp))
	return flag
}

// treatSecrets makes a store treat secrets as a value of --secrets says.
func treatSecrets(o *souvenir.Options, mode string) error {
	finder, err := secrets.New(secrets.Mode(mode))
	if err != nil {
		return misused("--secrets is %q; give off, flag, mask or refuse", mode)
	}
	if mode != string(secrets.Off) {
		o.Hooks = append([]souvenir.Hooks{finder.Hooks()}, o.Hooks...)
		o.Documents = finder.Documents(o.Documents)
	}
	return nil
}
