package web

import (
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const (
	maxDraft    = 128 << 10 // bytes of a form that is kept
	maxDraftEnc = 5 * maxDraft

	draftField = "draft" // of the sign-in form: the kept form, sealed
)

// Draft is a form whose sender was no longer signed in. The sign-in page holds it, sealed, and shows it again
// afterwards to the same user: no server keeps it, nor does the browser.
type Draft struct {
	By      string // who typed it: what typedBy returned
	Action  string // where it was sent, without the base
	Encoded string // its fields, without the one that protects it
}

// draftOf returns the form of a request without a session; nil: there is none to keep. The form must come from a page
// of this server, so that no other site can have a person send a form of its own. Its hidden field is not checked here:
// the session from which it was derived has gone, and perhaps the cookie, too.
func (s *Site) draftOf(w http.ResponseWriter, r *http.Request) *Draft {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" || r.Method != http.MethodPost || FromScript(r) ||
		r.ContentLength > maxDraft || s.SignInPage == nil || s.CheckOrigin(r) != nil {
		return nil
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxDraft)
	if r.ParseForm() != nil {
		return nil
	}
	return s.keptDraft(r, r.PostForm)
}

// keptDraft returns a form as a draft; nil: it has nothing to keep.
func (s *Site) keptDraft(r *http.Request, form url.Values) *Draft {
	if !hasText(form) {
		return nil
	}
	values := maps.Clone(form)
	values.Del(FormField)
	_, by, _ := strings.Cut(form.Get(FormField), ".")
	return &Draft{By: by, Action: strings.TrimPrefix(r.URL.Path, s.Base()), Encoded: values.Encode()}
}

// hasText reports whether a form has a text that a person would not like to type again, and no password, which no page
// may hold.
func hasText(values url.Values) bool {
	found := false
	for name, all := range values {
		if strings.Contains(name, "password") {
			return false
		}
		found = found || slices.ContainsFunc(all, func(value string) bool { return isText(name, value) })
	}
	return found
}

func isText(name, value string) bool {
	return value != "" && name != FormField &&
		(name == "content" || len(value) > 60 || strings.Contains(value, "\n"))
}

// ReadSignIn reads the form of the sign-in page, with the sealed draft that it holds; empty: none.
func (s *Site) ReadSignIn(w http.ResponseWriter, r *http.Request) (form url.Values, draft string, err error) {
	values, err := s.readFormUpTo(w, r, MaxForm+maxDraftEnc)
	return values, values.Get(draftField), err
}

// DraftPage shows a draft to the user who typed it and has signed in, to be sent again. Texts can be changed first. It
// shows nothing of another user's draft.
func (s *Site) DraftPage(d Draft, user string) (Page, bool) {
	values, err := url.ParseQuery(d.Encoded)
	if err != nil || "."+d.By != typedBy(user) || s.LocalPath(d.Action) != s.Path(d.Action) {
		return Page{}, false
	}
	data := draftPage{Action: d.Action}
	for name, all := range values {
		for _, value := range all {
			field := Fact{Key: name, Value: value}
			if isText(name, value) {
				data.Texts = append(data.Texts, field)
			} else {
				data.Kept = append(data.Kept, field)
			}
		}
	}
	for _, list := range [][]Fact{data.Texts, data.Kept} {
		slices.SortStableFunc(list, func(a, b Fact) int { return strings.Compare(a.Key, b.Key) })
	}
	return Page{Template: "draft", Title: "What you typed is still here", Data: data}, true
}

type draftPage struct {
	Action      string
	Texts, Kept []Fact
}
