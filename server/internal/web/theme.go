package web

import (
	"net/http"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// themeCookie is the cookie in which a browser keeps the theme of the pages, signed in or not.
const themeCookie = "souvenir_theme"

const keepTheme = 365 * 24 * 60 * 60 // seconds

// theme is a choice of colours.
type theme struct{ Value, Label string }

// themes are the choices; the first follows the system, and is the default.
var themes = []theme{{"system", "System"}, {"light", "Light"}, {"dark", "Dark"}}

// themeOf returns the theme that a browser has chosen.
func themeOf(r *http.Request) string {
	c, err := r.Cookie(themeCookie)
	if err != nil || !isTheme(c.Value) {
		return themes[0].Value
	}
	return c.Value
}

func isTheme(value string) bool {
	return slices.ContainsFunc(themes, func(t theme) bool { return t.Value == value })
}

// setTheme keeps the theme in a cookie of the browser, and goes back to the page.
func (s *Site) setTheme(w http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
	values, err := s.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	chosen := values.Get("theme")
	switch {
	case !isTheme(chosen):
		return nil, failure.Invalid("theme", "theme is "+failure.Quote(chosen)+"; expected system, light or dark")
	case chosen == themes[0].Value:
		s.SetCookie(w, themeCookie, "", 0)
	default:
		s.SetCookie(w, themeCookie, chosen, keepTheme)
	}
	return Redirect(s.LocalPath(strings.TrimPrefix(values.Get("next"), s.Base()))), nil
}
