package storetest

import (
	"github.com/souvenir-ai/souvenir"
)

func trashAccess(f *fixture) {
	p := share(f)
	former := f.user("fred")
	p.owner.addMember("fred", souvenir.MemberWriter)
	shared := p.owner.search(souvenir.Query{}).Hits[0].ID
	private := p.owner.add(souvenir.NewMemory{Content: "a diary"})
	file := p.owner.addFile(souvenir.NewFile{Filename: "plan.txt", ProjectID: "apollo"}, "plan")
	former.delete(shared)
	former.deleteFile(file.ID)
	p.owner.delete(private.ID)
	p.owner.deleteMember("fred")
	limited := func(ref string, readOnly bool) *fixture {
		return f.as(souvenir.Access{User: "olga", Projects: []string{ref}, ReadOnly: readOnly})
	}
	p.owner.addProject(souvenir.NewProject{ID: "gemini"})
	all := []string{"memory a diary", "file plan.txt", "memory the rocket"}
	const no, restores, erases = 0, 1, 2
	for _, c := range []struct {
		name string
		view *fixture
		sees []string
		may  int
	}{
		{"owner", p.owner, all, erases}, {"writer", p.writer, all[1:], restores}, {"co-owner", p.coOwner, all[1:], restores},
		{"reader", p.reader, nil, no},
		{"former member, who deleted it", former, nil, no}, {"stranger", p.stranger, nil, no},
		{"another stranger", f, nil, no},
		{"limited to the project", limited("apollo", false), all[1:], erases},
		{"limited to another project", limited("gemini", false), nil, no},
		{"limited to nothing", f.as(souvenir.Access{User: "olga", Projects: []string{}}), nil, no},
		{"read-only", f.as(souvenir.Access{User: "olga", ReadOnly: true}), all, -1},
		{"read-only and limited", limited("apollo", true), all[1:], -1},
	} {
		f.equal(c.name+" sees", c.view.inTrash(), c.sees)
		for _, id := range []string{shared, file.ID} {
			_, restored := c.view.store.Trash().Restore(f.ctx, id)
			if restored == nil {
				if id == shared {
					p.owner.delete(id)
				} else {
					p.owner.deleteFile(id)
				}
			}
			erased := c.view.store.Trash().Erase(f.ctx, id)
			switch c.may {
			case -1:
				f.fails(c.name+" restores", restored, souvenir.ErrReadOnly)
				f.fails(c.name+" erases", erased, souvenir.ErrReadOnly)
			case no:
				f.failsAt(c.name+" restores", restored, souvenir.ErrNotFound, "id")
				f.failsAt(c.name+" erases", erased, souvenir.ErrNotFound, "id")
			case restores:
				f.check(c.name+" restores", restored)
				f.failsAt(c.name+" erases", erased, souvenir.ErrForbidden, "id", "olga")
			case erases:
				f.check(c.name+" restores", restored)
				f.check(c.name+" erases", erased)
				if id == shared {
					shared = p.owner.add(souvenir.NewMemory{Content: "the rocket", ProjectID: "apollo"}).ID
					p.owner.delete(shared)
				} else {
					file = p.owner.addFile(souvenir.NewFile{Filename: "plan.txt", ProjectID: "apollo"}, "plan")
					p.owner.deleteFile(file.ID)
					p.owner.check("Trash.Erase", p.owner.store.Trash().Erase(f.ctx, private.ID))
					private = p.owner.add(souvenir.NewMemory{Content: "a diary"})
					p.owner.delete(private.ID)
				}
			}
		}
		if c.may == restores { // which changed the order
			p.owner.restore(private.ID)
			p.owner.delete(private.ID)
		}
	}
	emptyingTrash(f, p)
}

// emptyingTrash checks that only a project's owner empties the trash of it, and deletes without the trash.
func emptyingTrash(f *fixture, p people) {
	n, err := p.writer.store.Trash().Empty(f.ctx)
	f.check("Trash.Empty", err)
	f.equal("emptied by a writer", n, 0)
	again := p.owner.add(souvenir.NewMemory{Content: "again", ProjectID: "apollo"})
	erase := &souvenir.DeletionOptions{Erase: true}
	f.failsAt("DeleteMemory with Erase by a writer", p.writer.store.DeleteMemory(f.ctx, again.ID, erase),
		souvenir.ErrForbidden, "id")
	kept := p.owner.addFile(souvenir.NewFile{ProjectID: "apollo"}, "again")
	f.failsAt("DeleteFile with Erase by a writer", p.writer.store.DeleteFile(f.ctx, kept.ID, erase),
		souvenir.ErrForbidden, "file_id")
	f.check("DeleteFile", p.owner.store.DeleteFile(f.ctx, kept.ID, erase))
	n, err = p.owner.store.Trash().Empty(f.ctx)
	f.check("Trash.Empty", err)
	f.equal("emptied by the owner", n, 3)
	f.same("left", p.owner.inTrash())
}
