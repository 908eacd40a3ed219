package accesstoken

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

var issuedAt = time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)

// newKeys returns keys of which one is known.
func newKeys(t *testing.T) (*Keys, Key) {
	t.Helper()
	key, err := newKey("the-key", make([]byte, ed25519.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	keys := &Keys{}
	keys.known.Store(key.ID, key)
	return keys, key
}

func TestOtherLibrariesReadTheTokens(t *testing.T) {
	keys, key := newKeys(t)
	token, err := Token{Issuer: "https://a.example", Audience: "https://a.example/mcp", User: "anna", Client: "c",
		Grant: "g", ID: "1", Scope: "memory:read", IssuedAt: issuedAt}.Claims().Sign(key)
	if err != nil {
		t.Fatal(err)
	}
	var claims jwt.RegisteredClaims
	read, err := jwt.NewParser(jwt.WithValidMethods([]string{Algorithm}), jwt.WithStrictDecoding(),
		jwt.WithTimeFunc(func() time.Time { return issuedAt }), jwt.WithIssuer("https://a.example"),
		jwt.WithAudience("https://a.example/mcp"), jwt.WithSubject("anna")).
		ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) { return key.Public(), nil })
	if err != nil || claims.ID != "1" || !claims.ExpiresAt.Equal(issuedAt.Add(Lifetime)) ||
		!claims.IssuedAt.Equal(issuedAt) || read.Header["kid"] != "the-key" || read.Header["typ"] != tokenType {
		t.Errorf("%+v, %+v, %v", read, claims, err)
	}
	for range 2 { // the second time it is cached
		got, id, err := keys.Read(t.Context(), nil, token)
		if err != nil || id != "the-key" || got.UserID != "anna" || got.ClientID != "c" || got.GrantID != "g" ||
			got.Scope != "memory:read" {
			t.Errorf("%+v, %q, %v", got, id, err)
		}
	}
}

func TestOnlyATokenInTheStoresOwnWordsIsRead(t *testing.T) {
	keys, key := newKeys(t)
	encode := base64.RawURLEncoding.EncodeToString
	sign := func(header, claims string) string {
		signed := encode([]byte(header)) + "." + encode([]byte(claims))
		return signed + "." + encode(ed25519.Sign(key.private, []byte(signed)))
	}
	const header = `{"alg":"EdDSA","kid":"the-key","typ":"at+jwt"}`
	genuine := sign(header, `{"iss":"a","aud":["b"],"exp":2,"iat":1}`)
	if _, _, err := keys.Read(t.Context(), nil, genuine); err != nil {
		t.Fatal(err)
	}
	last := strings.LastIndex(genuine, ".")
	for name, token := range map[string]string{
		"none":                encode([]byte(`{"alg":"none","kid":"the-key","typ":"at+jwt"}`)) + genuine[strings.Index(genuine, "."):],
		"none, signed":        sign(`{"alg":"none","kid":"the-key","typ":"at+jwt"}`, `{}`),
		"another type":        sign(`{"alg":"EdDSA","kid":"the-key","typ":"JWT"}`, `{}`),
		"more in its header":  sign(`{"alg":"EdDSA","crit":["x"],"kid":"the-key","typ":"at+jwt"}`, `{}`),
		"said twice":          sign(`{"alg":"EdDSA","kid":"x","kid":"the-key","typ":"at+jwt"}`, `{}`),
		"in capitals":         sign(`{"ALG":"EdDSA","kid":"the-key","typ":"at+jwt"}`, `{}`),
		"no key":              sign(`{"alg":"EdDSA","kid":"","typ":"at+jwt"}`, `{}`),
		"no object":           sign(header, `[]`),
		"a time of no number": sign(header, `{"exp":"1"}`),
		"a huge time":         sign(header, `{"exp":1e400}`),
		"not signed":          genuine[:last+1],
		"signed in part":      genuine[:len(genuine)-4],
		"four parts":          genuine + ".",
		"two parts":           genuine[:last],
		"padded":              genuine + "==",
		"line break":          genuine[:last] + "\n" + genuine[last:],
		"bits after the end":  genuine[:len(genuine)-1] + string(genuine[len(genuine)-1]+1),
	} {
		var refusal Refusal
		if claims, _, err := keys.Read(t.Context(), nil, token); !errors.As(err, &refusal) {
			t.Errorf("%s: %+v, %v", name, claims, err)
		}
	}
}

func TestATokenIsValidForOneHourHere(t *testing.T) {
	genuine := Token{Issuer: "a", Audience: "b", User: "anna", IssuedAt: issuedAt}.Claims()
	for name, test := range map[string]struct {
		change func(c *Claims)
		after  time.Duration
		want   string
	}{
		"fresh":                 {want: ""},
		"a slow clock":          {after: -clockLeeway, want: ""},
		"issued in the future":  {after: -clockLeeway - 1, want: "claims"},
		"at its end":            {after: Lifetime + clockLeeway - 1, want: ""},
		"expired":               {after: Lifetime + clockLeeway, want: "expired"},
		"longer than any":       {change: func(c *Claims) { c.ExpiresAt.Time = c.ExpiresAt.Add(1) }, want: "claims"},
		"another resource":      {change: func(c *Claims) { c.Audience = []string{"x"} }, want: "resource"},
		"one of its resources":  {change: func(c *Claims) { c.Audience = []string{"x", "b"} }, want: ""},
		"no resource":           {change: func(c *Claims) { c.Audience = nil }, want: "claims"},
		"another issuer":        {change: func(c *Claims) { c.Issuer = "x" }, want: "issuer"},
		"no issuer":             {change: func(c *Claims) { c.Issuer = "" }, want: "claims"},
		"no end":                {change: func(c *Claims) { c.ExpiresAt = Date{} }, want: "claims"},
		"no beginning":          {change: func(c *Claims) { c.IssuedAt = Date{} }, want: "claims"},
		"another user's claims": {change: func(c *Claims) { c.UserID = "bob" }, want: "claims"},
	} {
		claims := genuine
		if test.change != nil {
			test.change(&claims)
		}
		err := claims.Check(Expected{Issuer: "a", Audience: []string{"b"},
			Now: func() time.Time { return issuedAt.Add(test.after) }})
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}
