package server

import (
	"errors"
	"net/http"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
)

// fromProgram asks the program in which the server is embedded whom a request speaks for, which it may not know.
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
	// Whatever the program knows a user by, browsers may send it by themselves.
	if err := s.site.CrossSite.Check(r); err != nil {
		return p, false, otherOrigin(err)
	}
	p = *given
	p.SessionID, p.ConfirmedAt = "", time.Time{} // the program's own sessions are not the store's
	if p.Access.User == "" {
		return p, false, errors.New("server.Options.Authenticate returned a principal without Access.User, which nobody is")
	}
	p.User, err = s.store.Accounts().GetUser(r.Context(), p.Access.User)
	switch {
	case errors.Is(err, souvenir.ErrNotFound):
		p.User = souvenir.User{ID: p.Access.User, Role: souvenir.RoleUser} // a view's first write makes one
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

// signInElsewhere gives words to an error that says no more than that somebody has not signed in.
func signInElsewhere(err error) error {
	var known *souvenir.Error
	if errors.As(err, &known) && known.Kind == souvenir.KindUnauthenticated && known.Message == "" {
		return failure.Unauthenticated("nobody has signed in")
	}
	return err
}
