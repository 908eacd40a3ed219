// Package accesstoken signs and checks access tokens, JWTs of the profile of RFC 9068, and keeps the keys that sign
// them. Tokens are not stored: what they depend on is for the caller to check at each use.
package accesstoken

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

const (
	// Algorithm is the only signature algorithm: Ed25519 (RFC 8037).
	Algorithm = "EdDSA"

	// Lifetime is how long a token is valid.
	Lifetime = time.Hour

	// clockLeeway is the most that the clocks of two processes on a file may differ.
	clockLeeway = 5 * time.Second

	// KeyLife is how long a retired key is needed, for the tokens that it signed last.
	KeyLife = Lifetime + clockLeeway

	tokenType = "at+jwt" // RFC 9068, 2.1: no other JWT passes for an access token

	maxToken = 8 << 10 // bytes

	// base64URL is the alphabet of base64url (RFC 4648, 5).
	base64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
)

// encoding refuses a second text of the same bytes.
var encoding = base64.RawURLEncoding.Strict()

// Refusal is the error for a token that is not valid; it says why.
type Refusal string

func (r Refusal) Error() string { return string(r) }

const notOurs = Refusal("it is not a JWT of this service")

// Token is what a token says.
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
	Issuer    string   `json:"iss"`
	Subject   string   `json:"sub"`
	Audience  []string `json:"aud"`
	ExpiresAt Date     `json:"exp"`
	IssuedAt  Date     `json:"iat"`
	ID        string   `json:"jti"`

	UserID   string `json:"user_id"`
	ClientID string `json:"client_id"`
	GrantID  string `json:"gid"`
	Scope    string `json:"scope"`
}

// Date is a time in JSON as a JWT has it: whole seconds since 1970.
type Date struct{ time.Time }

// MarshalJSON returns the seconds.
func (d Date) MarshalJSON() ([]byte, error) { return strconv.AppendInt(nil, d.Unix(), 10), nil }

// UnmarshalJSON reads whole seconds.
func (d *Date) UnmarshalJSON(text []byte) error {
	var seconds int64
	err := json.Unmarshal(text, &seconds)
	d.Time = time.Unix(seconds, 0)
	return err
}

// header is the first part of a token. Tokens that say more, or the same in other words, are not ours.
type header struct {
	Algorithm string `json:"alg"`
	Key       string `json:"kid"`
	Type      string `json:"typ"`
}

// Claims returns the claims of the token, which ends a Lifetime after it was issued.
func (t Token) Claims() Claims {
	return Claims{
		Issuer: t.Issuer, Subject: t.User, Audience: []string{t.Audience}, ID: t.ID,
		IssuedAt: Date{t.IssuedAt}, ExpiresAt: Date{t.IssuedAt.Add(Lifetime)},
		UserID: t.User, ClientID: t.Client, GrantID: t.Grant, Scope: t.Scope,
	}
}

// Sign returns the token with these claims.
func (c Claims) Sign(key Key) (string, error) {
	first, err := json.Marshal(header{Algorithm, key.ID, tokenType})
	if err != nil {
		return "", err
	}
	claims, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	signed := encoding.EncodeToString(first) + "." + encoding.EncodeToString(claims)
	return signed + "." + encoding.EncodeToString(ed25519.Sign(key.private, []byte(signed))), nil
}

// Read returns the claims of a token that a key of the store signed, expired or not, and the id of the key. Any other
// token is a Refusal.
func (k *Keys) Read(ctx context.Context, store db.DB, token string) (claims Claims, key string, err error) {
	if len(token) > maxToken || strings.Trim(token, base64URL+".") != "" {
		return claims, "", notOurs // decoders skip line breaks: two texts would be the same token
	}
	if known, ok := k.verified.get(token); ok {
		return known.claims, known.key, nil
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return claims, "", notOurs
	}
	key = keyOf(parts[0])
	signature, err := encoding.DecodeString(parts[2])
	if key == "" || err != nil {
		return claims, "", notOurs
	}
	public, err := k.public(ctx, store, key)
	if err != nil {
		return claims, "", err // says nothing about the token
	}
	signed := token[:len(token)-len(parts[2])-1]
	if public == nil || !ed25519.Verify(public, []byte(signed), signature) {
		return claims, "", notOurs
	}
	text, err := encoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(text, &claims) != nil {
		return Claims{}, "", notOurs
	}
	k.verified.add(token, verifiedToken{claims, key})
	return claims, key, nil
}

// keyOf returns the id of the key that a header names, "" if it is not a header of ours, byte by byte: it has this
// algorithm and this type, and nothing besides.
func keyOf(encoded string) string {
	text, err := encoding.DecodeString(encoded)
	var h header
	if err != nil || json.Unmarshal(text, &h) != nil {
		return ""
	}
	ours, err := json.Marshal(header{Algorithm, h.Key, tokenType})
	if err != nil || !bytes.Equal(text, ours) {
		return ""
	}
	return h.Key
}

// Expected is what a token must say.
type Expected struct {
	Issuer   string
	Audience []string         // one of them
	Now      func() time.Time // the clock
}

// Check returns a Refusal unless the claims are those of a token that is valid now.
func (c Claims) Check(want Expected) error {
	now := want.Now()
	switch {
	case c.IssuedAt.IsZero() || c.ExpiresAt.IsZero() || len(c.Audience) == 0 || c.Issuer == "":
	case !now.Before(c.ExpiresAt.Add(clockLeeway)):
		return Refusal("it has expired")
	case !slices.ContainsFunc(c.Audience, func(a string) bool { return slices.Contains(want.Audience, a) }):
		return Refusal("it is for another resource")
	case c.Issuer != want.Issuer:
		return Refusal("it is from another issuer")
	case !now.Before(c.IssuedAt.Add(-clockLeeway)) && c.Subject == c.UserID &&
		c.ExpiresAt.Sub(c.IssuedAt.Time) <= Lifetime:
		return nil // a thief of a replaced key can backdate a token, but not make it last longer
	}
	return Refusal("its claims are not those of a valid access token")
}
