// Package accesstoken signs and checks access tokens, JWTs of the profile of RFC 9068, and keeps the keys that sign
// them. Tokens are not stored. At each use, the caller checks everything else that they depend on.
package accesstoken

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/souvenir-ai/souvenir/internal/db"
)

const (
	// Algorithm is the only signature algorithm: Ed25519 (RFC 8037).
	Algorithm = "EdDSA"

	// Lifetime is how long a token is valid.
	Lifetime = time.Hour

	// clockLeeway is the maximum difference between the clocks of two processes on a file.
	clockLeeway = 5 * time.Second

	// KeyLife is how long a retired key is needed to verify the last tokens it signed.
	KeyLife = Lifetime + clockLeeway

	tokenType = "at+jwt" // RFC 9068, 2.1: no other JWT passes for an access token

	maxToken = 8 << 10 // bytes

	// base64URL is the alphabet of base64url (RFC 4648, 5).
	base64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
)

// Refusal is the error for an invalid token; its text is the reason.
type Refusal string

func (r Refusal) Error() string { return string(r) }

const notOurs = Refusal("it is not a JWT of this service")

// Token is the content of an access token.
type Token struct {
	Issuer, Audience string
	User             string
	Client           string
	Grant            string
	ID               string
	Scope            string // separated by spaces
	IssuedAt         time.Time
}

// Claims are the claims of a token.
type Claims struct {
	jwt.RegisteredClaims
	UserID   string `json:"user_id"`
	ClientID string `json:"client_id"`
	GrantID  string `json:"gid"`
	Scope    string `json:"scope"`
}

// Claims returns the claims of the token, which expires a Lifetime after it was issued.
func (t Token) Claims() Claims {
	return Claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: t.Issuer, Subject: t.User, Audience: jwt.ClaimStrings{t.Audience}, ID: t.ID,
			IssuedAt: jwt.NewNumericDate(t.IssuedAt), ExpiresAt: jwt.NewNumericDate(t.IssuedAt.Add(Lifetime)),
		},
		UserID: t.User, ClientID: t.Client, GrantID: t.Grant, Scope: t.Scope,
	}
}

// Sign returns the token with these claims.
func (c Claims) Sign(key Key) (string, error) {
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, c)
	token.Header["typ"], token.Header["kid"] = tokenType, key.ID
	return token.SignedString(key.private)
}

// Read returns the claims of a token that a key of the store signed, expired or not, and the id of the key. Any other
// token is a Refusal.
func (k *Keys) Read(ctx context.Context, store db.DB, token string) (claims Claims, key string, err error) {
	if len(token) > maxToken || strings.Trim(token, base64URL+".") != "" {
		return claims, "", notOurs // decoders skip line breaks, so two texts would be the same token
	}
	if known, ok := k.verified.get(token); ok {
		return known.claims, known.key, nil
	}
	var failed error // the key could not be read; the token may still be valid
	parser := jwt.NewParser(jwt.WithValidMethods([]string{Algorithm}), jwt.WithStrictDecoding(),
		jwt.WithoutClaimsValidation())
	_, err = parser.ParseWithClaims(token, &claims, func(t *jwt.Token) (any, error) {
		id, _ := t.Header["kid"].(string)
		if kind, _ := t.Header["typ"].(string); kind != tokenType || id == "" {
			return nil, jwt.ErrTokenUnverifiable
		}
		var public any
		public, failed = k.public(ctx, store, id)
		key = id
		if public == nil {
			return nil, jwt.ErrTokenUnverifiable
		}
		return public, failed
	})
	if failed != nil {
		return Claims{}, "", failed
	}
	if err != nil {
		return Claims{}, "", notOurs
	}
	k.verified.add(token, verifiedToken{claims, key})
	return claims, key, nil
}

// Expected holds the issuer, the audiences and the clock to check a token with.
type Expected struct {
	Issuer   string
	Audience []string         // one of them
	Now      func() time.Time // the clock
}

// Check returns a Refusal unless the claims are those of a token that is valid now.
func (c Claims) Check(want Expected) error {
	err := jwt.NewValidator(jwt.WithTimeFunc(want.Now), jwt.WithLeeway(clockLeeway), jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(), jwt.WithIssuer(want.Issuer), jwt.WithAudience(want.Audience...)).Validate(c)
	switch {
	case err == nil && c.IssuedAt != nil && c.Subject == c.UserID && c.ExpiresAt.Sub(c.IssuedAt.Time) <= Lifetime:
		return nil // a thief of a replaced key can backdate a token, but not make it last longer
	case errors.Is(err, jwt.ErrTokenExpired):
		return Refusal("it has expired")
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return Refusal("it is for another resource")
	case errors.Is(err, jwt.ErrTokenInvalidIssuer):
		return Refusal("it is from another issuer")
	}
	return Refusal("its claims do not match a valid access token")
}
