package tools

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/fault"
)

type uploadDocumentArguments struct {
	notes
	FileID        string   `json:"file_id" doc:"An uploaded file, to link."`
	MemoryID      string   `json:"memory_id" doc:"The memory to link to."`
	Filename      string   `json:"filename"`
	MIMEType      string   `json:"mime_type" doc:"Left out: found out from content and name."`
	Content       string   `json:"content" text:"verbatim" doc:"The file as text."`
	ContentBase64 string   `json:"content_base64" text:"verbatim" doc:"The file as base64."`
	Description   string   `json:"description" text:"verbatim"`
	Tags          []string `json:"tags"`
	Category      string   `json:"category"`
	project       `project_name:"Project of a new file without memory_id."`
}

var uploadDocument = define[uploadDocumentArguments](definition{
	name:  "upload_document",
	title: "Upload document",
	description: `Keep a file beside a memory. Either link one that is uploaded already (file_id and memory_id), ` +
		`or store a small one: filename with content (text) or content_base64 (anything else), and memory_id if it belongs ` +
		`to a memory. ` +
		`Large files go to POST /api/files/upload first. Returns the file, and as text what memory search finds of it; ` +
		`GET /api/files/ID gives its bytes.`,
	actions: []action{{
		scope: souvenir.ScopeFilesWrite,
		optional: []string{"file_id", "memory_id", "filename", "mime_type", "content", "content_base64", "description",
			"tags", "category",
			"project_name", "project_id"},
		call: with((*Set).uploadDocument),
	}},
})

func (s *Set) uploadDocument(ctx context.Context, a *uploadDocumentArguments) (any, error) {
	text, encoded := a.Content != "", a.ContentBase64 != ""
	switch {
	case text && encoded:
		return nil, fault.Invalid("content_base64", "content and content_base64 are both given; a file has one of them")
	case a.FileID != "" && (text || encoded):
		return nil, fault.Invalid("file_id",
			"file_id is given with content; give file_id and memory_id to link an uploaded file, or filename and content "+
				"to store a new one")
	case a.FileID != "":
		return s.linkFile(ctx, a)
	case !text && !encoded:
		return nil, fault.Invalid("file_id",
			"file_id and content are missing; give file_id and memory_id to link an uploaded file, or filename with "+
				"content or content_base64 to store a new one")
	case a.Filename == "":
		return nil, fault.Invalid("filename", `filename is missing; a new file needs one, such as "notes.md"`)
	}
	file := souvenir.NewFile{
		Filename: a.Filename, MIMEType: a.MIMEType, Description: a.Description, Category: a.Category, Tags: a.Tags,
		MemoryID: a.MemoryID, ProjectID: a.ProjectID, ProjectName: a.ProjectName,
	}
	content := []byte(a.Content)
	if encoded {
		var declared string
		var err error
		if content, declared, err = decodeBase64(a.ContentBase64); err != nil {
			return nil, err
		}
		if file.MIMEType == "" {
			file.MIMEType = declared
		}
	}
	file.Size = int64(len(content))
	added, err := s.store.AddFile(ctx, file, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	return s.indexed(ctx, added), nil
}

// readSoon is how long an answer waits for the text of a file.
const readSoon = 2 * time.Second

// indexed returns a file, with the state of its text if that is known soon.
func (s *Set) indexed(ctx context.Context, f souvenir.File) souvenir.File {
	ctx, cancel := context.WithTimeout(ctx, readSoon)
	defer cancel()
	if read, err := s.store.WaitIndexed(ctx, f.ID); err == nil {
		return read
	}
	return f // the file is read later, or has just been deleted
}

// linkFile links a file to a memory, and updates the file's description, category and tags.
func (s *Set) linkFile(ctx context.Context, a *uploadDocumentArguments) (any, error) {
	if a.MemoryID == "" {
		return nil, fault.Invalid("memory_id", "memory_id is missing; a file is linked to a memory")
	}
	for _, ignored := range []struct{ name, value string }{
		{"filename", a.Filename}, {"mime_type", a.MIMEType}, {"project_name", a.ProjectName}, {"project_id", a.ProjectID},
	} {
		if ignored.value != "" {
			a.warn("ignored %s: it is for new files, but file_id names an uploaded one", ignored.name)
		}
	}
	given := func(value string) *string {
		if value == "" {
			return nil
		}
		return &value
	}
	linked, err := s.store.UpdateFile(ctx, a.FileID, souvenir.FileUpdate{
		MemoryID: &a.MemoryID, Description: given(a.Description), Category: given(a.Category), Tags: a.Tags,
	})
	if err != nil {
		return nil, err
	}
	return s.indexed(ctx, linked), nil
}

// decodeBase64 decodes the base64 of RFC 4648, with either alphabet, with or without padding, in one line or several; a
// data URL (RFC 2397) may wrap it, and then its type is returned.
func decodeBase64(encoded string) (content []byte, declared string, err error) {
	encoded = strings.TrimSpace(encoded)
	if header, data, ok := strings.Cut(encoded, ","); ok && strings.HasPrefix(header, "data:") &&
		strings.HasSuffix(header, ";base64") {
		declared, encoded = strings.TrimSuffix(strings.TrimPrefix(header, "data:"), ";base64"), data
	}
	standard := strings.NewReplacer("-", "+", "_", "/", "\r", "", "\n", "", " ", "", "\t", "").Replace(encoded)
	decoder := base64.NewDecoder(base64.RawStdEncoding, strings.NewReader(strings.TrimRight(standard, "=")))
	if content, err = io.ReadAll(decoder); err != nil {
		return nil, "", fault.Invalid("content_base64", "content_base64 is not base64: %v", err)
	}
	return content, declared, nil
}
