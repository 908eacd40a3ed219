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
		"`how` to treat API keys, tokens and private keys in new content: off (store them), flag (mark the memory), "+
			"mask (replace them), refuse (reject the call)")
	_ = command.RegisterFlagCompletionFunc("secrets",
		cobra.FixedCompletions(modes, cobra.ShellCompDirectiveNoFileComp))
	return flag
}

// secretHooks returns the hooks for a value of --secrets.
func secretHooks(mode string) ([]souvenir.Hooks, error) {
	finder, err := secrets.New(secrets.Mode(mode))
	if err != nil {
		return nil, misused("--secrets is %q; give off, flag, mask or refuse", mode)
	}
	if mode == string(secrets.Off) {
		return nil, nil
	}
	return []souvenir.Hooks{finder.Hooks()}, nil
}
