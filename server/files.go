package server

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/params"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/upload"
)

// FileList is the answer of GET /api/files: a page.
type FileList struct {
	Files []souvenir.File `json:"files"`
	Page
}

// Page is the position of an answer's entries in the whole list.
type Page struct {
	Count   int  `json:"count"` // on this page
	Total   int  `json:"total"` // on all pages
	Offset  int  `json:"offset"`
	Limit   int  `json:"limit"`
	HasMore bool `json:"has_more"`
}

// ChangedFile is the answer to an upload and to a change of a file's metadata.
type ChangedFile struct {
	Success bool          `json:"success"` // true
	File    souvenir.File `json:"file"`
	Message string        `json:"message"`
}

func (s *Server) listFiles(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	wanted, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, failure.Invalid("query", "the query cannot be read: "+err.Error())
	}
	q := souvenir.FileQuery{FileList: souvenir.FileList{
		MemoryID: wanted.Get("memory_id"), Category: wanted.Get("category"), Tags: upload.Tags(wanted["tags"]),
		ProjectID: wanted.Get("project_id"), ProjectName: wanted.Get("project_name"),
	}}
	if q.Limit, err = params.Number(wanted, "limit", 1, souvenir.MaxFileLimit); err != nil {
		return nil, err
	}
	if q.Offset, err = params.Number(wanted, "offset", 0, params.MaxOffset); err != nil {
		return nil, err
	}
	page, err := c.Store.FilePage(r.Context(), q)
	if err != nil {
		return nil, err
	}
	return FileList{page.Files, Page{len(page.Files), page.Total, page.Offset, page.Limit, page.HasMore()}}, nil
}

// fileChange is the body of PUT /api/files/:id/metadata.
type fileChange struct {
	Filename    *string  `json:"filename,omitempty"`
	Description *string  `json:"description,omitempty"`
	Category    *string  `json:"category,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	MemoryID    *string  `json:"memory_id,omitempty"`
}

func (s *Server) updateFile(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	var given fileChange
	if err := s.readJSON(w, r, &given); err != nil {
		return nil, err
	}
	f, err := c.Store.UpdateFile(r.Context(), r.PathValue("id"), souvenir.FileUpdate{
		Filename: given.Filename, Description: given.Description, Category: given.Category, Tags: given.Tags,
		MemoryID: given.MemoryID})
	if err != nil {
		return nil, err
	}
	return ChangedFile{true, f, "the details of the file are changed"}, nil
}

func (s *Server) deleteFile(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	if err := c.Store.DeleteFile(r.Context(), r.PathValue("id"), nil); err != nil {
		return nil, err
	}
	return Done{true, "the file is deleted"}, nil
}

// downloadFile answers with the content of a file, or with ranges of it (RFC 9110, sections 13 and 14). The content
// of a file never changes, so its hash is a strong validator.
func (s *Server) downloadFile(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	content, err := c.Store.OpenFile(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	defer content.Close()
	f := content.File()
	r.Header = withRange(r)
	if f.Size > 0 && wantsAllBytes(r) { // an error found now still gets a status; after the first byte, none can be sent
		if _, err := content.ReadAt(make([]byte, 1), 0); err != nil {
			return nil, err
		}
	}
	h := w.Header()
	h.Set("Content-Type", f.MIMEType)
	h.Set("Content-Disposition", disposition(f))
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox")
	h.Set("Cache-Control", "private, no-cache") // cached by the client only, and revalidated before each use
	h.Set("ETag", `"`+f.SHA256+`"`)
	watched := &watchedContent{content: content}
	http.ServeContent(&contentWriter{ResponseWriter: w, server: s, request: r, content: content}, r, "", f.CreatedAt,
		watched)
	return nil, watched.failed
}

// encodingHead is how many bytes of a text are examined for its encoding.
const encodingHead = 64 << 10

// contentType returns the type of a file. A text whose type names no encoding gets UTF-8 if the head of its content is
// in that, and not ASCII alone: otherwise browsers, and many clients, would read it in a Western one. HTML may name its
// own.
func contentType(content *souvenir.FileReader) string {
	f := content.File()
	kind, parameters, err := mime.ParseMediaType(f.MIMEType)
	_, named := parameters["charset"]
	if err != nil || !strings.HasPrefix(kind, "text/") || named {
		return f.MIMEType
	}
	head := make([]byte, min(f.Size, encodingHead))
	if _, err := content.ReadAt(head, 0); err != nil { // who reads these bytes gets the error
		return f.MIMEType
	}
	if kind == "text/html" && bytes.Contains(bytes.ToLower(head), []byte("charset")) {
		return f.MIMEType
	}
	if int64(len(head)) < f.Size { // the last character may continue behind the head
		last := max(0, len(head)-utf8.UTFMax)
		for last < len(head) && utf8.FullRune(head[last:]) {
			_, size := utf8.DecodeRune(head[last:])
			last += size
		}
		head = head[:last]
	}
	if utf8.Valid(head) && bytes.ContainsFunc(head, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return f.MIMEType + "; charset=utf-8"
	}
	return f.MIMEType
}

// withRange returns the headers of a request with a range in the form that [http.ServeContent] reads, or without one
// that must be ignored: in another unit than bytes, or of another method than GET (RFC 9110, section 14.2).
func withRange(r *http.Request) http.Header {
	h := r.Header.Clone()
	unit, ranges, given := strings.Cut(h.Get("Range"), "=")
	if !given || !strings.EqualFold(unit, "bytes") || r.Method != http.MethodGet {
		h.Del("Range")
	} else {
		h.Set("Range", "bytes="+ranges)
	}
	return h
}

// wantsAllBytes reports whether a request is for all bytes, even if the client has some.
func wantsAllBytes(r *http.Request) bool {
	return r.Method == http.MethodGet && r.Header.Get("Range") == "" && r.Header.Get("If-None-Match") == "" &&
		r.Header.Get("If-Modified-Since") == ""
}

// disposition decides whether browsers may show a file or must save it. Types that can carry a script are always
// saved, even where other measures keep it from running; SVG is one of them.
func disposition(f souvenir.File) string {
	how := "attachment"
	if kind, _, err := mime.ParseMediaType(f.MIMEType); err == nil {
		major, _, _ := strings.Cut(kind, "/")
		switch {
		case kind == "image/svg+xml":
		case major == "image", major == "audio", major == "video", kind == "text/plain", kind == "application/pdf":
			how = "inline"
		}
	}
	if named := mime.FormatMediaType(how, map[string]string{"filename": f.Filename}); named != "" {
		return named
	}
	return how
}

// watchedContent notes why a file could not be read: [http.ServeContent] does not report it.
type watchedContent struct {
	content *souvenir.FileReader
	failed  error
}

// Read reads the next bytes.
func (c *watchedContent) Read(p []byte) (int, error) {
	n, err := c.content.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // the end is io.EOF itself
		c.failed = err
	}
	return n, err
}

// Seek moves to another offset.
func (c *watchedContent) Seek(offset int64, whence int) (int64, error) {
	return c.content.Seek(offset, whence)
}

// contentWriter gives the errors of [http.ServeContent] the form of all other errors, and content its type.
type contentWriter struct {
	http.ResponseWriter
	server  *Server
	request *http.Request
	content *souvenir.FileReader
	refused bool // an error has been written, and its text is dropped
}

// WriteHeader sends the header, or an error.
func (w *contentWriter) WriteHeader(status int) {
	message := failure.Internal
	if status == http.StatusPartialContent && w.Header().Get("Content-Length") == "0" {
		// net/http answers a request for the last 0 bytes as a valid range. An empty range cannot be satisfied, and no
		// Content-Range can express it (RFC 9110, section 14.1.2).
		w.Header().Set("Content-Range", "bytes */"+w.bytes())
		status = http.StatusRequestedRangeNotSatisfiable
	}
	switch status {
	case http.StatusRequestedRangeNotSatisfiable:
		message = "range " + failure.Quote(w.request.Header.Get("Range")) + " is not in this file, which has " +
			w.bytes() + " bytes"
	case http.StatusPreconditionFailed:
		message = "the file has changed; GET it for its current ETag"
	default:
		if status < http.StatusBadRequest {
			if h := w.Header(); status != http.StatusNotModified && h.Get("Content-Type") == w.content.File().MIMEType {
				h.Set("Content-Type", contentType(w.content)) // not for several ranges, which have another type
			}
			w.ResponseWriter.WriteHeader(status)
			return
		}
	}
	w.refused = true
	for _, name := range []string{"Content-Disposition", "Last-Modified"} {
		w.Header().Del(name)
	}
	w.Header().Set("Cache-Control", "no-store")
	w.server.fail(w.ResponseWriter, w.request, &failure.Error{Status: status, Message: message})
}

func (w *contentWriter) bytes() string { return strconv.FormatInt(w.content.File().Size, 10) }

// Write sends a part of the body.
func (w *contentWriter) Write(p []byte) (int, error) {
	if w.refused {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}
