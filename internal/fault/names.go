package fault

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"
	"unicode"
)

// Names maps arguments of the interface to their names in Go: fields of parameter structs, as in NewMemory.Content, or
// parameters.
type Names map[string]Name

// Name is a field of a struct, or without a struct a parameter.
type Name struct{ Struct, Field string }

func (n Name) String() string { return strings.TrimPrefix(n.Struct+"."+n.Field, ".") }

// other has the fields whose names differ from their argument's, best first. All others match, as EventType matches
// event_type.
var other = map[string][]string{
	"code_verifier":              {"Verifier"},
	"client_id":                  {"ID"},
	"client_name":                {"Name"},
	"client_secret":              {"Secret"},
	"collection_name":            {"Collection", "Collections", "Name"},
	"event_time":                 {"Time"},
	"invitation":                 {"Value"},
	"key":                        {"Keys"},
	"module_name":                {"Module"},
	"new_password":               {"New"},
	"old_password":               {"Old"},
	"password":                   {"New"},
	"project_id":                 {"ID"},
	"project_name":               {"Name"},
	"query":                      {"Text"},
	"query_embedding":            {"Vector"},
	"related_memory_ids":         {"Related"},
	"rule_type":                  {"Type"},
	"scope":                      {"Scopes"},
	"session_id":                 {"SignInID"},
	"sort_order":                 {"Sort"},
	"token_endpoint_auth_method": {"AuthMethod"},
}

// elsewhere has the names of alternatives that messages suggest.
var elsewhere = Names{
	"create_collection": {Field: "AddCollection"},
	"own_vectors":       {"NewCollection", "OwnVectors"},
}

// fields holds the names of each parameter struct, made when the first error asks for them.
var fields sync.Map // reflect.Type -> map[string]string, fields by their words: "event_type" is EventType

// NamesOf returns the names of the given arguments that a parameter struct has fields for.
func NamesOf(parameters reflect.Type, arguments []string) Names {
	known, ok := fields.Load(parameters)
	if !ok {
		known, _ = fields.LoadOrStore(parameters, paths(parameters))
	}
	names := Names{}
	for _, argument := range arguments {
		for _, field := range append([]string{argument}, other[argument]...) {
			if path, ok := known.(map[string]string)[words(field)]; ok {
				names[argument] = Name{parameters.Name(), path}
				break
			}
		}
	}
	return names
}

// paths returns the fields of a parameter struct by their words. Fields of embedded structs of the same package, such
// as Client.Secret, come after its own.
func paths(parameters reflect.Type) map[string]string {
	found := map[string]string{}
	var nested []reflect.StructField
	for _, f := range reflect.VisibleFields(parameters) {
		if !f.IsExported() || f.Anonymous {
			continue
		}
		found[words(f.Name)] = f.Name
		if f.Type.Kind() == reflect.Pointer {
			f.Type = f.Type.Elem()
		}
		if f.Type.Kind() == reflect.Struct && f.Type.PkgPath() == parameters.PkgPath() {
			nested = append(nested, f)
		}
	}
	for _, f := range nested {
		for argument, path := range paths(f.Type) {
			if _, ok := found[argument]; !ok {
				found[argument] = f.Name + "." + path
			}
		}
	}
	return found
}

// plurals spells plurals of abbreviations like those of words.
var plurals = strings.NewReplacer("URIs", "Uris", "URLs", "Urls", "IDs", "Ids")

// words returns the words of a name in Go, or of an argument, in lower case: project_id.
func words(name string) string {
	var b strings.Builder
	runes := []rune(plurals.Replace(name))
	for i, r := range runes {
		begins := i > 0 && unicode.IsUpper(r) && runes[i-1] != '_' &&
			(unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if begins {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// In returns the error with the names that a parameter struct has for its arguments. Pairs of an argument and a
// parameter, or of an argument and a path in the struct (with a dot), take precedence over fields. Names given earlier
// stay. If a pair is about the list of At, the struct is that of its elements. Errors not made by New stay as they are:
// callers may have made them.
func In(err *Error, parameters reflect.Type, pairs ...string) *Error {
	if err == nil || err.message.parts == nil {
		return err
	}
	named := *err
	named.names = NamesOf(parameters, err.arguments())
	for i := 0; i+1 < len(pairs); i += 2 {
		name := Name{Field: pairs[i+1]}
		if path, ok := strings.CutPrefix(pairs[i+1], "."); ok {
			name = Name{parameters.Name(), path}
		}
		named.names[pairs[i]] = name
		if err.at != "" && pairs[i] == root(err.at) && err.element == "" {
			named.element = parameters.Name()
		}
	}
	maps.Copy(named.names, elsewhere)
	maps.Copy(named.names, err.names)
	if name, ok := named.names[root(err.Argument)]; ok {
		named.Field = name.String()
	}
	return &named
}

// Located adds to an error its position in a list: element i of n.
func Located(err error, list string, i, n int) error {
	var known *Error
	if n > 1 && errors.As(err, &known) {
		return At(known, fmt.Sprintf("%s[%d]", list, i))
	}
	return err
}

// At returns the error of an element of a list, such as memories[3].
func At(err *Error, element string) *Error {
	located := *err
	located.at, located.Message = element, element+": "+err.Message
	return &located
}

// MoveTo returns an error about an element of one list for the element of another one.
func MoveTo(err *Error, from, to string) *Error {
	rest, ok := strings.CutPrefix(err.at, from+"[")
	if !ok {
		return err
	}
	moved := *err
	moved.at = to + "[" + rest
	moved.Message = moved.at + strings.TrimPrefix(err.Message, err.at)
	return &moved
}

// Text returns the message of an error with the names of arguments, for callers who give arguments.
func Text(err error) string {
	var known *Error
	if !errors.As(err, &known) {
		return err.Error()
	}
	if known == err { //nolint:errorlint // the error itself, not what it wraps
		return cmp.Or(known.Message, known.Error())
	}
	return strings.Replace(err.Error(), known.Error(), Text(known), 1)
}

// ByArgument returns an error whose message names arguments, for callers who give arguments.
func ByArgument(err error) error {
	known, ok := err.(*Error) //nolint:errorlint // an error that wraps another has its own message
	if !ok || known == nil {
		return err
	}
	plain := *known
	plain.names, plain.Field = nil, ""
	return &plain
}

// message is a message with placeholders for the names of arguments.
type message struct {
	parts []string // parts of the format, before, between and after the names
	names []string // one fewer
	args  []any
}

// parse takes the names out of a format. In braces, {limit} is the name of an argument; {} is the given one.
func parse(argument, format string, args []any) message {
	m := message{args: args}
	begin := 0
	for at := 0; at < len(format); at++ {
		if format[at] != '{' {
			continue
		}
		length := strings.IndexFunc(format[at+1:], func(r rune) bool { return r != '_' && !unicode.IsLetter(r) })
		if length < 0 || format[at+1+length] != '}' {
			continue
		}
		m.parts = append(m.parts, format[begin:at])
		m.names = append(m.names, cmp.Or(format[at+1:at+1+length], argument))
		at += length + 1
		begin = at + 1
	}
	m.parts = append(m.parts, format[begin:])
	return m
}

// text writes the message with the names as spell has them.
func (m message) text(spell func(string) string) string {
	var format strings.Builder
	for i, part := range m.parts {
		format.WriteString(part)
		if i < len(m.names) {
			format.WriteString(strings.ReplaceAll(spell(m.names[i]), "%", "%%"))
		}
	}
	return fmt.Sprintf(format.String(), m.args...)
}

// arguments returns the arguments that the error is about and that its message names.
func (e *Error) arguments() []string {
	all := []string{root(e.Argument)}
	for _, name := range e.message.names {
		all = append(all, root(name))
	}
	return all
}

// root returns the argument of a path in it: tags of tags[2], metadata of metadata.a.b.
func root(path string) string {
	if at := strings.IndexAny(path, ".["); at >= 0 {
		return path[:at]
	}
	return path
}

// goMessage returns the message with the names of Go.
func (e *Error) goMessage() string {
	element := e.at
	if name, ok := e.names[root(element)]; ok {
		element = name.String() + strings.TrimPrefix(element, root(element))
	}
	within := false
	text := e.message.text(func(argument string) string {
		name, ok := e.names[root(argument)]
		if !ok {
			return argument
		}
		if element != "" && name.Struct != "" && name.Struct == e.element {
			within = true
			name.Struct = element
		}
		return name.String() + strings.TrimPrefix(argument, root(argument))
	})
	if element != "" && !within {
		return element + ": " + text
	}
	return text
}
