package server

import (
	"crypto/hmac"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// maxFilesOfForm is how many files a form may bring.
const maxFilesOfForm = 100

// uploadOnPage stores the files of the page's form as they arrive: for browsers without scripts, since those with send one file after the
// other to /api/files/upload. What was stored before something went wrong stays, and the page says so.
func (s *Server) uploadOnPage(w http.ResponseWriter, r *http.Request, c caller) (any, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "multipart/form-data" {
		if _, err := s.readForm(w, r); err != nil {
			return nil, err
		}
		return nil, invalid("file", "the form has no file; choose one")
	}
	if err := s.crossSite.Check(r); err != nil {
		return nil, &failure{http.StatusForbidden, "a page of another site has sent this form; open the page here and send it again"}
	}
	in, err := openForm(r, s.options.MaxBody)
	if err != nil {
		return nil, err
	}
	if err := checkFormField(r, in); err != nil {
		return nil, err
	}
	stored, err := s.storeFiles(r, c, in)
	if err == nil && len(stored) == 1 {
		exchangeOf(r.Context()).fileID = stored[0].ID
		return s.done("/files/"+stored[0].ID, "file"), nil
	}
	if err == nil && len(stored) > 1 {
		return s.done("/files", "files"), nil
	}
	if err == nil {
		err = invalid("file", "no file was chosen; choose one or several")
	}
	return s.refuseUpload(r, c, stored, err)
}

// checkFormField reads the hidden field, with which a form must begin: nothing of it is stored before that is right.
func checkFormField(r *http.Request, in *form) error {
	part, err := in.NextPart()
	if err != nil {
		return unreadable(err)
	}
	value, err := io.ReadAll(io.LimitReader(part, 1<<10))
	if err != nil {
		return unreadable(err)
	}
	own := browserSecret(r)
	if part.FormName() != formField || own == "" || !hmac.Equal([]byte(tokenOf(own)), value) {
		return errStaleForm
	}
	return nil
}

// storeFiles stores one file of a form after the other, with the fields that came before them.
func (s *Server) storeFiles(r *http.Request, c caller, in *form) (stored []souvenir.File, err error) {
	var fields fileFields
	for {
		part, err := in.readFields(&fields)
		if err != nil || part == nil {
			return stored, err
		}
		if len(stored) == maxFilesOfForm {
			return stored, invalid("file", "the form has more than 100 files; send them in several forms")
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

// errNoFile says that nothing was chosen: browsers send a file without a name and without bytes then.
var errNoFile = errors.New("no file was chosen")

func (s *Server) storeFile(r *http.Request, c caller, in *form, fields fileFields, part *multipart.Part) (souvenir.File, error) {
	if part.FileName() == "" {
		n, err := io.Copy(io.Discard, io.LimitReader(part, 1))
		if err != nil {
			return souvenir.File{}, unreadable(err)
		}
		if n == 0 {
			return souvenir.File{}, errNoFile
		}
		return souvenir.File{}, invalid("file", "the form has a file without a name; choose one again")
	}
	in.inFile = true
	defer func() { in.inFile = false }()
	return c.store.AddFile(r.Context(), fields.newFile(part), part)
}

// refuseUpload shows the page of the files, with what went wrong.
func (s *Server) refuseUpload(r *http.Request, c caller, stored []souvenir.File, wrong error) (any, error) {
	status, message := told(wrong)
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
	data.Refused = sentence(message)
	if len(names) > 0 {
		data.Refused += " Stored before that: " + strings.Join(names, ", ") + "."
	}
	p.status = status
	return p, nil
}
