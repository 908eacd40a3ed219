package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/embedders/cohere"
	"github.com/souvenir-ai/souvenir/embedders/gemini"
	"github.com/souvenir-ai/souvenir/embedders/ollama"
	"github.com/souvenir-ai/souvenir/embedders/openai"
	"github.com/souvenir-ai/souvenir/embedders/voyage"
)

// embedderFlags choose the embedder.
type embedderFlags struct {
	name, model, url *string
	dimensions       *int
	key              *secret
	flags            *pflag.FlagSet
}

const builtinEmbedder = "builtin"

var embedderNames = []string{builtinEmbedder, "cohere", "gemini", "ollama", "openai", "voyage"}

func newEmbedderFlags(command *cobra.Command) embedderFlags {
	flags := command.Flags()
	f := embedderFlags{
		name: flags.String("embedder", "",
			"the `embedder`, which turns texts into vectors: "+strings.Join(embedderNames, ", ")+" (default builtin)"),
		model:      flags.String("embedder-model", "", "the `name` of the embedder's model (default: that of its service)"),
		url:        flags.String("embedder-url", "", "the `url` of the embedder's service (default: its public API)"),
		dimensions: flags.Int("embedder-dimensions", 0, "the `number` of dimensions, for unknown models"),
		key:        secretFlag(command, "embedder-key", "key of the embedder's service"),
		flags:      flags,
	}
	_ = command.RegisterFlagCompletionFunc("embedder",
		cobra.FixedCompletions(embedderNames, cobra.ShellCompDirectiveNoFileComp))
	return f
}

// embedder returns the embedder from the flags; nil if none is chosen.
func (f embedderFlags) embedder() (souvenir.Embedder, error) {
	key, err := f.key.read()
	if err != nil {
		return nil, err
	}
	if *f.name == "" || *f.name == builtinEmbedder {
		if *f.model != "" || *f.url != "" || *f.dimensions != 0 || key != "" {
			return nil, misused("the flags --embedder-... need --embedder; give one of %s",
				strings.Join(embedderNames[1:], ", "))
		}
		if *f.name == "" {
			return nil, nil
		}
		return souvenir.Builtin(), nil
	}
	if !slices.Contains(embedderNames, *f.name) {
		return nil, misused("--embedder is %q; give one of %s", *f.name, strings.Join(embedderNames, ", "))
	}
	var e souvenir.Embedder
	switch *f.name {
	case "cohere":
		e, err = cohere.New(cohere.Options{Key: key, Model: *f.model, Dimensions: *f.dimensions, BaseURL: *f.url})
	case "gemini":
		e, err = gemini.New(gemini.Options{Key: key, Model: *f.model, Dimensions: *f.dimensions, BaseURL: *f.url})
	case "ollama":
		e, err = ollama.New(ollama.Options{Key: key, Model: *f.model, Dimensions: *f.dimensions, BaseURL: *f.url})
	case "openai":
		e, err = openai.New(openai.Options{Key: key, Model: *f.model, Dimensions: *f.dimensions, BaseURL: *f.url})
	case "voyage":
		e, err = voyage.New(voyage.Options{Key: key, Model: *f.model, Dimensions: *f.dimensions, BaseURL: *f.url})
	}
	if err != nil {
		return nil, misused("--embedder: %s", inEmbedderFlags.Replace(err.Error()))
	}
	return e, nil
}

// inEmbedderFlags replaces the names of options in an embedder's error with those of the flags.
var inEmbedderFlags = strings.NewReplacer("Model is", "--embedder-model is",
	"Dimensions is", "--embedder-dimensions is", "BaseURL ", "--embedder-url ",
	"Key is empty", "--embedder-key-file is missing", "Key has", "--embedder-key has",
	"as Key", "with --embedder-key-file")
