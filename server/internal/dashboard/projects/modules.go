package projects

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// modulesPage is the data of the page of a project's modules, or of one of them.
type modulesPage struct {
	Head   projectHead
	Module string
	Error  string
	Known  []souvenir.Module // of many, those with the most memories
	More   bool
	State  *moduleState
}

const modulesShown = 50

// moduleState is the state of a module.
type moduleState struct {
	souvenir.ModuleState
	EventTypes, States []moduleCount
	Own, Similar       []listedMemory
	Tasks              []souvenir.ModuleTask // the first open ones
	MoreTasks          int
}

type moduleCount struct {
	Name  string
	Count int
}

func (s *Service) showModules(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	head, err := s.projectAt(r, c, "Modules")
	if err != nil {
		return nil, err
	}
	data := modulesPage{Head: head, Module: strings.TrimSpace(r.URL.Query().Get("module"))}
	if data.Known, err = c.Store.Insights().Modules(r.Context(), head.Reference()); err != nil {
		return nil, err
	}
	if data.More = len(data.Known) > modulesShown; data.More {
		data.Known = data.Known[:modulesShown]
	}
	page := web.Page{Template: "projectmodules", Title: "Modules of " + head.Name, Data: data}
	if data.Module == "" {
		return page, nil
	}
	state, err := c.Store.GetModuleState(r.Context(),
		souvenir.ModuleQuery{Module: data.Module, ProjectID: head.Reference().ID, Limit: 30})
	if err != nil {
		_, message := failure.Describe(err)
		data.Error = web.Sentence(message)
		page.Data = data
		return web.Again(page, err)
	}
	data.State = s.newModuleState(state)
	page.Title, page.Data = "Module "+openingLine(state.Module)+" of "+head.Name, data
	return page, nil
}

// newModuleState converts the store's state of a module for the page.
func (s *Service) newModuleState(state souvenir.ModuleState) *moduleState {
	page := &moduleState{ModuleState: state, EventTypes: moduleCounts(state.Summary.EventTypes),
		States: moduleCounts(state.Summary.States)}
	const most = 20
	page.Tasks = state.Summary.OpenTasks[:min(len(state.Summary.OpenTasks), most)]
	page.MoreTasks = len(state.Summary.OpenTasks) - len(page.Tasks)
	for _, m := range state.Memories {
		if m.Match == souvenir.MatchMeaning {
			page.Similar = append(page.Similar, s.listMemory(m.Memory, m.EventType))
		} else {
			page.Own = append(page.Own, s.listMemory(m.Memory, m.EventType))
		}
	}
	return page
}

// moduleCounts returns the counts, the largest first.
func moduleCounts(counts map[string]int) []moduleCount {
	var all []moduleCount
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, moduleCount{name, counts[name]})
	}
	slices.SortStableFunc(all, func(a, b moduleCount) int { return b.Count - a.Count })
	return all[:min(len(all), 20)]
}
