// Package route describes the lines of the route table: what a request needs to be let in, and what answers it.
package route

import (
	"net/http"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// Need is what a request must have to be let in: nothing, a credential, a credential with a scope, or a person who has
// signed in with a browser, which alone may do what only people may: allow an application, or change a password. An
// administrator is such a person who is an admin.
type Need string

// The needs.
const (
	Public        Need = "nothing"
	Credential    Need = "credential"
	Person        Need = "person"
	Administrator Need = "administrator"
	MemoryRead         = Need(souvenir.ScopeMemoryRead)
	MemoryWrite        = Need(souvenir.ScopeMemoryWrite)
	FilesRead          = Need(souvenir.ScopeFilesRead)
	FilesWrite         = Need(souvenir.ScopeFilesWrite)
	Account            = Need(souvenir.ScopeAccount)
)

// Scope is the scope that is needed; empty for none.
func (n Need) Scope() souvenir.Scope {
	switch n {
	case Public, Credential, Person, Administrator:
		return ""
	}
	return souvenir.Scope(n)
}

// Handler answers a request: with a value that becomes the JSON of the answer, with a page or a redirect, with nil when
// it has written the answer itself, or with an error, which fail turns into one.
type Handler func(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error)

// Route is a line of the table.
type Route struct {
	Method, Pattern string
	Needs           Need
	Handle          Handler
}

// Get is a route of the method GET.
func Get(pattern string, needs Need, handle Handler) Route {
	return Route{"GET", pattern, needs, handle}
}

// Post is a route of the method POST.
func Post(pattern string, needs Need, handle Handler) Route {
	return Route{"POST", pattern, needs, handle}
}

// Put is a route of the method PUT.
func Put(pattern string, needs Need, handle Handler) Route {
	return Route{"PUT", pattern, needs, handle}
}

// Patch is a route of the method PATCH.
func Patch(pattern string, needs Need, handle Handler) Route {
	return Route{"PATCH", pattern, needs, handle}
}

// Delete is a route of the method DELETE.
func Delete(pattern string, needs Need, handle Handler) Route {
	return Route{"DELETE", pattern, needs, handle}
}

// AuthorizePath is the page on which a person lets an application in.
const AuthorizePath = "/oauth/authorize"
