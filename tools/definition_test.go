package tools

import (
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir"
)

func TestEveryActionTakesOnlyParametersThatThereAre(t *testing.T) {
	for _, d := range registry {
		names := map[string]int{}
		for _, p := range d.parameters {
			if _, twice := names[p.name]; twice || fold(p.name) == fold(actionName) {
				t.Errorf("%s has the parameter %s twice", d.name, p.name)
			}
			for other := range names {
				if fold(other) == fold(p.name) {
					t.Errorf("%s cannot tell %s from %s in another spelling", d.name, other, p.name)
				}
			}
			names[p.name] = 0
		}
		for _, a := range d.actions {
			taken := slices.Concat(a.required, a.optional)
			for i, name := range taken {
				if _, ok := names[name]; !ok || slices.Contains(taken[:i], name) {
					t.Errorf("%s lists %s, which is no parameter or stands there twice", d.callName(&a), name)
				}
				names[name]++
			}
		}
		for name, uses := range names {
			if uses == 0 {
				t.Errorf("%s tells of %s, which no action takes", d.name, name)
			}
		}
	}
}

func TestEveryActionNeedsTheScopeOfWhatItDoes(t *testing.T) {
	want := map[string]souvenir.Scope{
		"create_collection": souvenir.ScopeMemoryWrite, "list_collections": souvenir.ScopeMemoryRead,
		"memory get_context": souvenir.ScopeMemoryRead, "memory store": souvenir.ScopeMemoryWrite, "memory search": souvenir.ScopeMemoryRead,
		"memory retrieve": souvenir.ScopeMemoryRead, "memory update": souvenir.ScopeMemoryWrite, "memory delete": souvenir.ScopeMemoryWrite,
		"rules store": souvenir.ScopeMemoryWrite, "todo store": souvenir.ScopeMemoryWrite, "todo update_section": souvenir.ScopeMemoryWrite,
		"todo complete": souvenir.ScopeMemoryWrite, "get_project_main_memory": souvenir.ScopeMemoryRead, "get_module_state": souvenir.ScopeMemoryRead,
		"upload_document": souvenir.ScopeFilesWrite,
	}
	for _, d := range registry {
		for _, a := range d.actions {
			name := d.callName(&a)
			if a.scope != want[name] || a.scope == "" {
				t.Errorf("%s needs %q, want %q", name, a.scope, want[name])
			}
			if d.annotations.ReadOnly != (a.scope == souvenir.ScopeMemoryRead) && (d.annotations.ReadOnly || len(d.actions) == 1) {
				t.Errorf("%s says read-only: %v, and needs %s", name, d.annotations.ReadOnly, a.scope)
			}
			delete(want, name)
		}
	}
	for name := range want {
		t.Errorf("there is no %s", name)
	}
}
