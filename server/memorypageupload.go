package server

import (
	"context"
	"crypto/hmac"
	"io"
	"mime"
	"mime/multipart"
	"net/http"

	"github.com/souvenir-ai/souvenir"
)

// addFileToMemory stores a file that a form of a memory's page has brought, and links it to that memory.
func (s *Server) addFileToMemory(w http.ResponseWriter, r *http.Request, c caller) (any, error) {
	id := r.PathValue("id")
	part, in, err := s.fileOfForm(w, r)
	if err != nil {
		return nil, err
	}
	in.inFile = true
	added, err := c.store.AddFile(r.Context(), souvenir.NewFile{Filename: part.FileName(), MIMEType: part.Header.Get("Content-Type"), MemoryID: id}, part)
	in.inFile = false
	if err != nil {
		return nil, err
	}
	return s.doneWithUndo(c, memoryPath(id), "“"+added.Filename+"” is stored, and linked to this memory.", func(ctx context.Context) error {
		return c.store.DeleteFile(ctx, added.ID)
	}), nil
}

// fileOfForm returns the file of a form that a page of this server has sent. Its hidden field comes before the file: nothing is stored of a
// form that is not this server's.
func (s *Server) fileOfForm(w http.ResponseWriter, r *http.Request) (*multipart.Part, *form, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "multipart/form-data" {
		if _, err := s.readForm(w, r); err != nil {
			return nil, nil, err
		}
		return nil, nil, invalid("file", "file is missing; choose one")
	}
	if err := s.crossSite.Check(r); err != nil {
		return nil, nil, &failure{http.StatusForbidden, "a page of another site has sent this form; open the page here and send it again"}
	}
	in, err := openForm(r, s.options.MaxBody)
	if err != nil {
		return nil, nil, err
	}
	first, err := in.NextPart()
	if err != nil {
		return nil, nil, unreadable(err)
	}
	sent, err := io.ReadAll(io.LimitReader(first, maxField))
	if err != nil {
		return nil, nil, unreadable(err)
	}
	own := browserSecret(r)
	if own == "" || first.FormName() != formField || !hmac.Equal([]byte(tokenOf(own)), sent) {
		return nil, nil, errStaleForm
	}
	part, err := in.readFields(&fileFields{})
	if err != nil {
		return nil, nil, err
	}
	if part == nil || part.FileName() == "" {
		return nil, nil, invalid("file", "no file was chosen; choose one and send it again")
	}
	return part, in, nil
}
