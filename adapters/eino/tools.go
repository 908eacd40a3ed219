package eino

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/schema"
	"github.com/eino-contrib/jsonschema"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/tools"
)

// ToolsConfig says which tools [NewTools] returns. Nil means the zero value: all of them.
type ToolsConfig struct {
	// Names are the tools, such as "memory"; tools.List has all of them. None means all.
	Names []string

	// Prefix precedes the name of each tool, to keep it apart from others, such as "souvenir_".
	Prefix string

	// ReadOnly leaves out the tools that change something, and what changes something from the others.
	ReadOnly bool

	// OnCall is called after every call, including failed ones. Nil means no reports.
	OnCall func(context.Context, tools.Call)
}

// toolName is the form of names that models take.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// NewTools returns the tools of a store, or of a view of it, for the agents and tool nodes of eino, in the order of
// tools.List. Each of them is a [tool.InvokableTool].
func NewTools(store *souvenir.Store, config *ToolsConfig) ([]tool.BaseTool, error) {
	var c ToolsConfig
	if config != nil {
		c = *config
	}
	set := tools.New(store, &tools.Options{ReadOnly: c.ReadOnly, OnCall: c.OnCall})
	list := tools.List()
	if c.ReadOnly {
		list = tools.ListReadOnly()
	}
	for i, name := range c.Names {
		if !slices.ContainsFunc(list, func(t tools.Tool) bool { return t.Name == name }) {
			return nil, fmt.Errorf("ToolsConfig.Names[%d] is %q; the tools are %q", i, name, namesOf(list))
		}
	}
	var chosen []tool.BaseTool
	for _, t := range list {
		if len(c.Names) > 0 && !slices.Contains(c.Names, t.Name) {
			continue
		}
		info := &schema.ToolInfo{Name: c.Prefix + t.Name, Desc: t.Description}
		if !toolName.MatchString(info.Name) {
			return nil, fmt.Errorf("ToolsConfig.Prefix makes the tool name %q; 1 to 64 letters, digits, _ and - are allowed",
				info.Name)
		}
		var arguments jsonschema.Schema
		if err := json.Unmarshal(t.InputSchema, &arguments); err != nil {
			return nil, err
		}
		info.ParamsOneOf = schema.NewParamsOneOfByJSONSchema(&arguments)
		chosen = append(chosen, &memoryTool{set: set, name: t.Name, info: info})
	}
	return chosen, nil
}

// namesOf returns the names of tools.
func namesOf(list []tools.Tool) []string {
	names := make([]string, len(list))
	for i, t := range list {
		names[i] = t.Name
	}
	return names
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

// InvokableRun runs a call and returns its result as JSON. What a model can put right, such as a wrong argument, is a
// result, too, which begins with "error: ". Other failures are errors.
func (t *memoryTool) InvokableRun(ctx context.Context, arguments string, _ ...tool.Option) (string, error) {
	result, err := t.set.Call(ctx, t.name, json.RawMessage(arguments))
	var known *souvenir.Error
	if errors.As(err, &known) && slices.Contains(forModels, known.Kind) {
		return "error: " + known.Message, nil
	} else if err != nil {
		return "", err
	}
	encoded, err := json.Marshal(result)
	return string(encoded), err
}

// forModels are the kinds of errors that a model can do something about.
var forModels = []souvenir.Kind{souvenir.KindInvalid, souvenir.KindNotFound, souvenir.KindForbidden,
	souvenir.KindConflict, souvenir.KindTooLarge, souvenir.KindReadOnly}
