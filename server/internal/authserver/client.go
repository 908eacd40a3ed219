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

// shownClient describes an application to a person. The application chooses its own name, which may be anything;
// the destination of the answer cannot be forged.
type shownClient struct {
	Name    string // its own name for itself; empty if it has none
	ID      string
	Host    string // destination of the answer; empty: an application on the device
	Local   string // the destination there, in words
	Origin  string // how the server knows it, in words
	Warning string // empty: none
}

// showClient describes the client of a request to the person who is asked.
func (s *Server) showClient(ctx context.Context, c request.Caller, a *asking) (shownClient, error) {
	shown := shownClient{Name: web.ShortName(a.client.Metadata.ClientName), ID: a.clientID}
	u, err := url.Parse(a.redirect)
	if err != nil {
		return shown, err // a registered one, which can be read
	}
	web := u.Scheme == "https" || u.Scheme == "http"
	switch {
	case web && netaddr.IsLoopback(u.Host):
		shown.Local = "a program on this computer, at " + u.Host
	case web:
		shown.Host = u.Host
	default:
		shown.Local = "the application on this device that opens links with " + u.Scheme + ":"
	}
	switch a.client.Kind {
	case souvenir.ClientAdmin:
		shown.Origin, err = s.madeBy(ctx, c, a.client.Owner)
	case souvenir.ClientDocument:
		shown.Origin = "It is described by " + cmp.Or(hostOf(a.clientID), a.clientID) + "."
	default:
		shown.Origin = "It has registered itself, and nobody has checked its name."
	}
	if a.client.Kind == souvenir.ClientAdmin {
		return shown, err
	}
	switch from := hostOf(a.clientID); {
	case shown.Local != "":
		shown.Warning = "Any program on this device can say that it is this application. Let it in only if you have just begun this yourself, in a program that you trust."
	case a.client.Kind == souvenir.ClientDocument && from != shown.Host:
		shown.Warning = "The application is described by " + from + ", but the answer goes to " + shown.Host +
			". Let it in only if you know that the two belong together."
	}
	return shown, err
}

// madeBy says which user has created a client.
func (s *Server) madeBy(ctx context.Context, c request.Caller, owner string) (string, error) {
	if owner == c.User.ID {
		return "You, or a program with a token of yours, have added it to this server.", nil
	}
	u, err := s.store.Accounts().GetUser(ctx, owner)
	if errors.Is(err, souvenir.ErrNotFound) {
		return "Somebody who is no user any more has added it to this server.", nil
	}
	return u.Name + " has added it to this server.", err
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
