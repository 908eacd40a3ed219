package souvenir

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Accounts manages users and their credentials: identities, invitations, sessions, MCP tokens, and the clients, grants,
// codes and keys of OAuth. Get it with [Store.Accounts].
//
// On the Store that [Open] returned it manages all accounts. On a view it is limited to the account of the view's user:
// their password, identities, sessions, tokens, clients and grants, and the invitations to projects that they received.
// Other methods return ErrForbidden there: those that manage users and invitations to accounts, that check credentials,
// sign a user in or look up any client, and those by which clients register and get tokens. On a view limited to
// projects, all but Me do.
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

const maxIdentities = 32

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
		linked, err = s.linkIdentity(tx, u, n)
		return err
	})
	return linked, err
}

func (s *Store) linkIdentity(tx db.Tx, u storedUser, n NewIdentity) (Identity, error) {
	if _, err := tx.Exec(`INSERT INTO external_identity (issuer, subject, user_id, email, created_at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (issuer, subject) DO UPDATE SET email = excluded.email
		WHERE external_identity.user_id = excluded.user_id`, n.Issuer, n.Subject, u.row, n.Email, s.now()); err != nil {
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
	if err := valid.Line("issuer", issuer, valid.MaxIssuer); err != nil {
		return err
	}
	return orNil(valid.Line("subject", subject, valid.MaxSubject))
}

// identities reads the identities of a user (a row), the oldest first.
func identities(tx db.Tx, user int64) ([]Identity, error) {
	all := []Identity{}
	err := tx.Each(func(row db.Rows) error {
		var i Identity
		var created int64
		err := row.Scan(&i.Issuer, &i.Subject, &i.Email, &created)
		i.CreatedAt = kernel.ToTime(created)
		all = append(all, i)
		return err
	}, `SELECT issuer, subject, email, created_at FROM external_identity WHERE user_id = ? `+
		`ORDER BY created_at, issuer, subject`, user)
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
	return s.write(ctx, func(tx db.Tx, v viewer) error {
		u, err := s.account(tx, v, i.User)
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
// is not linked, ErrUnauthenticated that the user is disabled.
func (h *Accounts) UserByIdentity(ctx context.Context, issuer, subject string) (User, error) {
	s, err := h.operator("UserByIdentity")
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
		return User{}, newError(KindNotFound, "subject", "subject %s of the issuer %s is not linked to a user", show(subject),
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
	err := s.read(ctx, func(tx db.Tx, v viewer) (err error) {
		found, err = preferences(tx, v)
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
	err = s.write(ctx, func(tx db.Tx, v viewer) error {
		present, err := preferences(tx, v)
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
			ON CONFLICT (user_id) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at`, v.User,
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

func preferences(tx db.Tx, v viewer) (map[string]any, error) {
	stored, err := db.Column[string](tx, `SELECT value FROM preference WHERE user_id = ?`, v.User)
	if err != nil || len(stored) == 0 {
		return map[string]any{}, err
	}
	object, err := jsonobject.Decode([]byte(stored[0]))
	if err == nil && object == nil {
		err = errors.New("null instead of an object")
	}
	if err != nil {
		return nil, damaged(err, "a user's preferences cannot be read")
	}
	return object, nil
}

// Credentials have parents: a credential made through a token, an application or a browser's session ends with it.
//
//   - A token made through a token (parent_id) has at most its parent's scopes, projects and lifetime, and inherits
//     its grant and its session. Deleting a token ends all its descendants in the same transaction.
//   - A token made by an application ends with the grant, which each check looks at.
//   - A token made, or an application allowed, in a session ends when the user ends that session from elsewhere: that
//     means that the wrong person used it. Signing out and expiry leave it alone, unless the token was made to end
//     with them (with_session), which each check looks at.
//   - A client that a token or an application made is deactivated when that ends.

// parents are the stored parents of a new token.
type parents struct {
	token, grant     any // rows; nil: none
	session, browser string
	withSession      bool
}

// limits are the limits of a new token.
type limits struct {
	what     string // the parent, for errors
	carries  func(Scope) bool
	projects []string  // nil: all
	expires  time.Time // zero: never
}

// inherit finds the parents of a new token, limits it to them, and fills in the fields left empty.
func (t *Token) inherit(tx db.Tx, u storedUser, n *NewToken, now int64) (parents, error) {
	var p parents
	if n.TokenID != "" {
		parent, err := liveToken(tx, u, n.TokenID, now)
		if err != nil {
			return p, err
		}
		p.token, t.TokenID, t.TokenName = parent.row, parent.ID, parent.Name
		n.GrantID, n.WithSession = parent.GrantID, parent.WithSession
		p.session, p.browser, p.withSession = parent.SessionID, parent.Browser, parent.WithSession
		bounds := limits{"token " + show(parent.Name), Principal{User: u.User, Scopes: parent.Scopes}.Allows, parent.Projects,
			parent.ExpiresAt}
		if err := n.within(bounds); err != nil {
			return p, err
		}
	} else if n.SessionID != "" {
		found, err := loadSessions(tx, `e.uid = ? AND e.user_id = ? AND e.expires_at > ?`, n.SessionID, u.row, now)
		if err != nil {
			return p, err
		}
		if len(found) == 0 {
			return p, newError(KindNotFound, "session_id", "session_id %s is not a session of this user, or has ended",
				show(n.SessionID))
		}
		p.session, p.browser, p.withSession = n.SessionID, found[0].UserAgent, n.WithSession
	}
	t.SessionID, t.Browser, t.WithSession = p.session, p.browser, p.withSession
	if n.GrantID != "" {
		grant, err := liveGrant(tx, u, n.GrantID)
		if err != nil {
			return p, err
		}
		p.grant, t.GrantID, t.ClientName = grant.row, grant.ID, grant.ClientName
		if err := n.within(limits{"application " + show(grant.ClientName), grant.carries, grant.Projects,
			time.Time{}}); err != nil {
			return p, err
		}
	}
	if n.Scopes == nil {
		n.Scopes = DefaultScopes()
	}
	return p, nil
}

// liveToken finds a valid token of a user.
func liveToken(tx db.Tx, u storedUser, id string, now int64) (storedToken, error) {
	found, err := loadTokens(tx, now, `t.uid = ? AND t.user_id = ?`, id, u.row)
	if err == nil && (len(found) == 0 || found[0].wasRevoked || found[0].expired) {
		err = newError(KindNotFound, "token_id", "token_id %s is not a token of this user, or has ended", show(id))
	}
	if err != nil {
		return storedToken{}, err
	}
	return found[0], nil
}

// liveGrant finds a valid OAuth grant of a user.
func liveGrant(tx db.Tx, u storedUser, id string) (storedGrant, error) {
	found, err := loadGrants(tx, `g.uid = ? AND g.user_id = ? AND g.revoked_at IS NULL AND c.disabled_at IS NULL`, id,
		u.row)
	if err == nil && len(found) == 0 {
		err = newError(KindNotFound, "grant_id", "grant_id %s is not an OAuth grant of this user, or has ended", show(id))
	}
	if err != nil {
		return storedGrant{}, err
	}
	return found[0], nil
}

// within refuses a new token that exceeds a limit, and fills in the limit for fields left empty.
func (n *NewToken) within(l limits) error {
	if n.Scopes == nil {
		n.Scopes = slices.DeleteFunc(DefaultScopes(), func(s Scope) bool { return !l.carries(s) })
	}
	if i := slices.IndexFunc(n.Scopes, func(s Scope) bool { return !l.carries(s) }); i >= 0 {
		return newError(KindForbidden, "scopes",
			"scopes has %s, which %s does not carry; a token created with it cannot have more", show(string(n.Scopes[i])),
			l.what)
	}
	if len(n.Scopes) == 0 {
		return newError(KindForbidden, "scopes", "scopes is left out, and %s carries none of %s; name some that it does",
			l.what, oneOf(DefaultScopes()))
	}
	if n.ExpiresAt.IsZero() {
		n.ExpiresAt = l.expires
	}
	if !l.expires.IsZero() && n.ExpiresAt.After(l.expires) {
		return newError(KindForbidden, "expires_at",
			"expires_at is %s, but %s expires at %s; a token created with it cannot outlive it",
			n.ExpiresAt.Format(time.RFC3339), l.what, l.expires.Format(time.RFC3339))
	}
	if l.projects == nil {
		return nil
	}
	if n.Projects == nil {
		n.Projects = l.projects
	}
	if i := slices.IndexFunc(n.Projects, func(ref string) bool { return !slices.Contains(l.projects, ref) }); i >= 0 {
		return newError(KindForbidden, "projects", "projects has %s, which %s does not reach; name some of %s",
			show(n.Projects[i]), l.what, oneOf(l.projects))
	}
	return nil
}

// endDescendants ends all tokens made through a token (a row), directly or indirectly.
func endDescendants(tx db.Tx, token, now int64) error {
	_, err := tx.Exec(`WITH RECURSIVE made (id) AS (
			SELECT id FROM token WHERE parent_id = ?1 UNION SELECT t.id FROM token t JOIN made ON t.parent_id = made.id)
		UPDATE token SET revoked_at = ?2 WHERE id IN (SELECT id FROM made) AND revoked_at IS NULL`, token, now)
	if err != nil {
		return err
	}
	return endMadeClients(tx, now)
}

// endMadeIn ends what was made in the sessions e for which a condition holds: tokens, with all their descendants, and
// grants of applications.
func endMadeIn(tx db.Tx, now int64, condition string, args ...any) error {
	sessions, err := db.Column[string](tx, `SELECT e.uid FROM session e WHERE `+condition, args...)
	if err != nil {
		return err
	}
	for _, id := range sessions {
		for _, statement := range []string{
			`UPDATE token SET revoked_at = ? WHERE session = ? AND session <> '' AND revoked_at IS NULL`,
			`UPDATE oauth_grant SET revoked_at = ? WHERE session = ? AND session <> '' AND revoked_at IS NULL`,
		} {
			if _, err := tx.Exec(statement, now, id); err != nil {
				return err
			}
		}
	}
	return endMadeClients(tx, now)
}

// endMadeClients deactivates the clients whose parent has ended.
func endMadeClients(tx db.Tx, now int64) error {
	_, err := tx.Exec(`UPDATE oauth_client SET disabled_at = ?1, updated_at = ?1 WHERE maker <> '' AND disabled_at IS NULL
		AND NOT EXISTS (SELECT 1 `+fromToken+` WHERE oauth_client.maker = 'token ' || t.uid AND NOT `+tokenEnded+
		` AND coalesce(t.expires_at > ?1, true))
		AND NOT EXISTS (SELECT 1 FROM oauth_grant g JOIN oauth_client c ON c.id = g.client_id
			WHERE oauth_client.maker = 'grant ' || g.uid AND g.revoked_at IS NULL AND c.disabled_at IS NULL)`, now)
	return err
}

// emptyUser deletes what remains of a user (?1) besides memories and projects. The row itself stays: views remember it,
// and files are deleted after it.
var emptyUser = []string{
	`DELETE FROM trash WHERE kind = 'file' AND 'trash/' || id IN (SELECT uid FROM file WHERE owner_id = ?1 ` +
		`AND state = 'trashed')`,
	`UPDATE file SET state = 'leaving', memory_id = NULL, project_id = NULL WHERE owner_id = ?1`,
	`DELETE FROM project_member WHERE user_id = ?1`,
	`DELETE FROM project_invitation WHERE sender_id = ?1`,
	`UPDATE project_invitation SET recipient_id = NULL WHERE recipient_id = ?1`,
	`DELETE FROM declined_invitation WHERE ?1 IN (user_id, sender_id)`,
	`DELETE FROM blocked_sender WHERE ?1 IN (user_id, sender_id)`,
	`DELETE FROM external_identity WHERE user_id = ?1`,
	`DELETE FROM preference WHERE user_id = ?1`,
	`DELETE FROM session WHERE user_id = ?1`,
	`DELETE FROM activity WHERE user_uid = (SELECT uid FROM users WHERE id = ?1)`,
	`DELETE FROM invitation WHERE created_by = ?1 AND used_at IS NULL`,
	`DELETE FROM token WHERE user_id = ?1`,
	`DELETE FROM oauth_grant WHERE user_id = ?1`,
	`DELETE FROM oauth_client WHERE owner_id = ?1`,
	`UPDATE users SET name = NULL, name_key = NULL, email = NULL, role = 'user', password = NULL WHERE id = ?1`,
}

// UserNameKey returns the form in which equal user names compare equal: without regard to case, width, spaces, the
// encoding of a character, and invisible characters (Unicode's NFKC_Casefold). Count sign-in attempts for a name under
// this key, whether or not such a user exists: otherwise the counts reveal which names exist.
func UserNameKey(name string) string { return foldname.Key(name) }
