package tools_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// memoryFields returns the fields of a completely shown memory.
func memoryFields(at string) []string {
	return []string{at + ".id uuid", at + ".content string", at + ".collection_name string", at + ".metadata object", at +
		".revision number",
		at + ".created_at time", at + ".updated_at time"}
}

func fileFields(at string) []string {
	return []string{at + "id uuid", at + "memory_id string?", at + "filename string", at + "mime_type string", at +
		"size number", at + "description string",
		at + "tags array", at + "category string", at + "created_at time"}
}

func summaryFields(at string) []string {
	return []string{at + ".id uuid", at + ".filename string", at + ".mime_type string", at + ".size number"}
}

func join(parts ...[]string) (all []string) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func collectionFields(at string) []string {
	return []string{at + "collection_name string", at + "description string", at + "vector_size number",
		at + "memory_count number", at + "created_at time", at + "updated_at time", at + "embedder string"}
}

var progressFields = []string{"progress.done number", "progress.total number"}

// interfaceResults are calls with the fields of their results, each with its type.
var interfaceResults = []struct {
	tool, args string
	fields     []string
}{
	{"create_collection", `{"collection_name": "new"}`, collectionFields("")},
	{"list_collections", ``, join([]string{"collections array"}, collectionFields("collections.0."))},
	{"memory", `{"action": "get_context", "query": "granite", "project_name": "Bridge"}`, join(
		[]string{"identity object?", "conversation_memory_id string?", "related_memories array", "get_context_do_dont array",
			"get_context_do_dont.0 string",
			"general_do_dont array", "project_do_dont array?", "project_rules object", "project_rules.do object?",
			"project_rules.dont object?", "project_rules.todo object?",
			"project_rules.do.id uuid", "project_rules.do.content string", "project_rules.do.metadata.rule_type string",
			"project_rules.todo.metadata.rule_type string"},
		memoryFields("identity"), memoryFields("related_memories.0"), memoryFields("general_do_dont.0"),
		memoryFields("project_do_dont.0"))},
	{"memory", `{"action": "get_context"}`,
		[]string{"project_do_dont null", "project_rules absent", "identity object", "related_memories array"}},
	{"memory", `{"action": "store", "content": "x"}`,
		[]string{"id uuid", "collection_name string", "created_at time", "revision number", "similar array",
			"indexed boolean"}},
	{"memory", `{"action": "store", "content": "The pillars are of granite."}`,
		[]string{"similar.0.id uuid", "similar.0.score number"}},
	{"memory", `{"action": "search", "query": "granite", "include_files": true, "filter": {"id": "{main}"}}`, join(
		[]string{"results array", "results.0.collection_name string", "results.0.memories array", "offset number",
			"limit number", "sort_order string", "total number", "has_more boolean", "warnings array",
			"results.0.memories.0.id uuid", "results.0.memories.0.content string", "results.0.memories.0.metadata object",
			"results.0.memories.0.score number", "results.0.memories.0.rank number",
			"results.0.memories.0.created_at time", "results.0.memories.0.updated_at time", "results.0.memories.0.files array",
			"results.0.memories.0.file_count number"},
		summaryFields("results.0.memories.0.files.0"))},
	{"memory", `{"action": "search", "collection_name": "empty"}`,
		[]string{"results array", "offset number", "limit number", "sort_order string", "total number", "has_more boolean",
			"warnings array"}},
	{"memory", `{"action": "retrieve", "id": "{main}"}`,
		join([]string{"result string", "memory object", "files array"}, memoryFields("memory"), summaryFields("files.0"))},
	{"memory", `{"action": "update", "id": "{main}", "content": "x"}`,
		[]string{"id uuid", "collection_name string", "revision number", "updated_at time", "metadata object",
			"indexed boolean"}},
	{"memory", `{"action": "delete", "id": "{main}"}`, []string{"id uuid", "deleted boolean"}},
	{"rules", `{"action": "store", "rule_type": "do", "content": "x"}`,
		join([]string{"id uuid", "created boolean", "updated boolean", "revision number", "memory object"},
			memoryFields("memory"))},
	{"todo", `{"action": "store", "project_id": "p-bridge", "content": "## Constitution\n## Spec\n## Plan\n## ` +
		`Tasks\n## Gaps\n"}`,
		join([]string{"id uuid", "created boolean", "updated boolean", "revision number"}, progressFields,
			memoryFields("memory"))},
	{"todo", `{"action": "update_section", "project_id": "p-bridge", "section": "plan", "content": "x"}`,
		join([]string{"id uuid", "created boolean", "updated boolean", "revision number"}, progressFields,
			memoryFields("memory"))},
	{"todo", `{"action": "complete", "project_id": "p-bridge", "task_id": "T2"}`,
		join([]string{"id uuid", "task.id string", "task.text string", "task.done boolean", "already_completed boolean",
			"next_task object?", "revision number"}, progressFields)},
	{"get_project_main_memory", `{"project_id": "p-bridge"}`,
		join([]string{"project.project_id string", "project.project_name string", "files array", "related_memories array",
			"related_memories.0.depth number", "related_memories.0.path array"}, memoryFields("memory"), fileFields("files.0."),
			memoryFields("related_memories.0"))},
	{"get_module_state", `{"module_name": "pillars"}`,
		join([]string{"module_name string", "memories array", "files array", "summary object", "summary.total number",
			"summary.by_event_type object",
			"summary.by_state object", "summary.newest array", "summary.newest.0.id uuid", "summary.open_tasks array"},
			memoryFields("memories.0"), fileFields("files.0."))},
	{"upload_document", `{"file_id": "{loose}", "memory_id": "{main}"}`, fileFields("")},
	{"upload_document", `{"filename": "a.txt", "content": "x"}`, fileFields("")},
}

// Each result has the fields of the interface and the design, with their types; a question mark allows null.
func TestResultsHaveTheFieldsOfTheInterface(t *testing.T) {
	for i, c := range interfaceResults {
		if !longtest.Part(i, 1, 3) {
			continue
		}
		t.Run(c.tool+" "+c.args, func(t *testing.T) {
			result := newWorld(t).must("owner", c.tool, c.args)
			for _, field := range c.fields {
				path, want, _ := strings.Cut(field, " ")
				if !hasType(result, path, want) {
					t.Errorf("%s is %v, want %s; the whole: %s", path, at(result, path), want, encode(t, result))
				}
			}
		})
	}
}

func hasType(result map[string]any, path, want string) bool {
	want, nullable := strings.CutSuffix(want, "?")
	parent, last := any(result), path
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		parent, last = at(result, path[:i]), path[i+1:]
	}
	if members, ok := parent.(map[string]any); ok {
		if _, there := members[last]; !there {
			return want == "absent"
		}
	}
	switch v := at(result, path).(type) {
	case nil:
		return nullable || want == "null"
	case string:
		switch want {
		case "uuid":
			return uuid.Validate(v) == nil
		case "time":
			parsed, err := time.Parse(time.RFC3339, v)
			return err == nil && parsed.Location() == time.UTC && strings.HasSuffix(v, "Z")
		}
		return want == "string"
	case float64:
		return want == "number"
	case bool:
		return want == "boolean"
	case []any:
		return want == "array"
	case map[string]any:
		return want == "object"
	}
	return false
}

// An error's message says everything, since a model reads nothing else.
func TestErrorsOfArgumentsNameTheArgumentAndTheValue(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ tool, args, argument, value string }{
		{"create_collection", `{"collection_name": "work"}`, "collection_name", "work"},
		{"memory", `{"action": "dance"}`, "action", "dance"},
		{"memory", `{"action": "search", "limit": 4711}`, "limit", "4711"},
		{"memory", `{"action": "retrieve", "id": "m-4711"}`, "id", "m-4711"},
		{"memory", `{"action": "store", "content": "x", "state": "` + strings.Repeat("s", 65) + `"}`, "state", "65"},
		{"rules", `{"action": "store", "content": "x", "rule_type": "perhaps"}`, "rule_type", "perhaps"},
		{"todo", `{"action": "complete", "project_id": "p-bridge", "task_id": "T4711"}`, "task_id", "T4711"},
		{"get_project_main_memory", `{"project_id": "p-4711"}`, "project_id", "p-4711"},
		{"get_module_state", `{"module_name": "x", "limit": -1}`, "limit", "-1"},
		{"upload_document", `{"file_id": "f-4711", "memory_id": "{main}"}`, "file_id", "f-4711"},
	} {
		_, err := w.call("owner", c.tool, c.args)
		var known *souvenir.Error
		if !errors.As(err, &known) || known.Argument != c.argument || !strings.Contains(known.Message, c.argument) ||
			!strings.Contains(known.Message, c.value) {
			t.Errorf("%s %s gives %v (argument %s), want a message that names %s and %s", c.tool, c.args, err, fmt.Sprint(known),
				c.argument, c.value)
		}
	}
}
