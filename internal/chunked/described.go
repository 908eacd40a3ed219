package chunked

import "io"

// Described is a caller's content that is followed by what describes it, as in a form whose fields come after its file.
type Described interface {
	io.Reader

	// Description is asked for once, when the content has been read to its end.
	Description() (Description, error)
}

// Description is optional information about content, ahead of it.
type Description struct {
	Text, Category                   string
	Tags                             []string
	MemoryID, ProjectID, ProjectName string
}
