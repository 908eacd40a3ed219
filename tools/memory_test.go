package tools_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/souvenir-ai/souvenir"
)

func TestMemoryStore(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name: "into the default collection", tool: "memory", args: `{"action": "store", "content": "Lunch is at noon."}`,
			want: map[string]any{"collection_name": "default", "revision": 1, "indexed": true, "similar": []any{},
				"content": nil},
		},
		{
			name: "into a collection and a new project", tool: "memory",
			args: `{"action": "store", "collection_name": "work", "content": "x", "project_name": "Tunnel"}`,
			want: map[string]any{"collection_name": "work", "project_name": "Tunnel"},
		},
		{
			name: "a near duplicate is reported", tool: "memory",
			args: `{"action": "store", "content": "The pillars are of granite."}`,
			want: map[string]any{"similar.0.id": "{pillars}", "similar.0.collection_name": "work",
				"similar.0.preview": "The pillars are of granite.", "similar.1": nil},
		},
		{
			name: "duplicates of others are not", who: "stranger", tool: "memory",
			args: `{"action": "store", "content": "The pillars are of granite."}`,
			want: map[string]any{"similar": []any{}}, never: []string{"{pillars}"},
		},
		{
			name: "an unknown collection", tool: "memory",
			args: `{"action": "store", "content": "x", "collection_name": "worl"}`,
			kind: notFound, argument: "collection_name", says: []string{`"worl"`, `did you mean "work"?`, "create_collection"},
		},
		{
			name: "an unknown collection, and what others have is no hint", who: "stranger", tool: "memory",
			args: `{"action": "store", "content": "x", "collection_name": "worl"}`,
			kind: notFound, argument: "collection_name", says: []string{"create_collection"}, never: []string{`"work"`},
		},
		{name: "without content", tool: "memory", args: `{"action": "store"}`, kind: invalid, argument: "content",
			says: []string{"content is missing", "memory store"}},
		{name: "with empty content", tool: "memory", args: `{"action": "store", "content": ""}`, kind: invalid,
			argument: "content"},
		{
			name: "with an unknown importance", tool: "memory",
			args: `{"action": "store", "content": "x", "importance": "utmost"}`,
			kind: invalid, argument: "importance", says: []string{`"utmost"`, `"low", "medium", "high" or "critical"`},
		},
		{
			name: "with an unknown classification", tool: "memory",
			args: `{"action": "store", "content": "x", "classification": "maybe"}`,
			kind: invalid, argument: "classification", says: []string{`"maybe"`, `"do", "dont", "todo" or "notes"`},
		},
		{
			name: "with an unknown memory to link to", tool: "memory",
			args: `{"action": "store", "content": "x", "related_memory_ids": "nothing"}`,
			kind: notFound, argument: "related_memory_ids", says: []string{`"nothing"`},
		},
		{
			name: "with a vector that its collection does not take", tool: "memory",
			args: `{"action": "store", "content": "x", "embedding": [1, 0]}`,
			kind: invalid, argument: "embedding",
		},
		{
			name: "a rule takes the place of the one there is", tool: "memory",
			args: `{"action": "store", "content": "Use more granite.", "event_type": "project-rule", "rule_type": "do", ` +
				`"project_id": "p-bridge"}`,
			want: map[string]any{"id": "{rule}", "revision": 2},
		},
		{
			name: "a rule without its type", tool: "memory",
			args: `{"action": "store", "content": "x", "event_type": "project-rule", "project_id": "p-bridge"}`,
			kind: invalid, argument: "rule_type",
		},
	})
}

func TestArgumentsWinOverTheSameKeysInMetadata(t *testing.T) {
	w := newWorld(t)
	stored := w.must("owner", "memory",
		`{"action": "store", "content": "x", "state": "active", "tags": "one", "project_name": "Bridge", "classification": `+
			`"notes",
		"metadata": {"state": "archived", "tags": ["two"], "project_id": "p-vault", "project_name": "p-vault", `+
			`"importance": "LOW", "event_type": "decision",
			"classification": "do", "related_memory_ids": "{main}", "depth": 7, "own": {"a": [1, null]}}}`)
	w.ids["new"] = fmt.Sprint(stored["id"])
	w.check(scenario{tool: "memory", args: `{"action": "retrieve", "id": "{new}"}`, want: map[string]any{
		"memory.metadata": map[string]any{
			"state": "active", "tags": []any{"one"}, "project_id": "p-bridge", "project_name": "Bridge", "importance": "low",
			"event_type":     "decision",
			"classification": "notes", "related_memory_ids": []any{w.ids["main"]}, "depth": 7,
			"own": map[string]any{"a": []any{1, nil}},
		},
	}})
}

func TestMemoryUpdate(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name: "content", tool: "memory",
			args: `{"action": "update", "id": "{pillars}", "content": "The pillars are of basalt."}`,
			want: map[string]any{"id": "{pillars}", "revision": 2, "indexed": true, "collection_name": "work",
				"metadata.architect": "Eva", "content": nil},
		},
		{
			name: "metadata merges and null removes", tool: "memory",
			args: `{"action": "update", "id": "{pillars}", "metadata": {"architect": null, "height": 12, "tags": null, ` +
				`"importance": "Low"}}`,
			want: map[string]any{"revision": 2, "metadata.architect": nil, "metadata.height": 12, "metadata.tags": nil,
				"metadata.importance": "low", "metadata.state": "active"},
		},
		{
			name: "known keys as arguments win", tool: "memory",
			args: `{"action": "update", "id": "{pillars}", "state": "archived", "tags": "a, b", "metadata": {"state": ` +
				`"completed", "tags": "c"}}`,
			want: map[string]any{"metadata.state": "archived", "metadata.tags": []any{"a", "b"}, "metadata.importance": "high"},
		},
		{
			name: "empty arguments take nothing away", tool: "memory",
			args: `{"action": "update", "id": "{pillars}", "content": "x", "tags": [], "state": "", "metadata": {}, ` +
				`"importance": null}`,
			want: map[string]any{"metadata.tags": []any{"pillars", "stone"}, "metadata.state": "active",
				"metadata.importance": "high"},
		},
		{
			name: "an empty list in metadata does", tool: "memory",
			args: `{"action": "update", "id": "{pillars}", "metadata": {"tags": []}}`,
			want: map[string]any{"metadata.tags": nil, "revision": 2},
		},
		{
			name: "the expected revision", tool: "memory",
			args: `{"action": "update", "id": "{pillars}", "content": "x", "expected_revision": "1"}`,
			want: map[string]any{"revision": 2},
		},
		{
			name: "another revision than expected", tool: "memory",
			args: `{"action": "update", "id": "{pillars}", "content": "x", "expected_revision": 3}`,
			kind: souvenir.KindConflict, argument: "expected_revision", says: []string{"3", "1"},
		},
		{name: "with nothing to change", tool: "memory", args: `{"action": "update", "id": "{pillars}"}`, kind: invalid,
			argument: "content", says: []string{"needs one of them"}},
		{name: "without an id", tool: "memory", args: `{"action": "update", "content": "x"}`, kind: invalid, argument: "id",
			says: []string{"id is missing"}},
		{name: "of an unknown memory", tool: "memory", args: `{"action": "update", "id": "nothing", "content": "x"}`,
			kind: notFound, argument: "id", says: []string{`"nothing"`}},
		{
			name: "in its collection", tool: "memory",
			args: `{"action": "update", "id": "{pillars}", "content": "x", "collection_name": "work"}`,
			want: map[string]any{"revision": 2},
		},
		{
			name: "in another collection", tool: "memory",
			args: `{"action": "update", "id": "{pillars}", "content": "x", "collection_name": "empty"}`,
			kind: notFound, argument: "id", says: []string{`collection "empty"`, `it is in "work"`},
		},
		{
			name: "in an unknown collection", tool: "memory",
			args: `{"action": "update", "id": "{pillars}", "content": "x", "collection_name": "werk"}`,
			kind: notFound, argument: "collection_name", says: []string{`did you mean "work"?`},
		},
	})
}

func TestADeletedMemoryIsGoneAndItsFilesStay(t *testing.T) {
	w := newWorld(t)
	w.check(scenario{tool: "memory", args: `{"action": "delete", "id": "{main}", "collection_name": "empty"}`,
		kind: notFound, argument: "id", says: []string{`"work"`}})
	w.check(scenario{tool: "memory", args: `{"action": "delete", "id": "{main}"}`,
		want: map[string]any{"id": "{main}", "deleted": true}})
	for _, action := range []string{"retrieve", "delete"} {
		w.check(scenario{tool: "memory", args: `{"action": "` + action + `", "id": "{main}"}`, kind: notFound, argument: "id",
			says: []string{"{main}"}})
	}
	f, err := w.store.As(personas["owner"].access).GetFile(t.Context(), w.ids["plan"])
	if err != nil || f.MemoryID != "" {
		t.Errorf("the file is %+v, %v; want it to be there, linked to nothing", f, err)
	}
}

func TestMemoryRetrieve(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name: "with its files", tool: "memory", args: `{"action": "retrieve", "id": "{main}"}`,
			want: map[string]any{
				"result": "Memory {main} in collection work, project Bridge, revision 1:\n\nThe bridge of granite spans the " +
					"river.\n\nFiles:\n- plan.txt (text/plain; charset=utf-8, 13 bytes, id {plan})",
				"memory.id": "{main}", "memory.content": "The bridge of granite spans the river.", "memory.collection_name": "work",
				"memory.metadata.event_type": "project-main",
				"files.0": map[string]any{"id": "{plan}", "filename": "plan.txt", "mime_type": "text/plain; charset=utf-8",
					"size": 13}, "files.1": nil,
			},
		},
		{
			name: "without files", tool: "memory", args: `{"action": "retrieve", "id": "{pillars}", "collection_name": "work"}`,
			want: map[string]any{"files": []any{}, "memory.metadata.architect": "Eva"}, never: []string{"Files:"},
		},
		{
			name: "as a member: links to unshared memories are hidden", who: "reader", tool: "memory",
			args: `{"action": "retrieve", "id": "{main}"}`,
			want: map[string]any{"memory.owner": "anna", "memory.metadata.related_memory_ids": []any{"{pillars}"},
				"files.0.filename": "plan.txt"},
		},
		{name: "as a stranger", who: "stranger", tool: "memory", args: `{"action": "retrieve", "id": "{main}"}`,
			kind: notFound, argument: "id", never: []string{"work", "anna"}},
		{name: "from an unknown collection", tool: "memory",
			args: `{"action": "retrieve", "id": "{main}", "collection_name": "x"}`, kind: notFound, argument: "collection_name"},
		{name: "without an id", tool: "memory", args: `{"action": "retrieve"}`, kind: invalid, argument: "id"},
	})
}

// page adds the fields that every answer of a search has, unless they are given.
func page(fields map[string]any) map[string]any {
	for key, value := range map[string]any{"offset": 0, "limit": 7, "warnings": []any{}} {
		if _, ok := fields[key]; !ok {
			fields[key] = value
		}
	}
	return fields
}

// searches are searches of anna's memories, and of others through her view.
var searches = []scenario{
	{
		name: "by relevance", tool: "memory",
		args: `{"action": "search", "query": "what are the pillars made of", "limit": 1}`,
		want: page(map[string]any{
			"limit": 1, "sort_order": "relevance", "has_more": true, "results.0.collection_name": "work",
			"results.0.owner": nil, "results.1": nil,
			"results.0.memories.0.id": "{pillars}", "results.0.memories.0.content": "The pillars are of granite.",
			"results.0.memories.0.rank":     1,
			"results.0.memories.0.revision": nil, "results.0.memories.0.files": []any{}, "results.0.memories.0.file_count": nil,
			"results.0.memories.0.metadata.tags": []any{"pillars", "stone"},
		}),
	},
	{
		name: "without a query", tool: "memory", args: `{"action": "search", "project_id": "p-vault"}`,
		want: page(map[string]any{"sort_order": "updated_at_desc", "total": 1, "has_more": false,
			"results.0.memories.0.score": 0}),
	},
	{
		name: "files are counted", tool: "memory", args: `{"action": "search", "filter": {"id": "{main}"}}`,
		want: page(map[string]any{"results.0.memories.0.file_count": 1, "results.0.memories.0.files": []any{}}),
	},
	{
		name: "files are listed", tool: "memory",
		args: `{"action": "search", "filter": {"id": "{main}"}, "include_files": true}`,
		want: page(map[string]any{"results.0.memories.0.files.0": map[string]any{"id": "{plan}", "filename": "plan.txt",
			"mime_type": "text/plain; charset=utf-8", "size": 13}}),
	},
	{
		name: "scores are explained", tool: "memory",
		args: `{"action": "search", "query": "pillars of granite", "limit": 1, "explain": true}`,
		want: page(map[string]any{"results.0.memories.0.id": "{pillars}", "results.0.memories.0.explanation.lenders": nil,
			"limit": 1, "results.0.memories.0.explanation.words.gain": 0.152,
			"results.0.memories.0.explanation.late_interaction.value": 1}),
	},
	{
		name: "scores are not explained unless that is asked for", tool: "memory",
		args: `{"action": "search", "query": "pillars of granite", "limit": 1}`,
		want: page(map[string]any{"limit": 1, "results.0.memories.0.explanation": nil}),
	},
	{
		name: "what is probably about the query", tool: "memory",
		args: `{"action": "search", "query": "what are the pillars made of", "min_score": 0.5}`,
		want: page(map[string]any{"total": 1, "sort_order": "relevance", "results.0.memories.0.id": "{pillars}",
			"results.0.memories.0.confidence": 0.99, "results.1": nil}),
	},
	{
		name: "nothing is sure enough", tool: "memory",
		args: `{"action": "search", "query": "what are the pillars made of", "min_score": "1"}`,
		want: page(map[string]any{"total": 0, "sort_order": "relevance", "results": []any{}}),
	},
	{
		name: "confidence is only shown on request", tool: "memory",
		args: `{"action": "search", "query": "pillars of granite", "limit": 1}`,
		want: page(map[string]any{"limit": 1, "results.0.memories.0.confidence": nil}),
	},
	{
		name: "an empty collection", tool: "memory",
		args: `{"action": "search", "collection_name": "empty", "query": "granite"}`,
		want: page(map[string]any{"results": []any{}, "total": 0, "has_more": false, "sort_order": "relevance"}),
	},
	{name: "an unknown collection", tool: "memory", args: `{"action": "search", "collection_name": "emty"}`,
		kind: notFound, argument: "collection_name", says: []string{`did you mean "empty"?`}},
	{
		name: "an unknown project", tool: "memory", args: `{"action": "search", "filter": {"project_name": "nowhere"}}`,
		want: map[string]any{"results": []any{}, "total": 0}, says: []string{"nowhere"},
	},
	{
		name: "a project in the filter", tool: "memory",
		args: `{"action": "search", "filter": {"project_name": "Bridge", "event_type": "project-main"}}`,
		want: page(map[string]any{"total": 1, "results.0.memories.0.id": "{main}"}),
	},
	{
		name: "a project as an argument wins over the one in the filter", tool: "memory",
		args: `{"action": "search", "project_id": "p-vault", "filter": {"project_name": "Bridge"}}`,
		want: page(map[string]any{"total": 1, "results.0.memories.0.id": "{vault}"}),
	},
	{
		name: "projects by condition", tool: "memory",
		args: `{"action": "search", "filter": {"project_id": {"in": ["p-vault", "p-none"]}}}`,
		want: page(map[string]any{"total": 1, "results.0.memories.0.id": "{vault}"}),
	},
	{
		name: "a project and its id that disagree", tool: "memory",
		args: `{"action": "search", "project_id": "p-vault", "project_name": "Bridge"}`,
		kind: invalid, argument: "project_name", says: []string{"disagree"},
	},
	{
		name: "known keys as arguments", tool: "memory",
		args: `{"action": "search", "event_type": "decision", "state": "active", "importance": "high", "filter": ` +
			`{"state": "archived"}}`,
		want: page(map[string]any{"total": 1, "results.0.memories.0.id": "{pillars}"}),
	},
	{
		name: "a classification, which wins over the one in the filter", tool: "memory",
		args: `{"action": "search", "classification": "do", "filter": {"classification": "dont"}}`,
		want: page(map[string]any{"total": 1, "results.0.memories.0.id": "{short}"}),
	},
	{
		name: "any of the tags", tool: "memory", args: `{"action": "search", "tags": ["stone", "wood"]}`,
		want: page(map[string]any{"total": 1, "results.0.memories.0.id": "{pillars}"}),
	},
	{
		name: "what is not set", tool: "memory",
		args: `{"action": "search", "filter": {"project_id": null, "event_type": null}}`,
		want: page(map[string]any{"total": 1, "results.0.memories.0.id": "{diary}"}),
	},
	{
		name: "past the end", tool: "memory", args: `{"action": "search", "offset": 1000}`,
		want: page(map[string]any{"offset": 1000, "results": []any{}, "has_more": false}),
	},
	{
		name: "as a member", who: "reader", tool: "memory",
		args:  `{"action": "search", "filter": {"event_type": "project-main"}}`,
		want:  page(map[string]any{"total": 1, "results.0.memories.0.id": "{main}", "results.0.owner": "anna"}),
		never: []string{"{diary}"},
	},
	{
		name: "through a view of one project", who: "limited", tool: "memory",
		args: `{"action": "search", "filter": {"event_type": "project-main"}}`,
		want: page(map[string]any{"total": 1, "results.0.memories.0.id": "{main}"}),
	},
}

func TestMemorySearch(t *testing.T) {
	runScenarios(t, searches)
}

func TestPagesNeitherRepeatNorSkip(t *testing.T) {
	w := newWorld(t)
	for _, order := range []string{"relevance", "updated_at_asc", "updated_at_desc", "created_at_asc", "created_at_desc"} {
		query := `{"action": "search", "project_id": "p-bridge", "sort_order": "` + order + `", "limit": %d, "offset": %d}`
		if order == "relevance" {
			query = strings.Replace(query, `{`, `{"query": "granite of the bridge", `, 1)
		}
		whole := contents(w.must("owner", "memory", fmt.Sprintf(query, 100, 0)))
		if len(whole) < 5 {
			t.Fatalf("by %s only %q are found, want at least a length of 5", order, whole)
		}
		var paged []string
		for more := true; more; {
			page := w.must("owner", "memory", fmt.Sprintf(query, 2, len(paged)))
			if page["sort_order"] != order || page["total"] != float64(len(whole)) {
				t.Errorf("the page says %v, %v; want %s, %d", page["sort_order"], page["total"], order, len(whole))
			}
			found := contents(page)
			paged = append(paged, found...)
			more = page["has_more"] == true && len(found) > 0
		}
		if !slices.Equal(paged, whole) {
			t.Errorf("by %s the pages are\n%q, the whole is\n%q, want the same", order, paged, whole)
		}
	}
}

func TestVectorsOfOnesOwn(t *testing.T) {
	w := newWorld(t)
	w.check(scenario{tool: "create_collection",
		args: `{"collection_name": "vectors", "own_vectors": true, "vector_size": 3}`,
		want: map[string]any{"vector_size": 3, "embedder": "own"}})
	east := w.must("owner", "memory",
		`{"action": "store", "collection_name": "vectors", "content": "east", "embedding": [1, 0, 0]}`)
	north := w.must("owner", "memory",
		`{"action": "store", "collection_name": "vectors", "content": "north", "embedding": "0, 1, 0"}`)
	w.ids["east"], w.ids["north"] = fmt.Sprint(east["id"]), fmt.Sprint(north["id"])
	w.check(scenario{tool: "memory",
		args: `{"action": "search", "collection_name": "vectors", "query_embedding": [0.1, 0.9, 0]}`,
		want: map[string]any{"results.0.memories.0.id": "{north}", "sort_order": "relevance"}})
	w.check(scenario{tool: "memory",
		args: `{"action": "update", "id": "{east}", "content": "west", "embedding": [-1, 0, 0]}`,
		want: map[string]any{"revision": 2}})
	w.check(scenario{tool: "memory",
		args: `{"action": "store", "collection_name": "vectors", "content": "x", "embedding": [1, 2]}`, kind: invalid,
		argument: "embedding", says: []string{"2", "3"}})
}

func TestMemoryGetContext(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name: "of a project", tool: "memory",
			args: `{"action": "get_context", "query": "pillars", "project_name": "Bridge"}`,
			want: map[string]any{
				"identity.id": "{identity}", "conversation_memory_id": "{case}", "related_memories.0.id": "{pillars}",
				"project_rules.do.id": "{rule}", "project_rules.do.content": "Use granite.",
				"project_rules.do.metadata.rule_type": "do",
				"project_rules.dont":                  nil, "project_rules.todo.id": "{todo}",
				"project_rules.todo.content": bridgeTodo,
				"general_do_dont.0.id":       "{general}", "project_do_dont.0.id": "{short}", "project_do_dont.1": nil,
			},
		},
		{
			name: "of no project", tool: "memory", args: `{"action": "get_context"}`,
			want:  map[string]any{"identity.id": "{identity}", "project_do_dont": nil, "general_do_dont.0.id": "{general}"},
			never: []string{"project_rules\":"},
		},
		{
			name: "of an unknown project", tool: "memory", args: `{"action": "get_context", "project_id": "p-new"}`,
			want: map[string]any{"project_rules": map[string]any{"do": nil, "dont": nil, "todo": nil},
				"project_do_dont": []any{}, "conversation_memory_id": nil}, says: []string{"p-new"},
		},
		{
			name: "as a reader", who: "reader", tool: "memory",
			args: `{"action": "get_context", "query": "pillars", "project_name": "Bridge"}`,
			want: map[string]any{"identity": nil, "conversation_memory_id": nil, "general_do_dont": []any{},
				"project_rules.do.content": "Use granite."},
		},
		{
			name: "as a writer", who: "writer", tool: "memory",
			args: `{"action": "get_context", "query": "pillars", "project_name": "Bridge"}`,
			want: map[string]any{"identity": nil, "conversation_memory_id": "{case}"},
		},
		{
			name: "as a stranger", who: "stranger", tool: "memory", args: `{"action": "get_context", "project_name": "Bridge"}`,
			want: map[string]any{"identity": nil, "conversation_memory_id": nil, "project_rules.do": nil},
			says: []string{"Bridge"},
		},
		{
			name: "a detected identity becomes a suggestion", who: "stranger", tool: "memory",
			args: `{"action": "get_context", "detected_identity": {"nicknames": ["Sam"]}}`,
			want: map[string]any{"identity": nil, "identity_suggestion.tool": "memory",
				"identity_suggestion.arguments.action": "store", "identity_suggestion.arguments.event_type": "IDENTITY"},
		},
		{
			name: "a detected identity beside a stored one does not", tool: "memory",
			args: `{"action": "get_context", "detected_identity": {"nicknames": ["Sam"]}}`,
			want: map[string]any{"identity.id": "{identity}", "identity_suggestion": nil},
		},
		{name: "a budget too small", tool: "memory", args: `{"action": "get_context", "token_budget": 10}`, kind: invalid,
			argument: "token_budget", says: []string{"10", "500"}},
	})
}

func TestTheSuggestedCallStoresTheIdentity(t *testing.T) {
	w := newWorld(t)
	answer, err := w.set("stranger").Call(t.Context(), "memory",
		[]byte(`{"action": "get_context", "detected_identity": {"nicknames": ["Sam"], "address": "formal"}}`))
	if err != nil {
		t.Fatal(err)
	}
	suggested := answer.(souvenir.Context).IdentitySuggestion
	w.must("stranger", suggested.Tool, encode(t, suggested.Arguments))
	w.check(scenario{who: "stranger", tool: "memory", args: `{"action": "get_context"}`,
		want: map[string]any{"identity.metadata.nicknames": []any{"Sam"}, "identity.metadata.address": "formal"}})
}

func TestReadersAreNotAskedToStoreAnIdentity(t *testing.T) {
	w := newWorld(t)
	w.must("owner", "memory", `{"action": "delete", "id": "{identity}"}`)
	for _, who := range []string{"read-only", "memories for reading"} {
		w.check(scenario{who: who, tool: "memory", args: `{"action": "get_context", "detected_identity": {"name": "Sam"}}`,
			want: map[string]any{"identity": nil, "identity_suggestion": nil}})
	}
}

func TestCallsEndWithTheirContext(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := newCancelled(t)
	defer cancel()
	for tool, args := range map[string]string{"memory": `{"action": "search", "query": "x"}`, "list_collections": ``,
		"upload_document": `{"filename": "a", "content": "b"}`} {
		if _, err := w.set("owner").Call(ctx, tool, []byte(args)); !errors.Is(err, ctx.Err()) {
			t.Errorf("%s with an ended context gives %v, want %v", tool, err, ctx.Err())
		}
	}
}

func TestCallsAtTheSameMomentAllTakeEffect(t *testing.T) {
	w := newWorld(t)
	tasks := "## Constitution\n## Spec\n## Plan\n## Tasks\n"
	for i := range 12 {
		tasks += fmt.Sprintf("- [ ] T%d something\n", i)
	}
	w.must("owner", "todo", encode(t,
		map[string]any{"action": "store", "project_id": "p-bridge", "content": tasks + "## Gaps\n"}))
	set := w.set("owner")
	var group sync.WaitGroup
	for i := range 12 {
		group.Go(func() {
			if _, err := set.Call(t.Context(), "todo",
				fmt.Appendf(nil, `{"action": "complete", "project_id": "p-bridge", "task_id": "T%d"}`, i)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	w.check(scenario{tool: "todo", args: `{"action": "complete", "project_id": "p-bridge", "task_id": "T0"}`,
		want: map[string]any{"already_completed": true, "revision": 14, "progress": map[string]any{"done": 12, "total": 12}}})
}

func TestSearchResultsAreLean(t *testing.T) {
	w := newWorld(t)
	const content = "The ferry to the island leaves at nine, and takes a bicycle as well."
	for i := range 7 {
		w.must("owner", "memory", fmt.Sprintf(`{"action": "store", "project_id": "p-lean", "content": "%d %s"}`, i, content))
	}
	for _, args := range []string{`"query": "when does the ferry leave", "project_id": "p-lean"`,
		`"project_id": "p-lean"`} {
		result := w.must("owner", "memory", `{"action": "search", `+args+`}`)
		memories := at(result, "results.0.memories").([]any)
		if len(memories) != 7 {
			t.Fatalf("%s: %d memories, want 7", args, len(memories))
		}
		for _, m := range memories {
			if n := len(encode(t, m)) - len(content) - 2; n > 200 {
				t.Errorf("%s: %d bytes around a memory, want at most 200: %s", args, n, encode(t, m))
			}
			if score := at(m, "score").(float64); len(fmt.Sprint(score)) > len("0.123") {
				t.Errorf("got score %v, want at most three digits", score)
			}
		}
		if n := len(encode(t, result)) - 7*(len(content)+2); n > 7*200 {
			t.Errorf("%s: %d bytes around 7 memories, want at most 200 for each", args, n)
		}
	}
	context := w.must("owner", "memory",
		`{"action": "get_context", "query": "when does the ferry leave", "project_id": "p-lean"}`)
	related := at(context, "related_memories").([]any)
	if len(related) == 0 {
		t.Error("got no related memories, want some")
	}
	for _, m := range related {
		if score := fmt.Sprint(at(m, "score")); len(score) > len("0.123") {
			t.Errorf("get_context: got score %s, want at most three digits", score)
		}
	}
}
