package web

import (
	"net/url"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// Tab is one of the pages of a project.
type Tab struct {
	Path, Name string
	Here       bool
}

// ProjectPath is the path of a project's pages.
func ProjectPath(p souvenir.Project) string {
	return "/projects/" + projectSegment(p.Owner) + "/" + projectSegment(p.ID)
}

// MemoryPath is the path of the page of a memory.
func MemoryPath(id string) string { return "/memories/" + url.PathEscape(id) }

// NotSet is the value of a filter for memories without a value. No known key can have it: names and words are not
// blank.
const NotSet = " "

// Link is a link to the object of a call.
type Link struct {
	Noun string
	Name string // the visible text
	Path string // of its page; empty: the caller cannot open it
}

// projectSegment escapes an id as part of a path. Browsers resolve segments of dots, and a few words name other
// pages.
func projectSegment(id string) string {
	if strings.Trim(id, ".") == "" || strings.HasPrefix(id, "~") || id == "rules" {
		id = "~" + id
	}
	return url.PathEscape(id)
}
