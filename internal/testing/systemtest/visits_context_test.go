package systemtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/souvenir-ai/souvenir"
)

// contextVisits are the visits of the methods that return contexts, identities, main memories and modules.
var contextVisits = map[string]func(v visit){
	"GetContext": func(v visit) {
		v.kinds("IDENTITY")
		for _, query := range []string{"", "common kettle"} {
			for _, project := range projectRefs {
				c, err := v.view.GetContext(v.Context(), ContextQuery{Query: query, ProjectID: project, Related: MaxContextRelated})
				if err != nil {
					if !errors.Is(err, ErrInvalid) { // an id that matches two
						v.Errorf("GetContext of %q: %v, want ErrInvalid", project, err)
					}
					v.check("GetContext of "+project, nil, err, "secretplan")
					continue
				}
				v.check("GetContext of "+project, asJSON(v.T, c), nil, "secretplan")
				all := []Memory{}
				if c.Identity != nil {
					all = append(all, c.Identity.Memory)
				}
				for _, m := range slices.Concat(c.Related, c.GeneralDoDont, c.ProjectDoDont) {
					all = append(all, m.Memory)
				}
				v.found(fmt.Sprintf("GetContext of %q by %q", project, query), all, nil)
			}
		}
	},
	"GetIdentityMemory": func(v visit) {
		v.kinds("IDENTITY")
		m, err := v.view.GetIdentityMemory(v.Context())
		v.check("GetIdentityMemory", asJSON(v.T, m), err)
		own := v.seesOwn()
		switch {
		case own && (err != nil || m.Owner != v.access.User):
			v.Errorf("GetIdentityMemory gives one of %s, %v", m.Owner, err)
		case !own && !errors.Is(err, ErrNotFound):
			v.Errorf("GetIdentityMemory of a user without one: got %v, want ErrNotFound", err)
		}
	},
	"SetIdentityMemory": func(v visit) {
		v.kinds("IDENTITY")
		before := map[string]Memory{}
		for name, id := range v.n.ids {
			before[name] = v.n.memory(v.T, id)
		}
		stored, err := v.view.SetIdentityMemory(v.Context(), IdentityMemory{Content: "I am the visitor."})
		v.check("SetIdentityMemory", asJSON(v.T, stored), err)
		own := v.seesOwn()
		if v.access.Projects != nil && !own && errors.Is(err, ErrForbidden) {
			err = v.visitor.adds // an identity in another user's project belongs to the owner
		}
		if want := v.visitor.adds; (!own || v.access.ReadOnly) && !errors.Is(err, want) || own && !v.access.ReadOnly &&
			err != nil {
			v.Errorf("SetIdentityMemory gives %v, want %v", err, want)
		}
		for name, m := range before {
			if after := v.n.memory(v.T, m.ID); after.Revision != m.Revision &&
				(m.Owner != v.access.User || !slices.Contains(v.sees, name)) {
				v.Errorf("SetIdentityMemory changes %s of %s, want only those of the visitor changed", name, m.Owner)
			}
		}
	},
	"GetMainMemory": func(v visit) {
		v.kinds("project-main")
		for _, project := range projectRefs[1:] {
			for _, ref := range []ProjectRef{{ID: project}, {Name: project}} {
				m, err := v.view.GetMainMemory(v.Context(), ref)
				if err != nil {
					v.check("GetMainMemory of "+project, nil, err, "secretplan")
					if !isAny(err, ErrNotFound, ErrInvalid) {
						v.Errorf("GetMainMemory of %q: %v, want ErrNotFound or ErrInvalid", project, err)
					}
					continue
				}
				v.check("GetMainMemory of "+project, asJSON(v.T, m), nil)
			}
		}
		_, err := v.view.GetMainMemory(v.Context(), ProjectRef{ID: "alice/shared"})
		if seen := slices.Contains(v.sees, "aliceopen"); seen && err != nil || !seen && !isAny(err, ErrNotFound, ErrInvalid) {
			v.Errorf("GetMainMemory of alice/shared gives %v", err)
		}
	},
	"Modules": func(v visit) {
		for _, project := range projectRefs {
			modules, err := v.view.Insights().Modules(v.Context(), ProjectRef{ID: project})
			v.check("Modules of "+project, asJSON(v.T, modules), err, "secretplan")
			for _, m := range modules {
				if name, ok := strings.CutPrefix(m.Name, "module"); !ok || m.Memories != 1 || !slices.Contains(v.sees, name) {
					v.Errorf("Modules of %q counts %d memories of %s, want one of a module that this viewer sees, "+
						"of %v", project, m.Memories, m.Name, v.sees)
				}
			}
			if project == "" && len(modules) != len(v.sees) {
				v.Errorf("Modules is %v, want one for each of the %d visible memories", modules, len(v.sees))
			}
		}
	},
	"GetModuleState": func(v visit) {
		for _, module := range []string{"everyone", "kettle"} {
			state, err := v.view.GetModuleState(v.Context(), ModuleQuery{Module: module, Limit: MaxLimit})
			var all []Memory
			for _, m := range state.Memories {
				all = append(all, m.Memory)
			}
			v.found("GetModuleState of "+module, all, err)
			v.check("GetModuleState of "+module, asJSON(v.T, state), err)
			if module == "everyone" && state.Summary.Total != len(v.sees) {
				v.Errorf("GetModuleState counts %d memories; %d can be seen, want the same", state.Summary.Total, len(v.sees))
			}
		}
		for _, m := range neighbours {
			state, err := v.view.GetModuleState(v.Context(), ModuleQuery{Module: "tag" + m.name})
			state.Module = ""
			v.check("GetModuleState of a tag", asJSON(v.T, state), err, m.name)
			if (state.Summary.Total == 1) != slices.Contains(v.sees, m.name) {
				v.Errorf("GetModuleState of the tag of %s counts %d, want 1 only if it can be seen", m.name, state.Summary.Total)
			}
			for _, project := range projectRefs {
				state, err := v.view.GetModuleState(v.Context(), ModuleQuery{Module: "everyone", ProjectID: project})
				v.check("GetModuleState in "+project, asJSON(v.T, state), err, "secretplan")
			}
		}
	},
}

// projectRefs are the ways in which visitors name projects; the first names none.
var projectRefs = []string{"", "shared", "alice/shared", "eve/shared", "secretplan", "alice/secretplan"}

// seesOwn reports whether the visitor sees an own memory.
func (v visit) seesOwn() bool {
	for _, m := range neighbours {
		if ownerOf(m.user, m.project) == v.access.User && slices.Contains(v.sees, m.name) {
			return true
		}
	}
	return false
}

// kinds gives every memory an event type.
func (v visit) kinds(eventType string) {
	v.Helper()
	for _, m := range neighbours {
		if _, err := v.n.store.As(Access{User: ownerOf(m.user, m.project)}).UpdateMemory(v.Context(), v.n.ids[m.name],
			MemoryUpdate{ShownMetadata: map[string]any{"event_type": eventType}}); err != nil {
			v.Fatal(err)
		}
	}
}

// memory reads a memory as its owner.
func (n neighbourhood) memory(t *testing.T, id string) Memory {
	t.Helper()
	for _, m := range neighbours {
		if n.ids[m.name] == id {
			found, err := n.store.As(Access{User: m.user}).GetMemory(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return found
		}
	}
	t.Fatalf("got no memory %s, want one", id)
	return Memory{}
}

func asJSON(t *testing.T, answer any) string {
	t.Helper()
	encoded, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}
