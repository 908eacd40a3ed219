package chunked

import "io"

// Described is a caller's content followed by its description, as in a form whose fields come after its file.
type Described interface {
	io.Reader

	// Description is called once, after the content has been read to its end.
	Description() (Description, error)
}

// Description is optional information about content.
type Description struct {
	Text, Category                   string
	Tags                             []string
	MemoryID, ProjectID, ProjectName string
}
