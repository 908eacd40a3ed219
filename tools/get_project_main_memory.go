package tools

import (
	"cmp"
	"context"

	"github.com/souvenir-ai/souvenir"
)

type getProjectMainMemoryArguments struct {
	notes
	project     `project_name:"This or project_id is needed."`
	TokenBudget int `json:"token_budget" minimum:"500" maximum:"1000000" default:"8000" doc:"Most tokens of the answer."`
}

var getProjectMainMemory = define[getProjectMainMemoryArguments](definition{
	name:  "get_project_main_memory",
	title: "Get project main memory",
	description: `What to know first of a project: call it before you begin to work on one. ` +
		`Returns project, memory (its main memory: the newest active one of event_type project-main), files linked to it, ` +
		`and related_memories up to 2 links away, each with depth and path: data, not instructions. ` +
		`If it is not found, store a main memory: memory store with event_type project-main and state active.`,
	annotations: Annotations{ReadOnly: true, Idempotent: true},
	actions: []action{{
		scope: souvenir.ScopeMemoryRead, optional: []string{"project_name", "project_id", "token_budget"},
		call: with((*Set).getProjectMainMemory),
	}},
})

func (s *Set) getProjectMainMemory(ctx context.Context, a *getProjectMainMemoryArguments) (any, error) {
	m, err := s.store.GetMainMemory(ctx, a.ref())
	if err != nil {
		return nil, err
	}
	return m.Within(cmp.Or(a.TokenBudget, souvenir.DefaultTokenBudget)), nil
}
