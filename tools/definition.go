package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// definition is a tool: what clients are told of it, and what it does. The schema that clients see and the decoding of what they
// send both come from its parameters.
type definition struct {
	name, title, description string
	annotations              Annotations
	parameters               []parameter // those of all actions, in the order of the schema
	actions                  []action    // a tool without actions has a single one, which has no name
}

// action is one of the things that a tool does.
type action struct {
	name     string
	scope    souvenir.Scope
	required []string // names of parameters
	optional []string
	call     func(*Set, context.Context, *arguments) (any, error)
}

// parameter is one argument of a tool.
type parameter struct {
	name        string
	kind        kind
	description string   // for models
	allowed     []string // of a word: its values, if they are limited
	least, most int      // of an integer: its bounds; both zero: none but those of the store
	preset      int      // of an integer: what the store takes when it is absent; zero: nothing to tell
	keepsEmpty  bool     // an empty text is a value, not an absent one
}

// kind is what a parameter takes.
type kind int

const (
	word    kind = iota // a short text; white space around it does not count
	text                // a text that is taken as it is
	integer             // a whole number
	boolean
	words   // a list of texts
	numbers // a vector
	object
)

const actionName = "action"

// hasActions reports whether the argument action chooses what the tool does.
func (d *definition) hasActions() bool { return d.actions[0].name != "" }

// actionNames are the values of the argument action.
func (d *definition) actionNames() []string {
	names := make([]string, len(d.actions))
	for i, a := range d.actions {
		names[i] = a.name
	}
	return names
}

// tool is what a client is told of it.
func (d *definition) tool() Tool {
	return Tool{Name: d.name, Title: d.title, Description: d.description, InputSchema: d.schema(), Annotations: d.annotations}
}

// callName is how messages name a call: "memory search".
func (d *definition) callName(a *action) string { return strings.TrimSpace(d.name + " " + a.name) }

// takes reports whether the action has a parameter.
func (a *action) takes(name string) bool {
	return slices.Contains(a.required, name) || slices.Contains(a.optional, name)
}

// property is a parameter in JSON Schema.
type property struct {
	Type        string    `json:"type"`
	Description string    `json:"description,omitempty"`
	Enum        []string  `json:"enum,omitempty"`
	Items       *property `json:"items,omitempty"`
	Minimum     *int      `json:"minimum,omitempty"`
	Maximum     *int      `json:"maximum,omitempty"`
	Default     int       `json:"default,omitempty"`
}

func (p *parameter) property() property {
	shown := property{Description: p.description, Enum: p.allowed, Default: p.preset}
	switch p.kind {
	case word, text:
		shown.Type = "string"
	case integer:
		shown.Type = "integer"
		if p.least != 0 || p.most != 0 {
			shown.Minimum = &p.least
		}
		if p.most != 0 {
			shown.Maximum = &p.most
		}
	case boolean:
		shown.Type = "boolean"
	case words:
		shown.Type, shown.Items = "array", &property{Type: "string"}
	case numbers:
		shown.Type, shown.Items = "array", &property{Type: "number"}
	case object:
		shown.Type = "object"
	}
	return shown
}

// properties are the parameters in the order in which a model shall read them.
type properties []parameter

// MarshalJSON gives a JSON object that keeps the order.
func (list properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := range list {
		name, err := json.Marshal(list[i].name)
		if err != nil {
			return nil, err
		}
		shown, err := json.Marshal(list[i].property())
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(shown)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// schema is the JSON Schema of the arguments. It is flat, and open to further arguments: many clients can do nothing with
// conditions, and one argument too many must not cost a model its call. What an action needs is said in words.
func (d *definition) schema() json.RawMessage {
	shown := struct {
		Type       string     `json:"type"`
		Properties properties `json:"properties"`
		Required   []string   `json:"required,omitempty"`
	}{Type: "object", Properties: d.parameters}
	if d.hasActions() {
		choice := parameter{name: actionName, kind: word, allowed: d.actionNames()}
		shown.Properties = append(properties{choice}, d.parameters...)
		shown.Required = []string{actionName}
	}
	for _, p := range d.parameters { // what every action needs
		if !slices.ContainsFunc(d.actions, func(a action) bool { return !slices.Contains(a.required, p.name) }) {
			shown.Required = append(shown.Required, p.name)
		}
	}
	encoded, err := json.Marshal(shown)
	if err != nil {
		return json.RawMessage(`{"type":"object"}`) // strings and numbers are always JSON
	}
	return encoded
}
