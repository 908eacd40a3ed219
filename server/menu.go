package server

import (
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// menuGroup is a part of the menu.
type menuGroup struct {
	Title  string // empty: none is shown
	Places []menuPlace
}

// menuPlace is a page that the menu leads to.
type menuPlace struct {
	Path, Name string
	Here       bool // it is open, or one below it is
}

// menu is where a user can go, in the order in which it is shown. Pages below one of them belong to it.
func menu(user souvenir.User, here string) []menuGroup {
	groups := []menuGroup{
		{"", []menuPlace{{"/", "Overview", false}, {"/memories", "Memories", false}, {"/projects", "Projects", false}, {"/files", "Files", false},
			{"/graph", "Graph", false}, {"/map", "Map", false}, {"/activity", "Activity", false}}},
		{"Clients", []menuPlace{{"/connect", "Connect", false}, {"/tokens", "Tokens", false}, {"/connected", "Applications", false}, {"/clients", "OAuth clients", false}}},
		{"You", []menuPlace{{"/profile", "Profile", false}, {"/transfer", "Export and import", false}, {"/settings", "Settings", false}}},
	}
	server := menuGroup{"Server", []menuPlace{{"/about", "About", false}}}
	if user.Role == souvenir.RoleAdmin {
		server.Places = append([]menuPlace{{"/users", "Users", false}, {"/invitations", "Invitations", false}, {"/backup", "Backup and restore", false}}, server.Places...)
	}
	groups = append(groups, server)
	for _, group := range groups {
		for i, place := range group.Places {
			group.Places[i].Here = here == place.Path || place.Path != "/" && strings.HasPrefix(here, place.Path+"/")
		}
	}
	return groups
}
