package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"

	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

const (
	// FormCookie is the cookie of a browser without a session, from which the hidden field of its forms is derived.
	FormCookie = "souvenir_form"

	// FormField is the hidden field at the start of every form.
	FormField = "csrf"
)

// FormToken returns the value of the hidden field of a page's forms. It is derived from a secret of the browser:
// its session, or a random cookie before there is one. So the server keeps no state for it.
func (s *Site) FormToken(w http.ResponseWriter, r *http.Request) string {
	own := BrowserSecret(r)
	if signedIn := request.Of(r.Context()).SignedIn; signedIn != "" { // just now: the next request will carry it
		own = signedIn
	}
	if own == "" {
		own = rand.Text()
		s.SetCookie(w, FormCookie, own, 0)
	}
	return tokenOf(own, rand.Text()[:saltLength]) + typedBy(request.Of(r.Context()).Line())
}

// typedBy returns the mark in a form of the user for whom its page was made, so that no other user sees the input;
// empty: no user was signed in. The mark is no secret, and proves nothing.
func typedBy(user string) string {
	if user == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("typed by\x00" + user))
	return "." + base64.RawURLEncoding.EncodeToString(sum[:12])
}

// BrowserSecret returns a secret of the browser and this server: the session, or the cookie for forms.
func BrowserSecret(r *http.Request) string {
	for _, name := range []string{request.CredentialCookie, FormCookie} {
		if c, err := r.Cookie(name); err == nil && c.Value != "" {
			return c.Value
		}
	}
	return ""
}

// saltLength is the number of characters before a token that make it another one in each page, so that the lengths of
// compressed pages tell nothing about it.
const saltLength = 12

func tokenOf(own, salt string) string {
	sum := sha256.Sum256([]byte("form\x00" + salt + "\x00" + own))
	return salt + base64.RawURLEncoding.EncodeToString(sum[:])
}

// MaxForm is the maximum size in bytes of a form without a long text.
const MaxForm = 64 << 10

// ReadForm reads a form of a page of this server: from this origin, and with the hidden field of that page.
func (s *Site) ReadForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	return s.readFormUpTo(w, r, MaxForm)
}

// ReadLongForm is ReadForm for a form with a text of up to the length of a memory.
func (s *Site) ReadLongForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	return s.readFormUpTo(w, r, s.MaxBody)
}

func (s *Site) readFormUpTo(w http.ResponseWriter, r *http.Request, most int64) (url.Values, error) {
	if err := s.CheckOrigin(r); err != nil {
		return nil, err
	}
	r.Body = http.MaxBytesReader(w, r.Body, most)
	if err := r.ParseForm(); err != nil {
		return nil, failure.Invalid("form", "the form cannot be read: "+err.Error())
	}
	if CheckFormToken(r, r.PostForm.Get(FormField)) != nil {
		return nil, &staleForm{r.PostForm}
	}
	return r.PostForm, NameProjects(r, r.PostForm)
}

// CheckOrigin refuses a form from a page of another site.
func (s *Site) CheckOrigin(r *http.Request) error {
	if err := s.CrossSite.Check(r); err != nil {
		return &failure.Error{Status: http.StatusForbidden,
			Message: "a page of another site has sent this form; open the page here and send it again"}
	}
	return nil
}

// CheckFormToken checks the value of the hidden field. It serves forms with files, which are read as a stream.
func CheckFormToken(r *http.Request, sent string) error {
	own := BrowserSecret(r)
	token, by, marked := strings.Cut(sent, ".")
	if user := request.Of(r.Context()).Line(); marked && user != "" && "."+by != typedBy(user) {
		return ErrStaleForm
	}
	if own == "" || len(token) < saltLength || !hmac.Equal([]byte(tokenOf(own, token[:saltLength])), []byte(token)) {
		return ErrStaleForm
	}
	return nil
}

// ErrStaleForm is the error for a form without the current hidden field of its browser.
var ErrStaleForm = &failure.Error{Status: http.StatusForbidden,
	Message: "this form is out of date, or cookies are blocked; open the page again and send it once more"}

// staleForm is ErrStaleForm with the input, from a page of this origin.
type staleForm struct{ values url.Values }

func (e *staleForm) Error() string { return ErrStaleForm.Error() }
func (e *staleForm) Unwrap() error { return ErrStaleForm }
