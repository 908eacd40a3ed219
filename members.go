package souvenir

import (
	"context"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// MemberRole is what somebody may do in a project.
type MemberRole string

// The values of [MemberRole].
const (
	MemberReader MemberRole = "reader" // finds and reads what lies in the project, and sees who its people are
	MemberWriter MemberRole = "writer" // also stores into it, changes and deletes what lies there
	MemberOwner  MemberRole = "owner"  // also renames it and decides about its members
)

var memberRoles = []MemberRole{MemberReader, MemberWriter, MemberOwner}

// Member is somebody who has a part in a project.
type Member struct {
	User      string     `json:"user"`           // user id
	Name      string     `json:"name,omitempty"` // of the account, if there is one
	Role      MemberRole `json:"role"`
	CreatedAt time.Time  `json:"created_at"` // since when
}

// Members returns the people of a project: its owner of record first, then the others in the order in which they came.
// Everybody who sees the project sees them. A project that cannot be seen is ErrNotFound.
func (s *Store) Members(ctx context.Context, project ProjectRef) ([]Member, error) {
	if err := checkNamed(project); err != nil {
		return nil, err
	}
	var all []Member
	err := s.read(ctx, func(tx *sqlite.Tx, sc scope) error {
		p, err := knownProject(tx, sc, project)
		if err != nil {
			return err
		}
		people, err := loadPeople(tx, p.row)
		all = make([]Member, len(people))
		for i, m := range people {
			all[i] = m.Member
		}
		return err
	})
	return all, err
}

// NewMember describes somebody to add to a project.
type NewMember struct {
	Project ProjectRef
	User    string     // the id of a user, or the name of an account
	Role    MemberRole // needed
}

// AddMember gives a user a part in a project: from the next call on, the user finds its memories, in whichever
// collection of whichever of its people they lie, and nothing else of these people.
//
// The owner of record and members with the role owner may add members, through a view that is not limited to
// projects; to others it is ErrForbidden. A user that the store does not know is ErrNotFound, one who has a part already
// is ErrConflict.
func (s *Store) AddMember(ctx context.Context, n NewMember) (Member, error) {
	if err := checkMember(n.Project, n.User, n.Role); err != nil {
		return Member{}, err
	}
	var added Member
	err := s.write(ctx, func(tx *sqlite.Tx, sc scope) error {
		p, err := managedProject(tx, sc, n.Project)
		if err != nil {
			return err
		}
		u, err := findUser(tx, n.User)
		if err != nil {
			return err
		}
		people, err := loadPeople(tx, p.row)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(people, func(m person) bool { return m.row == u.row }); i >= 0 {
			if people[i].ofRecord {
				return newError(KindConflict, "user", "user %s owns project %s and needs no other role in it", show(n.User), show(p.ref()))
			}
			return newError(KindConflict, "user", "user %s has the role %s in project %s already; update the member to change it",
				show(n.User), people[i].Role, show(p.ref()))
		}
		if _, err := tx.Exec(`INSERT INTO project_member (project_id, user_id, role, created_at) VALUES (?, ?, ?, ?)`, p.row, u.row, string(n.Role), s.now()); err != nil {
			return err
		}
		added, err = loadMember(tx, p, n.User)
		return err
	})
	return added, err
}

// UpdateMember describes a change of somebody's part in a project.
type UpdateMember struct {
	Project ProjectRef
	User    string // the id of a user, or the name of an account
	Role    MemberRole
}

// UpdateMember gives a member another role, from the next call on. Who may is said at [Store.AddMember]. Somebody who is
// no member is ErrNotFound; the owner of record stays what they are (ErrForbidden).
func (s *Store) UpdateMember(ctx context.Context, u UpdateMember) (Member, error) {
	if err := checkMember(u.Project, u.User, u.Role); err != nil {
		return Member{}, err
	}
	var updated Member
	err := s.write(ctx, func(tx *sqlite.Tx, sc scope) error {
		p, err := managedProject(tx, sc, u.Project)
		if err != nil {
			return err
		}
		m, err := findMember(tx, p, u.User)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(`UPDATE project_member SET role = ? WHERE project_id = ? AND user_id = ?`, string(u.Role), p.row, m.row); err != nil {
			return err
		}
		updated, err = loadMember(tx, p, m.User)
		return err
	})
	return updated, err
}

// DeleteMember describes whose part in a project ends.
type DeleteMember struct {
	Project ProjectRef
	User    string // the id of a user, or the name of an account
}

// DeleteMember ends somebody's part in a project with the next call. What they stored there stays there, and stays
// theirs: they find it, may change it, and may take it out of the project. Who may remove others is said at
// [Store.AddMember]; every member may leave. The owner of record cannot (ErrForbidden). Somebody who is no member is
// ErrNotFound.
func (s *Store) DeleteMember(ctx context.Context, d DeleteMember) error {
	if err := checkMember(d.Project, d.User, MemberReader); err != nil {
		return err
	}
	return s.write(ctx, func(tx *sqlite.Tx, sc scope) error {
		p, forbidden := managedProject(tx, sc, d.Project)
		if forbidden != nil && (p.row == 0 || sc.limited) {
			return forbidden
		}
		m, err := findMember(tx, p, d.User)
		if forbidden != nil && m.row != sc.user {
			return forbidden
		}
		if err != nil {
			return err
		}
		_, err = tx.Exec(`DELETE FROM project_member WHERE project_id = ? AND user_id = ?`, p.row, m.row)
		return err
	})
}

func checkMember(project ProjectRef, user string, role MemberRole) error {
	if err := checkNamed(project); err != nil {
		return err
	}
	if err := checkName("user", user); err != nil {
		return err
	}
	if !slices.Contains(memberRoles, role) {
		return invalid("role", "role is %s; allowed are %s", show(string(role)), oneOf(memberRoles))
	}
	return nil
}

// person is a member with what stays inside the store.
type person struct {
	Member
	row      int64 // of the user
	ofRecord bool  // the project's row names them as its owner
}

// loadPeople reads the people of a project, the owner of record first.
func loadPeople(tx *sqlite.Tx, project int64) ([]person, error) {
	var people []person
	err := tx.Each(func(row *sqlite.Rows) error {
		var m person
		var since int64
		err := row.Scan(&m.row, &m.User, &m.Name, &m.Role, &m.ofRecord, &since)
		m.CreatedAt = toTime(since)
		people = append(people, m)
		return err
	}, `SELECT u.id, u.uid, ifnull(u.name, ''), 'owner', true, j.created_at FROM project j JOIN user u ON u.id = j.owner_id WHERE j.id = ?
		UNION ALL
		SELECT u.id, u.uid, ifnull(u.name, ''), m.role, false, m.created_at FROM project_member m JOIN user u ON u.id = m.user_id WHERE m.project_id = ?
		ORDER BY 5 DESC, 6, 2`, project, project)
	return people, err
}

// findMember returns one of a project's people whose part can be changed.
func findMember(tx *sqlite.Tx, p projectRow, user string) (person, error) {
	people, err := loadPeople(tx, p.row)
	if err != nil {
		return person{}, err
	}
	i := slices.IndexFunc(people, func(m person) bool { return m.User == user })
	if i < 0 {
		folded := foldName(user)
		i = slices.IndexFunc(people, func(m person) bool { return m.Name != "" && foldName(m.Name) == folded })
	}
	switch {
	case i < 0:
		return person{}, newError(KindNotFound, "user", "user %s is no member of project %s", show(user), show(p.ref()))
	case people[i].ofRecord:
		return person{}, newError(KindForbidden, "user", "user %s owns project %s; that can be neither changed nor ended", show(user), show(p.ref()))
	}
	return people[i], nil
}

// loadMember reads a member after a change.
func loadMember(tx *sqlite.Tx, p projectRow, user string) (Member, error) {
	m, err := findMember(tx, p, user)
	return m.Member, err
}
