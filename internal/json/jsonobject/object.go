// Package jsonobject handles the JSON objects that callers pass in, metadata of memories and preferences, and lists
// that are never null.
package jsonobject

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Strings returns a list of strings from a JSON value; nil for null.
func Strings(argument string, value any) ([]string, error) {
	if value == nil {
		return nil, nil
	}
	values, ok := value.([]any)
	if !ok {
		return nil, fault.Invalid(argument, "{} is %s; expected a list of strings", Show(value))
	}
	list := make([]string, len(values))
	for i, v := range values {
		if list[i], ok = v.(string); !ok {
			return nil, fault.Invalid(argument, "{}[%d] is %s; expected a string", i, Show(v))
		}
	}
	return list, nil
}

// Show formats a value for a message: its JSON, kept short.
func Show(value any) string {
	if f, ok := value.(float64); ok {
		return fmt.Sprint(f) // JSON has no NaN
	}
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Sprintf("a %T", value)
	}
	const most = 60
	encoded := strings.TrimSuffix(out.String(), "\n")
	if len(encoded) > most {
		return strings.ToValidUTF8(encoded[:most], "") + "…"
	}
	return encoded
}

// Canonical converts a caller's map to its form after encoding and decoding as JSON, so that nothing is shared with the
// caller and only JSON's own types remain. Numbers are float64 if that is lossless, else json.Number.
func Canonical(argument string, object map[string]any) (map[string]any, error) {
	return canonical(argument, object, valid.Text)
}

// CanonicalJSON is [Canonical] for values that are stored only as JSON, which can escape U+0000.
func CanonicalJSON(argument string, object map[string]any) (map[string]any, error) {
	return canonical(argument, object, valid.UTF8)
}

func canonical(argument string, object map[string]any, check checkText) (map[string]any, error) {
	if object == nil {
		return nil, nil
	}
	if err := checkTexts(argument, object, 0, check); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, fault.Invalid(argument, "{} is not JSON: %v", err)
	}
	if len(encoded) > 2*valid.MaxMetadata {
		return nil, fault.New(fault.KindTooLarge, argument,
			"{} is %d bytes as JSON; at most %d are allowed, tags and links aside", len(encoded), valid.MaxMetadata)
	}
	decoded, err := Decode(encoded)
	if err != nil {
		return nil, fault.Invalid(argument, "{} is not a JSON object: %v", err)
	}
	if Depth(decoded) > valid.MaxDepth {
		return nil, fault.New(fault.KindTooLarge, argument, "{} is nested more than %d deep", valid.MaxDepth)
	}
	return decoded, nil
}

// checkText is [valid.Text] or [valid.UTF8].
type checkText = func(argument, value string) error

// CheckTexts rejects strings that are not UTF-8, which encoding/json would change silently.
func CheckTexts(argument string, value any) error { return checkTexts(argument, value, 0, valid.UTF8) }

func checkTexts(argument string, value any, level int, check checkText) error {
	if level > valid.MaxDepth {
		return nil // canonical reports it
	}
	switch v := value.(type) {
	case string:
		return check(argument, v)
	case []string:
		for _, item := range v {
			if err := check(argument, item); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if err := checkTexts(argument, item, level+1, check); err != nil {
				return err
			}
		}
	case map[string]string:
		for key, item := range v {
			if err := cmp.Or(check(argument, key), check(argument, item)); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, item := range v {
			if err := cmp.Or(check(argument, key), checkTexts(argument, item, level+1, check)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Decode reads one JSON object without loss.
func Decode(encoded []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more text after the object")
	}
	for key, value := range object {
		object[key] = plainNumbers(value)
	}
	return object, nil
}

func plainNumbers(value any) any {
	switch v := value.(type) {
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			return v
		}
		if same, err := json.Marshal(f); err != nil || string(same) != v.String() {
			return v
		}
		return f
	case []any:
		for i := range v {
			v[i] = plainNumbers(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = plainNumbers(v[key])
		}
	}
	return value
}

// Depth returns how deep arrays and objects are nested in a value, 0 for other values.
func Depth(value any) int {
	deepest := 0
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			deepest = max(deepest, Depth(item))
		}
	case map[string]any:
		for _, item := range v {
			deepest = max(deepest, Depth(item))
		}
	default:
		return 0
	}
	return deepest + 1
}

// MergePatch is the algorithm of RFC 7396, section 2. The result may share values with target, but target is not
// modified.
func MergePatch(target, patch any) any {
	object, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	merged := map[string]any{}
	if old, ok := target.(map[string]any); ok {
		maps.Copy(merged, old)
	}
	for key, value := range object {
		if value == nil {
			delete(merged, key)
		} else {
			merged[key] = MergePatch(merged[key], value)
		}
	}
	return merged
}

// Leaves appends the texts and numbers in a JSON value, in the order of their keys.
func Leaves(texts []string, value any) []string {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			texts = Leaves(texts, v[key])
		}
	case []any:
		for _, item := range v {
			texts = Leaves(texts, item)
		}
	case nil, bool:
	default:
		texts = append(texts, fmt.Sprint(v))
	}
	return texts
}
