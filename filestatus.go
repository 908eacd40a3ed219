package souvenir

import (
	"context"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// FileStatus is how a file lies in the store, as the caller sees it.
type FileStatus struct {
	Owner     string `json:"owner"`                // user id of its owner; of what lies in a project, the project's owner
	OwnerName string `json:"owner_name,omitempty"` // of that account, if there is one

	// The project it lies in; empty: none that is visible through this view. ProjectOwner is the user id of the project's owner, with whose
	// id the project is named without doubt: OWNER/ID.
	ProjectID    string `json:"project_id,omitempty"`
	ProjectOwner string `json:"project_owner,omitempty"`

	Writable bool `json:"writable"` // the caller may change and delete it
}

// GetFileStatus returns how a file lies in the store. One that does not exist, or that this view may not see, is ErrNotFound.
func (h *Insights) GetFileStatus(ctx context.Context, id string) (FileStatus, error) {
	s := h.s
	var status FileStatus
	err := s.read(ctx, func(tx db.Tx, sc scope) error {
		f, err := s.file(tx, sc, id)
		if err != nil {
			return err
		}
		status = FileStatus{Owner: f.Owner, ProjectID: f.ProjectID, Writable: f.writable && !s.access.ReadOnly}
		if err := tx.QueryRow(`SELECT coalesce(name, '') FROM users WHERE uid = ?`, f.Owner).Scan(&status.OwnerName); err != nil {
			return err
		}
		if f.ProjectID == "" {
			return nil
		}
		return tx.QueryRow(`SELECT u.uid FROM project j JOIN users u ON u.id = j.owner_id WHERE j.id = ?`, f.project).Scan(&status.ProjectOwner)
	})
	return status, err
}
