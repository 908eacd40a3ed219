package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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

// finderOf returns the finder of a value of --secrets.
func finderOf(mode string) (*secrets.Finder, error) {
	finder, err := secrets.New(secrets.Mode(mode))
	if err != nil {
		return nil, misused("--secrets is %q; give off, flag, mask or refuse", mode)
	}
	return finder, nil
}

// treatSecrets makes a store treat secrets as a value of --secrets says.
func treatSecrets(o *souvenir.Options, mode string) error {
	finder, err := finderOf(mode)
	if err == nil && mode != string(secrets.Off) {
		o.Hooks = append([]souvenir.Hooks{finder.Hooks()}, o.Hooks...)
		o.Documents = finder.Documents(o.Documents)
	}
	return err
}

// warnOfSecrets prints how many imported items have secrets, by rule, and how they were treated.
func (c *cli) warnOfSecrets(found map[string]int, mode string) {
	var rules []string
	for _, rule := range slices.Sorted(maps.Keys(found)) {
		rules = append(rules, fmt.Sprintf("%s (%d)", rule, found[rule]))
	}
	if len(rules) > 0 {
		c.warn("items with possible secrets were %s: %s", treated(mode), strings.Join(rules, ", "))
	}
}

// treated returns the past participle of a value of --secrets.
func treated(mode string) string {
	return map[secrets.Mode]string{secrets.Flag: "flagged", secrets.Mask: "masked",
		secrets.Refuse: "skipped"}[secrets.Mode(mode)]
}
