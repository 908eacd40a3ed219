package server

import (
	"errors"
	"net/http"

	"github.com/souvenir-ai/souvenir"
)

// page is what a person is shown: a template of web/templates, within the frame that all pages have. The template defines
// content, class as "narrow" if it is a card in the middle of the window, and head for a style sheet or a script of its own.
type page struct {
	template string // its name, without .html
	title    string // also the only heading of the first level
	status   int    // zero: 200
	data     any

	// part is the template, defined in the page's file, that is all of the answer when a script of the page has asked for the page
	// anew (htmx): with the same data as content, and within what content shows. Empty: the script is given the whole page.
	part string
}

// redirect sends a browser elsewhere, with 303: to a path of this server, made by path, or to an address outside that was
// checked before.
type redirect string

// shown is what a template works on.
type shown struct {
	Title  string
	Base   string // path under which the server is reached, without a slash at its end
	CSRF   string // value of the hidden field csrf, which every form has
	User   *souvenir.User
	Here   string // path of the page, without Base
	Notice *notice
	Data   any

	Invitations int // to projects, that wait for the user
}

// notice says what was just done.
type notice struct {
	Text string // a sentence
	Undo string // name of the step by which it can be taken back; empty: none
}

// Menu is where the user can go.
func (p shown) Menu() []menuGroup { return menu(*p.User, p.Here, p.Invitations) }

// Asset is the address of a file of web/static, with its version.
func (p shown) Asset(name string) (string, error) {
	all, err := assets()
	if err != nil {
		return "", err
	}
	a, ok := all[name]
	if !ok {
		return "", errors.New("there is no file " + quoted(name) + " in web/static")
	}
	return p.Base + "/static/" + name + "?v=" + a.version, nil
}

// errSignIn says that somebody has to sign in first.
var errSignIn = &failure{http.StatusUnauthorized, "nobody has signed in"}
