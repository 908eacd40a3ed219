package naming

import (
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Canonical converts a list of references, for the Projects of an Access that will be used later, to the form
// OWNER/ID, which keeps its meaning as projects come and go. Each must be visible. Nil stays nil: no limit.
func Canonical(tx db.Tx, v kernel.Viewer, argument string, refs []string) ([]string, error) {
	if refs == nil {
		return nil, nil
	}
	canonical := []string{}
	for i, ref := range refs {
		p, err := Find(tx, v, ref, "")
		if err == nil && p == nil && ref != "" {
			p, err = Find(tx, v, "", ref)
		}
		if err != nil {
			return nil, err
		}
		if ref == "" || p == nil {
			return nil, fault.New(fault.KindNotFound, argument, "{}[%d]: project %s not found, or you have no access to it",
				i,
				fault.Show(ref))
		}
		canonical = append(canonical, p.Owner+"/"+p.UID)
	}
	if len(refs) > 0 {
		canonical = valid.Distinct(canonical)
	}
	return canonical, nil
}

// Known returns the project that a reference names; one that is not visible is ErrNotFound.
func Known(tx db.Tx, v kernel.Viewer, id, name string) (Project, error) {
	p, err := Find(tx, v, id, name)
	switch {
	case err != nil:
		return Project{}, err
	case p != nil:
		return *p, nil
	case id == "":
		return Project{}, fault.New(fault.KindNotFound, "project_name",
			"{} %s not found, or you have no access to it",
			fault.Show(name))
	}
	return Project{}, fault.New(fault.KindNotFound, "project_id", "{} %s not found, or you have no access to it",
		fault.Show(id))
}

// Managed returns a project whose name and members the caller may change.
func Managed(tx db.Tx, v kernel.Viewer, id, name string) (Project, error) {
	p, err := Known(tx, v, id, name)
	switch {
	case err != nil:
		return p, err
	case v.Limited:
		return p, fault.New(fault.KindForbidden, p.Argument,
			"a view limited to projects can only use their content; to change project %s itself, use a view without a limit",
			fault.Whole(p.Ref()))
	case p.Role != "owner":
		return p, fault.New(fault.KindForbidden, p.Argument,
			"project %s belongs to %s, who shares it with the role %s; only its owners may change it", fault.Whole(p.Ref()),
			kernel.UserName(tx, v, p.Owner), p.Role)
	}
	return p, nil
}

// MaxLimit is the most projects that a credential may be limited to.
const MaxLimit = 100

// CheckLimit checks the number of projects to which someone limits a credential. Nil is no limit.
func CheckLimit(argument, who string, refs []string) error {
	switch {
	case refs != nil && len(refs) == 0:
		return fault.Invalid(argument, "{} is empty; give the projects that the %s may see, or omit it for all", who)
	case len(refs) > MaxLimit:
		return fault.New(fault.KindTooLarge, argument, "{} names %d projects; at most %d are allowed", len(refs), MaxLimit)
	}
	return nil
}
