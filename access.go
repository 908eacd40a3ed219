package souvenir

import (
	"errors"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// Access says for whom a view of the store works, and how far it reaches. The zero value is the local user with
// everything of theirs: what an embedding program that knows no users wants.
type Access struct {
	// User is the id of the user: whose collections they are, and who owns what is stored. Empty means the local user.
	User string

	// Projects limits the view to these projects: ids, or OWNER/ID for a project that somebody else shares under an id
	// that is not unique. Nothing outside them is visible, memories without a project included. Nil means no limit; an
	// empty slice that is not nil means nothing at all.
	Projects []string

	// ReadOnly refuses every write through the view with ErrReadOnly.
	ReadOnly bool
}

// LocalUser is the id of the user for whom a store works when no other is named.
const LocalUser = "local"

// Access returns the access that this view was made with.
func (s *Store) Access() Access {
	a := s.access
	a.Projects = slices.Clone(a.Projects)
	return a
}

// scope is an Access in terms of rows, found at the beginning of each transaction.
type scope struct {
	user     int64   // row of the user; 0: has stored nothing yet and is member of nothing
	limited  bool    // only what lies in projects
	projects []int64 // rows, when limited
}

// scope looks the view's user and projects up. It writes nothing.
func (s *Store) scope(tx *sqlite.Tx) (scope, error) {
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
func (s *Store) userRow(tx *sqlite.Tx) (int64, error) {
	if row, ok := s.users.Load(s.access.User); ok {
		return row.(int64), nil
	}
	rows, err := sqlite.Column[int64](tx, `SELECT id FROM user WHERE uid = ?`, s.access.User)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	if !tx.Writable() {
		s.users.Store(s.access.User, rows[0]) // in a write transaction the row might yet be rolled back
	}
	return rows[0], nil
}

func (s *Store) addUser(tx *sqlite.Tx) (int64, error) {
	result, err := tx.Exec(`INSERT INTO user (uid, created_at) VALUES (?, ?)`, s.access.User, s.now())
	return result.LastInsertID, err
}

// The conditions below are the only ones in the package that decide about visibility. They speak of a row of
// partition p and of its collection c; every statement that touches memories joins these two.

// sharedWith selects the rows of the projects that a user owns or is member of (two arguments: the user, twice);
// writableBy the same for those in which the user may write.
const (
	sharedWith = `SELECT id FROM project WHERE owner_id = ? UNION ALL SELECT project_id FROM project_member WHERE user_id = ?`
	writableBy = sharedWith + ` AND role IN ('writer', 'owner')`
)

// visible is the condition for seeing a partition: the caller's own collections, and the projects that the caller
// owns or is member of, in whoever's collection the memories lie; within the projects of a limited view.
func (sc scope) visible() (condition string, args []any) {
	return sc.limit(`(c.owner_id = ? OR p.project_id IN (`+sharedWith+`))`, sc.user, sc.user, sc.user)
}

// writable is the condition for changing what lies in a partition.
func (sc scope) writable() (condition string, args []any) {
	return sc.limit(`(c.owner_id = ? OR p.project_id IN (`+writableBy+`))`, sc.user, sc.user, sc.user)
}

func (sc scope) limit(condition string, args ...any) (string, []any) {
	if !sc.limited {
		return condition, args
	}
	for _, row := range sc.projects {
		args = append(args, row)
	}
	return condition + ` AND p.project_id IN (` + questionMarks(len(sc.projects)) + `)`, args
}

// questionMarks returns n question marks: "?, ?, ?".
func questionMarks(n int) string {
	return strings.TrimSuffix(strings.Repeat("?, ", n), ", ")
}
