package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// bounded are the keywords of a schema that limit values.
type bounded struct {
	Minimum, Maximum     *float64
	MinLength, MaxLength *int
	MinItems             *int
	Enum                 []string
	Items                *bounded
}

// edges returns values just inside and just outside the limits of a schema. Strings and lists are made from a valid
// one.
func (b bounded) edges(right any) (inside, outside []any) {
	number := func(at float64, inward float64) {
		inside, outside = append(inside, at), append(outside, at-inward)
	}
	if b.Minimum != nil {
		number(*b.Minimum, 1)
	}
	if b.Maximum != nil {
		number(*b.Maximum, -1)
	}
	if b.MinLength != nil {
		inside, outside = append(inside, right), append(outside, strings.Repeat("x", *b.MinLength-1))
	}
	if b.MaxLength != nil {
		outside = append(outside, strings.Repeat("x", *b.MaxLength+1))
	}
	if len(b.Enum) > 0 {
		outside = append(outside, "no-such-word", "")
		for _, word := range b.Enum {
			inside = append(inside, word)
		}
	}
	if b.MinItems != nil {
		outside = append(outside, []any{})
	}
	if b.Items != nil {
		in, out := b.Items.edges(right)
		for _, v := range in {
			inside = append(inside, []any{v})
		}
		for _, v := range out {
			outside = append(outside, []any{v})
		}
	}
	return inside, outside
}

// The limits in the document are the real ones: a value on a limit is accepted, one beyond it is refused with 400 and
// named.
func TestBoundsOfTheDocument(t *testing.T) {
	w := servertest.New(t, server.Options{})
	var document struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name, In string
				Schema   bounded
			}
			RequestBody struct {
				Content map[string]struct {
					Schema struct{ Properties map[string]bounded }
				}
			}
		}
	}
	w.Do(servertest.Guest, "GET", "/openapi.json", "").Expect(http.StatusOK).Decode(&document)
	right := map[string]map[string]any{ // valid bodies
		"post /api/mcp-tokens": {"name": "laptop", "expires_in_days": 30,
			"scopes": []string{"memory:read"}, "projects": []string{"shop"}},
		"post /api/projects/{id}/members":            {"user": "sam", "role": "reader"},
		"patch /api/projects/{id}/members/{user}":    {"role": "writer"},
		"put /api/files/{id}/metadata":               {"description": "x"},
		"post /tools/call":                           {"name": "list_collections"},
		"put /api/user-preferences":                  {},
		"post /mcp":                                  {"jsonrpc": "2.0", "id": 1, "method": "ping"},
		"post /oauth/admin/clients":                  {"redirect_uris": []string{"https://client.example/callback"}},
		"post /oauth/register":                       {"redirect_uris": []string{"https://client.example/callback"}},
		"post /register":                             {"redirect_uris": []string{"https://client.example/callback"}},
		"patch /api/user-preferences":                {},
		"post /api/files/upload multipart/form-data": {},
	}
	tried := 0
	for _, pattern := range slices.Sorted(maps.Keys(document.Paths)) {
		for method, operation := range document.Paths[pattern] {
			path := strings.NewReplacer("/projects/{id}", "/projects/shop", "{user}", "walter", "{id}", w.File).Replace(pattern)
			for _, p := range operation.Parameters {
				if p.In != "query" {
					continue
				}
				inside, outside := p.Schema.edges("x")
				for _, v := range inside {
					tried++
					w.Do(servertest.Owner, strings.ToUpper(method), path+"?"+url.Values{p.Name: {queryValue(v)}}.Encode(),
						"").Expect(http.StatusOK)
				}
				for _, v := range outside {
					if v == "" {
						continue // an empty parameter counts as absent
					}
					tried++
					w.Do(servertest.Owner, strings.ToUpper(method), path+"?"+url.Values{p.Name: {queryValue(v)}}.Encode(),
						"").Expect(http.StatusBadRequest, p.Name)
				}
			}
			for kind, content := range operation.RequestBody.Content {
				if kind == "application/x-www-form-urlencoded" {
					continue // tested separately
				}
				base, known := right[method+" "+pattern]
				if kind != "application/json" {
					base, known = right[method+" "+pattern+" "+kind]
				}
				if !known {
					t.Errorf("%s %s: got a body of type %s, want a type for which this test has a valid body", method,
						pattern, kind)
				}
				for name, schema := range content.Schema.Properties {
					if kind == "application/json" {
						tried += tryEdges(w, method, path, base, name, schema)
					}
				}
			}
		}
	}
	if tried < 30 {
		t.Errorf("only %d values were tried, want at least 30", tried)
	}
}

// queryValue formats a value for a query.
func queryValue(v any) string {
	if n, ok := v.(float64); ok {
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprint(v)
}

// tryEdges sends a body with values on and beyond the limits of a member.
func tryEdges(w *servertest.World, method, path string, base map[string]any, name string, schema bounded) (tried int) {
	w.T.Helper()
	with := func(value any) string {
		body := maps.Clone(base)
		body[name] = value
		encoded, err := json.Marshal(body)
		if err != nil {
			w.T.Fatal(err)
		}
		return string(encoded)
	}
	inside, outside := schema.edges(base[name])
	if name == "scopes" { // only an admin gets every scope
		inside = slices.DeleteFunc(inside,
			func(v any) bool { return fmt.Sprint(v) == fmt.Sprint([]any{souvenir.ScopeAdmin}) })
	}
	for _, v := range inside {
		if method == "post" && strings.HasSuffix(path, "/members") {
			w.Do(servertest.Owner, "DELETE", path+"/sam", "")
		}
		w.Do(servertest.Owner, strings.ToUpper(method), path, with(v)).Expect(http.StatusOK)
	}
	for _, v := range outside {
		w.Do(servertest.Owner, strings.ToUpper(method), path, with(v)).Expect(http.StatusBadRequest, name)
	}
	return len(inside) + len(outside)
}
