package writing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Target is the project that a write goes to.
type Target struct {
	Row      int64 // 0: none
	created  bool  // by this write
	warnings []string
}

// projectFor finds the project that a write names and creates an unknown one for the caller: an unknown id
// becomes the new project's id. A view limited to a single project stores there when none is named.
func (s *View) projectFor(tx db.Tx, v kernel.Viewer, id, name string) (Target, error) {
	if id == "" && name == "" {
		switch {
		case !v.Limited:
			return Target{}, nil
		case len(s.Projects) == 0:
			return Target{}, fault.New(fault.KindForbidden, "project_id",
				"this view is limited to an empty list of projects, so it cannot store anything")
		case len(s.Projects) == 1:
			id = s.Projects[0]
		default:
			return Target{}, fault.New(fault.KindForbidden, "project_id",
				"this view is limited to the projects %s; give one of them", fault.OneOf(s.Projects))
		}
	}
	p, warnings, err := s.FindProject(tx, v, id, name)
	if err != nil {
		return Target{}, err
	}
	if p != nil {
		if err := p.CheckWritable(); err != nil {
			return Target{}, err
		}
		return Target{Row: p.Row, warnings: slices.Concat(p.Notes(), warnings)}, nil
	}
	if err := checkMeantName(tx, v, id, name); err != nil {
		return Target{}, err
	}
	row, err := s.newProjectFor(tx, v, id, name)
	if err != nil {
		return Target{}, err
	}
	made := Target{Row: row, created: true, warnings: warnings}
	if name == "" && uuid.Validate(id) == nil {
		made.warnings = append(made.warnings, fmt.Sprintf("project_id %s was unknown, so a new project was created that "+
			"has it as its name; a project that you worked in before was deleted, or is no longer shared with you",
			fault.Show(id)))
	}
	if !v.Limited { // the view must not learn the names of projects outside its limit
		near, err := naming.Near(tx, v, row)
		if err != nil {
			return Target{}, err
		}
		made.warnings = append(made.warnings, near...)
	}
	return made, nil
}

// ProjectForWrite is like projectFor, and also lets a limited view see a project just created for it.
func (s *View) ProjectForWrite(tx db.Tx, v *kernel.Viewer, id, name string) (row int64, err error) {
	target, err := s.projectFor(tx, *v, id, name)
	if err == nil {
		s.show(tx, v, target)
	}
	return target.Row, err
}

// show lets a limited view see a project that has just been created for it.
func (s *View) show(tx db.Tx, v *kernel.Viewer, target Target) {
	if v.Limited && !slices.Contains(v.Projects, target.Row) {
		v.Projects = append(v.Projects, target.Row)
		db.ActFor(tx, s.Caller(*v))
	}
}

// newProjectFor creates the project that a write names.
func (s *View) newProjectFor(tx db.Tx, v kernel.Viewer, id, name string) (int64, error) {
	for _, given := range []struct{ argument, value string }{{"project_id", id}, {"project_name", name}} {
		if given.value != "" && (given.argument == "project_name" || name == "") {
			if err := valid.ProjectName(given.argument, given.value); err != nil {
				return 0, err
			}
		}
	}
	return s.AddProject(tx, v, id, name)
}

// AddProject adds a project of the caller, and refuses one above the quota. An empty id means a new one, an empty name
// the id.
func (s *View) AddProject(tx db.Tx, v kernel.Viewer, id, name string) (row int64, err error) {
	if row, err = kernel.InsertProject(tx, v.User, cmp.Or(id, s.NewID()), name, s.Now()); err == nil {
		err = s.CheckItems(tx, v, ItemProject, v.User)
	}
	return row, err
}

// FindProject finds the project that a write names. Nil means a new one of the caller's. Unlike [naming.Find], it
// does not let shared projects block a name: if the name matches no own project, and either several shared ones or only
// shared ones that the caller may not write to, a new one is created, with a warning.
func (s *View) FindProject(tx db.Tx, v kernel.Viewer, id, name string) (*naming.Project, []string, error) {
	if id == "" {
		fitting, err := naming.Named(tx, v, name)
		if err != nil {
			return nil, nil, err
		}
		if len(fitting) == 0 {
			return nil, nil, s.beyondLimit(v, id, name)
		}
		if fitting[0].Own || v.Limited || len(fitting) == 1 && !fitting[0].ReadOnly() {
			p, err := naming.Only("project_name", name, fitting)
			return p, nil, err
		}
		return nil, []string{notTheirs(tx, v, name, fitting)}, nil
	}
	p, err := naming.FindID(tx, v, id)
	switch {
	case err != nil:
		return nil, nil, err
	case p != nil && name == "":
		return p, nil, nil
	case p != nil:
		p, err = naming.Agreeing(tx, v, *p, id, name)
		return p, nil, err
	}
	if name != "" {
		named, err := naming.Named(tx, v, name)
		if err != nil {
			return nil, nil, err
		}
		if len(named) > 0 && (named[0].Own || v.Limited) {
			return nil, nil, naming.DisagreeingID(id, name, named[0])
		}
	}
	if err := s.beyondLimit(v, id, name); err != nil {
		return nil, nil, err
	}
	if v.Limited {
		if _, err = naming.FindID(tx, kernel.Viewer{User: v.User}, id); err == nil &&
			strings.Contains(id, "/") { // as tokens name them
			err = fault.New(fault.KindForbidden, "project_id", "%s", s.ExplainGoneProjects())
		}
	}
	return nil, nil, err // two projects may have the id in the view's limit
}

// ExplainGoneProjects explains why a limited view sees nothing.
func (s *View) ExplainGoneProjects() string {
	return "this credential is limited to the project " + fault.OneOf(s.Projects) +
		", which no longer exists or is no longer shared with this user; use a credential for another project"
}

// beyondLimit refuses an unknown project that a limited view may not create.
func (s *View) beyondLimit(v kernel.Viewer, id, name string) error {
	if !v.Limited || id != "" && slices.Contains(s.Projects, id) {
		return nil
	}
	return fault.New(fault.KindForbidden, "project_id", "this view is limited to the projects %s; %s is not one of them",
		fault.OneOf(s.Projects), fault.Show(id+name))
}

// notTheirs explains why a write that names other users' projects has created a new one.
func notTheirs(tx db.Tx, v kernel.Viewer, name string, fitting []naming.Project) string {
	first := fitting[0]
	if len(fitting) > 1 {
		return fmt.Sprintf("project %s was created as your own: %d projects of others have that name; to store in one of "+
			"them, give its project_id, such as %s",
			fault.Show(name), len(fitting), fault.Whole(first.Ref()))
	}
	return fmt.Sprintf("project %s was created as your own: the one with project_id %s belongs to %s, who shares it "+
		"read-only",
		fault.Show(name), fault.Whole(first.Ref()), kernel.UserName(tx, v, first.Owner))
}

// checkMeantName refuses an unknown id that is a current or former name of one of the caller's projects: the caller
// means that project, and a new one would have the same name.
func checkMeantName(tx db.Tx, v kernel.Viewer, id, name string) error {
	if name != "" || v.Limited { // the view must not learn the names of projects outside its limit
		return nil
	}
	key := foldname.Key(id)
	current, stored, err := sealedrows.Is(tx, sealedrows.ProjectNameKey, v.User, `name_key`, key)
	if err != nil {
		return err
	}
	former, _, err := sealedrows.Is(tx, sealedrows.ProjectNameKey, v.User, `a.name_key`, key)
	if err != nil {
		return err
	}
	taken, err := db.Column[string](tx, `SELECT uid FROM project WHERE owner_id = ? AND `+current+`
		UNION ALL SELECT j.uid FROM project_alias a JOIN project j ON j.id = a.project_id WHERE a.owner_id = ?
		AND `+former+` LIMIT 1`, v.User, stored, v.User, stored)
	if err == nil && len(taken) > 0 && key != "" {
		err = fault.New(fault.KindConflict, "project_id",
			"{} %s is the name of the project with project_id %s, not an id; give that, or {project_name} %s", fault.Show(id),
			fault.Show(taken[0]), fault.Show(id))
	}
	return err
}
