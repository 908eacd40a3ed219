package servertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var background = context.Background()

// Document is the OpenAPI document of a server, to compare its answers with.
type Document struct {
	Servers []struct{ URL string }
	Paths   map[string]map[string]struct {
		Parameters  []struct{ Name, In string }
		OperationID string
		Security    []map[string][]string
		RequestBody struct {
			Content map[string]struct{ Schema any }
		}
		Responses map[string]struct {
			Content map[string]struct{ Schema any }
		}
	}
	Components struct{ Schemas map[string]any }
}

// ReadDocument reads the OpenAPI document of a server.
func ReadDocument(t *testing.T, w *World) *Document {
	t.Helper()
	a := w.Do(Guest, "GET", "/openapi.json", "").Expect(http.StatusOK)
	d := &Document{}
	a.Decode(d)
	return d
}

// check compares an answer with the document's description of its operation and status.
func (d *Document) check(r *http.Request, a Answer) error {
	if a.Status >= http.StatusBadRequest && r.Method != http.MethodHead {
		var body any
		if err := json.Unmarshal([]byte(a.Body), &body); err != nil {
			return fmt.Errorf("an error that is not JSON: %w", err)
		}
		form := d.errorsAt(r.URL.EscapedPath())
		if form == "" {
			return d.checkDocumented(r, a)
		}
		if err := d.fits(map[string]any{"$ref": "#/components/schemas/" + form}, body, "error"); err != nil {
			return err
		}
		doc := body.(map[string]any)
		if form == "OAuthError" {
			return d.checkDocumented(r, a)
		}
		if text := doc["content"].([]any)[0].(map[string]any)["text"]; text != "Error: "+doc["error"].(string) {
			return fmt.Errorf("the text is %q and the error %q", text, doc["error"])
		}
	}
	return d.checkDocumented(r, a)
}

// errorsAt is the name of the schema that errors have at a path; empty where there are several.
func (d *Document) errorsAt(path string) string {
	operations, _ := d.OperationsAt(path)
	for _, operation := range d.Paths[operations] {
		if schema, ok := operation.Responses["500"].Content["application/json"].Schema.(map[string]any); ok &&
			schema["anyOf"] != nil {
			return ""
		}
		if schema, ok := operation.Responses["500"].Content["application/json"].Schema.(map[string]any); ok &&
			schema["$ref"] == "#/components/schemas/OAuthError" {
			return "OAuthError"
		}
	}
	return "Error"
}

// checkDocumented compares an answer with its operation's description of the status.
func (d *Document) checkDocumented(r *http.Request, a Answer) error {
	operations, ok := d.OperationsAt(r.URL.EscapedPath())
	if !ok {
		return nil // not served
	}
	method := strings.ToLower(r.Method)
	if method == "head" {
		method = "get"
	}
	operation, ok := d.Paths[operations][method]
	if !ok {
		return nil
	}
	response, ok := operation.Responses[strconv.Itoa(a.Status)]
	if !ok {
		return fmt.Errorf("%s has no status %d", operation.OperationID, a.Status)
	}
	if r.Method == http.MethodHead || len(response.Content) == 0 {
		return nil
	}
	kind, _, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	content, ok := response.Content[kind]
	if !ok {
		content, ok = response.Content["*/*"]
	}
	switch {
	case !ok:
		return fmt.Errorf("%s does not answer %s", operation.OperationID, kind)
	case content.Schema == nil:
		return nil
	}
	var body any
	if err := json.Unmarshal([]byte(a.Body), &body); err != nil {
		return err
	}
	return d.fits(content.Schema, body, "body")
}

// OperationsAt finds the document's path that matches a request's path; of several, the one with the fewest parameters.
func (d *Document) OperationsAt(path string) (found string, ok bool) {
	given := strings.Split(path, "/")
	for pattern := range d.Paths {
		parts := strings.Split(pattern, "/")
		if len(parts) != len(given) {
			continue
		}
		fits := true
		for i, part := range parts {
			fits = fits && (part == given[i] || strings.HasPrefix(part, "{") && given[i] != "")
		}
		if fits && (!ok || strings.Count(pattern, "{") < strings.Count(found, "{")) {
			found, ok = pattern, true
		}
	}
	return found, ok
}

// fits compares a value with a JSON Schema. It knows only the keywords that the document uses; any other one is an
// error, so that none is ignored.
func (d *Document) fits(schema, value any, at string) error {
	words, ok := schema.(map[string]any)
	if !ok {
		return fmt.Errorf("%s: the schema is %T", at, schema)
	}
	for word, means := range words {
		var err error
		switch word {
		case "$ref":
			name := strings.TrimPrefix(means.(string), "#/components/schemas/")
			if d.Components.Schemas[name] == nil {
				return fmt.Errorf("%s: there is no schema %s", at, means)
			}
			err = d.fits(d.Components.Schemas[name], value, at)
		case "type":
			err = fitsType(means, value)
		case "anyOf":
			var wrong []error
			for _, one := range means.([]any) {
				wrong = append(wrong, d.fits(one, value, at))
			}
			if !slices.Contains(wrong, nil) {
				err = errors.Join(wrong...)
			}
		case "enum":
			if !slices.Contains(means.([]any), value) {
				err = fmt.Errorf("%v is none of %v", value, means)
			}
		case "const":
			if !reflect.DeepEqual(means, value) {
				err = fmt.Errorf("%v is not %v", value, means)
			}
		case "format":
			if text, isText := value.(string); isText {
				_, err = time.Parse(time.RFC3339Nano, text)
			}
		case "items":
			if elements, isList := value.([]any); isList {
				for i, element := range elements {
					if err := d.fits(means, element, fmt.Sprintf("%s[%d]", at, i)); err != nil {
						return err
					}
				}
			}
		case "properties", "required", "additionalProperties":
			err = d.fitsMembers(words, value, at)
		case "description", "contentMediaType":
		default:
			return fmt.Errorf("%s: the word %s is not known here", at, word)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	return nil
}

func (d *Document) fitsMembers(words map[string]any, value any, at string) error {
	object, ok := value.(map[string]any)
	if !ok {
		return nil // the keyword type reports it
	}
	properties, _ := words["properties"].(map[string]any)
	if required, ok := words["required"].([]any); ok {
		for _, name := range required {
			if _, ok := object[name.(string)]; !ok {
				return fmt.Errorf("%s is missing", name)
			}
		}
	}
	for name, member := range object {
		schema, known := properties[name]
		if !known && words["additionalProperties"] == false {
			return fmt.Errorf("%s is not in the document", name)
		}
		if known {
			if err := d.fits(schema, member, at+"."+name); err != nil {
				return err
			}
		}
	}
	return nil
}

func fitsType(means, value any) error {
	allowed, ok := means.([]any)
	if !ok {
		allowed = []any{means}
	}
	var kind string
	switch v := value.(type) {
	case nil:
		kind = "null"
	case string:
		kind = "string"
	case bool:
		kind = "boolean"
	case float64:
		kind = "number"
		if v == float64(int64(v)) {
			kind = "integer"
		}
	case []any:
		kind = "array"
	case map[string]any:
		kind = "object"
	}
	if !slices.Contains(allowed, any(kind)) && !(kind == "integer" && slices.Contains(allowed, any("number"))) {
		return fmt.Errorf("%v is of type %s, not %v", value, kind, allowed)
	}
	return nil
}
