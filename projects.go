package souvenir

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/budget"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fixedcontext"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/trash"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Project groups memories about one subject. People share projects with each other. [Store.AddProject] creates it,
// or the first memory stored into it.
type Project struct {
	ID          string     `json:"project_id"` // unique among the owner's projects only
	Name        string     `json:"project_name"`
	Owner       string     `json:"owner"`                // user id
	OwnerName   string     `json:"owner_name,omitempty"` // of the owner's account, if any
	Role        MemberRole `json:"role"`                 // the caller's
	Members     int        `json:"member_count"`         // including the owner
	MemoryCount int        `json:"memory_count"`         // memories visible through this view
	CreatedAt   time.Time  `json:"created_at"`
	UpdatedAt   time.Time  `json:"updated_at"` // when it was renamed

	Retention Retention `json:"-"` // how long its memories stay

	own bool // the caller is the owner of record
}

// Ref names the project unambiguously: its ID for the caller's own project, else OWNER/ID.
func (p Project) Ref() string { return naming.Ref(p.own, p.Owner, p.ID) }

// ProjectRef names a project: by ID (or OWNER/ID for a shared one whose id is not unique, where OWNER is the owner's
// user id or account name), by Name, or by both, which must then agree. The zero value names none.
//
// Names are compared without regard to case, width, spaces, the encoding of a character, and invisible characters. A
// name resolves to one of the caller's own projects, by its current or a former name; else to one that another user
// shares with the caller.
type ProjectRef struct {
	ID   string
	Name string
}

// check refuses a reference that names no project.
func (ref ProjectRef) check() error {
	if ref == (ProjectRef{}) {
		return invalid("project_id", "{} and {project_name} are missing; give one of them")
	}
	return valid.Project(ref.ID, ref.Name)
}

// NewProject describes a project to add. One of the two is enough.
type NewProject struct {
	ID   string // 1 to 128 characters without a slash, unique among the owner's projects; empty means a new id
	Name string // 1 to 128 characters; empty means the ID
}

// AddProject adds a project owned by the caller. An id or a name that one of the caller's projects already has is
// ErrConflict. Names are compared as in [ProjectRef]; former names, and names of other users' projects, are free. A
// view limited to projects may add only projects within its limit.
func (s *Store) AddProject(ctx context.Context, n NewProject) (_ Project, err error) {
	defer setGoNames[NewProject](&err)
	if err := ProjectRef(n).check(); err != nil {
		return Project{}, err
	}
	if n.Name == "" {
		if err := valid.ProjectName("project_id", n.ID); err != nil {
			return Project{}, err
		}
	}
	var added Project
	err = s.write(ctx, func(tx db.Tx, v viewer) error {
		if err := s.checkNewProject(tx, v, n); err != nil {
			return err
		}
		row, err := s.writing().AddProject(tx, v, n.ID, n.Name)
		if err != nil {
			return err
		}
		v.Projects = append(v.Projects, row)
		db.ActFor(tx, s.caller(v))
		added, err = loadProject(tx, v, row)
		return err
	})
	return added, err
}

// checkNewProject refuses a name or id that is taken, and a project that a limited view may not add.
func (s *Store) checkNewProject(tx db.Tx, v viewer, n NewProject) error {
	if v.Limited {
		beyond := !slices.Contains(s.access.Projects, n.ID)
		if !beyond {
			known, err := naming.Find(tx, viewer{User: v.User}, n.ID, "")
			if err != nil {
				return err // two projects have the id that the view is limited to
			}
			beyond = known != nil && !known.Own
		}
		if beyond {
			return newError(KindForbidden, "project_id", "this view is limited to the projects %s and cannot add others",
				oneOf(s.access.Projects))
		}
	}
	taken, err := db.Column[string](tx, `SELECT uid FROM project WHERE owner_id = ? AND uid = ?`, v.User, n.ID)
	if err != nil {
		return err
	}
	if len(taken) > 0 {
		return newError(KindConflict, "project_id", "{} %s already exists; choose another one, or store into it",
			show(n.ID))
	}
	if v.Limited {
		return nil // the view must not learn the names of projects outside its limit
	}
	return naming.CheckFree(tx, v, "project_name", cmp.Or(n.Name, n.ID), 0)
}

// GetProject returns a project. One that does not exist, or cannot be seen through this view, is ErrNotFound.
func (s *Store) GetProject(ctx context.Context, ref ProjectRef) (_ Project, err error) {
	defer setGoNames[ProjectRef](&err)
	if err := ref.check(); err != nil {
		return Project{}, err
	}
	var found Project
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		p, err := naming.Known(tx, v, ref.ID, ref.Name)
		if err != nil {
			return err
		}
		found, err = loadProject(tx, v, p.Row)
		return err
	})
	return found, err
}

// Projects returns the projects visible through this view: the caller's own first, then the shared ones, each by name.
func (s *Store) Projects(ctx context.Context) ([]Project, error) {
	var all []Project
	err := s.read(ctx, func(tx db.Tx, v viewer) (err error) {
		all, err = loadProjects(tx, v, `true`)
		return err
	})
	return all, err
}

// ProjectUpdate describes a change to a project. Nil fields change nothing.
type ProjectUpdate struct {
	Name *string // 1 to 128 characters

	// Retention replaces the rule for how long its memories stay, as in CollectionUpdate. Only the owner of record may set
	// one with Delete; for others it is ErrForbidden.
	Retention *Retention
}

// UpdateProject renames a project: all memories in it have the new name at once, and are found by it. Its last 16
// former names still resolve to it, until another project of its owner gets them. Only its owners may rename it,
// through a view that is not limited to projects; for others it is ErrForbidden. A name that another project of the
// caller's has is ErrConflict.
func (s *Store) UpdateProject(ctx context.Context, ref ProjectRef, u ProjectUpdate) (_ Project, err error) {
	defer setGoNames[ProjectRef](&err)
	defer setGoNames[ProjectUpdate](&err)
	if err := ref.check(); err != nil {
		return Project{}, err
	}
	if u.Name != nil {
		if err := valid.ProjectName("name", *u.Name); err != nil {
			return Project{}, err
		}
	}
	if u.Retention != nil {
		if err := u.Retention.check(); err != nil {
			return Project{}, err
		}
	}
	var updated Project
	err = s.write(ctx, func(tx db.Tx, v viewer) error {
		p, err := naming.Managed(tx, v, ref.ID, ref.Name)
		if err != nil {
			return err
		}
		if u.Retention != nil {
			if u.Retention.Delete && !p.Own {
				return newError(KindForbidden, "retention", "{} would permanently delete memories of %s, which only the owner may "+
					"do; unset Delete to move them to the trash", kernel.UserName(tx, v, p.Owner))
			}
			if err := s.setRetention(ctx, tx, "project", p.Row, *u.Retention, AuditID("project", p.Owner,
				p.UID)); err != nil {
				return err
			}
		}
		if u.Name != nil && *u.Name != p.Name {
			if p.Own { // only the owner may learn the names of the owner's other projects
				if err := naming.CheckFree(tx, v, "name", *u.Name, p.Row); err != nil {
					return err
				}
			}
			if err := naming.Rename(tx, p, *u.Name, s.now()); err != nil {
				return err
			}
		}
		updated, err = loadProject(tx, v, p.Row)
		return err
	})
	return updated, err
}

// DeleteProject deletes one of the caller's projects, which goes to the trash as one entry; members lose access when
// its last memory is gone. Only the owner of record may delete it, through a view that is not limited to projects.
// Memories are deleted in batches of a thousand, so that other writers get their turn; after an error some of them may
// be gone, and a second call deletes the rest.
func (s *Store) DeleteProject(ctx context.Context, ref ProjectRef, options *DeletionOptions) (err error) {
	defer setGoNames[DeletionOptions](&err)
	defer setGoNames[ProjectRef](&err)
	if err := s.outside(ctx, "DeleteProject"); err != nil {
		return err
	}
	if err := ref.check(); err != nil {
		return err
	}
	return s.hookedDelete(ctx, "DeleteProject", func(ctx context.Context, h *operation) (err error) {
		defer setGoNames[DeletionOptions](&err)
		defer setGoNames[ProjectRef](&err)
		h.in(ref)
		if err := h.delete(ctx, options); err != nil {
			return err
		}
		o := options.orDefault()
		defer s.wakeTexts(ctx) // of files that stay, in another place
		return s.deleteInPortions(ctx, o.Erase, func(tx db.Tx, v viewer, p trash.Portion) (bool, error) {
			return s.deleteProject(tx, v, ref, o, p)
		})
	})
}

// deleteProject deletes one portion, and reports whether it was the last.
func (s *Store) deleteProject(tx db.Tx, v viewer, project ProjectRef, o DeletionOptions,
	most trash.Portion) (done bool, err error) {
	p, err := naming.Managed(tx, v, project.ID, project.Name)
	if err != nil {
		return false, err
	}
	if !p.Own {
		return false, newError(KindForbidden, p.Argument, "project %s belongs to %s; only the owner can delete it",
			whole(p.Ref()),
			kernel.UserName(tx, v, p.Owner))
	}
	var memories, files int64
	err = tx.QueryRow(`SELECT (SELECT coalesce(sum(`+v.Held()+`), 0) FROM partition p WHERE p.project_id = ?
			AND p.id NOT IN (`+kernel.TextPartitions+`)),
		(SELECT count(*) FROM file WHERE project_id = ? AND memory_id IS NULL AND state = 'stored')`, p.Row,
		p.Row).Scan(&memories, &files)
	if err != nil {
		return false, err
	}
	if memories+files > 0 && !o.WithMemories {
		return false, newError(KindConflict, p.Argument,
			"project %s holds %d memories and %d files; move or delete them first, or delete the project together with its "+
				"memories, which keeps the files",
			whole(p.Ref()), memories, files)
	}
	t := s.newTrasher(tx, v, most)
	t.Forever = t.Forever || o.Erase
	entry, err := t.Project(p)
	if err != nil {
		return false, err
	}
	if done, err = t.Memories(entry, `p.project_id = ?`, p.Row); err != nil || !done {
		return false, err
	}
	if err := t.FinishProject(entry, p); err != nil {
		return false, err
	}
	return true, db.Beyond(tx, func() error { return removeProject(tx, p.Row) })
}

// removeProject deletes a project whose contents have been moved.
func removeProject(tx db.Tx, project int64) error {
	// Past versions of moved memories, from their time in the project, remain for its owner.
	for _, statement := range []string{
		`UPDATE file SET project_id = NULL WHERE project_id = ?`,
		`INSERT INTO partition (collection_id) WITH left_over (id) AS MATERIALIZED (
				SELECT DISTINCT p.collection_id FROM partition p JOIN memory_revision r ON r.partition_id = p.id
				WHERE p.project_id = ? AND NOT EXISTS (SELECT 1 FROM partition o WHERE o.collection_id = p.collection_id
				AND o.project_id IS NULL)) SELECT id FROM left_over`,
		`UPDATE memory_revision SET partition_id = (SELECT o.id FROM partition p
			JOIN partition o ON o.collection_id = p.collection_id
			WHERE p.id = memory_revision.partition_id AND o.project_id IS NULL ORDER BY o.id LIMIT 1)
			WHERE partition_id IN (SELECT id FROM partition WHERE project_id = ?)`,
		`DELETE FROM partition WHERE project_id = ?`,
		`DELETE FROM project WHERE id = ?`,
	} {
		if _, err := tx.Exec(statement, project); err != nil {
			return err
		}
	}
	return nil
}

// loadProjects reads the visible projects for which a condition on project j holds.
func loadProjects(tx db.Tx, v viewer, condition string, args ...any) ([]Project, error) {
	visible, visibleArgs := v.VisibleProject()
	role, roleArgs := v.ProjectRole()
	memories, memoriesArgs := v.Visible()
	all := []Project{}
	err := tx.Each(func(row db.Rows) error {
		var p Project
		var created, updated, after int64
		var deletes bool
		err := row.Scan(&p.ID, &p.Name, &p.Owner, &p.OwnerName, &p.own, &p.Role, &p.Members, &p.MemoryCount, &created,
			&updated, &after, &deletes)
		p.Retention = retentionOf(after, deletes)
		p.CreatedAt, p.UpdatedAt = kernel.ToTime(created), kernel.ToTime(updated)
		all = append(all, p)
		return err
	}, `SELECT j.uid, j.name, u.uid, coalesce(u.name, ''), j.owner_id = ?, `+role+`,
			1 + (SELECT count(*) FROM project_member WHERE project_id = j.id),
			(SELECT coalesce(sum(`+v.Held()+`), 0) FROM partition p JOIN collection c ON c.id = p.collection_id
			WHERE p.project_id = j.id AND `+memories+`),
			j.created_at, j.updated_at, coalesce(j.retention, 0), coalesce(j.retention_deletes, 0)
		FROM project j JOIN users u ON u.id = j.owner_id WHERE `+visible+` AND `+condition+`
		ORDER BY j.owner_id = ? DESC, j.name, j.uid, u.uid`,
		slices.Concat([]any{v.User}, roleArgs, memoriesArgs, visibleArgs, args, []any{v.User})...)
	if sealedrows.Seals(tx) {
		sortProjects(all)
	}
	return all, err
}

// loadProject reads a project that the caller can see.
func loadProject(tx db.Tx, v viewer, row int64) (Project, error) {
	found, err := loadProjects(tx, v, `j.id = ?`, row)
	if err != nil || len(found) == 0 {
		return Project{}, err
	}
	return found[0], nil
}

// Owner is a user whose projects the caller can see.
type Owner struct {
	ID       string    `json:"owner_id"`       // user id
	Name     string    `json:"name,omitempty"` // of the account, if any
	Projects []Project `json:"projects"`       // the ones that the caller can see, with the caller's role in each
}

// Owners returns the owners of the projects visible through this view: the caller first, even without projects, then
// the others by name.
func (h *Insights) Owners(ctx context.Context) ([]Owner, error) {
	s := h.s
	var owners []Owner
	err := s.read(ctx, func(tx db.Tx, v viewer) error {
		names, err := db.Column[string](tx, `SELECT coalesce(name, '') FROM users WHERE id = ?`, v.User)
		if err != nil {
			return err
		}
		owners = []Owner{{ID: s.access.User, Name: strings.Join(names, ""), Projects: []Project{}}}
		all, err := loadProjects(tx, v, `true`)
		if err != nil {
			return err
		}
		for _, p := range all {
			i := slices.IndexFunc(owners, func(o Owner) bool { return o.ID == p.Owner })
			if i < 0 {
				i = len(owners)
				owners = append(owners, Owner{ID: p.Owner, Name: p.OwnerName})
			}
			owners[i].Projects = append(owners[i].Projects, p)
		}
		slices.SortFunc(owners[1:], func(a, b Owner) int {
			return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
		})
		return nil
	})
	return owners, err
}

// sortProjects sorts projects with sealed names like any others: the caller's own first, then by name.
func sortProjects(all []Project) {
	slices.SortStableFunc(all, func(a, b Project) int {
		switch {
		case a.own && !b.own:
			return -1
		case b.own && !a.own:
			return 1
		}
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Owner, b.Owner))
	})
}

// EventProjectMain is the event type of memories that say what a project is about. It is compared without regard to
// case.
const EventProjectMain = "project-main"

// MainMemory is the starting point for a project.
type MainMemory struct {
	Project Project `json:"project"`
	Memory  Memory  `json:"memory"` // the newest active memory of event type project-main in the project

	Files []File `json:"files"` // linked to it

	// Related are the memories up to two links away from it, in both directions, the nearest first, each once. At most
	// 1,000.
	Related []RelatedMemory `json:"related_memories"`

	Warnings []string `json:"warnings,omitempty"` // notes for the caller, for example about parts left out
}

// maxMainRelated is how many related memories are read, the nearest first.
const maxMainRelated = 1000

// mainMemoryDepth is how many links away from a main memory its related memories may be.
const mainMemoryDepth = 2

// MarshalJSON returns an object of project, memory, files, related_memories and warnings.
func (m MainMemory) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Project  Project         `json:"project"`
		Memory   Memory          `json:"memory"`
		Files    []File          `json:"files"`
		Related  []RelatedMemory `json:"related_memories"`
		Warnings []string        `json:"warnings,omitempty"`
	}{m.Project, m.Memory, jsonobject.List(m.Files), jsonobject.List(m.Related), m.Warnings})
}

// GetMainMemory returns the main memory of a project, with its files and related memories. An unknown project, or one
// without an active memory of event type project-main (in any case), is ErrNotFound.
func (s *Store) GetMainMemory(ctx context.Context, project ProjectRef) (_ MainMemory, err error) {
	defer setGoNames[ProjectRef](&err)
	if err := project.check(); err != nil {
		return MainMemory{}, err
	}
	var m MainMemory
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		p, err := naming.Known(tx, v, project.ID, project.Name)
		if err != nil {
			return err
		}
		m = MainMemory{Warnings: p.Notes()}
		if m.Project, err = loadProject(tx, v, p.Row); err != nil {
			return err
		}
		return s.mainMemory(tx, v, p, &m)
	})
	return m, err
}

func (s *Store) mainMemory(tx db.Tx, v viewer, p naming.Project, m *MainMemory) error {
	places, err := fixedcontext.Places(tx, v)
	if err != nil {
		return err
	}
	inProject := func(place fixedcontext.Place) bool { return place.Project == p.Row }
	row, err := fixedcontext.Newest(tx, s.now(), fixedcontext.Select(v, places, inProject), EventProjectMain)
	if err != nil {
		return err
	}
	found, err := kernel.LoadRows(tx, v, kernel.WholeContent, []int64{row})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return newError(KindNotFound, "",
			"project %s has no main memory; store a memory with event_type %s and state %s in it", show(p.Ref()),
			EventProjectMain, StateActive)
	}
	m.Memory = memoryOf(found[0])
	files, err := s.filesOf(tx, v, []int64{row})
	if err != nil {
		return err
	}
	m.Files = files[row]
	var more bool
	if m.Related, more, err = s.walk(tx, v, found[0], mainMemoryDepth, maxMainRelated); more {
		m.Warnings = append(m.Warnings,
			fmt.Sprintf("only %d related memories are listed; search finds the others", len(m.Related)))
	}
	return err
}

// Within returns the main memory shortened until its JSON has about this many tokens (at least [MinTokenBudget]). If it
// fits, it stays whole. Otherwise the main memory gets up to half of the room, files an eighth, and related memories
// the rest: in previews, the nearest first. Warnings say what was left out, and how to get it.
func (m MainMemory) Within(tokens int) MainMemory {
	tokens = max(tokens, MinTokenBudget)
	room := budget.BytesPerToken * tokens
	if budget.Size(m) <= room {
		return m
	}
	room -= budgetNotes + budget.Size(m.Project) + budget.Size(m.Warnings)
	main := ContextMemory{Memory: m.Memory}
	main.within(room / 2)
	m.Memory, m.Warnings = main.Memory, slices.Clone(m.Warnings)
	if main.Truncated {
		m.Warnings = append(m.Warnings,
			fmt.Sprintf("token_budget %d: the main memory is shortened; memory retrieve with id %s gives the whole", tokens,
				m.Memory.ID))
	}
	room -= budget.Size(main)

	files, related := m.Files, m.Related
	m.Files = budget.Fitting(files, room/8)
	if left := len(files) - len(m.Files); left > 0 {
		m.Warnings = append(m.Warnings,
			fmt.Sprintf("token_budget %d: files shows %d of %d; GET /api/files?memory_id=%s lists all", tokens, len(m.Files),
				len(files), m.Memory.ID))
	}
	room -= budget.Size(m.Files)

	related = slices.Clone(related)
	for i := range related {
		related[i].Truncated = related[i].shorten(defaultPreview)
	}
	m.Related = budget.Fitting(related, room)
	if left := related[len(m.Related):]; len(left) > 0 {
		direct := len(slices.DeleteFunc(slices.Clone(left), func(r RelatedMemory) bool { return r.Depth > 1 }))
		m.Warnings = append(m.Warnings, fmt.Sprintf(
			"token_budget %d: related_memories shows %d of %d; omitting %d linked directly and %d further away. memory "+
				"search with filter {\"related_memory_ids\": %q} "+
				"pages through the memories that link to the main memory; its related_memory_ids are the memories that it links to",
			tokens, len(m.Related), len(related), direct, len(left)-direct, m.Memory.ID))
	}
	return m
}

// DefaultTokenBudget is the token budget of the tools get_project_main_memory and get_module_state if the call names
// none. 1 token = 4 bytes of JSON (estimate).
const DefaultTokenBudget = 8000

// budgetNotes is how many bytes the warnings about parts left out may take, of a main memory or a module's state.
const budgetNotes = 900
