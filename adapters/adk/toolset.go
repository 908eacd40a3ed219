package adk

import (
	"encoding/json"
	"errors"

	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/toolutils"
	"google.golang.org/genai"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/tools"
)

// ToolsetOptions configure [MemoryService.Toolset]. Nil means the zero value.
type ToolsetOptions struct {
	// Only names the tools to offer, as in tools.List. None means all.
	Only []string

	// Prefix is put before the names of the tools, such as souvenir_.
	Prefix string

	// Tools limits what calls may do, and reports them. Nil means neither.
	Tools *tools.Options
}

// toolset is Souvenir's tools for the user of each invocation.
type toolset struct {
	service *MemoryService
	options ToolsetOptions
	list    []declared
}

// declared is a tool with its schema as the kit wants it.
type declared struct {
	tools.Chosen
	schema *jsonschema.Schema
}

// Toolset returns Souvenir's tools for an agent. A call works for the user and the application of its invocation. An
// unknown name in Only is souvenir.ErrInvalid.
func (s *MemoryService) Toolset(options *ToolsetOptions) (tool.Toolset, error) {
	t := toolset{service: s}
	if options != nil {
		t.options = *options
	}
	chosen, err := tools.Choose(tools.Choice{Only: t.options.Only, Prefix: t.options.Prefix,
		ReadOnly: t.options.Tools != nil && t.options.Tools.ReadOnly})
	if err != nil {
		return nil, err
	}
	for _, c := range chosen {
		var schema jsonschema.Schema
		if err := json.Unmarshal(c.InputSchema, &schema); err != nil {
			return nil, err
		}
		t.list = append(t.list, declared{c, &schema})
	}
	return &t, nil
}

// Name returns the name of the toolset.
func (t *toolset) Name() string { return "souvenir" }

// Tools returns the tools for the user of an invocation.
func (t *toolset) Tools(ctx agent.ReadonlyContext) ([]tool.Tool, error) {
	calls := tools.New(t.service.View(ctx.AppName(), ctx.UserID()), t.options.Tools)
	var all []tool.Tool
	for _, d := range t.list {
		all = append(all, &memoryTool{d, calls})
	}
	return all, nil
}

// memoryTool is one of Souvenir's tools for one user.
type memoryTool struct {
	declared
	calls *tools.Set
}

// The kit runs tools that have these methods; its interfaces for them are internal.
var _ interface {
	tool.Tool
	Declaration() *genai.FunctionDeclaration
	Run(ctx agent.Context, args any) (map[string]any, error)
	ProcessRequest(ctx agent.Context, req *model.LLMRequest) error
} = (*memoryTool)(nil)

func (t *memoryTool) Name() string        { return t.Alias }
func (t *memoryTool) Description() string { return t.Tool.Description }
func (t *memoryTool) IsLongRunning() bool { return false }

// Declaration describes the tool to the model.
func (t *memoryTool) Declaration() *genai.FunctionDeclaration {
	return &genai.FunctionDeclaration{Name: t.Name(), Description: t.Description(), ParametersJsonSchema: t.schema}
}

// ProcessRequest puts the tool into a request to the model.
func (t *memoryTool) ProcessRequest(_ agent.Context, req *model.LLMRequest) error {
	return toolutils.PackTool(req, t)
}

// Run carries out a call. Errors help the model to correct it.
func (t *memoryTool) Run(ctx agent.Context, args any) (map[string]any, error) {
	encoded, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	result, err := t.calls.Call(ctx, t.Tool.Name, encoded)
	var known *souvenir.Error
	if errors.As(err, &known) {
		return nil, errors.New(known.Message) // with the names of arguments
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
