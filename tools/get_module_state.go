package tools

import (
	"cmp"
	"context"

	"github.com/souvenir-ai/souvenir"
)

var getModuleState = definition{
	name:  "get_module_state",
	title: "Get module state",
	description: `All that is known of one module, component or feature: call it before you change it. ` +
		`Returns memories (first those whose metadata.module_name or tags name it, then related ones), files, and a summary: counts by event_type and state, newest changes, open tasks that name it. ` +
		`To be found here, store memories with metadata {"module_name": "..."}.`,
	annotations: Annotations{ReadOnly: true, Idempotent: true},
	parameters: []parameter{
		{name: "module_name", kind: word},
		{name: "project_name", kind: word, description: "Left out, with project_id: all projects."},
		{name: "project_id", kind: word},
		{name: "limit", kind: integer, least: 1, most: souvenir.MaxLimit, preset: souvenir.DefaultModuleLimit, description: "Memories to return."},
		{name: "token_budget", kind: integer, least: souvenir.MinTokenBudget, most: 1_000_000, preset: souvenir.DefaultTokenBudget, description: "Most tokens of the answer."},
	},
	actions: []action{{
		scope:    souvenir.ScopeMemoryRead,
		required: []string{"module_name"}, optional: []string{"project_name", "project_id", "limit", "token_budget"},
		call: (*Set).getModuleState,
	}},
}

func (s *Set) getModuleState(ctx context.Context, a *arguments) (any, error) {
	project := a.project()
	state, err := s.store.ModuleState(ctx, souvenir.ModuleQuery{
		Module: a.text("module_name"), ProjectID: project.ID, ProjectName: project.Name, Limit: a.integer("limit"),
	})
	if err != nil {
		return nil, err
	}
	return state.Within(cmp.Or(a.integer("token_budget"), souvenir.DefaultTokenBudget)), nil
}
