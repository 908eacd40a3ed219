package server

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/auth/clientmeta"
	"github.com/souvenir-ai/souvenir/server/internal/authserver"
	"github.com/souvenir-ai/souvenir/tools"
)

// The schemas of the OpenAPI document are generated from the Go types of request bodies and answers. operations.go
// adds by member what types do not express (meanings, bounds, null for nothing). Tests compare each answer with the
// document.

// of is the schema of a body of type T: a reference for a type that several operations share. Words adds
// descriptions of members, by their JSON names. Optional members are the named ones, and the ones that encoding/json
// may leave out.
func of[T any](words schema, optional ...string) schema {
	return answered(reflect.TypeFor[T](), words, optional)
}

func answered(t reflect.Type, words schema, optional []string) schema {
	if name := sharedName(t); name != "" {
		return ref(name)
	}
	return expanded(t, false, words, optional...)
}

// takes is the schema of a body that a handler reads into a T. Members with omitempty are optional. Unknown ones are
// allowed unless T refuses them.
func takes[T any](words schema) schema {
	made := expanded(reflect.TypeFor[T](), true, words)
	if !isStrict(*new(T)) {
		delete(made, "additionalProperties")
	}
	return made
}

// share adds the schema of a type to the shared ones.
func share[T any](all map[string]schema, words schema, optional ...string) {
	all[sharedName(reflect.TypeFor[T]())] = expanded(reflect.TypeFor[T](), false, words, optional...)
}

// expanded is the schema of a struct, that is asked for or answered: an object with exactly these members.
func expanded(t reflect.Type, asked bool, words schema, optional ...string) schema {
	members, left := schema{}, []string{}
	for _, field := range reflect.VisibleFields(t) {
		name, options, tagged := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" || name == "-" || !field.IsExported() {
			continue
		}
		given := field.Type
		if tagged && (strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")) {
			left = append(left, name)
			if given.Kind() == reflect.Pointer && !asked { // left out instead of null
				given = given.Elem()
			}
		}
		member := schemaOf(given)
		if more, ok := words[name].(schema); ok {
			maps.Copy(member, more)
		}
		members[name] = member
	}
	for name, word := range words { // a test detects names that the type does not have
		if members[name] == nil {
			members[name] = word
		}
	}
	return object(members, slices.Concat(left, optional)...)
}

// schemaOf is the schema of a type as encoding/json writes and reads it.
func schemaOf(t reflect.Type) schema {
	if name := sharedName(t); name != "" {
		return ref(name)
	}
	switch t {
	case reflect.TypeFor[time.Time]():
		return moment("")
	case reflect.TypeFor[json.RawMessage]():
		return anything("")
	}
	switch t.Kind() {
	case reflect.Pointer:
		return orNull(schemaOf(t.Elem()))
	case reflect.Slice:
		return list(schemaOf(t.Elem()), "")
	case reflect.Struct:
		return expanded(t, false, nil)
	case reflect.String:
		if values := valuesOf(t); values != nil {
			return schema{"type": "string", "enum": values}
		}
		return text("")
	case reflect.Bool:
		return flag()
	case reflect.Int, reflect.Int64:
		return number("")
	case reflect.Float64:
		return schema{"type": "number"}
	}
	return anything("")
}

// valuesOf returns the values of an enumerated type; nil: any.
func valuesOf(t reflect.Type) any {
	switch t {
	case reflect.TypeFor[souvenir.Scope]():
		return souvenir.Scopes()
	case reflect.TypeFor[souvenir.Outcome]():
		return souvenir.Outcomes()
	case reflect.TypeFor[souvenir.MemberRole]():
		return []souvenir.MemberRole{souvenir.MemberReader, souvenir.MemberWriter, souvenir.MemberOwner}
	case reflect.TypeFor[souvenir.MemberStatus]():
		return []souvenir.MemberStatus{souvenir.MemberAccepted, souvenir.MemberInvited}
	case reflect.TypeFor[souvenir.Role]():
		return []souvenir.Role{souvenir.RoleUser, souvenir.RoleAdmin}
	case reflect.TypeFor[souvenir.ClientKind]():
		return []souvenir.ClientKind{souvenir.ClientAdmin, souvenir.ClientRegistered, souvenir.ClientDocument}
	case reflect.TypeFor[souvenir.TrashKind]():
		return []souvenir.TrashKind{souvenir.TrashMemory, souvenir.TrashFile, souvenir.TrashProject, souvenir.TrashCollection}
	}
	return nil
}

// sharedName returns the schema name of a shared type; empty for any other.
func sharedName(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[TextBlock]():
		return "Text"
	case reflect.TypeFor[ErrorBody]():
		return "Error"
	case reflect.TypeFor[souvenir.BlockedSender]():
		return "BlockedUser"
	case reflect.TypeFor[souvenir.Client](), reflect.TypeFor[clientmeta.Listed]():
		return "Client" // the one is written as the other
	case reflect.TypeFor[clientmeta.Registered]():
		return "RegisteredClient"
	case reflect.TypeFor[clientmeta.Added]():
		return "AddedClient"
	case reflect.TypeFor[mcpAnswer]():
		return "RPCAnswer"
	case reflect.TypeFor[Health](), reflect.TypeFor[Done](), reflect.TypeFor[ChangedFile](),
		reflect.TypeFor[ChangedMember](),
		reflect.TypeFor[tools.Tool](), reflect.TypeFor[souvenir.File](), reflect.TypeFor[souvenir.Project](),
		reflect.TypeFor[souvenir.Member](), reflect.TypeFor[souvenir.InvitedMember](),
		reflect.TypeFor[souvenir.ProjectInvitation](),
		reflect.TypeFor[souvenir.TrashEntry](), reflect.TypeFor[souvenir.Owner](), reflect.TypeFor[souvenir.User](),
		reflect.TypeFor[souvenir.Activity](), reflect.TypeFor[souvenir.Token](), reflect.TypeFor[souvenir.AddedToken](),
		reflect.TypeFor[souvenir.TokenSet](), reflect.TypeFor[souvenir.OAuthError]():
		return t.Name()
	case reflect.TypeFor[authserver.ServerMetadata]():
		return "ServerMetadata"
	case reflect.TypeFor[authserver.ResourceMetadata]():
		return "ResourceMetadata"
	}
	return ""
}
