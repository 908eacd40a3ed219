package souvenir

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/records/audit"
	"github.com/souvenir-ai/souvenir/internal/trash"
)

// ProjectInvitation is an invitation to a project, as the invited user sees it. Until it is accepted, nothing else of
// the project is visible to that user.
type ProjectInvitation struct {
	ID            string     `json:"id"`
	ProjectID     string     `json:"project_id"`
	ProjectName   string     `json:"project_name"`
	Owner         string     `json:"owner"`                // user id of the owner of record
	OwnerName     string     `json:"owner_name,omitempty"` // of the account, if any
	InvitedBy     string     `json:"invited_by"`           // user id of the sender
	InvitedByName string     `json:"invited_by_name,omitempty"`
	Role          MemberRole `json:"role"` // the role that is offered
	// the user's role as a member; empty for a user who is not a member yet
	CurrentRole MemberRole `json:"current_role,omitempty"`
	CreatedAt   time.Time  `json:"created_at"`
	ExpiresAt   time.Time  `json:"expires_at"`
}

// InvitedMember is a pending invitation, as the owners of the project see it. It is the same whether or not a user with
// that name exists, has declined it, or has blocked the sender.
type InvitedMember struct {
	// as the sender typed it; for a member offered a higher role, the name
	User          string     `json:"user"`
	Role          MemberRole `json:"role"`       // the role that is offered
	InvitedBy     string     `json:"invited_by"` // user id of the sender
	InvitedByName string     `json:"invited_by_name,omitempty"`
	CreatedAt     time.Time  `json:"created_at"`
	ExpiresAt     time.Time  `json:"expires_at"`
}

// BlockedSender is a user whose invitations are not delivered.
type BlockedSender struct {
	User      string    `json:"user"`           // user id
	Name      string    `json:"name,omitempty"` // of the account, if any
	CreatedAt time.Time `json:"created_at"`     // since when
}

const (
	// MaxSentInvitations is how many pending invitations to projects one user may have sent.
	MaxSentInvitations = 100

	// MaxReceivedInvitations is how many pending invitations to projects one user may have received. Above that, the
	// newest invitation of the sender with the most of them is dropped.
	MaxReceivedInvitations = 100

	projectInvitationLifetime = 30 * 24 * time.Hour

	declineLasts = 30 * 24 * time.Hour // after a decline, no invitation to the project is delivered to that user
	maxDeclined  = 3                   // declines of one sender within declineLasts; then none of this sender is delivered
)

// pendingInvitation is the condition for an invitation i to a project j by a user s that can be accepted (one argument:
// the time). Invitations of a sender who no longer owns the project, or is disabled, do not count.
const pendingInvitation = `i.expires_at > ? AND s.disabled_at IS NULL AND (j.owner_id = i.sender_id
	OR EXISTS (SELECT 1 FROM project_member WHERE project_id = j.id AND user_id = i.sender_id AND role = 'owner'))`

// sentInvitation is a pending invitation with the fields that stay inside the store.
type sentInvitation struct {
	ProjectInvitation
	row, project, sender int64
	invited              string // as typed
}

// loadSentInvitations reads the pending invitations for which a condition on i holds, the newest first.
func loadSentInvitations(tx db.Tx, now int64, condition string, args ...any) ([]sentInvitation, error) {
	var found []sentInvitation
	err := tx.Each(func(row db.Rows) error {
		var i sentInvitation
		err := row.Scan(&i.row, &i.project, &i.sender, &i.invited, &i.ID, &i.ProjectID, &i.ProjectName, &i.Owner,
			&i.OwnerName, &i.InvitedBy, &i.InvitedByName, &i.Role, &i.CurrentRole, kernel.TimeInto(&i.CreatedAt),
			kernel.TimeInto(&i.ExpiresAt))
		found = append(found, i)
		return err
	}, `SELECT i.id, j.id, s.id, i.invited, i.uid, j.uid, j.name, o.uid, coalesce(o.name, ''), s.uid, coalesce(s.name,
		''), i.role,
			coalesce((SELECT role FROM project_member WHERE project_id = j.id AND user_id = i.recipient_id), ''), i.created_at,
			i.expires_at
		FROM project_invitation i JOIN project j ON j.id = i.project_id JOIN users o ON o.id = j.owner_id
		JOIN users s ON s.id = i.sender_id
		WHERE `+pendingInvitation+` AND `+condition+` ORDER BY i.created_at DESC, i.id DESC`, append([]any{now}, args...)...)
	return found, err
}

// inviteMember invites a user to a project. Its answer and its look-ups are the same whether or not the user exists,
// and whether or not the invitation is delivered.
func (s *Store) inviteMember(tx db.Tx, v viewer, n NewMember) (Member, error) {
	p, err := naming.Managed(tx, v, n.Project.ID, n.Project.Name)
	if err != nil {
		return Member{}, err
	}
	people, err := loadPeople(tx, p.Row)
	if err != nil {
		return Member{}, err
	}
	if i := personNamed(people, n.User); i >= 0 {
		return Member{}, memberAlready(p, people[i], n.User)
	}
	return s.sendInvitation(tx, v, p, n.User, n.User, n.Role)
}

// inviteHigher offers a member a higher role, and replaces any other invitation of theirs to the project. Their role
// does not change until they accept.
func (s *Store) inviteHigher(tx db.Tx, v viewer, p naming.Project, m person, role MemberRole) (Member, error) {
	if err := endInvitationsTo(tx, p.Row, User{ID: m.User, Name: m.Name}, m.row); err != nil {
		return Member{}, err
	}
	invited, err := s.sendInvitation(tx, v, p, cmp.Or(m.Name, m.User), m.User, role)
	if err != nil {
		return Member{}, err
	}
	invited.User, invited.Name = m.User, m.Name
	return invited, nil
}

// sendInvitation sends an invitation to a project. invited is what its owners see; to is the id or the name of the
// recipient.
func (s *Store) sendInvitation(tx db.Tx, v viewer, p naming.Project, invited, to string, role MemberRole) (Member,
	error) {
	now := s.now()
	if _, err := purgeProjectInvitations(tx, now); err != nil {
		return Member{}, err
	}
	_, err := tx.Exec(`DELETE FROM project_invitation WHERE project_id = ? AND invited = ?`, p.Row,
		invited) // the new one replaces it; another spelling may be the id of another user
	if err != nil {
		return Member{}, err
	}
	sent, err := db.Column[int](tx, `SELECT count(*) FROM project_invitation WHERE sender_id = ?`, v.User)
	if err != nil {
		return Member{}, err
	}
	if sent[0] >= MaxSentInvitations {
		return Member{}, newError(KindTooLarge, "user",
			"%d invitations to projects are pending, and at most %d per sender are allowed; withdraw some, or wait until they "+
				"are accepted or expire",
			sent[0], MaxSentInvitations)
	}
	recipient, err := recipientOf(tx, v, p.Row, to, now)
	if err != nil {
		return Member{}, err
	}
	// Only the latest invitation to a project is delivered, regardless of the name it was sent to.
	if _, err := tx.Exec(`UPDATE project_invitation SET recipient_id = NULL WHERE project_id = ? AND recipient_id = ?`,
		p.Row, recipient); err != nil {
		return Member{}, err
	}
	_, err = tx.Exec(`INSERT INTO project_invitation (uid, project_id, sender_id, invited, recipient_id, role, `+
		`created_at, expires_at) VALUES (?, ?, ?, ?, nullif(?, 0), ?, ?, ?)`,
		s.newID(), p.Row, v.User, invited, recipient, string(role), now, now+projectInvitationLifetime.Microseconds())
	if err != nil {
		return Member{}, err
	}
	return Member{User: invited, Role: role, Status: MemberInvited, CreatedAt: kernel.ToTime(now)},
		dropSurplus(tx, recipient)
}

// undoLasts is how long after its deletion a project is restored with its members, as undoing a mistake. Later the
// members are invited again, since they could not leave it in the meantime.
const undoLasts = time.Hour

// restoreMember adds a former member to a project that is restored from the trash, or sends an invitation.
func (s *Store) restoreMember(tx db.Tx, v viewer, e trashEntry, project int64, m trash.Member) error {
	u, err := findUser(tx, v.Namespace, m.User)
	if errors.Is(err, ErrNotFound) || err == nil && u.ID != m.User { // deleted since; another may have the id as a name
		return nil
	}
	if err != nil {
		return err
	}
	now := s.now()
	if s.operator || now-e.DeletedAt.UnixMicro() <= undoLasts.Microseconds() {
		_, err := tx.Exec(`INSERT INTO project_member (project_id, user_id, role, created_at) SELECT ?1, id, ?2, ?3
			FROM users WHERE id = ?4 AND NOT EXISTS (SELECT 1 FROM blocked_sender WHERE user_id = ?4 AND sender_id = ?5)
			ON CONFLICT DO NOTHING`, project, m.Role, m.Created, u.row, e.owner)
		return err
	}
	p := naming.Project{Row: project}
	_, err = s.sendInvitation(tx, v, p, cmp.Or(u.Name, u.ID), u.ID, MemberRole(m.Role))
	if errors.Is(err, ErrTooLarge) { // of invitations; the owner can send the rest later
		return nil
	}
	return err
}

// recipientOf returns the row of the user to whom an invitation is delivered, 0 for none. It runs the same queries for
// every user, even for one who does not exist.
func recipientOf(tx db.Tx, sender viewer, project int64, named string, now int64) (int64, error) {
	u, err := findUser(tx, sender.Namespace, named)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return 0, err
	}
	since := now - declineLasts.Microseconds()
	found, err := db.Column[int64](tx, `SELECT u.id FROM users u WHERE u.id = ?1
		AND NOT EXISTS (SELECT 1 FROM blocked_sender WHERE user_id = ?1 AND sender_id = ?2)
		AND NOT EXISTS (SELECT 1 FROM declined_invitation WHERE user_id = ?1 AND project_id = ?3 AND declined_at > ?4)
		AND (SELECT count(*) FROM declined_invitation WHERE user_id = ?1 AND sender_id = ?2 AND declined_at > ?4) < ?5`,
		u.row, sender.User, project, since, maxDeclined)
	if err != nil || len(found) == 0 {
		return 0, err
	}
	return found[0], nil
}

// dropSurplus bounds the invitations that a user has received: it drops the newest invitation of the sender with the
// most, so that no sender can crowd out others.
func dropSurplus(tx db.Tx, recipient int64) error {
	received, err := db.Column[int](tx, `SELECT count(*) FROM project_invitation WHERE recipient_id = ?`, recipient)
	if err != nil || received[0] <= MaxReceivedInvitations {
		return err
	}
	_, err = tx.Exec(`UPDATE project_invitation SET recipient_id = NULL WHERE id = (SELECT i.id FROM project_invitation i
		WHERE i.recipient_id = ?1
		ORDER BY (SELECT count(*) FROM project_invitation o WHERE o.recipient_id = ?1 AND o.sender_id = i.sender_id) DESC,
		i.created_at DESC, i.id DESC LIMIT 1)`, recipient)
	return err
}

// InvitedMembers returns the pending invitations to a project, the newest first. It is for users who may add members,
// see [Store.AddMember].
func (s *Store) InvitedMembers(ctx context.Context, project ProjectRef) (_ []InvitedMember, err error) {
	defer setGoNames[ProjectRef](&err)
	if err := s.checkUnconfined("InvitedMembers"); err != nil {
		return nil, err
	}
	if err := project.check(); err != nil {
		return nil, err
	}
	all := []InvitedMember{}
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		p, err := naming.Managed(tx, v, project.ID, project.Name)
		if err != nil {
			return err
		}
		found, err := loadSentInvitations(tx, s.now(), `i.project_id = ?`, p.Row)
		for _, i := range found {
			all = append(all, InvitedMember{i.invited, i.Role, i.InvitedBy, i.InvitedByName, i.CreatedAt, i.ExpiresAt})
		}
		return err
	})
	return all, err
}

// findInvited returns the pending invitation for a user as the sender typed it.
func findInvited(tx db.Tx, p naming.Project, user string, now int64) (sentInvitation, error) {
	found, err := loadSentInvitations(tx, now, `i.project_id = ?`, p.Row)
	if err != nil {
		return sentInvitation{}, err
	}
	i := slices.IndexFunc(found, func(i sentInvitation) bool { return i.invited == user })
	if i < 0 {
		folded := foldname.Key(user)
		i = slices.IndexFunc(found, func(i sentInvitation) bool { return foldname.Key(i.invited) == folded })
	}
	if i < 0 {
		return sentInvitation{}, newError(KindNotFound, "user", "{} %s is neither a member of project %s nor invited to it",
			show(user), show(p.Ref()))
	}
	return found[i], nil
}

// updateInvited gives a pending invitation another role. It becomes a new invitation for the recipient, so that no one
// accepts a role they have not seen.
func (s *Store) updateInvited(tx db.Tx, p naming.Project, user string, role MemberRole) (Member, error) {
	i, err := findInvited(tx, p, user, s.now())
	if err != nil {
		return Member{}, err
	}
	_, err = tx.Exec(`UPDATE project_invitation SET role = ?, uid = ? WHERE id = ?`, string(role), s.newID(), i.row)
	return Member{User: i.invited, Role: role, Status: MemberInvited, CreatedAt: i.CreatedAt}, err
}

// withdrawInvited ends a pending invitation.
func withdrawInvited(tx db.Tx, p naming.Project, user string, now int64) error {
	i, err := findInvited(tx, p, user, now)
	if err == nil {
		_, err = tx.Exec(`DELETE FROM project_invitation WHERE id = ?`, i.row)
	}
	return err
}

// endInvitationsTo ends the pending invitations of a user, who is a member now, to a project, under any name they were
// sent to.
func endInvitationsTo(tx db.Tx, project int64, u User, row int64) error {
	if _, err := tx.Exec(`DELETE FROM project_invitation WHERE project_id = ? AND (recipient_id = ? OR invited = ?)`,
		project, row, u.ID); err != nil || u.Name == "" {
		return err
	}
	named, err := db.Column[string](tx, `SELECT invited FROM project_invitation WHERE project_id = ?`, project)
	for _, invited := range named {
		if err == nil && foldname.Key(invited) == foldname.Key(u.Name) {
			_, err = tx.Exec(`DELETE FROM project_invitation WHERE project_id = ? AND invited = ?`, project, invited)
		}
	}
	return err
}

// ProjectInvitations returns the pending invitations of this view's user to projects, the newest first. It leaves out
// invitations that are answered, withdrawn or older than 30 days, or whose sender no longer owns the project. A view
// limited to projects is ErrForbidden.
func (h *Accounts) ProjectInvitations(ctx context.Context) ([]ProjectInvitation, error) {
	s, err := h.own(ctx, "ProjectInvitations")
	if err != nil {
		return nil, err
	}
	all := []ProjectInvitation{}
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		found, err := loadSentInvitations(tx, s.now(), `i.recipient_id = ?`, v.User)
		for _, i := range found {
			all = append(all, i.ProjectInvitation)
		}
		return err
	})
	return all, err
}

// answerInvitation runs fn on a pending invitation of this view's user. Anything else is ErrNotFound, for any reason.
func (h *Accounts) answerInvitation(ctx context.Context, what, id string,
	fn func(db.Tx, viewer, sentInvitation) error) error {
	s, err := h.own(ctx, what)
	if err != nil {
		return err
	}
	return s.write(ctx, func(tx db.Tx, v viewer) error {
		found, err := loadSentInvitations(tx, s.now(), `i.uid = ? AND i.recipient_id = ?`, id, v.User)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return newError(KindNotFound, "id",
				"{} %s is not a pending invitation of this user; it may have been answered, changed or withdrawn, or have "+
					"expired, or its sender may no longer own the project", show(id))
		}
		return fn(tx, v, found[0])
	})
}

// AcceptProjectInvitation makes this view's user a member of the project, or gives a member the higher role that the
// invitation offers, from the next call on. An invitation that is not pending for the user is ErrNotFound, and a view
// limited to projects ErrForbidden. It is for people: no tool offers it.
func (h *Accounts) AcceptProjectInvitation(ctx context.Context, id string) (_ Project, err error) {
	defer setGoNames[struct{}](&err, "id", "id")
	s := h.s
	var accepted Project
	err = h.answerInvitation(ctx, "AcceptProjectInvitation", id, func(tx db.Tx, v viewer, i sentInvitation) error {
		_, err := tx.Exec(`INSERT INTO project_member (project_id, user_id, role, created_at) VALUES (?, ?, ?, ?)
			ON CONFLICT (user_id, project_id) DO UPDATE SET role = excluded.role`, i.project, v.User, string(i.Role), s.now())
		if err != nil {
			return err
		}
		if _, err := tx.Exec(`DELETE FROM declined_invitation WHERE user_id = ? AND project_id = ?`, v.User,
			i.project); err != nil {
			return err
		}
		me, err := loadUsers(tx, `u.id = ?`, v.User)
		if err != nil {
			return err
		}
		if err := endInvitationsTo(tx, i.project, me[0].User, v.User); err != nil {
			return err
		}
		accepted, err = loadProject(tx, v, i.project)
		return s.note(ctx, tx, err, event{"member.accept", "project", AuditID("project", accepted.Owner, accepted.ID),
			audit.Details{"user": s.access.User, "role": i.Role}})
	})
	return accepted, err
}

// DeclineProjectInvitation declines an invitation. For 30 days no other invitation to this project is delivered to this
// view's user, and after three declined ones from a sender, none from that sender. Senders are not notified: they see
// it as pending until it expires. Errors are those of [Accounts.AcceptProjectInvitation].
func (h *Accounts) DeclineProjectInvitation(ctx context.Context, id string) (err error) {
	defer setGoNames[struct{}](&err, "id", "id")
	s := h.s
	return h.answerInvitation(ctx, "DeclineProjectInvitation", id,
		func(tx db.Tx, v viewer, i sentInvitation) error { return s.decline(tx, v, i) })
}

func (s *Store) decline(tx db.Tx, v viewer, i sentInvitation) error {
	if _, err := tx.Exec(`UPDATE project_invitation SET recipient_id = NULL WHERE project_id = ? AND recipient_id = ?`,
		i.project, v.User); err != nil {
		return err
	}
	_, err := tx.Exec(`INSERT INTO declined_invitation (user_id, sender_id, project_id, declined_at) VALUES (?, ?, ?, ?)`,
		v.User, i.sender, i.project, s.now())
	return err
}

// BlockSender declines an invitation, and blocks its sender: none of their invitations is delivered to this view's user
// until [Accounts.UnblockSender]. They are not notified. Projects already shared stay shared. Errors are those of
// [Accounts.AcceptProjectInvitation].
func (h *Accounts) BlockSender(ctx context.Context, id string) (_ BlockedSender, err error) {
	defer setGoNames[struct{}](&err, "id", "id")
	s := h.s
	var blocked BlockedSender
	err = h.answerInvitation(ctx, "BlockSender", id, func(tx db.Tx, v viewer, i sentInvitation) error {
		if err := s.decline(tx, v, i); err != nil {
			return err
		}
		if _, err := tx.Exec(`UPDATE project_invitation SET recipient_id = NULL WHERE sender_id = ? AND recipient_id = ?`,
			i.sender, v.User); err != nil {
			return err
		}
		now := s.now()
		blocked = BlockedSender{i.InvitedBy, i.InvitedByName, kernel.ToTime(now)}
		_, err := tx.Exec(`INSERT INTO blocked_sender (user_id, sender_id, created_at) VALUES (?, ?, ?) `+
			`ON CONFLICT DO NOTHING`, v.User, i.sender, now)
		return err
	})
	return blocked, err
}

// BlockedSenders returns the users whose invitations are not delivered to this view's user, the most recently blocked
// first. A view limited to projects is ErrForbidden.
func (h *Accounts) BlockedSenders(ctx context.Context) ([]BlockedSender, error) {
	s, err := h.own(ctx, "BlockedSenders")
	if err != nil {
		return nil, err
	}
	all := []BlockedSender{}
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		return tx.Each(func(row db.Rows) error {
			var b BlockedSender
			err := row.Scan(&b.User, &b.Name, kernel.TimeInto(&b.CreatedAt))
			all = append(all, b)
			return err
		}, `SELECT u.uid, coalesce(u.name, ''), b.created_at FROM blocked_sender b JOIN users u ON u.id = b.sender_id `+
			`WHERE b.user_id = ? ORDER BY b.created_at DESC, u.uid`, v.User)
	})
	return all, err
}

// UnblockSender lets a user, by id, send invitations to this view's user again. What was sent meanwhile is not
// delivered. A user who is not blocked is ErrNotFound, and a view limited to projects ErrForbidden.
func (h *Accounts) UnblockSender(ctx context.Context, user string) (err error) {
	defer setGoNames[struct{}](&err, "user", "user")
	s, err := h.own(ctx, "UnblockSender")
	if err != nil {
		return err
	}
	return s.write(ctx, func(tx db.Tx, v viewer) error {
		result, err := tx.Exec(`DELETE FROM blocked_sender WHERE user_id = ? AND sender_id = (SELECT id FROM users `+
			`WHERE namespace = ? AND uid = ?)`, v.User, v.Namespace, user)
		if err == nil && result.RowsAffected == 0 {
			return newError(KindNotFound, "user",
				"{} %s is not blocked by this user; give the id of a blocked user", show(user))
		}
		return err
	})
}

// purgeProjectInvitations deletes expired invitations, which it counts, and declines that no longer count.
func purgeProjectInvitations(tx db.Tx, now int64) (int64, error) {
	if _, err := tx.Exec(`DELETE FROM declined_invitation WHERE declined_at <= ?`,
		now-declineLasts.Microseconds()); err != nil {
		return 0, err
	}
	result, err := tx.Exec(`DELETE FROM project_invitation WHERE expires_at <= ?`, now)
	return result.RowsAffected, err
}
