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
	Field    string    // of these forms: id, or client for all that an application was allowed
	ID       string    // its value
	Times    int       // how often an application was allowed; each installation asks by itself
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
			Pause: "/tokens/pause", Paused: t.PausedAt, Field: "id", ID: t.ID, Token: true}, err
	case souvenir.CredentialClient:
		grants, err := c.Store.Accounts().Grants(r.Context())
		grants = slices.DeleteFunc(grants, func(g souvenir.Grant) bool { return g.ClientID != f.ID })
		if len(grants) == 0 {
			return nil, err
		}
		return accessOf(grants), err
	}
	return nil, nil
}

// accessOf is an application's access from all its grants, the newest first. It is paused if all grants are.
func accessOf(grants []souvenir.Grant) *clientAccess {
	newest := grants[0]
	a := &clientAccess{Name: cmp.Or(web.ShortName(newest.ClientName), "An unnamed application"), Some: true,
		Since: newest.CreatedAt, Revoke: "/connected/end", Pause: "/connected/pause", Paused: newest.PausedAt,
		Field: "client", ID: newest.ClientID, Times: len(grants)}
	var projects []string
	for _, g := range grants {
		a.Scopes = append(a.Scopes, g.Scopes...)
		projects = append(projects, g.Projects...)
		a.Some = a.Some && g.Projects != nil
		if g.LastUsedAt.After(a.LastUsed) {
			a.LastUsed = g.LastUsedAt
		}
		if g.PausedAt.IsZero() {
			a.Paused = time.Time{}
		}
	}
	slices.Sort(projects)
	a.Limited = len(slices.Compact(projects))
	order := souvenir.Scopes()
	slices.SortFunc(a.Scopes, func(x, y souvenir.Scope) int { return slices.Index(order, x) - slices.Index(order, y) })
	a.Scopes = slices.Compact(a.Scopes)
	return a
}
