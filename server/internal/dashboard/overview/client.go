package overview

import (
	"cmp"
	"slices"
	"time"

	"net/http"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// clientAccess is the access of the client whose calls a page shows: a token, or an application.
type clientAccess struct {
	Name     string
	Scopes   []souvenir.Scope
	Limited  int       // to how many projects; 0 unless Some
	Some     bool      // it is limited to projects
	Since    time.Time // when it was allowed
	LastUsed time.Time // zero: never
	Revoke   string    // path of the form that ends it
	Pause    string    // path of the form that pauses and resumes it
	Paused   time.Time // since when it is paused; zero: it is not
	ID       string    // for these forms
	Token    bool
	Did      clientUse // its calls
	Next     string    // the page with its calls
}

// clientOf returns the user's own token or application that a filter names; nil: none, or it has ended.
func clientOf(r *http.Request, c request.Caller, f activityFilter) (*clientAccess, error) {
	if f.ID == "" || f.User != "" && f.User != c.User.ID {
		return nil, nil
	}
	switch souvenir.CredentialKind(f.Credential) {
	case souvenir.CredentialToken:
		tokens, err := c.Store.Accounts().Tokens(r.Context())
		i := slices.IndexFunc(tokens, func(t souvenir.Token) bool { return t.ID == f.ID })
		if i < 0 {
			return nil, err
		}
		t := tokens[i]
		return &clientAccess{Name: web.ShortName(t.Name), Scopes: t.Scopes, Limited: len(t.Projects),
			Some: t.Projects != nil, Since: t.CreatedAt, LastUsed: t.LastUsedAt, Revoke: "/tokens/end",
			Pause: "/tokens/pause", Paused: t.PausedAt, ID: t.ID, Token: true}, err
	case souvenir.CredentialClient:
		grants, err := c.Store.Accounts().Grants(r.Context())
		i := slices.IndexFunc(grants, func(g souvenir.Grant) bool { return g.ClientID == f.ID })
		if i < 0 {
			return nil, err
		}
		g := grants[i]
		return &clientAccess{Name: cmp.Or(web.ShortName(g.ClientName), "An unnamed application"), Scopes: g.Scopes,
			Limited: len(g.Projects), Some: g.Projects != nil, Since: g.CreatedAt, LastUsed: g.LastUsedAt,
			Revoke: "/connected/end", Pause: "/connected/pause", Paused: g.PausedAt, ID: g.ID}, err
	}
	return nil, nil
}
