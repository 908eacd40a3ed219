package authserver

import (
	"cmp"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// TokenRequest is the form of a request to the token endpoint.
type TokenRequest struct {
	clientForm
	GrantType    string   `json:"grant_type"`
	Code         string   `json:"code,omitempty"`
	RedirectURI  string   `json:"redirect_uri,omitempty"`
	CodeVerifier string   `json:"code_verifier,omitempty"`
	RefreshToken string   `json:"refresh_token,omitempty"`
	Scope        string   `json:"scope,omitempty"`
	Resource     []string `json:"resource,omitempty"`
}

// Revocation is the form of a request to the revocation endpoint.
type Revocation struct {
	clientForm
	Token         string `json:"token"`
	TokenTypeHint string `json:"token_type_hint,omitempty"` // ignored: tokens of each type are found
}

// clientForm is the part of a form with the credentials of a client.
type clientForm struct {
	ClientID     string `json:"client_id,omitempty"`
	ClientSecret string `json:"client_secret,omitempty"`
}

// token issues tokens, for a code or a refresh token.
func (s *Server) token(w http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
	w.Header().Set("Pragma", "no-cache") // for HTTP/1.0 (RFC 6749, section 5.1)
	var form TokenRequest
	if err := readOAuthForm(w, r, &form); err != nil {
		return nil, err
	}
	client, err := clientCredentials(r, form.clientForm)
	if err != nil {
		return nil, err
	}
	if client.ID == "" {
		return nil, invalidClient("client_id is missing; send it in the form, or with its secret in the Authorization header")
	}
	resource, err := s.resourceOf(form.Resource)
	if err != nil {
		return nil, err
	}
	switch grant := form.GrantType; grant {
	case GrantCode:
		return s.redeemCode(r, client, form, resource)
	case GrantRefresh:
		return s.refresh(r, client, form, resource)
	case "":
		return nil, oauthError(souvenir.OAuthInvalidRequest, "grant_type", "grant_type is missing in the form; expected "+
			GrantCode+" or "+GrantRefresh)
	default:
		return nil, oauthError(souvenir.OAuthUnsupportedGrantType, "grant_type",
			"grant_type is "+failure.Quote(grant)+"; expected "+
				GrantCode+" or "+GrantRefresh)
	}
}

func (s *Server) redeemCode(r *http.Request, client souvenir.ClientCredentials, form TokenRequest,
	resource string) (any, error) {
	if form.Code == "" {
		return nil, oauthError(souvenir.OAuthInvalidRequest, "code", "code is missing in the form")
	}
	return s.store.Accounts().ExchangeCode(r.Context(), souvenir.CodeExchange{
		Client: client, Code: form.Code, RedirectURI: form.RedirectURI, Verifier: form.CodeVerifier,
		Resource: resource, Issuer: s.site.PublicURL, Audience: cmp.Or(resource, s.site.PublicURL),
	})
}

func (s *Server) refresh(r *http.Request, client souvenir.ClientCredentials, form TokenRequest, resource string) (any,
	error) {
	if form.RefreshToken == "" {
		return nil, oauthError(souvenir.OAuthInvalidRequest, "refresh_token", "refresh_token is missing in the form")
	}
	scopes, err := wantedScopes(form.Scope)
	if err != nil {
		return nil, err
	}
	return s.store.Accounts().RefreshTokens(r.Context(), souvenir.TokenRefresh{
		Client: client, RefreshToken: form.RefreshToken, Scopes: scopes,
		Resource: resource, Issuer: s.site.PublicURL, Audience: cmp.Or(resource, s.site.PublicURL),
	})
}

// revoke ends the grant of a token (RFC 7009). The API allows it without client credentials: any holder of the token
// may revoke it, and a thief who does so only helps the owner.
func (s *Server) revoke(w http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
	w.Header().Set("Pragma", "no-cache")
	var form Revocation
	if err := readOAuthForm(w, r, &form); err != nil {
		return nil, err
	}
	client, err := clientCredentials(r, form.clientForm)
	if err != nil {
		return nil, err
	}
	if client.ID == "" && client.Secret != "" {
		return nil, invalidClient("client_secret is given without client_id")
	}
	if err := s.store.Accounts().RevokeGrantByToken(r.Context(),
		souvenir.Revocation{Client: client, Token: form.Token}); err != nil {
		return nil, err
	}
	return struct{}{}, nil // with 200, and no content for the client
}

// readOAuthForm reads a form into a struct. Each parameter occurs at most once, and counts as omitted without a value
// (RFC 6749, section 3.2); resource may be repeated (RFC 8707).
func readOAuthForm(w http.ResponseWriter, r *http.Request, into any) error {
	if given := r.Header.Get("Content-Type"); given != "" {
		if kind, _, err := mime.ParseMediaType(given); err != nil || kind != formType {
			return oauthError(souvenir.OAuthInvalidRequest, "Content-Type", "the body's Content-Type is "+
				failure.Quote(given)+"; expected "+formType)
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, web.MaxForm))
	if err != nil {
		return failure.Unreadable(err)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return oauthError(souvenir.OAuthInvalidRequest, "body", "the body is not valid "+formType+": "+
			err.Error())
	}
	fields := jsonobject.Fields(into)
	for name, values := range form {
		if len(values) > 1 && name != "resource" {
			return oauthError(souvenir.OAuthInvalidRequest, name, failure.Quote(name)+
				" is given more than once in the form")
		}
		switch field := fields[name].(type) {
		case *string:
			*field = values[0]
		case *[]string:
			*field = values
		}
	}
	return nil
}

// clientCredentials returns the client's credentials, from the header (RFC 6749, section 2.3.1) or the form; zero
// if there are none. A client may repeat its id, and must not repeat its secret.
func clientCredentials(r *http.Request, form clientForm) (souvenir.ClientCredentials, error) {
	c := souvenir.ClientCredentials{ID: form.ClientID, Secret: form.ClientSecret}
	if !usesBasic(r) {
		return c, nil // another scheme is meant for others, such as a proxy
	}
	id, secret, ok := r.BasicAuth()
	if !ok {
		return c, invalidClient("the Authorization header is not valid; Basic is base64 of client_id:client_secret")
	}
	id, secret = formDecoded(id), formDecoded(secret)
	switch {
	case c.ID != "" && c.ID != id:
		return c, oauthError(souvenir.OAuthInvalidRequest, "client_id",
			"client_id in the form differs from the one in the Authorization header")
	case c.Secret != "":
		return c, oauthError(souvenir.OAuthInvalidRequest, "client_secret",
			"client_secret is in the form and the Authorization header; send it in one of them")
	case id == "":
		return c, invalidClient("client_id is empty in the Authorization header")
	}
	return souvenir.ClientCredentials{ID: id, Secret: secret}, nil
}

// formDecoded decodes one half of the credentials in a header. Clients must form-encode them, but not all do. Ids
// and secrets contain no spaces, so a plus is a plus, and an invalid escape stands for itself.
func formDecoded(half string) string {
	decoded, err := url.PathUnescape(half)
	if err != nil {
		return half
	}
	return decoded
}

// resourceOf returns the resource that a token is requested for, as the form names it; empty for none. A token is for
// one resource.
func (s *Server) resourceOf(resources []string) (string, error) {
	var named string
	for _, asked := range resources {
		resource, err := s.resource(asked)
		switch {
		case err != nil:
			return "", err
		case named != "" && resource != "" && resource != named:
			return "", oauthError(souvenir.OAuthInvalidTarget, "resource",
				"resource is given more than once in the form; a token is for one resource")
		}
		named = cmp.Or(named, resource)
	}
	return named, nil
}

// wantedScopes returns the scopes that a request names (RFC 6749, section 3.3); nil for none, and for OpenID Connect's
// alone, with which a client may have asked for the grant. Unknown ones are ignored beside known ones.
func wantedScopes(scope string) ([]souvenir.Scope, error) {
	words := strings.Fields(scope)
	known := slices.DeleteFunc(souvenir.Scopes(),
		func(s souvenir.Scope) bool { return !slices.Contains(words, string(s)) })
	switch {
	case len(known) > 0:
		return known, nil
	case !slices.ContainsFunc(words, foreignScope):
		return nil, nil
	}
	return nil, oauthError(souvenir.OAuthInvalidScope, "scope", "scope is "+failure.Quote(scope)+
		"; none of these is a scope of this service: "+strings.Join(ScopeNames(souvenir.Scopes()), " "))
}

// formType is the content type of requests to the token endpoint.
const formType = "application/x-www-form-urlencoded"
