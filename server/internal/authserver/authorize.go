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

// The authorization endpoint (RFC 6749, section 3.1): a client sends a browser here, the person in front of it signs in
// and decides (consent.go), and the browser carries a code, or the reason why there is none, back to the client.

// asking is an authorization request whose client and redirect URI are sound: from then on errors are the client's to
// hear.
type asking struct {
	parameters url.Values
	client     souvenir.Client
	clientID   string
	redirect   string
	state      string // empty: none was sent, or several

	// Of a request that checkAsking let through.
	scopes   []souvenir.Scope // at least one, in the order of souvenir.Scopes
	resource string           // canonical; empty: none was named
}

// What an authorization request may say besides what the store knows of (RFC 6749, section 4.1.2.1, and OpenID Connect
// Core, section 3.1.2.6).
const (
	errUnsupportedResponseType = "unsupported_response_type"
	errServer                  = "server_error"
	errLoginRequired           = "login_required"
	errConsentRequired         = "consent_required"
	errNoRequestObject         = "request_not_supported"
	errNoRequestURI            = "request_uri_not_supported"
)

// query is the request again, in one form, whatever way it was written: for links and forms.
func (a *asking) query() string { return a.parameters.Encode() }

// prompts are the words of the parameter prompt (OpenID Connect Core, section 3.1.2.1).
func (a *asking) prompts() []string { return strings.Fields(a.parameters.Get("prompt")) }

// authorize begins: it looks at the request, sees who is there, and asks.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
	a, err := s.readAsking(r.Context(), r.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	wrong := s.checkAsking(r.Context(), a)
	c, err := s.signin.AdmitPerson(r, route.Person)
	silent := slices.Contains(a.prompts(), "none")
	switch {
	case errors.Is(err, web.ErrSignIn) && a.leadsAnywhere() && silent:
		return nil, &failure.Error{Status: http.StatusBadRequest,
			Message: "an application asks to be let in without anybody being asked, which does not happen here; begin again in the application"}
	case errors.Is(err, web.ErrSignIn) && a.leadsAnywhere():
		return web.Redirect(s.signInFor(a, "")), nil
	case wrong != nil:
		return s.refuseAsking(r, a, wrong)
	case errors.Is(err, web.ErrSignIn) && silent:
		return s.refuseAsking(r, a, oauthError(errLoginRequired, "prompt", "nobody has signed in, and prompt is none"))
	case errors.Is(err, web.ErrSignIn):
		return web.Redirect(s.signInFor(a, "")), nil
	case err != nil:
		return nil, err
	case silent: // any program may name a client that keeps no secret: only the person can tell
		return s.refuseAsking(r, a, oauthError(errConsentRequired, "prompt",
			"the user is asked each time, and prompt is none"))
	case slices.Contains(a.prompts(), "login"):
		return web.Redirect(s.signInFor(a, signInAgain)), nil
	}
	request.Of(r.Context()).Caller = c
	return s.askConsent(r, c, a)
}

// readAsking reads a request as far as it takes to know where an answer may go. What is wrong until then is shown to
// the person: a redirect would lead wherever somebody wrote into a link.
func (s *Server) readAsking(ctx context.Context, query string) (*asking, error) {
	parameters, err := url.ParseQuery(strings.ReplaceAll(query, ";", "%3B")) // which separates nothing
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
	one := func(name, says string) (string, error) {
		switch values := parameters[name]; len(values) {
		case 0:
			return "", &failure.Error{Status: http.StatusBadRequest, Message: says + ": " + name + " is missing"}
		case 1:
			return values[0], nil
		}
		return "", &failure.Error{Status: http.StatusBadRequest, Message: says + ": " + name + " is there more than once"}
	}
	if a.clientID, err = one("client_id", "Invalid client"); err != nil {
		return nil, err
	}
	if a.client, err = s.client(ctx, a.clientID); err != nil {
		return nil, onPage(err)
	}
	if a.redirect, err = one("redirect_uri", "Invalid redirect_uri"); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(a.client.Metadata.RedirectURIs,
		func(uri string) bool { return souvenir.MatchRedirectURI(uri, a.redirect) }) {
		return nil, &failure.Error{Status: http.StatusBadRequest, Message: "Invalid redirect_uri: " +
			failure.Quote(a.redirect) + " is none of those that the application has registered"}
	}
	if states := parameters["state"]; len(states) == 1 {
		a.state = states[0]
	}
	return a, nil
}

// leadsAnywhere reports whether the redirect URI may be anybody's: anybody can register a client with any, and would
// have links of this service that lead there, of people who do not even know this service. So browsers in which nobody
// has signed in are sent there for nothing (RFC 9700, section 4.11.2). Programs on the device are no place to lead
// people to by a link.
func (a *asking) leadsAnywhere() bool {
	u, err := url.Parse(a.redirect)
	return a.client.Kind != souvenir.ClientAdmin && (err != nil || u.Scheme != "http")
}

// onPage is an error about a client that a person is shown: a bad request, whatever else it would be for a program.
func onPage(err error) error {
	if status, message := failure.Describe(err); status < http.StatusInternalServerError {
		return &failure.Error{Status: http.StatusBadRequest, Message: message}
	}
	return err
}

// checkAsking checks the rest of a request. Errors that the client is told carry a [*souvenir.OAuthError].
func (s *Server) checkAsking(ctx context.Context, a *asking) error {
	for _, name := range slices.Sorted(maps.Keys(a.parameters)) {
		if len(a.parameters[name]) > 1 && name != "resource" { // which may come more than once (RFC 8707, section 2)
			return oauthError(souvenir.OAuthInvalidRequest, name, name+" is there more than once")
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
		return oauthError(souvenir.OAuthInvalidRequest, "response_type", "response_type is missing; code is needed")
	default:
		return oauthError(errUnsupportedResponseType, "response_type", "response_type is "+failure.Quote(kind)+
			"; code is needed")
	}
	if mode := a.parameters.Get("response_mode"); mode != "" && mode != "query" {
		return oauthError(souvenir.OAuthInvalidRequest, "response_mode", "response_mode is "+failure.Quote(mode)+
			"; query is the only one")
	}
	if prompts := a.prompts(); slices.Contains(prompts, "none") && len(prompts) > 1 {
		return oauthError(souvenir.OAuthInvalidRequest, "prompt", "prompt is none and something else, too")
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

// authorization is the request as the store knows it.
func (a *asking) authorization() souvenir.Authorization {
	return souvenir.Authorization{
		ClientID: a.clientID, RedirectURI: a.redirect, Scopes: a.scopes, Resource: a.resource,
		CodeChallenge: a.parameters.Get("code_challenge"), CodeChallengeMethod: a.parameters.Get("code_challenge_method"),
	}
}

// askedScopes are the scopes that a client asks for. Words that mean nothing here are passed over, as RFC 6749, section
// 3.3, allows: clients ask for offline_access, or for all that some other server has. Those that know none of ours, and
// none of OpenID Connect's, have mistaken the server.
func askedScopes(parameter string) ([]souvenir.Scope, error) {
	words := strings.Fields(parameter)
	known := slices.DeleteFunc(souvenir.Scopes(),
		func(scope souvenir.Scope) bool { return !slices.Contains(words, string(scope)) })
	if len(known) > 0 {
		return known, nil
	}
	for _, word := range words {
		if !slices.Contains([]string{"openid", "profile", "email", "offline_access"}, word) {
			return nil, oauthError(souvenir.OAuthInvalidScope, "scope", "scope is "+failure.Quote(parameter)+"; there are "+
				strings.Join(ScopeNames(souvenir.Scopes()), " "))
		}
	}
	return souvenir.DefaultScopes(), nil
}

// refuseAsking sends an error to the client. What is the server's fault goes into the log, and the client hears of a
// server error, too, since a browser between the two cannot be answered with 500 (RFC 6749, section 4.1.2.1).
func (s *Server) refuseAsking(r *http.Request, a *asking, err error) (any, error) {
	var known *souvenir.Error
	if errors.As(err, &known) && slices.Contains([]string{"client_id", "redirect_uri"}, known.Argument) {
		return nil, onPage(err) // somebody has changed the client since
	}
	if r.Context().Err() != nil {
		return nil, err // nobody waits for it
	}
	var say *souvenir.OAuthError
	if !errors.As(err, &say) {
		e := request.Of(r.Context())
		s.log.ErrorContext(r.Context(), "an application could not be let in", "request_id", e.ID, "route", e.Route, "error",
			err)
		say = &souvenir.OAuthError{Code: errServer, Description: "the server could not do this"}
	}
	return s.back(a, url.Values{"error": {say.Code}, "error_description": {say.Description}}), nil
}

// back sends the browser to the client, with an answer. It says who answers (RFC 9207), so that a client of several
// servers cannot be made to mistake one for another. The redirect URI stays as it was registered, its query included.
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

// signInFor is where one signs in, and then comes back to the request. A request that wants a sign-in has got it then.
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
	signInAgain = "again=1&" // whoever has signed in already
)

// PageRoutes are the pages on which a person lets an application in.
func (s *Server) PageRoutes() []route.Route {
	return []route.Route{
		route.Get(route.AuthorizePath, route.Public, s.authorize), // who is there, it finds out itself
		route.Post(route.AuthorizePath, route.Public, s.decide),
		route.Get("/authorize", route.Public, s.authorize), // where old clients guess it
		route.Post("/authorize", route.Public, s.decide),
	}
}
