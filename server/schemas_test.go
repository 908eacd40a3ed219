package server

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func TestSchemasAreMadeFromTypes(t *testing.T) {
	type part struct {
		Role souvenir.MemberRole `json:"role"`
	}
	type made struct {
		part
		Name   *string         `json:"name"`
		Days   []float64       `json:"days,omitempty"`
		Since  time.Time       `json:"since"`
		Until  time.Time       `json:"until,omitzero"`
		Files  []souvenir.File `json:"files"`
		Part   part            `json:"part"`
		Any    any             `json:"any"`
		Secret string          `json:"-"`
	}
	role := schema{"type": "string", "enum": []string{"reader", "writer", "owner"}}
	want := schema{
		"type": "object", "additionalProperties": false,
		"required": []string{"any", "files", "name", "part", "role", "since"},
		"properties": schema{
			"role": role, "name": schema{"type": []string{"string", "null"}, "description": "first"},
			"days": schema{"type": "array", "items": schema{"type": "number"}}, "since": moment(""), "until": moment(""),
			"files": schema{"type": "array", "items": schema{"$ref": "#/components/schemas/File"}},
			"part": schema{"type": "object", "properties": schema{"role": role}, "required": []string{"role"},
				"additionalProperties": false},
			"any": schema{"type": "object"},
		},
	}
	got := of[made](schema{"name": note("first")})
	if got, want := plainJSON(t, got), plainJSON(t, want); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestEveryReferenceOfTheDocumentLeadsToASchema(t *testing.T) {
	known := components()
	encoded, err := json.Marshal([]any{known, string(roomsOnly("https://memory.example").openAPI())})
	if err != nil {
		t.Fatal(err)
	}
	var used []string
	for _, found := range regexp.MustCompile(`#/components/schemas/(\w+)`).FindAllSubmatch(encoded, -1) {
		used = append(used, string(found[1]))
		if known[string(found[1])] == nil {
			t.Errorf("got no schema %s, want one", found[1])
		}
	}
	for name := range known {
		if name == "" || !slices.Contains(used, name) {
			t.Errorf("nothing refers to the schema %q, want a reference", name)
		}
	}
}

func plainJSON(t *testing.T, value any) (plain any) {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(strings.NewReader(string(encoded))).Decode(&plain); err != nil {
		t.Fatal(err)
	}
	return plain
}
