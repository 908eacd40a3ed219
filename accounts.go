package souvenir

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/souvenir-ai/souvenir/internal/check"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/jsonobject"
)

// Accounts manages users and their credentials: identities, invitations, sessions, MCP tokens, and the clients, grants,
// codes and keys of OAuth. Get it with [Store.Accounts].
//
// On the Store that [Open] returned it manages all accounts. On a view it is limited to the account of the view's user:
// their own tokens, sessions, identities, clients and grants. Other methods return ErrForbidden there, as do all but Me
// on a view limited to projects.
type Accounts struct {
	s *Store
}

// Accounts returns the methods for users and their credentials.
func (s *Store) Accounts() *Accounts {
	return &Accounts{s}
}

// operator returns the store for a method about all accounts, and refuses it on a view.
func (h *Accounts) operator(method string) (*Store, error) {
	return h.s, h.s.checkOperator(method)
}

// own returns the store for a method about the user's account, and refuses it on a view limited to projects.
func (h *Accounts) own(method string) (*Store, error) {
	return h.s, h.s.checkAccount(method)
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

// IdentityRef says which identity to unlink.
type IdentityRef struct {
	User    string // as in NewIdentity
	Issuer  string
	Subject string
}

const (
	maxIssuer     = 512
	maxSubject    = 255 // OpenID Connect Core 1.0, section 2
	maxIdentities = 32
)

// LinkIdentity lets a user sign in with an identity at a provider. The caller must have verified it with the provider.
// An identity that belongs to another user is ErrConflict; linking one's own again updates its email address. More than
// 32 identities of a user are ErrTooLarge. A view limited to projects may not call it, nor may a user without an
// account.
func (h *Accounts) LinkIdentity(ctx context.Context, n NewIdentity) (Identity, error) {
	s, err := h.own("LinkIdentity")
	if err != nil {
		return Identity{}, err
	}
	if err := checkIdentity(n.Issuer, n.Subject); err != nil {
		return Identity{}, err
	}
	if err := checkEmail(n.Email); err != nil {
		return Identity{}, err
	}
	var linked Identity
	err = s.write(ctx, func(tx db.Tx, sc scope) error {
		u, err := s.account(tx, sc, n.User)
		if err != nil {
			return err
		}
		if err := u.checkHasAccount(); err != nil {
			return err
		}
		linked, err = s.linkIdentity(tx, u, n)
		return err
	})
	return linked, err
}

func (s *Store) linkIdentity(tx db.Tx, u storedUser, n NewIdentity) (Identity, error) {
	if _, err := tx.Exec(`INSERT INTO external_identity (issuer, subject, user_id, email, created_at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (issuer, subject) DO UPDATE SET email = excluded.email WHERE external_identity.user_id = excluded.user_id`, n.Issuer, n.Subject, u.row, n.Email, s.now()); err != nil {
		return Identity{}, err
	}
	all, err := identities(tx, u.row)
	if err != nil {
		return Identity{}, err
	}
	if len(all) > maxIdentities {
		return Identity{}, newError(KindTooLarge, "user", "user %s has %d identities; at most %d are allowed", show(u.ID),
			len(all)-1, maxIdentities)
	}
	for _, i := range all {
		if i.Issuer == n.Issuer && i.Subject == n.Subject {
			return i, nil
		}
	}
	return Identity{}, newError(KindConflict, "subject", "subject %s of the issuer %s is linked to another user",
		show(n.Subject), show(n.Issuer))
}

func checkIdentity(issuer, subject string) error {
	if err := check.Line("issuer", issuer, maxIssuer); err != nil {
		return err
	}
	return orNil(check.Line("subject", subject, maxSubject))
}

// identities reads the identities of a user (a row), the oldest first.
func identities(tx db.Tx, user int64) ([]Identity, error) {
	all := []Identity{}
	err := tx.Each(func(row db.Rows) error {
		var i Identity
		var created int64
		err := row.Scan(&i.Issuer, &i.Subject, &i.Email, &created)
		i.CreatedAt = toTime(created)
		all = append(all, i)
		return err
	}, `SELECT issuer, subject, email, created_at FROM external_identity WHERE user_id = ? ORDER BY created_at, issuer, subject`, user)
	return all, err
}

// Identities returns the identities linked to a user (id or name; empty: the view's user), the oldest first. Only the
// operator's store may name another user; a view limited to projects may not call it.
func (h *Accounts) Identities(ctx context.Context, user string) ([]Identity, error) {
	s, err := h.own("Identities")
	if err != nil {
		return nil, err
	}
	var all []Identity
	err = s.read(ctx, func(tx db.Tx, sc scope) error {
		u, err := s.account(tx, sc, user)
		if err != nil {
			return err
		}
		all, err = identities(tx, u.row)
		return err
	})
	return all, err
}

// UnlinkIdentity unlinks an identity, so that the user can no longer sign in with it; one that is not linked to the
// user is ErrNotFound. Through the user's own view, unlinking the only way to sign in is ErrConflict.
func (h *Accounts) UnlinkIdentity(ctx context.Context, i IdentityRef) error {
	s, err := h.own("UnlinkIdentity")
	if err != nil {
		return err
	}
	if err := checkIdentity(i.Issuer, i.Subject); err != nil {
		return err
	}
	return s.write(ctx, func(tx db.Tx, sc scope) error {
		u, err := s.account(tx, sc, i.User)
		if err != nil {
			return err
		}
		result, err := tx.Exec(`DELETE FROM external_identity WHERE issuer = ? AND subject = ? AND user_id = ?`, i.Issuer,
			i.Subject, u.row)
		if err != nil {
			return err
		}
		if result.RowsAffected == 0 {
			return newError(KindNotFound, "subject", "subject %s of the issuer %s is not linked to this user", show(i.Subject),
				show(i.Issuer))
		}
		left, err := identities(tx, u.row)
		if err == nil && len(left) == 0 && !u.HasPassword && !s.operator {
			return newError(KindConflict, "subject",
				"subject %s of the issuer %s is the only way to sign in; set a password or link another identity first",
				show(i.Subject), show(i.Issuer))
		}
		return err
	})
}

// UserByIdentity returns the user to whom an identity is linked, to sign them in. ErrNotFound means that the identity
// is not linked, ErrUnauthenticated that the user is disabled. Only for the operator's store.
func (h *Accounts) UserByIdentity(ctx context.Context, issuer, subject string) (User, error) {
	s, err := h.operator("UserByIdentity")
	if err != nil {
		return User{}, err
	}
	if err := checkIdentity(issuer, subject); err != nil {
		return User{}, err
	}
	var found []storedUser
	err = s.read(ctx, func(tx db.Tx, _ scope) (err error) {
		found, err = loadUsers(tx, `u.id = (SELECT user_id FROM external_identity WHERE issuer = ? AND subject = ?)`, issuer,
			subject)
		return err
	})
	switch {
	case err != nil:
		return User{}, err
	case len(found) == 0:
		return User{}, newError(KindNotFound, "subject", "subject %s of the issuer %s is linked to no user", show(subject),
			show(issuer))
	case found[0].Disabled:
		return User{}, newError(KindUnauthenticated, "", "this user is disabled")
	}
	return found[0].User, nil
}

// MaxPreferences limits the size of a user's preferences, in bytes of JSON. They are an object in which programs with a
// user interface keep their settings; the store itself does not read it.
const MaxPreferences = 64 << 10

// Preferences returns the user's preferences: an empty map for none. Numbers are float64 where that loses nothing, else
// json.Number. A view limited to projects may not call it.
func (s *Store) Preferences(ctx context.Context) (map[string]any, error) {
	if err := s.checkAccount("Preferences"); err != nil {
		return nil, err
	}
	var found map[string]any
	err := s.read(ctx, func(tx db.Tx, sc scope) (err error) {
		found, err = preferences(tx, sc)
		return err
	})
	return found, err
}

// SetPreferences replaces the user's preferences and returns them; nil clears them. More than 64 KiB as JSON are
// ErrTooLarge. A view limited to projects may not call it.
func (s *Store) SetPreferences(ctx context.Context, all map[string]any) (map[string]any, error) {
	return s.changePreferences(ctx, "SetPreferences", all, func(_, given map[string]any) any { return given })
}

// UpdatePreferences applies a JSON merge patch (RFC 7396) to the user's preferences and returns the result: keys
// replace, null removes, objects merge. Concurrent patches all take effect. Otherwise it is like SetPreferences.
func (s *Store) UpdatePreferences(ctx context.Context, patch map[string]any) (map[string]any, error) {
	return s.changePreferences(ctx, "UpdatePreferences", patch,
		func(present, given map[string]any) any { return jsonobject.MergePatch(present, given) })
}

func (s *Store) changePreferences(ctx context.Context, what string, given map[string]any,
	change func(present, given map[string]any) any) (map[string]any, error) {
	if err := s.checkAccount(what); err != nil {
		return nil, err
	}
	if _, err := encodePreferences(given); err != nil {
		return nil, err
	}
	given, err := jsonobject.Canonical("preferences", given)
	if err != nil {
		return nil, err
	}
	var changed map[string]any
	err = s.write(ctx, func(tx db.Tx, sc scope) error {
		present, err := preferences(tx, sc)
		if err != nil {
			return err
		}
		changed, _ = change(present, given).(map[string]any)
		if changed == nil {
			changed = map[string]any{}
		}
		encoded, err := encodePreferences(changed)
		if err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO preference (user_id, value, updated_at) VALUES (?, ?, ?)
			ON CONFLICT (user_id) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at`, sc.user,
			string(encoded), s.now())
		return err
	})
	if err != nil {
		return nil, err
	}
	return changed, nil
}

// encodePreferences returns preferences as JSON, within their limit.
func encodePreferences(object map[string]any) ([]byte, error) {
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, invalid("preferences", "preferences is not JSON: %v", err)
	}
	if len(encoded) > MaxPreferences {
		return nil, newError(KindTooLarge, "preferences", "preferences is %d bytes as JSON; at most %d are allowed",
			len(encoded), MaxPreferences)
	}
	return encoded, nil
}

func preferences(tx db.Tx, sc scope) (map[string]any, error) {
	stored, err := db.Column[string](tx, `SELECT value FROM preference WHERE user_id = ?`, sc.user)
	if err != nil || len(stored) == 0 {
		return map[string]any{}, err
	}
	object, err := jsonobject.Decode([]byte(stored[0]))
	if err == nil && object == nil {
		err = errors.New("null where there is an object")
	}
	if err != nil {
		return nil, damaged(err, "a user's preferences cannot be read")
	}
	return object, nil
}
