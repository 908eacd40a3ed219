package server_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/souvenir-ai/souvenir/server"
)

// Files come packed to those who take that, and as they are to others; both are the same file.
func TestFilesOfPagesArePacked(t *testing.T) {
	w := newWorld(t, server.Options{})
	want, err := os.ReadFile("internal/web/static/vendor/htmx.min.js")
	if err != nil {
		t.Fatal(err)
	}
	for accepted, packed := range map[string]bool{"gzip, deflate, br": true, "br, GZIP;q=0.5": true, "gzip;q=0": false,
		"gzip; q=0.000": false, "br": false, "": false, "identity": false} {
		r := w.request(guest, http.MethodGet, "/static/vendor/htmx.min.js", nil)
		r.Header.Set("Accept-Encoding", accepted)
		got := w.browser().send(r).expect(http.StatusOK)
		if (got.header.Get("Content-Encoding") == "gzip") != packed || got.header.Get("Vary") != "Accept-Encoding" ||
			got.header.Get("Content-Type") != "text/javascript; charset=utf-8" {
			t.Errorf("%q: %v", accepted, got.header)
		}
		content := []byte(got.body)
		if packed {
			reader, err := gzip.NewReader(bytes.NewReader(content))
			if err != nil {
				t.Fatal(err)
			}
			if content, err = io.ReadAll(reader); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(content, want) {
			t.Errorf("%q: %d bytes instead of %d, got %v, want %v", accepted, len(content), len(want), content, want)
		}
	}
	r := w.request(guest, http.MethodGet, "/static/icon.svg", nil)
	r.Header.Set("Accept-Encoding", "identity")
	r.Header.Set("Range", "bytes=0-3")
	if got := w.browser().send(r); got.status != http.StatusPartialContent || got.body != "<svg" {
		t.Errorf("a range: %d %q", got.status, got.body)
	}
	for _, path := range []string{"/static/", "/static/vendor", "/static/nothing.js",
		"/static/%2e%2e/templates/login.html"} {
		if got := w.browser().get(path); got.status != http.StatusNotFound {
			t.Errorf("%s: %d, want %v", path, got.status, http.StatusNotFound)
		}
	}
}
