package souvenir

import (
	"context"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Insights provides the data of a dashboard: overview, graph and map, the tags and modules in use, recorded activity,
// and who may do what with a memory or a file. Get it with [Store.Insights]; it covers the data visible through its
// view.
type Insights struct {
	s *Store
}

// Insights returns the methods for dashboards.
func (s *Store) Insights() *Insights {
	return &Insights{s}
}

// own returns the store for a method about all of the user's data, and refuses it on a view limited to projects.
func (h *Insights) own(method string) (*Store, error) {
	return h.s, h.s.checkAccount(method)
}

// MemoryStatus describes a memory's place in the store: the owners of the memory and its project, the caller's rights,
// and how it is indexed.
type MemoryStatus struct {
	Owner     string `json:"owner"`                // user id of its collection's owner
	OwnerName string `json:"owner_name,omitempty"` // of that account, if there is one

	// The project it lies in; empty: none. ProjectOwner is the user id of the project's owner: OWNER/ID names the project
	// unambiguously.
	ProjectID        string `json:"project_id,omitempty"`
	ProjectOwner     string `json:"project_owner,omitempty"`
	ProjectOwnerName string `json:"project_owner_name,omitempty"`

	Writable bool `json:"writable"` // the caller may change and delete it

	Passages   int  `json:"passages"`    // the pieces it is indexed as
	Pending    int  `json:"pending"`     // passages that wait to be embedded: they are found by words only
	OwnVectors bool `json:"own_vectors"` // its collection takes vectors from callers
}

// GetMemoryStatus returns a memory's place in the store. A memory that does not exist, or that this view may not see,
// is ErrNotFound.
func (h *Insights) GetMemoryStatus(ctx context.Context, id string) (_ MemoryStatus, err error) {
	defer inGo[struct{}](&err, "id", "id")
	s := h.s
	var m MemoryStatus
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		found, err := s.memory(tx, v, id)
		if err != nil {
			return err
		}
		m = MemoryStatus{Owner: found.Owner, Writable: found.writable && !s.access.ReadOnly, OwnVectors: found.ownVectors}
		if err := tx.QueryRow(`SELECT coalesce(name, '') FROM users WHERE namespace = ? AND uid = ?`,
			v.Namespace, found.Owner).Scan(&m.OwnerName); err != nil {
			return err
		}
		if found.project != 0 {
			err := tx.QueryRow(`SELECT j.uid, u.uid, coalesce(u.name, '') FROM project j JOIN users u ON u.id = j.owner_id `+
				`WHERE j.id = ?`, found.project).
				Scan(&m.ProjectID, &m.ProjectOwner, &m.ProjectOwnerName)
			if err != nil {
				return err
			}
		}
		return tx.QueryRow(`SELECT count(*), count(*) FILTER (WHERE vector IS NULL AND profile_id IS NOT NULL) `+
			`FROM passage WHERE memory_id = ?`, found.row).
			Scan(&m.Passages, &m.Pending)
	})
	return m, err
}

// FileStatus is a file's place in the store, as the caller sees it.
type FileStatus struct {
	Owner     string `json:"owner"`                // user id of its owner; for a file in a project, the project's owner
	OwnerName string `json:"owner_name,omitempty"` // of that account, if there is one

	// The project it lies in; empty: none that is visible through this view. ProjectOwner is the user id of the project's
	// owner: OWNER/ID names the project unambiguously.
	ProjectID    string `json:"project_id,omitempty"`
	ProjectOwner string `json:"project_owner,omitempty"`

	Writable bool `json:"writable"` // the caller may change and delete it
}

// GetFileStatus returns a file's place in the store. A file that does not exist, or that this view may not see, is
// ErrNotFound.
func (h *Insights) GetFileStatus(ctx context.Context, id string) (_ FileStatus, err error) {
	defer inGo[struct{}](&err, "file_id", "id")
	s := h.s
	var status FileStatus
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		f, err := s.file(tx, v, id)
		if err != nil {
			return err
		}
		status = FileStatus{Owner: f.Owner, ProjectID: f.ProjectID, Writable: f.writable && !s.access.ReadOnly}
		if err := tx.QueryRow(`SELECT coalesce(name, '') FROM users WHERE namespace = ? AND uid = ?`,
			v.Namespace, f.Owner).Scan(&status.OwnerName); err != nil {
			return err
		}
		if f.ProjectID == "" {
			return nil
		}
		return tx.QueryRow(`SELECT u.uid FROM project j JOIN users u ON u.id = j.owner_id WHERE j.id = ?`,
			f.project).Scan(&status.ProjectOwner)
	})
	return status, err
}
