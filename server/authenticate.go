package server

import (
	"errors"
	"net/http"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
)

// fromProgram asks the embedding program for the principal of a request; the program may not know it.
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
	p.SessionID, p.ConfirmedAt = "", time.Time{} // the program's own sessions are not the store's
	if p.Access.User == "" {
		return p, false, errors.New("server.Options.Authenticate returned a principal without Access.User, which nobody is")
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
