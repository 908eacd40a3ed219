package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/route"
	"github.com/souvenir-ai/souvenir/tools"
)

// schema is a JSON Schema (2020-12, as in OpenAPI 3.1), or another object of the document.
type schema map[string]any

// operation describes the parts of a route that the table does not have.
type operation struct {
	summary    string
	parameters []parameter // of the query; those of the path are in the pattern
	body       schema      // nil: none
	bodyType   string      // empty: application/json
	answer     schema      // nil: answerType is not JSON
	answerType string      // empty: application/json
	mcp        bool        // errors may also be those of JSON-RPC, and the answer may be empty
	refused    bool        // authorized callers get 405
	created    bool        // success is 201, not 200
	wrong      []string    // error statuses that do not follow from the table
}

// parameter is a parameter of a query or a path.
type parameter struct {
	name string
	schema
}

// openAPI builds the document: the table of routes, with the descriptions in operations.go.
func (s *Server) openAPI() []byte {
	paths := map[string]map[string]any{}
	known := operations()
	for _, rt := range s.routes() {
		if rt.dialect == request.Pages {
			continue // for people
		}
		if paths[rt.Pattern] == nil {
			paths[rt.Pattern] = map[string]any{}
		}
		paths[rt.Pattern][strings.ToLower(rt.Method)] = known[rt.Method+" "+rt.Pattern].describe(rt)
	}
	document := schema{
		"openapi": "3.1.0",
		"info": schema{
			"title": "Souvenir", "version": APIVersion,
			"description": "A memory service for AI agents. Every operation but the open ones needs a credential: an MCP " +
				"token or an OAuth access token.",
			"license": schema{"name": "MIT", "identifier": "MIT"},
		},
		"servers": []schema{{"url": cmp.Or(s.options.PublicURL, "/")}},
		"paths":   paths,
		"components": schema{
			"schemas": components(),
			"securitySchemes": schema{
				"bearer": schema{"type": "http", "scheme": "bearer",
					"description": "An MCP token (mcp_...) or an OAuth access token"},
				"header": schema{"type": "apiKey", "in": "header", "name": "x-mcp-token"},
				"cookie": schema{"type": "apiKey", "in": "cookie", "name": request.CredentialCookie},
			},
		},
		"x-tools": tools.List(),
	}
	if !s.options.NoQueryTokens {
		schemes := document["components"].(schema)["securitySchemes"].(schema)
		schemes["query"] = schema{"type": "apiKey", "in": "query", "name": tokenParameter,
			"description": "Discouraged: URLs end up in logs"}
	}
	encoded, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		s.log.Error("the OpenAPI document cannot be written", "error", err)
	}
	return encoded
}

// pathParameter is a parameter in a pattern.
var pathParameter = regexp.MustCompile(`\{(\w+)\}`)

// describe returns the operation in the document.
func (o operation) describe(rt dialectRoute) schema {
	described := schema{"summary": o.summary, "operationId": operationID(rt.Route), "responses": o.responses(rt)}
	parameters := []schema{}
	for _, found := range pathParameter.FindAllStringSubmatch(rt.Pattern, -1) {
		parameters = append(parameters,
			schema{"name": found[1], "in": "path", "required": true, "schema": line("", pathLength(rt.Route, found[1]))})
	}
	for _, p := range o.parameters {
		parameters = append(parameters, schema{"name": p.name, "in": "query", "schema": p.schema})
	}
	if len(parameters) > 0 {
		described["parameters"] = parameters
	}
	if o.body != nil {
		described["requestBody"] = schema{"required": true,
			"content": schema{cmp.Or(o.bodyType, jsonMedia): schema{"schema": o.body}}}
	}
	if rt.Needs == route.Public {
		described["security"] = []schema{}
	} else {
		scopes := []string{}
		if rt.Needs.Scope() != "" {
			scopes = append(scopes, string(rt.Needs.Scope()))
		}
		described["security"] = []schema{{"bearer": scopes}, {"header": []string{}}, {"cookie": []string{}}}
	}
	return described
}

const (
	jsonMedia = "application/json"
	formMedia = "application/x-www-form-urlencoded"
)

// statusTexts describe the statuses that not every route can have.
var statusTexts = map[string]string{
	"400": "The request is not valid; the description says what would be right",
	"401": "The client is unknown or deactivated, or its secret is wrong",
	"404": "It does not exist, or is not visible to the caller",
	"429": "Too many of these; the Retry-After header says for how many seconds to wait",
	"503": "A quota or the disk is full, or the store cannot be read",
}

// responses are the possible answers, by status.
func (o operation) responses(rt dialectRoute) schema {
	answer := schema{"schema": cmpSchema(o.answer)}
	if o.answer == nil {
		answer = schema{}
	}
	success := "200"
	if o.created {
		success = "201"
	}
	all := schema{success: schema{"description": "Success", "content": schema{cmp.Or(o.answerType, jsonMedia): answer}}}
	wrong := map[string]string{"500": "The server failed; its log has the cause"}
	if rt.Needs != route.Public {
		wrong["401"], wrong["403"] = "No credential, or one that is not valid", "The credential, or its user, may not do this"
		wrong["400"] = "The request is not valid; the message says what would be right"
		wrong["503"] = "The server is busy, or has too many of the caller's requests; the Retry-After header says for how " +
			"many seconds to wait"
	}
	failed := ref("Error")
	if rt.dialect == request.OAuth {
		failed = ref("OAuthError")
	} else if strings.Contains(rt.Pattern, "{") || o.body != nil {
		wrong["404"] = statusTexts["404"]
	}
	if o.answer == nil && !o.refused {
		all["206"] = schema{"description": "Some of the bytes", "content": schema{o.answerType: schema{}}}
		all["304"] = schema{"description": "Nothing has changed"}
		wrong["412"], wrong["416"] = "The file has changed", "The range is outside the file"
	}
	if o.refused {
		all = schema{}
		wrong = map[string]string{"401": wrong["401"], "403": wrong["403"], "405": "Always"}
	}
	if o.mcp {
		all["200"] = schema{"description": "Success", "content": schema{jsonMedia: answer, "text/event-stream": schema{}}}
		all["202"] = schema{"description": "Accepted; there is no answer"}
		delete(wrong, "404")
		for _, status := range []string{"400", "403", "404", "406", "415", "500"} {
			delete(wrong, status)
			all[status] = schema{"description": "An answer of JSON-RPC, or an error as elsewhere",
				"content": schema{jsonMedia: schema{
					"schema": schema{"anyOf": []any{of[mcpAnswer](nil), ref("Error")}}}}}
		}
	}
	for _, status := range o.wrong {
		wrong[status] = statusTexts[status]
	}
	for status, description := range wrong {
		all[status] = schema{"description": description, "content": schema{jsonMedia: schema{"schema": failed}}}
	}
	return all
}

// operationID names an operation, such as get_api_files_id.
func operationID(rt route.Route) string {
	words := strings.FieldsFunc(rt.Method+rt.Pattern, func(r rune) bool { return strings.ContainsRune("/{}-.", r) })
	return strings.ToLower(strings.Join(words, "_"))
}

func cmpSchema(s schema) schema {
	if s == nil {
		return schema{}
	}
	return s
}

func readerOf(document []byte) io.ReadSeeker { return bytes.NewReader(document) }

// Helpers for writing schemas.

func ref(name string) schema { return schema{"$ref": "#/components/schemas/" + name} }

func text(description string) schema { return described(schema{"type": "string"}, description) }

// nameLength is the maximum length of names and ids, in characters.
const nameLength = 128

// projectLength is the maximum length of a project reference, in characters: its id, preceded by its owner.
const projectLength = 2*nameLength + 1

// pathLength is the maximum length of a path parameter, in characters: a project's id may be preceded by its owner.
func pathLength(rt route.Route, name string) int {
	if name == "id" && strings.HasPrefix(rt.Pattern, "/api/projects/") {
		return projectLength
	}
	return nameLength
}

// line is the schema of a name or id: not blank, and without control characters.
func line(description string, most int) schema {
	return described(schema{"type": "string", "minLength": 1, "maxLength": most,
		"pattern": `^[^\u0000-\u001f\u007f-\u009f]*[^\u0000-\u001f\u007f-\u009f\s][^\u0000-\u001f\u007f-\u009f]*$`},
		description)
}

// projectNamed is the id of a project, or OWNER/ID, in a query; empty for none.
func projectNamed(description string) schema {
	shared := line("", projectLength)
	shared["pattern"] = `^[^\u0000-\u001f\u007f-\u009f]*/[^\u0000-\u001f\u007f-\u009f]*$`
	return described(schema{"type": "string", "anyOf": []any{line("", nameLength), shared, constant("")}}, description)
}

func number(description string) schema { return described(schema{"type": "integer"}, description) }

func moment(description string) schema {
	return described(schema{"type": "string", "format": "date-time"}, description)
}

func list(of schema, description string) schema {
	return described(schema{"type": "array", "items": of}, description)
}

func word[S ~string](description string, allowed ...S) schema {
	return described(schema{"type": "string", "enum": allowed}, description)
}

func constant(value any) schema { return schema{"const": value} }

// orNull also allows null.
func orNull(s schema) schema {
	s = maps.Clone(s)
	s["type"] = []any{s["type"], "null"}
	return s
}

func described(s schema, description string) schema {
	if description != "" {
		s["description"] = description
	}
	return s
}

// object is an object with exactly these members; all but the optional ones are required.
func object(members schema, optional ...string) schema {
	required := slices.DeleteFunc(slices.Sorted(maps.Keys(members)),
		func(name string) bool { return slices.Contains(optional, name) })
	return schema{"type": "object", "properties": members, "required": required, "additionalProperties": false}
}

// anything is an object of any form.
func anything(description string) schema { return described(schema{"type": "object"}, description) }

func scopeList(description string) schema {
	return list(word("", souvenir.Scopes()...), description)
}
