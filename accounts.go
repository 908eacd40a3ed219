package souvenir

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/trash"
)

// Accounts manages users and their credentials: identities, invitations, sign-ins, MCP tokens, and the clients, grants,
// codes and keys of OAuth. Get it with [Store.Accounts].
//
// On the Store that [Open] returned it manages all accounts. On a view it is limited to the account of the view's user:
// their password, identities, sign-ins, tokens, clients and grants, and the invitations to projects that they received.
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

// AccessKind is a kind of access on behalf of a user.
type AccessKind string

// The values of [AccessKind].
const (
	AccessSignIns AccessKind = "sessions" // browsers where the user is signed in
	AccessGrants  AccessKind = "grants"   // applications that the user authorized through OAuth, with codes and tokens
	AccessTokens  AccessKind = "tokens"   // MCP tokens
)

// AccessKinds returns all kinds.
func AccessKinds() []AccessKind { return []AccessKind{AccessSignIns, AccessGrants, AccessTokens} }

// EndAccess ends kinds of access (at least one) on behalf of the user at once, except the sign-in with an id, such as
// the caller's own (empty: none stays). Applications that the user authorizes again, and new tokens, work. A view that
// is limited to projects may not call it.
func (h *Accounts) EndAccess(ctx context.Context, except string, kinds []AccessKind) error {
	s, err := h.own("EndAccess")
	if err != nil {
		return err
	}
	if len(kinds) == 0 {
		return invalid("kinds", "kinds is empty; give some of %s", oneOf(AccessKinds()))
	}
	if err := checkKinds("kinds", kinds); err != nil {
		return err
	}
	return s.write(ctx, func(tx db.Tx, v viewer) error {
		return s.endKinds(tx, v.User, except, kinds)
	})
}

func checkKinds(argument string, kinds []AccessKind) error {
	for _, kind := range kinds {
		if !slices.Contains(AccessKinds(), kind) {
			return invalid(argument, "%s has %s; allowed are %s", argument, show(string(kind)), oneOf(AccessKinds()))
		}
	}
	return nil
}

// endKinds ends kinds of access of a user (a row), except the sign-in with an id.
func (s *Store) endKinds(tx db.Tx, user int64, except string, kinds []AccessKind) error {
	for _, kind := range kinds {
		var err error
		switch kind {
		case AccessSignIns:
			err = endSignIns(tx, user, except)
		case AccessGrants:
			err = endGrants(tx, user, s.now())
		case AccessTokens:
			err = endTokens(tx, user, s.now())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// endGrants ends a user's OAuth grants.
func endGrants(tx db.Tx, user, now int64) error {
	if _, err := tx.Exec(`UPDATE oauth_grant SET revoked_at = ? WHERE user_id = ? AND revoked_at IS NULL`, now,
		user); err != nil {
		return err
	}
	return endMadeClients(tx, now)
}

// endTokens ends a user's MCP tokens.
func endTokens(tx db.Tx, user, now int64) error {
	if _, err := tx.Exec(`UPDATE token SET revoked_at = ? WHERE user_id = ? AND revoked_at IS NULL`, now,
		user); err != nil {
		return err
	}
	return endMadeClients(tx, now)
}

// Credentials have parents: a credential made through a token, an application or a browser sign-in ends with it.
//
//   - A token made through a token (parent_id) has at most its parent's scopes, projects and lifetime, and inherits
//     its grant and its sign-in. Deleting a token ends all its descendants in the same transaction.
//   - A token made by an application ends with the grant, which each check looks at.
//   - A token made, or an application allowed, in a sign-in ends when the user ends that from elsewhere: that
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
		n.GrantID, n.WithSignIn = parent.GrantID, parent.WithSignIn
		p.session, p.browser, p.withSession = parent.SignInID, parent.Browser, parent.WithSignIn
		bounds := limits{"token " + show(parent.Name), Principal{User: u.User, Scopes: parent.Scopes}.Allows, parent.Projects,
			parent.ExpiresAt}
		if err := n.within(bounds); err != nil {
			return p, err
		}
	} else if n.SignInID != "" {
		found, err := loadSignIns(tx, `e.uid = ? AND e.user_id = ? AND e.expires_at > ?`, n.SignInID, u.row, now)
		if err != nil {
			return p, err
		}
		if len(found) == 0 {
			return p, newError(KindNotFound, "session_id", "session_id %s is not a session of this user, or has ended",
				show(n.SignInID))
		}
		p.session, p.browser, p.withSession = n.SignInID, found[0].UserAgent, n.WithSignIn
	}
	t.SignInID, t.Browser, t.WithSignIn = p.session, p.browser, p.withSession
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

// endMadeIn ends what was made in the sign-ins e for which a condition holds: tokens, with all their descendants, and
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

// DeleteUser deletes a user's account with its sign-ins, tokens, OAuth grants and clients, preferences and memberships.
// Deleting the last enabled admin is ErrConflict. The id stays known to the store: an account added with it later, or a
// view made with it, starts empty. Memories are deleted in batches of a thousand, so that other writers get their turn;
// after an error the user may be disabled and some memories gone, and a second call deletes the rest.
func (h *Accounts) DeleteUser(ctx context.Context, idOrName string, options *DeleteOptions) error {
	o := options.orDefault()
	s, err := h.operator("DeleteUser")
	if err != nil {
		return err
	}
	ctx = db.Freeing(ctx)
	u, err := h.GetUser(ctx, idOrName)
	if err != nil {
		return err
	}
	if err := s.activity.Flush(ctx); err != nil { // otherwise it would be written after the rest is deleted
		return wrap(err)
	}
	id := u.ID // the name may belong to another user by the time the last memories are deleted
	return trash.InPortions(func(p trash.Portion) (done bool, err error) {
		err = s.write(ctx, func(tx db.Tx, _ viewer) (err error) {
			done, err = s.deleteUser(tx, id, o, p)
			return err
		})
		return done, err
	})
}

// deleteUser deletes one portion, and reports whether that was all.
func (s *Store) deleteUser(tx db.Tx, id string, o DeleteOptions, p trash.Portion) (done bool, err error) {
	u, err := findUser(tx, id)
	if err != nil {
		return false, err
	}
	if !o.WithMemories {
		if err := checkOwnsNothing(tx, u); err != nil {
			return false, err
		}
	}
	if u.Name != "" { // a user without an account disappears once disabled, so that comes last
		if err := disable(tx, u.row, true, s.now()); err != nil {
			return false, err
		}
		if err := checkAdminLeft(tx, u); err != nil {
			return false, err
		}
	}
	t := s.newTrasher(tx, viewer{User: u.row}, p)
	t.Forever = true
	if done, err = t.EraseTrashOf(u.row, p); err != nil || !done {
		return false, err
	}
	done, err = t.Memories(0, `(p.collection_id IN (SELECT id FROM collection `+
		`WHERE owner_id = ?1) OR p.project_id IN (SELECT id FROM project WHERE owner_id = ?1))`, u.row)
	if err != nil || !done {
		return false, err
	}
	if _, err := tx.Exec(`DELETE FROM collection WHERE owner_id = ?`, u.row); err != nil {
		return false, err
	}
	projects, err := db.Column[string](tx, `SELECT uid FROM project WHERE owner_id = ?`, u.row)
	if err != nil {
		return false, err
	}
	for _, id := range projects {
		whole := DeleteOptions{WithMemories: true, ForGood: true}
		if done, err = s.deleteProject(tx, viewer{User: u.row}, ProjectRef{ID: id}, whole, p); err != nil || !done {
			return false, err
		}
	}
	for _, statement := range emptyUser {
		if _, err := tx.Exec(statement, u.row); err != nil {
			return false, err
		}
	}
	// A call that started as this user and finishes later must not leave a valid token behind.
	return true, disable(tx, u.row, true, s.now())
}

// checkOwnsNothing refuses a user who owns anything that others may use. Empty collections do not count.
func checkOwnsNothing(tx db.Tx, u storedUser) error {
	var memories, projects, files int64
	err := tx.QueryRow(`SELECT
		(SELECT coalesce(sum(p.memories), 0) FROM partition p JOIN collection c ON c.id = p.collection_id
		WHERE c.owner_id = ?1),
		(SELECT count(*) FROM project WHERE owner_id = ?1), (SELECT count(*) FROM file WHERE owner_id = ?1
		AND state = 'stored')`, u.row).
		Scan(&memories, &projects, &files)
	if err == nil && memories+projects+files > 0 {
		return newError(KindConflict, "user",
			"user %s has %d memories, %d projects and %d files; delete them first, or delete the user together with all of "+
				"that, and with what others have stored in these projects",
			show(cmp.Or(u.Name, u.ID)), memories, projects, files)
	}
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
