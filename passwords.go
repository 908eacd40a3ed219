package souvenir

import (
	"context"
	"fmt"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/records/audit"
	"github.com/souvenir-ai/souvenir/internal/redact"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Credentials are the name and password that a user signs in with.
type Credentials struct {
	Name     string // case, width and the encoding of a character make no difference
	Password string
}

// Format prints the credentials without the password.
func (c Credentials) Format(f fmt.State, _ rune) { redact.Format(f, c, "Password") }

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
	defer inGo[Credentials](&err)
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
	if !right || s.isShut(s.access.Namespace, u.User) {
		return User{}, newError(KindUnauthenticated, "", "name or password is wrong")
	}
	s.renewHash(ctx, u, c.Password)
	return u.User, nil
}

// ChangePassword sets the password of this view's user, and ends the user's sign-ins except KeepSignIn. MCP tokens and
// OAuth grants stay valid, unless End names them. A wrong old password is ErrUnauthenticated, with the argument
// old_password; a user without an account is ErrConflict. A view that is limited to projects may not call it.
func (h *Accounts) ChangePassword(ctx context.Context, c PasswordChange) (err error) {
	defer inGo[PasswordChange](&err)
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
		if err := endSignIns(tx, u.row, c.KeepSignIn); err != nil {
			return err
		}
		return s.note(ctx, tx, s.endKinds(tx, u.row, c.KeepSignIn, c.End),
			event{"user.password", "user", u.ID, audit.Details{"end": emptyList(c.End)}})
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
