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
	Name     string           `json:"name"`
	Days     *float64         `json:"expires_in_days"` // whole; 30.0 is, too
	Scopes   []souvenir.Scope `json:"scopes"`
	Projects []string         `json:"projects"`
}

const (

	// grantTokenLife is how long a token lives that was made without one: by an application that somebody let in, or by a
	// user whom Options.Authenticate knows. It is as long as the application could stay away and still come back with a
	// refresh token. With the grant the token ends, too; the user sees and deletes it like any other.
	grantTokenLife = 30 * web.Day
)

func (s *Server) listTokens(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	all, err := c.Store.Accounts().Tokens(r.Context())
	return TokenList{all, len(all)}, err
}

// addToken makes a token that can do no more, and lives no longer, than the credential through which it is made, and
// ends with it: with a token, with what the user allowed an application, or, if a program came with the cookie of a
// browser, with that sign-in.
func (s *Server) addToken(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	var given newToken
	if err := s.readJSON(w, r, &given, true); err != nil {
		return nil, err
	}
	err := s.signin.CheckConfirmed(c)
	if err != nil {
		return nil, err
	}
	n := souvenir.NewToken{Name: given.Name, Projects: given.Projects, TokenID: c.TokenID, GrantID: c.GrantID,
		SessionID: c.SessionID, WithSession: c.SessionID != ""}
	if n.Scopes, err = scopesWithin(c, given.Scopes); err != nil {
		return nil, err
	}
	if n.ExpiresAt, err = expiryWithin(r.Context(), c, given.Days, time.Now()); err != nil {
		return nil, err
	}
	added, err := c.Store.Accounts().AddToken(r.Context(), n)
	return added, sinceEnded(err)
}

// sinceEnded is an error of making something through a credential that has ended since it was checked.
func sinceEnded(err error) error {
	var known *souvenir.Error
	if errors.As(err, &known) && slices.Contains([]string{"token_id", "grant_id", "session_id"}, known.Argument) {
		return &badCredential{failure.Unauthenticated("what the credential was given for has ended")}
	}
	return err
}

// scopesWithin are the scopes of a new token: those that are wished, or for nil the default ones that the caller has.
func scopesWithin(c request.Caller, wished []souvenir.Scope) ([]souvenir.Scope, error) {
	if wished == nil {
		return slices.DeleteFunc(souvenir.DefaultScopes(), func(scope souvenir.Scope) bool { return !c.Allows(scope) }), nil
	}
	for _, scope := range wished {
		if slices.Contains(souvenir.Scopes(), scope) && !c.Allows(scope) {
			return nil, failure.MissingScope(scope)
		}
	}
	return wished, nil // an unknown one the store refuses
}

// expiryWithin is when a new token ends, in some days or, for nil, as late as it may; zero: never.
func expiryWithin(ctx context.Context, c request.Caller, days *float64, now time.Time) (time.Time, error) {
	var latest time.Time // zero: whenever
	switch {
	case c.SessionID != "": // a person, who may do so on the profile's page as well
	case c.TokenID == "":
		latest = now.Add(grantTokenLife)
	default:
		all, err := c.Store.Accounts().Tokens(ctx)
		if err != nil {
			return time.Time{}, err
		}
		i := slices.IndexFunc(all, func(t souvenir.Token) bool { return t.ID == c.TokenID })
		if i < 0 {
			return time.Time{}, &badCredential{failure.Unauthenticated("the token has been deleted")}
		}
		latest = all[i].ExpiresAt
	}
	if days == nil {
		return latest, nil
	}
	if *days < 1 || *days > params.MaxTokenDays || *days != math.Trunc(*days) {
		return time.Time{}, failure.Invalid("expires_in_days",
			fmt.Sprintf("expires_in_days is %v; 1 to %d are allowed, and none at all means never", *days, params.MaxTokenDays))
	}
	wished := now.Add(time.Duration(*days) * web.Day)
	if !latest.IsZero() && wished.After(latest) {
		return time.Time{}, &souvenir.Error{Kind: souvenir.KindForbidden, Argument: "expires_in_days", Message: fmt.Sprintf(
			"expires_in_days is %v, but what is made with this credential must end by %s; give fewer days, or none", *days,
			latest.UTC().Format(time.RFC3339))}
	}
	return wished, nil
}

func (s *Server) deleteToken(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	if err := c.Store.Accounts().DeleteToken(r.Context(), r.PathValue("id")); err != nil {
		return nil, err
	}
	return Done{true, "the token is not valid any more"}, nil
}
