package server

import (
	"net/http"

	"github.com/souvenir-ai/souvenir"
)

// need is what a request must have to be let in: nothing, a credential, a credential with a scope, or a person who has
// signed in with a browser, which alone may do what only people may: allow an application, or change a password. An
// administrator is such a person who is an admin.
type need string

const (
	nothing       need = "nothing"
	credential    need = "credential"
	person        need = "person"
	administrator need = "administrator"
	memoryRead         = need(souvenir.ScopeMemoryRead)
	memoryWrite        = need(souvenir.ScopeMemoryWrite)
	filesRead          = need(souvenir.ScopeFilesRead)
	filesWrite         = need(souvenir.ScopeFilesWrite)
	account            = need(souvenir.ScopeAccount)
)

// scope is the scope that is needed; empty for none.
func (n need) scope() souvenir.Scope {
	switch n {
	case nothing, credential, person, administrator:
		return ""
	}
	return souvenir.Scope(n)
}

// handler answers a request: with a value that becomes the JSON of the answer, with a page or a redirect, with nil when it
// has written the answer itself, or with an error, which fail turns into one.
type handler func(w http.ResponseWriter, r *http.Request, c caller) (any, error)

// route is a line of the table.
type route struct {
	method, pattern string
	needs           need
	handle          handler
}

func get(pattern string, needs need, handle handler) route {
	return route{"GET", pattern, needs, handle}
}

func post(pattern string, needs need, handle handler) route {
	return route{"POST", pattern, needs, handle}
}

func put(pattern string, needs need, handle handler) route {
	return route{"PUT", pattern, needs, handle}
}

func patch(pattern string, needs need, handle handler) route {
	return route{"PATCH", pattern, needs, handle}
}

func del(pattern string, needs need, handle handler) route {
	return route{"DELETE", pattern, needs, handle}
}

const (
	authorizePath = "/oauth/authorize"
)
