package souvenir

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// canonicalProjects converts a list of references, for the Projects of an Access that will be used later, to the form
// OWNER/ID, which keeps its meaning as projects come and go. Each must be visible. Nil stays nil: no limit.
func canonicalProjects(tx db.Tx, v viewer, argument string, refs []string) ([]string, error) {
	if refs == nil {
		return nil, nil
	}
	canonical := []string{}
	for i, ref := range refs {
		p, err := naming.Find(tx, v, ref, "")
		if err == nil && p == nil && ref != "" {
			p, err = naming.Find(tx, v, "", ref)
		}
		if err != nil {
			return nil, err
		}
		if ref == "" || p == nil {
			return nil, newError(KindNotFound, argument, "{}[%d]: project %s not found, or you have no access to it",
				i,
				show(ref))
		}
		canonical = append(canonical, p.Owner+"/"+p.UID)
	}
	if len(refs) > 0 {
		canonical = valid.Distinct(canonical)
	}
	return canonical, nil
}

// checkNamed checks a reference that must name a project.
func checkNamed(ref ProjectRef) error {
	if ref == (ProjectRef{}) {
		return invalid("project_id", "{} and {project_name} are missing; give one of them")
	}
	return valid.Project(ref.ID, ref.Name)
}

// knownProject returns the project that a reference names; one that is not visible is ErrNotFound.
func knownProject(tx db.Tx, v viewer, ref ProjectRef) (naming.Project, error) {
	p, err := naming.Find(tx, v, ref.ID, ref.Name)
	switch {
	case err != nil:
		return naming.Project{}, err
	case p != nil:
		return *p, nil
	case ref.ID == "":
		return naming.Project{}, newError(KindNotFound, "project_name",
			"{} %s not found, or you have no access to it",
			show(ref.Name))
	}
	return naming.Project{}, newError(KindNotFound, "project_id", "{} %s not found, or you have no access to it",
		show(ref.ID))
}

// managedProject returns a project whose name and members the caller may change.
func managedProject(tx db.Tx, v viewer, ref ProjectRef) (naming.Project, error) {
	p, err := knownProject(tx, v, ref)
	switch {
	case err != nil:
		return p, err
	case v.Limited:
		return p, newError(KindForbidden, p.Argument,
			"a view limited to projects can only use their content; to change project %s itself, use a view without a limit",
			whole(p.Ref()))
	case p.Role != string(MemberOwner):
		return p, newError(KindForbidden, p.Argument,
			"project %s belongs to %s, who shares it with the role %s; only its owners may change it", whole(p.Ref()),
			ownerName(tx, v, p.Owner), p.Role)
	}
	return p, nil
}

// projectTarget is the project that a write goes to.
type projectTarget struct {
	row      int64 // 0: none
	created  bool  // by this write
	warnings []string
}

// projectForWriting finds the project that a write names and creates an unknown one for the caller: an unknown id
// becomes the new project's id. A view limited to a single project stores there when none is named.
func (s *Store) projectForWriting(tx db.Tx, v viewer, id, name string) (projectTarget, error) {
	if id == "" && name == "" {
		switch {
		case !v.Limited:
			return projectTarget{}, nil
		case len(s.access.Projects) == 0:
			return projectTarget{}, newError(KindForbidden, "project_id",
				"this view is limited to an empty list of projects, so it cannot store anything")
		case len(s.access.Projects) == 1:
			id = s.access.Projects[0]
		default:
			return projectTarget{}, newError(KindForbidden, "project_id",
				"this view is limited to the projects %s; give one of them", oneOf(s.access.Projects))
		}
	}
	p, warnings, err := s.projectToWrite(tx, v, id, name)
	if err != nil {
		return projectTarget{}, err
	}
	if p != nil {
		if err := p.CheckWritable(); err != nil {
			return projectTarget{}, err
		}
		return projectTarget{row: p.Row, warnings: slices.Concat(p.Notes(), warnings)}, nil
	}
	if err := checkMeantName(tx, v, id, name); err != nil {
		return projectTarget{}, err
	}
	row, err := s.newProjectFor(tx, v, id, name)
	if err != nil {
		return projectTarget{}, err
	}
	made := projectTarget{row: row, created: true, warnings: warnings}
	if name == "" && uuid.Validate(id) == nil {
		made.warnings = append(made.warnings, fmt.Sprintf("project_id %s was unknown, so a new project was created that "+
			"has it as its name; a project that you worked in before was deleted, or is no longer shared with you", show(id)))
	}
	if !v.Limited { // the view must not learn the names of projects outside its limit
		near, err := naming.Near(tx, v, row)
		if err != nil {
			return projectTarget{}, err
		}
		made.warnings = append(made.warnings, near...)
	}
	return made, nil
}

// newProjectFor creates the project that a write names.
func (s *Store) newProjectFor(tx db.Tx, v viewer, id, name string) (int64, error) {
	for _, given := range []struct{ argument, value string }{{"project_id", id}, {"project_name", name}} {
		if given.value != "" && (given.argument == "project_name" || name == "") {
			if err := valid.ProjectName(given.argument, given.value); err != nil {
				return 0, err
			}
		}
	}
	row, err := kernel.InsertProject(tx, v.User, cmp.Or(id, s.newID()), name, s.now())
	if err != nil {
		return 0, err
	}
	return row, s.checkItems(tx, v, TrashProject, v.User)
}

// projectToWrite finds the project that a write names. Nil means a new one of the caller's. Unlike [naming.Find], it
// does not let shared projects block a name: if the name matches no own project, and either several shared ones or only
// shared ones that the caller may not write to, a new one is created, with a warning.
func (s *Store) projectToWrite(tx db.Tx, v viewer, id, name string) (*naming.Project, []string, error) {
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
		if _, err = naming.FindID(tx, viewer{User: v.User}, id); err == nil &&
			strings.Contains(id, "/") { // as tokens name them
			err = newError(KindForbidden, "project_id", "%s", s.goneProjects())
		}
	}
	return nil, nil, err // two projects may have the id in the view's limit
}

// goneProjects explains why a limited view sees nothing.
func (s *Store) goneProjects() string {
	return "this credential is limited to the project " + oneOf(s.access.Projects) +
		", which no longer exists or is no longer shared with this user; use a credential for another project"
}

// beyondLimit refuses an unknown project that a limited view may not create.
func (s *Store) beyondLimit(v viewer, id, name string) error {
	if !v.Limited || id != "" && slices.Contains(s.access.Projects, id) {
		return nil
	}
	return newError(KindForbidden, "project_id", "this view is limited to the projects %s; %s is not one of them",
		oneOf(s.access.Projects), show(id+name))
}

// notTheirs explains why a write that names other users' projects has created a new one.
func notTheirs(tx db.Tx, v viewer, name string, fitting []naming.Project) string {
	first := fitting[0]
	if len(fitting) > 1 {
		return fmt.Sprintf("project %s was created as your own: %d projects of others have that name; to store in one of "+
			"them, give its project_id, such as %s",
			show(name), len(fitting), whole(first.Ref()))
	}
	return fmt.Sprintf("project %s was created as your own: the one with project_id %s belongs to %s, who shares it "+
		"read-only",
		show(name), whole(first.Ref()), ownerName(tx, v, first.Owner))
}

// checkMeantName refuses an unknown id that is a current or former name of one of the caller's projects: the caller
// means that project, and a new one would have the same name.
func checkMeantName(tx db.Tx, v viewer, id, name string) error {
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
		err = newError(KindConflict, "project_id",
			"{} %s is the name of the project with project_id %s, not an id; give that, or {project_name} %s", show(id),
			show(taken[0]), show(id))
	}
	return err
}

// draftPlace is where a draft goes: a collection and the row of a project, 0 for none or a new one.
type draftPlace struct {
	collectionPlace
	project int64
}

// checkPlaces checks, before anything is embedded, that the collections exist, and which of them embed no texts.
func (s *Store) checkPlaces(ctx context.Context, drafts []kernel.Draft,
	look func(db.Tx, draftPlace, *kernel.Draft) error) error {
	return s.read(ctx, func(tx db.Tx, v viewer) error {
		places := map[placeName]draftPlace{}
		for i := range drafts {
			d := &drafts[i]
			name := placeName{d.Collection, d.ProjectID, d.ProjectName}
			at, known := places[name]
			if !known {
				var err error
				if at.collectionPlace, at.project, err = s.destination(tx, v, d); err != nil {
					return atPosition(err, i, len(drafts))
				}
				places[name] = at
			}
			d.WordsOnly = at.profile != 0 && d.Vector == nil
			if look != nil {
				if err := look(tx, at, d); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// destination returns the collection that a draft would go to if it were stored now, and the row of the project, 0 for
// none or a new one.
func (s *Store) destination(tx db.Tx, v viewer, d *kernel.Draft) (at collectionPlace, project int64, err error) {
	id := d.ProjectID
	if id == "" && d.ProjectName == "" && len(s.access.Projects) == 1 {
		id = s.access.Projects[0]
	}
	owner := v.User
	if id != "" || d.ProjectName != "" {
		p, _, err := s.projectToWrite(tx, v, id, d.ProjectName)
		if err == nil && p != nil {
			err = p.CheckWritable() // before the collection: readers must not learn which names the owner has
		}
		if err == nil && p != nil {
			project = p.Row
			owner, err = projectOwner(tx, v, p.Row)
		}
		if err != nil {
			return at, 0, err
		}
	}
	at, err = s.collectionFor(tx, v, d.Collection, owner)
	return at, project, err
}

// findStored marks a draft whose content the store already has, under its key or, with IfAbsent, at all: it need not be
// embedded again.
func (s *Store) findStored(tx db.Tx, at draftPlace, d *kernel.Draft) error {
	if at.row == 0 || d.Vector != nil || d.Similar > 0 || d.Key == "" && !d.IfAbsent {
		return nil
	}
	key := d.Key
	if d.IfAbsent {
		key = ""
	}
	var err error
	d.Stored, err = kernel.HasStored(tx, at.row, at.project, key, d.Content)
	return err
}

// collectionPlace is the target collection of a write.
type collectionPlace struct {
	row     int64 // 0: it is created with the write
	profile int64 // of the callers' vectors; 0: the store's embedder makes them
}

// collectionFor finds the collection of an owner: the caller, or the owner of the project that the caller writes to. In
// the latter case the caller can name the default collection, a collection with memories that the caller can see, or
// one with the name of the caller's own, which is created for the owner. The names of the owner's other collections are
// treated as unknown.
func (s *Store) collectionFor(tx db.Tx, v viewer, name string, owner int64) (collectionPlace, error) {
	var at collectionPlace
	var found bool
	var err error
	if at.row, at.profile, found, err = kernel.OwnCollection(tx, owner, name); err != nil {
		return at, err
	}
	if name == DefaultCollection || name == ConversationCollection || found && owner == v.User {
		return at, nil
	}
	if owner == v.User {
		return at, s.unknownCollection(tx, v, name)
	}
	visible, args := v.Visible()
	seen, err := db.Column[int64](tx, `SELECT 1 FROM partition p JOIN collection c ON c.id = p.collection_id
		WHERE p.collection_id = ? AND p.memories > 0 AND `+visible+` LIMIT 1`, append([]any{at.row}, args...)...)
	if err != nil || len(seen) > 0 {
		return at, err
	}
	_, profile, had, err := kernel.OwnCollection(tx, v.User, name)
	switch {
	case err != nil:
		return at, err
	case !had:
		return at, s.unknownCollection(tx, v, name)
	case found && at.profile != profile:
		return at, newError(KindConflict, "collection_name",
			"{} %s cannot be used here: memories of a project are in a collection of its owner, "+
				"whose collection of this name has other vectors; omit {}, or give another one", show(name))
	}
	at.profile = profile
	return at, nil
}

// addFor creates the collection for a write to an owner's project.
func (s *Store) addFor(tx db.Tx, v viewer, name string, owner int64, at collectionPlace) (int64, error) {
	row, err := s.addCollection(tx, viewer{User: owner}, NewCollection{Name: name})
	if err == nil && at.profile != 0 {
		_, err = tx.Exec(`UPDATE collection SET own_profile = ? WHERE id = ?`, at.profile, row)
	}
	if err == nil {
		err = s.checkItems(tx, v, TrashCollection, owner)
	}
	return row, err
}

// placeName is a place as callers name it; place is the resolved place.
type placeName struct{ collection, projectID, projectName string }

// place finds the partition for a collection and a project, both by name, and creates missing ones.
func (w *memoryWriter) place(collection, projectID, projectName string) (*kernel.Place, error) {
	name := placeName{collection, projectID, projectName}
	if p, ok := w.places[name]; ok {
		return p, nil
	}
	project, err := w.project(projectID, projectName)
	if err != nil {
		return nil, err
	}
	p, err := w.placeIn(collection, project)
	if err == nil {
		w.places[name] = p
	}
	return p, err
}

// placeIn is like place, for a project by row, 0 for none.
func (w *memoryWriter) placeIn(collection string, project int64) (*kernel.Place, error) {
	owner, err := projectOwner(w.Tx, w.Viewer, project)
	if err != nil {
		return nil, err
	}
	if owner == w.Viewer.User { // the caller's own existing collection needs no further checks
		if p, err := w.PlaceByName(owner, collection, project); p != nil || err != nil {
			return p, err
		}
	}
	at, err := w.store.collectionFor(w.Tx, w.Viewer, collection, owner)
	if err == nil && at.row == 0 {
		at.row, err = w.store.addFor(w.Tx, w.Viewer, collection, owner, at)
	}
	if err != nil {
		return nil, err
	}
	return w.Partition(at.row, project)
}

// exists reports whether the place of a draft already exists, and finds it.
func (w *memoryWriter) exists(d *kernel.Draft) (bool, error) {
	name := placeName{d.Collection, d.ProjectID, d.ProjectName}
	if w.places[name] != nil {
		return true, nil
	}
	owner, project := w.Viewer.User, int64(0)
	if d.ProjectID != "" || d.ProjectName != "" || w.Viewer.Limited {
		at, row, err := w.store.destination(w.Tx, w.Viewer, d)
		if err != nil || at.row == 0 || row == 0 {
			return false, err
		}
		if project, err = w.project(d.ProjectID, d.ProjectName); err != nil || project != row {
			return false, err
		}
		if owner, err = projectOwner(w.Tx, w.Viewer, row); err != nil {
			return false, err
		}
	}
	place, err := w.PlaceByName(owner, d.Collection, project)
	if place != nil {
		w.places[name] = place
	}
	return place != nil, err
}

// project returns the row of the project that a write names, 0 for none, and creates an unknown one.
func (w *memoryWriter) project(id, name string) (int64, error) {
	ref := ProjectRef{ID: id, Name: name}
	if known, ok := w.targets[ref]; ok {
		return known.row, nil
	}
	target, err := w.store.projectForWriting(w.Tx, w.Viewer, id, name)
	if err != nil {
		return 0, err
	}
	w.targets[ref] = target
	if w.Viewer.Limited && !slices.Contains(w.Viewer.Projects, target.row) {
		w.Viewer.Projects = append(w.Viewer.Projects,
			target.row) // the view is limited to this project, which has just been created
		db.ActFor(w.Tx, w.store.caller(w.Viewer))
	}
	return target.row, nil
}

// addProjectWarnings adds notes about the project to a result. Only the first memory in it reports that it was created.
func (w *memoryWriter) addProjectWarnings(stored *Stored, id, name string) {
	ref := ProjectRef{ID: id, Name: name}
	target := w.targets[ref]
	stored.Warnings = slices.Concat(stored.Warnings, target.warnings)
	if target.created {
		stored.ProjectCreated = true
		w.targets[ref] = projectTarget{row: target.row}
	}
}

// placeOf returns the place for the memory: its present one or, in another project, the collection of that project's
// owner with the same name.
func (w *memoryWriter) placeOf(before, after storedMemory) (*kernel.Place, error) {
	// The project's id or name as read from the memory is not a move: another project may have the same one.
	sameID := after.ProjectID == before.ProjectID || after.ProjectID == "" && after.ProjectName != ""
	sameName := foldname.Key(after.ProjectName) == foldname.Key(before.ProjectName) || after.ProjectName == "" &&
		after.ProjectID != ""
	if sameID && sameName {
		return w.PlaceByRow(before.partition)
	}
	if before.owner != w.Viewer.User {
		return nil, newError(KindForbidden, "project_id",
			"memory %s belongs to project %s of %s; only its owner can move it to another project",
			show(before.ID), show(cmp.Or(before.ProjectName, before.ProjectID)), ownerName(w.Tx, w.Viewer, before.Owner))
	}
	project, err := w.project(after.ProjectID, after.ProjectName)
	switch {
	case err != nil:
		return nil, err
	case project == before.project:
		return w.PlaceByRow(before.partition)
	}
	return w.placeIn(before.Collection, project)
}
