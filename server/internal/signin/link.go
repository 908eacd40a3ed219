package signin

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/route"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

const (
	linkPath = "/sign-in"
	linkLife = 10 * time.Minute
	maxLinks = 100 // open ones; a further one replaces the oldest
)

// links are the open links that sign a user in. They are in memory only, so that they end with the program, and no
// backup holds one. The zero value is ready for use.
type links struct {
	mu   sync.Mutex
	open []link // the oldest first
}

type link struct {
	value, user string
	until       time.Time
}

// add opens a link.
func (l *links) add(user string, now time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.open) > 0 && (len(l.open) >= maxLinks || now.After(l.open[0].until)) {
		l.open = l.open[1:]
	}
	added := link{rand.Text(), user, now.Add(linkLife)}
	l.open = append(l.open, added)
	return added.value
}

// take closes a link and returns its user; empty: no such link is open.
func (l *links) take(value string, now time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, one := range l.open {
		if one.value == value {
			l.open = append(l.open[:i:i], l.open[i+1:]...)
			if now.After(one.until) {
				return ""
			}
			return one.user
		}
	}
	return ""
}

// Link returns the path, under the public URL, at which a browser on this machine is signed in as a user: once, within
// ten minutes.
func (s *Service) Link(ctx context.Context, user string) (string, error) {
	found, err := s.store.Accounts().GetUser(ctx, user)
	if err != nil {
		return "", err
	}
	return linkPath + "?" + url.Values{"key": {s.links.add(found.ID, s.now())}}.Encode(), nil
}

// followLink signs in the browser that opens a link. Only browsers on this machine can: the link was shown to the
// person who started the program, and may have been copied into a log since.
func (s *Service) followLink(w http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
	if !request.Of(r.Context()).Address.IsLoopback() {
		return nil, &failure.Error{Status: http.StatusForbidden,
			Message: "this link works only in a browser on the computer that runs the server"}
	}
	user := ""
	if r.Method == http.MethodGet { // a HEAD request only looks
		user = s.links.take(r.URL.Query().Get("key"), s.now())
	}
	if user == "" {
		data := deadLinkPage{Problem: "It was used already, or is older than 10 minutes. Each link signs in once.",
			Advice: "Sign in with your name and password; the terminal that shows the link also says which. Or start the " +
				"program there again, and open its new link."}
		if c, err := s.RequirePerson(r, route.Person); err == nil {
			data.SignedIn = c.User.Name
		}
		return web.Page{Template: "deadlink", Title: "This link does not work", Status: http.StatusNotFound, Data: data}, nil
	}
	if err := s.signIn(w, r, souvenir.User{ID: user}, time.Time{}); err != nil {
		return nil, err
	}
	return web.Redirect(s.site.LocalPath("/")), nil
}
