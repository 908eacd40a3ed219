package genkit

import (
	"encoding/json"
	"errors"

	"github.com/firebase/genkit/go/ai"
	kit "github.com/firebase/genkit/go/genkit"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/tools"
)

// ToolOptions configure [DocStore.DefineTools]. Nil means the zero value.
type ToolOptions struct {
	// Only names the tools to define, as in tools.List. None means all.
	Only []string

	// Prefix is put before the names of the tools, such as souvenir_.
	Prefix string

	// Tools limits what calls may do, and reports them. Nil means neither.
	Tools *tools.Options
}

// DefineTools defines Souvenir's tools, for ai.WithTools. A name in Only that is unknown, or one that is defined
// already, is souvenir.ErrInvalid; then none is defined. A failed call answers {"error": "..."}, so that the model can
// correct it.
func (d *DocStore) DefineTools(g *kit.Genkit, options *ToolOptions) ([]ai.ToolRef, error) {
	var o ToolOptions
	if options != nil {
		o = *options
	}
	chosen, err := tools.Choose(tools.Choice{Only: o.Only, Prefix: o.Prefix, ReadOnly: o.Tools != nil && o.Tools.ReadOnly})
	if err != nil {
		return nil, err
	}
	for _, t := range chosen {
		if kit.LookupTool(g, t.Alias) != nil {
			return nil, &souvenir.Error{Kind: souvenir.KindInvalid,
				Message: "a tool " + t.Alias + " is already defined; set ToolOptions.Prefix"}
		}
	}
	var defined []ai.ToolRef
	for _, t := range chosen {
		var schema map[string]any
		if err := json.Unmarshal(t.InputSchema, &schema); err != nil {
			return nil, err
		}
		call := func(ctx *ai.ToolContext, input any) (map[string]any, error) { return d.call(ctx, o, t.Name, input) }
		defined = append(defined, kit.DefineTool(g, t.Alias, t.Description, call, ai.WithInputSchema(schema)))
	}
	return defined, nil
}

// call calls a tool for the view of the call.
func (d *DocStore) call(ctx *ai.ToolContext, o ToolOptions, name string, input any) (map[string]any, error) {
	store, err := d.config.View(ctx)
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(input)
	if err != nil {
		return nil, err
	}
	result, err := tools.New(store, o.Tools).Call(ctx, name, encoded)
	var known *souvenir.Error
	if errors.As(err, &known) {
		return map[string]any{"error": known.Message}, nil
	}
	if err != nil {
		return nil, err
	}
	if encoded, err = json.Marshal(result); err != nil {
		return nil, err
	}
	var object map[string]any
	err = json.Unmarshal(encoded, &object)
	return object, err
}
