package web

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

//go:embed templates static
var embedded embed.FS

// SetHeaders sets the security headers of a page: it may load only what this server serves, and no frame may show
// it. There is no form-action, since Chromium would apply it to the redirect after a form, too. Scripts of other
// origins are blocked. There is no Cross-Origin-Opener-Policy either: applications open the pages in a window that
// reports the outcome back to them, and such a policy cuts that link for good.
//
// Other sites get no address of a page in Referer (some contain an invitation). This server does: under
// no-referrer, browsers send forms with "Origin: null", and over plain HTTP the origin is the only way to tell them
// from another site's.
func SetHeaders(h http.Header) {
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Content-Security-Policy",
		"default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri "+
			"'none'; frame-ancestors 'none'")
	h.Del("Access-Control-Allow-Origin")
	h.Del("Access-Control-Expose-Headers")
}

// Rendered is a page that is ready to be sent.
type Rendered struct {
	Status int    // 0: it could not be rendered
	Body   []byte // may be empty: of a part with nothing to show
}

// Show writes a page, or the part of it that a script requested.
func (s *Site) Show(w http.ResponseWriter, r *http.Request, status int, p Page) {
	s.Send(w, r, s.Render(w, r, status, p))
}

// Send writes a rendered page.
func (s *Site) Send(w http.ResponseWriter, r *http.Request, p Rendered) {
	if p.Status == 0 {
		http.Error(w, failure.Internal, http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Add("Vary", "HX-Request")
	if compresses(r) {
		WriteCompressed(w, r, p.Status, p.Body)
		return
	}
	w.WriteHeader(p.Status)
	w.Write(p.Body) //nolint:errcheck // the client is gone, and the log has the count
}

// Render renders a page, or the part of it that a script requested, and does all the reading for it. It writes only
// headers.
func (s *Site) Render(w http.ResponseWriter, r *http.Request, status int, p Page) Rendered {
	if p.Status != 0 {
		status = p.Status
	}
	c := request.Of(r.Context()).Caller
	data := frame{Title: p.Title, Head: cmp.Or(p.Heading, p.Title), Base: s.Base(), CSRF: s.FormToken(w, r),
		Here: strings.TrimPrefix(r.URL.Path, s.Base()), Status: status, ReadOnly: s.ReadOnly,
		Theme: themeOf(r), Data: p.Data}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		data.Notice, data.Address = s.notice(r, c), withNotice(strings.TrimPrefix(r.URL.RequestURI(), s.Base()), "", "")
	}
	if c.SignInID != "" {
		data.User = &c.User
	}
	root := "frame.html"
	if p.Part != "" && FromScript(r) {
		root = p.Part
	} else if data.User != nil {
		data.Invitations = s.waitingInvitations(r, c)
		if s.Proposals != nil {
			data.Proposals = s.Proposals(r, c)
		}
	}
	var body bytes.Buffer
	all, err := templates()
	if err == nil {
		err = all.execute(&body, p.Template, root, data)
	}
	if err != nil {
		s.log.ErrorContext(r.Context(), "a page could not be rendered", "page", p.Template, "error",
			err)
		return Rendered{}
	}
	return Rendered{status, body.Bytes()}
}

// FromScript reports whether htmx requests a part of a page, and not a whole one.
func FromScript(r *http.Request) bool {
	h := r.Header
	return h.Get("HX-Request") == "true" && h.Get("HX-Boosted") == "" && h.Get("HX-History-Restore-Request") == ""
}

// notice returns the notice of the last action, from the address of the page; nil: none.
func (s *Site) notice(r *http.Request, c request.Caller) *notice {
	query := r.URL.Query()
	if step, ok := s.undoing.step(c.User.ID, query.Get(undoParameter), false); ok {
		if step.Back == nil {
			return &notice{Text: step.Text}
		}
		return &notice{step.Text, query.Get(undoParameter)}
	}
	if text := notices[query.Get(NoticeParameter)]; text != "" {
		return &notice{Text: text}
	}
	return nil
}

// GoTo redirects a browser; a script gets the header for loading the whole page.
func (s *Site) GoTo(w http.ResponseWriter, r *http.Request, to Redirect) {
	if FromScript(r) {
		w.Header().Set("HX-Redirect", string(to))
		w.WriteHeader(http.StatusNoContent)
		return
	}
	http.Redirect(w, r, string(to), http.StatusSeeOther)
}

// Fail shows an error page. A person without a session, or with an expired one, is asked to sign in.
func (s *Site) Fail(w http.ResponseWriter, r *http.Request, status int, message string, err error) {
	if errors.Is(err, ErrSignIn) {
		if draft := s.draftOf(w, r); draft != nil {
			if p, ok := s.SignInPage(r.Context(), *draft); ok {
				s.Show(w, r, http.StatusUnauthorized, p)
				return
			}
		}
		if FromScript(r) { // typed text on the page must not be lost
			s.showProblem(w, r, http.StatusUnauthorized, "session-ended", nil)
			return
		}
		next := ""
		if r.Method == http.MethodGet {
			next = "?next=" + url.QueryEscape(r.URL.RequestURI())
		}
		s.GoTo(w, r, Redirect(s.Path("/login")+next))
		return
	}
	// A form may be from before a new sign-in in another window.
	if stale := (*staleForm)(nil); errors.As(err, &stale) && !FromScript(r) {
		if draft := s.keptDraft(r, stale.values); draft != nil {
			if p, ok := s.DraftPage(*draft, request.Of(r.Context()).Line()); ok {
				s.Show(w, r, status, p)
				return
			}
		}
	}
	if FromScript(r) {
		s.showProblem(w, r, status, "problem-alone", Sentence(message))
		return
	}
	s.Show(w, r, status, Page{Template: "error", Title: failureTitles[status], Data: Sentence(message)})
}

// showProblem answers a script with a part of the page of errors, for the error area of every page.
func (s *Site) showProblem(w http.ResponseWriter, r *http.Request, status int, part string, data any) {
	w.Header().Set("HX-Retarget", "#problems")
	w.Header().Set("HX-Reswap", "innerHTML show:window:top")
	s.Show(w, r, status, Page{Template: "error", Title: failureTitles[status], Data: data, Part: part})
}

// failureTitles are the headings of the error pages.
var failureTitles = map[int]string{
	http.StatusBadRequest:          "Invalid request",
	http.StatusUnauthorized:        "Sign in",
	http.StatusForbidden:           "Not allowed",
	http.StatusNotFound:            "Not found",
	http.StatusConflict:            "Conflict",
	http.StatusTooManyRequests:     "Too many requests",
	http.StatusInternalServerError: "Something went wrong",
	http.StatusServiceUnavailable:  "Temporarily unavailable",
}

// htmxConfig configures htmx: nothing that the content security policy forbids, error responses are shown, and
// going back reloads the page, since others may have changed it.
const htmxConfig = `{"includeIndicatorStyles":false,"allowEval":false,"allowScriptTags":false,` +
	`"selfRequestsOnly":true,"historyCacheSize":0,"refreshOnHistoryMiss":true,` +
	`"scrollIntoViewOnBoost":false,"responseHandling":[{"code":"204","swap":false},{"code":"[23]..","swap":true},` +
	`{"code":"[45]..","swap":true,"error":true}]}`
