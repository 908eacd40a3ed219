package tools

import (
	"bytes"
	"encoding/json"

	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/json/jsonbound"
)

// maxUnknown is the number of unknown arguments that are examined.
const maxUnknown = 1000

// lighten removes the values of unknown arguments before decoding, if the arguments have very many values. Their names
// stay for the warning. It is an error if the known arguments alone have too many values.
func (d *definition) lighten(encoded json.RawMessage) (json.RawMessage, error) {
	if jsonbound.Count(encoded) <= maxValues {
		return encoded, nil
	}
	if !json.Valid(encoded) {
		return nil, fault.Invalid("arguments", "arguments are not JSON: %v", json.Unmarshal(encoded, new(json.RawMessage)))
	}
	if trimmed := bytes.TrimSpace(encoded); trimmed[0] != '{' {
		return nil, fault.Invalid("arguments", "arguments are %s…; expected a JSON object", trimmed[:min(len(trimmed), 20)])
	}
	light := []byte{'{'}
	unknown, left := 0, maxValues
	var failed error
	jsonbound.Members(encoded, func(m jsonbound.Member) bool {
		var name string
		value, count := m.Value, jsonbound.Count(m.Value)
		if len(m.Key) > 1000 || json.Unmarshal(m.Key, &name) != nil || !d.knows(name) {
			if unknown++; unknown > maxUnknown || len(m.Key) > 1000 {
				return true
			}
			if count > 2 {
				value = []byte("[0]") // not empty, but small
			}
		} else if left -= count; left < 0 {
			failed = fault.Invalid(name, "%s has %d values; a call may have %d in all", name, count, maxValues)
			return false
		}
		if len(light) > 1 {
			light = append(light, ',')
		}
		light = append(append(append(light, m.Key...), ':'), value...)
		return true
	})
	return append(light, '}'), failed
}

// knows reports whether any action takes an argument, in any spelling.
func (d *definition) knows(name string) bool {
	folded := fold(name)
	if folded == fold(actionName) {
		return true
	}
	for i := range d.parameters {
		if fold(d.parameters[i].name) == folded {
			return true
		}
	}
	return false
}
