package souvenir

import (
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
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// MemberRole says what a member may do in a project.
type MemberRole string

// The values of [MemberRole].
const (
	MemberReader MemberRole = "reader" // finds and reads the project's memories and files, and sees its members
	MemberWriter MemberRole = "writer" // also stores, changes and deletes memories and files in it
	MemberOwner  MemberRole = "owner"  // also renames it and manages its members
)

var memberRoles = []MemberRole{MemberReader, MemberWriter, MemberOwner}

// MemberStatus says whether a membership has begun.
type MemberStatus string

// The values of [MemberStatus].
const (
	MemberAccepted MemberStatus = "accepted" // the user is a member
	MemberInvited  MemberStatus = "invited"  // the user, if one exists, has not accepted, and sees nothing yet
)

// Member is a member of a project, or a user invited to it.
type Member struct {
	User      string       `json:"user"`           // user id; for an invited user, the text that the sender typed
	Name      string       `json:"name,omitempty"` // of the account, if there is one; empty for an invited user
	Role      MemberRole   `json:"role"`
	Status    MemberStatus `json:"status"`
	CreatedAt time.Time    `json:"created_at"` // since when
}

// Members returns the people of a project: its owner of record first, then the others in the order they joined. Each
// user who can see the project can see them. A project that is not visible is ErrNotFound.
func (s *Store) Members(ctx context.Context, project ProjectRef) (_ []Member, err error) {
	defer setGoNames[ProjectRef](&err)
	if err := project.check(); err != nil {
		return nil, err
	}
	var all []Member
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		p, err := naming.Known(tx, v, project.ID, project.Name)
		if err != nil {
			return err
		}
		people, err := loadPeople(tx, p.Row)
		all = make([]Member, len(people))
		for i, m := range people {
			all[i] = m.Member
		}
		return err
	})
	return all, err
}

// NewMember describes a user to add to a project.
type NewMember struct {
	Project ProjectRef
	User    string     // the id of a user, or the name of an account
	Role    MemberRole // required
}

// AddMember invites a user to a project, or adds one.
//
// Through a view of a user it invites: the answer has the status [MemberInvited], and nothing of the project is visible
// to the user before [Accounts.AcceptProjectInvitation]. The answer is the same for an unknown name, and for a user who
// has blocked the sender, so it does not reveal which users exist. An invitation is pending for 30 days; the same user
// invited again gets a new one. A sender may have at most [MaxSentInvitations] pending (ErrTooLarge). The owner of
// record and members with the role owner may invite, through a view that is not limited to projects; others get
// ErrForbidden. Inviting a member is ErrConflict.
//
// The operator's store, which is the authority over the file, adds: the user is a member from the next call on and
// finds the project's memories and files. There, the ID OWNER/ID names a project of any user; a user that the store
// does not know is ErrNotFound.
func (s *Store) AddMember(ctx context.Context, n NewMember) (_ Member, err error) {
	defer setGoNames[NewMember](&err)
	if err := s.checkUnconfined("AddMember"); err != nil {
		return Member{}, err
	}
	if err := checkMember(n.Project, n.User, n.Role); err != nil {
		return Member{}, err
	}
	var added Member
	err = s.write(ctx, func(tx db.Tx, v viewer) (err error) {
		if s.operator {
			added, err = s.addMember(tx, v, n)
		} else {
			added, err = s.inviteMember(tx, v, n)
		}
		if err != nil {
			return err
		}
		p, err := s.managed(tx, v, n.Project)
		return s.noteMember(ctx, tx, err, "member.add", p, added)
	})
	if err != nil {
		return Member{}, err
	}
	return added, nil
}

// addMember adds an accepted member.
func (s *Store) addMember(tx db.Tx, v viewer, n NewMember) (Member, error) {
	p, err := operatorProject(tx, v, n.Project)
	if err != nil {
		return Member{}, err
	}
	u, err := findUser(tx, v.Namespace, n.User)
	if err != nil {
		return Member{}, err
	}
	people, err := loadPeople(tx, p.Row)
	if err != nil {
		return Member{}, err
	}
	if i := slices.IndexFunc(people, func(m person) bool { return m.row == u.row }); i >= 0 {
		return Member{}, memberAlready(p, people[i], n.User)
	}
	if _, err := tx.Exec(`INSERT INTO project_member (project_id, user_id, role, created_at) VALUES (?, ?, ?, ?)`, p.Row,
		u.row, string(n.Role), s.now()); err != nil {
		return Member{}, err
	}
	if err := endInvitationsTo(tx, p.Row, u.User, u.row); err != nil {
		return Member{}, err
	}
	return loadMember(tx, p, u.ID)
}

// memberAlready refuses to add a user who is already a member.
func memberAlready(p naming.Project, m person, named string) error {
	if m.ofRecord {
		return newError(KindConflict, "user", "{} %s owns project %s and needs no other role in it", show(named),
			show(p.Ref()))
	}
	return newError(KindConflict, "user", "{} %s has the role %s in project %s already; update the member to change it",
		show(named), m.Role, show(p.Ref()))
}

// MemberUpdate describes a change of a member's role in a project.
type MemberUpdate struct {
	Role MemberRole
}

// UpdateMember changes the role of a member, or of a pending invitation, which is named as it was typed.
// [Store.AddMember] says who may.
//
// A lower role takes effect with the next call. A higher one needs the member's consent, because everything that a
// writer's agents store under the project's name goes into the project. Through a view it therefore sends an
// invitation, the answer has the status [MemberInvited], and the member keeps the old role until
// [Accounts.AcceptProjectInvitation]. Setting the role that the member already has withdraws such an invitation. The
// operator's store, which names projects as in AddMember, gives any role at once.
//
// A user who is neither a member nor invited is ErrNotFound, whether the user exists or not; the role of the owner of
// record cannot change (ErrForbidden). When an owner gets another role, the invitations they sent end.
func (s *Store) UpdateMember(ctx context.Context, project ProjectRef, user string,
	u MemberUpdate) (_ Member, err error) {
	defer setGoNames[MemberUpdate](&err, "user", "user")
	defer setGoNames[ProjectRef](&err)
	if err := s.checkUnconfined("UpdateMember"); err != nil {
		return Member{}, err
	}
	if err := checkMember(project, user, u.Role); err != nil {
		return Member{}, err
	}
	var updated Member
	err = s.write(ctx, func(tx db.Tx, v viewer) error {
		p, err := s.managed(tx, v, project)
		if err != nil {
			return err
		}
		m, err := findMember(tx, p, user)
		switch {
		case errors.Is(err, ErrNotFound):
			updated, err = s.updateInvited(tx, p, user, u.Role)
		case err != nil:
		case !s.operator && slices.Index(memberRoles, u.Role) > slices.Index(memberRoles, m.Role):
			updated, err = s.inviteHigher(tx, v, p, m, u.Role)
		default:
			updated, err = setRole(tx, p, m, u.Role)
		}
		return s.noteMember(ctx, tx, err, "member.update", p, updated)
	})
	if err != nil {
		return Member{}, err
	}
	return updated, nil
}

// setRole gives a member a role. It ends an invitation to another role; a former owner's sent invitations end, too.
func setRole(tx db.Tx, p naming.Project, m person, role MemberRole) (Member, error) {
	_, err := tx.Exec(`UPDATE project_member SET role = ? WHERE project_id = ? AND user_id = ?`, string(role), p.Row,
		m.row)
	if err != nil {
		return Member{}, err
	}
	if err := endInvitationsTo(tx, p.Row, User{ID: m.User, Name: m.Name}, m.row); err != nil {
		return Member{}, err
	}
	if role != MemberOwner {
		if err := endInvitationsOf(tx, p.Row, m.row); err != nil {
			return Member{}, err
		}
	}
	return loadMember(tx, p, m.User)
}

// DeleteMember removes a member from a project, with effect from the next call. What they stored there belongs to the
// project and stays there: they no longer find it, nor its history, its files or links to it. [Store.AddMember] says
// who may remove others; every member may leave. The owner of record cannot (ErrForbidden).
//
// Removing a member ends their invitations to a higher role. A pending invitation, named as it was typed, is withdrawn.
// A user who is neither a member nor invited is ErrNotFound, whether the user exists or not. The operator's store,
// which names projects as in AddMember, may remove any member.
func (s *Store) DeleteMember(ctx context.Context, project ProjectRef, user string) (err error) {
	defer setGoNames[ProjectRef](&err, "user", "user")
	if err := s.checkUnconfined("DeleteMember"); err != nil {
		return err
	}
	if err := checkMember(project, user, MemberReader); err != nil {
		return err
	}
	return s.write(ctx, func(tx db.Tx, v viewer) error {
		p, forbidden := s.managed(tx, v, project)
		if forbidden != nil && (p.Row == 0 || v.Limited) {
			return forbidden
		}
		m, err := findMember(tx, p, user)
		if forbidden != nil && m.row != v.User {
			return forbidden
		}
		if errors.Is(err, ErrNotFound) {
			return s.note(ctx, tx, withdrawInvited(tx, p, user, s.now()), projectEvent("member.withdraw", p, nil))
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(`DELETE FROM project_member WHERE project_id = ? AND user_id = ?`, p.Row, m.row); err != nil {
			return err
		}
		if err := endInvitationsTo(tx, p.Row, User{ID: m.User, Name: m.Name}, m.row); err != nil { // to a higher role
			return err
		}
		return s.note(ctx, tx, endInvitationsOf(tx, p.Row, m.row),
			projectEvent("member.delete", p, audit.Details{"user": m.User}))
	})
}

// projectEvent is an event about a project, whose id a person may have chosen.
func projectEvent(action string, p naming.Project, details audit.Details) event {
	return event{action, "project", AuditID("project", p.Owner, p.UID), details}
}

// noteMember adds an entry about a member's new role. For an invitation it leaves out the recipient: that is the name
// that the sender typed, and the sender must not learn whether such a user exists.
func (s *Store) noteMember(ctx context.Context, tx db.Tx, err error, action string, p naming.Project, m Member) error {
	details := audit.Details{"role": m.Role, "status": m.Status}
	if m.Status != MemberInvited {
		details["user"] = m.User
	}
	return s.note(ctx, tx, err, projectEvent(action, p, details))
}

// endInvitationsOf ends the pending invitations to a project that a former owner sent.
func endInvitationsOf(tx db.Tx, project, sender int64) error {
	_, err := tx.Exec(`DELETE FROM project_invitation WHERE project_id = ? AND sender_id = ?`, project, sender)
	return err
}

// managed returns a project whose members the caller may change.
func (s *Store) managed(tx db.Tx, v viewer, ref ProjectRef) (naming.Project, error) {
	if s.operator {
		return operatorProject(tx, v, ref)
	}
	return naming.Managed(tx, v, ref.ID, ref.Name)
}

// operatorProject returns the project that a reference names for the operator: OWNER/ID names a project of any user,
// anything else is looked up as the local user's.
func operatorProject(tx db.Tx, v viewer, ref ProjectRef) (naming.Project, error) {
	slash := strings.LastIndexByte(ref.ID, '/')
	if slash < 0 {
		return naming.Known(tx, v, ref.ID, ref.Name)
	}
	owner, err := findUser(tx, v.Namespace, ref.ID[:slash])
	if errors.Is(err, ErrNotFound) {
		return naming.Known(tx, v, ref.ID, ref.Name)
	}
	if err != nil {
		return naming.Project{}, err
	}
	p, err := naming.Find(tx, viewer{User: owner.row, Namespace: v.Namespace}, ref.ID[slash+1:], ref.Name)
	if err != nil {
		return naming.Project{}, err
	}
	if p == nil || !p.Own {
		return naming.Project{}, newError(KindNotFound, "project_id", "{} %s is not a project of this store",
			show(ref.ID))
	}
	p.Own = false // messages name it by its owner
	return *p, nil
}

func checkMember(project ProjectRef, user string, role MemberRole) error {
	if err := project.check(); err != nil {
		return err
	}
	if err := valid.Name("user", user); err != nil {
		return err
	}
	if !slices.Contains(memberRoles, role) {
		return invalid("role", "{} is %s; expected %s", show(string(role)), oneOf(memberRoles))
	}
	return nil
}

// person is a member with internal fields.
type person struct {
	Member
	row      int64 // of the user
	ofRecord bool  // the project's row names them as its owner
}

// loadPeople reads the people of a project, the owner of record first.
func loadPeople(tx db.Tx, project int64) ([]person, error) {
	var people []person
	err := tx.Each(func(row db.Rows) error {
		var m person
		var since int64
		err := row.Scan(&m.row, &m.User, &m.Name, &m.Role, &m.ofRecord, &since)
		m.Status, m.CreatedAt = MemberAccepted, kernel.ToTime(since)
		people = append(people, m)
		return err
	}, `SELECT u.id, u.uid, coalesce(u.name, ''), 'owner', true, j.created_at FROM project j
		JOIN users u ON u.id = j.owner_id WHERE j.id = ?
		UNION ALL
		SELECT u.id, u.uid, coalesce(u.name, ''), m.role, false, m.created_at FROM project_member m
		JOIN users u ON u.id = m.user_id WHERE m.project_id = ?
		ORDER BY 5 DESC, 6, 2`, project, project)
	return people, err
}

// personNamed finds one of a project's people by id, or else by name; -1: none.
func personNamed(people []person, user string) int {
	i := slices.IndexFunc(people, func(m person) bool { return m.User == user })
	if i < 0 {
		folded := foldname.Key(user)
		i = slices.IndexFunc(people, func(m person) bool { return m.Name != "" && foldname.Key(m.Name) == folded })
	}
	return i
}

// findMember returns a member whose role can be changed.
func findMember(tx db.Tx, p naming.Project, user string) (person, error) {
	people, err := loadPeople(tx, p.Row)
	if err != nil {
		return person{}, err
	}
	i := personNamed(people, user)
	switch {
	case i < 0:
		return person{}, newError(KindNotFound, "user", "{} %s is not a member of project %s", show(user), show(p.Ref()))
	case people[i].ofRecord:
		return person{}, newError(KindForbidden, "user",
			"{} %s owns project %s; an owner can be neither changed nor removed",
			show(user), show(p.Ref()))
	}
	return people[i], nil
}

// loadMember reads a member after a change.
func loadMember(tx db.Tx, p naming.Project, user string) (Member, error) {
	m, err := findMember(tx, p, user)
	return m.Member, err
}
