package authserver

import (
	"cmp"
	"context"
	"errors"
	"net/url"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/netaddr"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// clientView describes an application to a person. The application chooses its own name, which may be anything;
// the destination of the answer cannot be forged.
type clientView struct {
	Name    string // its own name for itself; empty if it has none
	ID      string
	Host    string // destination of the answer; empty: an application on the device
	Local   string // the destination there, in words
	Origin  string // how the server knows it, in words
	Warning string // empty: none
}

// showClient describes the client of a request to the person who is asked.
func (s *Server) showClient(ctx context.Context, c request.Caller, a *asking) (clientView, error) {
	view := clientView{Name: web.ShortName(a.client.Metadata.ClientName), ID: a.clientID}
	u, err := url.Parse(a.redirect)
	if err != nil {
		return view, err // a registered URI always parses
	}
	web := u.Scheme == "https" || u.Scheme == "http"
	switch {
	case web && netaddr.IsLoopback(u.Host):
		view.Local = "a program on this computer, at " + u.Host
	case web:
		view.Host = u.Host
	default:
		view.Local = "the application on this device that opens links with " + u.Scheme + ":"
	}
	switch a.client.Kind {
	case souvenir.ClientAdmin:
		view.Origin, err = s.describeOwner(ctx, c, a.client.Owner)
	case souvenir.ClientDocument:
		view.Origin = "It is described by " + cmp.Or(hostOf(a.clientID), a.clientID) + "."
	default:
		view.Origin = "It registered itself. Its name has not been verified."
	}
	if a.client.Kind == souvenir.ClientAdmin {
		return view, err
	}
	switch from := hostOf(a.clientID); {
	case view.Local != "":
		view.Warning = "Any program on this device can claim to be this application. Allow it only if you just started " +
			"this yourself, in a program that you trust."
	case a.client.Kind == souvenir.ClientDocument && from != view.Host:
		view.Warning = "The application is described by " + from + ", but the answer goes to " + view.Host +
			". Allow it only if you know that they belong together."
	}
	return view, err
}

// describeOwner returns a sentence that says which user created a client.
func (s *Server) describeOwner(ctx context.Context, c request.Caller, owner string) (string, error) {
	if owner == c.User.ID {
		return "Added to this server by you, or by a program with one of your tokens.", nil
	}
	u, err := s.store.Accounts().GetUser(ctx, owner)
	if errors.Is(err, souvenir.ErrNotFound) {
		return "Added to this server by a deleted user.", nil
	}
	return "Added to this server by " + u.Name + ".", err
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
