package server

import (
	"net/url"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// projectTab is one of the pages of a project.
type projectTab struct {
	Path, Name string
	Here       bool
}

// projectPath is the path of a project's pages, for an address.
func projectPath(p souvenir.Project) string {
	return "/projects/" + projectSegment(p.Owner) + "/" + projectSegment(p.ID)
}

// memoryPath is the path of the page of a memory.
func memoryPath(id string) string { return "/memories/" + url.PathEscape(id) }

// notSet, as the value of a filter, stands for memories that have none. No known key can have it: names and words are not blank.
const notSet = " "

// thing is what a call was about.
type thing struct {
	Noun string
	Name string // as it is shown
	Path string // of its page; empty: the caller cannot open it
}

// projectSegment is an id as part of a path. Browsers take dots alone for a way up, and a few words name other pages.
func projectSegment(id string) string {
	if strings.Trim(id, ".") == "" || strings.HasPrefix(id, "~") || id == "rules" {
		id = "~" + id
	}
	return url.PathEscape(id)
}
