package web

import (
	"net/http"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// menuGroup is a part of the menu.
type menuGroup struct {
	Title  string // empty: no heading
	Folded bool   // it opens when it is asked for, or when one of its pages is open
	Here   bool   // one of its pages is open
	Places []menuPlace
}

// menuPlace is a page that the menu leads to.
type menuPlace struct {
	Path, Name string
	Icon       string // the lines of its picture: the data of an SVG path in a square of 24
	Here       bool   // this page, or one below it, is open
	Waiting    int    // items there that need an answer
}

// menu returns the pages that a user can open, in the order of the menu. Pages below one of them belong to it.
func menu(user souvenir.User, here string, invitations, proposals int) []menuGroup {
	groups := []menuGroup{
		{Places: []menuPlace{{Path: "/", Name: "Overview"}, {Path: "/memories", Name: "Memories"},
			{Path: ProposalsPath, Name: "Proposals", Waiting: proposals},
			{Path: "/projects", Name: "Projects"}, {Path: "/files", Name: "Files"},
			{Path: "/graph", Name: "Graph"}, {Path: "/map", Name: "Map"}, {Path: "/activity", Name: "Activity"},
			{Path: TrashPath, Name: "Trash"}}},
		{Title: "Clients", Places: []menuPlace{{Path: "/connect", Name: "Connect"}, {Path: "/tokens", Name: "Tokens"},
			{Path: "/connected", Name: "Applications"}, {Path: "/clients", Name: "OAuth clients"}}},
		{Title: "You", Places: []menuPlace{{Path: SharingPath, Name: "Project invitations", Waiting: invitations},
			{Path: "/profile", Name: "Profile"}, {Path: "/transfer", Name: "Export and import"},
			{Path: "/settings", Name: "Settings"}}},
	}
	server := menuGroup{Title: "Server", Folded: true, Places: []menuPlace{{Path: "/about", Name: "About"}}}
	if user.Role == souvenir.RoleAdmin {
		server.Places = append([]menuPlace{{Path: "/users", Name: "Users"}, {Path: "/invitations", Name: "Invitations"},
			{Path: "/backup", Name: "Backup and restore"}, {Path: "/audit", Name: "Audit log"}}, server.Places...)
	}
	groups = append(groups, server)
	for g := range groups {
		for i, place := range groups[g].Places {
			open := here == place.Path || place.Path != "/" && strings.HasPrefix(here, place.Path+"/")
			groups[g].Places[i].Here, groups[g].Places[i].Icon = open, icons[place.Path]
			groups[g].Here = groups[g].Here || open
		}
	}
	return groups
}

// icons are the pictures of the places, as lines in a square of 24.
var icons = map[string]string{
	"/":           "M4 11l8-7 8 7v9h-5v-6H9v6H4z",
	"/memories":   "M5 4h14v16l-7-4-7 4z",
	ProposalsPath: "M12 3v3M5 6l2 2M19 6l-2 2M9 19h6M10 21h4M8 14a5 5 0 1 1 8 0c-1 1-1 2-1 3H9c0-1 0-2-1-3z",
	"/projects":   "M3 6h6l2 3h10v10H3z",
	"/files":      "M6 3h8l4 4v14H6zM14 3v4h4",
	"/graph": "M8 8l8 8M8 16l3-3M4 6a2 2 0 1 0 4 0 2 2 0 1 0-4 0M16 18a2 2 0 1 0 4 0 2 2 0 1 0-4 0" +
		"M4 18a2 2 0 1 0 4 0 2 2 0 1 0-4 0",
	"/map":         "M4 6l5-2 6 2 5-2v14l-5 2-6-2-5 2zM9 4v14M15 6v14",
	"/activity":    "M3 12h4l3-8 4 16 3-8h4",
	TrashPath:      "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5",
	"/connect":     "M9 3v5M15 3v5M6 8h12v3a6 6 0 0 1-12 0zM12 17v4",
	"/tokens":      "M4 15a4 4 0 1 0 8 0 4 4 0 1 0-8 0M11 12l8-8M16 7l3 3",
	"/connected":   "M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z",
	"/clients":     "M8 8l-4 4 4 4M16 8l4 4-4 4M13 6l-2 12",
	SharingPath:    "M3 6h18v12H3zM3 7l9 7 9-7",
	"/profile":     "M8 8a4 4 0 1 0 8 0 4 4 0 1 0-8 0M4 21c0-5 4-7 8-7s8 2 8 7",
	"/transfer":    "M8 4v14M4 14l4 4 4-4M16 20V6M12 10l4-4 4 4",
	"/settings":    "M4 7h9M17 7h3M4 17h3M11 17h9M13 7a2 2 0 1 0 4 0 2 2 0 1 0-4 0M7 17a2 2 0 1 0 4 0 2 2 0 1 0-4 0",
	"/users":       "M5 8a3 3 0 1 0 6 0 3 3 0 1 0-6 0M2 20c0-4 3-6 6-6s6 2 6 6M15 5a3 3 0 1 1 0 6M17 14c3 0 5 2 5 6",
	"/invitations": "M5 8a3 3 0 1 0 6 0 3 3 0 1 0-6 0M2 20c0-4 3-6 6-6s6 2 6 6M18 8v6M15 11h6",
	"/backup":      "M4 5h16v5H4zM4 14h16v5H4zM7 7.5h2M7 16.5h2",
	"/audit":       "M6 3h12v18H6zM9 8h6M9 12h6M9 16l1.500 1.500L14 15",
	"/about":       "M3 12a9 9 0 1 0 18 0 9 9 0 1 0-18 0M12 11v6M12 7v1",
}

// waitingInvitations returns how many invitations to projects a user has to answer. An error counts as none, since the
// menu works without the number.
func (s *Site) waitingInvitations(r *http.Request, c request.Caller) int {
	all, err := c.Store.Accounts().ProjectInvitations(r.Context())
	if err != nil {
		return 0
	}
	return len(all)
}

// Pages that others link to.
const (
	TrashPath     = "/trash"
	SharingPath   = "/project-invitations"
	ProposalsPath = "/proposals"
)
