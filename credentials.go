package souvenir

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/records/audit"
)

// Credentials: the scopes they carry, for whom they act, when they were used, and how they are paused and revoked.
// The kinds of them are in tokens.go, signins.go and oauthgrants.go.

// Scope is a right that an MCP token or an OAuth grant carries.
type Scope string

// The values of [Scope].
const (
	ScopeMemoryRead  Scope = "memory:read"
	ScopeMemoryWrite Scope = "memory:write" // includes memory:read
	ScopeFilesRead   Scope = "files:read"
	ScopeFilesWrite  Scope = "files:write" // includes files:read
	ScopeAccount     Scope = "account"     // the user's tokens, OAuth clients and shares: who else may access their data
	ScopeAdmin       Scope = "admin"       // users, clients and the whole store; counts only while the user is an admin
)

// Scopes returns all scopes, in the order of their constants.
func Scopes() []Scope {
	return append(DefaultScopes(), ScopeAccount, ScopeAdmin)
}

// DefaultScopes returns the scopes of a credential that was created without naming any: memories and files.
// ScopeAccount and ScopeAdmin allow creating further access, so a credential has them only when they were named.
func DefaultScopes() []Scope {
	return []Scope{ScopeMemoryRead, ScopeMemoryWrite, ScopeFilesRead, ScopeFilesWrite}
}

// checkScopes validates a list of scopes, orders it as Scopes does, and drops repetitions.
func checkScopes(argument string, scopes []Scope) ([]Scope, error) {
	all := Scopes()
	for _, s := range scopes {
		if !slices.Contains(all, s) {
			return nil, invalid(argument, "{} has %s; expected %s", show(string(s)), oneOf(all))
		}
	}
	return slices.DeleteFunc(all, func(s Scope) bool { return !slices.Contains(scopes, s) }), nil
}

// splitScopes reads scopes that are separated by spaces, and drops unknown ones.
func splitScopes(text string) []Scope {
	words := strings.Fields(text)
	return slices.DeleteFunc(Scopes(), func(s Scope) bool { return !slices.Contains(words, string(s)) })
}

// joinScopes writes scopes as OAuth does, separated by spaces (RFC 6749, 3.3).
func joinScopes(scopes []Scope) string {
	words := make([]string, len(scopes))
	for i, s := range scopes {
		words[i] = string(s)
	}
	return strings.Join(words, " ")
}

// Principal is the user that a credential acts for, and its rights. [Accounts.CheckToken], [Accounts.CheckAccessToken]
// and [Accounts.CheckSignIn] return it.
//
// Access describes the credential's view of the store: its user, its projects, and read-only if it carries none of
// memory:write, files:write and account. A view does not check scopes: before each call, ask Allows whether the
// credential may read or write memories or files, or manage anything.
type Principal struct {
	User     User    `json:"user"`
	Scopes   []Scope `json:"scopes"`
	Access   Access  `json:"access"`              // for Store.As
	TokenID  string  `json:"token_id,omitempty"`  // of an MCP token; otherwise empty
	ClientID string  `json:"client_id,omitempty"` // of an OAuth client; otherwise empty
	// of an OAuth grant, also of a grant that created an MCP token; otherwise empty
	GrantID  string `json:"grant_id,omitempty"`
	SignInID string `json:"session_id,omitempty"` // of a person's sign-in in a browser; otherwise empty

	// ConfirmedAt is when the person of a sign-in last authenticated, with a password or at a provider; otherwise zero.
	ConfirmedAt time.Time `json:"confirmed_at,omitzero"`
}

// accessOf returns the access for the view of a credential.
func accessOf(user userKey, scopes []Scope, projects []string) Access {
	writes := slices.Contains(scopes, ScopeMemoryWrite) || slices.Contains(scopes, ScopeFilesWrite) ||
		slices.Contains(scopes, ScopeAccount)
	return Access{User: user.id, Namespace: user.namespace, Projects: projects, ReadOnly: !writes}
}

// Allows reports whether the credential carries a scope; a write scope includes its read scope. The admin scope counts
// only if the user is an admin.
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

// use describes one use of a credential.
type use struct {
	of, id string
	last   *int64 // last use recorded in the file; nil: never
	now    int64
}

// noteUse calls write to record the use of a credential: once a minute, without making the caller wait long or fail.
func (s *Store) noteUse(ctx context.Context, u use, write func(db.Tx) error) {
	const (
		every    = int64(time.Minute / time.Microsecond)
		patience = 250 * time.Millisecond
	)
	if u.last != nil && u.now-*u.last < every || s.db.ReadOnly() {
		return
	}
	// Only one caller tries, so that not every call waits while another process holds the file.
	if !s.uses.first(u.of+" "+u.id, u.now, every) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.db.Write(ctx, write); err != nil {
		s.log.DebugContext(ctx, "the use of a "+u.of+" was not noted", "id", u.id, "error", err)
	}
}

// notedUses remembers when the handle last noted the use of a credential. The zero value has noted none.
type notedUses struct {
	mu sync.Mutex
	at map[string]int64
}

// first notes a use and returns true, unless one was noted less than every microseconds ago.
func (n *notedUses) first(of string, now, every int64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if at, again := n.at[of]; again && now-at < every {
		return false
	}
	if n.at == nil {
		n.at = map[string]int64{}
	}
	n.at[of] = now
	return true
}

// AccessKind is a kind of access on behalf of a user.
type AccessKind string

// The values of [AccessKind].
const (
	AccessSignIns AccessKind = "sessions" // browsers where the user is signed in
	AccessGrants  AccessKind = "grants"   // applications that the user authorized through OAuth, with codes and tokens
	AccessTokens  AccessKind = "tokens"   // MCP tokens
)

// AccessKinds returns all kinds.
func AccessKinds() []AccessKind { return []AccessKind{AccessSignIns, AccessGrants, AccessTokens} }

// RevokeAccess immediately revokes the given kinds (at least one) of the user's access. The sign-in whose id is except
// stays, such as the caller's own; empty means no exception. The user can authorize applications again, and new tokens
// work. A view that is limited to projects may not call it.
func (h *Accounts) RevokeAccess(ctx context.Context, except string, kinds []AccessKind) (err error) {
	defer setGoNames[struct{}](&err, "kinds", "kinds")
	s, err := h.own(ctx, "RevokeAccess")
	if err != nil {
		return err
	}
	if len(kinds) == 0 {
		return invalid("kinds", "{} is empty; give some of %s", oneOf(AccessKinds()))
	}
	if err := checkKinds("kinds", kinds); err != nil {
		return err
	}
	return s.write(ctx, func(tx db.Tx, v viewer) error {
		return s.note(ctx, tx, s.revokeKinds(tx, v.User, except, kinds),
			event{"access.end", "user", s.access.User, audit.Details{"kinds": kinds}})
	})
}

func checkKinds(argument string, kinds []AccessKind) error {
	for _, kind := range kinds {
		if !slices.Contains(AccessKinds(), kind) {
			return invalid(argument, "{} has %s; expected %s", show(string(kind)), oneOf(AccessKinds()))
		}
	}
	return nil
}

// revokeKinds revokes kinds of a user's access, except the sign-in with an id. user is a row.
func (s *Store) revokeKinds(tx db.Tx, user int64, except string, kinds []AccessKind) error {
	for _, kind := range kinds {
		var err error
		switch kind {
		case AccessSignIns:
			err = deleteSignIns(tx, user, except)
		case AccessGrants:
			err = revokeGrants(tx, s.now(), `user_id = ?`, user)
		case AccessTokens:
			err = revokeTokens(tx, s.now(), `user_id = ?`, user)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pausing returns the audit log's action for pausing or resuming a kind of access.
func pausing(kind string, paused bool) string {
	if paused {
		return kind + ".pause"
	}
	return kind + ".resume"
}

// pausedAccess is the error for a credential that its user has paused.
func pausedAccess() error {
	return newError(KindForbidden, "",
		"the user has paused this access; they can resume it in the dashboard, under Tokens or Applications")
}
