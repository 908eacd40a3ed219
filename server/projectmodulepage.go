package server

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// modulesPage shows the modules of a project, or what is known of one of them.
type modulesPage struct {
	Head     projectHead
	Module   string
	Error    string
	Known    []knownModule
	LookedAt int  // memories that were gone through for them
	All      bool // which are all that the project has
	State    *moduleState
}

// knownModule is a module that memories name.
type knownModule struct {
	Name     string
	Memories int // among those that were looked at
}

// moduleState is what is known of a module.
type moduleState struct {
	souvenir.ModuleState
	EventTypes, States []moduleCount
	Own, Similar       []listedMemory
	Tasks              []souvenir.ModuleTask // the first of its open ones
	MoreTasks          int
}

type moduleCount struct {
	Name  string
	Count int
}

// modulesLookedAt is how many of a project's memories, those changed last, are gone through to learn which modules there are.
const modulesLookedAt = 1000

func (s *Server) showModules(_ http.ResponseWriter, r *http.Request, c caller) (any, error) {
	head, err := s.projectAt(r, c, "Modules")
	if err != nil {
		return nil, err
	}
	data := modulesPage{Head: head, Module: strings.TrimSpace(r.URL.Query().Get("module"))}
	if err := data.readKnown(r.Context(), c.store); err != nil {
		return nil, err
	}
	shown := page{template: "projectmodules", title: "Modules of " + head.Name, data: data}
	if data.Module == "" {
		return shown, nil
	}
	state, err := c.store.ModuleState(r.Context(), souvenir.ModuleQuery{Module: data.Module, ProjectID: head.Reference().ID, Limit: 30})
	if err != nil {
		_, message := told(err)
		data.Error = sentence(message)
		shown.data = data
		return again(shown, err)
	}
	data.State = s.newModuleState(state)
	shown.title, shown.data = "Module "+openingLine(state.Module)+" of "+head.Name, data
	return shown, nil
}

// readKnown learns which modules there are from the memories that were changed last.
func (p *modulesPage) readKnown(ctx context.Context, store *souvenir.Store) error {
	counts, spelt := map[string]int{}, map[string]string{}
	p.All = true
	for p.LookedAt < modulesLookedAt {
		found, err := store.Search(ctx, souvenir.Query{ProjectID: p.Head.Reference().ID, Limit: souvenir.MaxLimit, Offset: p.LookedAt})
		if err != nil {
			return err
		}
		for _, hit := range found.Hits {
			for name := range modulesOf(hit.Memory) {
				folded := strings.ToLower(name)
				counts[folded]++
				spelt[folded] = cmp.Or(spelt[folded], name)
			}
		}
		p.LookedAt += len(found.Hits)
		p.All = !found.HasMore()
		if p.All || len(found.Hits) == 0 {
			break
		}
	}
	for folded, n := range counts {
		p.Known = append(p.Known, knownModule{spelt[folded], n})
	}
	slices.SortFunc(p.Known, func(a, b knownModule) int { return cmp.Or(b.Memories-a.Memories, cmp.Compare(a.Name, b.Name)) })
	p.Known = p.Known[:min(len(p.Known), 100)]
	return nil
}

// modulesOf are the modules that a memory says it belongs to.
func modulesOf(m souvenir.Memory) map[string]bool {
	names := map[string]bool{}
	if name, ok := m.Metadata["module_name"].(string); ok && strings.TrimSpace(name) != "" {
		names[strings.TrimSpace(name)] = true
	}
	for _, tag := range m.Tags {
		if name, ok := strings.CutPrefix(strings.ToLower(tag), "module:"); ok && strings.TrimSpace(name) != "" {
			names[strings.TrimSpace(tag[len(tag)-len(name):])] = true
		}
	}
	return names
}

// newModuleState makes of what the store knows what the page shows.
func (s *Server) newModuleState(state souvenir.ModuleState) *moduleState {
	shown := &moduleState{ModuleState: state, EventTypes: moduleCounts(state.Summary.EventTypes), States: moduleCounts(state.Summary.States)}
	const most = 20
	shown.Tasks = state.Summary.OpenTasks[:min(len(state.Summary.OpenTasks), most)]
	shown.MoreTasks = len(state.Summary.OpenTasks) - len(shown.Tasks)
	for _, m := range state.Memories {
		if m.Match == souvenir.MatchMeaning {
			shown.Similar = append(shown.Similar, s.listMemory(m.Memory, m.EventType))
		} else {
			shown.Own = append(shown.Own, s.listMemory(m.Memory, m.EventType))
		}
	}
	return shown
}

// moduleCounts are counts, the largest first.
func moduleCounts(counts map[string]int) []moduleCount {
	var all []moduleCount
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, moduleCount{name, counts[name]})
	}
	slices.SortStableFunc(all, func(a, b moduleCount) int { return b.Count - a.Count })
	return all[:min(len(all), 20)]
}
