// Package tools is Souvenir as eight tools for language models: what each is called, what a model is told of it, the
// JSON schema of its arguments, and the call itself. It knows neither HTTP nor any protocol: package server carries the
// same registry over both, and a program with an agent loop of its own uses it directly.
//
//	set := tools.New(store, nil)
//	for _, tool := range tools.List() {
//		// tell the model: tool.Name, tool.Description, tool.InputSchema
//	}
//	result, err := set.Call(ctx, "memory", json.RawMessage(`{"action": "search", "query": "when do we deploy"}`))
//
// A result marshals to one JSON object. Errors are of type [souvenir.Error] (or those of a context) and are written so
// that a model can mend its call: they name the argument, its value and what would be right.
//
// Models make small mistakes with arguments. Where the meaning is certain they are taken as meant: "7" for 7, "true"
// for true, "a, b" or a JSON string for a list, an empty string or null for nothing, names in another case or with
// hyphens. Anything else is [souvenir.ErrInvalid]. Arguments that a tool does not know are ignored, and the result's
// warnings name them.
package tools
