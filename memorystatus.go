package souvenir

import (
	"context"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// MemoryStatus says how a memory lies in the store: to whom it and its project belong, what the caller may do with it, and how it is found.
type MemoryStatus struct {
	Owner     string `json:"owner"`                // user id of its collection's owner
	OwnerName string `json:"owner_name,omitempty"` // of that account, if there is one

	// The project it lies in; empty: none. ProjectOwner is the user id of the project's owner, with whose id the project is named without
	// doubt: OWNER/ID.
	ProjectID        string `json:"project_id,omitempty"`
	ProjectOwner     string `json:"project_owner,omitempty"`
	ProjectOwnerName string `json:"project_owner_name,omitempty"`

	Writable bool `json:"writable"` // the caller may change and delete it

	Passages   int  `json:"passages"`    // the pieces in which it is searched
	Pending    int  `json:"pending"`     // those of them that wait to be embedded: they are found by words only
	OwnVectors bool `json:"own_vectors"` // its collection takes vectors from callers
}

// GetMemoryStatus returns how a memory lies in the store. One that does not exist, or that this view may not see, is ErrNotFound.
func (h *Insights) GetMemoryStatus(ctx context.Context, id string) (MemoryStatus, error) {
	s := h.s
	var m MemoryStatus
	err := s.read(ctx, func(tx db.Tx, sc scope) error {
		found, err := s.memory(tx, sc, id)
		if err != nil {
			return err
		}
		m = MemoryStatus{Owner: found.Owner, Writable: found.writable && !s.access.ReadOnly, OwnVectors: found.ownVectors}
		if err := tx.QueryRow(`SELECT coalesce(name, '') FROM users WHERE uid = ?`, found.Owner).Scan(&m.OwnerName); err != nil {
			return err
		}
		if found.project != 0 {
			err := tx.QueryRow(`SELECT j.uid, u.uid, coalesce(u.name, '') FROM project j JOIN users u ON u.id = j.owner_id WHERE j.id = ?`, found.project).
				Scan(&m.ProjectID, &m.ProjectOwner, &m.ProjectOwnerName)
			if err != nil {
				return err
			}
		}
		return tx.QueryRow(`SELECT count(*), count(*) FILTER (WHERE vector IS NULL AND profile_id IS NOT NULL) FROM passage WHERE memory_id = ?`, found.row).
			Scan(&m.Passages, &m.Pending)
	})
	return m, err
}
