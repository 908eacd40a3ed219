package souvenir

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/souvenir-ai/souvenir/internal/browsermark"
	"github.com/souvenir-ai/souvenir/internal/clientmeta"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/redact"
)

// The state of an OAuth 2.1 authorization server: clients (oauthclients.go), the users' grants to them (oauthgrants.go,
// oauthtokens.go), and the access tokens and their keys (this file). All of the protocol that needs no HTTP is
// implemented here.

// OAuthError is the cause of an [Error] meant for an OAuth client: the error response of RFC 6749, 7591, 7009 or 8707.
// It encodes to the body of that response. Get it with errors.As.
type OAuthError struct {
	Code        string `json:"error"`             // one of the OAuth codes below
	Description string `json:"error_description"` // printable ASCII without quotes and backslashes (RFC 6749, 5.2)
}

// The codes of an [OAuthError].
const (
	OAuthInvalidRequest        = "invalid_request"         // RFC 6749
	OAuthInvalidClient         = "invalid_client"          // RFC 6749
	OAuthInvalidGrant          = "invalid_grant"           // RFC 6749: an invalid code or refresh token
	OAuthUnauthorizedClient    = "unauthorized_client"     // RFC 6749
	OAuthUnsupportedGrantType  = "unsupported_grant_type"  // RFC 6749; for code that parses requests
	OAuthInvalidScope          = "invalid_scope"           // RFC 6749
	OAuthAccessDenied          = "access_denied"           // RFC 6749
	OAuthUnavailable           = "temporarily_unavailable" // RFC 6749
	OAuthInvalidToken          = "invalid_token"           // RFC 6750: an invalid access token
	OAuthInvalidRedirectURI    = "invalid_redirect_uri"    // RFC 7591
	OAuthInvalidClientMetadata = "invalid_client_metadata" // RFC 7591
	OAuthInvalidTarget         = "invalid_target"          // RFC 8707
)

// Error returns code and description.
func (e *OAuthError) Error() string { return e.Code + ": " + e.Description }

// oauthError returns an error whose message is also the description for an OAuth client.
func oauthError(kind Kind, code, argument, format string, args ...any) *Error {
	e := newError(kind, argument, format, args...)
	e.Err = &OAuthError{Code: code, Description: asDescription(e.Message)}
	return e
}

// asOAuth gives an error of another method an OAuth code. Errors that the client did not cause stay unchanged.
func asOAuth(err error, code string) error {
	var known *Error
	if !errors.As(err, &known) {
		return err
	}
	return oauthError(known.Kind, code, known.Argument, "%s", known.Message)
}

// asDescription writes a message in the characters that an error_description may have.
func asDescription(message string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '"':
			return '\''
		case r < ' ' || r > '~' || r == '\\':
			return '?'
		}
		return r
	}, strings.ReplaceAll(message, "…", "..."))
}

// Lifetimes. Each use of a refresh token extends it.
const (
	codeLifetime    = 5 * time.Minute
	accessLifetime  = time.Hour
	refreshLifetime = 30 * 24 * time.Hour

	// refreshGrace is how long a client may reuse a refresh token after its first use: several of its processes may share
	// one, and an answer may get lost.
	refreshGrace = 60 * time.Second

	// unusedLifetime is how long a client that registered itself is kept without any consent, and how long codes are kept,
	// so that their reuse is detected.
	unusedLifetime = 24 * time.Hour

	// revokedLifetime is how long a revoked grant is kept, so that what it allowed can be looked up.
	revokedLifetime = 30 * 24 * time.Hour

	purgeInterval = time.Hour
)

// oauthState is the state that a store keeps in memory for OAuth.
type oauthState struct {
	keys   sync.Map     // key id -> signingKey; the key of an id never changes
	purged atomic.Int64 // when this process last purged

	verified verifiedTokens
}

// purgeNowAndThen purges occasionally, as part of a write that is rare anyway.
func (s *shared) purgeNowAndThen(tx db.Tx) error {
	now := s.now()
	last := s.oauth.purged.Load()
	if now-last < purgeInterval.Microseconds() || !s.oauth.purged.CompareAndSwap(last, now) {
		return nil
	}
	return purgeOAuth(tx, now)
}

// purgeOAuth deletes what can never be valid again: clients that registered themselves and got no consent, expired
// codes and refresh tokens, grants that were revoked long ago or can no longer be used, and signing keys whose tokens
// have all expired.
func purgeOAuth(tx db.Tx, now int64) error {
	before := func(d time.Duration) int64 { return now - d.Microseconds() }
	for _, step := range []struct {
		statement string
		args      []any
	}{
		{`DELETE FROM oauth_code WHERE expires_at < ?`, []any{before(unusedLifetime)}},
		{`DELETE FROM oauth_token WHERE expires_at <= ?`, []any{now}},
		{`DELETE FROM oauth_grant WHERE revoked_at < ?`, []any{before(revokedLifetime)}},
		{`DELETE FROM oauth_grant WHERE last_used_at IS NULL AND created_at < ?`, []any{before(unusedLifetime)}},
		{`DELETE FROM oauth_grant WHERE last_used_at < ? AND NOT EXISTS (SELECT 1 FROM oauth_token t
			WHERE t.grant_id = oauth_grant.id)
			AND NOT EXISTS (SELECT 1 FROM token t WHERE t.grant_id = oauth_grant.id AND t.revoked_at IS NULL
			AND coalesce(t.expires_at > ?, true))`,
			[]any{before(refreshLifetime), now}},
		{`DELETE FROM oauth_client WHERE kind IN ('registered', 'document') AND updated_at < ? AND used_at IS NULL
			AND disabled_at IS NULL
			AND NOT EXISTS (SELECT 1 FROM oauth_grant g WHERE g.client_id = oauth_client.id)`, []any{before(unusedLifetime)}},
		{`DELETE FROM signing_key WHERE algorithm <> ? AND retired_at < ?`,
			[]any{markAlgorithm, before(accessLifetime + clockLeeway)}},
		{`DELETE FROM signing_key WHERE algorithm = ? AND retired_at < ?`, []any{markAlgorithm, before(browsermark.Life)}},
	} {
		if _, err := tx.Exec(step.statement, step.args...); err != nil {
			return err
		}
	}
	return nil
}

// newSecret returns 256 random bits in the characters a-z and 2-7, newIdentifier 128 of them.
func newSecret() string { return randomText(32) }

func newIdentifier() string { return randomText(16) }

func randomText(size int) string {
	random := make([]byte, size)
	_, _ = rand.Read(random) // never fails: without randomness the program crashes
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(random))
}

// digest returns the hash that secrets, codes and tokens are stored as. They are random and long, so a plain hash is
// enough.
func digest(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// maxURI is the most bytes of a URI that a client registers or names.
const maxURI = 2048

// canonicalResource converts a resource indicator (RFC 8707: an absolute URI without a fragment) to the form that is
// stored and becomes the audience: scheme and host in lower case, without a slash at the end. Empty stays empty.
func canonicalResource(resource string) (string, error) {
	if resource == "" {
		return "", nil
	}
	u, err := url.Parse(resource)
	switch {
	case len(resource) > maxURI:
		return "", oauthError(KindTooLarge, OAuthInvalidTarget, "resource", "resource is %d bytes; at most %d are allowed",
			len(resource), maxURI)
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		strings.Contains(resource, "#"):
		return "", oauthError(KindInvalid, OAuthInvalidTarget, "resource",
			"resource is %s; the absolute http or https URI of a service, without user and fragment, is needed", show(resource))
	}
	u.Host = strings.ToLower(u.Host)
	return strings.TrimSuffix(u.String(), "/"), nil
}

// joinScopes writes scopes as OAuth does, separated by spaces (RFC 6749, 3.3).
func joinScopes(scopes []Scope) string {
	words := make([]string, len(scopes))
	for i, s := range scopes {
		words[i] = string(s)
	}
	return strings.Join(words, " ")
}

// The keys that sign access tokens. They are stored in the file, so that all processes on it accept each other's
// tokens, and tokens stay valid across a restart.

// algorithm is the only signature algorithm: Ed25519 (RFC 8037).
const algorithm = "EdDSA"

// SigningKey is the public half of a key that signs access tokens. It encodes to a JSON Web Key (RFC 7517, RFC 8037).
type SigningKey struct {
	ID        string // kid
	Public    ed25519.PublicKey
	CreatedAt time.Time
	RetiredAt time.Time // when it stopped signing; zero: it is the signing key
}

// MarshalJSON returns kty, crv, x, kid, use and alg.
func (k SigningKey) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Type      string `json:"kty"`
		Curve     string `json:"crv"`
		X         string `json:"x"`
		ID        string `json:"kid"`
		Use       string `json:"use"`
		Algorithm string `json:"alg"`
	}{"OKP", "Ed25519", base64.RawURLEncoding.EncodeToString(k.Public), k.ID, "sig", algorithm})
}

// signingKey is a key with its private half, as it is kept in memory.
type signingKey struct {
	id      string
	private ed25519.PrivateKey
}

func (k signingKey) public() ed25519.PublicKey {
	return ed25519.PublicKey(k.private[ed25519.PrivateKeySize-ed25519.PublicKeySize:])
}

// SigningKeys returns the keys whose tokens are accepted, the signing key first; none before the first token.
func (h *Accounts) SigningKeys(ctx context.Context) ([]SigningKey, error) {
	s, err := h.operator("SigningKeys")
	if err != nil {
		return nil, err
	}
	all := []SigningKey{}
	err = s.readStore(ctx, func(tx db.Tx) error {
		return tx.Each(func(row db.Rows) error {
			var k SigningKey
			var seed []byte
			var created, retired int64
			if err := row.Scan(&k.ID, &seed, &created, &retired); err != nil {
				return err
			}
			key, err := newSigningKey(k.ID, seed)
			if err != nil {
				return err
			}
			k.Public, k.CreatedAt = key.public(), kernel.ToTime(created)
			if retired != 0 {
				k.RetiredAt = kernel.ToTime(retired)
			}
			all = append(all, k)
			return nil
		}, `SELECT kid, private_key, created_at, coalesce(retired_at, 0) FROM signing_key
			WHERE algorithm = ? AND (retired_at IS NULL OR retired_at >= ?)
			ORDER BY retired_at IS NOT NULL, retired_at DESC, id DESC`, algorithm,
			s.now()-(accessLifetime+clockLeeway).Microseconds())
	})
	return all, err
}

// RotateSigningKey makes a new key for future tokens. The old one no longer signs; tokens that it signed are accepted
// until they expire, at most an hour later. The marks of browsers (see [AddedSignIn]) end at once.
func (h *Accounts) RotateSigningKey(ctx context.Context) (SigningKey, error) {
	s, err := h.operator("RotateSigningKey")
	if err != nil {
		return SigningKey{}, err
	}
	var made SigningKey
	err = s.writeStore(ctx, func(tx db.Tx) error {
		now := s.now()
		if _, err := tx.Exec(`UPDATE signing_key SET retired_at = ? WHERE algorithm = ? AND retired_at IS NULL`, now,
			algorithm); err != nil {
			return err
		}
		if _, err := tx.Exec(`DELETE FROM signing_key WHERE algorithm = ?`, markAlgorithm); err != nil {
			return err
		}
		key, err := s.addSigningKey(tx)
		made = SigningKey{ID: key.id, Public: key.public(), CreatedAt: kernel.ToTime(now)}
		if err != nil {
			return err
		}
		_, err = tx.Exec(`DELETE FROM signing_key WHERE algorithm = ? AND retired_at < ?`, algorithm,
			now-(accessLifetime+clockLeeway).Microseconds())
		return err
	})
	if err != nil {
		return SigningKey{}, err
	}
	return made, nil
}

// currentKey returns the signing key, and makes one if there is none. It reads the file each time, since another
// process may have rotated the key; only one process writes at a time, so two cannot both make one.
func (s *shared) currentKey(tx db.Tx) (signingKey, error) {
	ids, err := db.Column[string](tx, `SELECT kid FROM signing_key WHERE algorithm = ? AND retired_at IS NULL`, algorithm)
	if err != nil {
		return signingKey{}, err
	}
	if len(ids) == 0 {
		return s.addSigningKey(tx)
	}
	key, found, err := s.signingKey(tx, ids[0])
	if err == nil && !found {
		err = damaged(db.ErrNoRows, "the signing key %s", ids[0])
	}
	return key, err
}

func (s *shared) addSigningKey(tx db.Tx) (signingKey, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return signingKey{}, err
	}
	key := signingKey{id: newIdentifier(), private: private}
	_, err = tx.Exec(`INSERT INTO signing_key (kid, algorithm, private_key, created_at) VALUES (?, ?, ?, ?)`, key.id,
		algorithm, private.Seed(), s.now())
	return key, err
}

// signingKey returns a key by its id, from memory or from the file.
func (s *shared) signingKey(tx db.Tx, id string) (key signingKey, found bool, err error) {
	if known, ok := s.oauth.keys.Load(id); ok {
		return known.(signingKey), true, nil
	}
	seeds, err := db.Column[[]byte](tx, `SELECT private_key FROM signing_key WHERE kid = ? AND algorithm = ?`, id,
		algorithm)
	if err != nil || len(seeds) == 0 {
		return signingKey{}, false, err
	}
	if key, err = newSigningKey(id, seeds[0]); err != nil {
		return signingKey{}, false, err
	}
	s.oauth.keys.Store(id, key)
	return key, true, nil
}

func newSigningKey(id string, seed []byte) (signingKey, error) {
	if len(seed) != ed25519.SeedSize {
		return signingKey{}, damaged(errors.New("it has a wrong length"), "the signing key %s", show(id))
	}
	return signingKey{id: id, private: ed25519.NewKeyFromSeed(seed)}, nil
}

// Access tokens: JWTs of the profile of RFC 9068. They are not stored; each use is checked against the grant, so that a
// revocation takes effect at once.

const (
	accessTokenType = "at+jwt" // RFC 9068, 2.1: no other JWT passes for an access token

	// clockLeeway is the most that the clocks of two processes on a file may differ.
	clockLeeway = 5 * time.Second

	maxAccessToken = 8 << 10 // bytes
)

// accessClaims are the claims of an access token.
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

// AccessTokenCheck is an access token with the issuer and audience to check it against.
type AccessTokenCheck struct {
	Token    string
	Issuer   string   // the issuer identifier of the authorization server
	Audience []string // the resources that are served here; the token must be for one of them
}

// Format prints the check without the token.
func (c AccessTokenCheck) Format(f fmt.State, _ rune) { redact.Format(f, c, "Token") }

// CheckAccessToken returns the principal of an access token. A token that this store did not sign, that has expired, is
// for another resource, or whose grant, client or user is no longer valid, is ErrUnauthenticated with the code
// invalid_token.
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
	err = s.readStore(ctx, func(tx db.Tx) (err error) {
		p, err = principalOf(tx, claims, key)
		return err
	})
	return p, err
}

// readAccessToken returns the claims of a token signed by this store, expired or not, and the id of the key.
func (s *shared) readAccessToken(ctx context.Context, token string) (claims accessClaims, key string, err error) {
	if len(token) > maxAccessToken || strings.Trim(token, base64URL+".") != "" {
		return claims, "", badAccessToken(
			"it is not a JWT of this service") // decoders skip line breaks: two texts would be the same token
	}
	if known, ok := s.oauth.verified.get(token); ok {
		return known.claims, known.key, nil
	}
	var failed error // reading the key failed, which says nothing about the token
	parser := jwt.NewParser(jwt.WithValidMethods([]string{algorithm}), jwt.WithStrictDecoding(),
		jwt.WithoutClaimsValidation())
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
		return accessClaims{}, "", badAccessToken("it is not a JWT of this service")
	}
	s.oauth.verified.add(token, verifiedToken{claims, key})
	return claims, key, nil
}

// verifiedTokens caches access tokens whose signature was verified recently, since that is most of the work of a check.
// Their validity is still checked each time. The keys are hashes of the tokens.
type verifiedTokens struct {
	mu         sync.Mutex
	young, old map[[sha256.Size]byte]verifiedToken // old is the previous young, which was full
}

type verifiedToken struct {
	claims accessClaims
	key    string // id of the key that signed it
}

const maxVerified = 2_000 // in each of the two maps; a token takes about 0.5 kB

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

// base64URL is the alphabet of base64url (RFC 4648, 5).
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

// checkClaims checks that a token is valid now, from this issuer, and for this service.
func (s *shared) checkClaims(claims accessClaims, c AccessTokenCheck) error {
	var audience []string
	for _, resource := range c.Audience {
		canonical, err := canonicalResource(resource)
		if err != nil {
			return err
		}
		audience = append(audience, canonical)
	}
	err := jwt.NewValidator(jwt.WithTimeFunc(s.clock), jwt.WithLeeway(clockLeeway), jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(),
		jwt.WithIssuer(c.Issuer), jwt.WithAudience(audience...)).Validate(claims)
	switch {
	case err == nil && claims.IssuedAt != nil && claims.Subject == claims.UserID &&
		claims.ExpiresAt.Sub(claims.IssuedAt.Time) <= accessLifetime:
		return nil // a thief of a replaced key can backdate a token, but not make it last longer
	case errors.Is(err, jwt.ErrTokenExpired):
		return badAccessToken("it has expired")
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return badAccessToken("it is for another resource")
	case errors.Is(err, jwt.ErrTokenInvalidIssuer):
		return badAccessToken("it is from another issuer")
	}
	return badAccessToken("its claims are not those of a valid access token")
}

// principalOf checks that everything a token depends on is still valid, and returns its principal.
func principalOf(tx db.Tx, claims accessClaims, key string) (Principal, error) {
	grants, err := loadGrants(tx, `g.uid = ? AND c.disabled_at IS NULL AND EXISTS (SELECT 1 FROM signing_key k
		WHERE k.kid = ? AND (k.retired_at IS NULL OR k.retired_at >= ?))`, claims.GrantID, key, claims.IssuedAt.UnixMicro())
	if err != nil {
		return Principal{}, err
	}
	if len(grants) == 0 || grants[0].ended || grants[0].user != claims.UserID || grants[0].ClientID != claims.ClientID {
		return Principal{}, badAccessToken("its grant has ended")
	}
	g := grants[0]
	users, err := loadUsers(tx, `u.uid = ?`, g.user)
	if err != nil {
		return Principal{}, err
	}
	words := strings.Fields(claims.Scope)
	scopes := slices.DeleteFunc(Scopes(),
		func(s Scope) bool { return !slices.Contains(words, string(s)) || !g.carries(s) })
	return Principal{User: users[0].User, Scopes: scopes, Access: accessOf(g.user, scopes, g.Projects),
		ClientID: g.ClientID, GrantID: g.ID}, nil
}

func badAccessToken(why string) error {
	return oauthError(KindUnauthenticated, OAuthInvalidToken, "token", "Invalid token: %s", why)
}

// isBadAccessToken reports whether an error is about the token itself, not about reading it.
func isBadAccessToken(err error) bool {
	var cause *OAuthError
	return errors.As(err, &cause) && cause.Code == OAuthInvalidToken
}

// CheckDocumentURL checks that a client_id can be the URL of a client id metadata document: https, with a path, without
// user, query, fragment and dot segments, in its shortest spelling. The error is ErrInvalid with invalid_client.
func CheckDocumentURL(id string) error {
	if !clientmeta.IsDocumentURL(id) {
		return oauthError(KindInvalid, OAuthInvalidClient, "client_id",
			"Invalid client: client_id is %s; an https URL with a path, without user, query, fragment and dot segments "+
				"is needed", show(id))
	}
	return nil
}
