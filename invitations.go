package souvenir

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/souvenir-ai/souvenir/internal/auth/passwords"
	"github.com/souvenir-ai/souvenir/internal/auth/secretvalue"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/records/audit"
	"github.com/souvenir-ai/souvenir/internal/redact"
	"github.com/souvenir-ai/souvenir/internal/transfer"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// InvitationPurpose is the purpose of an invitation.
type InvitationPurpose string

// The values of [InvitationPurpose].
const (
	InvitationAccount InvitationPurpose = "account" // a further account
	InvitationSetup   InvitationPurpose = "setup"   // the first account of a store, which is an admin's
)

// Invitation lets a person create an account, once.
type Invitation struct {
	ID        string            `json:"id"`
	Purpose   InvitationPurpose `json:"purpose"`
	Role      Role              `json:"role"` // of the account
	Email     string            `json:"email,omitempty"`
	Note      string            `json:"note,omitempty"`
	CreatedBy string            `json:"created_by,omitempty"` // id of the admin who created it; empty: the operator
	CreatedAt time.Time         `json:"created_at"`
	ExpiresAt time.Time         `json:"expires_at"`
	UsedAt    time.Time         `json:"used_at,omitzero"`  // zero: not yet
	UsedBy    string            `json:"used_by,omitempty"` // id of the user who accepted it
}

// NewInvitation describes an invitation to add.
type NewInvitation struct {
	Purpose InvitationPurpose // empty means InvitationAccount
	Role    Role              // empty means RoleUser, and RoleAdmin with InvitationSetup, which allows no other
	Email   string            // the invited person's: becomes the account's address unless another is given; empty: none
	Note    string            // for the managers of invitations: at most 200 characters, in one line

	// CreatedBy is the id or name of the admin who creates it. The invitation is valid only while this user is an admin
	// and not disabled. Empty means the operator.
	CreatedBy string

	// ExpiresAt ends the invitation, at most a year from now. Zero means in 7 days, and in 24 hours with InvitationSetup.
	ExpiresAt time.Time
}

// AddedInvitation is a new invitation with its value, which cannot be read again.
type AddedInvitation struct {
	Invitation
	Value string `json:"invitation"` // inv_ and 43 letters and digits, for a link
}

// Format prints the invitation without its value.
func (a AddedInvitation) Format(f fmt.State, _ rune) { redact.Format(f, a, "Value") }

// InvitationAcceptance describes an account to create with an invitation.
type InvitationAcceptance struct {
	Value    string
	Name     string // as in NewUser
	Password string // as in NewUser; required unless there is an identity
	Email    string // as in NewUser; empty: that of the invitation

	// Identity is the user's identity at a provider. The caller must have verified it with the provider; CreatedAt is
	// ignored. The zero value means none.
	Identity Identity
}

// Format prints the acceptance without the invitation's value and the password.
func (a InvitationAcceptance) Format(f fmt.State, _ rune) { redact.Format(f, a, "Value", "Password") }

const (
	invitationStart     = "inv_"
	invitationLifetime  = 7 * 24 * time.Hour
	setupLifetime       = 24 * time.Hour
	invitationLongest   = 366 * 24 * time.Hour
	keepDeadInvitations = 30 * 24 * time.Hour
	maxInvitations      = 1000 // that could be used at once
	maxNote             = 200  // characters
)

// HasAccounts reports whether any account in the namespace can sign in, disabled or not: it has a password, or an
// identity at a provider. While there is none, an invitation for [InvitationSetup] can create the first one, or give an
// account without a password one. It is cheap.
func (h *Accounts) HasAccounts(ctx context.Context) (bool, error) {
	s, err := h.operator(ctx, "HasAccounts")
	if err != nil {
		return false, err
	}
	var has bool
	err = s.readStore(ctx, func(tx db.Tx) (err error) {
		has, err = hasAccounts(tx, s.access.Namespace)
		return err
	})
	return has, err
}

func hasAccounts(tx db.Tx, namespace string) (has bool, err error) {
	err = tx.QueryRow(`SELECT EXISTS (SELECT 1 FROM users u WHERE u.namespace = ? AND u.name_key IS NOT NULL
		AND (u.password IS NOT NULL OR EXISTS (SELECT 1 FROM external_identity e WHERE e.user_id = u.id)))`,
		namespace).Scan(&has)
	return has, err
}

// setUpAccount writes the first account that can sign in. An account of that name that had only tokens so far, such as
// one created on the command line without a password, becomes the first account and keeps its memories: the holder of
// this invitation becomes an admin in any case.
func (s *Store) setUpAccount(tx db.Tx, n NewUser, hash string) (storedUser, error) {
	found, err := loadUsers(tx, `u.namespace = ? AND u.name_key = ? AND u.disabled_at IS NULL`, s.access.Namespace,
		foldname.Key(n.Name))
	if err != nil {
		return storedUser{}, err
	}
	if len(found) == 0 {
		return s.addAccount(tx, n, hash)
	}
	account := found[0]
	account.Name, account.Role, account.password = n.Name, n.Role, hash
	account.Email = cmp.Or(n.Email, account.Email)
	if err := s.setAccount(tx, account); err != nil {
		return storedUser{}, err
	}
	return findUser(tx, s.access.Namespace, account.ID)
}

// AddInvitation adds an invitation. Only the answer holds its value; the store keeps a hash. One for [InvitationSetup]
// replaces an earlier one, and is ErrConflict once an account exists. At most 1,000 invitations may wait to be used
// (ErrTooLarge). A CreatedBy who is not an admin is ErrForbidden, an unknown one ErrNotFound.
func (h *Accounts) AddInvitation(ctx context.Context, n NewInvitation) (_ AddedInvitation, err error) {
	defer setGoNames[NewInvitation](&err, "user", ".CreatedBy")
	s, err := h.serving(ctx, "AddInvitation")
	if err != nil {
		return AddedInvitation{}, err
	}
	n, err = s.checkInvitation(n)
	if err != nil {
		return AddedInvitation{}, err
	}
	added := AddedInvitation{Value: secretvalue.WithStart(invitationStart)}
	err = s.writeStore(ctx, func(tx db.Tx) (err error) {
		added.Invitation, err = s.addInvitation(tx, n, added.Value)
		return s.note(ctx, tx, err, event{"invitation.add", "invitation", added.ID,
			audit.Details{"role": added.Role, "purpose": added.Purpose, "user": n.CreatedBy}})
	})
	if err != nil {
		return AddedInvitation{}, err
	}
	return added, nil
}

// checkInvitation checks a new invitation by itself and fills in defaults.
func (s *Store) checkInvitation(n NewInvitation) (NewInvitation, error) {
	role, lifetime := RoleUser, invitationLifetime
	n.Purpose = cmp.Or(n.Purpose, InvitationAccount)
	if err := valid.Enum("purpose", n.Purpose, []InvitationPurpose{InvitationAccount, InvitationSetup}); err != nil {
		return n, err
	}
	if n.Purpose == InvitationSetup {
		role, lifetime = RoleAdmin, setupLifetime
	}
	n.Role = cmp.Or(n.Role, role)
	if err := checkUserDetails(n.Email, n.Role); err != nil {
		return n, err
	}
	if n.Purpose == InvitationSetup && n.Role != RoleAdmin {
		return n, invalid("role", "{} is %s; the first user of a store must be an admin", show(string(n.Role)))
	}
	if n.Note != "" {
		if err := valid.Line("note", n.Note, maxNote); err != nil {
			return n, err
		}
	}
	now := kernel.ToTime(s.now())
	if n.ExpiresAt.IsZero() {
		n.ExpiresAt = now.Add(lifetime)
	}
	if n.ExpiresAt.After(now.Add(invitationLongest)) {
		return n, invalid("expires_at", "{} is %s; expected at most a year from now",
			n.ExpiresAt.UTC().Format(time.RFC3339))
	}
	var err error
	n.ExpiresAt, err = valid.Expiry(n.ExpiresAt, 0, now)
	return n, err
}

func (s *Store) addInvitation(tx db.Tx, n NewInvitation, value string) (Invitation, error) {
	now := s.now()
	added := Invitation{ID: s.newID(), Purpose: n.Purpose, Role: n.Role, Email: n.Email, Note: n.Note,
		CreatedAt: kernel.ToTime(now), ExpiresAt: n.ExpiresAt}
	var by any
	if n.CreatedBy != "" {
		u, err := findUser(tx, defaultNamespace, n.CreatedBy)
		if err != nil {
			return added, err
		}
		if u.Role != RoleAdmin || u.Disabled {
			return added, newError(KindForbidden, "user", "{} %s is not an active admin and cannot invite anyone",
				show(n.CreatedBy))
		}
		by, added.CreatedBy = u.row, u.ID
	}
	if n.Purpose == InvitationSetup {
		switch has, err := hasAccounts(tx, defaultNamespace); {
		case err != nil:
			return added, err
		case has:
			return added, newError(KindConflict, "purpose", "people can already sign in to this store; an admin can invite more")
		}
		if _, err := tx.Exec(`DELETE FROM invitation WHERE purpose = 'setup'`); err != nil {
			return added, err
		}
	}
	if _, err := purgeInvitations(tx, now); err != nil {
		return added, err
	}
	waiting, err := db.Column[int](tx, `SELECT count(*) FROM invitation WHERE used_at IS NULL AND expires_at > ?`, now)
	if err != nil {
		return added, err
	}
	if waiting[0] >= maxInvitations {
		return added, newError(KindTooLarge, "", "%d invitations are open, the maximum is %d; revoke some",
			waiting[0], maxInvitations)
	}
	_, err = tx.Exec(`INSERT INTO invitation (uid, hash, purpose, role, email, note, created_by, created_at, `+
		`expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		added.ID, secretvalue.Hash(value), added.Purpose, added.Role, added.Email, added.Note, by, now,
		added.ExpiresAt.UnixMicro())
	return added, err
}

// storedInvitation is an invitation with internal fields.
type storedInvitation struct {
	Invitation
	row       int64
	withdrawn bool // its creator is no longer an admin
}

// loadInvitations reads the invitations i that satisfy a condition, which may end with an order.
func loadInvitations(tx db.Tx, condition string, args ...any) ([]storedInvitation, error) {
	var found []storedInvitation
	err := tx.Each(func(row db.Rows) error {
		var i storedInvitation
		err := row.Scan(&i.row, &i.ID, &i.Purpose, &i.Role, &i.Email, &i.Note, &i.CreatedBy, &i.withdrawn,
			kernel.TimeInto(&i.CreatedAt), kernel.TimeInto(&i.ExpiresAt), kernel.TimeInto(&i.UsedAt), &i.UsedBy)
		found = append(found, i)
		return err
	}, `SELECT i.id, i.uid, i.purpose, i.role, i.email, i.note, coalesce(b.uid, ''), i.created_by IS NOT NULL
		AND (b.role IS DISTINCT FROM 'admin' OR b.disabled_at IS NOT NULL),
			i.created_at, i.expires_at, i.used_at, coalesce(u.uid, '')
		FROM invitation i LEFT JOIN users b ON b.id = i.created_by LEFT JOIN users u ON u.id = i.used_by WHERE `+condition,
		args...)
	return found, err
}

// Invitations returns the invitations, the newest first, and includes used and expired ones for 30 days.
func (h *Accounts) Invitations(ctx context.Context) ([]Invitation, error) {
	s, err := h.serving(ctx, "Invitations")
	if err != nil {
		return nil, err
	}
	all := []Invitation{}
	err = s.readStore(ctx, func(tx db.Tx) error {
		found, err := loadInvitations(tx, `coalesce(i.used_at, i.expires_at) >= ? ORDER BY i.created_at DESC, i.id DESC`,
			s.now()-keepDeadInvitations.Microseconds())
		for _, i := range found {
			all = append(all, i.Invitation)
		}
		return err
	})
	return all, err
}

// RevokeInvitation revokes an invitation. If it was used, its account stays. An unknown one is ErrNotFound.
func (h *Accounts) RevokeInvitation(ctx context.Context, id string) (err error) {
	defer setGoNames[struct{}](&err, "id", "id")
	s, err := h.serving(ctx, "RevokeInvitation")
	if err != nil {
		return err
	}
	return s.writeStore(ctx, func(tx db.Tx) error {
		result, err := tx.Exec(`DELETE FROM invitation WHERE uid = ?`, id)
		if err == nil && result.RowsAffected == 0 {
			return newError(KindNotFound, "id", "{} %s is not an invitation of this store", show(id))
		}
		return s.note(ctx, tx, err, event{"invitation.delete", "invitation", id, nil})
	})
}

// CheckInvitation returns the invitation with this value, if it can create an account now. Otherwise it is ErrNotFound,
// with the argument invitation and a message for the holder of the link: unknown, used or expired. It works read-only,
// too.
func (h *Accounts) CheckInvitation(ctx context.Context, value string) (_ Invitation, err error) {
	defer setGoNames[struct{}](&err, "invitation", "value")
	return h.checkInvitation(ctx, value)
}

func (h *Accounts) checkInvitation(ctx context.Context, value string) (Invitation, error) {
	s, err := h.serving(ctx, "CheckInvitation")
	if err != nil {
		return Invitation{}, err
	}
	var found storedInvitation
	err = s.readStore(ctx, func(tx db.Tx) (err error) {
		found, err = usableInvitation(tx, value, s.now())
		return err
	})
	if err != nil {
		return Invitation{}, err
	}
	return found.Invitation, nil
}

// usableInvitation finds a valid invitation. It looks it up by its hash, so guessing reveals nothing about stored
// values.
func usableInvitation(tx db.Tx, value string, now int64) (storedInvitation, error) {
	refuse := func(format string, args ...any) (storedInvitation, error) {
		return storedInvitation{}, newError(KindNotFound, "invitation", format, args...)
	}
	const unknown = "this invitation is unknown; it may have been revoked or replaced, or the link is not complete"
	if !secretvalue.HasForm(invitationStart, value) {
		return refuse(unknown)
	}
	found, err := loadInvitations(tx, `i.hash = ?`, secretvalue.Hash(value))
	if err != nil {
		return storedInvitation{}, err
	}
	has, err := hasAccounts(tx, defaultNamespace)
	switch {
	case err != nil:
		return storedInvitation{}, err
	case len(found) == 0 || found[0].withdrawn:
		return refuse(unknown)
	case !found[0].UsedAt.IsZero():
		return refuse("this invitation has been used; sign in with the account that it created")
	case found[0].Purpose == InvitationSetup && has:
		return refuse("this service has been set up; sign in, or ask an admin for an invitation")
	case found[0].ExpiresAt.UnixMicro() <= now && found[0].Purpose == InvitationSetup:
		return refuse("this link has expired; start the service again for another one")
	case found[0].ExpiresAt.UnixMicro() <= now:
		return refuse("this invitation has expired; ask for another one")
	}
	return found[0], nil
}

// AcceptInvitation creates an account with an invitation and uses it up: of several concurrent attempts, in any
// process, one succeeds. An invalid invitation gets the errors of [Accounts.CheckInvitation], an invalid account those
// of [Accounts.AddUser], and an invalid identity those of [Accounts.LinkIdentity]; the invitation then stays valid.
func (h *Accounts) AcceptInvitation(ctx context.Context, a InvitationAcceptance) (_ User, err error) {
	defer setGoNames[InvitationAcceptance](&err)
	s, err := h.serving(ctx, "AcceptInvitation")
	if err != nil {
		return User{}, err
	}
	if err := s.checkWritable(); err != nil {
		return User{}, err
	}
	// First of all: without an invitation, no password is hashed and no name is revealed.
	i, err := h.checkInvitation(ctx, a.Value)
	if err != nil {
		return User{}, err
	}
	linked := a.Identity.given()
	if linked {
		if err := checkIdentityOf[InvitationAcceptance](a.Identity); err != nil {
			return User{}, err
		}
	} else if a.Password == "" {
		return User{}, invalid("password", "{} is empty; expected at least %d characters", passwords.Shortest)
	}
	n, hash, err := s.checkNewUser(ctx,
		NewUser{Name: a.Name, Email: cmp.Or(a.Email, i.Email), Role: i.Role, Password: a.Password})
	if err != nil {
		return User{}, err
	}
	var made storedUser
	err = s.writeStore(ctx, func(tx db.Tx) error {
		i, err := usableInvitation(tx, a.Value, s.now()) // it may have been used since
		if err != nil {
			return err
		}
		add := s.addAccount
		if i.Purpose == InvitationSetup {
			add = s.setUpAccount
		}
		if made, err = add(tx, n, hash); err != nil {
			return err
		}
		if linked {
			if _, err := s.linkIdentity(tx, made, a.Identity); err != nil {
				return err
			}
		}
		_, err = tx.Exec(`UPDATE invitation SET used_at = ?, used_by = ? WHERE id = ?`, s.now(), made.row, i.row)
		return s.note(ctx, tx, err, event{"user.add", "user", made.ID,
			audit.Details{"role": made.Role, "invitation": i.ID}})
	})
	if err != nil {
		return User{}, err
	}
	return made.User, nil
}

// purgeInvitations deletes the invitations that were used or expired more than 30 days ago, and counts them.
func purgeInvitations(tx db.Tx, now int64) (int64, error) {
	before := now - keepDeadInvitations.Microseconds()
	result, err := tx.Exec(`DELETE FROM invitation WHERE coalesce(used_at, expires_at) < ?`, before)
	return result.RowsAffected, err
}

// invitationRecord describes a valid invitation row. Exports leave invitations out: one store's invitations are not
// valid in another.
func invitationRecord() transfer.Record {
	return transfer.Record{
		Table: "invitation", Key: 1,
		Fields: []transfer.RecordField{
			{Name: "id", Check: valid.Name},
			{Name: "hash", Form: transfer.BytesForm, Check: transfer.CheckHash},
			{Name: "email", Check: func(_, value string) error { return valid.Email(value) }},
			{Name: "note", Check: transfer.CheckText},
			{Name: "created_at", Form: transfer.TimeForm},
			{Name: "expires_at", Form: transfer.TimeForm},
			{Name: "used_at", Form: transfer.TimeForm},
		},
		Selection: `SELECT uid, hash, email, note, created_at, expires_at, used_at FROM invitation`, Ordered: `id`,
	}
}
