package server

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"
)

// journey is a browser's way to an external provider and back.
type journey struct {
	State    string    `json:"s"` // which the answer must carry
	Nonce    string    `json:"n"` // which the ID token must carry
	Verifier string    `json:"v"` // of PKCE
	Until    time.Time `json:"u"`
	Next     string    `json:"x"` // where to go after a sign-in, as in the sign-in's form
	Session  string    `json:"l"` // id of the session whose user wants to link an identity; empty: somebody wants to sign in
	Again    bool      `json:"a"` // the person is to show anew who they are
}

// journeys keeps them where they belong, in the browsers: in a cookie that this process has sealed, so that however many are begun,
// by whomever, nobody's is lost. Who comes back after a restart begins anew.
//
// A journey ends once: states that came back are remembered for as long as they would be good.
type journeys struct {
	seal cipher.AEAD
	now  func() time.Time

	mu   sync.Mutex
	used recent[string, struct{}] // states
	long recent[string, string]   // by state: where to go, if a cookie has no room for it
}

const (
	journeyLife   = 10 * time.Minute
	journeyCookie = "souvenir_provider_" // and the beginning of the state: there may be several, in several tabs
	journeyName   = 8                    // characters of it
	mostJourneys  = 4                    // of a browser: the line of a request that has all cookies must not be cut by a proxy
	mostUsed      = 100_000              // some 10 MB; each is a sign-in that came back, from a browser that was sent out
	mostNext      = 1 << 10              // bytes in a cookie
	mostLong      = 500                  // of at most maxAsking bytes or so
)

func newJourneys() (*journeys, error) {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	seal, err := cipher.NewGCMWithRandomNonce(block)
	return &journeys{seal: seal, now: time.Now, used: recent[string, struct{}]{most: mostUsed}, long: recent[string, string]{most: mostLong}}, err
}

// beginJourney seals a journey into a cookie. State, nonce and verifier are made here.
func (s *Server) beginJourney(w http.ResponseWriter, r *http.Request, j journey) (journey, error) {
	all := s.provider.began
	j.State, j.Nonce, j.Verifier, j.Until = rand.Text(), rand.Text(), rand.Text()+rand.Text(), all.now().Add(journeyLife)
	if len(j.Next) > 2*maxAsking {
		j.Next = ""
	}
	sealed := j
	if len(j.Next) > mostNext {
		all.mu.Lock()
		all.long.set(j.State, j.Next)
		all.mu.Unlock()
		sealed.Next = ""
	}
	text, err := json.Marshal(sealed)
	if err != nil {
		return j, err
	}
	var open []string
	for _, c := range r.Cookies() {
		if state, ours := strings.CutPrefix(c.Name, journeyCookie); ours && len(state) == journeyName {
			open = append(open, state)
		}
	}
	if len(open) >= mostJourneys { // which is the oldest, a browser does not tell
		for _, state := range open {
			s.setJourneyCookie(w, state, "")
		}
	}
	value := base64.RawURLEncoding.EncodeToString(all.seal.Seal(nil, nil, text, nil))
	s.setJourneyCookie(w, j.State, value)
	return j, nil
}

func (s *Server) setJourneyCookie(w http.ResponseWriter, state, value string) {
	c := &http.Cookie{Name: journeyCookie + state[:journeyName], Value: value, Path: s.path(providerLoginPath), MaxAge: int(journeyLife / time.Second),
		HttpOnly: true, Secure: s.secure(), SameSite: http.SameSiteLaxMode}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// endJourney returns the journey that a browser comes back from, if it is one of its own that has not ended.
func (s *Server) endJourney(w http.ResponseWriter, r *http.Request, state string) (j journey, ok bool) {
	all := s.provider.began
	if len(state) != len(rand.Text()) {
		return j, false
	}
	c, err := r.Cookie(journeyCookie + state[:journeyName])
	if err != nil {
		return j, false
	}
	s.setJourneyCookie(w, state, "")
	sealed, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return j, false
	}
	text, err := all.seal.Open(nil, nil, sealed, nil)
	if err != nil || json.Unmarshal(text, &j) != nil {
		return j, false
	}
	if subtle.ConstantTimeCompare([]byte(j.State), []byte(state)) != 1 || !all.now().Before(j.Until) {
		return j, false
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if _, used := all.used.get(state); used {
		return j, false
	}
	all.used.set(state, struct{}{})
	if long, kept := all.long.get(state); kept {
		j.Next = long
	}
	return j, true
}
