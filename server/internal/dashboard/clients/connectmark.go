package clients

import (
	"net/http"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/params"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// connectedID is the id of the mark that shows whether a client has connected.
const connectedID = "first-call"

// States of the mark.
const (
	stateWaiting = "waiting" // no client yet
	stateUsed    = "used"    // the token was used, but no tool was called
	stateCalled  = "called"  // a client has called; the script stops polling
)

// connectedMark shows whether the new client has connected: by its token, or, for one that signs in, since a time.
type connectedMark struct {
	TokenID string
	Since   string // RFC 3339; empty with a token
	State   string
	Client  string // its own name for itself; empty: unknown
	At      time.Time
}

// showConnectedMark answers a script that waits for a client. While nothing changes the answer is empty, so that a
// screen reader stays silent.
func (s *Service) showConnectedMark(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	query := r.URL.Query()
	mark := connectedMark{TokenID: query.Get("token"), Since: query.Get("since"), State: stateWaiting}
	var err error
	if mark.TokenID != "" {
		err = s.lookForToken(r, c, &mark)
	} else {
		err = s.lookForClient(r, c, &mark)
	}
	if err != nil {
		return nil, err
	}
	if mark.State == query.Get("state") {
		w.WriteHeader(http.StatusNoContent)
		return nil, nil
	}
	return web.Page{Template: "connectclient", Title: "Connect a client", Part: "first-call-mark",
		Data: connection{Mark: mark}}, nil
}

// latestCalls is how many of the user's latest calls the mark checks: the script polls every two seconds, so
// checking all would be too slow.
const latestCalls = 100

// lookForToken checks whether a token of the user was used.
func (s *Service) lookForToken(r *http.Request, c request.Caller, mark *connectedMark) error {
	tokens, err := c.Store.Accounts().Tokens(r.Context())
	if err != nil {
		return err
	}
	i := slices.IndexFunc(tokens, func(t souvenir.Token) bool { return t.ID == mark.TokenID })
	if i < 0 {
		return &failure.Error{Status: http.StatusNotFound, Message: "the token no longer exists; create another one"}
	}
	if tokens[i].LastUsedAt.IsZero() {
		return nil
	}
	s.used(mark, "", tokens[i].LastUsedAt)
	return s.lookForCall(r, c, mark, func(a souvenir.Activity) bool { return a.Credential.ID == mark.TokenID })
}

// lookForClient checks whether an application was authorized, or has called, since a time.
func (s *Service) lookForClient(r *http.Request, c request.Caller, mark *connectedMark) error {
	since, err := params.Time(r.URL.Query(), "since")
	if err != nil {
		return err
	}
	grants, err := c.Store.Accounts().Grants(r.Context())
	if err != nil {
		return err
	}
	for _, grant := range grants {
		if !grant.CreatedAt.Before(since) || !grant.LastUsedAt.Before(since) {
			s.used(mark, web.ShortName(grant.ClientName), grant.LastUsedAt)
			break
		}
	}
	return s.lookForCall(r, c, mark, func(a souvenir.Activity) bool {
		return a.Credential.Kind == souvenir.CredentialClient && !a.StartedAt.Before(since)
	})
}

// lookForCall looks for a call among the latest.
func (s *Service) lookForCall(r *http.Request, c request.Caller, mark *connectedMark,
	fits func(souvenir.Activity) bool) error {
	calls, err := c.Store.Insights().ActivityPage(r.Context(), souvenir.ActivityQuery{Limit: latestCalls})
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(calls.Activities, fits); i >= 0 {
		mark.called(calls.Activities[i])
	}
	return nil
}

// used notes a client without a recorded call. Where calls are not recorded, this state is final.
func (s *Service) used(mark *connectedMark, client string, at time.Time) {
	mark.State, mark.Client, mark.At = stateUsed, client, at
	if s.noActivity {
		mark.State = stateCalled
	}
}

// called notes a call.
func (m *connectedMark) called(a souvenir.Activity) {
	m.State, m.At, m.Client = stateCalled, a.StartedAt, web.ClientName(a.Client)
	if m.Client == "" {
		m.Client = a.Credential.Name
	}
}
