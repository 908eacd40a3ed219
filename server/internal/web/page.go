// Package web is the frame of all pages: their templates, style sheets and scripts, the menu, forms and their
// protection, messages of what was just done, and the words and numbers that pages show.
package web

import (
	"errors"
	"net/http"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
)

// Page is what a person is shown: a file of templates, within the frame that all pages have. The template defines
// content, class as "narrow" if it is a card in the middle of the window, and head for a style sheet or a script of its
// own.
type Page struct {
	Template string // its name, without .html
	Title    string // also the only heading of the first level
	Status   int    // zero: 200
	Data     any

	// Part is the template, defined in the page's file, that is all of the answer when a script of the page has asked for
	// the page anew (htmx): with the same data as content, and within what content shows. Empty: the script is given the
	// whole page.
	Part string
}

// Redirect sends a browser elsewhere, with 303: to a path of this server, made by path, or to an address outside that
// was checked before.
type Redirect string

// frame is what a template works on.
type frame struct {
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
func (p frame) Menu() []menuGroup { return menu(*p.User, p.Here, p.Invitations) }

// Asset is the address of a file of static, with its version.
func (p frame) Asset(name string) (string, error) {
	all, err := assets()
	if err != nil {
		return "", err
	}
	a, ok := all[name]
	if !ok {
		return "", errors.New("there is no file " + failure.Quote(name) + " in static")
	}
	return p.Base + "/static/" + name + "?v=" + a.version, nil
}

// ErrSignIn says that somebody has to sign in first.
var ErrSignIn = &failure.Error{Status: http.StatusUnauthorized, Message: "nobody has signed in"}
