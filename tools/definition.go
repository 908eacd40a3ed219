package tools

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// definition is a tool: its description for clients, and its implementation. The schema for clients and the
// decoding of their input both come from the struct of its arguments.
type definition struct {
	name, title, description string
	annotations              Annotations
	arguments                reflect.Type // a struct with one field for each argument of any action; see parametersOf
	parameters               []parameter  // built from arguments; in the order of the schema
	actions                  []action     // a tool without actions has a single one, which has no name
}

// define completes a definition with parameters from the fields of A.
func define[A any](d definition) definition {
	d.arguments = reflect.TypeFor[A]()
	d.parameters = parametersOf(d.arguments)
	return d
}

// action is one action of a tool.
type action struct {
	name     string
	scope    souvenir.Scope
	required []string // names of parameters
	optional []string
	call     calling
}

// calling is the function of an action.
type calling func(*Set, context.Context, arguments) (any, error)

// with adapts a function that takes arguments of type A.
func with[A arguments](call func(*Set, context.Context, A) (any, error)) calling {
	return func(s *Set, ctx context.Context, a arguments) (any, error) { return call(s, ctx, a.(A)) }
}

// parameter is one argument of a tool: a field of the struct of its arguments.
type parameter struct {
	index       []int // of the field
	name        string
	kind        kind
	description string   // for models
	allowed     []string // of a word: the allowed values; empty: any
	least, most int      // of a number: its bounds; both zero: only those of the store
	preset      int      // of an integer: the store's default; zero: not in the schema
	keepsEmpty  bool     // an empty text is a value, not an absent one
}

// parametersOf returns the parameters described by the fields of a struct, in their order. The type of a field gives
// the kind; its tags give the rest:
//
//	json      the name; a field without one is not a parameter
//	doc       the description; on an embedded struct, a tag with the name of a parameter describes that one
//	text      "verbatim": white space around it counts; "verbatim,empty": so does an empty text
//	enum      the allowed values, separated by commas
//	minimum, maximum, default
func parametersOf(arguments reflect.Type) []parameter {
	var list []parameter
	for field := range arguments.Fields() {
		if field.Anonymous {
			for _, p := range parametersOf(field.Type) {
				p.index = slices.Concat(field.Index, p.index)
				p.description = cmp.Or(field.Tag.Get(p.name), p.description)
				list = append(list, p)
			}
			continue
		}
		name, ok := field.Tag.Lookup("json")
		if !ok {
			continue
		}
		whole := func(tag string) int {
			n, _ := strconv.Atoi(field.Tag.Get(tag)) // a test compares the tags with the store's bounds
			return n
		}
		p := parameter{index: field.Index, name: name, kind: kindOf(field), description: field.Tag.Get("doc"),
			least: whole("minimum"), most: whole("maximum"), preset: whole("default"),
			keepsEmpty: field.Tag.Get("text") == "verbatim,empty"}
		if allowed := field.Tag.Get("enum"); allowed != "" {
			p.allowed = strings.Split(allowed, ",")
		}
		list = append(list, p)
	}
	return list
}

// kindOf returns the kind of a field.
func kindOf(field reflect.StructField) kind {
	switch field.Type.Kind() {
	case reflect.Int:
		return integer
	case reflect.Float64:
		return number
	case reflect.Bool:
		return boolean
	case reflect.Map:
		return object
	case reflect.Slice:
		if field.Type.Elem().Kind() == reflect.Float32 {
			return numbers
		}
		return words
	}
	if field.Tag.Get("text") != "" {
		return text
	}
	return word
}

// kind is the kind of a parameter's value.
type kind int

const (
	word    kind = iota // a short text; white space around it does not count
	text                // a text that is taken unchanged
	integer             // a whole number
	number              // any number
	boolean
	words   // a list of texts
	numbers // a vector
	object
)

const actionName = "action"

// hasActions reports whether the argument action chooses what the tool does.
func (d *definition) hasActions() bool { return d.actions[0].name != "" }

// actionNames returns the values of the argument action.
func (d *definition) actionNames() []string {
	names := make([]string, len(d.actions))
	for i, a := range d.actions {
		names[i] = a.name
	}
	return names
}

// tool returns the definition for clients.
func (d *definition) tool() Tool {
	return Tool{Name: d.name, Title: d.title, Description: d.description, InputSchema: d.schema(),
		Annotations: d.annotations}
}

// callName returns how messages name a call: "memory search".
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
	listed := property{Description: p.description, Enum: p.allowed, Default: p.preset}
	switch p.kind {
	case word, text:
		listed.Type = "string"
	case integer, number:
		listed.Type = "integer"
		if p.kind == number {
			listed.Type = "number"
		}
		if p.least != 0 || p.most != 0 {
			listed.Minimum = &p.least
		}
		if p.most != 0 {
			listed.Maximum = &p.most
		}
	case boolean:
		listed.Type = "boolean"
	case words:
		listed.Type, listed.Items = "array", &property{Type: "string"}
	case numbers:
		listed.Type, listed.Items = "array", &property{Type: "number"}
	case object:
		listed.Type = "object"
	}
	return listed
}

// properties are the parameters, in the order in which a model should read them.
type properties []parameter

// MarshalJSON encodes a JSON object that keeps the order.
func (list properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := range list {
		name, err := json.Marshal(list[i].name)
		if err != nil {
			return nil, err
		}
		listed, err := json.Marshal(list[i].property())
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(listed)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// schema returns the JSON Schema of the arguments. It is flat, and open to further arguments: many clients do not
// support conditions, and one extra argument must not fail a model's call. The descriptions name the arguments that an
// action needs.
func (d *definition) schema() json.RawMessage {
	listed := struct {
		Type       string     `json:"type"`
		Properties properties `json:"properties"`
		Required   []string   `json:"required,omitempty"`
	}{Type: "object", Properties: d.parameters}
	if d.hasActions() {
		choice := parameter{name: actionName, kind: word, allowed: d.actionNames()}
		listed.Properties = append(properties{choice}, d.parameters...)
		listed.Required = []string{actionName}
	}
	for _, p := range d.parameters { // required by every action
		if !slices.ContainsFunc(d.actions, func(a action) bool { return !slices.Contains(a.required, p.name) }) {
			listed.Required = append(listed.Required, p.name)
		}
	}
	encoded, err := json.Marshal(listed)
	if err != nil {
		return json.RawMessage(`{"type":"object"}`) // strings and numbers always encode
	}
	return encoded
}
