package souvenir

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/auth/clientmeta"
	"github.com/souvenir-ai/souvenir/internal/auth/redirect"
	"github.com/souvenir-ai/souvenir/internal/auth/secretvalue"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/records/audit"
	"github.com/souvenir-ai/souvenir/internal/redact"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Users' grants to OAuth clients: how users consent, the code that a client gets, and how grants end. The clients are
// in oauthclients.go, and the tokens of a grant in oauthtokens.go. All of the protocol that needs no HTTP is
// implemented in these three.

const (
	codeLifetime    = 5 * time.Minute
	keepCodes       = 24 * time.Hour      // after they have expired, so that their reuse is detected
	unfinishedGrant = 24 * time.Hour      // how long a grant is kept whose code is never exchanged
	revokedLifetime = 30 * 24 * time.Hour // how long a revoked grant is kept, so that its rights can still be looked up
)

// Authorization is a client's request at the authorization endpoint, and the part of it that the user allows.
type Authorization struct {
	ClientID    string
	RedirectURI string // one that the client registered, see MatchRedirectURI

	// Scopes are the allowed scopes: at least one. ScopeAdmin counts only while the user is an admin.
	Scopes []Scope

	// Refused are the scopes that the client asked for and the user does not allow; they are stored for its next request.
	// Scopes that are also in Scopes do not count. Nil means none.
	Refused []Scope

	// Projects limits the client to these projects, named as in Access.Projects; each must be visible. Nil means no limit;
	// 1 to 100 are allowed.
	Projects []string

	// CodeChallenge is the SHA-256 of the client's code verifier in base64url (RFC 7636). A client with AuthNone must send
	// one. CodeChallengeMethod must be S256; a challenge with plain or without a method is refused.
	CodeChallenge       string
	CodeChallengeMethod string

	// Resource is where the tokens will be used (RFC 8707). The caller, which knows the available resources, must have
	// checked it; here it is only compared, ignoring a trailing slash. Empty means the audience passed when tokens are
	// issued.
	Resource string

	// SignInID is the sign-in in which the user allows this: ending it from elsewhere ends the grant. Empty: none.
	SignInID string
}

// AuthorizationCode is the code that the client exchanges for tokens.
type AuthorizationCode struct {
	Code      string    `json:"code"`
	GrantID   string    `json:"grant_id"`
	ExpiresAt time.Time `json:"expires_at"` // five minutes after it was made
}

// Format prints the answer without the code.
func (a AuthorizationCode) Format(f fmt.State, _ rune) { redact.Format(f, a, "Code") }

// CheckAuthorization checks whether a user could grant a client's request, before the user is asked. It is lenient
// about Projects and empty Scopes: the user chooses these. Errors about client_id and redirect_uri (the Argument of the
// Error) must be shown to the user; any other may be sent to the client by redirect.
func (h *Accounts) CheckAuthorization(ctx context.Context, a Authorization) (_ Client, err error) {
	defer setGoNames[Authorization](&err)
	s, err := h.serving(ctx, "CheckAuthorization")
	if err != nil {
		return Client{}, err
	}
	if len(a.Scopes) == 0 {
		a.Scopes = Scopes()
	}
	var client storedClient
	err = s.readStore(ctx, func(tx db.Tx) (err error) {
		client, _, err = a.checked(tx)
		return err
	})
	if err != nil {
		return Client{}, err
	}
	return client.Client, nil
}

// Authorize records that the view's user authorizes a client, and returns the code for the client. An unknown or
// deactivated client is ErrUnauthenticated with invalid_client; other faults are ErrInvalid, or ErrTooLarge, with
// invalid_request, invalid_scope or invalid_target; an unknown project is ErrNotFound; a user who is disabled is
// ErrForbidden with access_denied.
func (h *Accounts) Authorize(ctx context.Context, a Authorization) (_ AuthorizationCode, err error) {
	defer setGoNames[Authorization](&err)
	s, err := h.servingOwn(ctx, "Authorize")
	if err != nil {
		return AuthorizationCode{}, err
	}
	if err := naming.CheckLimit("projects", "client", a.Projects); err != nil {
		return AuthorizationCode{}, err
	}
	var code AuthorizationCode
	var purged int64
	err = s.write(ctx, func(tx db.Tx, v viewer) error {
		client, a, err := a.checked(tx)
		if err != nil {
			return err
		}
		if err := checkMayAuthorize(tx, v); err != nil {
			return err
		}
		projects, err := naming.Canonical(tx, v, "projects", a.Projects)
		if err != nil {
			return err
		}
		if err := s.checkSignInValid(tx, v, a.SignInID); err != nil {
			return err
		}
		if err = s.noteRegistration(ctx, tx, client); err == nil {
			code, err = s.addGrant(tx, v, client, a, projects)
		}
		if err != nil {
			return err
		}
		err = s.purgeNowAndThen(tx, &purged) // now that the client is in use
		return s.note(ctx, tx, err, event{"grant.add", "client", AuditID("client", client.ID),
			audit.Details{"user": s.access.User, "scopes": a.Scopes, "projects": len(projects)}})
	})
	s.purgedAt(purged, err)
	if err != nil {
		return AuthorizationCode{}, err
	}
	return code, nil
}

// checked returns the client of an authorization, and the authorization in its stored form.
func (a Authorization) checked(tx db.Tx) (storedClient, Authorization, error) {
	client, err := activeClient(tx, a.ClientID)
	if err != nil {
		return client, a, err
	}
	if !slices.ContainsFunc(client.Metadata.RedirectURIs,
		func(uri string) bool { return MatchRedirectURI(uri, a.RedirectURI) }) {
		return client, a, oauthError(KindInvalid, OAuthInvalidRequest, "redirect_uri",
			"Invalid redirect_uri: %s is not one that client %s has registered", show(a.RedirectURI), show(a.ClientID))
	}
	if err := a.checkChallenge(client); err != nil {
		return client, a, err
	}
	if a.Scopes, err = checkScopes("scope", a.Scopes); err != nil {
		return client, a, asOAuth(err, OAuthInvalidScope)
	}
	if len(a.Scopes) == 0 {
		return client, a, oauthError(KindInvalid, OAuthInvalidScope, "scope", "{} is empty; expected at least one of %s",
			oneOf(Scopes()))
	}
	if a.Refused, err = checkScopes("refused", a.Refused); err != nil {
		return client, a, asOAuth(err, OAuthInvalidScope)
	}
	a.Refused = slices.DeleteFunc(a.Refused, func(scope Scope) bool { return slices.Contains(a.Scopes, scope) })
	a.Resource, err = canonicalResource(a.Resource)
	return client, a, err
}

// checkChallenge checks that a code will be protected as well as its client allows.
func (a Authorization) checkChallenge(client storedClient) error {
	refuse := func(argument, format string, args ...any) error {
		return oauthError(KindInvalid, OAuthInvalidRequest, argument, format, args...)
	}
	if a.CodeChallenge == "" {
		switch {
		case a.CodeChallengeMethod != "":
			return refuse("code_challenge", "{} is missing, but code_challenge_method is %s",
				show(a.CodeChallengeMethod))
		case client.Metadata.TokenEndpointAuthMethod == AuthNone:
			return refuse("code_challenge",
				"{} is missing; a client without a secret must send one, with the method S256 (RFC 7636)")
		}
		return nil
	}
	if a.CodeChallengeMethod != "S256" {
		return refuse("code_challenge_method",
			"{} is %s; expected S256 (the default, plain, is not supported)",
			show(a.CodeChallengeMethod))
	}
	sum, err := base64.RawURLEncoding.Strict().DecodeString(a.CodeChallenge)
	if err != nil || len(sum) != sha256.Size || len(a.CodeChallenge) != base64.RawURLEncoding.EncodedLen(sha256.Size) {
		return refuse("code_challenge",
			"{} is %s; expected the 43 characters of a SHA-256 in base64url (RFC 7636, 4.2)",
			show(a.CodeChallenge))
	}
	return nil
}

// verifies reports whether a verifier matches a challenge. Without a challenge there must be no verifier: otherwise an
// attacker may have removed the challenge from the request (RFC 9700, 4.8.2).
func verifies(verifier, challenge string) bool {
	if challenge == "" {
		return verifier == ""
	}
	return subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(secretvalue.Hash(verifier))),
		[]byte(challenge)) == 1
}

// checkMayAuthorize refuses consent from users who have been disabled since they signed in.
func checkMayAuthorize(tx db.Tx, v viewer) error {
	disabled, err := db.Column[bool](tx, `SELECT disabled_at IS NOT NULL FROM users WHERE id = ?`, v.User)
	if err == nil && slices.Contains(disabled, true) {
		err = oauthError(KindForbidden, OAuthAccessDenied, "", "this user is disabled and cannot grant access")
	}
	return err
}

// checkSignInValid refuses a request from a sign-in that has just ended.
func (s *Store) checkSignInValid(tx db.Tx, v viewer, id string) error {
	if id == "" {
		return nil
	}
	found, err := loadSignIns(tx, `e.uid = ? AND e.user_id = ? AND e.expires_at > ?`, id, v.User, s.now())
	if err == nil && len(found) == 0 {
		err = oauthError(KindForbidden, OAuthAccessDenied, "session_id", "the session that granted this is no longer valid")
	}
	return err
}

func (s *Store) addGrant(tx db.Tx, v viewer, client storedClient, a Authorization,
	projects []string) (AuthorizationCode, error) {
	now := s.now()
	expires := now + codeLifetime.Microseconds()
	code := AuthorizationCode{Code: secretvalue.New(), GrantID: s.newID(), ExpiresAt: kernel.ToTime(expires)}
	if len(a.Refused) == 0 {
		a.Refused = nil
	}
	scopes, noScopes := db.ListOrNull(a.Scopes)
	refused, noRefused := db.ListOrNull(a.Refused)
	limit, err := db.ListOrNull(projects)
	if err := cmp.Or(noScopes, noRefused, err); err != nil {
		return code, err
	}
	grant, err := db.Insert(tx, `INSERT INTO oauth_grant (uid, client_id, user_id, scopes, refused, projects, resource, `+
		`created_at, session) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		code.GrantID, client.row, v.User, scopes, refused, limit, a.Resource, now, a.SignInID)
	if err != nil {
		return code, err
	}
	if _, err := tx.Exec(`INSERT INTO oauth_code (hash, grant_id, redirect_uri, challenge, created_at, expires_at) `+
		`VALUES (?, ?, ?, ?, ?, ?)`,
		secretvalue.Hash(code.Code), grant, a.RedirectURI, a.CodeChallenge, now, expires); err != nil {
		return code, err
	}
	_, err = tx.Exec(`UPDATE oauth_client SET used_at = ? WHERE id = ? AND used_at IS NULL`, now, client.row)
	return code, err
}

// Grant is a user's permission for a client that has fetched its tokens: a connected application.
type Grant struct {
	ID         string    `json:"id"`
	ClientID   string    `json:"client_id"`
	ClientName string    `json:"client_name"`
	Hosts      []string  `json:"redirect_hosts"` // where the client's redirect URIs lead: a host, or "scheme:"
	Scopes     []Scope   `json:"scopes"`
	Refused    []Scope   `json:"refused,omitempty"` // further scopes that it asked for and was not allowed
	Projects   []string  `json:"projects"`          // null: all
	Resource   string    `json:"resource,omitempty"`
	CreatedAt  time.Time `json:"created_at"`
	LastUsedAt time.Time `json:"last_used_at"`         // when the client last got tokens, which it does every hour of use
	SignInID   string    `json:"session_id,omitempty"` // the sign-in in which it was allowed; may have ended
	PausedAt   time.Time `json:"paused_at,omitzero"`
}

// Grants returns the grants of the view's user that are not revoked, the newest first.
func (h *Accounts) Grants(ctx context.Context) ([]Grant, error) {
	s, err := h.servingOwn(ctx, "Grants")
	if err != nil {
		return nil, err
	}
	all := []Grant{}
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		found, err := loadGrants(tx,
			`g.user_id = ? AND g.revoked_at IS NULL AND g.last_used_at IS NOT NULL ORDER BY g.created_at DESC, g.id DESC`,
			v.User)
		for _, g := range found {
			all = append(all, g.Grant)
		}
		return err
	})
	return all, err
}

// RevokeGrant revokes a grant of the view's user: the client's code and all its tokens end at once. Doing so again
// changes nothing; an unknown grant is ErrNotFound.
func (h *Accounts) RevokeGrant(ctx context.Context, id string) (err error) {
	defer setGoNames[struct{}](&err, "grant_id", "id")
	s, err := h.servingOwn(ctx, "RevokeGrant")
	if err != nil {
		return err
	}
	return s.write(ctx, func(tx db.Tx, v viewer) error {
		rows, err := db.Column[int64](tx, `SELECT id FROM oauth_grant WHERE uid = ? AND user_id = ?`, id, v.User)
		if err == nil && len(rows) == 0 {
			err = newError(KindNotFound, "id", "{} %s is not an OAuth grant of this user", show(id))
		}
		if err != nil {
			return err
		}
		return s.revokeGrant(ctx, tx, rows[0], event{"grant.revoke", "grant", id, audit.Details{"user": s.access.User}})
	})
}

// GrantUpdate describes a change to an OAuth grant. Nil fields change nothing.
type GrantUpdate struct {
	Paused *bool // true: the application, and all tokens that it made, are refused with this grant until set to false
}

// UpdateGrant changes a grant of the view's user, and returns it. A grant that is unknown, or was revoked, is
// ErrNotFound.
func (h *Accounts) UpdateGrant(ctx context.Context, id string, u GrantUpdate) (_ Grant, err error) {
	defer setGoNames[GrantUpdate](&err, "grant_id", "id")
	s, err := h.servingOwn(ctx, "UpdateGrant")
	if err != nil {
		return Grant{}, err
	}
	var updated Grant
	err = s.write(ctx, func(tx db.Tx, v viewer) error {
		find := func() (storedGrant, error) {
			found, err := loadGrants(tx, `g.uid = ? AND g.user_id = ? AND g.revoked_at IS NULL`, id, v.User)
			if err == nil && len(found) == 0 {
				err = newError(KindNotFound, "id", "{} %s is not an OAuth grant of this user, or was revoked", show(id))
			}
			return append(found, storedGrant{})[0], err
		}
		g, err := find()
		if err == nil && u.Paused != nil && *u.Paused == g.PausedAt.IsZero() {
			_, err = tx.Exec(`UPDATE oauth_grant SET paused_at = CASE WHEN paused_at IS NULL THEN ? END WHERE id = ?`, s.now(),
				g.row)
			err = s.note(ctx, tx, err, event{pausing("grant", *u.Paused), "grant", g.ID, nil})
		}
		if err == nil {
			g, err = find()
		}
		updated = g.Grant
		return err
	})
	return updated, err
}

// checkNotPaused refuses a paused grant.
func (g storedGrant) checkNotPaused() error {
	if g.PausedAt.IsZero() {
		return nil
	}
	return pausedAccess()
}

// revokeGrants revokes the grants for which a condition holds, with everything that depends on them.
func revokeGrants(tx db.Tx, now int64, condition string, args ...any) error {
	_, err := tx.Exec(`UPDATE oauth_grant SET revoked_at = ? WHERE revoked_at IS NULL AND `+condition,
		append([]any{now}, args...)...)
	if err != nil {
		return err
	}
	return deactivateOrphans(tx, now)
}

// revokeGrant revokes a grant and notes that, unless it was revoked before: repetitions do not fill the log.
func (s *Store) revokeGrant(ctx context.Context, tx db.Tx, grant int64, e event) error {
	var lives bool
	err := tx.QueryRow(`SELECT EXISTS (SELECT 1 FROM oauth_grant WHERE id = ? AND revoked_at IS NULL)`,
		grant).Scan(&lives)
	if err == nil {
		err = revokeGrants(tx, s.now(), `id = ?`, grant)
	}
	if err != nil || !lives {
		return err
	}
	return s.note(ctx, tx, nil, e)
}

// storedGrant is a grant with its rows.
type storedGrant struct {
	Grant
	row, client int64
	user        string // user id
	ended       bool   // revoked, or its user is disabled
}

// loadGrants reads the grants for which a condition on g, c and u holds (the text after WHERE).
func loadGrants(tx db.Tx, condition string, args ...any) ([]storedGrant, error) {
	var found []storedGrant
	err := tx.Each(func(row db.Rows) error {
		var g storedGrant
		var scopes, refused string
		var uris, projects *string
		if err := row.Scan(&g.row, &g.client, &g.user, &g.ended, &g.ID, &g.ClientID, &g.ClientName, &uris, &scopes,
			&refused, &projects, &g.Resource, kernel.TimeInto(&g.CreatedAt), kernel.TimeInto(&g.LastUsedAt), &g.SignInID,
			kernel.TimeInto(&g.PausedAt)); err != nil {
			return err
		}
		if err := cmp.Or(json.Unmarshal([]byte(scopes), &g.Scopes), json.Unmarshal([]byte(refused), &g.Refused),
			db.ReadList(projects, &g.Projects)); err != nil {
			return damaged(err, "the scopes or the projects of the OAuth grant %s", g.ID)
		}
		if err := db.ReadList(uris, &g.Hosts); err != nil {
			return damaged(err, "the redirect URIs of the OAuth client %s", show(g.ClientID))
		}
		for i, uri := range g.Hosts {
			g.Hosts[i] = redirect.Host(uri)
		}
		g.Hosts = valid.Distinct(g.Hosts)
		found = append(found, g)
		return nil
	}, `SELECT g.id, g.client_id, u.uid, g.revoked_at IS NOT NULL OR u.disabled_at IS NOT NULL, g.uid, c.client_id, c.name,
			c.redirect_uris, g.scopes, coalesce(g.refused, 'null'), g.projects, g.resource, g.created_at, g.last_used_at,
			g.session, g.paused_at
		FROM oauth_grant g JOIN oauth_client c ON c.id = g.client_id JOIN users u ON u.id = g.user_id WHERE `+condition,
		args...)
	return found, err
}

// loadGrant reads a grant that must exist.
func loadGrant(tx db.Tx, row int64) (storedGrant, error) {
	found, err := loadGrants(tx, `g.id = ?`, row)
	if err != nil {
		return storedGrant{}, err
	}
	if len(found) == 0 {
		return storedGrant{}, damaged(db.ErrNoRows, "the OAuth grant of a token")
	}
	return found[0], nil
}

// carries reports whether a scope was granted, directly or as part of another one.
func (g storedGrant) carries(scope Scope) bool {
	return Principal{User: User{Role: RoleAdmin}, Scopes: g.Scopes}.Allows(scope)
}

// storedCode is an authorization code with its grant.
type storedCode struct {
	storedGrant
	redirectURI, challenge string
	expires                int64
	used                   bool
}

func loadCode(tx db.Tx, code string) (c storedCode, found bool, err error) {
	var grant int64
	err = tx.Each(func(row db.Rows) error {
		found = true
		return row.Scan(&grant, &c.redirectURI, &c.challenge, &c.expires, &c.used)
	}, `SELECT grant_id, redirect_uri, challenge, expires_at, used_at IS NOT NULL FROM oauth_code WHERE hash = ?`,
		secretvalue.Hash(code))
	if err != nil || !found {
		return c, false, err
	}
	c.storedGrant, err = loadGrant(tx, grant)
	return c, true, err
}

// useCode marks a code as used. A transaction that has seen the code unused excludes any other use of it.
func (s *Store) useCode(tx db.Tx, code string) error {
	_, err := tx.Exec(`UPDATE oauth_code SET used_at = ? WHERE hash = ? AND used_at IS NULL`, s.now(),
		secretvalue.Hash(code))
	return err
}

func invalidCode(why string) error {
	return oauthError(KindInvalid, OAuthInvalidGrant, "code", "Invalid authorization code: %s", why)
}

// canonicalResource converts a resource indicator (RFC 8707) to the form that is stored and becomes the audience.
func canonicalResource(resource string) (string, error) {
	canonical, err := clientmeta.CanonicalResource(resource)
	return canonical, asOAuth(err, OAuthInvalidTarget)
}

// activeGrant finds a valid OAuth grant of a user.
func activeGrant(tx db.Tx, u storedUser, id string) (storedGrant, error) {
	found, err := loadGrants(tx, `g.uid = ? AND g.user_id = ? AND g.revoked_at IS NULL AND c.disabled_at IS NULL`, id,
		u.row)
	if err == nil && len(found) == 0 {
		err = newError(KindNotFound, "grant_id", "{} %s is not an OAuth grant of this user, or was revoked", show(id))
	}
	if err == nil && !found[0].PausedAt.IsZero() {
		err = pausedAccess()
	}
	if err != nil {
		return storedGrant{}, err
	}
	return found[0], nil
}

// purgeGrants deletes expired codes, grants that were revoked long ago, and grants that can no longer be used.
func purgeGrants(tx db.Tx, now int64) error {
	before := func(d time.Duration) int64 { return now - d.Microseconds() }
	for _, step := range []struct {
		statement string
		args      []any
	}{
		{`DELETE FROM oauth_code WHERE expires_at < ?`, []any{before(keepCodes)}},
		{`DELETE FROM oauth_grant WHERE revoked_at < ?`, []any{before(revokedLifetime)}},
		{`DELETE FROM oauth_grant WHERE last_used_at IS NULL AND created_at < ?`, []any{before(unfinishedGrant)}},
		{`DELETE FROM oauth_grant WHERE last_used_at < ? AND NOT EXISTS (SELECT 1 FROM oauth_token t
			WHERE t.grant_id = oauth_grant.id)
			AND NOT EXISTS (SELECT 1 FROM token t WHERE t.grant_id = oauth_grant.id AND t.revoked_at IS NULL
			AND coalesce(t.expires_at > ?, true))`,
			[]any{before(refreshLifetime), now}},
	} {
		if _, err := tx.Exec(step.statement, step.args...); err != nil {
			return err
		}
	}
	return nil
}
