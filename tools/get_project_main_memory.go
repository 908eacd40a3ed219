package tools

import (
	"cmp"
	"context"

	"github.com/souvenir-ai/souvenir"
)

var getProjectMainMemory = definition{
	name:  "get_project_main_memory",
	title: "Get project main memory",
	description: `What to know first of a project: call it before you begin to work on one. ` +
		`Returns project, memory (its main memory: the newest active one of event_type project-main), files linked to it, and related_memories up to 2 links away, each with depth and path. ` +
		`If it is not found, store a main memory: memory store with event_type project-main and state active.`,
	annotations: Annotations{ReadOnly: true, Idempotent: true},
	parameters: []parameter{
		{name: "project_name", kind: word, description: "This or project_id is needed."},
		{name: "project_id", kind: word},
		{name: "token_budget", kind: integer, least: souvenir.MinTokenBudget, most: 1_000_000, preset: souvenir.DefaultTokenBudget, description: "Most tokens of the answer."},
	},
	actions: []action{{
		scope: souvenir.ScopeMemoryRead, optional: []string{"project_name", "project_id", "token_budget"},
		call: (*Set).getProjectMainMemory,
	}},
}

func (s *Set) getProjectMainMemory(ctx context.Context, a *arguments) (any, error) {
	m, err := s.store.MainMemory(ctx, a.project())
	if err != nil {
		return nil, err
	}
	return m.Within(cmp.Or(a.integer("token_budget"), souvenir.DefaultTokenBudget)), nil
}
