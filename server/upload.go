package server

import (
	"context"
	"net/http"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/upload"
)

// uploadFile stores a file from a form (RFC 7578) as it arrives: neither memory nor a temporary file ever holds all
// of it. Fields may come before or after the file, which becomes visible with all of them; if the form ends early, or
// one of them is wrong, nothing is stored.
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
	f, err := c.Store.AddFile(r.Context(), before.NewFile(part), in.Content(part, before))
	if err != nil {
		return nil, err
	}
	request.Of(r.Context()).FileID = f.ID
	return ChangedFile{true, indexed(r.Context(), c, f), "file " + failure.Quote(f.Filename) + " is stored"}, nil
}

// uploadForm is the form of an upload as a whole. It is never held as one: its file is stored as it arrives.
type uploadForm struct {
	File string `json:"file"`
	upload.Fields
}

// readSoon is how long the answer to an upload waits until the file is indexed.
const readSoon = 2 * time.Second

// indexed returns a file with the text by which searches find it, if the file is indexed soon.
func indexed(ctx context.Context, c request.Caller, f souvenir.File) souvenir.File {
	ctx, cancel := context.WithTimeout(ctx, readSoon)
	defer cancel()
	if read, err := c.Store.WaitIndexed(ctx, f.ID); err == nil {
		return read
	}
	return f // it is indexed later, or has just been deleted
}
