package souvenir

import (
	"context"
	"fmt"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/records/audit"
	"github.com/souvenir-ai/souvenir/internal/redact"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// How users prove who they are: with a password, or with an identity at a provider. Their sign-ins are in signins.go.

// Credentials are the name and password that a user signs in with.
type Credentials struct {
	Name     string // case, width and the encoding of a character make no difference
	Password string
}

// Format prints the credentials without the password.
func (c Credentials) Format(f fmt.State, _ rune) { redact.Format(f, c, "Password") }

// UserNameKey returns the form in which equal user names compare equal: without regard to case, width, spaces, the
// encoding of a character, and invisible characters (Unicode's NFKC_Casefold). Count sign-in attempts for a name under
// this key, whether or not such a user exists: otherwise the counts reveal which names exist.
func UserNameKey(name string) string { return foldname.Key(name) }

// PasswordChange describes a change of the user's own password.
type PasswordChange struct {
	Old string // the current one; empty if there is none

	// New is at least 8 characters and at most 1,024 bytes long, without control characters, and not easy to guess: the
	// user's name, a common word, a row of the keyboard or a short repeated piece, with little added, is refused.
	// Different encodings of the same characters are the same password (RFC 8265, OpaqueString).
	New string

	KeepSignIn string // id of a sign-in that stays, such as the caller's own; empty: all end

	// End lists other kinds of access to end in the same commit: AccessGrants, AccessTokens. A person who knew the old
	// password may have created some. Nil means none.
	End []AccessKind
}

// Format prints the change without the passwords.
func (c PasswordChange) Format(f fmt.State, _ rune) { redact.Format(f, c, "Old", "New") }

// CheckPassword returns the user with this name and password. Anything else is ErrUnauthenticated, with the same
// message and after the same work, whether the user does not exist, the password is wrong or missing, or the user is
// disabled. The caller must limit the number of attempts. It works read-only, too.
func (h *Accounts) CheckPassword(ctx context.Context, c Credentials) (_ User, err error) {
	defer setGoNames[Credentials](&err)
	s, err := h.operator(ctx, "CheckPassword")
	if err != nil {
		return User{}, err
	}
	var u storedUser
	if len(c.Name) <= valid.MaxFoldedName {
		err := s.read(ctx, func(tx db.Tx, _ viewer) error {
			found, err := loadUsers(tx, `u.namespace = ? AND u.name_key = ?`, s.access.Namespace,
				foldname.Key(c.Name))
			if len(found) > 0 {
				u = found[0]
			}
			return err
		})
		if err != nil {
			return User{}, err
		}
	}
	right, err := s.hashing.Compare(ctx, u.password, c.Password)
	if err != nil {
		return User{}, err
	}
	if !right || s.credentialsRefused(s.access.Namespace, u.User) {
		return User{}, newError(KindUnauthenticated, "", "name or password is wrong")
	}
	s.renewHash(ctx, u, c.Password)
	return u.User, nil
}

// ChangePassword sets the password of this view's user, and ends the user's sign-ins except KeepSignIn. MCP tokens and
// OAuth grants stay valid, unless End names them. A wrong old password is ErrUnauthenticated, with the argument
// old_password; a user without an account is ErrConflict. A view that is limited to projects may not call it.
func (h *Accounts) ChangePassword(ctx context.Context, c PasswordChange) (err error) {
	defer setGoNames[PasswordChange](&err)
	s, err := h.own(ctx, "ChangePassword")
	if err != nil {
		return err
	}
	if err := s.checkWritable(); err != nil {
		return err
	}
	if err := checkKinds("end", c.End); err != nil {
		return err
	}
	var u storedUser
	err = s.read(ctx, func(tx db.Tx, v viewer) (err error) {
		u, err = s.account(tx, v, "")
		return err
	})
	if err != nil {
		return err
	}
	if err := u.checkHasAccount(); err != nil {
		return err
	}
	if u.HasPassword {
		right, err := s.hashing.Compare(ctx, u.password, c.Old)
		if err != nil {
			return err
		}
		if !right {
			return newError(KindUnauthenticated, "old_password", "{} is not the current password")
		}
	}
	hash, err := s.hashing.New(ctx, "new_password", c.New, u.Name)
	if err != nil {
		return err
	}
	return s.write(ctx, func(tx db.Tx, _ viewer) error {
		if err := s.replaceHash(tx, u, hash); err != nil {
			return err
		}
		if err := deleteSignIns(tx, u.row, c.KeepSignIn); err != nil {
			return err
		}
		return s.note(ctx, tx, s.revokeKinds(tx, u.row, c.KeepSignIn, c.End),
			event{"user.password", "user", u.ID, audit.Details{"end": jsonobject.List(c.End)}})
	})
}

// replaceHash writes a new hash, unless the stored one has changed since u was read.
func (s *Store) replaceHash(tx db.Tx, u storedUser, hash string) error {
	result, err := tx.Exec(`UPDATE users SET password = ?, updated_at = ? WHERE id = ? AND coalesce(password, '') = ?`,
		hash, s.now(), u.row, u.password)
	if err == nil && result.RowsAffected == 0 {
		return newError(KindConflict, "old_password",
			"the password has changed in the meantime; try again with the new one")
	}
	return err
}

// renewHash replaces a hash that was made with less work than new ones. Its failure does not fail the sign-in.
func (s *Store) renewHash(ctx context.Context, u storedUser, password string) {
	if s.db.ReadOnly() {
		return
	}
	hash, err := s.hashing.Renew(ctx, u.password, password)
	if err == nil && hash == "" {
		return
	}
	if err == nil {
		err = s.writeStore(ctx, func(tx db.Tx) error {
			_, err := tx.Exec(`UPDATE users SET password = ? WHERE id = ? AND password = ?`, hash, u.row,
				u.password) // the account does not change
			return err
		})
	}
	if err != nil {
		s.log.DebugContext(ctx, "could not renew a password hash", "user", u.ID, "error", err)
	}
}

// Identity is a user's identity at an external identity provider.
type Identity struct {
	Issuer    string    `json:"issuer"`  // OpenID Connect Core 1.0, section 2: iss
	Subject   string    `json:"subject"` // sub, unique only within the issuer
	Email     string    `json:"email,omitempty"`
	CreatedAt time.Time `json:"created_at"`
}

// NewIdentity describes an identity to link to a user.
type NewIdentity struct {
	User    string // id or name; empty: the view's user. Only the operator's store may name another
	Issuer  string // 1 to 512 characters, compared byte by byte
	Subject string // 1 to 255 characters, compared byte by byte
	Email   string // for people; empty: none
}

const maxIdentities = 32

// LinkIdentity lets a user sign in with an identity at a provider. The caller must have verified it with the provider.
// An identity that belongs to another user is ErrConflict; linking one's own again updates its email address. More than
// 32 identities of a user are ErrTooLarge. A view limited to projects may not call it, nor may a user without an
// account.
func (h *Accounts) LinkIdentity(ctx context.Context, n NewIdentity) (_ Identity, err error) {
	defer setGoNames[NewIdentity](&err)
	s, err := h.servingOwn(ctx, "LinkIdentity")
	if err != nil {
		return Identity{}, err
	}
	if err := checkIdentity(n.Issuer, n.Subject); err != nil {
		return Identity{}, err
	}
	if err := valid.Email(n.Email); err != nil {
		return Identity{}, err
	}
	var linked Identity
	err = s.write(ctx, func(tx db.Tx, v viewer) error {
		u, err := s.account(tx, v, n.User)
		if err != nil {
			return err
		}
		if err := u.checkHasAccount(); err != nil {
			return err
		}
		linked, err = s.linkIdentity(tx, u, Identity{Issuer: n.Issuer, Subject: n.Subject, Email: n.Email})
		return s.note(ctx, tx, err, event{"identity.link", "user", u.ID, nil})
	})
	return linked, err
}

func (s *Store) linkIdentity(tx db.Tx, u storedUser, n Identity) (Identity, error) {
	if _, err := tx.Exec(`INSERT INTO external_identity (issuer, subject, user_id, email, created_at)
		VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (issuer, subject) DO UPDATE SET email = excluded.email
		WHERE external_identity.user_id = excluded.user_id`, n.Issuer, n.Subject, u.row, n.Email, s.now()); err != nil {
		return Identity{}, err
	}
	all, err := identities(tx, u.row)
	if err != nil {
		return Identity{}, err
	}
	if len(all) > maxIdentities {
		return Identity{}, newError(KindTooLarge, "user", "{} %s has %d identities; at most %d are allowed", show(u.ID),
			len(all)-1, maxIdentities)
	}
	for _, i := range all {
		if i.Issuer == n.Issuer && i.Subject == n.Subject {
			return i, nil
		}
	}
	return Identity{}, newError(KindConflict, "subject", "{} %s of the issuer %s is linked to another user",
		show(n.Subject), show(n.Issuer))
}

func checkIdentity(issuer, subject string) error {
	if err := valid.Line("issuer", issuer, valid.MaxIssuer); err != nil {
		return err
	}
	return orNil(valid.Line("subject", subject, valid.MaxSubject))
}

// given reports whether an account is created with this identity.
func (i Identity) given() bool { return i.Issuer != "" || i.Subject != "" }

// checkIdentityOf checks the field Identity of a new account.
func checkIdentityOf[Parameters any](i Identity) error {
	if err := checkIdentity(i.Issuer, i.Subject); err != nil {
		return err
	}
	err := valid.Email(i.Email)
	setGoNames[Parameters](&err, "email", ".Identity.Email")
	return err
}

// identities reads the identities of a user (a row), the oldest first.
func identities(tx db.Tx, user int64) ([]Identity, error) {
	all := []Identity{}
	err := tx.Each(func(row db.Rows) error {
		var i Identity
		err := row.Scan(&i.Issuer, &i.Subject, &i.Email, kernel.TimeInto(&i.CreatedAt))
		all = append(all, i)
		return err
	}, `SELECT issuer, subject, email, created_at FROM external_identity WHERE user_id = ? `+
		`ORDER BY created_at, issuer, subject`, user)
	return all, err
}

// Identities returns the identities linked to a user (id or name; empty: the view's user), the oldest first. Only the
// operator's store may name another user; a view limited to projects may not call it.
func (h *Accounts) Identities(ctx context.Context, user string) (_ []Identity, err error) {
	defer setGoNames[struct{}](&err, "user", "user")
	s, err := h.servingOwn(ctx, "Identities")
	if err != nil {
		return nil, err
	}
	var all []Identity
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		u, err := s.account(tx, v, user)
		if err != nil {
			return err
		}
		all, err = identities(tx, u.row)
		return err
	})
	return all, err
}

// UnlinkIdentity unlinks an identity of a user (id or name; empty: the view's user), who can then no longer sign in
// with it; one that is not linked to the user is ErrNotFound. Through the user's own view, unlinking the only way to
// sign in is ErrConflict.
func (h *Accounts) UnlinkIdentity(ctx context.Context, user, issuer, subject string) (err error) {
	defer setGoNames[struct{}](&err, "user", "user", "issuer", "issuer", "subject", "subject")
	s, err := h.servingOwn(ctx, "UnlinkIdentity")
	if err != nil {
		return err
	}
	if err := checkIdentity(issuer, subject); err != nil {
		return err
	}
	return s.write(ctx, func(tx db.Tx, v viewer) error {
		u, err := s.account(tx, v, user)
		if err != nil {
			return err
		}
		result, err := tx.Exec(`DELETE FROM external_identity WHERE issuer = ? AND subject = ? AND user_id = ?`, issuer,
			subject, u.row)
		if err != nil {
			return err
		}
		if result.RowsAffected == 0 {
			return newError(KindNotFound, "subject", "{} %s of the issuer %s is not linked to this user", show(subject),
				show(issuer))
		}
		left, err := identities(tx, u.row)
		if err == nil && len(left) == 0 && !u.HasPassword && !s.operator {
			return newError(KindConflict, "subject",
				"{} %s of the issuer %s is the only way to sign in; set a password or link another identity first",
				show(subject), show(issuer))
		}
		return s.note(ctx, tx, err, event{"identity.unlink", "user", u.ID, nil})
	})
}

// GetUserByIdentity returns the user to whom an identity is linked, to sign them in. ErrNotFound means that the
// identity is not linked, ErrUnauthenticated that the user is disabled.
func (h *Accounts) GetUserByIdentity(ctx context.Context, issuer, subject string) (_ User, err error) {
	defer setGoNames[struct{}](&err, "issuer", "issuer", "subject", "subject")
	s, err := h.serving(ctx, "GetUserByIdentity")
	if err != nil {
		return User{}, err
	}
	if err := checkIdentity(issuer, subject); err != nil {
		return User{}, err
	}
	var found []storedUser
	err = s.read(ctx, func(tx db.Tx, _ viewer) (err error) {
		found, err = loadUsers(tx, `u.id = (SELECT user_id FROM external_identity WHERE issuer = ? AND subject = ?)`, issuer,
			subject)
		return err
	})
	switch {
	case err != nil:
		return User{}, err
	case len(found) == 0:
		return User{}, newError(KindNotFound, "subject", "{} %s of the issuer %s is not linked to a user", show(subject),
			show(issuer))
	case s.credentialsRefused(s.access.Namespace, found[0].User):
		return User{}, newError(KindUnauthenticated, "", "this user is disabled")
	}
	return found[0].User, nil
}
