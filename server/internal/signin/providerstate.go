package signin

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

	"github.com/souvenir-ai/souvenir/server/internal/ratelimit"
)

// loginState is a browser's way to an external provider and back.
type loginState struct {
	State    string    `json:"s"` // which the answer must carry
	Nonce    string    `json:"n"` // which the ID token must carry
	Verifier string    `json:"v"` // of PKCE
	Until    time.Time `json:"u"`
	Next     string    `json:"x"` // where to go after a sign-in, as in the sign-in's form
	// id of the session whose user wants to link an identity; empty: somebody wants to sign in
	Session string `json:"l"`
	Again   bool   `json:"a"` // the person is to show anew who they are
}

// loginStates keeps them where they belong, in the browsers: in a cookie that this process has sealed, so that however
// many are begun, by whomever, nobody's is lost. Who comes back after a restart begins anew.
//
// A sign-in ends once: states that came back are remembered for as long as they would be good.
type loginStates struct {
	seal cipher.AEAD
	now  func() time.Time

	mu   sync.Mutex
	used ratelimit.Recent[string, struct{}] // states
	long ratelimit.Recent[string, string]   // by state: where to go, if a cookie has no room for it
}

const (
	stateLife   = 10 * time.Minute
	stateCookie = "souvenir_provider_" // and the beginning of the state: there may be several, in several tabs
	stateName   = 8                    // characters of it
	mostStates  = 4                    // of a browser: the line of a request that has all cookies must not be cut by a proxy
	mostUsed    = 100_000              // some 10 MB; each is a sign-in that came back, from a browser that was sent out
	mostNext    = 1 << 10              // bytes in a cookie
	mostLong    = 500                  // of at most MaxNext bytes or so
)

func newLoginStates() (*loginStates, error) {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	seal, err := cipher.NewGCMWithRandomNonce(block)
	return &loginStates{seal: seal, now: time.Now, used: ratelimit.Recent[string, struct{}]{Most: mostUsed},
		long: ratelimit.Recent[string, string]{Most: mostLong}}, err
}

// beginLogin seals the state of a sign-in into a cookie. State, nonce and verifier are made here.
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
	if len(open) >= mostStates { // which is the oldest, a browser does not tell
		for _, state := range open {
			s.setStateCookie(w, state, "")
		}
	}
	value := base64.RawURLEncoding.EncodeToString(all.seal.Seal(nil, nil, text, nil))
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

// endLogin returns the state of the sign-in that a browser comes back from, if it is one of its own that has not ended.
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
	if _, used := all.used.Get(state); used {
		return j, false
	}
	all.used.Set(state, struct{}{})
	if long, kept := all.long.Get(state); kept {
		j.Next = long
	}
	return j, true
}

// MaxNext is the most bytes of a request: it travels in addresses and forms, within others, and proxies cut at 8 KiB.
const MaxNext = 8 << 10
