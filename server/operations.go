package server

import (
	"maps"
	"reflect"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/auth/clientmeta"
	"github.com/souvenir-ai/souvenir/server/internal/authserver"
	"github.com/souvenir-ai/souvenir/server/internal/params"
	"github.com/souvenir-ai/souvenir/tools"
)

// operations describes the parameters and answers of the routes, by "METHOD /pattern". Tests check that it matches
// the table and the actual answers.
func operations() map[string]operation {
	all := map[string]operation{}
	for _, some := range []map[string]operation{
		toolOperations(), oauthOperations(), fileOperations(), projectOperations(), trashOperations(),
		accountOperations(),
	} {
		maps.Copy(all, some)
	}
	return all
}

// toolOperations describe the service, and call its tools over REST and MCP.
func toolOperations() map[string]operation {
	return map[string]operation{
		"GET /health":      {summary: "Whether the service works", answer: of[Health](nil)},
		"GET /health/live": {summary: "Whether the process answers", answer: of[Liveness](nil)},
		"GET /health/ready": {summary: "Whether requests can be answered, and the problems", answer: of[Readiness](nil),
			wrong: []string{"503"}},
		"GET /openapi.json": {summary: "This document", answer: anything("An OpenAPI 3.1 document")},

		"GET /tools": {summary: "The tools", answer: of[ToolList](nil)},
		"POST /tools/call": {
			summary: "Call a tool",
			body: takes[toolCall](schema{"name": schema{"type": "string", "description": "Name of a tool"},
				"arguments": note("Its arguments, as its inputSchema says")}),
			answer: of[ToolResult](schema{"content": note("One: the result as JSON")}),
		},

		"POST /mcp": {
			summary: "A message of the Model Context Protocol, revisions 2024-11-05 to 2026-07-28", mcp: true,
			body: message(), answer: schema{"description": "Its answer; a list of answers to a list of messages"},
		},
		"GET /mcp": {summary: "Refused: there is no stream of messages", refused: true},
		"DELETE /mcp": {summary: "Refused: the id of a session only tells clients apart, so there is nothing to end",
			refused: true},
	}
}

// oauthOperations are about the authorization server.
func oauthOperations() map[string]operation {
	return map[string]operation{
		"GET /.well-known/oauth-authorization-server": {summary: "Metadata of the authorization server (RFC 8414)",
			answer: of[authserver.ServerMetadata](nil)},
		"GET /.well-known/openid-configuration": {summary: "The same, at the path of OpenID Connect",
			answer: of[authserver.ServerMetadata](nil)},
		"GET /.well-known/oauth-protected-resource": {summary: "Metadata of the service as a resource (RFC 9728)",
			answer: of[authserver.ResourceMetadata](nil)},
		"GET /.well-known/oauth-protected-resource/mcp": {summary: "Metadata of the MCP endpoint as a resource (RFC 9728)",
			answer: of[authserver.ResourceMetadata](nil)},

		"POST /oauth/token":    tokenOperation("Exchange a code or a refresh token for tokens"),
		"POST /token":          tokenOperation("The same as /oauth/token, for clients that guess"),
		"POST /oauth/register": registerOperation("Register an OAuth client (RFC 7591)"),
		"POST /register":       registerOperation("The same as /oauth/register, for clients that guess"),
		"POST /oauth/revoke": {
			summary: "Revoke a token, and all tokens of its grant (RFC 7009)", bodyType: formMedia,
			answer: object(schema{}), wrong: []string{"400", "401"},
			body: takes[authserver.Revocation](schema{"token": note("An access token or a refresh token"),
				"token_type_hint": note("access_token or refresh_token; not needed"),
				"client_id":       note("None: the holder of the token may revoke it"),
				"client_secret":   note("Or in the Authorization header, with Basic")}),
		},

		"GET /oauth/admin/clients": {summary: "The OAuth clients that the caller has made", answer: of[ClientList](nil)},
		"POST /oauth/admin/clients": {
			summary: "Create an OAuth client; its secret is returned only once", answer: of[clientmeta.Added](nil),
			body: takes[newClient](schema{"client_id": note("None: a random one"),
				"client_secret": note("None: a random one"),
				"name":          note("The name that people see"), "redirect_uris": note("1 to 20"),
				"token_endpoint_auth_method": note(authMethods)}),
		},
		"POST /oauth/admin/clients/{client_id}/regenerate-secret": {summary: "Give an OAuth client a new secret",
			answer: of[clientmeta.Added](nil)},
		"DELETE /oauth/admin/clients/{client_id}": {summary: "Deactivate an OAuth client permanently, with all its access",
			answer: of[Done](nil)},

		"GET /oauth/jwks": {summary: "The public keys of access tokens (RFC 7517)", answer: of[authserver.KeySet](nil)},
	}
}

// fileOperations are about files.
func fileOperations() map[string]operation {
	return map[string]operation{
		"GET /api/files": {
			summary: "Visible files, newest first",
			answer:  of[FileList](schema{"count": note("Files on this page"), "total": note("Matching files")}),
			parameters: []parameter{{"memory_id", text("Only files linked to this memory")},
				{"category", text("Only files of this category")},
				{"tags", text("Only files with any of these tags, separated by commas")},
				{"project_id", text("Only files in this project")},
				{"project_name", text("The same by name")},
				{"limit", within("Maximum number of files on this page", 1, souvenir.MaxFileLimit, souvenir.MaxFileLimit)},
				{"offset", within("Number of files to skip", 0, params.MaxOffset, 0)}},
		},
		"POST /api/files/upload": {
			summary: "Store a file", bodyType: "multipart/form-data", answer: of[ChangedFile](nil),
			body: takes[uploadForm](schema{"file": schema{"contentMediaType": "application/octet-stream"},
				"memory_id": note("Memory to link it to"), "tags[]": note("Repeated"),
				"tags":       note("Several, separated by commas, or a JSON list"),
				"project_id": note("Project of a file without a memory"), "project_name": note("The same by name")}),
		},
		"GET /api/files/{id}":    {summary: "The bytes of a file; ranges and conditions are honoured", answerType: "*/*"},
		"DELETE /api/files/{id}": {summary: "Delete a file", answer: of[Done](nil)},
		"PUT /api/files/{id}/metadata": {
			summary: "Change the details of a file", answer: of[ChangedFile](nil),
			body: takes[fileChange](schema{"tags": orNull(list(text(""), "")),
				"memory_id": note("Memory to link it to; empty for none")}),
		},
	}
}

// projectOperations are about projects, their people and invitations.
func projectOperations() map[string]operation {
	success := schema{"success": constant(true)}
	return map[string]operation{
		"GET /api/projects":      {summary: "Visible projects", answer: of[ProjectList](nil)},
		"GET /api/projects/{id}": {summary: "A project, by id or OWNER%2FID", answer: of[souvenir.Project](nil)},
		"GET /api/projects/{id}/members": {summary: "The people of a project", answer: of[MemberList](schema{
			"invited": note("Pending invitations; only for those who may invite")})},
		"POST /api/projects/{id}/members": {
			summary: "Invite a user to a project; the answer is the same whether or not there is such a user",
			answer:  of[ChangedMember](nil),
			body:    takes[newMember](schema{"user": line("Name or id of a user", nameLength)}),
		},
		"PATCH /api/projects/{id}/members/{user}": {
			summary: "Change the role of a member or a pending invitation; a higher role counts once the member accepts it",
			answer:  of[ChangedMember](nil), body: takes[newRole](nil),
		},
		"DELETE /api/projects/{id}/members/{user}": {summary: "Remove a member from a project, or withdraw an invitation",
			answer: of[Done](nil)},

		"GET /api/project-invitations": {summary: "The caller's pending project invitations",
			answer: of[ProjectInvitationList](nil)},
		"POST /api/project-invitations/{id}/accept": {summary: "Become a member of the project",
			answer: of[AcceptedInvitation](success)},
		"POST /api/project-invitations/{id}/decline": {summary: "Decline an invitation; its sender is not notified",
			answer: of[Done](nil)},
		"POST /api/project-invitations/{id}/block": {summary: "Decline an invitation and block its sender, who is not " +
			"notified",
			answer: of[Done](nil)},
		"GET /api/blocked-users": {summary: "Users blocked from inviting the caller",
			answer: of[BlockedUserList](nil)},
		"DELETE /api/blocked-users/{user}": {summary: "Unblock a user, by id", answer: of[Done](nil)},
	}
}

// trashOperations are about the trash.
func trashOperations() map[string]operation {
	success := schema{"success": constant(true)}
	return map[string]operation{
		"GET /api/trash": {
			summary: "What was deleted and can be restored, newest first: files with the scope files:read, all else with " +
				"memory:read",
			answer: of[TrashList](schema{"count": note("Entries on this page")}),
			parameters: []parameter{{"kind",
				described(schemaOf(reflect.TypeFor[souvenir.TrashKind]()), "Only entries of this kind")},
				{"limit", within("Maximum number of entries on this page", 1, souvenir.MaxTrashLimit, 100)},
				{"offset", within("Number of entries to skip", 0, params.MaxOffset, 0)}},
		},
		"POST /api/trash/{id}/restore": {summary: "Restore an entry of the trash to its place: a file with the scope " +
			"files:write, all else with memory:write", answer: of[RestoredEntry](success)},
		"DELETE /api/trash/{id}": {summary: "Erase an entry of the trash permanently; only for its owner",
			answer: of[Done](nil)},
		"DELETE /api/trash": {summary: "Erase all of the caller's entries in the trash",
			answer: of[EmptiedTrash](schema{"success": constant(true), "erased": note("Number of erased entries")})},
	}
}

// accountOperations are about the caller's own tokens, calls and preferences.
func accountOperations() map[string]operation {
	return map[string]operation{
		"GET /api/mcp-tokens": {summary: "The caller's MCP tokens, without their values", answer: of[TokenList](nil)},
		"POST /api/mcp-tokens": {
			summary: "Create an MCP token; its value is returned only once", answer: of[souvenir.AddedToken](nil),
			body: takes[newToken](schema{"name": line("A name to recognize it by", nameLength),
				"expires_in_days": orNull(days("None: as long as the caller's own credential allows")),
				"scopes": orNull(
					nonempty(scopeList("None: memory and files, as far as the caller's credential reaches; account and admin must " +
						"be named"))),
				"projects": orNull(nonempty(list(text(""), "Project ids; none: no limit")))}),
		},
		"DELETE /api/mcp-tokens/{id}": {summary: "Revoke an MCP token", answer: of[Done](nil)},

		"GET /api/owner-ids/me": {
			summary: "Who the caller is, and who shares projects with the caller",
			answer: of[OwnerIDs](schema{"owner_id": note("User id of the caller"), "projects": note("The caller's own"),
				"shared": note("Others, with the projects that the caller can see")}),
		},

		"GET /api/activity": {
			summary: "Recorded calls, newest first: user, credential, tool, subject, time, duration and outcome",
			wrong:   []string{"404"},
			answer: of[souvenir.ActivityPage](schema{
				"has_more": note("There are more: repeat with before set to the id of the last one"),
				"lost":     note("Calls, of all users, that could not be recorded since the server was started")}),
			parameters: []parameter{{"user",
				text("Id or name of another user, or * for all users: for admins, with the scope admin")},
				{"credential", word("Only calls with a credential of this kind", credentialKinds()...)},
				{"credential_id", text("Only calls with the credential of this id")},
				{"client", text("Only calls of the program with this name")},
				{"tool", text("Only calls of this tool or route")},
				{"action", text("Only calls of this action")}, {"project_id", projectNamed("Only calls that named this project")},
				{"outcome", word("Only calls with this outcome; error: all failed ones", askedOutcomes()...)},
				{"since", moment("Only calls that began then or later")}, {"until", moment("Only calls that began before")},
				{"limit", within("Maximum number of calls on this page", 1, souvenir.MaxActivityLimit, 100)},
				{"before", text("Only calls recorded before the one of this id")}},
		},

		"GET /api/user-preferences": {summary: "The caller's preferences", answer: anything("")},
		"PUT /api/user-preferences": {summary: "Replace the caller's preferences", body: anything("At most 64 KiB"),
			answer: anything("")},
		"PATCH /api/user-preferences": {summary: "Merge into the caller's preferences (RFC 7396)", body: anything(""),
			answer: anything("")},
	}
}

func tokenOperation(summary string) operation {
	return operation{
		summary: summary, bodyType: formMedia, answer: of[souvenir.TokenSet](nil), wrong: []string{"400", "401"},
		body: takes[authserver.TokenRequest](schema{"grant_type": word("", authserver.GrantCode, authserver.GrantRefresh),
			"code": note("With authorization_code"), "redirect_uri": note("The one of the authorization"),
			"code_verifier": note("RFC 7636"), "refresh_token": note("With refresh_token"),
			"scope":    note("With refresh_token: fewer scopes than were granted"),
			"resource": note("RFC 8707; may be repeated"), "client_id": note("Or in the Authorization header, with Basic"),
			"client_secret": note("As client_id")}),
	}
}

func registerOperation(summary string) operation {
	return operation{
		summary: summary, created: true, answer: of[clientmeta.Registered](nil), wrong: []string{"400", "429", "503"},
		body: takes[clientmeta.Metadata](schema{"redirect_uris": note("1 to 20"),
			"token_endpoint_auth_method": note(authMethods),
			"scope":                      note("Scopes that the client may ask for, separated by spaces"),
			"grant_types":                note("None: all"), "response_types": note("None: all")}),
	}
}

// loose also allows unknown members.
func loose(s schema) schema {
	delete(s, "additionalProperties")
	return s
}

// message is the schema of MCP messages: JSON-RPC 2.0, in older revisions also in batches.
func message() schema {
	one := loose(object(schema{
		"jsonrpc": constant("2.0"),
		"id":      schema{"type": []any{"string", "integer"}, "description": "Of a request, and of the response to one"},
		"method":  text("The method of the request or notification"), "params": anything(""),
		"result": anything(""), "error": anything(""),
	}, "id", "method", "params", "result", "error"))
	several := nonempty(list(one, "A batch, up to revision "+batchesUntil))
	several["maxItems"] = maxBatch
	return schema{"description": "A message of JSON-RPC", "anyOf": []any{one, several}}
}

func nonempty(s schema) schema {
	s["minItems"] = 1
	return s
}

// days is a number of days from now.
func days(description string) schema {
	return described(schema{"type": "integer", "minimum": 1, "maximum": params.MaxTokenDays}, description)
}

// within is a bounded whole number with a default.
func within(description string, least, most, otherwise int) schema {
	return described(schema{"type": "integer", "minimum": least, "maximum": most, "default": otherwise}, description)
}

// authMethods describes how OAuth clients can authenticate.
const authMethods = "client_secret_basic, which is the default, client_secret_post or none"

// components are the schemas that several operations share.
func components() map[string]schema {
	all := map[string]schema{}
	share[Health](all, schema{"status": word("", "ok", "degraded"), "service": constant("souvenir"),
		"version": constant(APIVersion),
		"program": note("Version of the program"), "problem": note("The problem, if the status is degraded")})
	share[TextBlock](all, schema{"type": constant("text")})
	share[ErrorBody](all, schema{"error": note("What was wrong, with which value, and what would be right"),
		"content": note("One: Error: and the error"), "isError": constant(true)})
	share[souvenir.OAuthError](all, schema{"error": note("A code of RFC 6749, 7591, 7009 or 8707")})
	share[authserver.ServerMetadata](all, nil)
	share[authserver.ResourceMetadata](all, nil)
	loose(all["ServerMetadata"]) // as in RFC 8414 and RFC 9728
	loose(all["ResourceMetadata"])
	share[souvenir.TokenSet](all,
		schema{"access_token": note("A JWT"), "token_type": constant("Bearer"), "expires_in": note("Seconds"),
			"scope": note("Separated by spaces")})
	share[Done](all, schema{"success": constant(true)})
	share[tools.Tool](all, schema{"inputSchema": note("JSON Schema of its arguments")})
	shareThings(all)
	shareTokens(all)
	shareMessages(all)
	return all
}

// shareThings adds the schemas of files, projects, users and what they do.
func shareThings(all map[string]schema) {
	share[souvenir.File](all, schema{"memory_id": orNull(text("")), "size": note("Bytes"),
		"sha256": note("64 hexadecimal digits"),
		"owner":  note("User id"),
		"text":   note("What searches find of it: state is waiting, indexed, none or failed")}, "project_id")
	share[ChangedFile](all, schema{"success": constant(true)})
	share[souvenir.TrashEntry](all,
		schema{"id": note("Of a memory or a file: its own id"), "title": note("The beginning of the memory, or the name"),
			"owner": note("User id of its owner"), "memories": note("Number of memories in it"),
			"size":       note("Bytes"),
			"deleted_by": note("User id"), "deleted_through": note("What acted for the user: tool, api or page"),
			"restorable_until": note("From then on it is erased"), "own": note("The caller may erase it")})

	status := note("invited: the role counts once the user accepts; nothing of the project is visible to one who is no " +
		"member yet")
	share[souvenir.Project](all, schema{"owner": note("User id"), "memory_count": note("Of the visible ones")})
	share[souvenir.Member](all, schema{"user": note("User id; of an invited user, the name as it was typed"),
		"status": status})
	share[ChangedMember](all, schema{"success": constant(true), "status": status})
	share[souvenir.InvitedMember](all,
		schema{"user": note("As it was typed; of a member who is to have a higher role, the name"),
			"invited_by": note("User id")})
	share[souvenir.ProjectInvitation](all,
		schema{"owner": note("User id of the project's owner"), "invited_by": note("User id"),
			"current_role": note("Of the caller, who is a member already")})
	share[souvenir.BlockedSender](all, schema{"user": note("User id")})
	share[souvenir.Owner](all, schema{"owner_id": note("User id")})
	share[souvenir.User](all, nil)
	share[souvenir.Activity](all, schema{"user": note("User id"), "user_name": note("Name of the account"),
		"credential": of[souvenir.Credential](schema{"kind": note("token, client or session; empty: none"),
			"name": note("Of the token or the client")}),
		"client": note("The name of the program"), "tool": note("Or the method and pattern of a route"),
		"bytes": note("Of the answer; 0: unknown")})
}

// shareTokens adds the schemas of MCP tokens.
func shareTokens(all map[string]schema) {
	token := schema{
		"prefix": note("The beginning of its value"), "projects": orNull(list(text(""), "null: all")),
		"last_used_at": orNull(moment("null: never")), "expires_at": orNull(moment("null: never")),
		"grant_id": note("The OAuth grant of the application that made it. It is revoked with the grant. Left out: no " +
			"application made it"),
		"client_name": note("The name of that application"),
		"token_id": note("The token that was used to make it. It is revoked with that token. Left out: no token was " +
			"used"),
		"token_name": note("The name of that token"),
		"session_id": note("The browser session in which it was made. Left out: it was made outside a browser"),
		"browser":    note("The user agent of that browser"),
		"with_session": note("It is revoked when that session ends in any way. Left out: only when the session is " +
			"signed out from another browser"),
	}
	share[souvenir.Token](all, token)
	added := maps.Clone(token)
	added["token"] = note("Its value, which begins with mcp_")
	share[souvenir.AddedToken](all, added)
}

// shareMessages adds the schemas of OAuth clients and of JSON-RPC.
func shareMessages(all map[string]schema) {
	share[clientmeta.Listed](all,
		schema{"kind": schemaOf(reflect.TypeFor[souvenir.ClientKind]()), "owner": note("User id")})
	registered := schema{"client_id_issued_at": note("Seconds since 1970"), "client_secret": note("Shown only once"),
		"client_secret_expires_at": schema{"const": 0, "description": "It does not expire"}}
	share[clientmeta.Registered](all, registered)
	share[clientmeta.Added](all, registered)
	loose(all["RegisteredClient"]) // further metadata
	loose(all["AddedClient"])
	share[mcpAnswer](all, schema{"jsonrpc": constant("2.0"), "id": schema{"type": []any{"string", "integer", "null"}},
		"result": note("What a model can read, also of what was refused")})
}

func flag() schema { return schema{"type": "boolean"} }

// note describes a member.
func note(description string) schema { return schema{"description": description} }
