package mcpserver

import (
	"net/url"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// URIs of resources. Ids are escaped as in any URL's path, so that OWNER/ID of a shared project is one segment.
const (
	uriStart    = "souvenir://"
	projectsURI = uriStart + "projects"
	rulesURI    = uriStart + "rules" // the user's own, for all projects
)

// kind is the kind of a resource.
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

// address is a parsed URI.
type address struct {
	kind kind
	id   string // of the memory, file or project
}

// uri returns the address as a URI.
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

// parseURI parses a URI. The resource may not exist.
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

// scope returns the scope that reading the resource requires.
func (a address) scope() souvenir.Scope {
	if a.kind == kindFile {
		return souvenir.ScopeFilesRead
	}
	return souvenir.ScopeMemoryRead
}
