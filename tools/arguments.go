package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/json/jsonbound"
	"github.com/souvenir-ai/souvenir/internal/json/jsonescape"
	"github.com/souvenir-ai/souvenir/internal/shorten"
)

// MaxArguments is the maximum length of a call's arguments as JSON, in bytes. The largest memory fits, even with all
// characters escaped.
const MaxArguments = 8 << 20

// arguments is the decoded input of a call: a pointer to the struct of a tool's arguments. Absent ones have the
// zero value.
type arguments interface{ noted() *notes }

// notes holds warnings about the arguments, for the result. Each arguments struct embeds it.
type notes struct{ warnings []string }

func (n *notes) noted() *notes { return n }

func (n *notes) warn(format string, args ...any) {
	n.warnings = append(n.warnings, fmt.Sprintf(format, args...))
}

// project holds the two arguments that name a project.
type project struct {
	ProjectName string `json:"project_name"`
	ProjectID   string `json:"project_id"`
}

func (p *project) ref() souvenir.ProjectRef {
	return souvenir.ProjectRef{ID: p.ProjectID, Name: p.ProjectName}
}

// maxValues is the maximum number of values in the arguments of a call: elements of lists and members of objects,
// including nested ones. Each takes many times its length in memory.
const maxValues = 100_000

// parse parses the arguments of a call: a JSON object, or a JSON string that holds one.
func (d *definition) parse(encoded json.RawMessage) (map[string]any, error) {
	if len(encoded) > MaxArguments {
		return nil, &souvenir.Error{Kind: souvenir.KindTooLarge, Argument: "arguments",
			Message: fmt.Sprintf("arguments are %d bytes as JSON; at most %d are allowed", len(encoded), MaxArguments)}
	}
	if !utf8.Valid(encoded) {
		return nil, fault.Invalid("arguments", "arguments are not valid UTF-8")
	}
	if len(bytes.TrimSpace(encoded)) == 0 {
		return map[string]any{}, nil
	}
	if escape, at := jsonescape.LoneSurrogate(encoded); at >= 0 {
		return nil, fault.Invalid("arguments",
			"arguments have the escape %s at byte %d, which is half of a character; write both halves, or the character itself",
			escape, at)
	}
	encoded, err := d.lighten(encoded)
	if err != nil {
		return nil, err
	}
	given, err := decodeJSON(encoded)
	if err != nil {
		return nil, fault.Invalid("arguments", "arguments are not JSON: %v", err)
	}
	if quoted, ok := given.(string); ok {
		if strings.TrimSpace(quoted) == "" {
			return map[string]any{}, nil
		}
		if escape, at := jsonescape.LoneSurrogate([]byte(quoted)); at >= 0 {
			return nil, fault.Invalid("arguments",
				"arguments have the escape %s, which is half of a character; write both halves, or the character itself", escape)
		}
		if inner, err := decodeJSON([]byte(quoted)); err == nil {
			given = inner
		}
	}
	switch given := given.(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return given, nil
	}
	return nil, fault.Invalid("arguments", "arguments are %s; expected a JSON object", showJSON(given))
}

// decodeJSON decodes one JSON value. Numbers keep their spelling.
func decodeJSON(encoded []byte) (any, error) {
	if n := jsonbound.Count(encoded); n > maxValues {
		return nil, fmt.Errorf("there are %d values; at most %d are allowed", n, maxValues)
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	var decoded any
	if err := decoder.Decode(&decoded); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more text after the first value")
	}
	return decoded, nil
}

// actionFor returns the action that a call asks for.
func (d *definition) actionFor(given map[string]any) (*action, error) {
	if !d.hasActions() {
		return &d.actions[0], nil
	}
	names := d.actionNames()
	asked := given[nameIn(given, actionName)]
	if isAbsent(asked) {
		return nil, fault.Invalid(actionName, "action is missing; %s needs one of %s", d.name, fault.OneOf(names))
	}
	name, ok := asked.(string)
	if !ok {
		return nil, fault.Invalid(actionName, "action is %s; expected %s", showJSON(asked),
			fault.OneOf(names))
	}
	i := slices.IndexFunc(names, func(n string) bool { return fold(n) == fold(name) })
	if i < 0 {
		return nil, fault.Invalid(actionName, "action is %s; expected %s", fault.Show(name), fault.OneOf(names))
	}
	return &d.actions[i], nil
}

// fold maps equivalent spellings of a name to one: getContext, get-context and GET_CONTEXT; don't and dont.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("_- '’", r) {
			return -1
		}
		return r
	}, strings.ToLower(strings.TrimSpace(name)))
}

// nameIn returns the name of an argument in the call: its exact name, or else another spelling of it.
func nameIn(given map[string]any, name string) string {
	if _, ok := given[name]; ok {
		return name
	}
	for _, other := range slices.Sorted(maps.Keys(given)) {
		if fold(other) == fold(name) {
			return other
		}
	}
	return name
}

// decode decodes the call's values into the struct of the tool's arguments.
func (d *definition) decode(act *action, given map[string]any) (arguments, error) {
	made := reflect.New(d.arguments)
	a := made.Interface().(arguments)
	used := map[string]bool{}
	if d.hasActions() {
		used[nameIn(given, actionName)] = true
	}
	for i := range d.parameters {
		p := &d.parameters[i]
		if !act.takes(p.name) {
			continue
		}
		name := nameIn(given, p.name)
		used[name] = true
		decoded, err := p.decode(p.name, given[name])
		if err != nil {
			return nil, err
		}
		if decoded != nil {
			p.set(made.Elem(), decoded)
		} else if slices.Contains(act.required, p.name) {
			return nil, fault.Invalid(p.name, "%s is missing; %s needs it", p.name, d.callName(act))
		}
	}
	a.noted().noteUnknown(d, act, given, used)
	return a, nil
}

// set stores a decoded value in the parameter's field.
func (p *parameter) set(arguments reflect.Value, decoded any) {
	field := arguments.FieldByIndex(p.index)
	field.Set(reflect.ValueOf(decoded).Convert(field.Type()))
}

// noteUnknown warns of arguments that the call does not take. Empty ones need no warning: some clients send every
// argument of a schema.
func (n *notes) noteUnknown(d *definition, act *action, given map[string]any, used map[string]bool) {
	const most = 10
	var unknown []string
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !used[name] && !isEmpty(given[name]) {
			unknown = append(unknown, fault.Show(name))
		}
	}
	if len(unknown) == 0 {
		return
	}
	names, more := unknown, ""
	if len(names) > most {
		names, more = names[:most], fmt.Sprintf(" and %d more", len(unknown)-most)
	}
	taken := strings.Join(slices.Concat(act.required, act.optional), ", ")
	if taken == "" {
		taken = "no arguments"
	}
	n.warn("ignored arguments that %s does not take: %s%s; it takes %s", d.callName(act), strings.Join(names, ", "), more,
		taken)
}

// isAbsent reports whether a value is null or a text without visible characters, and so counts as absent.
func isAbsent(given any) bool {
	s, isText := given.(string)
	return given == nil || isText && strings.TrimSpace(s) == ""
}

func isEmpty(given any) bool {
	switch v := given.(type) {
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return isAbsent(given)
}

// decode converts one value to the parameter's type; nil means that it is absent. Messages call it label, its name or
// its place.
func (p *parameter) decode(label string, given any) (any, error) {
	if given == nil {
		return nil, nil
	}
	if p.kind != text && isAbsent(given) {
		return nil, nil
	}
	switch p.kind {
	case word:
		return p.decodeWord(label, given)
	case text:
		s, ok := given.(string)
		if !ok {
			return nil, p.mismatch(label, given, "a string")
		}
		if s == "" && !p.keepsEmpty {
			return nil, nil
		}
		return s, nil
	case integer:
		return p.decodeInteger(label, given)
	case number:
		return p.decodeNumber(label, given)
	case boolean:
		return p.decodeBoolean(label, given)
	case words:
		return p.decodeWords(label, given)
	case numbers:
		return p.decodeNumbers(label, given)
	}
	return p.decodeObject(label, given)
}

// checkEscapes refuses half of a character in JSON that is given as a string: decoding would replace it.
func (p *parameter) checkEscapes(label string, given any) error {
	s, ok := given.(string)
	if !ok || !json.Valid([]byte(s)) {
		return nil
	}
	if escape, at := jsonescape.LoneSurrogate([]byte(s)); at >= 0 {
		return fault.Invalid(p.name,
			"%s has the escape %s, which is half of a character; write both halves, or the character itself", label, escape)
	}
	return nil
}

func (p *parameter) mismatch(label string, given any, expected string) error {
	return fault.Invalid(p.name, "%s is %s; expected %s", label, showJSON(given), expected)
}

func (p *parameter) decodeWord(label string, given any) (any, error) {
	s, ok := given.(string)
	switch {
	case !ok && p.allowed != nil:
		return nil, fault.Invalid(p.name, "%s is %s; expected %s", label, showJSON(given), fault.OneOf(p.allowed))
	case !ok:
		return nil, p.mismatch(label, given, "a string")
	case p.allowed == nil:
		return strings.TrimSpace(s), nil
	}
	i := slices.IndexFunc(p.allowed, func(v string) bool { return fold(v) == fold(s) })
	if i < 0 {
		return nil, fault.Invalid(p.name, "%s is %s; expected %s", label, fault.Show(s), fault.OneOf(p.allowed))
	}
	return p.allowed[i], nil
}

func (p *parameter) decodeInteger(label string, given any) (any, error) {
	expected := "a whole number"
	if p.most != 0 {
		expected = fmt.Sprintf("a whole number from %d to %d", p.least, p.most)
	}
	number, ok := toNumber(given)
	if !ok {
		return nil, p.mismatch(label, given, expected)
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil { // 7.0 and 1e2 are whole, too
		f, err := strconv.ParseFloat(number, 64)
		const exact = 1 << 53 // above this, a float64 cannot hold every whole number
		if err != nil || f != float64(int64(f)) || f > exact || f < -exact {
			return nil, p.mismatch(label, given, expected)
		}
		n = int64(f)
	}
	if tooLarge := p.most != 0 && n > int64(p.most); n < int64(p.least) || tooLarge || int64(int(n)) != n {
		if p.most == 0 {
			return nil, fault.Invalid(p.name, "%s is %s; expected at least %d", label, number, p.least)
		}
		return nil, fault.Invalid(p.name, "%s is %s; expected %d to %d", label, number, p.least, p.most)
	}
	return int(n), nil
}

func (p *parameter) decodeNumber(label string, given any) (any, error) {
	digits, ok := toNumber(given)
	if !ok {
		return nil, p.mismatch(label, given, fmt.Sprintf("a number from %d to %d", p.least, p.most))
	}
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || n < float64(p.least) || n > float64(p.most) {
		return nil, fault.Invalid(p.name, "%s is %s; expected %d to %d", label, digits, p.least, p.most)
	}
	return n, nil
}

// toNumber returns the digits of a JSON number, or of a string that is one.
func toNumber(given any) (string, bool) {
	switch v := given.(type) {
	case json.Number:
		return v.String(), true
	case string:
		v = strings.TrimSpace(v)
		return v, v != "" && (v[0] == '-' || v[0] >= '0' && v[0] <= '9') && json.Valid([]byte(v))
	}
	return "", false
}

func (p *parameter) decodeBoolean(label string, given any) (any, error) {
	switch v := given.(type) {
	case bool:
		return v, nil
	case string:
		switch fold(v) {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
	}
	return nil, p.mismatch(label, given, "true or false")
}

// toList returns the elements of an array, of a string that holds a JSON array, or of a list with commas.
func toList(given any) ([]any, bool) {
	switch v := given.(type) {
	case []any:
		return v, true
	case string:
		if strings.HasPrefix(strings.TrimSpace(v), "[") {
			decoded, err := decodeJSON([]byte(v))
			list, ok := decoded.([]any)
			return list, ok && err == nil
		}
		if strings.Count(v, ",") > maxValues {
			return nil, false
		}
		var list []any
		for item := range strings.SplitSeq(v, ",") {
			list = append(list, item)
		}
		return list, true
	}
	return nil, false
}

func (p *parameter) decodeWords(label string, given any) (any, error) {
	if err := p.checkEscapes(label, given); err != nil {
		return nil, err
	}
	list, ok := toList(given)
	if !ok {
		return nil, p.mismatch(label, given, "a list of strings")
	}
	var decoded []string
	for i, item := range list {
		if isAbsent(item) {
			continue
		}
		s, ok := item.(string)
		if !ok {
			return nil, p.mismatch(fmt.Sprintf("%s[%d]", label, i), item, "a string")
		}
		decoded = append(decoded, strings.TrimSpace(s))
	}
	if len(decoded) == 0 { // clients that fill in every argument send empty lists; tags are removed through metadata
		return nil, nil
	}
	return decoded, nil
}

func (p *parameter) decodeNumbers(label string, given any) (any, error) {
	list, ok := toList(given)
	if !ok {
		return nil, p.mismatch(label, given, "a list of numbers")
	}
	if len(list) == 0 {
		return nil, nil
	}
	decoded := make([]float32, len(list))
	for i, item := range list {
		number, ok := toNumber(item)
		f, err := strconv.ParseFloat(number, 32)
		if !ok || err != nil {
			return nil, p.mismatch(fmt.Sprintf("%s[%d]", label, i), item, "a number")
		}
		decoded[i] = float32(f)
	}
	return decoded, nil
}

func (p *parameter) decodeObject(label string, given any) (any, error) {
	if err := p.checkEscapes(label, given); err != nil {
		return nil, err
	}
	listed := given
	if s, ok := given.(string); ok {
		if decoded, err := decodeJSON([]byte(s)); err == nil {
			given = decoded
		}
	}
	decoded, ok := given.(map[string]any)
	if !ok {
		return nil, p.mismatch(label, listed, "a JSON object")
	}
	for _, key := range slices.Sorted(maps.Keys(decoded)) {
		if number, ok := outOfRange(decoded[key]); ok {
			return nil, fault.Invalid(p.name, "%s.%s has the number %s, which is out of range", label, shorten.Within(key, 60),
				shorten.Within(number, 60))
		}
	}
	return decoded, nil
}

// outOfRange finds a number in a JSON value that is too large for a float64. It is valid JSON, but few programs can
// read it.
func outOfRange(given any) (string, bool) {
	switch v := given.(type) {
	case json.Number:
		_, err := v.Float64()
		return v.String(), err != nil
	case []any:
		for _, item := range v {
			if number, ok := outOfRange(item); ok {
				return number, true
			}
		}
	case map[string]any:
		for _, item := range v {
			if number, ok := outOfRange(item); ok {
				return number, true
			}
		}
	}
	return "", false
}

// showJSON formats a value for a message, shortened.
func showJSON(given any) string {
	encoded, err := json.Marshal(given)
	if err != nil {
		return fmt.Sprintf("a %T", given)
	}
	return shorten.Within(string(encoded), 60)
}
