package souvenir

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/auth/secretvalue"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/records/audit"
	"github.com/souvenir-ai/souvenir/internal/redact"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Token is an MCP token as its user sees it: everything except the token value.
type Token struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Prefix     string    `json:"prefix"` // the first 8 characters of the token, to tell it from others
	Scopes     []Scope   `json:"scopes"`
	Projects   []string  `json:"projects"` // as in Access.Projects; nil: all
	CreatedAt  time.Time `json:"created_at"`
	LastUsedAt time.Time `json:"last_used_at"` // to the minute; zero: never, null in JSON
	ExpiresAt  time.Time `json:"expires_at"`   // zero: never, null in JSON
	PausedAt   time.Time `json:"paused_at,omitzero"`

	// GrantID is the OAuth grant that the token ends with, because an application made it, and ClientName the
	// application's name. Both are empty for a token that ends with no grant.
	GrantID    string `json:"grant_id,omitempty"`
	ClientName string `json:"client_name,omitempty"`

	// TokenID is the token that made this one and that it ends with, and TokenName its name. Both are empty for a token
	// that no other token made.
	TokenID   string `json:"token_id,omitempty"`
	TokenName string `json:"token_name,omitempty"`

	// SignInID is the sign-in in which it was made, and Browser that sign-in's User-Agent, even after the sign-in has
	// ended. Both are empty for a token that was not made in a sign-in. Ending the sign-in from elsewhere ends the token.
	// WithSignIn means that signing out, and expiry of the sign-in, end it, too.
	SignInID   string `json:"session_id,omitempty"`
	Browser    string `json:"browser,omitempty"`
	WithSignIn bool   `json:"with_session,omitempty"`
}

// MarshalJSON writes zero times as null.
func (t Token) MarshalJSON() ([]byte, error) { return json.Marshal(t.json()) }

// MarshalJSON writes the token's fields and its value.
func (t AddedToken) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		tokenJSON
		Value string `json:"token"`
	}{t.Token.json(), t.Value})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *AddedToken) UnmarshalJSON(encoded []byte) error {
	var value struct {
		Value string `json:"token"`
	}
	err := cmp.Or(json.Unmarshal(encoded, &t.Token), json.Unmarshal(encoded, &value))
	t.Value = value.Value
	return err
}

// tokenFields has the fields of a Token without its methods.
type tokenFields Token

// tokenJSON is a Token with zero times as null.
type tokenJSON struct {
	tokenFields
	LastUsedAt any `json:"last_used_at"`
	ExpiresAt  any `json:"expires_at"`
}

func (t Token) json() tokenJSON {
	return tokenJSON{tokenFields(t), db.OrNull(t.LastUsedAt), db.OrNull(t.ExpiresAt)}
}

// NewToken describes an MCP token to add.
type NewToken struct {
	Name string // 1 to 128 characters, for display; need not be unique
	// id or name of the token's user; empty: the view's user. Only the operator's store may name another
	User     string
	Scopes   []Scope  // nil: the DefaultScopes that its parent carries. Only an admin's token may carry ScopeAdmin
	Projects []string // limits the token to these projects, named as in Access.Projects; nil: no limit. At most 100

	// ExpiresAt or ExpiresIn sets when the token expires; both zero means never.
	ExpiresAt time.Time
	ExpiresIn time.Duration

	// The parents of the token, which it ends with: a caller that lets a credential make tokens sets TokenID, GrantID and
	// SignInID from its [Principal]. The token gets at most its parent's scopes and projects and does not outlive it;
	// Scopes, Projects and ExpiresAt default to the parent's. A parent only restricts the token, so any view may set one.
	// Empty: none. TokenID is a token of the same user; the new token inherits its grant and sign-in, regardless of the
	// values here.
	TokenID  string
	GrantID  string // an OAuth grant of the same user
	SignInID string // a sign-in of the same user; ignored with a TokenID

	// WithSignIn ends the token when the sign-in ends in any way. Without it, signing out and expiry of the sign-in leave
	// the token alone, and only ending the sign-in from elsewhere ends it.
	WithSignIn bool
}

// AddedToken is a new token with its value, which is never shown again.
type AddedToken struct {
	Token
	Value string `json:"token"` // mcp_ and 43 letters and digits
}

// Format prints the token without its value.
func (t AddedToken) Format(f fmt.State, _ rune) { redact.Format(f, t, "Value") }

const (
	tokenStart     = "mcp_"
	maxTokens      = 1000
	keepDeadTokens = 30 * 24 * time.Hour
)

// AddToken adds an MCP token: a credential for programs that act for the user. Only the answer contains its value; the
// store keeps a hash. At most 1,000 tokens of a user may be valid at once. A parent that is not the user's, or has
// ended, is ErrNotFound; a token that exceeds its parent is ErrForbidden. A view that is limited to projects may not
// add tokens.
//
// The view does not know which credential its caller used: code that lets one credential make another must name it as
// the parent.
func (h *Accounts) AddToken(ctx context.Context, n NewToken) (_ AddedToken, err error) {
	defer setGoNames[NewToken](&err)
	s, err := h.own(ctx, "AddToken")
	if err != nil {
		return AddedToken{}, err
	}
	if err := valid.Name("name", n.Name); err != nil {
		return AddedToken{}, err
	}
	scopes, err := checkScopes("scopes", n.Scopes)
	if err != nil {
		return AddedToken{}, err
	}
	if n.Scopes != nil && len(scopes) == 0 {
		return AddedToken{}, invalid("scopes", "{} is empty; give some of %s, or omit it for %s", oneOf(Scopes()),
			joinScopes(DefaultScopes()))
	}
	if n.Scopes != nil { // else they depend on the parent
		n.Scopes = scopes
	}
	if err := naming.CheckLimit("projects", "token", n.Projects); err != nil {
		return AddedToken{}, err
	}
	if n.ExpiresAt, err = valid.Expiry(n.ExpiresAt, n.ExpiresIn, kernel.ToTime(s.now())); err != nil {
		return AddedToken{}, err
	}
	value := secretvalue.WithStart(tokenStart)
	var added AddedToken
	err = s.write(ctx, func(tx db.Tx, v viewer) error {
		u, err := s.account(tx, v, n.User)
		if err != nil {
			return err
		}
		token, err := s.addToken(tx, u, n, value)
		added = AddedToken{token, value}
		return s.note(ctx, tx, err, event{"token.add", "token", token.ID, token.details(u.ID)})
	})
	if err != nil {
		return AddedToken{}, err
	}
	return added, nil
}

func (s *Store) addToken(tx db.Tx, u storedUser, n NewToken, value string) (Token, error) {
	now := s.now()
	if u.Disabled {
		return Token{}, newError(KindForbidden, "user", "{} %s is disabled and gets no tokens", show(u.ID))
	}
	if slices.Contains(n.Scopes, ScopeAdmin) && u.Role != RoleAdmin {
		return Token{}, newError(KindForbidden, "scopes", "{} has %s, which is only for tokens of admins",
			show(string(ScopeAdmin)))
	}
	live, err := db.Column[int](tx, `SELECT count(*) `+fromToken+` WHERE t.user_id = ? AND NOT `+tokenEnded+
		` AND coalesce(t.expires_at, ?) >= ?`, u.row, now+1, now+1)
	if err != nil {
		return Token{}, err
	}
	if live[0] >= maxTokens {
		return Token{}, newError(KindTooLarge, "", "this user has %d tokens, the maximum is %d; revoke some",
			live[0], maxTokens)
	}
	added := Token{ID: s.newID(), Name: n.Name, Prefix: value[:8], CreatedAt: kernel.ToTime(now)}
	if n.Projects, err = naming.Canonical(tx, viewer{User: u.row}, "projects", n.Projects); err != nil {
		return Token{}, err
	}
	token, grant, err := added.inherit(tx, u, &n, now)
	if err != nil {
		return Token{}, err
	}
	added.Scopes, added.Projects, added.ExpiresAt = n.Scopes, n.Projects, n.ExpiresAt
	scopes, wrong := db.ListOrNull(added.Scopes)
	projects, err := db.ListOrNull(added.Projects)
	if err := cmp.Or(wrong, err); err != nil {
		return Token{}, err
	}
	_, err = tx.Exec(`INSERT INTO token (uid, user_id, grant_id, parent_id, session, browser, with_session, name, hash,
		prefix, scopes, projects, created_at, expires_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		added.ID, u.row, grant, token, added.SignInID, added.Browser, added.WithSignIn, added.Name,
		secretvalue.Hash(value), added.Prefix, scopes, projects, now, kernel.MicrosOf(n.ExpiresAt))
	return added, err
}

// storedToken is a token with the fields that stay inside the store.
type storedToken struct {
	Token
	row, user                   int64
	used                        *int64
	expired, wasRevoked, paused bool // paused: it, or the grant through which it was made
}

// fromToken joins a token t with its parents, if any: the grant g with its client c, the token p that made it and the
// session e. tokenEnded is the condition for a token that was ended, alone or with these. loadTokens handles sign-ins
// that have expired but still have a row.
const (
	fromToken = `FROM token t LEFT JOIN oauth_grant g ON g.id = t.grant_id LEFT JOIN oauth_client c ON c.id = g.client_id
		LEFT JOIN token p ON p.id = t.parent_id LEFT JOIN session e ON e.uid = t.session`
	tokenEnded = `(t.revoked_at IS NOT NULL OR g.revoked_at IS NOT NULL OR c.disabled_at IS NOT NULL OR p.revoked_at IS ` +
		`NOT NULL OR t.with_session = 1 AND e.id IS NULL)`
)

// loadTokens reads the tokens t for which a condition holds, in their state at a time.
func loadTokens(tx db.Tx, now int64, condition string, args ...any) ([]storedToken, error) {
	var found []storedToken
	err := tx.Each(func(row db.Rows) error {
		var t storedToken
		var scopes string
		var projects *string
		var signInEnds time.Time
		if err := row.Scan(&t.row, &t.user, &t.ID, &t.Name, &t.Prefix, &scopes, &projects, kernel.TimeInto(&t.CreatedAt),
			&t.used, kernel.TimeInto(&t.ExpiresAt), &t.wasRevoked, &t.GrantID, &t.ClientName, &t.TokenID, &t.TokenName,
			&t.SignInID, &t.Browser, &t.WithSignIn, kernel.TimeInto(&signInEnds), kernel.TimeInto(&t.PausedAt),
			&t.paused); err != nil {
			return err
		}
		ended := func(at time.Time) bool { return !at.IsZero() && at.UnixMicro() <= now }
		t.LastUsedAt, t.paused = kernel.TimeOf(t.used), t.paused || !t.PausedAt.IsZero()
		t.expired = ended(t.ExpiresAt) || t.WithSignIn && ended(signInEnds)
		if err := json.Unmarshal([]byte(scopes), &t.Scopes); err != nil {
			return damaged(err, "the scopes of token %s cannot be read", t.ID)
		}
		if err := db.ReadList(projects, &t.Projects); err != nil {
			return damaged(err, "the projects of token %s cannot be read", t.ID)
		}
		found = append(found, t)
		return nil
	}, `SELECT t.id, t.user_id, t.uid, t.name, t.prefix, t.scopes, t.projects, t.created_at, t.last_used_at, `+
		`t.expires_at, `+tokenEnded+`,
			coalesce(g.uid, ''), coalesce(c.name, ''), coalesce(p.uid, ''), coalesce(p.name, ''), t.session, t.browser,
			t.with_session, e.expires_at, t.paused_at, g.paused_at IS NOT NULL `+fromToken+` WHERE `+condition, args...)
	return found, err
}

// Tokens returns the user's tokens, the newest first, including expired ones, but not tokens that were revoked or have
// ended with their grant. A view that is limited to projects may not call it.
func (h *Accounts) Tokens(ctx context.Context) ([]Token, error) {
	s, err := h.own(ctx, "Tokens")
	if err != nil {
		return nil, err
	}
	all := []Token{}
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		found, err := loadTokens(tx, s.now(), `t.user_id = ? AND NOT `+tokenEnded+` ORDER BY t.created_at DESC, t.id DESC`,
			v.User)
		for _, t := range found {
			all = append(all, t.Token)
		}
		return err
	})
	return all, err
}

// RevokeToken revokes one of the user's tokens at once, with everything made through it. A token that is unknown, or
// already revoked, is ErrNotFound. A view that is limited to projects may not call it.
func (h *Accounts) RevokeToken(ctx context.Context, id string) (err error) {
	defer setGoNames[struct{}](&err, "id", "id")
	s, err := h.own(ctx, "RevokeToken")
	if err != nil {
		return err
	}
	return s.write(ctx, func(tx db.Tx, v viewer) error {
		found, err := db.Column[int64](tx, `SELECT id FROM token WHERE uid = ? AND user_id = ? AND revoked_at IS NULL`,
			valid.CanonicalID(id), v.User)
		if err == nil && len(found) == 0 {
			err = newError(KindNotFound, "id", "{} %s is not a token of this user", show(id))
		}
		if err != nil {
			return err
		}
		return s.note(ctx, tx, revokeTokens(tx, s.now(), `id IN `+madeThrough, found[0]),
			event{"token.revoke", "token", valid.CanonicalID(id), audit.Details{"user": s.access.User}})
	})
}

// Pausing stops a client for a while without ending its access. Its credentials stay valid, so that it can continue
// when resumed: meanwhile it can renew its refresh token, but every access is refused.

// TokenUpdate describes a change to an MCP token. Nil fields change nothing.
type TokenUpdate struct {
	Paused *bool // true: the token, and everything made through it, is refused until set to false
}

// UpdateToken changes one of the user's tokens, and returns it. Resuming a token also resumes everything paused with
// it. A token that is unknown, or has ended, is ErrNotFound. A view that is limited to projects may not call it.
func (h *Accounts) UpdateToken(ctx context.Context, id string, u TokenUpdate) (_ Token, err error) {
	defer setGoNames[TokenUpdate](&err, "id", "id")
	s, err := h.own(ctx, "UpdateToken")
	if err != nil {
		return Token{}, err
	}
	var updated Token
	err = s.write(ctx, func(tx db.Tx, v viewer) error {
		find := func() (storedToken, error) {
			found, err := loadTokens(tx, s.now(), `t.uid = ? AND t.user_id = ? AND NOT `+tokenEnded, valid.CanonicalID(id),
				v.User)
			if err == nil && len(found) == 0 {
				err = newError(KindNotFound, "id", "{} %s is not a token of this user", show(id))
			}
			return append(found, storedToken{})[0], err
		}
		t, err := find()
		if err == nil && u.Paused != nil && *u.Paused == t.PausedAt.IsZero() {
			err = s.note(ctx, tx, pauseToken(tx, t, s.now()), event{pausing("token", *u.Paused), "token", t.ID, nil})
		}
		if err == nil {
			t, err = find()
		}
		updated = t.Token
		return err
	})
	return updated, err
}

// madeThrough is the list of a token (a row) and all tokens made through it, directly or indirectly.
const madeThrough = `(WITH RECURSIVE made (id) AS (
	SELECT id FROM token WHERE id = ? UNION SELECT t.id FROM token t JOIN made ON t.parent_id = made.id)
	SELECT id FROM made)`

// pauseToken pauses a token and everything made through it, or resumes it and everything paused with it.
func pauseToken(tx db.Tx, t storedToken, now int64) error {
	if t.PausedAt.IsZero() {
		_, err := tx.Exec(`UPDATE token SET paused_at = ? WHERE paused_at IS NULL AND id IN `+madeThrough, now, t.row)
		return err
	}
	_, err := tx.Exec(`UPDATE token SET paused_at = NULL WHERE paused_at = ? AND id IN `+madeThrough,
		t.PausedAt.UnixMicro(), t.row)
	return err
}

// CheckToken returns the user and the rights of an MCP token. A token that is unknown, revoked or expired, whose user
// is disabled, or whose grant has ended or belongs to a deactivated client, is ErrUnauthenticated, with the same
// message. A paused one is ErrForbidden. It works read-only, too.
//
// The token is looked up by its hash. The time that takes depends on how many bytes of the hash match a stored one, but
// senders can neither choose these bytes nor derive a token from them: the look-up needs no constant-time comparison.
func (h *Accounts) CheckToken(ctx context.Context, value string) (_ Principal, err error) {
	defer setGoNames[struct{}](&err, "token", "value")
	s, err := h.operator(ctx, "CheckToken")
	if err != nil {
		return Principal{}, err
	}
	if !secretvalue.HasForm(tokenStart, value) {
		return Principal{}, badToken()
	}
	now := s.now()
	var t storedToken
	var u storedUser
	err = s.readStore(ctx, func(tx db.Tx) error {
		tokens, err := loadTokens(tx, now, `t.hash = ?`, secretvalue.Hash(value))
		if err != nil || len(tokens) == 0 {
			return err
		}
		users, err := loadUsers(tx, `u.id = ? AND u.namespace = ?`, tokens[0].user, s.access.Namespace)
		if err != nil || len(users) == 0 {
			return err
		}
		t, u = tokens[0], users[0]
		return nil
	})
	if err != nil {
		return Principal{}, err
	}
	if t.row == 0 || t.wasRevoked || t.expired || s.credentialsRefused(s.access.Namespace, u.User) {
		s.log.DebugContext(ctx, "a token was rejected", "id", t.ID, "unknown", t.row == 0, "deleted", t.wasRevoked, "expired",
			t.expired, "user disabled", s.credentialsRefused(s.access.Namespace, u.User))
		return Principal{}, badToken()
	}
	if t.paused {
		return Principal{}, pausedAccess()
	}
	s.noteUse(ctx, use{of: "token", id: t.ID, last: t.used, now: now}, func(tx db.Tx) error {
		_, err := tx.Exec(`UPDATE token SET last_used_at = ? WHERE id = ?`, now, t.row)
		return err
	})
	return Principal{User: u.User, Scopes: t.Scopes, TokenID: t.ID, GrantID: t.GrantID,
		Access: accessOf(userKey{s.access.Namespace, u.ID}, t.Scopes, t.Projects)}, nil
}

func badToken() error {
	return newError(KindUnauthenticated, "", "the token is not valid; it may have expired or been revoked")
}

// Credentials have parents: a credential made through a token, an application or a browser sign-in ends with it.
//
//   - A token made through a token (parent_id) has at most its parent's scopes, projects and lifetime, and inherits
//     its grant and its sign-in. Revoking a token ends all its descendants in the same transaction.
//   - A token made by an application ends with the grant, which each check looks at.
//   - A token made, or an application allowed, in a sign-in ends when the user ends that sign-in from elsewhere, since
//     the wrong person may have used it. Signing out and expiry leave it alone, unless the token was made to end with
//     them (with_session), which each check looks at.
//   - A client that a token or an application made is deactivated when that ends.

// inherit finds the parents of a new token, limits it to them, and fills in the fields left empty. It returns the rows
// of the token and the grant that are its parents; nil for none.
func (t *Token) inherit(tx db.Tx, u storedUser, n *NewToken, now int64) (token, grant any, err error) {
	if n.TokenID != "" {
		parent, err := activeToken(tx, u, n.TokenID, now)
		if err != nil {
			return nil, nil, err
		}
		token, t.TokenID, t.TokenName, n.GrantID = parent.row, parent.ID, parent.Name, parent.GrantID
		t.SignInID, t.Browser, t.WithSignIn = parent.SignInID, parent.Browser, parent.WithSignIn
		bounds := limits{"token " + show(parent.Name), Principal{User: u.User, Scopes: parent.Scopes}.Allows, parent.Projects,
			parent.ExpiresAt}
		if err := n.within(bounds); err != nil {
			return nil, nil, err
		}
	} else if n.SignInID != "" {
		found, err := loadSignIns(tx, `e.uid = ? AND e.user_id = ? AND e.expires_at > ?`, n.SignInID, u.row, now)
		if err == nil && len(found) == 0 {
			err = newError(KindNotFound, "session_id", "{} %s is not a session of this user, or is no longer valid",
				show(n.SignInID))
		}
		if err != nil {
			return nil, nil, err
		}
		t.SignInID, t.Browser, t.WithSignIn = n.SignInID, found[0].UserAgent, n.WithSignIn
	}
	if n.GrantID != "" {
		g, err := activeGrant(tx, u, n.GrantID)
		if err == nil {
			grant, t.GrantID, t.ClientName = g.row, g.ID, g.ClientName
			err = n.within(limits{"application " + show(g.ClientName), g.carries, g.Projects, time.Time{}})
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if n.Scopes == nil {
		n.Scopes = DefaultScopes()
	}
	return token, grant, nil
}

// limits are the limits of a new token.
type limits struct {
	what     string // the parent, for errors
	carries  func(Scope) bool
	projects []string  // nil: all
	expires  time.Time // zero: never
}

// within refuses a new token that exceeds a limit, and fills in the limit for fields left empty.
func (n *NewToken) within(l limits) error {
	if n.Scopes == nil {
		n.Scopes = slices.DeleteFunc(DefaultScopes(), func(s Scope) bool { return !l.carries(s) })
	}
	if i := slices.IndexFunc(n.Scopes, func(s Scope) bool { return !l.carries(s) }); i >= 0 {
		return newError(KindForbidden, "scopes",
			"{} has %s, which %s does not have; a token created with it cannot have more", show(string(n.Scopes[i])),
			l.what)
	}
	if len(n.Scopes) == 0 {
		return newError(KindForbidden, "scopes", "{} is missing, and %s has none of %s; give some that it has",
			l.what, oneOf(DefaultScopes()))
	}
	if n.ExpiresAt.IsZero() {
		n.ExpiresAt = l.expires
	}
	if !l.expires.IsZero() && n.ExpiresAt.After(l.expires) {
		return newError(KindForbidden, "expires_at",
			"{} is %s, but %s expires at %s; a token created with it cannot outlive it",
			n.ExpiresAt.Format(time.RFC3339), l.what, l.expires.Format(time.RFC3339))
	}
	if l.projects == nil {
		return nil
	}
	if n.Projects == nil {
		n.Projects = l.projects
	}
	if i := slices.IndexFunc(n.Projects, func(ref string) bool { return !slices.Contains(l.projects, ref) }); i >= 0 {
		return newError(KindForbidden, "projects", "{} has %s, which %s does not have access to; give some of %s",
			show(n.Projects[i]), l.what, oneOf(l.projects))
	}
	return nil
}

// activeToken finds a valid token of a user.
func activeToken(tx db.Tx, u storedUser, id string, now int64) (storedToken, error) {
	found, err := loadTokens(tx, now, `t.uid = ? AND t.user_id = ?`, id, u.row)
	if err == nil && (len(found) == 0 || found[0].wasRevoked || found[0].expired) {
		err = newError(KindNotFound, "token_id", "{} %s is not a token of this user, or was revoked", show(id))
	}
	if err == nil && found[0].paused {
		err = pausedAccess()
	}
	if err != nil {
		return storedToken{}, err
	}
	return found[0], nil
}

// revokeTokens revokes the tokens for which a condition holds, and what was made through them.
func revokeTokens(tx db.Tx, now int64, condition string, args ...any) error {
	_, err := tx.Exec(`UPDATE token SET revoked_at = ? WHERE revoked_at IS NULL AND `+condition,
		append([]any{now}, args...)...)
	if err != nil {
		return err
	}
	return deactivateOrphans(tx, now)
}

// purgeTokens deletes tokens that were revoked or expired more than 30 days ago, and counts them.
func (s *Store) purgeTokens(tx db.Tx, now int64) (int64, error) {
	if err := revokeTokens(tx, now, `with_session = 1
		AND NOT EXISTS (SELECT 1 FROM session e WHERE e.uid = token.session)`); err != nil {
		return 0, err
	}
	result, err := tx.Exec(`DELETE FROM token WHERE revoked_at < ?1 OR expires_at < ?1`, now-keepDeadTokens.Microseconds())
	return result.RowsAffected, err
}

// details returns the audit log's details of a new token.
func (t Token) details(user string) audit.Details {
	return audit.Details{"user": user, "scopes": jsonobject.List(t.Scopes), "projects": len(t.Projects),
		"limited": t.Projects != nil, "expires": !t.ExpiresAt.IsZero()}
}
