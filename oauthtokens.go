package souvenir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/souvenir-ai/souvenir/internal/auth/accesstoken"
	"github.com/souvenir-ai/souvenir/internal/auth/clientmeta"
	"github.com/souvenir-ai/souvenir/internal/auth/secretvalue"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/redact"
)

// The token endpoint: codes and refresh tokens in, tokens out. If a grant ends here, that is committed even though the
// caller gets an error: functions return this error separately from the transaction's own. The keys that sign access
// tokens are in servers.go.

// TokenSet is the answer of the token endpoint (RFC 6749, 5.1).
type TokenSet struct {
	AccessToken  string `json:"access_token"`            // a JWT
	TokenType    string `json:"token_type"`              // Bearer
	ExpiresIn    int    `json:"expires_in"`              // seconds
	RefreshToken string `json:"refresh_token,omitempty"` // empty for a client not registered for refresh_token
	Scope        string `json:"scope"`                   // separated by spaces
}

const (
	refreshLifetime = 30 * 24 * time.Hour // from its last use

	// refreshGrace is how long a client may reuse a refresh token after its first use: several of its processes may share
	// one, and an answer may get lost.
	refreshGrace = 60 * time.Second
)

// oauthState is the state that a store keeps in memory for OAuth.
type oauthState struct {
	keys    accesstoken.Keys
	purged  atomic.Int64 // when this process last purged
	clients int          // the most clients known by registration or document; 0 means maxClients, tests use fewer
}

// usedBefore is the reason to refuse a code or refresh token that is sent a second time.
const usedBefore = "it was used before, so its grant is revoked"

// Format prints the answer without the tokens.
func (t TokenSet) Format(f fmt.State, _ rune) { redact.Format(f, t, "AccessToken", "RefreshToken") }

// CodeExchange is a token request with an authorization code.
type CodeExchange struct {
	Client ClientCredentials
	Code   string
	// the one from the authorization; may be left out (OAuth 2.1) if a code challenge protects the code
	RedirectURI string
	Verifier    string // of the code challenge, if there was one
	Resource    string // empty, or the one from the authorization

	Issuer   string // the issuer identifier of the authorization server
	Audience string // the access token's audience if no resource was named
}

// Format prints the request without code, verifier and the client's secret.
func (x CodeExchange) Format(f fmt.State, _ rune) { redact.Format(f, x, "Code", "Verifier") }

// ExchangeCode exchanges a code for tokens, once. The client is checked first; wrong credentials leave the code unused:
// ErrUnauthenticated, invalid_client. A code that is unknown, expired, of another client, of a user or grant that is no
// longer valid, or sent with another redirect URI, is ErrInvalid with invalid_grant. A code that was used before, or
// that comes with a wrong verifier, ends its grant with all tokens. Another resource is invalid_target.
func (h *Accounts) ExchangeCode(ctx context.Context, x CodeExchange) (_ TokenSet, err error) {
	defer setGoNames[CodeExchange](&err)
	s, err := h.serving(ctx, "ExchangeCode")
	if err != nil {
		return TokenSet{}, err
	}
	if err := checkIssuer(x.Issuer, x.Audience); err != nil {
		return TokenSet{}, err
	}
	return s.issue(ctx, func(tx db.Tx) (t issued, refused, err error) {
		client, err := checkClient(tx, x.Client)
		if err != nil {
			return t, nil, err
		}
		code, found, err := loadCode(tx, x.Code)
		if err != nil {
			return t, nil, err
		}
		if !found || code.client != client.row {
			return t, invalidCode("it is unknown"), nil
		}
		t.audience, refused = code.audience(x.Resource, x.Audience)
		switch {
		case code.used:
			return t, invalidCode(usedBefore), revokeGrants(tx, s.now(), `id = ?`, code.row)
		case code.ended || s.now() >= code.expires:
			return t, invalidCode("it has expired or was revoked"), nil
		case x.RedirectURI != code.redirectURI && (x.RedirectURI != "" || code.challenge == ""):
			return t, oauthError(KindInvalid, OAuthInvalidGrant, "redirect_uri",
				"Invalid redirect_uri: %s does not match the authorization", show(x.RedirectURI)), nil
		case refused != nil:
			return t, refused, nil
		case !verifies(x.Verifier, code.challenge):
			if err := s.useCode(tx, x.Code); err != nil {
				return t, nil, err
			}
			return t, invalidCode("code_verifier does not match code_challenge"), revokeGrants(tx, s.now(), `id = ?`, code.row)
		}
		if err := s.useCode(tx, x.Code); err != nil {
			return t, nil, err
		}
		t.issuer, t.scopes = x.Issuer, code.Scopes
		err = s.grantTokens(tx, &t, client, code.storedGrant)
		return t, nil, err
	})
}

// TokenRefresh is a token request with a refresh token.
type TokenRefresh struct {
	Client       ClientCredentials
	RefreshToken string
	Scopes       []Scope // a subset of the scopes for this access token; nil means all that were granted
	Resource     string  // empty, or the one from the authorization

	Issuer   string // as in CodeExchange
	Audience string // as in CodeExchange
}

// Format prints the request without the refresh token and the client's secret.
func (r TokenRefresh) Format(f fmt.State, _ rune) { redact.Format(f, r, "RefreshToken") }

// RefreshTokens exchanges a refresh token for new tokens. The same client may use the old one again for a minute; after
// that, its use ends the grant with all tokens. A refresh token expires 30 days after it was issued. Errors are those
// of ExchangeCode; scopes beyond the granted ones are invalid_scope, and a client that is not registered for
// refresh_token is unauthorized_client.
func (h *Accounts) RefreshTokens(ctx context.Context, r TokenRefresh) (_ TokenSet, err error) {
	defer setGoNames[TokenRefresh](&err)
	s, err := h.serving(ctx, "RefreshTokens")
	if err != nil {
		return TokenSet{}, err
	}
	if err := checkIssuer(r.Issuer, r.Audience); err != nil {
		return TokenSet{}, err
	}
	scopes, err := checkScopes("scope", r.Scopes)
	if err != nil {
		return TokenSet{}, asOAuth(err, OAuthInvalidScope)
	}
	return s.issue(ctx, func(tx db.Tx) (t issued, refused, err error) {
		client, err := checkClient(tx, r.Client)
		if err != nil {
			return t, nil, err
		}
		token, found, err := loadRefreshToken(tx, r.RefreshToken)
		if err != nil {
			return t, nil, err
		}
		now := s.now()
		switch {
		case !found || token.client != client.row:
			return t, invalidRefresh("it is unknown"), nil
		case token.rotated != 0 && !withinGrace(now-token.rotated):
			return t, invalidRefresh(usedBefore), revokeGrants(tx, now, `id = ?`, token.row)
		case token.ended || now >= token.expires:
			return t, invalidRefresh("it has expired or was revoked"), nil
		case !client.uses(clientmeta.GrantRefresh):
			return t, oauthError(KindInvalid, OAuthUnauthorizedClient, "grant_type",
				"client %s is not registered for refresh_token", show(client.ID)), nil
		}
		if t.scopes, refused = token.narrowed(scopes); refused != nil {
			return t, refused, nil
		}
		if t.audience, refused = token.audience(r.Resource, r.Audience); refused != nil {
			return t, refused, nil
		}
		if _, err := tx.Exec(`UPDATE oauth_token SET rotated_at = ? WHERE hash = ? AND rotated_at IS NULL`, now,
			secretvalue.Hash(r.RefreshToken)); err != nil {
			return t, nil, err
		}
		t.issuer = r.Issuer
		err = s.grantTokens(tx, &t, client, token.storedGrant)
		return t, nil, err
	})
}

// issue runs fn in a transaction and issues tokens from its result. If fn refuses, it issues none, but the transaction
// is still committed.
func (s *Store) issue(ctx context.Context, fn func(tx db.Tx) (t issued, refused, err error)) (TokenSet, error) {
	var t issued
	var refused error
	err := s.writeStore(ctx, func(tx db.Tx) (err error) {
		t, refused, err = fn(tx)
		return err
	})
	if err == nil {
		err = refused
	}
	if err != nil {
		return TokenSet{}, err
	}
	access, err := t.sign()
	if err != nil {
		return TokenSet{}, wrap(err)
	}
	return TokenSet{AccessToken: access, TokenType: "Bearer", ExpiresIn: int(accesstoken.Lifetime.Seconds()),
		RefreshToken: t.refresh, Scope: joinScopes(t.scopes)}, nil
}

// issued holds the contents of an access token, and the refresh token issued with it.
type issued struct {
	key                          accesstoken.Key
	issuer, audience             string
	user, client, grant, tokenID string
	scopes                       []Scope
	at                           time.Time
	refresh                      string
}

func (t issued) sign() (string, error) {
	return accesstoken.Token{Issuer: t.issuer, Audience: t.audience, User: t.user, Client: t.client, Grant: t.grant,
		ID: t.tokenID, Scope: joinScopes(t.scopes), IssuedAt: t.at}.Claims().Sign(t.key)
}

// grantTokens records that a client gets tokens.
func (s *Store) grantTokens(tx db.Tx, t *issued, client storedClient, g storedGrant) error {
	now := s.now()
	t.user, t.client, t.grant, t.tokenID, t.at = g.user, client.ID, g.ID, s.newID(), kernel.ToTime(now)
	if client.uses(clientmeta.GrantRefresh) {
		t.refresh = secretvalue.New()
		if _, err := tx.Exec(`INSERT INTO oauth_token (hash, grant_id, created_at, expires_at) VALUES (?, ?, ?, ?)`,
			secretvalue.Hash(t.refresh), g.row, now, now+refreshLifetime.Microseconds()); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(`UPDATE oauth_grant SET last_used_at = ? WHERE id = ?`, now, g.row); err != nil {
		return err
	}
	var err error
	t.key, err = s.oauth.keys.Current(tx, now)
	return err
}

// checkIssuer checks the issuer and the audience that the server passes.
func checkIssuer(issuer, audience string) error {
	switch {
	case issuer == "":
		return invalid("issuer", "Issuer is empty; expected the issuer identifier of the authorization server")
	case audience == "":
		return invalid("audience", "Audience is empty; expected the canonical URI of the resource")
	}
	return nil
}

// audience returns the audience of a token: the resource that was granted, or else the default. The request may name it
// again.
func (g storedGrant) audience(requested, otherwise string) (string, error) {
	granted, err := canonicalResource(cmp.Or(g.Resource, otherwise))
	if err != nil {
		return "", err
	}
	requested, err = canonicalResource(requested)
	if err == nil && requested != "" && requested != granted {
		err = oauthError(KindInvalid, OAuthInvalidTarget, "resource",
			"{} is %s, which does not match the authorization", show(requested))
	}
	return granted, err
}

// narrowed returns the scopes of a new access token: the requested ones, if they were granted.
func (g storedGrant) narrowed(wanted []Scope) ([]Scope, error) {
	if len(wanted) == 0 {
		return g.Scopes, nil
	}
	for _, scope := range wanted {
		if !g.carries(scope) {
			return nil, oauthError(KindInvalid, OAuthInvalidScope, "scope",
				"{} has %s, which was not granted; the granted scopes are %s", show(string(scope)), oneOf(g.Scopes))
		}
	}
	return wanted, nil
}

// withinGrace reports whether a refresh token was used so recently that its reuse does not count as theft; passed is
// the time since, in microseconds. A clock that was set back does not make an old use recent.
func withinGrace(passed int64) bool {
	return -refreshGrace.Microseconds() <= passed && passed <= refreshGrace.Microseconds()
}

func invalidRefresh(why string) error {
	return oauthError(KindInvalid, OAuthInvalidGrant, "refresh_token", "Invalid refresh_token: %s", why)
}

// storedRefreshToken is a refresh token with its grant.
type storedRefreshToken struct {
	storedGrant
	expires int64
	rotated int64 // when another one replaced it; 0: it is the newest
}

func loadRefreshToken(tx db.Tx, token string) (t storedRefreshToken, found bool, err error) {
	var grant int64
	err = tx.Each(func(row db.Rows) error {
		found = true
		return row.Scan(&grant, &t.expires, &t.rotated)
	}, `SELECT grant_id, expires_at, coalesce(rotated_at, 0) FROM oauth_token WHERE hash = ?`, secretvalue.Hash(token))
	if err != nil || !found {
		return t, false, err
	}
	t.storedGrant, err = loadGrant(tx, grant)
	return t, true, err
}

// Revocation is a request to the revocation endpoint.
type Revocation struct {
	Client ClientCredentials // zero: none were sent, and holding the token is enough
	Token  string            // an access token or a refresh token
}

// Format prints the request without the token and the client's secret.
func (r Revocation) Format(f fmt.State, _ rune) { redact.Format(f, r, "Token") }

// RevokeGrantByToken revokes the grant of an access or refresh token, and with it all the grant's tokens (RFC 7009). A
// token that is unknown, or belongs to another client, is not an error and changes nothing. Without client credentials,
// holding the token is enough. Wrong credentials are ErrUnauthenticated with invalid_client, and a missing token is
// ErrInvalid with invalid_request.
func (h *Accounts) RevokeGrantByToken(ctx context.Context, r Revocation) (err error) {
	defer setGoNames[Revocation](&err)
	s, err := h.serving(ctx, "RevokeGrantByToken")
	if err != nil {
		return err
	}
	claims, _, err := s.readAccessToken(ctx, r.Token) // an expired token is fine, too
	if err != nil && !isBadAccessToken(err) {
		return err
	}
	return s.writeStore(ctx, func(tx db.Tx) error {
		var client storedClient
		if r.Client != (ClientCredentials{}) {
			if client, err = checkClient(tx, r.Client); err != nil {
				return err
			}
		}
		if r.Token == "" {
			return oauthError(KindInvalid, OAuthInvalidRequest, "token",
				"{} is missing; expected an access token or a refresh token")
		}
		grants, err := db.Column[int64](tx, `SELECT id FROM oauth_grant WHERE (client_id = ?1 OR ?1 = 0)
			AND (uid = ?2 OR id = (SELECT grant_id FROM oauth_token WHERE hash = ?3))`, client.row, claims.GrantID,
			secretvalue.Hash(r.Token))
		if err != nil || len(grants) == 0 {
			return err
		}
		return s.revokeGrant(ctx, tx, grants[0], client.event("grant.revoke"))
	})
}

// AccessTokenCheck is an access token with the issuer and audience to check it against.
type AccessTokenCheck struct {
	Token    string
	Issuer   string   // the issuer identifier of the authorization server
	Audience []string // the resources that are served here; the token must be for one of them
}

// Format prints the check without the token.
func (c AccessTokenCheck) Format(f fmt.State, _ rune) { redact.Format(f, c, "Token") }

// CheckAccessToken returns the principal of an access token. A token that this store did not sign, that has expired, is
// for another resource, or whose grant, client or user is no longer valid, is ErrUnauthenticated with invalid_token. A
// token of a paused grant is ErrForbidden.
func (h *Accounts) CheckAccessToken(ctx context.Context, c AccessTokenCheck) (_ Principal, err error) {
	defer setGoNames[AccessTokenCheck](&err, "resource", ".Audience")
	s, err := h.serving(ctx, "CheckAccessToken")
	if err != nil {
		return Principal{}, err
	}
	if err := checkIssuer(c.Issuer, strings.Join(c.Audience, "")); err != nil {
		return Principal{}, err
	}
	claims, key, err := s.readAccessToken(ctx, c.Token)
	if err == nil {
		err = s.checkClaims(claims, c)
	}
	if err != nil {
		return Principal{}, err
	}
	var p Principal
	err = s.readStore(ctx, func(tx db.Tx) (err error) {
		p, err = principalOf(tx, claims, key)
		if err == nil && s.credentialsRefused(defaultNamespace, p.User) {
			err = badAccessToken("its grant was revoked")
		}
		return err
	})
	return p, err
}

// readAccessToken returns the claims of a token signed by this store, expired or not, and the id of the key.
func (s *shared) readAccessToken(ctx context.Context, token string) (accesstoken.Claims, string, error) {
	claims, key, err := s.oauth.keys.Read(ctx, s.db, token)
	return claims, key, wrap(asBadAccessToken(err))
}

// checkClaims checks that a token is valid now, from this issuer, and for this service.
func (s *shared) checkClaims(claims accesstoken.Claims, c AccessTokenCheck) error {
	var audience []string
	for _, resource := range c.Audience {
		canonical, err := canonicalResource(resource)
		if err != nil {
			return err
		}
		audience = append(audience, canonical)
	}
	return asBadAccessToken(claims.Check(accesstoken.Expected{Issuer: c.Issuer, Audience: audience, Now: s.clock}))
}

// principalOf checks that everything a token depends on is still valid, and returns its principal.
func principalOf(tx db.Tx, claims accesstoken.Claims, key string) (Principal, error) {
	grants, err := loadGrants(tx, `g.uid = ? AND c.disabled_at IS NULL AND EXISTS (SELECT 1 FROM signing_key k
		WHERE k.kid = ? AND (k.retired_at IS NULL OR k.retired_at >= ?))`, claims.GrantID, key, claims.IssuedAt.UnixMicro())
	if err != nil {
		return Principal{}, err
	}
	if len(grants) == 0 || grants[0].ended || grants[0].user != claims.UserID || grants[0].ClientID != claims.ClientID {
		return Principal{}, badAccessToken("its grant was revoked")
	}
	g := grants[0]
	users, err := loadUsers(tx, `u.namespace = ? AND u.uid = ?`, defaultNamespace, g.user)
	if err := cmp.Or(g.checkNotPaused(), err); err != nil {
		return Principal{}, err
	}
	scopes := slices.DeleteFunc(splitScopes(claims.Scope), func(s Scope) bool { return !g.carries(s) })
	return Principal{User: users[0].User, Scopes: scopes, Access: accessOf(userKey{defaultNamespace, g.user}, scopes,
		g.Projects),
		ClientID: g.ClientID, GrantID: g.ID}, nil
}

// asBadAccessToken turns the refusal of a token into an error for its client. Other errors stay.
func asBadAccessToken(err error) error {
	var refusal accesstoken.Refusal
	if errors.As(err, &refusal) {
		return badAccessToken(string(refusal))
	}
	return err
}

func badAccessToken(why string) error {
	return oauthError(KindUnauthenticated, OAuthInvalidToken, "token", "Invalid token: %s", why)
}

// isBadAccessToken reports whether an error is about the token itself, not about reading it.
func isBadAccessToken(err error) bool {
	var cause *OAuthError
	return errors.As(err, &cause) && cause.Code == OAuthInvalidToken
}

// purgeRefreshTokens deletes the refresh tokens that have expired.
func purgeRefreshTokens(tx db.Tx, now int64) error {
	_, err := tx.Exec(`DELETE FROM oauth_token WHERE expires_at <= ?`, now)
	return err
}
