package souvenir

import (
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Credentials have parents: what is made through a token, an application or a browser's session ends with it.
//
//   - A token made through a token (parent_id) has no more scopes, projects and time than that, and inherits its grant and its session.
//     Deleting a token ends all that descends from it in the same transaction.
//   - A token made by an application ends with the grant, which each check looks at.
//   - A token made, or an application allowed, in a session ends when somebody ends that session from elsewhere: whoever does so
//     means that the wrong person sat there. Signing out and expiry leave it alone, unless the token was made to end with them
//     (with_session), which each check looks at.
//   - A client that a token or an application made is deactivated when that ends.

// parents are what a new token is made through, as it is stored.
type parents struct {
	token, grant     any // rows; nil: none
	session, browser string
	withSession      bool
}

// limits are what a new token may not exceed.
type limits struct {
	what     string // the parent, for errors
	carries  func(Scope) bool
	projects []string  // nil: all
	expires  time.Time // zero: never
}

// inherit finds what a new token is made through, limits it to that, and fills in what was left open.
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
		bounds := limits{"token " + show(parent.Name), Principal{User: u.User, Scopes: parent.Scopes}.Allows, parent.Projects, parent.ExpiresAt}
		if err := n.within(bounds); err != nil {
			return p, err
		}
	} else if n.SessionID != "" {
		found, err := loadSessions(tx, `e.uid = ? AND e.user_id = ? AND e.expires_at > ?`, n.SessionID, u.row, now)
		if err != nil {
			return p, err
		}
		if len(found) == 0 {
			return p, newError(KindNotFound, "session_id", "session_id %s is no session of this user, or has ended", show(n.SessionID))
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
		if err := n.within(limits{"application " + show(grant.ClientName), grant.carries, grant.Projects, time.Time{}}); err != nil {
			return p, err
		}
	}
	if n.Scopes == nil {
		n.Scopes = DefaultScopes()
	}
	return p, nil
}

// liveToken finds a token of a user that is in force.
func liveToken(tx db.Tx, u storedUser, id string, now int64) (storedToken, error) {
	found, err := loadTokens(tx, now, `t.uid = ? AND t.user_id = ?`, id, u.row)
	if err == nil && (len(found) == 0 || found[0].wasRevoked || found[0].expired) {
		err = newError(KindNotFound, "token_id", "token_id %s is no token of this user, or has ended", show(id))
	}
	if err != nil {
		return storedToken{}, err
	}
	return found[0], nil
}

// liveGrant finds an OAuth grant of a user that is in force.
func liveGrant(tx db.Tx, u storedUser, id string) (storedGrant, error) {
	found, err := loadGrants(tx, `g.uid = ? AND g.user_id = ? AND g.revoked_at IS NULL AND c.disabled_at IS NULL`, id, u.row)
	if err == nil && len(found) == 0 {
		err = newError(KindNotFound, "grant_id", "grant_id %s is no OAuth grant of this user, or has ended", show(id))
	}
	if err != nil {
		return storedGrant{}, err
	}
	return found[0], nil
}

// within refuses a new token that exceeds a limit, and takes the limit's for what was left open.
func (n *NewToken) within(l limits) error {
	if n.Scopes == nil {
		n.Scopes = slices.DeleteFunc(DefaultScopes(), func(s Scope) bool { return !l.carries(s) })
	}
	if i := slices.IndexFunc(n.Scopes, func(s Scope) bool { return !l.carries(s) }); i >= 0 {
		return newError(KindForbidden, "scopes", "scopes has %s, which %s does not carry; a token made through it has no more than that", show(string(n.Scopes[i])), l.what)
	}
	if len(n.Scopes) == 0 {
		return newError(KindForbidden, "scopes", "scopes is left out, and %s carries none of %s; name some that it does", l.what, oneOf(DefaultScopes()))
	}
	if n.ExpiresAt.IsZero() {
		n.ExpiresAt = l.expires
	}
	if !l.expires.IsZero() && n.ExpiresAt.After(l.expires) {
		return newError(KindForbidden, "expires_at", "expires_at is %s, but %s expires at %s; a token made through it does not outlive it",
			n.ExpiresAt.Format(time.RFC3339), l.what, l.expires.Format(time.RFC3339))
	}
	if l.projects == nil {
		return nil
	}
	if n.Projects == nil {
		n.Projects = l.projects
	}
	if i := slices.IndexFunc(n.Projects, func(ref string) bool { return !slices.Contains(l.projects, ref) }); i >= 0 {
		return newError(KindForbidden, "projects", "projects has %s, which %s does not reach; name some of %s", show(n.Projects[i]), l.what, oneOf(l.projects))
	}
	return nil
}

// endDescendants ends all tokens that were made through one (a row), and through these.
func endDescendants(tx db.Tx, token, now int64) error {
	_, err := tx.Exec(`WITH RECURSIVE made (id) AS (
			SELECT id FROM token WHERE parent_id = ?1 UNION SELECT t.id FROM token t JOIN made ON t.parent_id = made.id)
		UPDATE token SET revoked_at = ?2 WHERE id IN (SELECT id FROM made) AND revoked_at IS NULL`, token, now)
	if err != nil {
		return err
	}
	return endMadeClients(tx, now)
}

// endMadeIn ends what was made in the sessions of a user for which a condition on e holds: tokens, with all that descends from them, and
// applications.
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

// endMadeClients deactivates the clients whose maker has ended.
func endMadeClients(tx db.Tx, now int64) error {
	_, err := tx.Exec(`UPDATE oauth_client SET disabled_at = ?1, updated_at = ?1 WHERE maker <> '' AND disabled_at IS NULL
		AND NOT EXISTS (SELECT 1 `+fromToken+` WHERE oauth_client.maker = 'token ' || t.uid AND NOT `+tokenEnded+` AND coalesce(t.expires_at > ?1, true))
		AND NOT EXISTS (SELECT 1 FROM oauth_grant g JOIN oauth_client c ON c.id = g.client_id
			WHERE oauth_client.maker = 'grant ' || g.uid AND g.revoked_at IS NULL AND c.disabled_at IS NULL)`, now)
	return err
}
