package trash

import (
	"cmp"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
)

// collectionThere returns the collections of an owner that match a trashed place: the same one, even if renamed, and
// one with its name.
func (r *Restorer) collectionThere(p kernel.TrashedPlace, owner []int64) ([]int64, error) {
	if len(owner) == 0 {
		return nil, nil
	}
	is, name, err := sealedrows.Is(r.Tx, sealedrows.CollectionName, owner[0], `c.name`, p.Collection)
	if err != nil {
		return nil, err
	}
	return db.Column[int64](r.Tx, `SELECT c.id FROM collection c WHERE c.owner_id = ?
		AND (c.id = ? AND c.created_at = ? OR `+is+`) ORDER BY c.id = ? DESC`, owner[0], p.CollectionRow, p.CollectionCreated,
		name, p.CollectionRow)
}

func (r *Restorer) projectOf(p kernel.TrashedPlace) (int64, error) {
	if p.Project == "" {
		return 0, nil
	}
	if r.Entry.Kind == Projects {
		return r.Entry.ProjectRow, nil
	}
	there, err := db.Column[int64](r.Tx, projectOf, r.Entry.Owner, p.ProjectOwner, p.ProjectRow, p.ProjectCreated,
		p.Project,
		p.ProjectRow)
	if err != nil || len(there) > 0 {
		return first(there), err
	}
	if err := r.checkNotTrashed(Projects, r.Entry.Owner, p.Project); err != nil {
		return 0, err
	}
	if r.Entry.Owner != r.Viewer.User {
		return 0, fault.New(fault.KindNotFound, "id", "the project %s that contained it is gone", fault.Show(p.Project))
	}
	// Callers that name projects have made a new one of the name since. A second one would make the name ambiguous.
	is, key, err := sealedrows.Is(r.Tx, sealedrows.ProjectNameKey, r.Entry.Owner, `name_key`, foldname.Key(p.ProjectName))
	if err != nil {
		return 0, err
	}
	named, err := db.Column[int64](r.Tx, `SELECT id FROM project WHERE owner_id = ? AND `+is+` ORDER BY id LIMIT 1`,
		r.Entry.Owner, key)
	if err != nil || len(named) > 0 {
		return first(named), err
	}
	return kernel.InsertProject(r.Tx, r.Viewer.User, cmp.Or(p.Project, r.NewID()), p.ProjectName, r.Now)
}

const projectOf = `SELECT j.id FROM project j JOIN users u ON u.id = j.owner_id WHERE ` + byPlaceOwner + `
	AND (j.id = ? AND j.created_at = ? OR j.uid = ?)
	ORDER BY j.id = ? DESC`
