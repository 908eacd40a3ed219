package files

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/upload"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// maxFilesOfForm is the maximum number of files in a form.
const maxFilesOfForm = 100

// uploadOnPage stores the files of the page's form as they arrive. It serves browsers without JavaScript; others
// send each file to /api/files/upload. Files stored before an error stay, and the page says so.
func (s *Service) uploadOnPage(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "multipart/form-data" {
		if _, err := s.site.ReadForm(w, r); err != nil {
			return nil, err
		}
		return nil, failure.Invalid("file", "the form has no file; choose one")
	}
	if err := s.site.CheckOrigin(r); err != nil {
		return nil, err
	}
	in, err := upload.Open(r, s.site.MaxBody)
	if err != nil {
		return nil, err
	}
	if err := checkFormField(r, in); err != nil {
		return nil, err
	}
	stored, err := s.storeFiles(r, c, in)
	if err == nil && len(stored) == 1 {
		request.Of(r.Context()).FileID = stored[0].ID
		return s.site.Done("/files/"+stored[0].ID, "file"), nil
	}
	if err == nil && len(stored) > 1 {
		return s.site.Done("/files", "files"), nil
	}
	if err == nil {
		err = failure.Invalid("file", "no file was chosen; choose one or several")
	}
	return s.refuseUpload(r, c, stored, err)
}

// checkFormField checks the hidden field at the start of a form: nothing is stored before that.
func checkFormField(r *http.Request, in *upload.Form) error {
	part, err := in.NextPart()
	if err != nil {
		return failure.Unreadable(err)
	}
	value, err := io.ReadAll(io.LimitReader(part, 1<<10))
	if err != nil {
		return failure.Unreadable(err)
	}
	if part.FormName() != web.FormField {
		return web.ErrStaleForm
	}
	return web.CheckFormToken(r, string(value))
}

// storeFiles stores the files of a form one by one, each with the fields before it.
func (s *Service) storeFiles(r *http.Request, c request.Caller, in *upload.Form) (stored []souvenir.File, err error) {
	var fields upload.Fields
	for {
		part, err := in.ReadFields(&fields)
		if err != nil || part == nil {
			return stored, err
		}
		if len(stored) == maxFilesOfForm {
			return stored, failure.Invalid("file", "the form has more than 100 files; upload at most 100 at once")
		}
		f, err := s.storeFile(r, c, in, fields, part)
		if errors.Is(err, errNoFile) {
			continue
		}
		if err != nil {
			return stored, err
		}
		stored = append(stored, f)
	}
}

// errNoFile means that no file was chosen: browsers then send a file without name and content.
var errNoFile = errors.New("no file was chosen")

func (s *Service) storeFile(r *http.Request, c request.Caller, in *upload.Form, fields upload.Fields,
	part *multipart.Part) (souvenir.File, error) {
	if part.FileName() == "" {
		n, err := io.Copy(io.Discard, io.LimitReader(part, 1))
		if err != nil {
			return souvenir.File{}, failure.Unreadable(err)
		}
		if n == 0 {
			return souvenir.File{}, errNoFile
		}
		return souvenir.File{}, failure.Invalid("file", "the form has a file without a name; choose one again")
	}
	in.InFile = true
	defer func() { in.InFile = false }()
	return c.Store.AddFile(r.Context(), fields.NewFile(part), part)
}

// refuseUpload shows the page of files, with the error.
func (s *Service) refuseUpload(r *http.Request, c request.Caller, stored []souvenir.File, wrong error) (any, error) {
	status, message := failure.Describe(wrong)
	if status >= http.StatusInternalServerError {
		return nil, wrong
	}
	p, data, err := s.files(r, c)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range stored {
		names = append(names, f.Filename)
	}
	data.Refused = web.Sentence(message)
	if len(names) > 0 {
		data.Refused += " Stored before that: " + strings.Join(names, ", ") + "."
	}
	p.Status = status
	return p, nil
}
