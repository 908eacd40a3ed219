package souvenir

import (
	"fmt"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/check"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/foldname"
)

// projectTarget is the project that a write goes to.
type projectTarget struct {
	row      int64 // 0: none
	created  bool  // by this write
	warnings []string
}

// projectForWriting finds the project that a write names and makes an unknown one for the caller: an unknown id becomes
// the new project's id. A view limited to a single project stores there when none is named.
func (s *Store) projectForWriting(tx db.Tx, sc scope, id, name string) (projectTarget, error) {
	if id == "" && name == "" {
		switch {
		case !sc.limited:
			return projectTarget{}, nil
		case len(s.access.Projects) == 0:
			return projectTarget{}, newError(KindForbidden, "project_id", "this view is limited to no project at all, so it stores nothing")
		case len(s.access.Projects) == 1:
			id = s.access.Projects[0]
		default:
			return projectTarget{}, newError(KindForbidden, "project_id", "this view is limited to the projects %s; name one of them", oneOf(s.access.Projects))
		}
	}
	p, warnings, err := s.projectToWrite(tx, sc, id, name)
	if err != nil {
		return projectTarget{}, err
	}
	if p != nil {
		if err := p.checkWritable(); err != nil {
			return projectTarget{}, err
		}
		return projectTarget{row: p.row, warnings: slices.Concat(p.notes(), warnings)}, nil
	}
	if err := checkMeantName(tx, sc, id, name); err != nil {
		return projectTarget{}, err
	}
	row, err := s.newProjectFor(tx, sc, id, name)
	if err != nil {
		return projectTarget{}, err
	}
	made := projectTarget{row: row, created: true, warnings: warnings}
	if !sc.limited { // which names the projects outside its limit have is not for it to know
		near, err := nearNames(tx, sc, row)
		if err != nil {
			return projectTarget{}, err
		}
		made.warnings = slices.Concat(warnings, near)
	}
	return made, nil
}

// newProjectFor makes the project that a write names.
func (s *Store) newProjectFor(tx db.Tx, sc scope, id, name string) (int64, error) {
	for _, given := range []struct{ argument, value string }{{"project_id", id}, {"project_name", name}} {
		if given.value != "" && (given.argument == "project_name" || name == "") {
			if err := check.ProjectName(given.argument, given.value); err != nil {
				return 0, err
			}
		}
	}
	row, err := s.addProject(tx, sc, id, name)
	if err != nil {
		return 0, err
	}
	return row, s.checkItems(tx, sc, TrashProject, sc.user)
}

// checkWritable refuses writes to a project that the caller may only read.
func (p *projectRow) checkWritable() error {
	if p.role == MemberReader {
		return newError(KindForbidden, "project_id", "project %s is shared with this user for reading only", whole(p.ref()))
	}
	return nil
}

// projectToWrite finds the project that a write names. Nil means a new one of the caller's. Unlike [findProject] it lets no
// share stand in the way of a name that the caller wants: where a name fits no own project, and others only that the caller
// may not write in, or several, a new one is made, with a warning.
func (s *Store) projectToWrite(tx db.Tx, sc scope, id, name string) (*projectRow, []string, error) {
	if id == "" {
		fitting, err := findNamed(tx, sc, name)
		if err != nil {
			return nil, nil, err
		}
		if len(fitting) == 0 {
			return nil, nil, s.beyondLimit(sc, id, name)
		}
		if fitting[0].own || sc.limited || len(fitting) == 1 && fitting[0].role != MemberReader {
			p, err := onlyProject("project_name", name, fitting)
			return p, nil, err
		}
		return nil, []string{notTheirs(tx, name, fitting)}, nil
	}
	p, err := findProjectID(tx, sc, id)
	switch {
	case err != nil:
		return nil, nil, err
	case p != nil && name == "":
		return p, nil, nil
	case p != nil:
		p, err = agreeing(tx, sc, *p, id, name)
		return p, nil, err
	}
	if name != "" {
		named, err := findNamed(tx, sc, name)
		if err != nil {
			return nil, nil, err
		}
		if len(named) > 0 && (named[0].own || sc.limited) {
			return nil, nil, disagreeingID(id, name, named[0])
		}
	}
	if err := s.beyondLimit(sc, id, name); err != nil {
		return nil, nil, err
	}
	if sc.limited {
		if _, err = findProjectID(tx, scope{user: sc.user}, id); err == nil && strings.Contains(id, "/") { // as tokens name them
			err = newError(KindForbidden, "project_id", "%s", s.goneProjects())
		}
	}
	return nil, nil, err // two projects may have the id that the view is limited to
}

// goneProjects says why a limited view sees nothing.
func (s *Store) goneProjects() string {
	return "this credential is limited to the project " + oneOf(s.access.Projects) +
		", which no longer exists or is no longer shared with this user; use a credential for another project"
}

// beyondLimit refuses an unknown project that a limited view may not make.
func (s *Store) beyondLimit(sc scope, id, name string) error {
	if !sc.limited || id != "" && slices.Contains(s.access.Projects, id) {
		return nil
	}
	return newError(KindForbidden, "project_id", "this view is limited to the projects %s; %s is none of them", oneOf(s.access.Projects), show(id+name))
}

// notTheirs says why a name that others' projects have has made a new one.
func notTheirs(tx db.Tx, name string, fitting []projectRow) string {
	first := fitting[0]
	if len(fitting) > 1 {
		return fmt.Sprintf("project %s was created as your own: %d projects of others have that name; to store in one of them, give its project_id, such as %s",
			show(name), len(fitting), whole(first.ref()))
	}
	return fmt.Sprintf("project %s was created as your own: the one with project_id %s belongs to %s, who shares it for reading only",
		show(name), whole(first.ref()), ownerName(tx, first.owner))
}

// checkMeantName refuses an unknown id that is the name of one of the caller's projects, or was: that project is meant, and a
// new one, of the same name, could not be told from it by name.
func checkMeantName(tx db.Tx, sc scope, id, name string) error {
	if name != "" || sc.limited { // which names the projects outside its limit have is not for it to know
		return nil
	}
	key := foldname.Key(id)
	taken, err := db.Column[string](tx, `SELECT uid FROM project WHERE owner_id = ?1 AND name_key = ?2
		UNION ALL SELECT j.uid FROM project_alias a JOIN project j ON j.id = a.project_id WHERE a.owner_id = ?1 AND a.name_key = ?2 LIMIT 1`, sc.user, key)
	if err == nil && len(taken) > 0 && key != "" {
		err = newError(KindConflict, "project_id", "project_id %s is no project, but the name of the one with project_id %s; give that, or project_name %s", show(id), show(taken[0]), show(id))
	}
	return err
}
