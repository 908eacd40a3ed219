package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/souvenir-ai/souvenir"
)

const (

	// undoing is how long the deletion of a file may take whose upload was refused in the end.
	undoing = 10 * time.Second
)

// uploadFile stores a file from a form (RFC 7578) as it arrives: neither memory nor a temporary file ever holds it. Fields
// may come before the file or behind it. What comes behind is applied to the stored file; if it cannot be, or the form ends
// early, the file is deleted again.
func (s *Server) uploadFile(_ http.ResponseWriter, r *http.Request, c caller) (any, error) {
	in, err := openForm(r, s.options.MaxBody)
	if err != nil {
		return nil, err
	}
	var before fileFields
	part, err := in.readFields(&before)
	if err != nil {
		return nil, err
	}
	if part == nil {
		return nil, invalid("file", "file is missing; the form needs a part of that name with the file")
	}
	in.inFile = true
	f, err := c.store.AddFile(r.Context(), before.newFile(part), part)
	in.inFile = false
	if err != nil {
		return nil, err
	}
	if f, err = s.finishUpload(r.Context(), c, in, before, f); err != nil {
		s.undo(r.Context(), c, f.ID)
		return nil, err
	}
	exchangeOf(r.Context()).fileID = f.ID
	return ChangedFile{true, f, "file " + quoted(f.Filename) + " is stored"}, nil
}

// finishUpload reads what comes behind the file and applies it. With an error the file is as it was.
func (s *Server) finishUpload(ctx context.Context, c caller, in *form, before fileFields, f souvenir.File) (souvenir.File, error) {
	all := before
	second, err := in.readFields(&all)
	switch {
	case err != nil:
		return f, err
	case second != nil:
		return f, invalid("file", "file comes twice; send one file in a request")
	}
	change, some := all.since(before)
	if !some {
		return f, nil
	}
	changed, err := c.store.UpdateFile(ctx, f.ID, change)
	if err != nil {
		return f, err
	}
	return changed, nil
}

// undo deletes a file whose upload failed after all, even when the caller is gone.
func (s *Server) undo(ctx context.Context, c caller, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoing)
	defer cancel()
	if err := c.store.DeleteFile(ctx, id); err != nil && !errors.Is(err, souvenir.ErrNotFound) {
		s.log.ErrorContext(ctx, "a file whose upload failed could not be deleted", "request_id", exchangeOf(ctx).id, "file", id, "error", err)
	}
}
