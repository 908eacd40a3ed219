package souvenir

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Access says for whom a view of the store works, and how far it reaches. The zero value is the local user with
// everything of theirs: what an embedding program that knows no users wants.
type Access struct {
	// User is the id of the user: whose collections they are, and who owns what is stored outside of others' projects.
	// Empty means the local user. An id that nobody has becomes that of a new user with the first write, unless it is the
	// name of another (ErrConflict).
	User string `json:"user"`

	// Projects limits the view to these projects: ids, or OWNER/ID (the owner's user id or account name) for a project
	// that somebody else shares under an id that is not unique. Nothing outside them is visible, memories without a
	// project included. Nil means no limit; an empty slice that is not nil means nothing at all.
	Projects []string `json:"projects"`

	// Through says what acts for the user, such as "tool" or "page": the trash shows the first 64 characters beside who
	// deleted something.
	Through string `json:"through,omitempty"`

	// ReadOnly refuses every write through the view with ErrReadOnly.
	ReadOnly bool `json:"read_only"`
}

// LocalUser is the id of the user for whom a store works when no other is named.
const LocalUser = "local"

// Access returns the access that this view was made with.
func (s *Store) Access() Access {
	a := s.access
	a.Projects = slices.Clone(a.Projects)
	return a
}

// checkOperator refuses what is for the whole store through a view of one user.
func (s *Store) checkOperator(what string) error {
	if s.operator {
		return nil
	}
	return newError(KindForbidden, "",
		"%s is for the whole store; call it on the Store that Open returned, not on a view of a user", what)
}

// checkAccount refuses what is about a user's account through a view that is limited to projects.
func (s *Store) checkAccount(what string) error {
	if s.access.Projects == nil {
		return nil
	}
	return newError(KindForbidden, "", "%s needs a view of all that the user has; this one is limited to the projects %s",
		what, oneOf(s.access.Projects))
}

// scope is an Access in terms of rows, found at the beginning of each transaction.
type scope struct {
	user     int64   // row of the user; 0: has stored nothing yet and is member of nothing
	limited  bool    // only what lies in projects
	projects []int64 // rows, when limited
}

// scope looks the view's user and projects up. It writes nothing.
func (s *Store) scope(tx db.Tx) (scope, error) {
	sc := scope{limited: s.access.Projects != nil}
	var err error
	if sc.user, err = s.userRow(tx); err != nil {
		return sc, err
	}
	for _, id := range s.access.Projects {
		p, err := findProject(tx, scope{user: sc.user}, id, "")
		if errors.Is(err, ErrInvalid) {
			continue // two projects are shared under this id, and the limit does not say which: neither
		}
		if err != nil {
			return sc, err
		}
		if p != nil {
			sc.projects = append(sc.projects, p.row)
		}
	}
	return sc, nil
}

// userRow returns the row of the view's user, 0 if there is none yet.
func (s *Store) userRow(tx db.Tx) (int64, error) {
	if row, ok := s.users.Load(s.access.User); ok {
		return row.(int64), nil
	}
	rows, err := db.Column[int64](tx, `SELECT id FROM users WHERE uid = ?`, s.access.User)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	if !tx.Writable() {
		s.users.Store(s.access.User, rows[0]) // in a write transaction the row might yet be rolled back
	}
	return rows[0], nil
}

// addUser makes the row of a view's user, whose id must not look like somebody else's name.
func (s *Store) addUser(tx db.Tx) (int64, error) {
	if err := checkIDFree(tx, "user", s.access.User); err != nil {
		return 0, err
	}
	return db.Insert(tx, `INSERT INTO users (uid, created_at) VALUES (?, ?) RETURNING id`, s.access.User, s.now())
}

// The conditions below are the only ones in the package that decide about visibility. They speak of a row of
// partition p and of its collection c; every statement that touches memories joins these two.

// sharedWith selects the rows of the projects that a user owns or is member of (two arguments: the user, twice);
// writableBy the same for those in which the user may write.
const (
	sharedWith = `SELECT id FROM project WHERE owner_id = ? UNION ALL SELECT project_id FROM project_member WHERE user_id = ?`
	writableBy = sharedWith + ` AND role IN ('writer', 'owner')`
)

// visible is the condition for seeing a partition: what lies in a project belongs to the project, so only its people
// see it; everything else is seen by the owner of the collection alone. A limited view sees its projects only.
func (sc scope) visible() (condition string, args []any) { return sc.partitions(sharedWith) }

// writable is the condition for changing what lies in a partition.
func (sc scope) writable() (condition string, args []any) { return sc.partitions(writableBy) }

func (sc scope) partitions(projects string) (condition string, args []any) {
	return sc.limit(`(p.project_id IS NULL AND c.owner_id = ? OR p.project_id IN (`+projects+`))`, sc.user, sc.user,
		sc.user)
}

func (sc scope) limit(condition string, args ...any) (string, []any) {
	if !sc.limited {
		return condition, args
	}
	return condition + ` AND p.project_id IN ` + db.Integers, append(args, db.List(sc.projects))
}

// visibleProject is the condition for seeing a project j and the list of its people.
func (sc scope) visibleProject() (condition string, args []any) {
	condition, args = `j.id IN (`+sharedWith+`)`, []any{sc.user, sc.user}
	if !sc.limited {
		return condition, args
	}
	return condition + ` AND j.id IN ` + db.Integers, append(args, db.List(sc.projects))
}

// projectRole is what the caller is in a project j that is visible: the owner of record is an owner, too.
func (sc scope) projectRole() (expression string, args []any) {
	return `CASE WHEN j.owner_id = ? THEN 'owner' ELSE (SELECT role FROM project_member WHERE project_id = j.id AND user_id = ?) END`, []any{sc.user, sc.user}
}

// The conditions for files speak of a row of file f, left-joined with the partition p and the collection c of the
// memory that it is linked to (fromFile). A file in a project, its own or its memory's, is seen by the people of the
// project; any other one by the owner of the memory, or without a memory by its own.

// fromFile joins what the conditions about files speak of.
const fromFile = `FROM file f LEFT JOIN memory m ON m.id = f.memory_id LEFT JOIN partition p ON p.id = m.partition_id LEFT JOIN collection c ON c.id = p.collection_id`

// projectOfFile is the row of the project that a file lies in, NULL for none.
const projectOfFile = `CASE WHEN f.memory_id IS NULL THEN f.project_id ELSE p.project_id END`

// visibleFile is the condition for seeing a file.
func (sc scope) visibleFile() (condition string, args []any) { return sc.file(sharedWith) }

// writableFile is the condition for changing or deleting a file.
func (sc scope) writableFile() (condition string, args []any) { return sc.file(writableBy) }

func (sc scope) file(projects string) (condition string, args []any) {
	condition = `f.state = 'stored' AND (` + projectOfFile + ` IS NULL AND coalesce(c.owner_id, f.owner_id) = ? OR ` +
		projectOfFile + ` IN (` + projects + `))`
	args = []any{sc.user, sc.user, sc.user}
	if !sc.limited {
		return condition, args
	}
	return condition + ` AND ` + projectOfFile + ` IN ` + db.Integers, append(args, db.List(sc.projects))
}

// ownerName is how an error names a user whose things the caller can see: by the account's name, or without one by id.
func ownerName(tx db.Tx, uid string) string {
	names, err := db.Column[string](tx, `SELECT name FROM users WHERE uid = ? AND name IS NOT NULL`, uid)
	if err != nil || len(names) == 0 {
		return strconv.Quote(uid)
	}
	return strconv.Quote(names[0])
}

// questionMarks returns n question marks: "?, ?, ?".
func questionMarks(n int) string {
	return strings.TrimSuffix(strings.Repeat("?, ", n), ", ")
}

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

// DefaultScopes returns the scopes of a credential that was given without naming any: memories and files. ScopeAccount
// and ScopeAdmin open the door to others, so a credential has them only when they were named.
func DefaultScopes() []Scope {
	return []Scope{ScopeMemoryRead, ScopeMemoryWrite, ScopeFilesRead, ScopeFilesWrite}
}

// Principal is who a credential speaks for, and how far: what [Accounts.CheckToken], [Accounts.CheckAccessToken] and
// [Accounts.CheckSession] find out.
//
// Access makes the view of the store that the credential reaches: the user, the credential's projects, and read-only
// for a credential that carries none of memory:write, files:write and account. A view knows no scopes: which of
// memories and files a credential may read and write, and whether it may manage anything, is asked of Allows before
// each call.
type Principal struct {
	User     User    `json:"user"`
	Scopes   []Scope `json:"scopes"`
	Access   Access  `json:"access"`              // for As: see there
	TokenID  string  `json:"token_id,omitempty"`  // of an MCP token; empty for anything else
	ClientID string  `json:"client_id,omitempty"` // of an OAuth client; empty for anything else
	// of an OAuth grant, also of one through which an MCP token was made; empty for anything else
	GrantID   string `json:"grant_id,omitempty"`
	SessionID string `json:"session_id,omitempty"` // of a person's session in a browser; empty for anything else

	// ConfirmedAt is when the person of a session last showed who they are, with a password or at a provider; zero for
	// anything else.
	ConfirmedAt time.Time `json:"confirmed_at,omitzero"`
}

// accessOf is what the view of a credential is made with.
func accessOf(user string, scopes []Scope, projects []string) Access {
	writes := slices.Contains(scopes, ScopeMemoryWrite) || slices.Contains(scopes, ScopeFilesWrite) ||
		slices.Contains(scopes, ScopeAccount)
	return Access{User: user, Projects: projects, ReadOnly: !writes}
}

// Allows reports whether the credential carries a scope; a write scope carries the read scope beside it. The admin
// scope counts only for a user who is an admin.
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
