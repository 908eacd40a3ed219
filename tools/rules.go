package tools

import (
	"context"

	"github.com/souvenir-ai/souvenir"
)

type rulesArguments struct {
	notes
	RuleType         souvenir.RuleType `json:"rule_type" enum:"do,dont"`
	Content          string            `json:"content" text:"verbatim" doc:"The whole rule text, Markdown."`
	project          `project_name:"Left out, with project_id: rules for everywhere."`
	Tags             []string `json:"tags"`
	Related          []string `json:"related_memory_ids"`
	ExpectedRevision int      `json:"expected_revision" doc:"Fail if the rule was changed since you read this revision."`
}

var rulesTool = define[rulesArguments](definition{
	name:  "rules",
	title: "Rules",
	description: `Keep the long-form rules that have to be followed: what to do and what not to do in a project, or, ` +
		`without a project, everywhere. ` +
		`There is one text per rule_type; store replaces it as a whole, so begin with the present one (memory get_context: ` +
		`project_rules, general_do_dont). ` +
		`Use it when the user states a lasting rule. Returns id, created or updated, revision, memory.`,
	annotations: Annotations{Idempotent: true},
	actions: []action{{
		name: "store", scope: souvenir.ScopeMemoryWrite,
		required: []string{"rule_type", "content"},
		optional: []string{"project_name", "project_id", "tags", "related_memory_ids", "expected_revision"},
		call:     with((*Set).storeRule),
	}},
})

func (s *Set) storeRule(ctx context.Context, a *rulesArguments) (any, error) {
	return s.store.SetRule(ctx, souvenir.NewRule{
		ProjectID: a.ProjectID, ProjectName: a.ProjectName, Type: a.RuleType, Content: a.Content,
		Tags: a.Tags, Related: a.Related, ExpectedRevision: a.ExpectedRevision,
	})
}
