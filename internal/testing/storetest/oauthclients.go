package storetest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func oauthClients() concept {
	return concept{"OAuthClients", []promise{
		{"a registration is answered and kept with all its metadata", oauthRegistration},
		{"a registration gets defaults, and unsupported values are dropped", oauthRegistrationDefaults},
		{"an invalid registration is refused with the right code", oauthRegistrationRefused},
		{"a client without a secret needs none", oauthPublicClient},
		{"a user's clients are the user's, and all are the operator's", oauthOwnClients},
		{"a user may choose id and secret, once", oauthChosenClient},
		{"a new secret replaces the old one", oauthNewSecret},
		{"a deactivated client is refused everywhere, for good", oauthDeactivated},
		{"a document's client is noted and renewed", oauthDocument},
		{"clients without a grant are forgotten after a day, others never", oauthForgotten},
		{"the operator's methods are refused on a view", oauthOperatorOnly},
	}}
}

const (
	oauthIssuer = "https://memory.example"
	resource    = "https://memory.example/mcp"
	callback    = "https://app.example/callback"
	verifier    = "a-verifier-of-at-least-43-characters-as-rfc-7636-wants-it"
)

// challengeOf returns the S256 challenge of a verifier.
func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// register registers a client with one redirect URI.
func (f *fixture) register(method string) souvenir.RegisteredClient {
	f.Helper()
	c, err := f.store.Accounts().RegisterClient(f.ctx,
		souvenir.ClientRegistration{RedirectURIs: []string{callback}, ClientName: "App", TokenEndpointAuthMethod: method})
	f.check("RegisterClient", err)
	return c
}

func credentials(c souvenir.RegisteredClient) souvenir.ClientCredentials {
	return souvenir.ClientCredentials{ID: c.ID, Secret: c.Secret}
}

// refuses checks an error's kind and OAuth code, and the beginning of its description.
func (f *fixture) refuses(what string, err error, kind *souvenir.Error, code, begins string) {
	f.Helper()
	f.fails(what, err, kind)
	var cause *souvenir.OAuthError
	if !errors.As(err, &cause) {
		f.Errorf("%s: got %v, want an OAuthError", what, err)
		return
	}
	if cause.Code != code || !strings.HasPrefix(cause.Description, begins) {
		f.Errorf("%s: the client gets %s %q; want %s %q…", what, cause.Code, cause.Description, code, begins)
	}
	if strings.ContainsFunc(cause.Description, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
		f.Errorf("%s: the description %q has characters that RFC 6749 does not allow, want none", what, cause.Description)
	}
}

func oauthRegistration(f *fixture) {
	const request = `{
		"redirect_uris": ["https://app.example/callback", "http://localhost/callback",
			"cursor://anysphere.cursor-mcp/oauth/callback"],
		"client_name": "Äpp 🧠", "token_endpoint_auth_method": "client_secret_post", "grant_types": ["authorization_code",
			"refresh_token"],
		"response_types": ["code"], "scope": "memory:read files:read", "client_uri": "https://app.example",
			"logo_uri": "https://app.example/logo.png",
		"tos_uri": "https://app.example/tos", "policy_uri": "https://app.example/policy", "contacts": ["a@app.example"],
		"software_id": "app", "software_version": "1.2", "application_type": "web", "client_name#fr": "Appli",
			"nested": {"deep": [1, 2.5, null]}}`
	var r souvenir.ClientRegistration
	f.check("Unmarshal", json.Unmarshal([]byte(request), &r))
	c, err := f.store.Accounts().RegisterClient(f.ctx, r)
	f.check("RegisterClient", err)
	want := object(request)
	want["client_id"], want["client_secret"] = c.ID, c.Secret
	want["client_secret_expires_at"], want["client_id_issued_at"] = 0, f.clock.Now().Unix()
	f.sameJSON("response", c, want)
	for what, value := range map[string]string{"id": c.ID, "secret": c.Secret} {
		if len(value) < 20 || strings.Trim(value, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			f.Errorf("the %s is %q; want many of a-z0-9", what, value)
		}
	}
	got, err := f.reader.Accounts().GetClient(f.ctx, c.ID)
	f.check("GetClient", err)
	f.sameJSON("kept", got.Metadata, r)
	f.equal("client", []any{got.ID, got.Kind, got.Owner, got.Active, got.CreatedAt, got.UpdatedAt},
		[]any{c.ID, souvenir.ClientRegistered, "", true, f.clock.Now(), f.clock.Now()})
	_, err = f.reader.Accounts().CheckClient(f.ctx, credentials(c))
	f.check("CheckClient", err)
	r.RedirectURIs[0] = "https://evil.example/"
	f.equal("changing the request changes nothing", c.Metadata.RedirectURIs[0], callback)
	_, err = f.reader.Accounts().GetClient(f.ctx, "no-app")
	f.refuses("GetClient of an unknown client", err, souvenir.ErrNotFound, "invalid_client", "Invalid client")
}

func oauthRegistrationDefaults(f *fixture) {
	var r souvenir.ClientRegistration
	f.check("Unmarshal", json.Unmarshal([]byte(`{"redirect_uris": ["`+callback+`", "`+callback+
		`"], "client_name": null, "contacts": [], "scope": "openid memory:write memory:read memory:read",
		"client_id": "chosen", "client_secret": "chosen", "software_statement": "e30.e30.", "unknown": null}`), &r))
	c, err := f.store.Accounts().RegisterClient(f.ctx, r)
	f.check("RegisterClient", err)
	f.sameJSON("response", c, map[string]any{
		"redirect_uris": []string{callback}, "token_endpoint_auth_method": "client_secret_basic",
		"scope":       "memory:read memory:write",
		"grant_types": []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"},
		"client_id": c.ID, "client_secret": c.Secret, "client_id_issued_at": f.clock.Now().Unix(),
		"client_secret_expires_at": 0,
	})
	c, err = f.store.Accounts().RegisterClient(f.ctx,
		souvenir.ClientRegistration{RedirectURIs: []string{callback}, GrantTypes: []string{"implicit", "authorization_code"},
			ResponseTypes: []string{"token", "code"}})
	f.check("RegisterClient", err)
	f.equal("supported types", [][]string{c.Metadata.GrantTypes, c.Metadata.ResponseTypes},
		[][]string{{"authorization_code"}, {"code"}})
	if c.ID == "chosen" || c.Secret == "chosen" {
		f.Errorf(`a client that registers itself chose %s and %s, want neither to be "chosen"`,
			c.ID, c.Secret)
	}
}

func oauthRegistrationRefused(f *fixture) {
	many := make([]string, 21)
	for i := range many {
		many[i] = callback + strings.Repeat("x", i)
	}
	uris := []string{callback}
	for name, c := range map[string]struct {
		r        souvenir.ClientRegistration
		kind     *souvenir.Error
		code     string
		argument string
	}{
		"no redirect URI": {souvenir.ClientRegistration{}, souvenir.ErrInvalid, "invalid_redirect_uri", "redirect_uris"},
		"many": {souvenir.ClientRegistration{RedirectURIs: many}, souvenir.ErrTooLarge, "invalid_redirect_uri",
			"redirect_uris"},
		"javascript": {souvenir.ClientRegistration{RedirectURIs: []string{callback, "javascript:alert(1)"}},
			souvenir.ErrInvalid, "invalid_redirect_uri", "redirect_uris"},
		"http": {souvenir.ClientRegistration{RedirectURIs: []string{"http://app.example/"}},
			souvenir.ErrInvalid, "invalid_redirect_uri", "redirect_uris"},
		"a long one": {souvenir.ClientRegistration{RedirectURIs: []string{callback + strings.Repeat("x", 2048)}},
			souvenir.ErrInvalid, "invalid_redirect_uri", "redirect_uris"},
		"a long name": {souvenir.ClientRegistration{RedirectURIs: uris, ClientName: strings.Repeat("ä", 201)},
			souvenir.ErrTooLarge, "invalid_client_metadata", "client_name"},
		"a blank name": {souvenir.ClientRegistration{RedirectURIs: uris, ClientName: " "}, souvenir.ErrInvalid,
			"invalid_client_metadata", "client_name"},
		"a line break": {souvenir.ClientRegistration{RedirectURIs: uris, ClientName: "a\nb"}, souvenir.ErrInvalid,
			"invalid_client_metadata", "client_name"},
		"a reversed name": {souvenir.ClientRegistration{RedirectURIs: uris, ClientName: "a\u202eb"}, souvenir.ErrInvalid,
			"invalid_client_metadata", "client_name"},
		"a name not UTF-8": {souvenir.ClientRegistration{RedirectURIs: uris, ClientName: "a\xff"}, souvenir.ErrInvalid,
			"invalid_client_metadata", "client_name"},
		"auth method": {souvenir.ClientRegistration{RedirectURIs: uris, TokenEndpointAuthMethod: "private_key_jwt"},
			souvenir.ErrInvalid, "invalid_client_metadata", "token_endpoint_auth_method"},
		"grant types": {souvenir.ClientRegistration{RedirectURIs: uris, GrantTypes: []string{"client_credentials"}},
			souvenir.ErrInvalid, "invalid_client_metadata", "grant_types"},
		"response types": {souvenir.ClientRegistration{RedirectURIs: uris, ResponseTypes: []string{"token"}},
			souvenir.ErrInvalid, "invalid_client_metadata", "response_types"},
		"a script as a link": {souvenir.ClientRegistration{RedirectURIs: uris, ClientURI: "javascript:alert(1)"},
			souvenir.ErrInvalid, "invalid_client_metadata", "client_uri"},
		"large metadata": {souvenir.ClientRegistration{RedirectURIs: uris,
			Extra: map[string]any{"x": strings.Repeat("x", 16<<10)}}, souvenir.ErrTooLarge, "invalid_client_metadata", ""},
		"no JSON": {souvenir.ClientRegistration{RedirectURIs: uris, Extra: map[string]any{"x": func() {}}},
			souvenir.ErrInvalid, "invalid_client_metadata", ""},
		"text not UTF-8": {souvenir.ClientRegistration{RedirectURIs: uris, SoftwareID: "\xff"}, souvenir.ErrInvalid,
			"invalid_client_metadata", "metadata"},
	} {
		_, err := f.store.Accounts().RegisterClient(f.ctx, c.r)
		f.refuses(name, err, c.kind, c.code, "")
		f.failsAt(name, err, c.kind, c.argument)
	}
	for _, request := range []string{`[]`, `"x"`, `null`, `{"redirect_uris": "x"}`, `{"client_name": 7}`,
		`{"grant_types": {}}`} {
		var r souvenir.ClientRegistration
		f.refuses(request, json.Unmarshal([]byte(request), &r), souvenir.ErrInvalid, "invalid_client_metadata", "")
	}
	all, err := f.reader.Accounts().Clients(f.ctx)
	f.check("Clients", err)
	same(f, "clients", all, nil)
}

func oauthPublicClient(f *fixture) {
	c := f.register(souvenir.AuthNone)
	f.equal("secret", c.Secret, "")
	if response := toJSON(c); strings.Contains(response, "secret") {
		f.Errorf(`the response has a secret: %s, want no "secret" in it`, response)
	}
	for _, secret := range []string{"", "something"} {
		_, err := f.reader.Accounts().CheckClient(f.ctx, souvenir.ClientCredentials{ID: c.ID, Secret: secret})
		f.check("CheckClient", err)
	}
	other := f.register("")
	for _, secret := range []string{"", "something", other.Secret + "x", other.Secret[1:], strings.ToUpper(other.Secret)} {
		_, err := f.reader.Accounts().CheckClient(f.ctx, souvenir.ClientCredentials{ID: other.ID, Secret: secret})
		f.refuses("CheckClient with the secret "+secret, err, souvenir.ErrUnauthenticated, "invalid_client", "Invalid client")
	}
	_, err := f.reader.Accounts().CheckClient(f.ctx, souvenir.ClientCredentials{})
	f.refuses("CheckClient of an unknown client", err, souvenir.ErrUnauthenticated, "invalid_client", "Invalid client")
}

func (f *fixture) addClient(n souvenir.NewClient) souvenir.RegisteredClient {
	f.Helper()
	if n.RedirectURIs == nil {
		n.RedirectURIs = []string{callback}
	}
	c, err := f.store.Accounts().AddClient(f.ctx, n)
	f.check("AddClient", err)
	return c
}

func (f *fixture) clientIDs() []string {
	f.Helper()
	all, err := f.reader.Accounts().Clients(f.ctx)
	f.check("Clients", err)
	var ids []string
	for _, c := range all {
		ids = append(ids, c.ID)
	}
	return ids
}

func oauthOwnClients(f *fixture) {
	ann, ben := f.as(souvenir.Access{User: "ann"}), f.as(souvenir.Access{User: "ben"})
	hers, his := ann.addClient(souvenir.NewClient{Name: "Hers"}), ben.addClient(souvenir.NewClient{Name: "His"})
	registered := f.register("")
	f.same("ann's", ann.clientIDs(), hers.ID)
	f.same("ben's", ben.clientIDs(), his.ID)
	f.same("the operator's", f.clientIDs(), registered.ID, hers.ID, his.ID)
	all, err := ann.reader.Accounts().Clients(f.ctx)
	f.check("Clients", err)
	f.sameJSON("shown", object(toJSON(all[0])), map[string]any{
		"client_id": hers.ID, "name": "Hers", "redirect_uris": []string{callback},
		"token_endpoint_auth_method": "client_secret_basic",
		"kind":                       "admin", "owner": "ann", "active": true, "created_at": f.clock.Now(),
		"updated_at": f.clock.Now(),
	})
	for _, id := range []string{his.ID, registered.ID, "no-app", ""} {
		_, err := ann.store.Accounts().RegenerateClientSecret(f.ctx, id)
		f.failsAt("RegenerateClientSecret", err, souvenir.ErrNotFound, "client_id", "not an OAuth client of this user")
		f.failsAt("DeactivateClient", ann.store.Accounts().DeactivateClient(f.ctx, id), souvenir.ErrNotFound, "client_id",
			"not an OAuth client of this user")
	}
	for _, id := range []string{hers.ID, registered.ID} {
		_, err = f.store.Accounts().RegenerateClientSecret(f.ctx, id)
		f.check("RegenerateClientSecret by the operator", err)
		f.check("DeactivateClient by the operator", f.store.Accounts().DeactivateClient(f.ctx, id))
	}
	limited := f.as(souvenir.Access{User: "ann", Projects: []string{}})
	_, err = limited.reader.Accounts().Clients(f.ctx)
	f.fails("Clients through a limited view", err, souvenir.ErrForbidden)
	_, err = limited.store.Accounts().AddClient(f.ctx, souvenir.NewClient{RedirectURIs: []string{callback}})
	f.fails("AddClient through a limited view", err, souvenir.ErrForbidden)
	_, err = f.store.As(souvenir.Access{User: "ann", ReadOnly: true}).Accounts().AddClient(f.ctx,
		souvenir.NewClient{RedirectURIs: []string{callback}})
	f.fails("AddClient through a read-only view", err, souvenir.ErrReadOnly)
}

func oauthChosenClient(f *fixture) {
	ann := f.as(souvenir.Access{User: "ann"})
	c := ann.addClient(souvenir.NewClient{ID: "my-app_1.0~x", Secret: "s3cret", Name: "My App",
		RedirectURIs: []string{"http://localhost:3000/cb", callback}})
	f.equal("chosen", []string{c.ID, c.Secret, c.Metadata.ClientName}, []string{"my-app_1.0~x", "s3cret", "My App"})
	f.equal("shown", object(toJSON(c)),
		object(`{"client_id": "my-app_1.0~x", "client_secret": "s3cret", "client_secret_expires_at": 0, "name": "My App",
			"client_name": "My App", "active": true,
		"redirect_uris": ["http://localhost:3000/cb", "`+callback+
			`"], "token_endpoint_auth_method": "client_secret_basic", "grant_types": ["authorization_code", "refresh_token"],
		"response_types": ["code"], "client_id_issued_at": `+fmt.Sprint(f.clock.Now().Unix())+`}`))
	_, err := f.reader.Accounts().CheckClient(f.ctx, souvenir.ClientCredentials{ID: "my-app_1.0~x", Secret: "s3cret"})
	f.check("CheckClient", err)
	for _, view := range []*fixture{ann, f.as(souvenir.Access{User: "ben"})} {
		_, err = view.store.Accounts().AddClient(f.ctx, souvenir.NewClient{ID: c.ID, RedirectURIs: []string{callback}})
		f.failsAt("AddClient again", err, souvenir.ErrConflict, "client_id", "taken")
	}
	f.equal("no name", ann.addClient(souvenir.NewClient{ID: "x"}).Metadata.ClientName, "x")
	f.equal("no secret", ann.addClient(souvenir.NewClient{AuthMethod: souvenir.AuthNone}).Secret, "")
	for name, c := range map[string]struct {
		n        souvenir.NewClient
		kind     *souvenir.Error
		argument string
	}{
		"a URL":            {souvenir.NewClient{ID: "https://app.example/client"}, souvenir.ErrInvalid, "client_id"},
		"another URL":      {souvenir.NewClient{ID: "HTTP:x"}, souvenir.ErrInvalid, "client_id"},
		"a space":          {souvenir.NewClient{ID: "a b"}, souvenir.ErrInvalid, "client_id"},
		"no ASCII":         {souvenir.NewClient{ID: "ä"}, souvenir.ErrInvalid, "client_id"},
		"a long id":        {souvenir.NewClient{ID: strings.Repeat("x", 129)}, souvenir.ErrTooLarge, "client_id"},
		"a long secret":    {souvenir.NewClient{Secret: strings.Repeat("x", 257)}, souvenir.ErrTooLarge, "client_secret"},
		"a secret, broken": {souvenir.NewClient{Secret: "a\nb"}, souvenir.ErrInvalid, "client_secret"},
		"a secret of none": {souvenir.NewClient{Secret: "x", AuthMethod: souvenir.AuthNone}, souvenir.ErrInvalid,
			"client_secret"},
		"an auth method": {souvenir.NewClient{AuthMethod: "tls"}, souvenir.ErrInvalid, "token_endpoint_auth_method"},
		"a name":         {souvenir.NewClient{Name: "a\x00"}, souvenir.ErrInvalid, "client_name"},
	} {
		c.n.RedirectURIs = []string{callback}
		_, err := ann.store.Accounts().AddClient(f.ctx, c.n)
		f.failsAt(name, err, c.kind, c.argument)
	}
	_, err = ann.store.Accounts().AddClient(f.ctx, souvenir.NewClient{})
	f.refuses("no redirect URI", err, souvenir.ErrInvalid, "invalid_redirect_uri", "Invalid redirect_uri")
}

func oauthNewSecret(f *fixture) {
	ann := f.as(souvenir.Access{User: "ann"})
	c := ann.addClient(souvenir.NewClient{Name: "App"})
	f.clock.Pass(time.Minute)
	renewed, err := ann.store.Accounts().RegenerateClientSecret(f.ctx, c.ID)
	f.check("RegenerateClientSecret", err)
	f.equal("client", []any{renewed.ID, renewed.Metadata.ClientName, renewed.UpdatedAt}, []any{c.ID, "App", f.clock.Now()})
	_, err = f.reader.Accounts().CheckClient(f.ctx, credentials(renewed))
	f.check("CheckClient with the new secret", err)
	_, err = f.reader.Accounts().CheckClient(f.ctx, credentials(c))
	f.refuses("CheckClient with the old secret", err, souvenir.ErrUnauthenticated, "invalid_client", "Invalid client")
	public := ann.addClient(souvenir.NewClient{AuthMethod: souvenir.AuthNone})
	_, err = ann.store.Accounts().RegenerateClientSecret(f.ctx, public.ID)
	f.failsAt("RegenerateClientSecret of a client without one", err, souvenir.ErrInvalid, "client_id", "none")
}

func oauthDeactivated(f *fixture) {
	ann := f.as(souvenir.Access{User: "ann"})
	c := ann.addClient(souvenir.NewClient{ID: "app"})
	tokens := ann.obtainTokens(c)
	code := ann.authorize(c)
	f.check("DeactivateClient", ann.store.Accounts().DeactivateClient(f.ctx, c.ID))
	f.check("DeactivateClient again", ann.store.Accounts().DeactivateClient(f.ctx, c.ID))
	got, err := f.reader.Accounts().GetClient(f.ctx, c.ID)
	f.check("GetClient", err)
	f.equal("active", got.Active, false)
	f.same("listed", ann.clientIDs(), "app")
	_, err = f.reader.Accounts().CheckClient(f.ctx, credentials(c))
	f.refuses("CheckClient", err, souvenir.ErrUnauthenticated, "invalid_client", "Invalid client")
	_, err = ann.store.Accounts().Authorize(f.ctx, asking(c))
	f.refuses("Authorize", err, souvenir.ErrUnauthenticated, "invalid_client", "Invalid client")
	_, err = f.store.Accounts().ExchangeCode(f.ctx, exchanging(c, code))
	f.refuses("ExchangeCode", err, souvenir.ErrUnauthenticated, "invalid_client", "Invalid client")
	_, err = f.store.Accounts().RefreshTokens(f.ctx, refreshing(c, tokens))
	f.refuses("RefreshTokens", err, souvenir.ErrUnauthenticated, "invalid_client", "Invalid client")
	f.refuses("RevokeGrantByToken", f.store.Accounts().RevokeGrantByToken(f.ctx,
		souvenir.Revocation{Client: credentials(c), Token: tokens.RefreshToken}), souvenir.ErrUnauthenticated,
		"invalid_client", "Invalid client")
	_, err = f.reader.Accounts().CheckAccessToken(f.ctx, checking(tokens))
	f.refuses("CheckAccessToken", err, souvenir.ErrUnauthenticated, "invalid_token", "Invalid token")
	_, err = ann.store.Accounts().RegenerateClientSecret(f.ctx, c.ID)
	f.failsAt("RegenerateClientSecret", err, souvenir.ErrInvalid, "client_id", "deactivated")
	_, err = ann.store.Accounts().AddClient(f.ctx, souvenir.NewClient{ID: "app", RedirectURIs: []string{callback}})
	f.fails("AddClient with its id", err, souvenir.ErrConflict)
	grants, err := ann.reader.Accounts().Grants(f.ctx)
	f.check("Grants", err)
	same(f, "grants", grants, nil)
}

func oauthDocument(f *fixture) {
	const url = "https://app.example/oauth/client.json"
	d := souvenir.DocumentClient{URL: url, ExpiresAt: f.clock.Now().Add(time.Hour),
		Registration: souvenir.ClientRegistration{
			RedirectURIs: []string{callback}, ClientName: "App",
			Extra: map[string]any{"client_id": url, "application_type": "native"}}}
	c, err := f.store.Accounts().PutDocumentClient(f.ctx, d)
	f.check("PutDocumentClient", err)
	f.equal("client", []any{c.ID, c.Kind, c.Active, c.ExpiresAt, c.Metadata.TokenEndpointAuthMethod},
		[]any{url, souvenir.ClientDocument, true, d.ExpiresAt, souvenir.AuthNone})
	f.clock.Pass(time.Minute)
	d.Registration.ClientName, d.ExpiresAt = "Renamed", time.Time{}
	_, err = f.store.Accounts().PutDocumentClient(f.ctx, d)
	f.check("PutDocumentClient again", err)
	got, err := f.reader.Accounts().GetClient(f.ctx, url)
	f.check("GetClient", err)
	f.equal("renewed", []any{got.Metadata.ClientName, got.ExpiresAt, got.UpdatedAt, got.CreatedAt},
		[]any{"Renamed", time.Time{}, f.clock.Now(), c.CreatedAt})
	_, err = f.reader.Accounts().CheckClient(f.ctx, souvenir.ClientCredentials{ID: url})
	f.check("CheckClient", err)
	for _, wrong := range []string{"", "app", "http://app.example/c", "https://app.example", "https://app.example/",
		"https://u@app.example/c", "https://app.example/c#f", "https://app.example/c?q", "https://app.example/a/../c",
		"https://app.example/./c", "https:///c", "https://app.example/c d"} {
		d := d
		d.URL, d.Registration.Extra = wrong, nil
		_, err := f.store.Accounts().PutDocumentClient(f.ctx, d)
		f.refuses("PutDocumentClient of "+wrong, err, souvenir.ErrInvalid, "invalid_client", "Invalid client")
	}
	for argument, change := range map[string]func(*souvenir.ClientRegistration){
		"client_id": func(r *souvenir.ClientRegistration) {
			r.Extra = map[string]any{"client_id": url +
				"x"}
		},
		"client_name": func(r *souvenir.ClientRegistration) { r.ClientName = "" },
		"token_endpoint_auth_method": func(
			r *souvenir.ClientRegistration) {
			r.TokenEndpointAuthMethod = souvenir.AuthSecretPost
		},
	} {
		d := d
		change(&d.Registration)
		_, err := f.store.Accounts().PutDocumentClient(f.ctx, d)
		f.refuses(argument, err, souvenir.ErrInvalid, "invalid_client_metadata", "")
		f.failsAt(argument, err, souvenir.ErrInvalid, argument)
	}
	client := souvenir.RegisteredClient{Client: got}
	t := f.obtainTokens(client)
	d.Registration.GrantTypes = []string{"authorization_code"}
	_, err = f.store.Accounts().PutDocumentClient(f.ctx, d)
	f.check("PutDocumentClient without refresh_token", err)
	_, err = f.store.Accounts().RefreshTokens(f.ctx, refreshing(client, t))
	f.refuses("RefreshTokens after that", err, souvenir.ErrInvalid, "unauthorized_client", "")
	f.check("DeactivateClient", f.store.Accounts().DeactivateClient(f.ctx, url))
	_, err = f.store.Accounts().PutDocumentClient(f.ctx, d)
	f.refuses("PutDocumentClient of a deactivated one", err, souvenir.ErrUnauthenticated, "invalid_client",
		"Invalid client")
}

func oauthForgotten(f *fixture) {
	ann := f.as(souvenir.Access{User: "ann"})
	late := f.register(souvenir.AuthNone)
	f.clock.Pass(25 * time.Hour)
	ann.obtainTokens(late) // nothing has been forgotten yet
	unused, used, made := f.register(souvenir.AuthNone), f.register(souvenir.AuthNone), ann.addClient(souvenir.NewClient{})
	tokens := ann.obtainTokens(used)
	grants, err := ann.reader.Accounts().Grants(f.ctx)
	f.check("Grants", err)
	f.clock.Pass(23 * time.Hour)
	f.register("")
	f.equal("after 23 hours", len(f.clientIDs()), 5)
	f.equal("grants", len(grants), 2)
	f.check("RevokeGrant", ann.store.Accounts().RevokeGrant(f.ctx, grants[0].ID))
	f.clock.Pass(2 * time.Hour)
	f.register("")
	_, err = f.reader.Accounts().GetClient(f.ctx, unused.ID)
	f.fails("GetClient of an unused one", err, souvenir.ErrNotFound)
	f.clock.Pass(365 * 24 * time.Hour)
	newest := f.register("")
	for _, c := range []souvenir.RegisteredClient{late, used, made, newest} {
		_, err := f.reader.Accounts().GetClient(f.ctx, c.ID)
		f.check("GetClient after a year", err)
	}
	f.equal("after a year", len(f.clientIDs()), 4)
	f.fails("RevokeGrant of one that was revoked long ago", ann.store.Accounts().RevokeGrant(f.ctx, grants[0].ID),
		souvenir.ErrNotFound)
	_, err = f.store.Accounts().RefreshTokens(f.ctx, refreshing(used, tokens))
	f.refuses("RefreshTokens after a year", err, souvenir.ErrInvalid, "invalid_grant", "Invalid refresh_token")
}

func oauthOperatorOnly(f *fixture) {
	view := f.store.As(souvenir.Access{})
	for name, err := range map[string]error{
		"RegisterClient":     second(view.Accounts().RegisterClient(f.ctx, souvenir.ClientRegistration{})),
		"PutDocumentClient":  second(view.Accounts().PutDocumentClient(f.ctx, souvenir.DocumentClient{})),
		"GetClient":          second(view.Accounts().GetClient(f.ctx, "")),
		"CheckClient":        second(view.Accounts().CheckClient(f.ctx, souvenir.ClientCredentials{})),
		"CheckAuthorization": second(view.Accounts().CheckAuthorization(f.ctx, souvenir.Authorization{})),
		"ExchangeCode":       second(view.Accounts().ExchangeCode(f.ctx, souvenir.CodeExchange{})),
		"RefreshTokens":      second(view.Accounts().RefreshTokens(f.ctx, souvenir.TokenRefresh{})),
		"RevokeGrantByToken": view.Accounts().RevokeGrantByToken(f.ctx, souvenir.Revocation{}),
		"SigningKeys":        second(view.Accounts().SigningKeys(f.ctx)),
		"GetSealingKey":      second(view.Accounts().GetSealingKey(f.ctx)),
		"UpdateSharedValues": view.Accounts().UpdateSharedValues(f.ctx, souvenir.SharedValuesUpdate{}),
		"RotateSigningKey":   second(view.Accounts().RotateSigningKey(f.ctx)),
		"CheckAccessToken":   second(view.Accounts().CheckAccessToken(f.ctx, souvenir.AccessTokenCheck{})),
	} {
		f.fails(name+" on a view", err, souvenir.ErrForbidden, "whole store")
	}
}

func second[T any](_ T, err error) error { return err }
