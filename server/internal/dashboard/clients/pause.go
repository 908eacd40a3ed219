package clients

import (
	"context"
	"net/http"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// pauseToken pauses or resumes one of the user's tokens.
func (s *Service) pauseToken(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	return s.pause(w, r, "/tokens", func(ctx context.Context, id string, is bool) error {
		_, err := c.Store.Accounts().UpdateToken(ctx, id, souvenir.TokenUpdate{Paused: &is})
		return err
	})
}

// pauseConnected pauses or resumes an application.
func (s *Service) pauseConnected(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	return s.pause(w, r, "/connected", func(ctx context.Context, id string, is bool) error {
		_, err := c.Store.Accounts().UpdateGrant(ctx, id, souvenir.GrantUpdate{Paused: &is})
		return err
	})
}

// pause does what a form says, and goes back to its page: that of all credentials, or the activity of one.
func (s *Service) pause(w http.ResponseWriter, r *http.Request, page string,
	set func(ctx context.Context, id string, is bool) error) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	wanted := values.Get("paused")
	if wanted != "yes" && wanted != "no" {
		return nil, failure.Invalid("paused", "paused is "+failure.Quote(wanted)+"; yes or no is needed")
	}
	if err := set(r.Context(), values.Get("id"), wanted == "yes"); err != nil {
		return nil, err
	}
	if back := strings.TrimPrefix(values.Get("next"), s.site.Base()); strings.HasPrefix(back, "/activity?") {
		page = back
	}
	return s.site.Done(page, map[string]string{"yes": "paused", "no": "resumed"}[wanted]), nil
}
