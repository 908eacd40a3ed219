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
	Places []menuPlace
}

// menuPlace is a page that the menu leads to.
type menuPlace struct {
	Path, Name string
	Here       bool // this page, or one below it, is open
	Waiting    int  // items there that need an answer
}

// menu returns the pages that a user can open, in the order of the menu. Pages below one of them belong to it.
func menu(user souvenir.User, here string, invitations, proposals int) []menuGroup {
	groups := []menuGroup{
		{"", []menuPlace{{Path: "/", Name: "Overview"}, {Path: "/memories", Name: "Memories"},
			{Path: ProposalsPath, Name: "Proposals", Waiting: proposals},
			{Path: "/projects", Name: "Projects"}, {Path: "/files", Name: "Files"},
			{Path: "/graph", Name: "Graph"}, {Path: "/map", Name: "Map"}, {Path: "/activity", Name: "Activity"},
			{Path: TrashPath, Name: "Trash"}}},
		{"Clients", []menuPlace{{Path: "/connect", Name: "Connect"}, {Path: "/tokens", Name: "Tokens"},
			{Path: "/connected", Name: "Applications"}, {Path: "/clients", Name: "OAuth clients"}}},
		{"You", []menuPlace{{Path: SharingPath, Name: "Project invitations", Waiting: invitations},
			{Path: "/profile", Name: "Profile"}, {Path: "/transfer", Name: "Export and import"},
			{Path: "/settings", Name: "Settings"}}},
	}
	server := menuGroup{"Server", []menuPlace{{Path: "/about", Name: "About"}}}
	if user.Role == souvenir.RoleAdmin {
		server.Places = append([]menuPlace{{Path: "/users", Name: "Users"}, {Path: "/invitations", Name: "Invitations"},
			{Path: "/backup", Name: "Backup and restore"}}, server.Places...)
	}
	groups = append(groups, server)
	for _, group := range groups {
		for i, place := range group.Places {
			group.Places[i].Here = here == place.Path || place.Path != "/" && strings.HasPrefix(here, place.Path+"/")
		}
	}
	return groups
}

// waitingInvitations returns how many invitations to projects a user has to answer. An error counts as none, since
// the menu works without.
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
