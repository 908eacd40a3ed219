package souvenir

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/records/audit"
)

// What a caller may do: views of a store, the scopes and rights of credentials, and how access ends, for good or for a
// while.

// Access names the user that a view of the store works for, and limits what it can reach. The zero value is the local
// user with all their data, which suits an embedding program without users.
type Access struct {
	// User is the id of the user: the owner of the collections, and of data stored outside others' projects. Empty means
	// the local user. The first write with an unknown id creates the user, unless the id is another user's name
	// (ErrConflict).
	User string `json:"user"`

	// Namespace separates the users of several applications in one file: "anna" in one namespace and "anna" in another
	// are different users, and neither can find, count or change the other's data. Members of a project are always of one
	// namespace. Empty means the default namespace, which the server uses. A namespace exists once one of its users has
	// written; its name has 1 to 128 characters. [Accounts.Namespace] manages its users.
	Namespace string `json:"namespace,omitempty"`

	// Projects limits the view to these projects: ids, or OWNER/ID (the owner's user id or account name) for another
	// user's shared project whose id is not unique. Nothing outside them is visible, not even memories without a project.
	// Nil means no limit; a non-nil empty slice means no access at all.
	Projects []string `json:"projects"`

	// Through names what acts for the user, such as "tool" or "page". The trash shows its first 64 characters beside the
	// user who deleted an item.
	Through string `json:"through,omitempty"`

	// ReadOnly refuses every write through the view with ErrReadOnly.
	ReadOnly bool `json:"read_only"`
}

// defaultNamespace is the namespace of users without a named one.
const defaultNamespace = ""

// LocalUser is the id of the user for whom a store works by default.
const LocalUser = kernel.LocalUser

// Access returns the access of this view.
func (s *Store) Access() Access {
	a := s.access
	a.Projects = slices.Clone(a.Projects)
	return a
}

// As returns a view of the store for the given access. It is cheap; make one for each request. Views share everything
// except their access. A view does not limit its own As: give untrusted code a [Store.Sealed] view.
func (s *Store) As(access Access) *Store {
	if s.sealed {
		return s.narrowed(access)
	}
	if access.User == "" {
		access.User = LocalUser
	}
	view := &Store{shared: s.shared, access: access}
	view.access = view.Access()
	return view
}

// Sealed returns this view for untrusted code; for the Store that [Open] returned, it returns the local user's view.
// Nothing that a sealed view returns reaches further than the view itself. Its As can only narrow it, to some of its
// projects or to reading; a view for another user, or for other projects, refuses every call. Everything in [Accounts]
// and [Upkeep], the members of projects, Close, and Snapshot and Transaction, which block others, return ErrForbidden.
// With the context of a Snapshot or Transaction begun elsewhere it works as usual. Sealed does not protect against code
// that uses package unsafe.
func (s *Store) Sealed() *Store {
	return &Store{shared: s.shared, access: s.Access(), sealed: true, denied: s.denied}
}

// narrowed returns a sealed view's view for an access.
func (s *Store) narrowed(access Access) *Store {
	view := s.Sealed()
	view.access.ReadOnly = s.access.ReadOnly || access.ReadOnly
	view.access.Through = cmp.Or(s.access.Through, access.Through)
	beyond := access.User != "" && access.User != s.access.User ||
		access.Namespace != "" && access.Namespace != s.access.Namespace
	if access.Projects != nil {
		for _, id := range access.Projects {
			beyond = beyond || s.access.Projects != nil && !slices.Contains(s.access.Projects, id)
		}
		view.access.Projects = slices.Clone(access.Projects)
	}
	if beyond && view.denied == nil {
		view.denied = newError(KindForbidden, "", "this view is sealed: As cannot widen it")
	}
	return view
}

// handle is the store of [Accounts] or [Upkeep].
type handle struct{ s *Store }

// operator returns the store for a method about the whole store, and refuses it on a view.
func (h handle) operator(ctx context.Context, method string) (*Store, error) {
	if err := h.s.outside(ctx, method); err != nil {
		return h.s, err
	}
	return h.s, h.s.checkOperator(method)
}

// own returns the store for a method about all data of the user, and refuses it on a view limited to projects.
func (h handle) own(ctx context.Context, method string) (*Store, error) {
	if err := h.s.outside(ctx, method); err != nil {
		return h.s, err
	}
	return h.s, h.s.checkAccount(method)
}

// handled returns the store for a handle whose methods reach beyond one view. A sealed view may call none of them.
func (s *Store) handled(handle string) *Store {
	if !s.sealed {
		return s
	}
	refusing := s.Sealed()
	refusing.denied = s.checkUnsealed(handle)
	return refusing
}

// checkUnsealed refuses operations that reach further than a sealed view.
func (s *Store) checkUnsealed(what string) error {
	if !s.sealed {
		return nil
	}
	return newError(KindForbidden, "", "this view is sealed: %s is not available on it", what)
}

// checkOperator refuses methods about the whole store through a user's view.
func (s *Store) checkOperator(what string) error {
	if s.denied != nil {
		return s.denied
	}
	if s.operator {
		return nil
	}
	return newError(KindForbidden, "",
		"%s is for the whole store; call it on the Store that Open returned, not on a user's view", what)
}

// checkAccount refuses methods about a user's account through a view limited to projects.
func (s *Store) checkAccount(what string) error {
	if s.denied != nil {
		return s.denied
	}
	if s.access.Projects == nil {
		return nil
	}
	return newError(KindForbidden, "", "%s needs a view of all the user's data; this one is limited to the projects %s",
		what, oneOf(s.access.Projects))
}

// viewer is an [Access] resolved to rows at the beginning of each transaction. Its conditions decide visibility.
type viewer = kernel.Viewer

// viewer looks up the view's user and projects. It writes nothing.
func (s *Store) viewer(tx db.Tx) (viewer, error) { return s.viewerWithBounds(tx, nil, nil) }

// viewerWithBounds is like viewer, but reuses the bounds that other, unless nil, has read in the transaction. ahead,
// unless nil, announces what the transaction will read; the viewer passed to it has no projects yet.
func (s *Store) viewerWithBounds(tx db.Tx, other *viewer, ahead func(db.Tx, viewer)) (viewer, error) {
	if s.denied != nil {
		return viewer{}, s.denied
	}
	v := viewer{Limited: s.access.Projects != nil, Namespace: s.access.Namespace}
	var err error
	if v.User, err = s.userRow(tx); err != nil {
		return v, err
	}
	if ahead != nil {
		ahead(tx, v)
	}
	if other != nil {
		v.SetBounds(*other)
	} else if err := v.ReadBounds(tx, s.now()); err != nil {
		return v, err
	}
	for _, id := range s.access.Projects {
		p, err := naming.Find(tx, viewer{User: v.User, Namespace: v.Namespace}, id, "")
		if errors.Is(err, ErrInvalid) {
			continue // two projects are shared under this ambiguous id: allow neither
		}
		if err != nil {
			setGoNames[Access](&err, "project_id", "Access.Projects")
			return v, err
		}
		if p != nil {
			v.Projects = append(v.Projects, p.Row)
		}
	}
	return v, nil
}

// userKey identifies a user in the whole file.
type userKey struct{ namespace, id string }

func (s *Store) userKey() userKey { return userKey{s.access.Namespace, s.access.User} }

// userRow returns the row of the view's user, 0 if there is none yet.
func (s *Store) userRow(tx db.Tx) (int64, error) {
	key := s.userKey()
	if row, ok := s.users.Load(key); ok {
		return row.(int64), nil
	}
	rows, err := db.Column[int64](tx, `SELECT id FROM users WHERE namespace = ? AND uid = ?`, key.namespace, key.id)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	if !tx.Writable() {
		s.users.Store(key, rows[0]) // a write transaction might still roll the row back
	}
	return rows[0], nil
}

// rememberUser caches the row of the view's user after a write, once nothing can roll it back.
func (s *Store) rememberUser(ctx context.Context, row int64) {
	key := s.userKey()
	if _, known := s.users.Load(key); known {
		return
	}
	s.db.AtEnd(ctx, func(undone error) {
		if undone == nil {
			s.users.Store(key, row)
		}
	})
}

// addUser creates the row of a view's user, whose id must not look like another user's name.
func (s *Store) addUser(tx db.Tx) (int64, error) {
	key := s.userKey()
	if err := kernel.CheckUserIDFree(tx, "user", key.namespace, key.id); err != nil {
		setGoNames[Access](&err)
		return 0, err
	}
	return db.Insert(tx, `INSERT INTO users (namespace, uid, uid_key, created_at) VALUES (?, ?, ?, ?) RETURNING id`,
		key.namespace, key.id, foldname.Key(key.id), s.now())
}

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
	key := u.of + " " + u.id
	tried, again := s.uses.LoadOrStore(key, u.now)
	if again && (u.now-tried.(int64) < every || !s.uses.CompareAndSwap(key, tried, u.now)) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.db.Write(ctx, write); err != nil {
		s.log.DebugContext(ctx, "the use of a "+u.of+" was not noted", "id", u.id, "error", err)
	}
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
