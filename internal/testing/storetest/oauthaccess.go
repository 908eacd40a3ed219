package storetest

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func accessTokens() concept {
	return concept{"AccessTokens", []promise{
		{"a token is a JWT with the claims of the interface, signed with the published key", accessTokenClaims},
		{"a token is refused for another issuer or audience, early, and late", accessTokenBounds},
		{"what was not signed here is refused", accessTokenForged},
		{"a new key signs, and the old one's tokens stay valid until they expire", keyRotation},
		{"every handle makes and finds the same key", keyOfAll},
		{"without a write scope the view is read-only", accessTokenReadOnly},
	}}
}

// jwt is a decoded token.
type jwt struct {
	header, claims map[string]any
	signed         string
	signature      []byte
}

func (f *fixture) parse(token string) jwt {
	f.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		f.Fatalf("%s has %d parts, want 3", token, len(parts))
	}
	var j jwt
	j.signed = parts[0] + "." + parts[1]
	for i, into := range []any{&j.header, &j.claims, &j.signature} {
		decoded, err := base64.RawURLEncoding.DecodeString(parts[i])
		f.check("base64", err)
		if i == 2 {
			j.signature = decoded
		} else {
			f.check("JSON", json.Unmarshal(decoded, into))
		}
	}
	return j
}

func encode(v any) string {
	return base64.RawURLEncoding.EncodeToString([]byte(toJSON(v)))
}

// sign returns a signed token with a header and claims.
func sign(key ed25519.PrivateKey, header, claims any) string {
	signed := encode(header) + "." + encode(claims)
	return signed + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(key, []byte(signed)))
}

func (f *fixture) keys() []souvenir.SigningKey {
	f.Helper()
	keys, err := f.reader.Accounts().SigningKeys(f.ctx)
	f.check("SigningKeys", err)
	return keys
}

func accessTokenClaims(f *fixture) {
	same(f, "keys before the first token", f.keys(), nil)
	c := f.register(souvenir.AuthNone)
	code := f.as(souvenir.Access{User: "ann"}).authorize(c)
	j := f.parse(f.redeem(exchanging(c, code)).AccessToken)
	keys := f.keys()
	f.equal("keys", len(keys), 1)
	f.equal("header", j.header, map[string]any{"alg": "EdDSA", "typ": "at+jwt", "kid": keys[0].ID})
	now := float64(f.clock.Now().Unix())
	id, _ := j.claims["jti"].(string)
	f.sameJSON("claims", j.claims,
		map[string]any{"iss": oauthIssuer, "sub": "ann", "user_id": "ann", "aud": []string{resource}, "iat": now, "exp": now +
			3600,
			"jti": id, "client_id": c.ID, "gid": code.GrantID, "scope": "memory:write files:read"})
	if id == "" || !ed25519.Verify(keys[0].Public, []byte(j.signed), j.signature) {
		f.Errorf("jti is %q, and the signature must be the published key's, want an id", id)
	}
	f.sameJSON("key", object(toJSON(keys[0])),
		map[string]any{"kty": "OKP", "crv": "Ed25519", "x": base64.RawURLEncoding.EncodeToString(keys[0].Public),
			"kid": keys[0].ID, "use": "sig", "alg": "EdDSA"})
}

func accessTokenBounds(f *fixture) {
	t := f.obtainTokens(f.register(souvenir.AuthNone))
	f.works("now", t)
	for _, c := range []souvenir.AccessTokenCheck{
		{Token: t.AccessToken, Issuer: oauthIssuer + "/", Audience: []string{resource}},
		{Token: t.AccessToken, Issuer: oauthIssuer, Audience: []string{oauthIssuer}},
		{Token: t.AccessToken, Issuer: oauthIssuer, Audience: []string{resource + "/x", "https://other.example/mcp"}},
	} {
		_, err := f.reader.Accounts().CheckAccessToken(f.ctx, c)
		f.refuses("CheckAccessToken with "+c.Issuer+" and "+brief(c.Audience), err, souvenir.ErrUnauthenticated,
			"invalid_token", "Invalid token")
	}
	_, err := f.reader.Accounts().CheckAccessToken(f.ctx,
		souvenir.AccessTokenCheck{Token: t.AccessToken, Audience: []string{resource}})
	f.failsAt("no issuer", err, souvenir.ErrInvalid, "issuer")
	_, err = f.reader.Accounts().CheckAccessToken(f.ctx,
		souvenir.AccessTokenCheck{Token: t.AccessToken, Issuer: oauthIssuer})
	f.failsAt("no audience", err, souvenir.ErrInvalid, "audience")
	_, err = f.reader.Accounts().CheckAccessToken(f.ctx,
		souvenir.AccessTokenCheck{Token: t.AccessToken, Issuer: oauthIssuer, Audience: []string{"mcp"}})
	f.failsAt("an audience that is none", err, souvenir.ErrInvalid, "resource")
	for _, c := range []struct {
		pass  time.Duration
		works bool
	}{{-4 * time.Second, true}, {-4 * time.Second, false}, {time.Hour, true}, {12 * time.Second, true},
		{2 * time.Second, false}, {time.Hour, false}} {
		f.clock.Pass(c.pass)
		_, err := f.reader.Accounts().CheckAccessToken(f.ctx, checking(t))
		if c.works {
			f.check("at "+f.clock.Now().String(), err)
		} else {
			f.refuses("at "+f.clock.Now().String(), err, souvenir.ErrUnauthenticated, "invalid_token", "Invalid token")
		}
	}
}

func accessTokenForged(f *fixture) {
	t := f.obtainTokens(f.register(souvenir.AuthNone))
	j := f.parse(t.AccessToken)
	_, foreign, err := ed25519.GenerateKey(nil)
	f.check("GenerateKey", err)
	with := func(header map[string]any, key string, value any) map[string]any {
		header = maps.Clone(header)
		header[key] = value
		return header
	}
	parts := strings.Split(t.AccessToken, ".")
	forged := map[string]string{
		"nothing":            "",
		"points":             "..",
		"a long one":         strings.Repeat("a", 10_000),
		"a foreign key":      sign(foreign, j.header, j.claims),
		"an unknown key":     sign(foreign, with(j.header, "kid", "unknown"), j.claims),
		"SQL as key id":      sign(foreign, with(j.header, "kid", "' OR 1=1 --"), j.claims),
		"a path as key id":   sign(foreign, with(j.header, "kid", "../../dev/null"), j.claims),
		"a number as key id": sign(foreign, with(j.header, "kid", 1), j.claims),
		"its own key in it": sign(foreign,
			with(j.header, "jwk", map[string]any{"kty": "OKP", "crv": "Ed25519",
				"x": base64.RawURLEncoding.EncodeToString(foreign.Public().(ed25519.PublicKey))}), j.claims),
		"no algorithm":           encode(with(j.header, "alg", "none")) + "." + parts[1] + ".",
		"no algorithm, signed":   encode(with(j.header, "alg", "none")) + "." + parts[1] + "." + parts[2],
		"another type":           encode(with(j.header, "typ", "JWT")) + "." + parts[1] + "." + parts[2],
		"no signature":           parts[0] + "." + parts[1] + ".",
		"other claims":           parts[0] + "." + encode(with(j.claims, "user_id", "mallory")) + "." + parts[2],
		"a fourth part":          t.AccessToken + ".x",
		"padding":                t.AccessToken + "==",
		"a line break":           parts[0] + "." + parts[1] + ".\n" + parts[2],
		"a space":                " " + t.AccessToken,
		"bits behind the end":    t.AccessToken[:len(t.AccessToken)-1] + string(t.AccessToken[len(t.AccessToken)-1]+1),
		"half":                   t.AccessToken[:len(t.AccessToken)/2],
		"twice":                  t.AccessToken + t.AccessToken,
		"the refresh token":      t.RefreshToken,
		"claims that are a list": parts[0] + "." + encode([]int{1}) + "." + parts[2],
	}
	for name, token := range forged {
		_, err := f.reader.Accounts().CheckAccessToken(f.ctx,
			souvenir.AccessTokenCheck{Token: token, Issuer: oauthIssuer, Audience: []string{resource}})
		f.refuses(name, err, souvenir.ErrUnauthenticated, "invalid_token", "Invalid token")
	}
	f.works("the genuine one", t)
}

func keyRotation(f *fixture) {
	c := f.register(souvenir.AuthNone)
	first := f.obtainTokens(c)
	old := f.keys()[0]
	f.clock.Pass(10 * time.Minute)
	made, err := f.store.Accounts().RotateSigningKey(f.ctx)
	f.check("RotateSigningKey", err)
	f.works("a token of the old key", first)
	second := f.obtainTokens(c)
	f.works("a token of the new key", second)
	f.equal("its key", f.parse(second.AccessToken).header["kid"], any(made.ID))
	keys := f.keys()
	f.equal("keys", []any{len(keys), keys[0].ID, keys[0].RetiredAt, keys[1].ID, keys[1].RetiredAt},
		[]any{2, made.ID, time.Time{}, old.ID, f.clock.Now()})
	f.clock.Pass(45 * time.Minute)
	f.works("a token of the old key after 55 minutes", first)
	f.clock.Pass(16 * time.Minute)
	f.equal("keys", len(f.keys()), 1)
	third, err := f.store.Accounts().RotateSigningKey(f.ctx)
	f.check("RotateSigningKey again", err)
	f.equal("keys", []string{f.keys()[0].ID, f.keys()[1].ID}, []string{third.ID, made.ID})
	f.works("a refreshed token", f.refresh(c, first))
}

func keyOfAll(f *fixture) {
	f.as(souvenir.Access{}).addTexts("so that the local user is there")
	c := f.register(souvenir.AuthNone)
	codes := make([]souvenir.AuthorizationCode, workers)
	for i := range codes {
		codes[i] = f.authorize(c)
	}
	tokens := make([]souvenir.TokenSet, workers)
	together(func(worker int) {
		s := f.store
		if worker%2 == 1 {
			s = f.reader
		}
		var err error
		if tokens[worker], err = s.Accounts().ExchangeCode(f.ctx, exchanging(c, codes[worker])); err != nil {
			f.Errorf("ExchangeCode: %v", err)
		}
	})
	f.equal("keys", len(f.keys()), 1)
	for _, t := range tokens {
		f.works("everywhere", t)
		_, err := f.store.Accounts().CheckAccessToken(f.ctx, checking(t))
		f.check("CheckAccessToken", err)
	}
	if _, err := f.reader.Accounts().RotateSigningKey(f.ctx); err != nil {
		f.Fatal(err)
	}
	f.equal("a rotation through the other handle", f.parse(f.obtainTokens(c).AccessToken).header["kid"],
		any(f.keys()[0].ID))
}

func accessTokenReadOnly(f *fixture) {
	c := f.register(souvenir.AuthNone)
	for _, scopes := range [][]souvenir.Scope{
		{souvenir.ScopeMemoryRead}, {souvenir.ScopeFilesRead}, {souvenir.ScopeAdmin},
		{souvenir.ScopeMemoryRead, souvenir.ScopeFilesRead},
		{souvenir.ScopeMemoryWrite}, {souvenir.ScopeFilesWrite}, souvenir.Scopes(),
	} {
		a := asking(c)
		a.Scopes = scopes
		code, err := f.store.Accounts().Authorize(f.ctx, a)
		f.check("Authorize", err)
		p := f.works("the token", f.redeem(exchanging(c, code)))
		f.equal("scopes", p.Scopes, scopes)
		writes := strings.Contains(toJSON(scopes), "write")
		f.equal("read-only with "+toJSON(scopes), p.Access.ReadOnly, !writes)
		f.equal("admin, which the user is not", p.Allows(souvenir.ScopeAdmin), false)
	}
}
