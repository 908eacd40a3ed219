package authserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/route"
	"github.com/souvenir-ai/souvenir/server/internal/signin"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// The authorization endpoint (RFC 6749, section 3.1): a client sends a browser here, the person signs in and
// decides (consent.go), and the browser carries a code, or the error, back to the client.

// asking is an authorization request whose client and redirect URI are valid: from here on errors go to the client.
type asking struct {
	parameters url.Values
	client     souvenir.Client
	clientID   string
	redirect   string
	state      string // empty: none was sent, or several

	// Set by checkAuthorizationRequest.
	scopes   []souvenir.Scope // at least one, in the order of souvenir.Scopes
	resource string           // canonical; empty: none was named
}

// Errors of the authorization endpoint that the store has no kind for (RFC 6749, section 4.1.2.1, and OpenID
// Connect Core, section 3.1.2.6).
const (
	errUnsupportedResponseType = "unsupported_response_type"
	errServer                  = "server_error"
	errLoginRequired           = "login_required"
	errConsentRequired         = "consent_required"
	errNoRequestObject         = "request_not_supported"
	errNoRequestURI            = "request_uri_not_supported"
)

// query is the request in canonical form, for links and forms.
func (a *asking) query() string { return a.parameters.Encode() }

// prompts returns the values of the parameter prompt (OpenID Connect Core, section 3.1.2.1).
func (a *asking) prompts() []string { return strings.Fields(a.parameters.Get("prompt")) }

// authorize handles an authorization request: it checks the request, finds out who is signed in, and asks for
// consent.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
	a, err := s.readAsking(r.Context(), r.URL.RawQuery)
	if err != nil {
		return cannotConnect(a, err)
	}
	wrong := s.checkAuthorizationRequest(r.Context(), a)
	c, err := s.signin.RequirePerson(r, route.Person)
	silent := slices.Contains(a.prompts(), "none")
	switch {
	case errors.Is(err, web.ErrSignIn) && a.leadsAnywhere() && silent:
		return cannotConnect(a, &failure.Error{Status: http.StatusBadRequest,
			Message: "the application asks for access without asking you, which is not possible here"})
	case errors.Is(err, web.ErrSignIn) && a.leadsAnywhere():
		return web.Redirect(s.signInFor(a, "")), nil
	case wrong != nil:
		return s.refuseAsking(r, a, wrong)
	case errors.Is(err, web.ErrSignIn) && silent:
		return s.refuseAsking(r, a, oauthError(errLoginRequired, "prompt", "no user has signed in, and prompt is none"))
	case errors.Is(err, web.ErrSignIn):
		return web.Redirect(s.signInFor(a, "")), nil
	case err != nil:
		return nil, err
	case silent: // any program can pose as a client without a secret: only the person can tell
		return s.refuseAsking(r, a, oauthError(errConsentRequired, "prompt",
			"the user is asked each time, so prompt must not be none"))
	case slices.Contains(a.prompts(), "login"):
		return web.Redirect(s.signInFor(a, signInAgain)), nil
	}
	request.Of(r.Context()).Caller = c
	return s.askConsent(r, c, a)
}

// readAsking reads a request up to the point where an answer has a valid destination. Errors until then are shown to
// the person: a redirect would lead wherever the author of a link wanted. If the client is known, the request is
// returned together with such an error.
func (s *Server) readAsking(ctx context.Context, query string) (*asking, error) {
	parameters, err := url.ParseQuery(strings.ReplaceAll(query, ";", "%3B")) // a semicolon is no separator here
	if err != nil {
		return nil, &failure.Error{Status: http.StatusBadRequest, Message: "the request cannot be read: " + err.Error()}
	}
	for name, values := range parameters {
		// RFC 6749, section 3.1: a parameter without a value counts as omitted.
		if values = slices.DeleteFunc(values, func(v string) bool { return v == "" }); len(values) == 0 {
			delete(parameters, name)
		} else {
			parameters[name] = values
		}
	}
	a := &asking{parameters: parameters}
	if size := len(a.query()); size > signin.MaxNext {
		return nil, &failure.Error{Status: http.StatusBadRequest,
			Message: fmt.Sprintf("the request is %d bytes long; at most %d are allowed", size, signin.MaxNext)}
	}
	one := func(name, refusal string) (string, error) {
		switch values := parameters[name]; len(values) {
		case 0:
			return "", &failure.Error{Status: http.StatusBadRequest, Message: refusal + ": " + name + " is missing"}
		case 1:
			return values[0], nil
		}
		return "", &failure.Error{Status: http.StatusBadRequest, Message: refusal + ": " + name + " is given more than once"}
	}
	if a.clientID, err = one("client_id", "Invalid client"); err != nil {
		return nil, err
	}
	if a.client, err = s.client(ctx, a.clientID); err != nil {
		return nil, onPage(err)
	}
	if a.redirect, err = one("redirect_uri", "Invalid redirect_uri"); err != nil {
		return a, err
	}
	if !slices.ContainsFunc(a.client.Metadata.RedirectURIs,
		func(uri string) bool { return souvenir.MatchRedirectURI(uri, a.redirect) }) {
		return a, &failure.Error{Status: http.StatusBadRequest, Message: "Invalid redirect_uri: " +
			failure.Quote(a.redirect) + " is not one that the application has registered"}
	}
	if states := parameters["state"]; len(states) == 1 {
		a.state = states[0]
	}
	return a, nil
}

// leadsAnywhere reports whether the redirect URI may be anyone's: anyone can register a client with any URI, and so
// make links of this service that lead there, even for people who do not know the service. So browsers without a
// session are not redirected there without asking (RFC 9700, section 4.11.2). Such links cannot target programs on the
// device.
func (a *asking) leadsAnywhere() bool {
	u, err := url.Parse(a.redirect)
	return a.client.Kind != souvenir.ClientAdmin && (err != nil || u.Scheme != "http")
}

// onPage turns an error about a client into one that is shown to a person: always a bad request, no matter which status
// a program would get.
func onPage(err error) error {
	if status, message := failure.Describe(err); status < http.StatusInternalServerError {
		return &failure.Error{Status: http.StatusBadRequest, Message: message}
	}
	return err
}

// cannotConnect is the page for a request whose answer cannot be sent to the application. It names the application, if
// it is known.
func cannotConnect(a *asking, err error) (any, error) {
	var refused *failure.Error
	if !errors.As(err, &refused) || refused.Status != http.StatusBadRequest {
		return nil, err
	}
	title, back := "Could not connect the application", "the application"
	if a != nil && a.client.Metadata.ClientName != "" {
		back = "“" + web.ShortName(a.client.Metadata.ClientName) + "”"
		title = "Could not connect " + back
	}
	return web.Page{Template: "error", Title: title, Status: refused.Status,
		Data: "Go back to " + back + " and connect again. If that does not help, tell its developers: " +
			web.Sentence(refused.Message)}, nil
}

// checkAuthorizationRequest checks the rest of a request. Errors meant for the client carry a [*souvenir.OAuthError].
func (s *Server) checkAuthorizationRequest(ctx context.Context, a *asking) error {
	for _, name := range slices.Sorted(maps.Keys(a.parameters)) {
		if len(a.parameters[name]) > 1 && name != "resource" { // which may be repeated (RFC 8707, section 2)
			return oauthError(souvenir.OAuthInvalidRequest, name, name+" is given more than once")
		}
	}
	if a.parameters.Has("request") {
		return oauthError(errNoRequestObject, "request", "request objects are not supported; send the parameters themselves")
	}
	if a.parameters.Has("request_uri") {
		return oauthError(errNoRequestURI, "request_uri", "request_uri is not supported; send the parameters themselves")
	}
	switch kind := a.parameters.Get("response_type"); kind {
	case "code":
	case "":
		return oauthError(souvenir.OAuthInvalidRequest, "response_type", "response_type is missing; expected code")
	default:
		return oauthError(errUnsupportedResponseType, "response_type", "response_type is "+failure.Quote(kind)+
			"; expected code")
	}
	if mode := a.parameters.Get("response_mode"); mode != "" && mode != "query" {
		return oauthError(souvenir.OAuthInvalidRequest, "response_mode", "response_mode is "+failure.Quote(mode)+
			"; query is the only one")
	}
	if prompts := a.prompts(); slices.Contains(prompts, "none") && len(prompts) > 1 {
		return oauthError(souvenir.OAuthInvalidRequest, "prompt", "prompt has none and other values; send none alone")
	}
	var err error
	if a.scopes, err = askedScopes(a.parameters.Get("scope")); err != nil {
		return err
	}
	for _, named := range a.parameters["resource"] {
		resource, err := s.resource(named)
		if err != nil {
			return err
		}
		if a.resource != "" && a.resource != resource {
			return oauthError(souvenir.OAuthInvalidTarget, "resource", "resource names two resources; ask for one at a time")
		}
		a.resource = resource
	}
	_, err = s.store.Accounts().CheckAuthorization(ctx, a.authorization())
	return err
}

// authorization converts the request for the store.
func (a *asking) authorization() souvenir.Authorization {
	return souvenir.Authorization{
		ClientID: a.clientID, RedirectURI: a.redirect, Scopes: a.scopes, Resource: a.resource,
		CodeChallenge: a.parameters.Get("code_challenge"), CodeChallengeMethod: a.parameters.Get("code_challenge_method"),
	}
}

// askedScopes returns the scopes that a client asks for. Unknown ones are ignored, as RFC 6749, section 3.3,
// allows: clients ask for offline_access, or for every scope of some other server. A request with no scope of this
// server, and none of OpenID Connect's, is an error: it is meant for another server.
func askedScopes(parameter string) ([]souvenir.Scope, error) {
	words := strings.Fields(parameter)
	known := slices.DeleteFunc(souvenir.Scopes(),
		func(scope souvenir.Scope) bool { return !slices.Contains(words, string(scope)) })
	if len(known) > 0 {
		return known, nil
	}
	if !slices.ContainsFunc(words, foreignScope) {
		return souvenir.DefaultScopes(), nil
	}
	return nil, oauthError(souvenir.OAuthInvalidScope, "scope", "scope is "+failure.Quote(parameter)+"; there are "+
		strings.Join(ScopeNames(souvenir.Scopes()), " "))
}

// foreignScope reports whether an unknown scope is meant for another server: all are but those of OpenID Connect.
func foreignScope(scope string) bool {
	return !slices.Contains([]string{"openid", "profile", "email", "offline_access"}, scope)
}

// refuseAsking sends an error to the client. The cause of an internal error is logged, and the client gets
// server_error, since a browser between the two cannot be answered with 500 (RFC 6749, section 4.1.2.1).
func (s *Server) refuseAsking(r *http.Request, a *asking, err error) (any, error) {
	var known *souvenir.Error
	if errors.As(err, &known) && slices.Contains([]string{"client_id", "redirect_uri"}, known.Argument) {
		return cannotConnect(a, onPage(err)) // the client has changed since
	}
	if r.Context().Err() != nil {
		return nil, err // the caller is gone
	}
	var say *souvenir.OAuthError
	if !errors.As(err, &say) {
		e := request.Of(r.Context())
		s.log.ErrorContext(r.Context(), "could not authorize an application", "route", e.Route, "error",
			err)
		say = &souvenir.OAuthError{Code: errServer, Description: "the server failed"}
	}
	return s.back(a, url.Values{"error": {say.Code}, "error_description": {say.Description}}), nil
}

// back redirects the browser to the client, with an answer. The answer names its issuer (RFC 9207), so that a
// client of several servers cannot be made to mistake one for another. The redirect URI stays as it was registered,
// its query included.
func (s *Server) back(a *asking, answer url.Values) web.Redirect {
	answer.Set("iss", s.site.PublicURL)
	if a.state != "" {
		answer.Set("state", a.state)
	}
	separator := "?"
	if _, query, found := strings.Cut(a.redirect, "?"); found {
		separator = "&"
		if query == "" || strings.HasSuffix(query, "&") {
			separator = ""
		}
	}
	return web.Redirect(a.redirect + separator + answer.Encode())
}

// signInFor returns the address of the sign-in page that leads back to the request. The sign-in satisfies a request
// that demands a fresh one.
func (s *Server) signInFor(a *asking, parameters string) string {
	rest := url.Values{}
	for name, values := range a.parameters {
		if name != "prompt" {
			rest[name] = values
		}
	}
	return s.site.Path("/login") + "?" + parameters + "next=" + url.QueryEscape(route.AuthorizePath+"?"+rest.Encode())
}

const (
	signInAgain = "again=1&" // even for a signed-in person
)

// PageRoutes are the pages on which a person authorizes an application.
func (s *Server) PageRoutes() []route.Route {
	return []route.Route{
		route.Get(route.AuthorizePath, route.Public, s.authorize), // it authenticates the browser itself
		route.Post(route.AuthorizePath, route.Public, s.decide),
		route.Get("/authorize", route.Public, s.authorize), // the path that old clients guess
		route.Post("/authorize", route.Public, s.decide),
	}
}
