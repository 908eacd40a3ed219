package souvenir

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// The state of an OAuth 2.1 authorization server: clients (oauthclients.go), what users allowed them (oauthgrants.go,
// oauthtokens.go), and the access tokens (accesstokens.go, signing.go). All of the protocol that needs no HTTP is decided here.

// OAuthError is the cause of an [Error] that is for an OAuth client: what the error response of RFC 6749, 7591, 7009 or
// 8707 says. It encodes to the body of that response. Get it with errors.As.
type OAuthError struct {
	Code        string `json:"error"`             // one of the OAuth codes below
	Description string `json:"error_description"` // printable ASCII without quotes and backslashes (RFC 6749, 5.2)
}

// The codes of an [OAuthError].
const (
	OAuthInvalidRequest        = "invalid_request"         // RFC 6749
	OAuthInvalidClient         = "invalid_client"          // RFC 6749
	OAuthInvalidGrant          = "invalid_grant"           // RFC 6749: a code or refresh token that is worth nothing
	OAuthUnauthorizedClient    = "unauthorized_client"     // RFC 6749
	OAuthUnsupportedGrantType  = "unsupported_grant_type"  // RFC 6749; for those who read requests
	OAuthInvalidScope          = "invalid_scope"           // RFC 6749
	OAuthAccessDenied          = "access_denied"           // RFC 6749
	OAuthUnavailable           = "temporarily_unavailable" // RFC 6749
	OAuthInvalidToken          = "invalid_token"           // RFC 6750: an access token that is worth nothing
	OAuthInvalidRedirectURI    = "invalid_redirect_uri"    // RFC 7591
	OAuthInvalidClientMetadata = "invalid_client_metadata" // RFC 7591
	OAuthInvalidTarget         = "invalid_target"          // RFC 8707
)

// Error returns code and description.
func (e *OAuthError) Error() string { return e.Code + ": " + e.Description }

// oauthError is an error that tells an OAuth client what its message says.
func oauthError(kind Kind, code, argument, format string, args ...any) *Error {
	e := newError(kind, argument, format, args...)
	e.Err = &OAuthError{Code: code, Description: asDescription(e.Message)}
	return e
}

// asOAuth gives an error of another method an OAuth code. Errors that are no fault of the client stay what they are.
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

// Lifetimes. A refresh token lives on with each use.
const (
	codeLifetime    = 5 * time.Minute
	accessLifetime  = time.Hour
	refreshLifetime = 30 * 24 * time.Hour

	// refreshGrace is how long a client may use a refresh token again that it has just used: several of its processes
	// may share one, and an answer may get lost.
	refreshGrace = 60 * time.Second

	// unusedLifetime is how long a client that registered itself is kept when nobody consents to it, and how long codes are
	// kept, so that their reuse is noticed.
	unusedLifetime = 24 * time.Hour

	// revokedLifetime is how long a revoked grant is kept, so that one can look up what had been allowed.
	revokedLifetime = 30 * 24 * time.Hour

	purgeInterval = time.Hour
)

// oauthState is what a store keeps in memory for OAuth.
type oauthState struct {
	keys   sync.Map     // key id -> signingKey; what a key id stands for never changes
	purged atomic.Int64 // when this process last purged

	verified verifiedTokens
}

// operate runs fn in a transaction like write, for what belongs to the store and to no user.
func (s *Store) operate(ctx context.Context, fn func(db.Tx) error) error {
	return wrap(s.db.Write(ctx, fn))
}

// inspect runs fn on a snapshot like read, for what belongs to the store and to no user.
func (s *Store) inspect(ctx context.Context, fn func(db.Tx) error) error {
	return wrap(s.db.Read(ctx, fn))
}

// purgeNowAndThen purges once in a while, in the midst of a write that is rare anyway.
func (s *shared) purgeNowAndThen(tx db.Tx) error {
	now := s.now()
	last := s.oauth.purged.Load()
	if now-last < purgeInterval.Microseconds() || !s.oauth.purged.CompareAndSwap(last, now) {
		return nil
	}
	return purgeOAuth(tx, now)
}

// purgeOAuth deletes what can never count again: clients that registered themselves and to which nobody consented, codes and
// refresh tokens that have expired, grants that were revoked long ago or that nobody can use any more, and signing
// keys that signed nothing that has not expired.
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
		{`DELETE FROM oauth_grant WHERE last_used_at < ? AND NOT EXISTS (SELECT 1 FROM oauth_token t WHERE t.grant_id = oauth_grant.id)
			AND NOT EXISTS (SELECT 1 FROM token t WHERE t.grant_id = oauth_grant.id AND t.revoked_at IS NULL AND coalesce(t.expires_at > ?, true))`,
			[]any{before(refreshLifetime), now}},
		{`DELETE FROM oauth_client WHERE kind IN ('registered', 'document') AND updated_at < ? AND used_at IS NULL AND disabled_at IS NULL
			AND NOT EXISTS (SELECT 1 FROM oauth_grant g WHERE g.client_id = oauth_client.id)`, []any{before(unusedLifetime)}},
		{`DELETE FROM signing_key WHERE retired_at < ?`, []any{before(accessLifetime + clockLeeway)}},
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
	_, _ = rand.Read(random) // it never fails: without randomness the program ends
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(random))
}

// digest is how secrets, codes and tokens are kept. They are random and long, so that a plain hash is enough.
func digest(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// maxURI is the most bytes of any URI that a client registers or names.
const maxURI = 2048

// canonicalResource brings a resource indicator (RFC 8707: an absolute URI without a fragment) to the form in which it is
// stored and becomes the audience: scheme and host in lower case, without a slash at the end. Empty stays empty.
func canonicalResource(resource string) (string, error) {
	if resource == "" {
		return "", nil
	}
	u, err := url.Parse(resource)
	switch {
	case len(resource) > maxURI:
		return "", oauthError(KindTooLarge, OAuthInvalidTarget, "resource", "resource is %d bytes; at most %d are allowed", len(resource), maxURI)
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Contains(resource, "#"):
		return "", oauthError(KindInvalid, OAuthInvalidTarget, "resource", "resource is %s; the absolute http or https URI of a service, without user and fragment, is needed", show(resource))
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
