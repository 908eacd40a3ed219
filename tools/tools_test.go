package tools_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/tools"
)

var update = flag.Bool("update", false, "rewrite testdata from what the tests get")

// tokens estimates the tokens of a JSON text for a model.
func tokens(encoded []byte) int { return (len(encoded) + 3) / 4 }

func TestAllDefinitionsTogetherCostAtMost3000Tokens(t *testing.T) {
	encoded, err := json.Marshal(map[string]any{"tools": tools.List()})
	if err != nil {
		t.Fatal(err)
	}
	if got := tokens(encoded); got > 3000 {
		t.Errorf("the definitions are %d tokens, more than 3,000; want at most 3000", got)
	} else if got < 1000 {
		t.Errorf("the definitions are only %d tokens; was something lost?, want at least 1000", got)
	}
}

func TestDefinitionsAreThoseOfTheGoldenFile(t *testing.T) {
	got, err := json.MarshalIndent(tools.List(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	path := filepath.Join("testdata", "tools.json")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n"))) {
		t.Errorf("the definitions differ, want those of %s; if it is meant, run go test ./tools -update and look at the "+
			"difference", path)
	}
}

func TestTheToolsAreThoseOfTheInterface(t *testing.T) {
	var names []string
	for _, tool := range tools.List() {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	want := []string{"create_collection", "get_module_state", "get_project_main_memory", "list_collections", "memory",
		"rules", "todo", "upload_document"}
	if !slices.Equal(names, want) {
		t.Errorf("the tools are %v, want %v", names, want)
	}
}

// Arguments of the interface, by tool and action: required ones first, up to the bar.
var interfaceArguments = map[string][]string{
	"create_collection": {"collection_name", "|", "description", "vector_size"},
	"list_collections":  {"|"},
	"memory": {"action", "|", "query", "project_name", "project_id", "detected_identity",
		"collection_name", "content", "metadata", "event_type", "state", "importance", "classification", "rule_type", "tags",
		"related_memory_ids", "query_embedding", "limit", "offset", "sort_order", "include_files", "filter", "id"},
	"rules": {"action", "rule_type", "content", "|", "project_name", "project_id", "tags",
		"related_memory_ids"},
	"todo": {"action", "|", "project_name", "project_id", "content", "tags", "related_memory_ids",
		"section", "task_id"},
	"get_project_main_memory": {"|", "project_name", "project_id"},
	"get_module_state":        {"module_name", "|", "project_name", "project_id", "limit"},
	"upload_document": {"|", "file_id", "memory_id", "filename", "mime_type", "content", "content_base64",
		"description", "tags", "category"},
}

func TestSchemasAreFlatOpenAndHaveTheInterfacesArguments(t *testing.T) {
	for _, tool := range tools.List() {
		var schema struct {
			Type       string
			Properties map[string]map[string]any
			Required   []string
		}
		var members map[string]any
		if err := json.Unmarshal(tool.InputSchema, &members); err != nil {
			t.Fatal(err)
		}
		for name := range members {
			if !slices.Contains([]string{"type", "properties", "required"}, name) {
				t.Errorf("the schema of %s: got %q at the top, want only what every client understands", tool.Name, name)
			}
		}
		if err := json.Unmarshal(tool.InputSchema, &schema); err != nil {
			t.Fatal(err)
		}
		if schema.Type != "object" || schema.Properties == nil {
			t.Errorf(`the schema of %s is no object with properties: %s, want type "object" and properties not nil`, tool.Name,
				tool.InputSchema)
		}
		for name, p := range schema.Properties {
			if !slices.Contains([]any{"string", "integer", "number", "boolean", "array", "object"}, p["type"]) {
				t.Errorf("%s of %s: got the type %v, want one of JSON Schema", name, tool.Name, p["type"])
			}
			if p["type"] == "array" && p["items"] == nil {
				t.Errorf("%s of %s does not say what it is an array of, which some clients refuse; want items", name,
					tool.Name)
			}
		}
		required, optional := cut(interfaceArguments[tool.Name], "|")
		slices.Sort(schema.Required)
		slices.Sort(required)
		if !slices.Equal(schema.Required, required) {
			t.Errorf("%s requires %v, want %v", tool.Name, schema.Required, required)
		}
		for _, name := range slices.Concat(required, optional) {
			if schema.Properties[name] == nil {
				t.Errorf("%s: got no argument %s, want one", tool.Name, name)
			}
		}
		if tool.Title == "" || len(tool.Description) < 80 || strings.ToValidUTF8(tool.Description, "") != tool.Description {
			t.Errorf("%s is not described: %q, %q, want a title and a description", tool.Name, tool.Title, tool.Description)
		}
	}
}

func cut(list []string, at string) (before, after []string) {
	i := slices.Index(list, at)
	return slices.Clone(list[:i]), list[i+1:]
}

func TestEveryToolHasAllFourAnnotations(t *testing.T) {
	want := map[string][4]bool{ // read-only, destructive, idempotent, open world
		"create_collection":       {false, false, false, false},
		"list_collections":        {true, false, true, false},
		"memory":                  {false, true, false, false},
		"rules":                   {false, false, true, false},
		"todo":                    {false, false, true, false},
		"get_project_main_memory": {true, false, true, false},
		"get_module_state":        {true, false, true, false},
		"upload_document":         {false, false, false, false},
	}
	for _, tool := range tools.List() {
		encoded, err := json.Marshal(tool)
		if err != nil {
			t.Fatal(err)
		}
		var answer struct{ Annotations map[string]bool }
		if err := json.Unmarshal(encoded, &answer); err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
			if got, ok := answer.Annotations[name]; !ok || got != want[tool.Name][i] {
				t.Errorf("%s of %s is %v (there: %v), want %v", name, tool.Name, got, ok, want[tool.Name][i])
			}
		}
	}
}

func TestChangingAListedDefinitionChangesNoOther(t *testing.T) {
	first := tools.List()
	first[0].Name, first[0].InputSchema[0] = "changed", '!'
	if again := tools.List(); again[0].Name == "changed" || again[0].InputSchema[0] == '!' {
		t.Errorf("a caller can change the definitions of others: got %v with schema %.20s, want both as they were",
			again[0].Name, again[0].InputSchema)
	}
}

func TestAToolThatDoesNotExistIsNotFoundAndTheToolsAreNamed(t *testing.T) {
	runScenarios(t, []scenario{
		{name: "misspelt", tool: "memories", args: `{}`, kind: notFound, argument: "name",
			says: []string{`"memories"`, `"memory"`, `"upload_document"`}},
		{name: "empty", tool: "", args: `{}`, kind: notFound, argument: "name"},
		{name: "not text", tool: "\xff\x00", args: `{}`, kind: notFound, argument: "name"},
	})
}
