package upload

import (
	"github.com/souvenir-ai/souvenir"
)

// ProjectOf returns the project of a file for a change of the file; the zero value: none.
func ProjectOf(status souvenir.FileStatus) *souvenir.ProjectRef {
	if status.ProjectID == "" {
		return &souvenir.ProjectRef{}
	}
	return &souvenir.ProjectRef{ID: status.ProjectOwner + "/" + status.ProjectID}
}
