package upload

import (
	"github.com/souvenir-ai/souvenir"
)

// ProjectOf is the project that a file lies in, as a change of the file names it; the zero value: none.
func ProjectOf(status souvenir.FileStatus) *souvenir.ProjectRef {
	if status.ProjectID == "" {
		return &souvenir.ProjectRef{}
	}
	return &souvenir.ProjectRef{ID: status.ProjectOwner + "/" + status.ProjectID}
}
