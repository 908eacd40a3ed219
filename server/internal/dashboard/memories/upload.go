package memories

import (
	"context"
	"io"
	"mime"
	"mime/multipart"
	"net/http"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/upload"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// addFileToMemory stores a file from a memory's page, and links it to that memory.
func (s *Service) addFileToMemory(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	id := r.PathValue("id")
	part, in, err := s.fileOfForm(w, r)
	if err != nil {
		return nil, err
	}
	in.InFile = true
	added, err := c.Store.AddFile(r.Context(),
		souvenir.NewFile{Filename: part.FileName(), MIMEType: part.Header.Get("Content-Type"), MemoryID: id}, part)
	in.InFile = false
	if err != nil {
		return nil, err
	}
	return s.site.DoneWithUndo(c, web.MemoryPath(id), "“"+added.Filename+"” is uploaded and linked to this memory.",
		func(ctx context.Context) error {
			return c.Store.DeleteFile(ctx, added.ID, nil)
		}), nil
}

// fileOfForm returns the file of a form of a page of this server. The hidden field comes before the file: nothing
// is stored from forms of other sites.
func (s *Service) fileOfForm(w http.ResponseWriter, r *http.Request) (*multipart.Part, *upload.Form, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "multipart/form-data" {
		if _, err := s.site.ReadForm(w, r); err != nil {
			return nil, nil, err
		}
		return nil, nil, failure.Invalid("file", "file is missing; choose one")
	}
	if err := s.site.CheckOrigin(r); err != nil {
		return nil, nil, err
	}
	in, err := upload.Open(r, s.site.MaxBody)
	if err != nil {
		return nil, nil, err
	}
	first, err := in.NextPart()
	if err != nil {
		return nil, nil, failure.Unreadable(err)
	}
	sent, err := io.ReadAll(io.LimitReader(first, upload.MaxField))
	if err != nil {
		return nil, nil, failure.Unreadable(err)
	}
	if first.FormName() != web.FormField {
		return nil, nil, web.ErrStaleForm
	}
	if err := web.CheckFormToken(r, string(sent)); err != nil {
		return nil, nil, err
	}
	part, err := in.ReadFields(&upload.Fields{})
	if err != nil {
		return nil, nil, err
	}
	if part == nil || part.FileName() == "" {
		return nil, nil, failure.Invalid("file", "no file was chosen; choose one and send it again")
	}
	return part, in, nil
}
