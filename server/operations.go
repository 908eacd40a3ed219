package server

import (
	"maps"

	"github.com/souvenir-ai/souvenir"
)

// operations says what the routes take and give, by "METHOD /pattern". A test holds it to the table and the table to it,
// and compares what is answered with what is said here.
func operations() map[string]operation {
	return map[string]operation{
		"GET /health":       {summary: "Whether the service works", answer: ref("Health")},
		"GET /openapi.json": {summary: "This document", answer: anything("An OpenAPI 3.1 document")},

		"GET /.well-known/oauth-authorization-server":   {summary: "Metadata of the authorization server (RFC 8414)", answer: ref("ServerMetadata")},
		"GET /.well-known/openid-configuration":         {summary: "The same, where OpenID Connect has it", answer: ref("ServerMetadata")},
		"GET /.well-known/oauth-protected-resource":     {summary: "Metadata of the service as a resource (RFC 9728)", answer: ref("ResourceMetadata")},
		"GET /.well-known/oauth-protected-resource/mcp": {summary: "Metadata of the MCP endpoint as a resource (RFC 9728)", answer: ref("ResourceMetadata")},

		"POST /oauth/token":    tokenOperation("Exchange a code or a refresh token for tokens"),
		"POST /token":          tokenOperation("The same as /oauth/token, for clients that guess"),
		"POST /oauth/register": registerOperation("Register an OAuth client (RFC 7591)"),
		"POST /register":       registerOperation("The same as /oauth/register, for clients that guess"),
		"POST /oauth/revoke": {
			summary: "End what a token was given for, with all its tokens (RFC 7009)", bodyType: formMedia, answer: object(schema{}), wrong: []string{"400", "401"},
			body: loose(object(schema{"token": text("An access token or a refresh token"), "token_type_hint": text("access_token or refresh_token; not needed"),
				"client_id": text("None: whoever holds the token may revoke it"), "client_secret": text("Or in the header Authorization, with Basic")},
				"token_type_hint", "client_id", "client_secret")),
		},

		"GET /oauth/admin/clients": {summary: "The OAuth clients that the caller has made", answer: object(schema{"clients": list(ref("Client"), ""), "count": number("")})},
		"POST /oauth/admin/clients": {
			summary: "Make an OAuth client; its secret is told this once", answer: ref("AddedClient"),
			body: loose(object(schema{"client_id": text("None: a random one"), "client_secret": text("None: a random one"), "name": text("What people are shown"),
				"redirect_uris": list(text(""), "1 to 20"), "token_endpoint_auth_method": text("client_secret_basic, which is the default, client_secret_post or none")},
				"client_id", "client_secret", "name", "token_endpoint_auth_method")),
		},
		"POST /oauth/admin/clients/{client_id}/regenerate-secret": {summary: "Give an OAuth client a new secret", answer: ref("AddedClient")},
		"DELETE /oauth/admin/clients/{client_id}":                 {summary: "Deactivate an OAuth client for good, with all that it was allowed", answer: ref("Done")},

		"GET /oauth/jwks": {summary: "The public keys of access tokens (RFC 7517)", answer: object(schema{"keys": list(anything(""), "")})},

		"GET /tools": {summary: "The tools that there are", answer: object(schema{"tools": list(ref("Tool"), "")})},
		"POST /tools/call": {
			summary: "Call a tool",
			body: loose(object(schema{"name": text("Name of a tool"), "arguments": anything("Its arguments, as its inputSchema says")},
				"arguments")),
			answer: object(schema{"content": list(ref("Text"), "One: the result as JSON")}),
		},

		"POST /mcp": {
			summary: "A message of the Model Context Protocol, revisions 2024-11-05 to 2026-07-28", mcp: true,
			body: message(), answer: schema{"description": "Its answer; a list of answers to a list of messages"},
		},
		"GET /mcp":    {summary: "Refused: there is no stream of messages", refused: true},
		"DELETE /mcp": {summary: "Refused: the id of a session only tells clients apart, so there is nothing to end", refused: true},

		"GET /api/files": {
			summary: "Files that are visible, the newest first",
			answer: object(schema{"files": list(ref("File"), ""), "count": number("Files on this page"), "total": number("Files that fit"),
				"offset": number(""), "limit": number(""), "has_more": flag()}),
			parameters: []parameter{{"memory_id", text("Only files linked to this memory")}, {"category", text("Only files of this category")},
				{"tags", text("Only files with any of these tags, separated by commas")}, {"project_id", text("Only files in this project")},
				{"project_name", text("The same by name")}, {"limit", within("Most files on this page", 1, souvenir.MaxFileLimit, souvenir.MaxFileLimit)},
				{"offset", within("Files to leave out before the first", 0, maxOffset, 0)}},
		},
		"POST /api/files/upload": {
			summary: "Store a file", bodyType: "multipart/form-data", answer: ref("ChangedFile"),
			body: loose(object(schema{"file": schema{"type": "string", "contentMediaType": "application/octet-stream"},
				"memory_id": text("Memory to link it to"), "description": text(""), "tags[]": list(text(""), "Repeated"), "category": text(""),
				"project_id": text("Project of a file without a memory"), "project_name": text("The same by name")},
				"memory_id", "description", "tags[]", "category", "project_id", "project_name")),
		},
		"GET /api/files/{id}":    {summary: "The bytes of a file; ranges and conditions are honoured", answerType: "*/*"},
		"DELETE /api/files/{id}": {summary: "Delete a file", answer: ref("Done")},
		"PUT /api/files/{id}/metadata": {
			summary: "Change what is known about a file", answer: ref("ChangedFile"),
			body: loose(object(schema{"description": orNull(text("")), "tags": orNull(list(text(""), "")), "category": orNull(text("")), "filename": orNull(text("")),
				"memory_id": orNull(text("Memory to link it to; empty for none"))}, "description", "tags", "category", "filename", "memory_id")),
		},

		"GET /api/projects":      {summary: "Projects that are visible", answer: object(schema{"projects": list(ref("Project"), ""), "count": number("")})},
		"GET /api/projects/{id}": {summary: "A project, by id or OWNER%2FID", answer: ref("Project")},
		"GET /api/projects/{id}/members": {summary: "The people of a project", answer: object(schema{"members": list(ref("Member"), ""), "count": number(""),
			"invited": list(ref("InvitedMember"), "Pending invitations; only for those who may invite")}, "invited")},
		"POST /api/projects/{id}/members": {
			summary: "Invite a user to a project; the answer is the same whether or not there is such a user", answer: ref("ChangedMember"),
			body: object(schema{"user": line("Name or id of a user", nameLength), "role": memberRole()}),
		},
		"PATCH /api/projects/{id}/members/{user}": {
			summary: "Give a member, or a pending invitation, another role", answer: ref("ChangedMember"), body: object(schema{"role": memberRole()}),
		},
		"DELETE /api/projects/{id}/members/{user}": {summary: "Remove a member from a project, or withdraw an invitation", answer: ref("Done")},

		"GET /api/trash": {
			summary: "What was deleted and can be restored, the newest deletion first: files with the scope files:read, all else with memory:read",
			answer: object(schema{"entries": list(ref("TrashEntry"), ""), "count": number("Entries on this page"), "total": number(""), "offset": number(""),
				"limit": number(""), "has_more": flag()}),
			parameters: []parameter{{"kind", word("Only entries of this kind", souvenir.TrashMemory, souvenir.TrashFile, souvenir.TrashProject, souvenir.TrashCollection)},
				{"limit", within("Most entries on this page", 1, souvenir.MaxTrashLimit, 100)}, {"offset", within("Entries to leave out before the first", 0, maxOffset, 0)}},
		},
		"POST /api/trash/{id}/restore": {summary: "Restore an entry of the trash to where it lay: a file with the scope files:write, all else with memory:write", answer: object(schema{"success": constant(true), "entry": ref("TrashEntry"), "message": text("")})},
		"DELETE /api/trash/{id}":       {summary: "Erase an entry of the trash for good; for the owner of the place where it lay", answer: ref("Done")},
		"DELETE /api/trash": {summary: "Erase everything in the trash that lay in the caller's own places",
			answer: object(schema{"success": constant(true), "erased": number("How many entries"), "message": text("")})},

		"GET /api/project-invitations":               {summary: "Invitations to projects that wait for the caller", answer: object(schema{"invitations": list(ref("ProjectInvitation"), ""), "count": number("")})},
		"POST /api/project-invitations/{id}/accept":  {summary: "Become a member of the project", answer: object(schema{"success": constant(true), "project": ref("Project"), "message": text("")})},
		"POST /api/project-invitations/{id}/decline": {summary: "Decline an invitation; its sender is not told", answer: ref("Done")},
		"POST /api/project-invitations/{id}/block":   {summary: "Decline an invitation and block its sender, who is not told", answer: ref("Done")},
		"GET /api/blocked-users":                     {summary: "Users whose invitations do not reach the caller", answer: object(schema{"blocked": list(ref("BlockedUser"), ""), "count": number("")})},
		"DELETE /api/blocked-users/{user}":           {summary: "Unblock a user, by id", answer: ref("Done")},

		"GET /api/mcp-tokens": {summary: "The caller's MCP tokens, without their values", answer: object(schema{"tokens": list(ref("Token"), ""), "count": number("")})},
		"POST /api/mcp-tokens": {
			summary: "Make an MCP token; its value is told this once", answer: ref("AddedToken"),
			body: object(schema{"name": line("To know it by", nameLength), "expires_in_days": orNull(days("None: as late as the caller's own credential allows")),
				"scopes":   orNull(nonempty(scopeList("None: memory and files, as far as the caller's credential reaches; account and admin must be named"))),
				"projects": orNull(nonempty(list(text(""), "Project ids; none: no limit")))}, "expires_in_days", "scopes", "projects"),
		},
		"DELETE /api/mcp-tokens/{id}": {summary: "End an MCP token", answer: ref("Done")},

		"GET /api/owner-ids/me": {
			summary: "Who the caller is, and who shares projects with the caller",
			answer: object(schema{"owner_id": text("User id of the caller"), "user": ref("User"),
				"projects": list(ref("Project"), "The caller's own"), "shared": list(ref("Owner"), "Others, with the projects that the caller can see")}),
		},

		"GET /api/activity": {
			summary: "Calls that were recorded, the newest first: who, with what, on what, when, how long and how it ended", wrong: []string{"404"},
			answer: object(schema{"activities": list(ref("Activity"), ""), "has_more": described(flag(), "Ask again, with before set to the id of the last one"),
				"lost": described(number(""), "Calls, of all users, that could not be recorded since the server was started")}),
			parameters: []parameter{{"user", text("Id or name of another user, or * for all users: for admins, with the scope admin")},
				{"credential", word("Only calls with a credential of this kind", credentialKinds()...)},
				{"credential_id", text("Only calls with this one")}, {"client", text("Only calls of the program that calls itself so")}, {"tool", text("Only calls of this tool or route")},
				{"action", text("Only calls of this action")}, {"project_id", projectNamed("Only calls that named this project")},
				{"outcome", word("Only calls that ended so; error: all that failed", askedOutcomes()...)},
				{"since", moment("Only calls that began then or later")}, {"until", moment("Only calls that began before")},
				{"limit", within("Most calls on this page", 1, souvenir.MaxActivityLimit, 100)}, {"before", text("Only calls recorded before the one of this id")}},
		},

		"GET /api/user-preferences":   {summary: "The caller's preferences", answer: anything("")},
		"PUT /api/user-preferences":   {summary: "Replace the caller's preferences", body: anything("At most 64 KiB"), answer: anything("")},
		"PATCH /api/user-preferences": {summary: "Merge into the caller's preferences (RFC 7396)", body: anything(""), answer: anything("")},
	}
}

func tokenOperation(summary string) operation {
	return operation{
		summary: summary, bodyType: formMedia, answer: ref("TokenSet"), wrong: []string{"400", "401"},
		body: loose(object(schema{"grant_type": word("", grantCode, grantRefresh), "code": text("With authorization_code"), "redirect_uri": text("The one of the authorization"),
			"code_verifier": text("RFC 7636"), "refresh_token": text("With refresh_token"), "scope": text("With refresh_token: fewer scopes than were granted"),
			"resource": text("RFC 8707"), "client_id": text("Or in the header Authorization, with Basic"), "client_secret": text("As client_id")},
			"code", "redirect_uri", "code_verifier", "refresh_token", "scope", "resource", "client_id", "client_secret")),
	}
}

func registerOperation(summary string) operation {
	return operation{
		summary: summary, created: true, answer: ref("RegisteredClient"), wrong: []string{"400", "429", "503"},
		body: loose(object(schema{"redirect_uris": list(text(""), "1 to 20"), "client_name": text(""),
			"token_endpoint_auth_method": text("client_secret_basic, which is the default, client_secret_post or none")}, "client_name", "token_endpoint_auth_method")),
	}
}

// loose also allows members that are not known.
func loose(s schema) schema {
	delete(s, "additionalProperties")
	return s
}

// message is what the Model Context Protocol is spoken in: messages of JSON-RPC 2.0, in its older revisions also several at a time.
func message() schema {
	one := loose(object(schema{
		"jsonrpc": constant("2.0"),
		"id":      schema{"type": []any{"string", "integer"}, "description": "Of a request, and of the response to one"},
		"method":  text("What is asked for, or made known"), "params": anything(""),
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

// days is a time from now on.
func days(description string) schema {
	return described(schema{"type": "integer", "minimum": 1, "maximum": maxTokenDays}, description)
}

// within is a whole number within bounds, and what it is when it is not given.
func within(description string, least, most, otherwise int) schema {
	return described(schema{"type": "integer", "minimum": least, "maximum": most, "default": otherwise}, description)
}

func memberStatus() schema {
	return word("invited: nothing of the project is visible to the user yet", souvenir.MemberAccepted, souvenir.MemberInvited)
}

func memberRole() schema {
	return word("", souvenir.MemberReader, souvenir.MemberWriter, souvenir.MemberOwner)
}

// components are the forms that several answers share.
func components() map[string]schema {
	token := schema{
		"id": text(""), "name": text(""), "prefix": text("The beginning of its value"), "scopes": scopeList(""),
		"projects": orNull(list(text(""), "null: all")), "created_at": moment(""), "last_used_at": orNull(moment("null: never")), "expires_at": orNull(moment("null: never")),
		"grant_id":    text("The OAuth grant with which it ends, because an application made it. Left out: it ends with none"),
		"client_name": text("What that application calls itself"),
		"token_id":    text("The token through which it was made, and with which it ends. Left out: through none"), "token_name": text("What that one is called"),
		"session_id": text("The sign-in in a browser in which it was made. Left out: in none"), "browser": text("What the browser of that called itself"),
		"with_session": described(flag(), "It ends however that sign-in ends. Left out: only when the sign-in is ended from elsewhere"),
	}
	added := schema{"token": text("Its value, which begins with mcp_")}
	for name, member := range token {
		added[name] = member
	}
	registered := schema{"client_id": text(""), "client_id_issued_at": number("Seconds since 1970"), "redirect_uris": list(text(""), ""),
		"token_endpoint_auth_method": text(""), "grant_types": list(text(""), ""), "response_types": list(text(""), "")}
	addedClient := maps.Clone(registered)
	addedClient["name"], addedClient["active"] = text(""), flag()
	return map[string]schema{
		"Health": object(schema{"status": schema{"type": "string", "enum": []string{"ok", "degraded"}}, "service": constant("souvenir"), "version": constant(APIVersion),
			"program": text("Version of the program"), "problem": text("What is wrong, where the status is degraded")}, "program", "problem"),
		"Text": object(schema{"type": constant("text"), "text": text("")}),
		"Error": object(schema{"error": text("What was wrong, with which value, and what would be right"),
			"content": list(ref("Text"), "One: Error: and the error"), "isError": constant(true)}),
		"RPCAnswer": object(schema{
			"jsonrpc": constant("2.0"), "id": schema{"type": []any{"string", "integer", "null"}}, "result": anything("What a model can read, also of what was refused"),
			"error": object(schema{"code": number(""), "message": text(""), "data": schema{}}, "data"),
		}, "result", "error"),
		"OAuthError":       object(schema{"error": text("A code of RFC 6749, 7591, 7009 or 8707"), "error_description": text("")}),
		"ServerMetadata":   loose(object(schema{"issuer": text(""), "authorization_endpoint": text(""), "token_endpoint": text(""), "registration_endpoint": text("")})),
		"ResourceMetadata": loose(object(schema{"resource": text(""), "authorization_servers": list(text(""), ""), "scopes_supported": list(text(""), "")})),
		"TokenSet": object(schema{"access_token": text("A JWT"), "token_type": constant("Bearer"), "expires_in": number("Seconds"),
			"refresh_token": text(""), "scope": text("Separated by spaces")}, "refresh_token"),
		"RegisteredClient": loose(object(registered)),
		"Client": object(schema{"client_id": text(""), "name": text(""), "redirect_uris": list(text(""), ""), "token_endpoint_auth_method": text(""),
			"kind": word("", souvenir.ClientAdmin, souvenir.ClientRegistered, souvenir.ClientDocument), "owner": text("User id"), "active": flag(),
			"created_at": moment(""), "updated_at": moment("")}, "owner"),
		"AddedClient": loose(object(addedClient)),
		"Done":        object(schema{"success": constant(true), "message": text("")}),
		"Tool": object(schema{"name": text(""), "title": text(""), "description": text(""), "inputSchema": anything("JSON Schema of its arguments"),
			"annotations": object(schema{"readOnlyHint": flag(), "destructiveHint": flag(), "idempotentHint": flag(), "openWorldHint": flag()})}),
		"File": object(schema{"id": text(""), "memory_id": orNull(text("")), "filename": text(""), "mime_type": text(""), "size": number("Bytes"),
			"description": text(""), "tags": list(text(""), ""), "category": text(""), "sha256": text("64 hexadecimal digits"), "owner": text("User id"),
			"project_id": text(""), "created_at": moment(""), "updated_at": moment("")}, "project_id"),
		"ChangedFile": object(schema{"success": constant(true), "file": ref("File"), "message": text("")}),
		"Project": object(schema{"project_id": text(""), "project_name": text(""), "owner": text("User id"), "owner_name": text(""), "role": memberRole(),
			"member_count": number(""), "memory_count": number("Of those that are visible"), "created_at": moment(""), "updated_at": moment("")}, "owner_name"),
		"Member":        object(schema{"user": text("User id; of an invited user, the name as it was typed"), "name": text(""), "role": memberRole(), "status": memberStatus(), "created_at": moment("")}, "name"),
		"ChangedMember": object(schema{"success": constant(true), "status": memberStatus(), "member": ref("Member"), "message": text("")}),
		"InvitedMember": object(schema{"user": text("As it was typed"), "role": memberRole(), "invited_by": text("User id"), "invited_by_name": text(""),
			"created_at": moment(""), "expires_at": moment("")}, "invited_by_name"),
		"ProjectInvitation": object(schema{"id": text(""), "project_id": text(""), "project_name": text(""), "owner": text("User id of the project's owner"), "owner_name": text(""),
			"invited_by": text("User id"), "invited_by_name": text(""), "role": memberRole(), "created_at": moment(""), "expires_at": moment("")}, "owner_name", "invited_by_name"),
		"TrashEntry": object(schema{"id": text("Of a memory or a file: its own id"), "kind": word("", souvenir.TrashMemory, souvenir.TrashFile, souvenir.TrashProject, souvenir.TrashCollection),
			"title": text("The beginning of the memory, or the name"), "collection_name": text(""), "project_id": text(""), "project_name": text(""),
			"owner": text("User id of the owner of the place where it lay"), "memories": number("How many it holds"), "size": number("Bytes"),
			"deleted_by": text("User id"), "deleted_by_name": text(""), "deleted_through": text("What acted for the user: tool, api or page"),
			"deleted_at": moment(""), "restorable_until": moment("From then on it is erased"), "own": described(flag(), "The caller may erase it")},
			"collection_name", "project_id", "project_name", "deleted_by_name", "deleted_through"),
		"BlockedUser": object(schema{"user": text("User id"), "name": text(""), "created_at": moment("")}, "name"),
		"Owner":       object(schema{"owner_id": text("User id"), "name": text(""), "projects": list(ref("Project"), "")}, "name"),
		"User": object(schema{"id": text(""), "name": text(""), "email": text(""), "role": word("", souvenir.RoleUser, souvenir.RoleAdmin),
			"disabled": flag(), "has_password": flag(), "created_at": moment("")}, "email"),
		"Activity": object(schema{"id": text(""), "user": text("User id"), "user_name": text("Name of the account"),
			"credential": object(schema{"kind": text("token, client or session; empty: none"), "id": text(""), "name": text("Of the token or the client")}, "id", "name"),
			"client":     text("What the program calls itself"), "tool": text("Or the method and pattern of a route"), "action": text(""),
			"project_id": text(""), "memory_id": text(""), "file_id": text(""), "outcome": word("", souvenir.Outcomes()...),
			"started_at": moment(""), "duration_ms": schema{"type": "number"}, "bytes": number("Of the answer; 0: not known")},
			"user_name", "project_id", "memory_id", "file_id"),
		"Token":      object(token, "grant_id", "client_name", "token_id", "token_name", "session_id", "browser", "with_session"),
		"AddedToken": object(added, "grant_id", "client_name", "token_id", "token_name", "session_id", "browser", "with_session"),
	}
}

func flag() schema { return schema{"type": "boolean"} }
