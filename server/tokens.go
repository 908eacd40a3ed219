package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/params"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// TokenList is the answer of GET /api/mcp-tokens.
type TokenList struct {
	Tokens []souvenir.Token `json:"tokens"`
	Count  int              `json:"count"`
}

// newToken is the body of POST /api/mcp-tokens.
type newToken struct {
	strictBody
	Name     string           `json:"name"`
	Days     *float64         `json:"expires_in_days,omitempty"` // whole; 30.0 is valid, too
	Scopes   []souvenir.Scope `json:"scopes,omitempty"`
	Projects []string         `json:"projects,omitempty"`
}

// grantTokenLife is the lifetime of a token that was created without one: by an application with a grant, or by a user
// of Options.Authenticate. It equals the time after which an application can still return with a refresh token. The
// token also ends with the grant; the user sees and deletes it like any other.
const grantTokenLife = 30 * web.Day

func (s *Server) listTokens(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	all, err := c.Store.Accounts().Tokens(r.Context())
	return TokenList{all, len(all)}, err
}

// addToken creates a token. It has at most the scopes and the lifetime of the credential that creates it, and ends when
// the credential does: with the token, with the application's grant, or, if a program used a browser's cookie, with
// that session.
func (s *Server) addToken(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	var given newToken
	if err := s.readJSON(w, r, &given); err != nil {
		return nil, err
	}
	err := s.signin.CheckConfirmed(c)
	if err != nil {
		return nil, err
	}
	n := souvenir.NewToken{Name: given.Name, Projects: given.Projects, TokenID: c.TokenID, GrantID: c.GrantID,
		SignInID: c.SignInID, WithSignIn: c.SignInID != ""}
	if n.Scopes, err = scopesWithin(c, given.Scopes); err != nil {
		return nil, err
	}
	if n.ExpiresAt, err = expiryWithin(r.Context(), c, given.Days, time.Now()); err != nil {
		return nil, err
	}
	added, err := c.Store.Accounts().AddToken(r.Context(), n)
	return added, sinceEnded(err)
}

// sinceEnded is the error for a credential that has ended between its check and its use.
func sinceEnded(err error) error {
	var known *souvenir.Error
	if errors.As(err, &known) && slices.Contains([]string{"token_id", "grant_id", "session_id"}, known.Argument) {
		return &badCredential{failure.Unauthenticated("the grant of the credential is no longer valid")}
	}
	return err
}

// scopesWithin returns the scopes of a new token: the requested ones, or for nil the default scopes that the caller
// has.
func scopesWithin(c request.Caller, wished []souvenir.Scope) ([]souvenir.Scope, error) {
	if wished == nil {
		return slices.DeleteFunc(souvenir.DefaultScopes(), func(scope souvenir.Scope) bool { return !c.Allows(scope) }), nil
	}
	for _, scope := range wished {
		if slices.Contains(souvenir.Scopes(), scope) && !c.Allows(scope) {
			return nil, failure.MissingScope(scope)
		}
	}
	return wished, nil // the store refuses unknown ones
}

// expiryWithin returns when a new token ends: in some days or, for nil, as late as allowed; zero: never.
func expiryWithin(ctx context.Context, c request.Caller, days *float64, now time.Time) (time.Time, error) {
	var latest time.Time // zero: no limit
	switch {
	case c.SignInID != "": // a person, who may also do so on the profile page
	case c.TokenID == "":
		latest = now.Add(grantTokenLife)
	default:
		all, err := c.Store.Accounts().Tokens(ctx)
		if err != nil {
			return time.Time{}, err
		}
		i := slices.IndexFunc(all, func(t souvenir.Token) bool { return t.ID == c.TokenID })
		if i < 0 {
			return time.Time{}, &badCredential{failure.Unauthenticated("the token has been revoked")}
		}
		latest = all[i].ExpiresAt
	}
	if days == nil {
		return latest, nil
	}
	if *days < 1 || *days > params.MaxTokenDays || *days != math.Trunc(*days) {
		return time.Time{}, failure.Invalid("expires_in_days",
			fmt.Sprintf("expires_in_days is %v; expected 1 to %d, or none for never", *days, params.MaxTokenDays))
	}
	wished := now.Add(time.Duration(*days) * web.Day)
	if !latest.IsZero() && wished.After(latest) {
		return time.Time{}, &souvenir.Error{Kind: souvenir.KindForbidden, Argument: "expires_in_days", Message: fmt.Sprintf(
			"expires_in_days is %v, but tokens created with this credential must expire by %s; give fewer days, or none", *days,
			latest.UTC().Format(time.RFC3339))}
	}
	return wished, nil
}

func (s *Server) deleteToken(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	if err := c.Store.Accounts().RevokeToken(r.Context(), r.PathValue("id")); err != nil {
		return nil, err
	}
	return Done{true, "the token is no longer valid"}, nil
}
