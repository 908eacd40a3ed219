package souvenir

import (
	"slices"
	"time"
)

// Scope is a right that an MCP token or an OAuth grant carries.
type Scope string

// The values of [Scope].
const (
	ScopeMemoryRead  Scope = "memory:read"
	ScopeMemoryWrite Scope = "memory:write" // memory:read is in it
	ScopeFilesRead   Scope = "files:read"
	ScopeFilesWrite  Scope = "files:write" // files:read is in it
	ScopeAccount     Scope = "account"     // the user's tokens, OAuth clients and shares: who else may come to what the user has
	ScopeAdmin       Scope = "admin"       // users, clients and the store as a whole; counts only while the user is an admin
)

// Scopes returns all scopes there are, in the order of their constants.
func Scopes() []Scope {
	return append(DefaultScopes(), ScopeAccount, ScopeAdmin)
}

// DefaultScopes returns the scopes of a credential that was given without naming any: memories and files. ScopeAccount and ScopeAdmin
// open the door to others, so a credential has them only when they were named.
func DefaultScopes() []Scope {
	return []Scope{ScopeMemoryRead, ScopeMemoryWrite, ScopeFilesRead, ScopeFilesWrite}
}

// Principal is who a credential speaks for, and how far: what [Accounts.CheckToken], [Accounts.CheckAccessToken] and [Accounts.CheckSession]
// find out.
//
// Access makes the view of the store that the credential reaches: the user, the credential's projects, and read-only for a
// credential that carries none of memory:write, files:write and account. A view knows no scopes: which of memories and files a
// credential may read and write, and whether it may manage anything, is asked of Allows before each call.
type Principal struct {
	User      User    `json:"user"`
	Scopes    []Scope `json:"scopes"`
	Access    Access  `json:"access"`               // for As: see there
	TokenID   string  `json:"token_id,omitempty"`   // of an MCP token; empty for anything else
	ClientID  string  `json:"client_id,omitempty"`  // of an OAuth client; empty for anything else
	GrantID   string  `json:"grant_id,omitempty"`   // of an OAuth grant, also of one through which an MCP token was made; empty for anything else
	SessionID string  `json:"session_id,omitempty"` // of a person's session in a browser; empty for anything else

	// ConfirmedAt is when the person of a session last showed who they are, with a password or at a provider; zero for anything else.
	ConfirmedAt time.Time `json:"confirmed_at,omitzero"`
}

// accessOf is what the view of a credential is made with.
func accessOf(user string, scopes []Scope, projects []string) Access {
	writes := slices.Contains(scopes, ScopeMemoryWrite) || slices.Contains(scopes, ScopeFilesWrite) || slices.Contains(scopes, ScopeAccount)
	return Access{User: user, Projects: projects, ReadOnly: !writes}
}

// Allows reports whether the credential carries a scope; a write scope carries the read scope beside it. The admin scope
// counts only for a user who is an admin.
func (p Principal) Allows(scope Scope) bool {
	switch scope {
	case ScopeMemoryRead:
		return slices.Contains(p.Scopes, ScopeMemoryRead) || slices.Contains(p.Scopes, ScopeMemoryWrite)
	case ScopeFilesRead:
		return slices.Contains(p.Scopes, ScopeFilesRead) || slices.Contains(p.Scopes, ScopeFilesWrite)
	case ScopeAdmin:
		return slices.Contains(p.Scopes, ScopeAdmin) && p.User.Role == RoleAdmin
	}
	return slices.Contains(p.Scopes, scope)
}

// checkScopes validates a list of scopes, orders it as Scopes does, and drops repetitions.
func checkScopes(argument string, scopes []Scope) ([]Scope, error) {
	all := Scopes()
	for _, s := range scopes {
		if !slices.Contains(all, s) {
			return nil, invalid(argument, "%s has %s; allowed are %s", argument, show(string(s)), oneOf(all))
		}
	}
	return slices.DeleteFunc(all, func(s Scope) bool { return !slices.Contains(scopes, s) }), nil
}
