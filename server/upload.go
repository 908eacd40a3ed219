package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/upload"
)

const (

	// undoing is the time limit for deleting a file whose upload was refused after it was stored.
	undoing = 10 * time.Second
)

// uploadFile stores a file from a form (RFC 7578) as it arrives: neither memory nor a temporary file ever holds all
// of it. Fields may come before or after the file. The later ones are applied to the stored file; if that fails, or
// the form ends early, the file is deleted again.
func (s *Server) uploadFile(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	in, err := upload.Open(r, s.options.MaxBody)
	if err != nil {
		return nil, err
	}
	var before upload.Fields
	part, err := in.ReadFields(&before)
	if err != nil {
		return nil, err
	}
	if part == nil {
		return nil, failure.Invalid("file", "file is missing; the form needs a part of that name with the file")
	}
	in.InFile = true
	f, err := c.Store.AddFile(r.Context(), before.NewFile(part), part)
	in.InFile = false
	if err != nil {
		return nil, err
	}
	if f, err = s.finishUpload(r.Context(), c, in, before, f); err != nil {
		s.undo(r.Context(), c, f.ID)
		return nil, err
	}
	request.Of(r.Context()).FileID = f.ID
	return ChangedFile{true, indexed(r.Context(), c, f), "file " + failure.Quote(f.Filename) + " is stored"}, nil
}

// readSoon is how long the answer to an upload waits for what searches find of the file.
const readSoon = 2 * time.Second

// indexed returns a file with what searches find of it, if that is known soon.
func indexed(ctx context.Context, c request.Caller, f souvenir.File) souvenir.File {
	ctx, cancel := context.WithTimeout(ctx, readSoon)
	defer cancel()
	if read, err := c.Store.WaitIndexed(ctx, f.ID); err == nil {
		return read
	}
	return f // it is read later, or has just been deleted
}

// finishUpload reads the fields after the file and applies them. On an error the file is unchanged.
func (s *Server) finishUpload(ctx context.Context, c request.Caller, in *upload.Form, before upload.Fields,
	f souvenir.File) (souvenir.File, error) {
	all := before
	second, err := in.ReadFields(&all)
	switch {
	case err != nil:
		return f, err
	case second != nil:
		return f, failure.Invalid("file", "file is given twice; send one file per request")
	}
	change, some := all.Since(before)
	if !some {
		return f, nil
	}
	changed, err := c.Store.UpdateFile(ctx, f.ID, change)
	if err != nil {
		return f, err
	}
	return changed, nil
}

// undo deletes a file whose upload failed after all, even when the caller is gone.
func (s *Server) undo(ctx context.Context, c request.Caller, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoing)
	defer cancel()
	if err := c.Store.DeleteFile(ctx, id); err != nil && !errors.Is(err, souvenir.ErrNotFound) {
		s.log.ErrorContext(ctx, "a file whose upload failed could not be deleted", "file",
			id, "error", err)
	}
}
