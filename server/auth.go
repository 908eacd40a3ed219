package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/authserver"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/route"
	"github.com/souvenir-ai/souvenir/tools"
)

const (
	tokenHeader    = "X-Mcp-Token"
	tokenParameter = "token"
)

// presented returns the credential of a request. If several places have one, the first non-empty one decides, valid or
// not. cookie reports that it came in a cookie, which browsers send on their own.
func (s *Server) presented(r *http.Request) (value string, cookie, found bool) {
	scheme, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	switch {
	case strings.EqualFold(scheme, "Bearer"):
		return strings.TrimSpace(token), false, true
	case strings.HasPrefix(scheme, request.MCPTokenPrefix): // a token without a scheme
		return scheme, false, true
	}
	if token := r.Header.Get(tokenHeader); token != "" {
		return strings.TrimSpace(token), false, true
	}
	if c, err := r.Cookie(request.CredentialCookie); err == nil && c.Value != "" {
		return c.Value, true, true
	}
	if s.options.NoQueryTokens {
		return "", false, false
	}
	token = r.URL.Query().Get(tokenParameter)
	return token, false, token != ""
}

// authorize authenticates a request, and checks that it may use the route.
func (s *Server) authorize(r *http.Request, needs route.Need) (request.Caller, error) {
	if needs == route.Person || needs == route.Administrator {
		if c, err := r.Cookie(request.CredentialCookie); err == nil {
			leave, err := s.waitForCheck(r, c.Value)
			if err != nil {
				return request.Caller{}, err
			}
			defer leave()
		}
		return s.signin.RequirePerson(r, needs)
	}
	p, err := s.principal(r)
	if err != nil {
		return request.Caller{}, err
	}
	access := p.Access
	access.Through = request.Through(r)
	c := request.Caller{Principal: p, Store: s.store.As(access)}
	if scope := needs.Scope(); scope != "" && !p.Allows(scope) {
		return c, failure.MissingScope(scope)
	}
	return c, nil
}

// principal returns the principal of a request.
func (s *Server) principal(r *http.Request) (souvenir.Principal, error) {
	if p, known, err := s.fromProgram(r); known || err != nil {
		return p, err
	}
	token, cookie, found := s.presented(r)
	if !found && r.Header.Get("Authorization") != "" {
		return souvenir.Principal{},
			failure.Unauthenticated("the Authorization header has the scheme " + failure.Quote(authorizationScheme(r)) +
				"; send an MCP token or an OAuth access token as Authorization: Bearer TOKEN")
	}
	if !found {
		return souvenir.Principal{},
			failure.Unauthenticated("no credential was sent; send an MCP token or an OAuth access token as Authorization: " +
				"Bearer TOKEN")
	}
	p, err := s.checkInTurn(r, token)
	switch {
	case errors.Is(err, souvenir.ErrUnauthenticated):
		return p, &badCredential{err}
	case err != nil:
		return p, err
	case cookie:
		// A page of another site may have caused the request.
		if err := s.site.CrossSite.Check(r); err != nil {
			return p, otherOrigin(err)
		}
	}
	return p, nil
}

// authorizationScheme returns the first word of the Authorization header, if it can be a scheme (RFC 9110, section
// 11.1): without a scheme, the word may be a secret.
func authorizationScheme(r *http.Request) string {
	scheme, _, found := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if !found {
		return ""
	}
	return scheme
}

func otherOrigin(cause error) error {
	return &souvenir.Error{Kind: souvenir.KindForbidden, Err: cause,
		Message: "a page of another origin sent this with the session of a browser; send a token in the header " +
			"Authorization instead"}
}

// checkInTurn waits for the credential's turn, then calls check.
func (s *Server) checkInTurn(r *http.Request, token string) (souvenir.Principal, error) {
	leave, err := s.waitForCheck(r, token)
	if err != nil {
		return souvenir.Principal{}, err
	}
	defer leave()
	return s.check(r.Context(), token)
}

// check returns the principal of a credential.
func (s *Server) check(ctx context.Context, token string) (souvenir.Principal, error) {
	switch {
	case strings.HasPrefix(token, request.MCPTokenPrefix):
		return s.store.Accounts().CheckToken(ctx, token)
	case strings.HasPrefix(token, request.SessionPrefix):
		return s.store.Accounts().CheckSignIn(ctx, token)
	}
	if s.options.PublicURL == "" || token == "" {
		return souvenir.Principal{},
			failure.Unauthenticated("the credential is not an MCP token; these begin with " + request.MCPTokenPrefix)
	}
	return s.store.Accounts().CheckAccessToken(ctx,
		souvenir.AccessTokenCheck{Token: token, Issuer: s.options.PublicURL, Audience: s.oauth.Audience()})
}

// hasEnded reports whether the credential of a request, which was valid at its start, has since ended or been paused.
// An embedding program must itself end the requests that it has authenticated.
func (s *Server) hasEnded(r *http.Request) bool {
	token, _, found := s.presented(r)
	if s.options.Authenticate != nil || !found {
		return false
	}
	_, err := s.check(r.Context(), token)
	return errors.Is(err, souvenir.ErrUnauthenticated) || errors.Is(err, souvenir.ErrForbidden)
}

// badCredential is the error for an invalid credential.
type badCredential struct{ err error }

func (e *badCredential) Error() string { return e.err.Error() }
func (e *badCredential) Unwrap() error { return e.err }

// challenge tells a client, in WWW-Authenticate, where to get a credential and with which scopes (RFC 6750, section 3,
// and RFC 9728, section 5.1). A client without a valid one gets all scopes that it will need, since few clients can ask
// for more later.
func (s *Server) challenge(h http.Header, r *http.Request, err error) {
	var bad *badCredential
	var missing *tools.MissingScope
	var parameters []string
	scope := defaultScopes()
	switch {
	case errors.As(err, &missing):
		parameters, scope = append(parameters, `error="insufficient_scope"`),
			withGranted(request.Of(r.Context()).Caller, missing.Scope)
	case errors.Is(err, souvenir.ErrForbidden) || errors.Is(err, souvenir.ErrReadOnly):
		return // another credential of the same user would not help
	case errors.As(err, &bad):
		parameters = append(parameters, `error="invalid_token"`)
	}
	if s.options.PublicURL != "" {
		parameters = append(parameters, `resource_metadata="`+s.oauth.ResourceMetadata(r.URL.Path)+`"`)
	}
	h.Set("WWW-Authenticate", "Bearer "+strings.Join(append(parameters, `scope="`+scope+`"`), ", "))
}

// withGranted returns the scopes that a client should request: its current ones and the missing one, since a new
// request replaces them.
func withGranted(c request.Caller, missing souvenir.Scope) string {
	var words []string
	for _, scope := range souvenir.Scopes() {
		if scope == missing || c.ClientID != "" && slices.Contains(c.Scopes, scope) {
			words = append(words, string(scope))
		}
	}
	return strings.Join(words, " ")
}

// defaultScopes are the scopes of a client that names none.
func defaultScopes() string {
	return strings.Join(authserver.ScopeNames(souvenir.DefaultScopes()), " ")
}

// fromProgram asks the embedding program for the principal of a request. There may be none.
func (s *Server) fromProgram(r *http.Request) (p souvenir.Principal, known bool, err error) {
	if s.options.Authenticate == nil {
		return p, false, nil
	}
	given, err := s.options.Authenticate(r)
	if err != nil {
		return p, false, signInElsewhere(err)
	}
	if given == nil {
		return p, false, nil
	}
	// Browsers may send the program's credentials on their own.
	if err := s.site.CrossSite.Check(r); err != nil {
		return p, false, otherOrigin(err)
	}
	p = *given
	p.SignInID, p.ConfirmedAt = "", time.Time{} // the program's own sessions are not the store's
	if p.Access.User == "" {
		return p, false, errors.New("server.Options.Authenticate returned a principal without Access.User; " +
			"Access.User is required")
	}
	if p.Access.Namespace != "" {
		return p, false, errors.New("server.Options.Authenticate returned a principal with Access.Namespace " +
			failure.Quote(p.Access.Namespace) + "; the server works in the default namespace")
	}
	p.User, err = s.store.Accounts().GetUser(r.Context(), p.Access.User)
	switch {
	case errors.Is(err, souvenir.ErrNotFound):
		p.User = souvenir.User{ID: p.Access.User, Role: souvenir.RoleUser} // a view's first write creates one
	case err != nil:
		return p, false, err
	case p.User.Disabled:
		return p, false, failure.Unauthenticated("user " + failure.Quote(p.Access.User) + " is disabled")
	}
	p.Access.User = p.User.ID
	if p.Scopes == nil {
		p.Scopes = souvenir.DefaultScopes()
	}
	if !p.Allows(souvenir.ScopeMemoryWrite) && !p.Allows(souvenir.ScopeFilesWrite) && !p.Allows(souvenir.ScopeAccount) {
		p.Access.ReadOnly = true
	}
	return p, true, nil
}

// signInElsewhere adds a message to an error that only says that the caller is not signed in.
func signInElsewhere(err error) error {
	var known *souvenir.Error
	if errors.As(err, &known) && known.Kind == souvenir.KindUnauthenticated && known.Message == "" {
		return failure.Unauthenticated("no user has signed in")
	}
	return err
}
