package servertest

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
)

// Part is a field of a multipart form, or a file, if it has a filename.
type Part struct{ Name, Filename, Kind, Value string }

// FormOf encodes a multipart form.
func FormOf(t *testing.T, parts []Part) (kind string, body []byte) {
	t.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	for _, p := range parts {
		h := textproto.MIMEHeader{}
		h.Set("Content-Disposition", `form-data; name="`+p.Name+`"`)
		if p.Filename != "" {
			h.Set("Content-Disposition", `form-data; name="`+p.Name+`"; filename="`+p.Filename+`"`)
		}
		if p.Kind != "" {
			h.Set("Content-Type", p.Kind)
		}
		w, err := form.CreatePart(h)
		if err == nil {
			_, err = io.WriteString(w, p.Value)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	return form.FormDataContentType(), b.Bytes()
}

// FilesOf counts the files that a caller can see.
func (w *World) FilesOf(caller string) int {
	w.T.Helper()
	var list struct {
		Count int
		Files []struct{ ID string }
	}
	w.Do(caller, "GET", "/api/files", "").Expect(http.StatusOK).Decode(&list)
	if len(list.Files) != list.Count {
		w.T.Errorf("count is %d, want %d, the number of files", list.Count, len(list.Files))
	}
	return list.Count
}

// FileOf stores a file for a caller.
func (w *World) FileOf(caller string, n souvenir.NewFile, content string) souvenir.File {
	w.T.Helper()
	f, err := w.Store.As(souvenir.Access{User: w.Users[caller]}).AddFile(w.T.Context(), n, strings.NewReader(content))
	if err != nil {
		w.T.Fatal(err)
	}
	return f
}
