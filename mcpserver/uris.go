package mcpserver

import (
	"net/url"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// The URIs of resources. Ids are escaped as in the path of any URL, so that OWNER/ID of a shared project is one part of
// it.
const (
	uriStart    = "souvenir://"
	projectsURI = uriStart + "projects"
	rulesURI    = uriStart + "rules" // the user's own, for all projects
)

// kind is what a resource is.
type kind string

const (
	kindProjects     kind = "projects"
	kindProject      kind = "project"
	kindGeneralRules kind = "general rules"
	kindRules        kind = "rules"
	kindTodo         kind = "todo"
	kindMain         kind = "main"
	kindMemory       kind = "memory"
	kindFile         kind = "file"
)

// address is a URI taken apart.
type address struct {
	kind kind
	id   string // of the memory, file or project
}

// uri puts the address together.
func (a address) uri() string {
	id := url.PathEscape(a.id)
	switch a.kind {
	case kindProjects:
		return projectsURI
	case kindGeneralRules:
		return rulesURI
	case kindMemory:
		return uriStart + "memories/" + id
	case kindFile:
		return uriStart + "files/" + id
	case kindProject:
		return projectsURI + "/" + id
	}
	return projectsURI + "/" + id + "/" + string(a.kind)
}

// parseURI takes a URI apart. What it returns may not exist.
func parseURI(uri string) (a address, ok bool) {
	rest, ok := strings.CutPrefix(uri, uriStart)
	if !ok {
		return address{}, false
	}
	parts := strings.Split(rest, "/")
	for i, part := range parts {
		decoded, err := url.PathUnescape(part)
		if err != nil || decoded == "" {
			return address{}, false
		}
		parts[i] = decoded
	}
	switch {
	case rest == "projects":
		return address{kind: kindProjects}, true
	case rest == "rules":
		return address{kind: kindGeneralRules}, true
	case len(parts) == 2 && parts[0] == "memories":
		return address{kindMemory, parts[1]}, true
	case len(parts) == 2 && parts[0] == "files":
		return address{kindFile, parts[1]}, true
	case len(parts) == 2 && parts[0] == "projects":
		return address{kindProject, parts[1]}, true
	case len(parts) == 3 && parts[0] == "projects":
		switch of := kind(parts[2]); of {
		case kindRules, kindTodo, kindMain:
			return address{of, parts[1]}, true
		}
	}
	return address{}, false
}

// scope is what a credential must carry to read the resource.
func (a address) scope() souvenir.Scope {
	if a.kind == kindFile {
		return souvenir.ScopeFilesRead
	}
	return souvenir.ScopeMemoryRead
}
