package tools_test

import (
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
)

func TestRulesStore(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name: "a new one", tool: "rules",
			args: `{"action": "store", "project_name": "Bridge", "rule_type": "dont", "content": "No wood.", "tags": "stone", ` +
				`"related_memory_ids": ["{pillars}"]}`,
			want: map[string]any{
				"created": true, "updated": false, "revision": 1, "memory.content": "No wood.", "memory.metadata.rule_type": "dont",
				"memory.metadata.event_type": "project-rule",
				"memory.metadata.project_id": "p-bridge", "memory.metadata.tags": []any{"stone"},
				"memory.metadata.related_memory_ids": []any{"{pillars}"}, "indexed": true,
			},
		},
		{
			name: "in place of the one there is", tool: "rules",
			args: `{"action": "store", "project_id": "p-bridge", "rule_type": "do", "content": "Use more granite."}`,
			want: map[string]any{"id": "{rule}", "created": false, "updated": true, "revision": 2, "memory.id": "{rule}",
				"memory.content": "Use more granite."},
		},
		{
			name: "the general one", tool: "rules", args: `{"action": "store", "rule_type": "dont", "content": "No haste."}`,
			want: map[string]any{"id": "{general}", "updated": true, "memory.metadata.project_id": nil},
		},
		{
			name: "of a new project", tool: "rules",
			args: `{"action": "store", "project_id": "p-new", "rule_type": "do", "content": "Begin."}`,
			want: map[string]any{"created": true, "memory.metadata.project_id": "p-new"},
		},
		{
			name: "as a writer", who: "writer", tool: "rules",
			args: `{"action": "store", "project_name": "Bridge", "rule_type": "do", "content": "Use less granite."}`,
			want: map[string]any{"id": "{rule}", "updated": true, "memory.owner": "anna"},
		},
		{
			name: "another revision than expected", tool: "rules",
			args: `{"action": "store", "project_id": "p-bridge", "rule_type": "do", "content": "x", "expected_revision": 7}`,
			kind: souvenir.KindConflict, argument: "expected_revision",
		},
		{name: "no type", tool: "rules", args: `{"action": "store", "content": "x"}`, kind: invalid, argument: "rule_type",
			says: []string{"rule_type is missing"}},
		{name: "no content", tool: "rules", args: `{"action": "store", "rule_type": "do"}`, kind: invalid,
			argument: "content", says: []string{"content is missing"}},
		{name: "an unknown type", tool: "rules", args: `{"action": "store", "rule_type": "todo", "content": "x"}`,
			kind: invalid, argument: "rule_type", says: []string{`"todo"`, `"do" or "dont"`}},
		{name: "no action", tool: "rules", args: `{"rule_type": "do", "content": "x"}`, kind: invalid, argument: "action"},
	})
}

func TestThereIsOneRuleOfATypeHoweverOftenItIsStored(t *testing.T) {
	w := newWorld(t)
	for _, content := range []string{"one", "two", "two", "three"} {
		w.must("owner", "rules", `{"action": "store", "project_id": "p-bridge", "rule_type": "do", "content": "`+content+`"}`)
	}
	w.check(scenario{tool: "memory", args: `{"action": "search", "filter": {"rule_type": "do", "project_id": "p-bridge"}}`,
		want: map[string]any{"total": 1, "results.0.memories.0.content": "three", "results.0.memories.0.revision": 4}})
}

// todoCalls are calls of the tool todo for the projects of anna.
var todoCalls = []scenario{
	{
		name: "store", tool: "todo",
		args: `{"action": "store", "project_name": "Tunnel", "content": "## Constitution\n## Spec\n## Plan\n## Tasks\n- [ ` +
			`] T1 dig\n## Gaps\n", "tags": ["deep"]}`,
		want: map[string]any{"created": true, "updated": false, "revision": 1,
			"progress":                  map[string]any{"done": 0, "total": 1},
			"memory.metadata.rule_type": "todo", "memory.metadata.project_name": "Tunnel",
			"memory.metadata.tags": []any{"deep"}},
	},
	{
		name: "store in place of the one there is", tool: "todo",
		args: `{"action": "store", "project_id": "p-bridge", "content": "## Constitution\n## Spec\n## Plan\n## Tasks\n## ` +
			`Gaps\n"}`,
		want: map[string]any{"id": "{todo}", "updated": true, "revision": 2,
			"progress": map[string]any{"done": 0, "total": 0}},
	},
	{name: "store without a section", tool: "todo",
		args: `{"action": "store", "project_id": "p-bridge", "content": "## Constitution\n## Spec\n## Tasks\n## Gaps\n"}`,
		kind: invalid, argument: "content", says: []string{"## Plan"}},
	{name: "store without a project", tool: "todo",
		args: `{"action": "store", "content": "## Constitution\n## Spec\n## Plan\n## Tasks\n## Gaps\n"}`, kind: invalid,
		argument: "project_id", says: []string{"project_name"}},
	{name: "store nothing", tool: "todo", args: `{"action": "store", "project_id": "p-bridge", "content": ""}`,
		kind: invalid, argument: "content"},
	{
		name: "update a section", tool: "todo",
		args: `{"action": "update_section", "project_id": "p-bridge", "section": "Gaps", "content": "No one pays."}`,
		want: map[string]any{"id": "{todo}", "created": false, "updated": true, "revision": 2,
			"memory.content": strings.Replace(bridgeTodo, "Who pays?\n", "No one pays.\n", 1),
			"progress":       map[string]any{"done": 1, "total": 3}},
	},
	{
		name: "empty a section", tool: "todo",
		args: `{"action": "update_section", "project_id": "p-bridge", "section": "gaps", "content": ""}`,
		want: map[string]any{"revision": 2, "memory.content": strings.Replace(bridgeTodo, "Who pays?\n", "", 1)},
	},
	{name: "an unknown section", tool: "todo",
		args: `{"action": "update_section", "project_id": "p-bridge", "section": "ideas", "content": "x"}`, kind: invalid,
		argument: "section", says: []string{`"ideas"`, `"constitution", "spec", "plan", "tasks" or "gaps"`}},
	{name: "a section with a heading in it", tool: "todo",
		args: `{"action": "update_section", "project_id": "p-bridge", "section": "plan", "content": "## Tasks\n"}`,
		kind: invalid, argument: "content", says: []string{"## Tasks"}},
	{name: "a section of a project without a todo", tool: "todo",
		args: `{"action": "update_section", "project_id": "p-vault", "section": "plan", "content": "x"}`, kind: notFound,
		argument: "project_id"},
	{name: "a section without content", tool: "todo",
		args: `{"action": "update_section", "project_id": "p-bridge", "section": "plan"}`, kind: invalid,
		argument: "content"},
	{
		name: "complete a task", tool: "todo", args: `{"action": "complete", "project_id": "p-bridge", "task_id": "T2"}`,
		want: map[string]any{"id": "{todo}", "task.id": "T2", "task.done": true, "already_completed": false,
			"progress":     map[string]any{"done": 2, "total": 3},
			"next_task.id": "T12", "next_task.text": "open the bridge", "revision": 2},
	},
	{
		name: "complete one that is done", tool: "todo",
		args: `{"action": "complete", "project_id": "p-bridge", "task_id": "t1"}`,
		want: map[string]any{"task.id": "T1", "already_completed": true, "revision": 1, "next_task.id": "T2"},
	},
	{name: "complete an unknown task", tool: "todo",
		args: `{"action": "complete", "project_id": "p-bridge", "task_id": "T3"}`, kind: notFound, argument: "task_id",
		says: []string{`"T3"`, "T2", "T12"}},
	{name: "complete nothing", tool: "todo", args: `{"action": "complete", "project_id": "p-bridge"}`, kind: invalid,
		argument: "task_id", says: []string{"task_id is missing"}},
	{name: "complete without a project", tool: "todo", args: `{"action": "complete", "task_id": "T2"}`, kind: invalid,
		argument: "project_id"},
	{name: "a view of one project names it, too", who: "limited", tool: "todo",
		args: `{"action": "complete", "task_id": "T2", "project_id": "p-bridge"}`,
		want: map[string]any{"id": "{todo}", "next_task.id": "T12"}},
}

func TestTodo(t *testing.T) {
	ticked := strings.Replace(bridgeTodo, "- [ ] T2", "- [x] T2", 1)
	runScenarios(t, todoCalls)
	w := newWorld(t)
	w.must("writer", "todo", `{"action": "complete", "project_name": "Bridge", "task_id": "T2"}`)
	w.check(scenario{who: "reader", tool: "memory", args: `{"action": "get_context", "project_name": "Bridge"}`,
		want: map[string]any{"project_rules.todo.content": ticked}})
	w.must("writer", "todo", `{"action": "complete", "project_name": "Bridge", "task_id": "T12"}`)
	w.check(scenario{tool: "todo", args: `{"action": "complete", "project_id": "p-bridge", "task_id": "T12"}`,
		want: map[string]any{"already_completed": true, "next_task": nil}})
}
