// Package signin signs people in: with a name and a password or at an external OpenID Connect provider, by a set-up
// link or an invitation. It keeps their sessions, asks for confirmation of their identity, and serves the profile
// page.
package signin

import (
	"cmp"
	"log/slog"
	"net/http"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// Options are the dependencies of a Service.
type Options struct {
	Site   *web.Site
	Store  *souvenir.Store // the operator's
	Logger *slog.Logger

	// Provider is an external provider at which people may sign in, too. Nil means none.
	Provider *Provider

	// FreeTries is how many wrong passwords cost no wait. Zero means 5.
	FreeTries int

	// Welcome builds the page for a person who has just created an account.
	Welcome func(r *http.Request, user souvenir.User, title string) (any, error)
}

// Service signs people in. Create one with [New].
type Service struct {
	site     *web.Site
	store    *souvenir.Store
	log      *slog.Logger
	welcome  func(r *http.Request, user souvenir.User, title string) (any, error)
	provider *provider        // at which people may sign in; nil: none
	attempts *attempts        // of signing in
	hashing  lanes            // in which passwords are checked
	links    links            // that sign a user in
	recently time.Duration    // maximum age of a confirmation, for lasting credentials and access to all users' data
	now      func() time.Time // its clock
}

// New creates the sign-in of a server. An invalid provider is logged, and left out.
func New(o Options) *Service {
	s := &Service{
		site: o.Site, store: o.Store, log: o.Logger, welcome: o.Welcome, recently: recently, now: time.Now,
		hashing:  newLanes(),
		attempts: newAttempts(cmp.Or(max(o.FreeTries, 0), defaultTries), o.Store, o.Logger),
	}
	o.Site.SignInPage = s.draftPage
	if o.Provider == nil {
		return s
	}
	var err error
	if s.provider, err = newProvider(*o.Provider, o.Store, s.log); err != nil {
		s.log.Error("the identity provider is misconfigured; people can sign in with passwords only", "error", err)
	}
	return s
}
