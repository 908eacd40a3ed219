package signin

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/ratelimit"
	"github.com/souvenir-ai/souvenir/server/internal/seal"
	"github.com/souvenir-ai/souvenir/server/internal/shared"
)

// loginState is the state of a sign-in at an external provider, between redirect and return.
type loginState struct {
	State    string    `json:"s"` // returned in the response
	Nonce    string    `json:"n"` // returned in the ID token
	Verifier string    `json:"v"` // of PKCE
	Until    time.Time `json:"u"`
	Next     string    `json:"x"` // where to go after a sign-in, as in the sign-in's form
	// Session is the id of the session whose user wants to link an identity; empty: a sign-in
	Session string `json:"l"`
	Again   bool   `json:"a"` // demands a fresh sign-in
}

// loginStates keeps each state in its browser, in a sealed cookie. So starting any number of sign-ins evicts no other
// user's, and a sign-in may end at another server on the store than the one where it began.
//
// A sign-in ends once: the servers on the store remember used states for as long as they would be valid.
type loginStates struct {
	sealer seal.Sealer
	now    func() time.Time
	used   shared.Values // states

	mu   sync.Mutex
	long ratelimit.Recent // of string, by state: where to go, if too long for a cookie; elsewhere: the start page
}

const (
	stateLife    = 10 * time.Minute
	statePurpose = "provider"
	stateCookie  = "souvenir_provider_" // followed by the start of the state: several tabs may have one each
	stateName    = 8                    // characters of it
	mostStates   = 4                    // per browser: a header line with all cookies must not exceed a proxy's limit
	mostUsed     = 100_000              // about 10 MB; each is a sign-in that returned, in a browser that began it
	mostNext     = 1 << 10              // bytes in a cookie
	mostLong     = 500                  // of at most about MaxNext bytes each
)

func newLoginStates(store *souvenir.Store, log *slog.Logger) *loginStates {
	return &loginStates{sealer: seal.Sealer{Store: store}, now: time.Now,
		used: shared.Values{Store: store, Log: log, Kind: "state", Life: stateLife, Most: mostUsed},
		long: ratelimit.Recent{Most: mostLong}}
}

// beginLogin seals the state of a sign-in into a cookie. It generates state, nonce and verifier.
func (s *Service) beginLogin(w http.ResponseWriter, r *http.Request, j loginState) (loginState, error) {
	all := s.provider.began
	j.State, j.Nonce, j.Verifier, j.Until = rand.Text(), rand.Text(), rand.Text()+rand.Text(), all.now().Add(stateLife)
	if len(j.Next) > 2*MaxNext {
		j.Next = ""
	}
	sealed := j
	if len(j.Next) > mostNext {
		all.mu.Lock()
		all.long.Set(j.State, j.Next)
		all.mu.Unlock()
		sealed.Next = ""
	}
	text, err := json.Marshal(sealed)
	if err != nil {
		return j, err
	}
	var open []string
	for _, c := range r.Cookies() {
		if state, ours := strings.CutPrefix(c.Name, stateCookie); ours && len(state) == stateName {
			open = append(open, state)
		}
	}
	if len(open) >= mostStates { // the browser does not tell which is the oldest
		for _, state := range open {
			s.setStateCookie(w, state, "")
		}
	}
	value, err := all.sealer.Seal(r.Context(), statePurpose, text)
	if err != nil {
		return j, err
	}
	s.setStateCookie(w, j.State, value)
	return j, nil
}

func (s *Service) setStateCookie(w http.ResponseWriter, state, value string) {
	c := &http.Cookie{Name: stateCookie + state[:stateName], Value: value, Path: s.site.Path(providerLoginPath),
		MaxAge:   int(stateLife / time.Second),
		HttpOnly: true, Secure: s.site.Secure(), SameSite: http.SameSiteLaxMode}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// endLogin returns the state of the sign-in from which a browser returns, if the browser began it and it has not
// ended.
func (s *Service) endLogin(w http.ResponseWriter, r *http.Request, state string) (j loginState, ok bool) {
	all := s.provider.began
	if len(state) != len(rand.Text()) {
		return j, false
	}
	c, err := r.Cookie(stateCookie + state[:stateName])
	if err != nil {
		return j, false
	}
	s.setStateCookie(w, state, "")
	text, ok, err := all.sealer.Open(r.Context(), statePurpose, c.Value)
	if err != nil {
		s.log.WarnContext(r.Context(), "could not check the redirect from a provider", "error", err)
	}
	if err != nil || !ok || json.Unmarshal(text, &j) != nil {
		return j, false
	}
	if subtle.ConstantTimeCompare([]byte(j.State), []byte(state)) != 1 || !all.now().Before(j.Until) {
		return j, false
	}
	unused, err := all.used.Use(r.Context(), state)
	if err != nil {
		s.log.WarnContext(r.Context(), "could not check the redirect from a provider", "error", err)
	}
	if !unused {
		return j, false
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if long, kept := ratelimit.Get[string](&all.long, state); kept {
		j.Next = long
	}
	return j, true
}

// MaxNext is the maximum size of a request in bytes: it is part of addresses and forms, inside others, and proxies
// cut at 8 KiB.
const MaxNext = 8 << 10
