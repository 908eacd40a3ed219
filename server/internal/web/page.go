// Package web is the frame of all pages: templates, style sheets and scripts, the menu, forms and their protection,
// notices, and formatting of texts and numbers.
package web

import (
	"errors"
	"net/http"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
)

// Page is a page for a person: a template file, rendered within the common frame. The template defines content,
// class as "narrow" for a card in the middle of the window, and head for a style sheet or a script of its own.
type Page struct {
	Template string // without .html
	Title    string // also the only first-level heading, unless Heading is set
	Heading  string // of a page whose title repeats its content; empty: the title
	Status   int    // zero: 200
	Data     any

	// Part is the template, defined in the page's file, that forms the whole answer when a script requests the page
	// again (htmx): with the same data as content, and within its HTML. Empty: the script gets the whole page.
	Part string
}

// Redirect sends a browser elsewhere, with 303: to a path of this server, made by Path, or to a checked external
// address.
type Redirect string

// frame is the data of all templates.
type frame struct {
	Title  string
	Head   string // the first-level heading
	Base   string // path of the server, without a trailing slash
	CSRF   string // value of the hidden field csrf of every form
	User   *souvenir.User
	Here   string // path of the page, without Base
	Notice *notice
	Data   any

	Status   int  // of the answer
	ReadOnly bool // nothing can be changed

	Theme   string // of the browser, from themes
	Address string // of the page, without Base and without a notice; empty: it answers a form

	Invitations int // to projects, pending for the user
	Proposals   int // that the user can decide about
}

// notice reports the last action.
type notice struct {
	Text string // a sentence
	Undo string // name of the step to undo; empty: none
}

// Menu is the menu of the page.
func (p frame) Menu() []menuGroup { return menu(*p.User, p.Here, p.Invitations, p.Proposals) }

// Themes are the themes to choose from.
func (frame) Themes() []theme { return themes }

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

// ErrSignIn is the error for a request without a session.
var ErrSignIn = &failure.Error{Status: http.StatusUnauthorized, Message: "no user has signed in"}
