package projects

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// person is a user whom the page of members suggests for an invitation.
type person struct {
	Name  string
	State string // member or pending; empty: can be invited
}

const (
	peopleShown = 8
	peopleKnown = 1000 // names among which one searches
)

// people returns users whose names contain part; names that begin with it come first. Admins search all users; others
// search only the people with whom they share a project, so that the search does not reveal who else has an account.
func (s *Service) people(ctx context.Context, c request.Caller, part string, members []souvenir.Member,
	invited []souvenir.InvitedMember) ([]person, error) {
	names, err := s.acquaintances(ctx, c, part)
	if err != nil {
		return nil, err
	}
	part = strings.ToLower(part)
	names = slices.DeleteFunc(names, func(name string) bool {
		return name == "" || name == c.User.Name || !strings.Contains(strings.ToLower(name), part)
	})
	slices.SortFunc(names, func(a, b string) int {
		first := func(name string) int {
			if strings.HasPrefix(strings.ToLower(name), part) {
				return 0
			}
			return 1
		}
		if d := first(a) - first(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	var all []person
	for _, name := range slices.Compact(names) {
		one := person{Name: name}
		switch {
		case slices.ContainsFunc(members, func(m souvenir.Member) bool { return m.Name == name }):
			if one.State = "member"; part == "" {
				continue
			}
		case slices.ContainsFunc(invited, func(i souvenir.InvitedMember) bool { return i.User == name }):
			one.State = "pending"
		}
		if all = append(all, one); len(all) == peopleShown {
			break
		}
	}
	return all, nil
}

// acquaintances returns the names that a user may find: for an admin all that contain part, for others the names of the
// people in their projects.
func (s *Service) acquaintances(ctx context.Context, c request.Caller, part string) ([]string, error) {
	const projects = 20
	var names []string
	if c.User.Role == souvenir.RoleAdmin {
		page, err := s.store.Accounts().UserPage(ctx,
			souvenir.UserQuery{Text: part, Accounts: true, Limit: peopleKnown})
		for _, u := range page.Users {
			if !u.Disabled {
				names = append(names, u.Name)
			}
		}
		return names, err
	}
	all, err := c.Store.Projects(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(p souvenir.Project) bool { return p.Members < 2 })
	for _, p := range all[:min(len(all), projects)] {
		people, err := c.Store.Members(ctx, projectHead{Project: p}.Reference())
		if err != nil && !errors.Is(err, souvenir.ErrNotFound) { // just deleted, or this user removed from it
			return nil, err
		}
		for _, m := range people {
			names = append(names, m.Name)
		}
	}
	return names, nil
}
