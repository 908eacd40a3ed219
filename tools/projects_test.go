package tools_test

import "testing"

func TestGetProjectMainMemory(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name: "with files and related memories", tool: "get_project_main_memory", args: `{"project_name": "Bridge"}`,
			want: map[string]any{
				"project.project_id": "p-bridge", "project.project_name": "Bridge", "memory.id": "{main}",
				"memory.content":             "The bridge of granite spans the river.",
				"memory.metadata.event_type": "project-main", "files.0.id": "{plan}", "files.0.memory_id": "{main}", "files.1": nil,
				"related_memories.0.id": "{pillars}", "related_memories.0.depth": 1,
				"related_memories.0.path": []any{"{main}", "{pillars}"}, "related_memories.1.id": "{diary}",
			},
		},
		{
			name: "as a member", who: "reader", tool: "get_project_main_memory", args: `{"project_id": "anna/p-bridge"}`,
			want: map[string]any{"project.role": "reader", "memory.id": "{main}", "related_memories.0.id": "{pillars}",
				"related_memories.1": nil}, never: []string{"{diary}"},
		},
		{name: "an unknown project", tool: "get_project_main_memory", args: `{"project_name": "Tunnel"}`, kind: notFound,
			argument: "project_name", says: []string{`"Tunnel"`}},
		{name: "an unknown id", tool: "get_project_main_memory", args: `{"project_id": "p-9"}`, kind: notFound,
			argument: "project_id", says: []string{`"p-9"`}},
		{name: "no project", tool: "get_project_main_memory", args: `{}`, kind: invalid, argument: "project_id",
			says: []string{"project_name"}},
		{name: "as a stranger", who: "stranger", tool: "get_project_main_memory", args: `{"project_name": "Bridge"}`,
			kind: notFound, argument: "project_name", never: []string{"{main}", "anna"}},
	})
	w := newWorld(t)
	w.must("owner", "memory", `{"action": "update", "id": "{main}", "state": "archived"}`)
	w.check(scenario{tool: "get_project_main_memory", args: `{"project_name": "Bridge"}`, kind: notFound,
		says: []string{"no main memory", "project-main"}})
}

func TestGetModuleState(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name: "of a project", tool: "get_module_state",
			args: `{"module_name": "Pillars", "project_name": "Bridge", "limit": "1"}`,
			want: map[string]any{
				"module_name": "Pillars", "memories.0.id": "{pillars}", "memories.0.match": "tag", "memories.1": nil,
				"summary.total": 1, "summary.by_event_type.decision": 1, "summary.by_state.active": 1,
				"summary.newest.0.id": "{pillars}", "summary.open_tasks": []any{},
			},
		},
		{
			name: "of all projects", tool: "get_module_state", args: `{"module_name": "pillars"}`,
			want: map[string]any{"summary.total": 2, "files.0.id": "{letter}"},
		},
		{
			name: "as a member", who: "reader", tool: "get_module_state", args: `{"module_name": "pillars"}`,
			want: map[string]any{"summary.total": 1}, never: []string{"{diary}", "{letter}"},
		},
		{
			name: "as a stranger", who: "stranger", tool: "get_module_state", args: `{"module_name": "pillars"}`,
			want: map[string]any{"memories": []any{}, "files": []any{}, "summary.total": 0, "summary.newest": []any{}},
		},
		{name: "an open task", tool: "get_module_state", args: `{"module_name": "bridge", "project_id": "p-bridge"}`,
			want: map[string]any{"summary.open_tasks.0.task_id": "T12"}},
		{name: "no module", tool: "get_module_state", args: `{"project_name": "Bridge"}`, kind: invalid,
			argument: "module_name", says: []string{"module_name is missing"}},
		{name: "a limit too high", tool: "get_module_state", args: `{"module_name": "x", "limit": 101}`, kind: invalid,
			argument: "limit", says: []string{"101", "1 to 100"}},
	})
}

func TestCollections(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name: "create", tool: "create_collection", args: `{"collection_name": "notes", "description": "of the day"}`,
			want: map[string]any{"collection_name": "notes", "description": "of the day", "memory_count": 0,
				"embedder": "words-1"},
		},
		{name: "create what exists", tool: "create_collection", args: `{"collection_name": "work"}`, kind: "conflict",
			argument: "collection_name", says: []string{`"work"`, "already exists"}},
		{
			name: "create what only others have", who: "stranger", tool: "create_collection",
			args: `{"collection_name": "work"}`,
			want: map[string]any{"collection_name": "work", "owner": "dora"},
		},
		{name: "create with the wrong size", tool: "create_collection", args: `{"collection_name": "x", "vector_size": 1536}`,
			kind: invalid, argument: "vector_size", says: []string{"1536", "512", "own_vectors"}},
		{name: "create with the right size", tool: "create_collection",
			args: `{"collection_name": "x", "vector_size": "512"}`, want: map[string]any{"vector_size": 512}},
		{name: "create with no size", tool: "create_collection", args: `{"collection_name": "x", "vector_size": 0}`,
			want: map[string]any{"vector_size": 512}},
		{name: "create without a name", tool: "create_collection", args: `{"description": "x"}`, kind: invalid,
			argument: "collection_name", says: []string{"collection_name is missing"}},
		{
			name: "list", tool: "list_collections", args: `{}`,
			want: map[string]any{"count": 3, "collections.0.collection_name": "default",
				"collections.1.collection_name": "empty", "collections.1.memory_count": 0, "collections.2.memory_count": 2,
				"collections.2.description": "anna's work"},
		},
		{
			name: "list as a member", who: "reader", tool: "list_collections", args: ``,
			want: map[string]any{"count": 2, "collections.0.owner": "anna", "collections.1.memory_count": 2,
				"collections.1.description": ""}, never: []string{"empty"},
		},
		{name: "list as a stranger", who: "stranger", tool: "list_collections", args: ``,
			want: map[string]any{"count": 1, "collections.0.owner": "dora"}},
		{name: "list nothing", who: "nothing", tool: "list_collections", args: ``,
			want: map[string]any{"collections": []any{}, "count": 0}},
	})
}
