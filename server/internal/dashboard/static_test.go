package dashboard_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/souvenir-ai/souvenir/server"
)

// Files are compressed for clients that accept it. Both forms have the same content.
func TestStaticFilesAreCompressed(t *testing.T) {
	w := servertest.New(t, server.Options{})
	want, err := os.ReadFile("../web/static/vendor/htmx.min.js")
	if err != nil {
		t.Fatal(err)
	}
	for accepted, compressed := range map[string]bool{"gzip, deflate, br": true, "br, GZIP;q=0.5": true, "gzip;q=0": false,
		"gzip; q=0.000": false, "br": false, "": false, "identity": false} {
		r := w.Request(servertest.Guest, http.MethodGet, "/static/vendor/htmx.min.js", nil)
		r.Header.Set("Accept-Encoding", accepted)
		got := w.Browser().Send(r).Expect(http.StatusOK)
		if (got.Header.Get("Content-Encoding") == "gzip") != compressed || got.Header.Get("Vary") != "Accept-Encoding" ||
			got.Header.Get("Content-Type") != "text/javascript; charset=utf-8" {
			t.Errorf("%q: got %v, want the script, compressed only if accepted", accepted, got.Header)
		}
		content := []byte(got.Body)
		if compressed {
			reader, err := gzip.NewReader(bytes.NewReader(content))
			if err != nil {
				t.Fatal(err)
			}
			if content, err = io.ReadAll(reader); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(content, want) {
			t.Errorf("%q: got %d bytes, want the file's %d bytes", accepted, len(content), len(want))
		}
	}
	r := w.Request(servertest.Guest, http.MethodGet, "/static/icon.svg", nil)
	r.Header.Set("Accept-Encoding", "identity")
	r.Header.Set("Range", "bytes=0-3")
	if got := w.Browser().Send(r); got.Status != http.StatusPartialContent || got.Body != "<svg" {
		t.Errorf(`a range: %d %q, want status %v and body "<svg"`, got.Status, got.Body, http.StatusPartialContent)
	}
	for _, path := range []string{"/static/", "/static/vendor", "/static/nothing.js",
		"/static/%2e%2e/templates/login.html"} {
		if got := w.Browser().Get(path); got.Status != http.StatusNotFound {
			t.Errorf("%s: %d, want %v", path, got.Status, http.StatusNotFound)
		}
	}
}
