package server

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
)

const (
	formCookie = "souvenir_form" // of somebody who has not signed in
	formField  = "csrf"
)

// formToken is the value of the hidden field of a page's forms. It is made of what only the browser knows that was given the
// page: its session, or a random cookie before there is one. Nothing has to be kept for it.
func (s *Server) formToken(w http.ResponseWriter, r *http.Request) string {
	own := browserSecret(r)
	if signedIn := exchangeOf(r.Context()).signedIn; signedIn != "" { // just now: the next request will have it
		own = signedIn
	}
	if own == "" {
		own = rand.Text()
		s.setCookie(w, formCookie, own, 0)
	}
	return tokenOf(own)
}

func browserSecret(r *http.Request) string {
	for _, name := range []string{tokenCookie, formCookie} {
		if c, err := r.Cookie(name); err == nil && c.Value != "" {
			return c.Value
		}
	}
	return ""
}

func tokenOf(own string) string {
	sum := sha256.Sum256([]byte("form\x00" + own))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

const maxForm = 64 << 10 // bytes

// readForm reads a form that a page of this server has sent: from this origin, and with the hidden field of that page.
func (s *Server) readForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	return s.readFormUpTo(w, r, maxForm)
}

// readLongForm does so for one with a text in it that may be as long as a memory.
func (s *Server) readLongForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	return s.readFormUpTo(w, r, s.options.MaxBody)
}

func (s *Server) readFormUpTo(w http.ResponseWriter, r *http.Request, most int64) (url.Values, error) {
	if err := s.crossSite.Check(r); err != nil {
		return nil, &failure{http.StatusForbidden, "a page of another site has sent this form; open the page here and send it again"}
	}
	r.Body = http.MaxBytesReader(w, r.Body, most)
	if err := r.ParseForm(); err != nil {
		return nil, invalid("form", "the form cannot be read: "+err.Error())
	}
	own := browserSecret(r)
	if own == "" || !hmac.Equal([]byte(tokenOf(own)), []byte(r.PostForm.Get(formField))) {
		return nil, errStaleForm
	}
	return r.PostForm, nil
}

// errStaleForm says that a form has not the hidden field that this browser was given last.
var errStaleForm = &failure{http.StatusForbidden, "this form is out of date, or cookies are blocked; open the page again and send it once more"}
