package tools

import (
	"context"
	"encoding/json"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/fault"
)

// Tool is a tool's definition for clients.
type Tool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`       // for people
	Description string          `json:"description"` // for models: when to use it, its result, and the next step
	InputSchema json.RawMessage `json:"inputSchema"` // JSON Schema of the arguments: a flat object
	Annotations Annotations     `json:"annotations"`
}

// Annotations tell a client how careful to be with a tool, in the terms of the Model Context Protocol. All four
// are always in the JSON, since some of the protocol's defaults are true.
type Annotations struct {
	ReadOnly bool `json:"readOnlyHint"` // changes nothing
	// can delete; changes that keep the previous state as a revision do not count
	Destructive bool `json:"destructiveHint"`
	Idempotent  bool `json:"idempotentHint"` // the same call again changes nothing more
	OpenWorld   bool `json:"openWorldHint"`  // reaches beyond the store; false for all
}

// Options configure a [Set]. Nil options mean the zero value.
type Options struct {
	// Allows reports whether the caller's credential carries a scope. A call that needs a missing scope returns
	// ErrForbidden, caused by a [MissingScope]. Nil allows everything.
	Allows func(souvenir.Scope) bool

	// ReadOnly refuses calls that would change something, with ErrReadOnly. See [ListReadOnly].
	ReadOnly bool

	// OnCall is called after every call, including failed ones. Nil means no reports.
	OnCall func(context.Context, Call)
}

// Set has the tools of one store, or of one view of it. It is safe for concurrent use.
type Set struct {
	store    *souvenir.Store
	allows   func(souvenir.Scope) bool
	readOnly bool
	onCall   func(context.Context, Call)
}

// New returns the tools of a store or of a view of it, which decides the user and the access. It is cheap: make
// one for each request.
func New(store *souvenir.Store, options *Options) *Set {
	s := &Set{store: store, allows: func(souvenir.Scope) bool { return true }}
	if options == nil {
		return s
	}
	s.onCall = options.OnCall
	if s.readOnly = options.ReadOnly; options.Allows != nil {
		s.allows = options.Allows
	}
	return s
}

// List returns the definitions of the eight tools, always in the same order.
func List() []Tool {
	list := make([]Tool, len(registry))
	for i, d := range registry {
		list[i] = d.tool()
	}
	return list
}

// registry is the tools, in the order in which a model should see them: the first to use comes first.
var registry = []definition{
	memoryTool,
	getProjectMainMemory,
	getModuleState,
	rulesTool,
	todoTool,
	uploadDocument,
	listCollections,
	createCollection,
}

// find returns a tool by its name.
func find(name string) (*definition, error) {
	names := make([]string, len(registry))
	for i := range registry {
		if registry[i].name == name {
			return &registry[i], nil
		}
		names[i] = registry[i].name
	}
	return nil, fault.New(fault.KindNotFound, "name", "name %s is not a tool; the tools are %s", fault.Show(name),
		fault.OneOf(names))
}
