package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir/extract"
)

// modelFlags choose the language model of a command.
type modelFlags struct {
	name, api, url, guidance *string
	key                      *secret
}

// modelAPIs are the APIs by which models are called.
var modelAPIs = []string{"chat", "anthropic"}

func newModelFlags(command *cobra.Command) modelFlags {
	flags := command.Flags()
	f := modelFlags{
		name: flags.String("model", "", "the `name` of the model"),
		api: flags.String("model-api", modelAPIs[0],
			"the `interface` of its server: chat (/chat/completions: OpenAI, vLLM, llama.cpp, Ollama, LM Studio) or anthropic"),
		url: flags.String("model-url", "",
			"the `url` of its server, such as http://127.0.0.1:11434/v1; if empty, OpenAI's or Anthropic's"),
		key:      secretFlag(command, "model-key", "key of the model's server"),
		guidance: flags.String("guidance", "", "a `text` for the model: what to look for, or in which language to write"),
	}
	_ = command.RegisterFlagCompletionFunc("model-api",
		cobra.FixedCompletions(modelAPIs, cobra.ShellCompDirectiveNoFileComp))
	return f
}

// model returns the model from the flags; nil if none is named.
func (f modelFlags) model() (*extract.Model, error) {
	key, err := f.key.read()
	switch {
	case err != nil:
		return nil, err
	case !slices.Contains(modelAPIs, *f.api):
		return nil, misused("--model-api is %q; give chat or anthropic", *f.api)
	case *f.name == "" && (*f.url != "" || key != "" || *f.guidance != ""):
		return nil, misused("--model is missing; give the name of the model")
	case *f.name == "":
		return nil, nil
	}
	ask := extract.Chat
	if *f.api == "anthropic" {
		ask = extract.Anthropic
	}
	m, err := ask(extract.ModelOptions{Model: *f.name, BaseURL: *f.url, Key: key, Guidance: *f.guidance})
	if err != nil {
		return nil, misused("%s", inModelFlags.Replace(err.Error()))
	}
	return m, nil
}

// inModelFlags replaces the names of options in a model's error with those of the flags.
var inModelFlags = strings.NewReplacer("extract.Chat: ", "", "extract.Anthropic: ", "",
	"Guidance has", "--guidance has",
	"BaseURL ", "--model-url ", "Key is empty", "--model-key-file is missing",
	"Key has", "--model-key has", "as Key", "with --model-key-file")
