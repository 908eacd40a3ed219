package clients

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// pauseToken pauses or resumes one of the user's tokens.
func (s *Service) pauseToken(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	return s.pause(w, r, "/tokens", func(ctx context.Context, values url.Values, is bool) error {
		_, err := c.Store.Accounts().UpdateToken(ctx, values.Get("id"), souvenir.TokenUpdate{Paused: &is})
		return err
	})
}

// pauseConnected pauses or resumes an application.
func (s *Service) pauseConnected(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	return s.pause(w, r, "/connected", func(ctx context.Context, values url.Values, is bool) error {
		return eachGrant(ctx, c, values, func(id string) error {
			_, err := c.Store.Accounts().UpdateGrant(ctx, id, souvenir.GrantUpdate{Paused: &is})
			return err
		})
	})
}

// eachGrant calls do for the grant that a form names with id, or for all grants of the application that it names with
// client: each installation of an application has its own grant.
func eachGrant(ctx context.Context, c request.Caller, form url.Values, do func(id string) error) error {
	client := form.Get("client")
	if client == "" {
		return do(form.Get("id"))
	}
	grants, err := c.Store.Accounts().Grants(ctx)
	if err != nil {
		return err
	}
	found := error(&souvenir.Error{Kind: souvenir.KindNotFound, Argument: "client",
		Message: "client is " + failure.Quote(client) + ", which has no access; it may have been revoked meanwhile"})
	for _, g := range grants {
		if g.ClientID != client {
			continue
		}
		found = nil
		if err := do(g.ID); err != nil && !errors.Is(err, souvenir.ErrNotFound) { // just revoked
			return err
		}
	}
	return found
}

// pause pauses or resumes a credential as the form asks, and returns to the form's page: the list of all credentials,
// or the activity of one.
func (s *Service) pause(w http.ResponseWriter, r *http.Request, page string,
	set func(ctx context.Context, values url.Values, is bool) error) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	wanted := values.Get("paused")
	if wanted != "yes" && wanted != "no" {
		return nil, failure.Invalid("paused", "paused is "+failure.Quote(wanted)+"; expected yes or no")
	}
	if err := set(r.Context(), values, wanted == "yes"); err != nil {
		return nil, err
	}
	if back := strings.TrimPrefix(values.Get("next"), s.site.Base()); strings.HasPrefix(back, "/activity?") {
		page = back
	}
	return s.site.Done(page, map[string]string{"yes": "paused", "no": "resumed"}[wanted]), nil
}
