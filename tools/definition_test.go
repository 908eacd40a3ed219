package tools

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/souvenir-ai/souvenir"
)

func TestEveryActionTakesOnlyKnownParameters(t *testing.T) {
	for _, d := range registry {
		names := map[string]int{}
		for _, p := range d.parameters {
			if _, twice := names[p.name]; twice || fold(p.name) == fold(actionName) {
				t.Errorf("%s has the parameter %s twice, want it once", d.name, p.name)
			}
			for other := range names {
				if fold(other) == fold(p.name) {
					t.Errorf("%s cannot tell %s from %s in another spelling, want them different", d.name, other, p.name)
				}
			}
			names[p.name] = 0
		}
		for _, a := range d.actions {
			taken := slices.Concat(a.required, a.optional)
			for i, name := range taken {
				if _, ok := names[name]; !ok || slices.Contains(taken[:i], name) {
					t.Errorf("%s lists %s, want a known parameter, once", d.callName(&a), name)
				}
				names[name]++
			}
		}
		for name, uses := range names {
			if uses == 0 {
				t.Errorf("%s: got no action with parameter %s, want one", d.name, name)
			}
		}
	}
}

// Tags can hold only literals: the bounds that clients see must equal those of the store.
func TestBoundsInTagsAreThoseOfTheStore(t *testing.T) {
	const mostTokens = 1_000_000
	type bounds struct{ least, most, preset int }
	want := map[string]bounds{
		"memory limit":                         {1, souvenir.MaxLimit, souvenir.DefaultLimit},
		"memory min_score":                     {0, 1, 0},
		"get_project_main_memory token_budget": {souvenir.MinTokenBudget, mostTokens, souvenir.DefaultTokenBudget},
		"get_module_state limit":               {1, souvenir.MaxLimit, souvenir.DefaultModuleLimit},
		"get_module_state token_budget":        {souvenir.MinTokenBudget, mostTokens, souvenir.DefaultTokenBudget},
	}
	for _, d := range registry {
		for _, p := range d.parameters {
			name := d.name + " " + p.name
			if got := (bounds{p.least, p.most, p.preset}); got != want[name] {
				t.Errorf("%s has the bounds %+v, want %+v", name, got, want[name])
			}
			delete(want, name)
		}
	}
	for name := range want {
		t.Errorf("no parameter %s", name)
	}
}

// Each argument field has the type that its kind decodes to, and tags are written as parametersOf reads them.
func TestEveryArgumentFieldIsDecoded(t *testing.T) {
	given := map[kind]any{word: " a ", text: " a ", integer: json.Number("600"), boolean: true,
		words: []any{"a"}, numbers: []any{json.Number("1")}, object: map[string]any{"a": "b"}}
	known := []string{"json", "doc", "text", "enum", "minimum", "maximum", "default", "project_name", "project_id"}
	tag := regexp.MustCompile(`(\w+):"`)
	for _, d := range registry {
		for field := range d.arguments.Fields() {
			if _, isParameter := field.Tag.Lookup("json"); !isParameter && !field.Anonymous {
				t.Errorf("%s has the field %s, which is no parameter", d.name, field.Name)
			}
			for _, found := range tag.FindAllStringSubmatch(string(field.Tag), -1) {
				if !slices.Contains(known, found[1]) {
					t.Errorf("%s: the field %s: got the tag %s, want one of %q", d.name, field.Name, found[1], known)
				}
			}
		}
		for i := range d.parameters {
			p := &d.parameters[i]
			value := given[p.kind]
			switch {
			case p.allowed != nil:
				value = p.allowed[len(p.allowed)-1]
			case p.most != 0:
				value = json.Number(strconv.Itoa(p.most))
			}
			decoded, err := p.decode(p.name, value)
			if err != nil {
				t.Errorf("%s %s: %v", d.name, p.name, err)
				continue
			}
			made := reflect.New(d.arguments).Elem()
			if p.set(made, decoded); made.FieldByIndex(p.index).IsZero() {
				t.Errorf("%s %s: got an unset field, want %v", d.name, p.name, decoded)
			}
		}
	}
}

func TestEveryActionNeedsTheScopeOfWhatItDoes(t *testing.T) {
	want := map[string]souvenir.Scope{
		"create_collection": souvenir.ScopeMemoryWrite, "list_collections": souvenir.ScopeMemoryRead,
		"memory get_context": souvenir.ScopeMemoryRead, "memory store": souvenir.ScopeMemoryWrite,
		"memory search":   souvenir.ScopeMemoryRead,
		"memory retrieve": souvenir.ScopeMemoryRead, "memory update": souvenir.ScopeMemoryWrite,
		"memory delete": souvenir.ScopeMemoryWrite,
		"rules store":   souvenir.ScopeMemoryWrite, "todo store": souvenir.ScopeMemoryWrite,
		"todo update_section": souvenir.ScopeMemoryWrite,
		"todo complete":       souvenir.ScopeMemoryWrite, "get_project_main_memory": souvenir.ScopeMemoryRead,
		"get_module_state": souvenir.ScopeMemoryRead,
		"upload_document":  souvenir.ScopeFilesWrite,
	}
	for _, d := range registry {
		for _, a := range d.actions {
			name := d.callName(&a)
			if a.scope != want[name] || a.scope == "" {
				t.Errorf("%s needs %q, want %q", name, a.scope, want[name])
			}
			if d.annotations.ReadOnly != (a.scope == souvenir.ScopeMemoryRead) &&
				(d.annotations.ReadOnly || len(d.actions) == 1) {
				t.Errorf("%s says read-only: %v, and needs %s, want the same", name, d.annotations.ReadOnly, a.scope)
			}
			delete(want, name)
		}
	}
	for name := range want {
		t.Errorf("there is no %s", name)
	}
}
