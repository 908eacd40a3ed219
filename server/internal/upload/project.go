package upload

import (
	"github.com/souvenir-ai/souvenir"
)

func ProjectOf(status souvenir.FileStatus) *souvenir.ProjectRef {
	if status.ProjectID == "" {
		return &souvenir.ProjectRef{}
	}
	return &souvenir.ProjectRef{ID: status.ProjectOwner + "/" + status.ProjectID}
}
