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

	"GET /api/projects/{id}":                     {"opened", "open", "a project", kindRead},
	"GET /api/projects/{id}/members":             {"listed", "list", "the members", kindRead},
	"POST /api/projects/{id}/members":            {"invited", "invite", "a member", kindUpdated},
	"PATCH /api/projects/{id}/members/{user}":    {"changed", "change", "the role of a member", kindUpdated},
	"DELETE /api/projects/{id}/members/{user}":   {"removed", "remove", "a member", kindUpdated},
	"GET /api/project-invitations":               {"listed", "list", "the invitations", ""},
	"POST /api/project-invitations/{id}/accept":  {"accepted", "accept", "an invitation", ""},
	"POST /api/project-invitations/{id}/decline": {"declined", "decline", "an invitation", ""},
	"POST /api/project-invitations/{id}/block":   {"blocked", "block", "the sender of an invitation", ""},
	"GET /api/blocked-users":                     {"listed", "list", "the blocked users", ""},
	"DELETE /api/blocked-users/{user}":           {"unblocked", "unblock", "a user", ""},
	"GET /api/trash":                             {"listed", "list", "the trash", kindRead},
	"POST /api/trash/{id}/restore":               {"restored", "restore", "a deleted item", kindUpdated},
	"DELETE /api/trash/{id}":                     {"erased", "erase", "a deleted item", kindDeleted},
	"DELETE /api/trash":                          {"emptied", "empty", "the trash", kindDeleted},
	"GET /api/mcp-tokens":                        {"listed", "list", "the tokens", ""},
	"POST /api/mcp-tokens":                       {"created", "create", "a token", ""},
	"DELETE /api/mcp-tokens/{id}":                {"revoked", "revoke", "a token", ""},
	"GET /api/owner-ids/me":                      {"read", "read", "the user’s id", ""},
	"GET /api/user-preferences":                  {"read", "read", "the preferences", ""},
	"PUT /api/user-preferences":                  {"replaced", "replace", "the preferences", ""},
	"PATCH /api/user-preferences":                {"changed", "change", "the preferences", ""},
	"GET /oauth/admin/clients":                   {"listed", "list", "the OAuth clients", ""},
	"POST /oauth/admin/clients":                  {"added", "add", "an OAuth client", ""},
	"DELETE /oauth/admin/clients/{client_id}":    {"deactivated", "deactivate", "an OAuth client", ""},

	"POST /oauth/admin/clients/{client_id}/regenerate-secret": {"renewed", "renew", "the secret of an OAuth client", ""},

	"GET /mcp":         {"asked for", "ask for", "a stream", ""},
	"DELETE /mcp":      {"ended", "end", "a session", ""},
	"POST /mcp":        {"sent", "send", "an MCP message", ""},
	"GET /tools":       {"listed", "list", "the tools", ""},
	"POST /tools/call": {"called", "call", "a tool", ""},

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
	"POST /projects/{owner}/{id}/todo/add":     {"added", "add", "a task", kindUpdated},
	"POST /projects/{owner}/{id}/todo/move":    {"moved", "move", "a task", kindUpdated},
	"POST /projects/{owner}/{id}/retention":    {"changed", "change", "how long memories stay", kindUpdated},
	"POST /collections":                        {"changed", "change", "a collection", kindUpdated},
	"POST /proposals":                          {"decided on", "decide on", "a proposal", kindUpdated},
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
	"POST /profile/sessions/end":               {"signed out", "sign out", "a browser", ""},
	"POST /profile/sign-out":                   {"signed out", "sign out", "all browsers", ""},
	"POST /profile/identities":                 {"linked", "link", "an external account", ""},
	"POST /profile/identities/end":             {"unlinked", "unlink", "an external account", ""},
	"POST /theme":                              {"chose", "choose", "a theme", ""},
	"POST /authorize":                          {"answered", "answer", "an application", ""},
	"POST /setup":                              {"created", "create", "the first account", ""},
	"POST /invite":                             {"accepted", "accept", "an invitation to this server", ""},
	"POST /tokens/pause":                       {"paused or resumed", "pause or resume", "a token", ""},
	"POST /connected/pause":                    {"paused or resumed", "pause or resume", "an application", ""},
	"POST /clients":                            {"created", "create", "an OAuth client", ""},
	"POST /clients/change":                     {"changed", "change", "an OAuth client", ""},
	"POST /users":                              {"changed", "change", "a user", ""},
	"POST /invitations":                        {"created", "create", "a link for a new user", ""},
	"POST /invitations/end":                    {"withdrew", "withdraw", "a link for a new user", ""},
	"POST /settings":                           {"changed", "change", "a preference", ""},
	"POST /settings/whole":                     {"replaced", "replace", "the preferences", ""},
	"POST /settings/server":                    {"changed", "change", "a setting of the server", ""},
	"POST /transfer/export":                    {"exported", "export", "data", ""},
	"POST /transfer/import":                    {"imported", "import", "data", ""},
	"POST /backup/download":                    {"downloaded", "download", "a backup", ""},
	"POST /backup/work":                        {"began", "begin", "maintenance of the store", ""},
	"POST /backup/stop":                        {"stopped", "stop", "maintenance of the store", ""},
	"POST /audit/verify":                       {"checked", "check", "the audit log", ""},
}

// deedOf describes a call.
func deedOf(a souvenir.Activity) deed {
	name := strings.TrimSpace(a.Tool + " " + a.Action)
	if d, ok := deeds[name]; ok {
		return d
	}
	return deed{did: "called", do: "call", thing: name}
}

// callsOfKind returns the calls of a kind, for a query; nil for an unknown kind.
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
