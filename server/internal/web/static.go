package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// asset is a file of static.
type asset struct {
	kind       string // its content type
	version    string // a short hash of the content
	plain      []byte
	compressed []byte // with gzip; nil: not worthwhile
}

// assets are the files of static by name, read and compressed once.
var assets = sync.OnceValues(func() (map[string]asset, error) {
	const folder = "static"
	all := map[string]asset{}
	err := fs.WalkDir(embedded, folder, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := embedded.ReadFile(file)
		if err != nil {
			return err
		}
		if path.Ext(file) == ".js" && path.Dir(file) == folder {
			content = withoutComments(content)
		}
		sum := sha256.Sum256(content)
		a := asset{kind: contentType(file), version: base64.RawURLEncoding.EncodeToString(sum[:6]), plain: content}
		var compressed bytes.Buffer
		writer, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
		if err != nil {
			return err
		}
		if _, err := writer.Write(content); err != nil {
			return err
		}
		if err := writer.Close(); err != nil {
			return err
		}
		if compressed.Len() < len(content)*9/10 {
			a.compressed = compressed.Bytes()
		}
		all[strings.TrimPrefix(file, folder+"/")] = a
		return nil
	})
	return all, err
})

// withoutComments returns a script of this project without lines of comments, empty ones and indentation: a tenth is
// saved. Its texts have no line breaks.
func withoutComments(script []byte) []byte {
	lean := make([]byte, 0, len(script))
	for line := range bytes.Lines(script) {
		line = bytes.TrimLeft(line, " \t\n")
		if !bytes.HasPrefix(line, []byte("//")) {
			lean = append(lean, line...)
		}
	}
	return lean
}

// contentType returns the type of a file of static, independent of the machine's own table.
func contentType(file string) string {
	switch path.Ext(file) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".txt":
		return "text/plain; charset=utf-8"
	}
	return mime.TypeByExtension(path.Ext(file))
}

// static serves a file of static. Its address contains its version (?v=), so browsers may cache it. Scripts import
// others without one, which browsers request again.
func (s *Site) static(w http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
	all, err := assets()
	if err != nil {
		return nil, err
	}
	a, ok := all[r.PathValue("file")]
	if !ok {
		return nil, &failure.Error{Status: http.StatusNotFound, Message: "there is no file " +
			failure.Quote(r.PathValue("file"))}
	}
	h := w.Header()
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	if r.URL.Query().Get("v") == "" {
		h.Set("Cache-Control", "no-cache")
	}
	h.Set("Content-Type", a.kind)
	if strings.HasPrefix(a.kind, "text/") { // which is no page, and loads nothing
		h.Del("Content-Security-Policy")
		h.Del("Referrer-Policy")
	}
	h.Set("Vary", "Accept-Encoding")
	content := a.plain
	if a.compressed != nil && AcceptsGzip(r.Header.Get("Accept-Encoding")) {
		h.Set("Content-Encoding", "gzip")
		content = a.compressed
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	return nil, nil
}

// Licences returns the licences of third-party scripts.
func Licences() (string, error) {
	all, err := assets()
	return string(all["vendor/LICENSES.txt"].plain), err
}

// Prepare parses the pages and compresses the files of static, so that the first request does not wait for it. It may
// be called at any time.
func Prepare() {
	_, _ = templates() // showing a page returns the error
	_, _ = assets()
}
