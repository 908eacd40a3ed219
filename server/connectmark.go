package server

import (
	"net/http"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// connectedID is the id of the mark that tells whether a client has come.
const connectedID = "first-call"

// What the mark tells.
const (
	stateWaiting = "waiting" // nobody has come
	stateUsed    = "used"    // the token was used, but no tool was called
	stateCalled  = "called"  // somebody has called; the script stops asking
)

// connectedMark tells whether the client that is being connected has come: by a token, or since a time, when it signs in.
type connectedMark struct {
	TokenID string
	Since   string // RFC 3339; empty with a token
	State   string
	Client  string // what it calls itself; empty: it has not said so
	At      time.Time
}

// showConnectedMark answers a script that waits for a client. While there is nothing new, it is told so in no words, so that a
// screen reader has nothing to say.
func (s *Server) showConnectedMark(w http.ResponseWriter, r *http.Request, c caller) (any, error) {
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
	return page{template: "connectclient", title: "Connect a client", part: "first-call-mark", data: connection{Mark: mark}}, nil
}

// lookForToken looks whether a token of the user's was used.
func (s *Server) lookForToken(r *http.Request, c caller, mark *connectedMark) error {
	calls, err := c.store.Activities(r.Context(), souvenir.ActivityQuery{Credential: souvenir.CredentialToken, ID: mark.TokenID, Limit: 1})
	if err != nil {
		return err
	}
	if len(calls.Activities) > 0 {
		mark.called(calls.Activities[0])
		return nil
	}
	tokens, err := c.store.Tokens(r.Context())
	if err != nil {
		return err
	}
	i := slices.IndexFunc(tokens, func(t souvenir.Token) bool { return t.ID == mark.TokenID })
	if i < 0 {
		return &failure{http.StatusNotFound, "the token is not there any more; make another one"}
	}
	if used := tokens[i].LastUsedAt; !used.IsZero() {
		mark.State, mark.At = stateUsed, used
		if s.options.NoActivity { // then there will never be more to tell
			mark.State = stateCalled
		}
	}
	return nil
}

// lookForClient looks whether an application was let in, or has called, since a time.
func (s *Server) lookForClient(r *http.Request, c caller, mark *connectedMark) error {
	since, err := timeIn(r.URL.Query(), "since")
	if err != nil {
		return err
	}
	calls, err := c.store.Activities(r.Context(), souvenir.ActivityQuery{Credential: souvenir.CredentialClient, Since: since, Limit: 1})
	if err != nil {
		return err
	}
	if len(calls.Activities) > 0 {
		mark.called(calls.Activities[0])
		return nil
	}
	grants, err := c.store.Grants(r.Context())
	if err != nil {
		return err
	}
	for _, grant := range grants {
		if !grant.CreatedAt.Before(since) || !grant.LastUsedAt.Before(since) {
			mark.State, mark.Client, mark.At = stateUsed, shortName(grant.ClientName), grant.LastUsedAt
			if s.options.NoActivity {
				mark.State = stateCalled
			}
			break
		}
	}
	return nil
}

// called notes a call.
func (m *connectedMark) called(a souvenir.Activity) {
	m.State, m.At, m.Client = stateCalled, a.StartedAt, clientName(a.Client)
	if m.Client == "" {
		m.Client = a.Credential.Name
	}
}
