package tools

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

var uploadDocument = definition{
	name:  "upload_document",
	title: "Upload document",
	description: `Keep a file beside a memory. Either link one that is uploaded already (file_id and memory_id), ` +
		`or store a small one: filename with content (text) or content_base64 (anything else), and memory_id if it belongs to a memory. ` +
		`Large files go to POST /api/files/upload first. Returns the file; GET /api/files/ID gives its bytes.`,
	parameters: []parameter{
		{name: "file_id", kind: word, description: "An uploaded file, to link."},
		{name: "memory_id", kind: word, description: "The memory to link to."},
		{name: "filename", kind: word},
		{name: "mime_type", kind: word, description: "Left out: found out from content and name."},
		{name: "content", kind: text, description: "The file as text."},
		{name: "content_base64", kind: text, description: "The file as base64."},
		{name: "description", kind: text},
		{name: "tags", kind: words},
		{name: "category", kind: word},
		{name: "project_name", kind: word, description: "Project of a new file without memory_id."},
		{name: "project_id", kind: word},
	},
	actions: []action{{
		scope: souvenir.ScopeFilesWrite,
		optional: []string{"file_id", "memory_id", "filename", "mime_type", "content", "content_base64", "description", "tags", "category",
			"project_name", "project_id"},
		call: (*Set).uploadDocument,
	}},
}

func (s *Set) uploadDocument(ctx context.Context, a *arguments) (any, error) {
	text, encoded := a.has("content"), a.has("content_base64")
	switch {
	case text && encoded:
		return nil, invalid("content_base64", "content and content_base64 are both given; a file has one of them")
	case a.has("file_id") && (text || encoded):
		return nil, invalid("file_id", "file_id comes with content; give file_id and memory_id to link a file that is uploaded, or filename and content to store a new one")
	case a.has("file_id"):
		return s.linkFile(ctx, a)
	case !text && !encoded:
		return nil, invalid("file_id", "file_id and content are missing; give file_id and memory_id to link a file that is uploaded, or filename with content or content_base64 to store a new one")
	case !a.has("filename"):
		return nil, invalid("filename", `filename is missing; a new file needs one, such as "notes.md"`)
	}
	project := a.project()
	file := souvenir.NewFile{
		Filename: a.text("filename"), MIMEType: a.text("mime_type"), Description: a.text("description"), Category: a.text("category"), Tags: a.words("tags"),
		MemoryID: a.text("memory_id"), ProjectID: project.ID, ProjectName: project.Name,
	}
	content := []byte(a.text("content"))
	if encoded {
		var declared string
		var err error
		if content, declared, err = decodeBase64(a.text("content_base64")); err != nil {
			return nil, err
		}
		if file.MIMEType == "" {
			file.MIMEType = declared
		}
	}
	file.Size = int64(len(content))
	return s.store.AddFile(ctx, file, bytes.NewReader(content))
}

// linkFile links a file to a memory, and changes what is said of it.
func (s *Set) linkFile(ctx context.Context, a *arguments) (any, error) {
	if !a.has("memory_id") {
		return nil, invalid("memory_id", "memory_id is missing; a file is linked to a memory")
	}
	for _, name := range []string{"filename", "mime_type", "project_name", "project_id"} {
		if a.has(name) {
			a.warn("ignored %s: it is for new files, and file_id names one that is uploaded", name)
		}
	}
	given := func(name string) *string {
		if !a.has(name) {
			return nil
		}
		value := a.text(name)
		return &value
	}
	return s.store.UpdateFile(ctx, a.text("file_id"), souvenir.UpdateFile{
		MemoryID: given("memory_id"), Description: given("description"), Category: given("category"), Tags: a.words("tags"),
	})
}

// decodeBase64 decodes the base64 of RFC 4648, with either alphabet, with padding or without, in lines or in one; a data URL
// (RFC 2397) may be around it, whose type it returns.
func decodeBase64(encoded string) (content []byte, declared string, err error) {
	encoded = strings.TrimSpace(encoded)
	if header, data, ok := strings.Cut(encoded, ","); ok && strings.HasPrefix(header, "data:") && strings.HasSuffix(header, ";base64") {
		declared, encoded = strings.TrimSuffix(strings.TrimPrefix(header, "data:"), ";base64"), data
	}
	standard := strings.NewReplacer("-", "+", "_", "/", "\r", "", "\n", "", " ", "", "\t", "").Replace(encoded)
	decoder := base64.NewDecoder(base64.RawStdEncoding, strings.NewReader(strings.TrimRight(standard, "=")))
	if content, err = io.ReadAll(decoder); err != nil {
		return nil, "", invalid("content_base64", "content_base64 is not base64: %v", err)
	}
	return content, declared, nil
}
