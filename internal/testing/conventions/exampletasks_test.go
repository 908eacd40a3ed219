package conventions

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// exampleTasks are the tasks that godoc shows as examples: what a reader wants to do, and the example's name without
// "Example".
var exampleTasks = map[string]string{
	"begin":                             "_quickstart",
	"store a memory":                    "Store_AddMemory",
	"store many at once":                "Store_AddMemories",
	"store or update by key":            "Store_PutMemory",
	"mirror another system":             "Store_PutMemories",
	"store a new memory":                "Store_AddMemory_ifAbsent",
	"replace a fact, and look back":     "Store_AddMemory_supersedes",
	"let a memory expire":               "NewMemory_expiresAt",
	"search several times at once":      "Store_SearchBatch",
	"read all hits":                     "Store_SearchAll",
	"order hits by a model of your own": "RerankerFunc",
	"read by key":                       "Store_GetMemoryByKey",
	"see near duplicates":               "NewMemory_similar",
	"change a memory":                   "Store_UpdateMemory",
	"change many":                       "Store_UpdateMemories",
	"delete a selection":                "Store_DeleteMemories",
	"list":                              "Store_Memories",
	"follow links":                      "Store_RelatedMemories",
	"read the history":                  "Store_Revisions",
	"restore a past version":            "Store_RestoreRevision",
	"restore from the trash":            "Trash_Restore",
	"erase for good":                    "Trash_Erase",
	"read one moment":                   "Store_Snapshot",
	"write all or nothing":              "Store_Transaction",
	"keep a conversation":               "Store_Conversation",
	"list conversations":                "Store_Conversations",
	"fill a window of tokens":           "Conversation_Window",
	"read the turns around a hit":       "Conversation_Around",
	"redact stored text":                "Hooks_redaction",
	"refuse a write":                    "Hooks_refusal",
	"observe":                           "Hooks_observing",
	"search":                            "Query",
	"filter by own metadata":            "Filter",
	"filter by a key with a taken name": "CustomKey",
	"combine conditions":                "Condition",
	"filter by tags":                    "Query_tags",
	"filter by time":                    "Query_timeRange",
	"find nothing":                      "Query_minScore",
	"turn pages":                        "Results_HasMore",
	"explain a score":                   "Query_explain",
	"make a collection":                 "Store_AddCollection",
	"bring vectors":                     "NewCollection_ownVectors",
	"count tags":                        "Insights_Tags",
	"open a file":                       "Open",
	"work in memory":                    "Open_inMemory",
	"open read-only":                    "Open_readOnly",
	"test with a clock":                 "Options",
	"back up":                           "Upkeep_Backup",
	"restore a backup":                  "Restore",
	"check":                             "Upkeep_Check",
	"delete old versions":               "Upkeep_Purge",
	"export":                            "Upkeep_Export",
	"import":                            "Upkeep_Import",
	"bring an embedder":                 "EmbedderFunc",
	"survive a failing embedder":        "Embedder_failing",
	"change the model":                  "Upkeep_WaitEmbedded",
	"embed again":                       "Upkeep_Reindex",
	"serve several users":               "Store_As",
	"give each user a view":             "Access",
	"limit to projects":                 "Access_projects",
	"limit to reading":                  "Access_readOnly",
	"share by invitation":               "Store_AddMember",
	"make a token":                      "Accounts_AddToken",
	"check a token":                     "Accounts_CheckToken",
	"authorize an application":          "Accounts_Authorize",
	"keep preferences":                  "Store_UpdatePreferences",
	"set a rule":                        "Store_SetRule",
	"tick off a task":                   "Store_CompleteTask",
	"edit a to-do":                      "Store_UpdateTodoSection",
	"read a to-do":                      "ParseTodo",
	"begin an interaction":              "Store_GetContext",
	"describe a project":                "Store_GetMainMemory",
	"say who the agent is":              "Store_SetIdentityMemory",
	"look at a module":                  "Store_GetModuleState",
	"store a file":                      "Store_AddFile",
	"read a file":                       "Store_OpenFile",
	"tell kinds of errors apart":        "Error_is",
	"take an error apart":               "Error",
}

// TestEveryTaskHasAnExample reads the examples of the root as godoc does: each task has one, each example has output to
// compare with, and none is too long. go test runs vet, which checks that their names match methods of the package.
func TestEveryTaskHasAnExample(t *testing.T) {
	atRoot(t)
	const longest = 60 // lines
	examples := map[string]bool{}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range files {
		if !strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, entry.Name(), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, example := range doc.Examples(file) {
			examples[example.Name] = true
			if example.Output == "" && !example.EmptyOutput {
				t.Errorf("%s: Example%s has no output to be compared with: it does not run; want one", entry.Name(),
					example.Name)
			}
			if n := lines(fset, example.Code); n > longest {
				t.Errorf("%s: Example%s has %d lines, want at most %d", entry.Name(), example.Name, n, longest)
			}
			if !strings.HasPrefix(entry.Name(), "example_") {
				t.Errorf(`%s: examples are in files example_*_test.go, want "example_" at the beginning of the name`, entry.Name())
			}
		}
	}
	for task, name := range exampleTasks {
		if !examples[name] {
			t.Errorf("no Example%s for the task %q", name, task)
		}
	}
	if len(examples) < 30 {
		t.Errorf("%d examples, want at least 30", len(examples))
	}
}

func lines(fset *token.FileSet, node ast.Node) int {
	return fset.Position(node.End()).Line - fset.Position(node.Pos()).Line + 1
}
