// Package anthropic gives a model Souvenir through Anthropic's Go SDK (github.com/anthropics/anthropic-sdk-go): the
// project's own tools, and Anthropic's memory tool with its files in a store. It is a module of its own, so that other
// programs do not depend on the SDK.
//
//	memory := anthropic.NewMemory(store, nil)
//	runner := client.Beta.Messages.NewToolRunner(anthropic.Set{memory}, params)
//
// A view of the store ([souvenir.Store.As]) decides for which user the tools work.
package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/tools"
)

// Options configure [Tools]. Nil means the zero value.
type Options struct {
	// Only names the tools to offer, as in tools.List. None means all.
	Only []string

	// Prefix is put before the names of the tools, such as souvenir_. The API requires unique names, and the tool memory
	// has the name of Anthropic's own: give a prefix to offer both.
	Prefix string

	// Tools limits what calls may do, and reports them. Nil means neither.
	Tools *tools.Options
}

// Set is a list of tools for one request. Append tools of your own.
type Set []sdk.BetaTool

// Tools returns Souvenir's tools for a store, or for a view of it. An unknown name in Only, or a Prefix that makes
// names other than 1 to 64 letters, digits, _ and -, is souvenir.ErrInvalid.
func Tools(store *souvenir.Store, options *Options) (Set, error) {
	var o Options
	if options != nil {
		o = *options
	}
	chosen, err := tools.Choose(tools.Choice{Only: o.Only, Prefix: o.Prefix, ReadOnly: o.Tools != nil && o.Tools.ReadOnly})
	if err != nil {
		return nil, err
	}
	calls := tools.New(store, o.Tools)
	set := make(Set, len(chosen))
	for i, t := range chosen {
		set[i] = &tool{calls, t}
	}
	return set, nil
}

// tool is one of Souvenir's tools.
type tool struct {
	calls *tools.Set
	tool  tools.Chosen
}

var _ sdk.BetaTool = (*tool)(nil)

func (t *tool) Name() string        { return t.tool.Alias }
func (t *tool) Description() string { return t.tool.Description }

// InputSchema keeps the order of the properties.
func (t *tool) InputSchema() sdk.BetaToolInputSchemaParam {
	var schema struct {
		Properties json.RawMessage
		Required   []string
	}
	_ = json.Unmarshal(t.tool.InputSchema, &schema) // it is an object, as tools.List writes it
	return sdk.BetaToolInputSchemaParam{Properties: schema.Properties, Required: schema.Required}
}

func (t *tool) Execute(ctx context.Context, input json.RawMessage) ([]sdk.BetaToolResultBlockParamContentUnion, error) {
	result, err := t.calls.Call(ctx, t.tool.Name, input)
	var known *souvenir.Error
	if errors.As(err, &known) {
		return nil, refusal{known.Message, err} // with the names of arguments
	}
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(result)
	if err != nil {
		return nil, err
	}
	return []sdk.BetaToolResultBlockParamContentUnion{{OfText: &sdk.BetaTextBlockParam{Text: string(encoded)}}}, nil
}

// Params returns the definitions for a request by Client.Messages.
func (s Set) Params() []sdk.ToolUnionParam {
	params := make([]sdk.ToolUnionParam, len(s))
	for i, t := range s {
		if _, ok := t.(*Memory); ok {
			params[i].OfMemoryTool20250818 = &sdk.MemoryTool20250818Param{}
			continue
		}
		schema := t.InputSchema()
		params[i].OfTool = &sdk.ToolParam{Name: t.Name(), Description: sdk.String(t.Description()),
			InputSchema: sdk.ToolInputSchemaParam{Properties: schema.Properties, Required: schema.Required,
				ExtraFields: schema.ExtraFields}}
	}
	return params
}

// BetaParams returns the definitions for a request by Client.Beta.Messages. Set Params.Tools of a tool runner to them
// when the set has the memory tool: a runner otherwise describes it as a custom tool.
func (s Set) BetaParams() []sdk.BetaToolUnionParam {
	params := make([]sdk.BetaToolUnionParam, len(s))
	for i, t := range s {
		if _, ok := t.(*Memory); ok {
			params[i].OfMemoryTool20250818 = &sdk.BetaMemoryTool20250818Param{}
			continue
		}
		params[i].OfTool = &sdk.BetaToolParam{Name: t.Name(), Description: sdk.String(t.Description()),
			InputSchema: t.InputSchema()}
	}
	return params
}

// Results carries out the calls in a message, one after the other, and returns the results for the next message of the
// user: none if the message calls no tool. A failed call is a result with is_error, from which the model can learn.
// From the results of your own tools, it passes on only the text.
func (s Set) Results(ctx context.Context, message *sdk.Message) []sdk.ContentBlockParamUnion {
	var results []sdk.ContentBlockParamUnion
	for _, block := range message.Content {
		if use, ok := block.AsAny().(sdk.ToolUseBlock); ok {
			text, err := s.call(ctx, use.Name, use.Input)
			if err != nil {
				text = err.Error()
			}
			results = append(results, sdk.NewToolResultBlock(use.ID, text, err != nil))
		}
	}
	return results
}

// call carries out a call and returns the text of its result.
func (s Set) call(ctx context.Context, name string, input json.RawMessage) (string, error) {
	i := slices.IndexFunc(s, func(t sdk.BetaTool) bool { return t.Name() == name })
	if i < 0 {
		return "", refuse("Error: Tool '%s' not found", cut(name))
	}
	if memory, ok := s[i].(*Memory); ok {
		return memory.execute(ctx, input)
	}
	blocks, err := s[i].Execute(ctx, input)
	if err != nil {
		return "", refusal{"Error: " + err.Error(), err}
	}
	var texts []string
	for _, b := range blocks {
		if b.OfText != nil {
			texts = append(texts, b.OfText.Text)
		}
	}
	return strings.Join(texts, "\n"), nil
}
