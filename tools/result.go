package tools

import (
	"encoding/json"
	"slices"
)

// noted appends warnings about the arguments to the warnings of a result.
func noted(result any, warnings []string) any {
	if len(warnings) == 0 {
		return result
	}
	return notedResult{result, warnings}
}

type notedResult struct {
	result   any
	warnings []string
}

// MarshalJSON encodes the result's object with the warnings in it.
func (n notedResult) MarshalJSON() ([]byte, error) {
	encoded, err := json.Marshal(n.result)
	if err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(encoded, &members); err != nil {
		return nil, err
	}
	var warnings []string
	if own, ok := members["warnings"]; ok {
		if err := json.Unmarshal(own, &warnings); err != nil {
			return nil, err
		}
	}
	if members["warnings"], err = json.Marshal(slices.Concat(warnings, n.warnings)); err != nil {
		return nil, err
	}
	return json.Marshal(members)
}
