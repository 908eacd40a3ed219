package overview

import (
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// deed says what a call did, for a sentence about it.
type deed struct {
	did, do string // "updated", "update"
	thing   string // the object, where no memory, file or other page is known; may be empty
	kind    string // by which calls can be filtered; empty: no filter has it
}

// The kinds of deeds.
const (
	kindRead    = "read"
	kindStored  = "stored"
	kindUpdated = "updated"
	kindDeleted = "deleted"
)

// deedKinds are the kinds, with names for the page, in its order.
var deedKinds = []struct{ Value, Name string }{
	{kindStored, "Stored"}, {kindUpdated, "Updated"}, {kindDeleted, "Deleted"}, {kindRead, "Read and searched"},
}

// deeds describes calls by tool and action, or by the method and pattern of a route.
var deeds = map[string]deed{
	"memory get_context":      {"read", "read", "the context", kindRead},
	"memory store":            {"stored", "store", "a memory", kindStored},
	"memory search":           {"searched", "search", "the memories", kindRead},
	"memory retrieve":         {"read", "read", "a memory", kindRead},
	"memory update":           {"updated", "update", "a memory", kindUpdated},
	"memory delete":           {"deleted", "delete", "a memory", kindDeleted},
	"todo store":              {"saved", "save", "the to-do", kindUpdated},
	"todo update_section":     {"updated", "update", "the to-do", kindUpdated},
	"todo complete":           {"completed", "complete", "a task", kindUpdated},
	"rules store":             {"saved", "save", "the rules", kindUpdated},
	"get_module_state":        {"read", "read", "the state of a module", kindRead},
	"get_project_main_memory": {"read", "read", "the main memory", kindRead},
	"list_collections":        {"listed", "list", "the collections", kindRead},
	"create_collection":       {"created", "create", "a collection", kindStored},
	"upload_document":         {"uploaded", "upload", "a document", kindStored},

	"GET /api/files":               {"listed", "list", "the files", kindRead},
	"GET /api/files/{id}":          {"opened", "open", "a file", kindRead},
	"POST /api/files/upload":       {"uploaded", "upload", "a file", kindStored},
	"PUT /api/files/{id}/metadata": {"changed", "change", "a file", kindUpdated},
	"DELETE /api/files/{id}":       {"deleted", "delete", "a file", kindDeleted},
	"GET /api/projects":            {"listed", "list", "the projects", kindRead},
	"POST /mcp":                    {"sent", "send", "an MCP message", ""},
	"GET /tools":                   {"listed", "list", "the tools", ""},
	"POST /tools/call":             {"called", "call", "a tool", ""},

	"POST /memories/new":                       {"stored", "store", "a memory", kindStored},
	"POST /memories/{id}/edit":                 {"updated", "update", "a memory", kindUpdated},
	"POST /memories/{id}/set":                  {"updated", "update", "a memory", kindUpdated},
	"POST /memories/{id}/restore":              {"restored", "restore", "a past version", kindUpdated},
	"POST /memories/{id}/delete":               {"deleted", "delete", "a memory", kindDeleted},
	"POST /memories/{id}/files":                {"added files to", "add files to", "a memory", kindUpdated},
	"POST /memories/{id}/files/add":            {"linked a file to", "link a file to", "a memory", kindUpdated},
	"POST /memories/{id}/files/unlink":         {"unlinked a file from", "unlink a file from", "a memory", kindUpdated},
	"POST /memories/bulk":                      {"changed", "change", "several memories", kindUpdated},
	"POST /memories/merge":                     {"merged", "merge", "memories", kindUpdated},
	"POST /files":                              {"uploaded", "upload", "files", kindStored},
	"POST /files/{id}/edit":                    {"changed", "change", "a file", kindUpdated},
	"POST /files/{id}/link":                    {"linked", "link", "a file", kindUpdated},
	"POST /files/{id}/delete":                  {"deleted", "delete", "a file", kindDeleted},
	"POST /projects":                           {"created", "create", "a project", kindStored},
	"POST /projects/{owner}/{id}/delete":       {"deleted", "delete", "a project", kindDeleted},
	"POST /projects/{owner}/{id}/edit":         {"edited", "edit", "a text of a project", kindUpdated},
	"POST /projects/{owner}/{id}/settings":     {"renamed", "rename", "a project", kindUpdated},
	"POST /projects/{owner}/{id}/members":      {"changed", "change", "the members of a project", kindUpdated},
	"POST /projects/{owner}/{id}/rules/delete": {"deleted", "delete", "rules", kindDeleted},
	"POST /projects/{owner}/{id}/todo/tick":    {"ticked", "tick", "a task", kindUpdated},
	"POST /projects/rules/edit":                {"edited", "edit", "the general rules", kindUpdated},
	"POST /projects/rules/delete":              {"deleted", "delete", "the general rules", kindDeleted},
	"POST /project-invitations":                {"answered", "answer", "an invitation", ""},
	"POST /trash":                              {"restored or erased", "restore or erase", "deleted items", ""},
	"POST /undo":                               {"undid", "undo", "a change", ""},
	"POST /connect":                            {"created", "create", "a token for a client", ""},
	"POST /tokens":                             {"created", "create", "a token", ""},
	"POST /tokens/end":                         {"revoked", "revoke", "a token", ""},
	"POST /connected/end":                      {"revoked", "revoke", "an application", ""},
	"POST /oauth/authorize":                    {"answered", "answer", "an application", ""},
	"POST /login":                              {"signed in", "sign in", "", ""},
	"POST /logout":                             {"signed out", "sign out", "", ""},
	"POST /profile":                            {"changed", "change", "the profile", ""},
	"POST /profile/password":                   {"changed", "change", "the password", ""},
}

// deedOf describes a call.
func deedOf(a souvenir.Activity) deed {
	name := strings.TrimSpace(a.Tool + " " + a.Action)
	if d, ok := deeds[name]; ok {
		return d
	}
	return deed{did: "called", do: "call", thing: name}
}

// callsOfKind are the calls of a kind, for a query; nil for a kind that is none.
func callsOfKind(kind string) []souvenir.ToolAction {
	var calls []souvenir.ToolAction
	for name, d := range deeds {
		if d.kind != kind {
			continue
		}
		tool, action, _ := strings.Cut(name, " ")
		if strings.Contains(action, "/") { // a route
			tool, action = name, ""
		}
		calls = append(calls, souvenir.ToolAction{Tool: tool, Action: action})
	}
	slices.SortFunc(calls, func(a, b souvenir.ToolAction) int {
		return strings.Compare(a.Tool+" "+a.Action, b.Tool+" "+b.Action)
	})
	return calls
}
