package eino

import (
	"context"
	"encoding/json"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/schema"
	"github.com/eino-contrib/jsonschema"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/tools"
)

// ToolsConfig says which tools [NewTools] returns. Nil means the zero value: all of them.
type ToolsConfig struct {
	// Only names the tools, such as "memory"; tools.List has all of them. None means all.
	Only []string

	// Prefix precedes the name of each tool, to keep it apart from others, such as "souvenir_".
	Prefix string

	// ReadOnly leaves out the tools, and the actions of other tools, that change something.
	ReadOnly bool

	// OnCall is called after every call, including failed ones. Nil means no reports.
	OnCall func(context.Context, tools.Call)
}

// NewTools returns the tools of a store, or of a view of it, for the agents and tool nodes of eino, in the order of
// tools.List. Each of them is a [tool.InvokableTool].
func NewTools(store *souvenir.Store, config *ToolsConfig) ([]tool.BaseTool, error) {
	var c ToolsConfig
	if config != nil {
		c = *config
	}
	set := tools.New(store, &tools.Options{ReadOnly: c.ReadOnly, OnCall: c.OnCall})
	list, err := tools.Choose(tools.Choice{Only: c.Only, Prefix: c.Prefix, ReadOnly: c.ReadOnly})
	if err != nil {
		return nil, err
	}
	var chosen []tool.BaseTool
	for _, t := range list {
		info := &schema.ToolInfo{Name: t.Alias, Desc: t.Description}
		var arguments jsonschema.Schema
		if err := json.Unmarshal(t.InputSchema, &arguments); err != nil {
			return nil, err
		}
		info.ParamsOneOf = schema.NewParamsOneOfByJSONSchema(&arguments)
		chosen = append(chosen, &memoryTool{set: set, name: t.Name, info: info})
	}
	return chosen, nil
}

// memoryTool is one of the tools.
type memoryTool struct {
	set  *tools.Set
	name string // without the prefix
	info *schema.ToolInfo
}

var _ tool.InvokableTool = (*memoryTool)(nil)

// Info returns the tool's name, description and arguments.
func (t *memoryTool) Info(context.Context) (*schema.ToolInfo, error) {
	info := *t.info
	return &info, nil
}

// InvokableRun runs a call and returns its result as JSON. A failure that a model can put right, such as a wrong
// argument, is also a result, which begins with "error: ". Other failures are errors.
func (t *memoryTool) InvokableRun(ctx context.Context, arguments string, _ ...tool.Option) (string, error) {
	return t.set.CallText(ctx, t.name, json.RawMessage(arguments))
}
