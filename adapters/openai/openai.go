// Package openai gives models behind the OpenAI API the tools of a Souvenir store, with openai-go: their definitions
// for chat completions and for responses, and the calls. It is a module of its own, so that programs without openai-go
// do not depend on it. docs/frameworks/openai.md describes the mapping.
//
// A view of the store decides whose memory it is: give each user their own, with [souvenir.Store.As].
package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/tools"
)

// ToolsConfig says which tools a model gets. Nil means the zero value: all of them.
type ToolsConfig struct {
	// Only names the tools, such as "memory"; tools.List has all of them. None means all.
	Only []string

	// Prefix precedes the name of each tool, to keep it apart from others, such as "souvenir_".
	Prefix string

	// ReadOnly leaves out the tools, and the actions of other tools, that change something.
	ReadOnly bool

	// MaxRequests is how many requests one call of Complete or Respond makes at most. Zero means 10.
	MaxRequests int

	// OnCall is called after every call of a tool, including failed ones. Nil means no reports.
	OnCall func(context.Context, tools.Call)
}

// ErrTooManyRequests is the error of [Tools.Complete] and [Tools.Respond] when the model calls tools in every answer.
var ErrTooManyRequests = errors.New("the model still calls tools after ToolsConfig.MaxRequests requests")

// Tools are the tools of a store, or of a view of it. It is safe for concurrent use.
type Tools struct {
	set    *tools.Set
	config ToolsConfig
	chosen []function
}

// function is one of the tools.
type function struct {
	name, description string // the name has the prefix
	parameters        map[string]any
}

// NewTools returns the tools of a store, or of a view of it, in the order of tools.List.
func NewTools(store *souvenir.Store, config *ToolsConfig) (*Tools, error) {
	t := &Tools{}
	if config != nil {
		t.config = *config
	}
	if t.config.MaxRequests < 0 {
		return nil, fmt.Errorf("ToolsConfig.MaxRequests is %d; expected 1 or more, or 0 for 10", t.config.MaxRequests)
	} else if t.config.MaxRequests == 0 {
		t.config.MaxRequests = 10
	}
	t.set = tools.New(store, &tools.Options{ReadOnly: t.config.ReadOnly, OnCall: t.config.OnCall})
	list, err := tools.Choose(tools.Choice{Only: t.config.Only, Prefix: t.config.Prefix, ReadOnly: t.config.ReadOnly})
	if err != nil {
		return nil, err
	}
	for _, tool := range list {
		f := function{name: tool.Alias, description: tool.Description}
		if err := json.Unmarshal(tool.InputSchema, &f.parameters); err != nil {
			return nil, err
		}
		t.chosen = append(t.chosen, f)
	}
	return t, nil
}

// Has reports whether a name, with the prefix, is that of one of these tools.
func (t *Tools) Has(name string) bool {
	return slices.ContainsFunc(t.chosen, func(f function) bool { return f.name == name })
}

// ChatTools returns the definitions for openai.ChatCompletionNewParams.
func (t *Tools) ChatTools() []openai.ChatCompletionToolUnionParam {
	list := make([]openai.ChatCompletionToolUnionParam, len(t.chosen))
	for i, f := range t.chosen {
		list[i] = openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: f.name,
			Description: openai.String(f.description), Parameters: f.parameters})
	}
	return list
}

// RunChat runs the calls of these tools in a message, in their order, and returns the messages with their results.
// Calls of other tools are left to the caller. A failure that a model can put right, such as a wrong argument, is also
// a result, which begins with "error: ". Other failures are errors.
func (t *Tools) RunChat(ctx context.Context, message openai.ChatCompletionMessage) (
	[]openai.ChatCompletionMessageParamUnion, error) {
	var results []openai.ChatCompletionMessageParamUnion
	for _, call := range message.ToolCalls {
		if !t.Has(call.Function.Name) {
			continue
		}
		result, err := t.call(ctx, call.Function.Name, call.Function.Arguments)
		if err != nil {
			return nil, err
		}
		results = append(results, openai.ToolMessage(result, call.ID))
	}
	return results, nil
}

// Complete makes a chat completion with these tools beside those of params, runs their calls, and asks again until the
// model calls none of them, or calls another tool as well. It appends the model's messages and the results to
// params.Messages, so that a program can answer the calls of its own tools, which [Tools.Has] tells apart, and call
// Complete again. Of several choices it continues the first.
func (t *Tools) Complete(ctx context.Context, completions openai.ChatCompletionService,
	params *openai.ChatCompletionNewParams, opts ...option.RequestOption) (*openai.ChatCompletion, error) {
	request := *params
	request.Tools = slices.Concat(params.Tools, t.ChatTools())
	for range t.config.MaxRequests {
		request.Messages = params.Messages
		completion, err := completions.New(ctx, request, opts...)
		if err != nil {
			return nil, err
		}
		if len(completion.Choices) == 0 {
			return nil, errors.New("the completion has no choices")
		}
		message := completion.Choices[0].Message
		results, err := t.RunChat(ctx, message)
		if err != nil {
			return nil, err
		}
		params.Messages = append(slices.Clone(params.Messages), message.ToParam())
		params.Messages = append(params.Messages, results...)
		if len(results) == 0 || len(results) < len(message.ToolCalls) {
			return completion, nil
		}
	}
	return nil, ErrTooManyRequests
}

// ResponseTools returns the definitions for responses.ResponseNewParams.
func (t *Tools) ResponseTools() []responses.ToolUnionParam {
	list := make([]responses.ToolUnionParam, len(t.chosen))
	for i, f := range t.chosen {
		list[i] = responses.ToolUnionParam{OfFunction: &responses.FunctionToolParam{Name: f.name,
			Description: openai.String(f.description), Parameters: f.parameters, Strict: openai.Bool(false)}}
	}
	return list
}

// RunResponse runs the calls of these tools in a response and returns the items with their results, like
// [Tools.RunChat].
func (t *Tools) RunResponse(ctx context.Context, response *responses.Response) (
	[]responses.ResponseInputItemUnionParam, error) {
	var results []responses.ResponseInputItemUnionParam
	for _, item := range response.Output {
		if item.Type != "function_call" || !t.Has(item.Name) {
			continue
		}
		result, err := t.call(ctx, item.Name, item.AsFunctionCall().Arguments)
		if err != nil {
			return nil, err
		}
		// As JSON, since versions of openai-go differ in the type of this item.
		output := map[string]string{"type": "function_call_output", "call_id": item.CallID, "output": result}
		results = append(results, param.Override[responses.ResponseInputItemUnionParam](output))
	}
	return results, nil
}

// Respond makes a response with these tools, runs their calls, and asks again, like [Tools.Complete]. It appends the
// items of the model and the results to params.Input; in a conversation of the API, which keeps the items itself,
// params.Input is the results alone.
func (t *Tools) Respond(ctx context.Context, service responses.ResponseService, params *responses.ResponseNewParams,
	opts ...option.RequestOption) (*responses.Response, error) {
	request := *params
	request.Tools = slices.Concat(params.Tools, t.ResponseTools())
	for range t.config.MaxRequests {
		request.Input = params.Input
		response, err := service.New(ctx, request, opts...)
		if err != nil {
			return nil, err
		}
		results, err := t.RunResponse(ctx, response)
		if err != nil {
			return nil, err
		}
		var items []responses.ResponseInputItemUnionParam
		if param.IsOmitted(params.Conversation) {
			items = itemsOf(params.Input)
			for _, item := range response.Output {
				items = append(items, param.Override[responses.ResponseInputItemUnionParam](json.RawMessage(item.RawJSON())))
			}
		}
		params.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: append(items, results...)}
		if len(results) == 0 || len(results) < callsIn(response) {
			return response, nil
		}
	}
	return nil, ErrTooManyRequests
}

// itemsOf returns a copy of an input as items.
func itemsOf(input responses.ResponseNewParamsInputUnion) []responses.ResponseInputItemUnionParam {
	if input.OfString.Valid() {
		return []responses.ResponseInputItemUnionParam{
			responses.ResponseInputItemParamOfMessage(input.OfString.Value, responses.EasyInputMessageRoleUser)}
	}
	return slices.Clone(input.OfInputItemList)
}

// callsIn counts the calls in a response that the program is to answer.
func callsIn(response *responses.Response) (n int) {
	for _, item := range response.Output {
		answered := slices.ContainsFunc(response.Output, func(other responses.ResponseOutputItemUnion) bool {
			return other.CallID == item.CallID && strings.HasSuffix(other.Type, "_output")
		})
		if slices.Contains(forPrograms, item.Type) && !answered {
			n++
		}
	}
	return n
}

// forPrograms are the types of items that ask the program for something; the API handles the others itself.
var forPrograms = []string{"function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call",
	"apply_patch_call", "mcp_approval_request"}

// call calls a tool and returns its result for the model.
func (t *Tools) call(ctx context.Context, name, arguments string) (string, error) {
	return t.set.CallText(ctx, strings.TrimPrefix(name, t.config.Prefix), json.RawMessage(arguments))
}
