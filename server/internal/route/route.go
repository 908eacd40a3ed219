// Package route describes the entries of the route table: what a request needs, and which handler answers it.
package route

import (
	"net/http"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// Need is the access that a request needs: none, a credential, a credential with a scope, or a person with a
// browser session, for actions reserved for people: authorizing an application, or changing a password.
// An administrator is a signed-in person with the admin role.
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

// Scope returns the required scope; empty for none.
func (n Need) Scope() souvenir.Scope {
	switch n {
	case Public, Credential, Person, Administrator:
		return ""
	}
	return souvenir.Scope(n)
}

// Handler answers a request: with a value that becomes the JSON of the answer, with a page or a redirect, with nil
// when it has written the answer itself, or with an error, which fail turns into an answer.
type Handler func(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error)

// Route is an entry of the table.
type Route struct {
	Method, Pattern string
	Needs           Need
	Handle          Handler

	// OneState says that the handler reads a single state of the store, and writes nothing. It may be called more than
	// once for a request; only the last answer counts.
	OneState bool
}

// Page returns a route of the method GET for a page that shows a single state of the store.
func Page(pattern string, needs Need, handle Handler) Route {
	return Route{Method: "GET", Pattern: pattern, Needs: needs, Handle: handle, OneState: true}
}

// Get returns a route of the method GET.
func Get(pattern string, needs Need, handle Handler) Route {
	return Route{Method: "GET", Pattern: pattern, Needs: needs, Handle: handle}
}

// Post returns a route of the method POST.
func Post(pattern string, needs Need, handle Handler) Route {
	return Route{Method: "POST", Pattern: pattern, Needs: needs, Handle: handle}
}

// Put returns a route of the method PUT.
func Put(pattern string, needs Need, handle Handler) Route {
	return Route{Method: "PUT", Pattern: pattern, Needs: needs, Handle: handle}
}

// Patch returns a route of the method PATCH.
func Patch(pattern string, needs Need, handle Handler) Route {
	return Route{Method: "PATCH", Pattern: pattern, Needs: needs, Handle: handle}
}

// Delete returns a route of the method DELETE.
func Delete(pattern string, needs Need, handle Handler) Route {
	return Route{Method: "DELETE", Pattern: pattern, Needs: needs, Handle: handle}
}

// AuthorizePath is the path of the page on which a person authorizes an application.
const AuthorizePath = "/oauth/authorize"
