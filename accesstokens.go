package souvenir

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Access tokens: JWTs of the profile of RFC 9068. They are not stored; each is checked against its grant whenever it is
// used, so that what is revoked ends at once.

const (
	accessTokenType = "at+jwt" // RFC 9068, 2.1: no other JWT passes for an access token

	// clockLeeway is how far the clocks of two processes on a file may differ.
	clockLeeway = 5 * time.Second

	maxAccessToken = 8 << 10 // bytes
)

// accessClaims is what an access token says.
type accessClaims struct {
	jwt.RegisteredClaims
	UserID   string `json:"user_id"`
	ClientID string `json:"client_id"`
	GrantID  string `json:"gid"`
	Scope    string `json:"scope"`
}

func (s *shared) signAccessToken(t issued) (string, error) {
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, accessClaims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: t.issuer, Subject: t.user, Audience: jwt.ClaimStrings{t.audience}, ID: t.tokenID,
			IssuedAt: jwt.NewNumericDate(t.at), ExpiresAt: jwt.NewNumericDate(t.at.Add(accessLifetime)),
		},
		UserID: t.user, ClientID: t.client, GrantID: t.grant, Scope: joinScopes(t.scopes),
	})
	token.Header["typ"], token.Header["kid"] = accessTokenType, t.key.id
	return token.SignedString(t.key.private)
}

// AccessTokenCheck is an access token and what it must be for.
type AccessTokenCheck struct {
	Token    string
	Issuer   string   // the issuer identifier of the authorization server
	Audience []string // the resources that are served here; the token must be for one of them
}

// CheckAccessToken returns who an access token speaks for. A token that this store did not sign, that has expired, is for another
// resource, or whose grant, client or user is no more, is ErrUnauthenticated with the code invalid_token. Only for the operator's store.
func (h *Accounts) CheckAccessToken(ctx context.Context, c AccessTokenCheck) (Principal, error) {
	s, err := h.operator("CheckAccessToken")
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
	err = s.inspect(ctx, func(tx db.Tx) (err error) {
		p, err = principalOf(tx, claims, key)
		return err
	})
	return p, err
}

// readAccessToken returns what a token says that this store has signed, whenever that was, and the id of the key.
func (s *shared) readAccessToken(ctx context.Context, token string) (claims accessClaims, key string, err error) {
	if len(token) > maxAccessToken || strings.Trim(token, base64URL+".") != "" {
		return claims, "", badAccessToken("it is no JWT of this service") // a decoder skips line breaks: two texts would be one token
	}
	if known, ok := s.oauth.verified.get(token); ok {
		return known.claims, known.key, nil
	}
	var failed error // to read the key, which says nothing about the token
	parser := jwt.NewParser(jwt.WithValidMethods([]string{algorithm}), jwt.WithStrictDecoding(), jwt.WithoutClaimsValidation())
	_, err = parser.ParseWithClaims(token, &claims, func(t *jwt.Token) (any, error) {
		id, _ := t.Header["kid"].(string)
		if kind, _ := t.Header["typ"].(string); kind != accessTokenType || id == "" {
			return nil, jwt.ErrTokenUnverifiable
		}
		var public any
		public, failed = s.verificationKey(ctx, id)
		key = id
		if public == nil {
			return nil, jwt.ErrTokenUnverifiable
		}
		return public, failed
	})
	if failed != nil {
		return accessClaims{}, "", failed
	}
	if err != nil {
		return accessClaims{}, "", badAccessToken("it is no JWT of this service")
	}
	s.oauth.verified.add(token, verifiedToken{claims, key})
	return claims, key, nil
}

// verifiedTokens are the access tokens whose signature was found to be right lately, since that is most of the work of a check.
// It says nothing of whether they are still valid: that is looked at each time. They are known by their hash.
type verifiedTokens struct {
	mu         sync.Mutex
	young, old map[[sha256.Size]byte]verifiedToken // old is what young was before it was full
}

type verifiedToken struct {
	claims accessClaims
	key    string // id of the key that signed it
}

const maxVerified = 2_000 // in each of the two maps; a token takes half a kilobyte

func (v *verifiedTokens) get(token string) (verifiedToken, bool) {
	hash := sha256.Sum256([]byte(token))
	v.mu.Lock()
	defer v.mu.Unlock()
	known, ok := v.young[hash]
	if !ok {
		if known, ok = v.old[hash]; ok {
			v.keep(hash, known)
		}
	}
	return known, ok
}

func (v *verifiedTokens) add(token string, verified verifiedToken) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.keep(sha256.Sum256([]byte(token)), verified)
}

func (v *verifiedTokens) keep(hash [sha256.Size]byte, verified verifiedToken) {
	if v.young == nil || len(v.young) >= maxVerified {
		v.young, v.old = map[[sha256.Size]byte]verifiedToken{}, v.young
	}
	v.young[hash] = verified
}

// base64URL is its alphabet (RFC 4648, 5).
const base64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// verificationKey returns the public half of a key, nil if it is unknown.
func (s *shared) verificationKey(ctx context.Context, id string) (any, error) {
	if known, ok := s.oauth.keys.Load(id); ok {
		return known.(signingKey).public(), nil
	}
	var key signingKey
	var found bool
	err := s.db.Read(ctx, func(tx db.Tx) (err error) {
		key, found, err = s.signingKey(tx, id)
		return err
	})
	if err != nil || !found {
		return nil, wrap(err)
	}
	return key.public(), nil
}

// checkClaims sees that a token is valid now, here, and for this service.
func (s *shared) checkClaims(claims accessClaims, c AccessTokenCheck) error {
	var audience []string
	for _, resource := range c.Audience {
		canonical, err := canonicalResource(resource)
		if err != nil {
			return err
		}
		audience = append(audience, canonical)
	}
	err := jwt.NewValidator(jwt.WithTimeFunc(s.clock), jwt.WithLeeway(clockLeeway), jwt.WithExpirationRequired(), jwt.WithIssuedAt(),
		jwt.WithIssuer(c.Issuer), jwt.WithAudience(audience...)).Validate(claims)
	switch {
	case err == nil && claims.IssuedAt != nil && claims.Subject == claims.UserID && claims.ExpiresAt.Sub(claims.IssuedAt.Time) <= accessLifetime:
		return nil // whoever stole a key that was replaced since can date a token back, and not make it last
	case errors.Is(err, jwt.ErrTokenExpired):
		return badAccessToken("it has expired")
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return badAccessToken("it is for another resource")
	case errors.Is(err, jwt.ErrTokenInvalidIssuer):
		return badAccessToken("it is of another issuer")
	}
	return badAccessToken("its claims are not those of an access token that is valid now")
}

// principalOf sees that nothing has ended that a token needs, and says who it speaks for.
func principalOf(tx db.Tx, claims accessClaims, key string) (Principal, error) {
	grants, err := loadGrants(tx, `g.uid = ? AND c.disabled_at IS NULL AND EXISTS (SELECT 1 FROM signing_key k
		WHERE k.kid = ? AND (k.retired_at IS NULL OR k.retired_at >= ?))`, claims.GrantID, key, claims.IssuedAt.UnixMicro())
	if err != nil {
		return Principal{}, err
	}
	if len(grants) == 0 || grants[0].ended || grants[0].user != claims.UserID || grants[0].ClientID != claims.ClientID {
		return Principal{}, badAccessToken("what it was given for has ended")
	}
	g := grants[0]
	users, err := loadUsers(tx, `u.uid = ?`, g.user)
	if err != nil {
		return Principal{}, err
	}
	words := strings.Fields(claims.Scope)
	scopes := slices.DeleteFunc(Scopes(), func(s Scope) bool { return !slices.Contains(words, string(s)) || !g.carries(s) })
	return Principal{User: users[0].User, Scopes: scopes, Access: accessOf(g.user, scopes, g.Projects), ClientID: g.ClientID, GrantID: g.ID}, nil
}

func badAccessToken(why string) error {
	return oauthError(KindUnauthenticated, OAuthInvalidToken, "token", "Invalid token: %s", why)
}

// isBadAccessToken reports whether an error is about the token and not about reading it.
func isBadAccessToken(err error) bool {
	var cause *OAuthError
	return errors.As(err, &cause) && cause.Code == OAuthInvalidToken
}
