// Package tools offers Souvenir as eight tools for language models: their names, their descriptions for models, the
// JSON schemas of their arguments, and the calls themselves. It is independent of HTTP and any protocol: package server
// exposes the same registry over both, and a program with its own agent loop uses it directly.
//
//	set := tools.New(store, nil)
//	for _, tool := range tools.List() {
//		// tell the model: tool.Name, tool.Description, tool.InputSchema
//	}
//	result, err := set.Call(ctx, "memory", json.RawMessage(`{"action": "search", "query": "when do we deploy"}`))
//
// A result marshals to one JSON object. Errors are of type [souvenir.Error] (or those of a context) and help a
// model to correct its call: they name the argument, its value and what would be right.
//
// Models make small mistakes with arguments. If the meaning is certain, they are accepted: "7" for 7, "true" for
// true, "a, b" or a JSON string for a list, an empty string or null for nothing, names in another case or with
// hyphens. Anything else is [souvenir.ErrInvalid]. Unknown arguments are ignored, and the result's warnings name
// them.
package tools
