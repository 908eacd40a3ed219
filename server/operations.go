package server

import "github.com/souvenir-ai/souvenir"

// operations says what the routes take and give, by "METHOD /pattern". A test holds it to the table and the table to it,
// and compares what is answered with what is said here.
func operations() map[string]operation {
	return map[string]operation{
		"GET /health":       {summary: "Whether the service works", answer: ref("Health")},
		"GET /openapi.json": {summary: "This document", answer: anything("An OpenAPI 3.1 document")},

		"GET /tools": {summary: "The tools that there are", answer: object(schema{"tools": list(ref("Tool"), "")})},
		"POST /tools/call": {
			summary: "Call a tool",
			body: loose(object(schema{"name": text("Name of a tool"), "arguments": anything("Its arguments, as its inputSchema says")},
				"arguments")),
			answer: object(schema{"content": list(ref("Text"), "One: the result as JSON")}),
		},

		"GET /api/files": {
			summary: "Files that are visible, the newest first", answer: object(schema{"files": list(ref("File"), ""), "count": number("")}),
			parameters: []parameter{{"memory_id", "Only files linked to this memory"}, {"category", "Only files of this category"},
				{"tags", "Only files with any of these tags, separated by commas"}, {"project_id", "Only files in this project"}, {"project_name", "The same by name"}},
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

		"GET /api/projects":              {summary: "Projects that are visible", answer: object(schema{"projects": list(ref("Project"), ""), "count": number("")})},
		"GET /api/projects/{id}":         {summary: "A project, by id or OWNER%2FID", answer: ref("Project")},
		"GET /api/projects/{id}/members": {summary: "The people of a project", answer: object(schema{"members": list(ref("Member"), ""), "count": number("")})},
		"POST /api/projects/{id}/members": {
			summary: "Add somebody to a project", answer: ref("ChangedMember"),
			body: object(schema{"user": line("Name or id of a user", nameLength), "role": memberRole()}),
		},
		"PATCH /api/projects/{id}/members/{user}": {
			summary: "Give a member another role", answer: ref("ChangedMember"), body: object(schema{"role": memberRole()}),
		},
		"DELETE /api/projects/{id}/members/{user}": {summary: "End somebody's part in a project", answer: ref("Done")},

		"GET /api/mcp-tokens": {summary: "The caller's MCP tokens, without their values", answer: object(schema{"tokens": list(ref("Token"), ""), "count": number("")})},
		"POST /api/mcp-tokens": {
			summary: "Make an MCP token; its value is told this once", answer: ref("AddedToken"),
			body: object(schema{"name": line("To know it by", nameLength), "expires_in_days": orNull(days("None: as late as the caller's own credential allows")),
				"scopes":   orNull(nonempty(scopeList("None: those of the caller's credential but admin"))),
				"projects": orNull(nonempty(list(text(""), "Project ids; none: no limit")))}, "expires_in_days", "scopes", "projects"),
		},
		"DELETE /api/mcp-tokens/{id}": {summary: "End an MCP token", answer: ref("Done")},

		"GET /api/owner-ids/me": {
			summary: "Who the caller is, and who shares projects with the caller",
			answer: object(schema{"owner_id": text("User id of the caller"), "user": ref("User"),
				"projects": list(ref("Project"), "The caller's own"), "shared": list(ref("Owner"), "Others, with the projects that the caller can see")}),
		},

		"GET /api/user-preferences":   {summary: "The caller's preferences", answer: anything("")},
		"PUT /api/user-preferences":   {summary: "Replace the caller's preferences", body: anything("At most 64 KiB"), answer: anything("")},
		"PATCH /api/user-preferences": {summary: "Merge into the caller's preferences (RFC 7396)", body: anything(""), answer: anything("")},
	}
}

// loose also allows members that are not known.
func loose(s schema) schema {
	delete(s, "additionalProperties")
	return s
}

func nonempty(s schema) schema {
	s["minItems"] = 1
	return s
}

// days is a time from now on.
func days(description string) schema {
	return described(schema{"type": "integer", "minimum": 1, "maximum": maxTokenDays}, description)
}

func memberRole() schema {
	return word("", souvenir.MemberReader, souvenir.MemberWriter, souvenir.MemberOwner)
}

// components are the forms that several answers share.
func components() map[string]schema {
	token := schema{
		"id": text(""), "name": text(""), "prefix": text("The beginning of its value"), "scopes": scopeList(""),
		"projects": orNull(list(text(""), "null: all")), "created_at": moment(""), "last_used_at": moment("Left out: never"), "expires_at": moment("Left out: never"),
	}
	added := schema{"token": text("Its value, which begins with mcp_")}
	for name, member := range token {
		added[name] = member
	}
	return map[string]schema{
		"Health": object(schema{"status": constant("ok"), "service": constant("souvenir"), "version": constant(APIVersion), "program": text("Version of the program")}, "program"),
		"Text":   object(schema{"type": constant("text"), "text": text("")}),
		"Error": object(schema{"error": text("What was wrong, with which value, and what would be right"),
			"content": list(ref("Text"), "One: Error: and the error"), "isError": constant(true)}),
		"Done": object(schema{"success": constant(true), "message": text("")}),
		"Tool": object(schema{"name": text(""), "title": text(""), "description": text(""), "inputSchema": anything("JSON Schema of its arguments"),
			"annotations": object(schema{"readOnlyHint": flag(), "destructiveHint": flag(), "idempotentHint": flag(), "openWorldHint": flag()})}),
		"File": object(schema{"id": text(""), "memory_id": orNull(text("")), "filename": text(""), "mime_type": text(""), "size": number("Bytes"),
			"description": text(""), "tags": list(text(""), ""), "category": text(""), "sha256": text("64 hexadecimal digits"), "owner": text("User id"),
			"project_id": text(""), "created_at": moment(""), "updated_at": moment("")}, "project_id"),
		"ChangedFile": object(schema{"success": constant(true), "file": ref("File"), "message": text("")}),
		"Project": object(schema{"project_id": text(""), "project_name": text(""), "owner": text("User id"), "owner_name": text(""), "role": memberRole(),
			"member_count": number(""), "memory_count": number("Of those that are visible"), "created_at": moment(""), "updated_at": moment("")}, "owner_name"),
		"Member":        object(schema{"user": text("User id"), "name": text(""), "role": memberRole(), "created_at": moment("")}, "name"),
		"ChangedMember": object(schema{"success": constant(true), "member": ref("Member"), "message": text("")}),
		"Owner":         object(schema{"owner_id": text("User id"), "name": text(""), "projects": list(ref("Project"), "")}, "name"),
		"User": object(schema{"id": text(""), "name": text(""), "email": text(""), "role": word("", souvenir.RoleUser, souvenir.RoleAdmin),
			"disabled": flag(), "has_password": flag(), "created_at": moment("")}, "email"),
		"Token":      object(token, "last_used_at", "expires_at"),
		"AddedToken": object(added, "last_used_at", "expires_at"),
	}
}

func flag() schema { return schema{"type": "boolean"} }
