package main

import (
	"encoding/xml"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// shelves is a service with the subset of the Amazon S3 protocol that the program needs.
type shelves struct {
	mu      sync.Mutex
	objects map[string][]byte
	away    bool
}

func (s *shelves) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, there := s.objects[r.URL.Path]
	body, err := io.ReadAll(r.Body)
	switch {
	case err != nil: // the caller is gone: nothing is stored in part
		w.WriteHeader(http.StatusBadRequest)
	case s.away:
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `<Error><Code>AccessDenied</Code><Message>not you</Message></Error>`)
	case r.Method == http.MethodPut:
		s.objects[r.URL.Path] = body
	case r.Method == http.MethodGet && there:
		w.Header().Set("Last-Modified", "Thu, 26 Nov 2026 12:00:00 GMT")
		_, _ = w.Write(data)
	case r.Method == http.MethodGet:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `<Error><Code>NoSuchKey</Code></Error>`)
	case r.Method == http.MethodDelete:
		delete(s.objects, r.URL.Path)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPost:
		var many struct{ Object []struct{ Key string } }
		_ = xml.Unmarshal(body, &many) // an unknown body deletes nothing
		for _, o := range many.Object {
			delete(s.objects, r.URL.Path+o.Key)
		}
		_, _ = io.WriteString(w, `<DeleteResult></DeleteResult>`)
	}
}

func (s *shelves) keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.objects))
}

// count returns the number of objects with content of files.
func (s *shelves) count() int {
	return len(slices.DeleteFunc(s.keys(), func(key string) bool { return strings.Contains(key, "/owner-") }))
}

func (s *shelves) goAway(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

func TestFilesOfTheProgramAreInABucket(t *testing.T) {
	longtest.Only(t)
	s := &shelves{objects: map[string][]byte{}}
	service := httptest.NewServer(s)
	defer service.Close()
	c, _ := full(t) // with a file in the database
	const secret = "hush-hush-hush"
	if err := os.WriteFile(filepath.Join(c.dir, "key"), []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	with := c
	with.env = append(with.env, "SOUVENIR_S3_ENDPOINT="+service.URL, "SOUVENIR_S3_BUCKET=files",
		"SOUVENIR_S3_ACCESS_KEY=key", "SOUVENIR_S3_SECRET_KEY_FILE="+filepath.Join(c.dir, "key"), "SOUVENIR_S3_PREFIX=of/me/")
	before := rowsOf(t, c, "souvenir.db")
	if got := with.ok(t, "files", "move", "--to", "objects"); !strings.Contains(got, "moved") || s.count() != 1 {
		t.Errorf("files move: got %q and %d objects, want it moved to one object", got, s.count())
	}
	for _, key := range s.keys() {
		if !strings.HasPrefix(key, "/files/of/me/") {
			t.Errorf("the object's name: got %s, want it in the bucket and with the prefix", key)
		}
	}
	if got := rowsOf(t, with, "souvenir.db"); got != before {
		t.Errorf("the export with objects:\n got %s\nwant %s", got, before)
	}
	if got := with.ok(t, "stats"); !strings.Contains(got, "1 objects, 3 B; 0 to be deleted") {
		t.Errorf("stats: got %s, want one object", got)
	}
	with.ok(t, "check")
	if got := c.run(t, "check"); got.code != exitError || !strings.Contains(got.stdout, "object storage") {
		t.Errorf("check without the bucket: got %+v, want status %d and what was not checked", got, exitError)
	}
	if got := c.run(t, "export", "out.jsonl"); got.code != exitError || !strings.Contains(got.stderr, "object storage") {
		t.Errorf("export without the bucket: got %+v, want status %d and the reason", got, exitError)
	}
	if got := with.ok(t, "files", "adopt"); !strings.Contains(got, "adopted ") {
		t.Errorf("files adopt: got %q, want it adopted", got)
	}
	copyFrom(t, with, "souvenir.db", "copy.db")
	if s.count() != 2 {
		t.Errorf("objects after the copy: got %d, want 2", s.count())
	}
	s.goAway(true)
	got := with.run(t, "files", "move", "--to", "database")
	if got.code != exitError || !strings.Contains(got.stderr, "try again") ||
		strings.Contains(got.stderr+got.stdout, secret) {
		t.Errorf("files move while the service refuses: got %+v, want status %d and a hint, without the secret", got,
			exitError)
	}
	s.goAway(false)
	moved := decode[map[string]int](t, with.ok(t, "files", "move", "--to", "database", "--json"))
	if want := map[string]int{"chunks": 1, "bytes": 3, "damaged": 0}; !maps.Equal(moved, want) {
		t.Errorf("files move as JSON: got %v, want %v", moved, want)
	}
	with.ok(t, "purge")
	if s.count() != 1 {
		t.Errorf("objects after the move back: got %d, want that of the copy", s.count())
	}
	c.ok(t, "check")
	store := openStore(t, filepath.Join(c.dir, "souvenir.db"))
	if stats, err := store.Upkeep().Stats(t.Context()); err != nil || stats.Objects+stats.GoneObjects != 0 {
		t.Errorf("Stats: got %+v, %v, want no objects", stats, err)
	}
}

func TestFlagsOfABucket(t *testing.T) {
	c := newStore(t)
	for want, args := range map[string][]string{
		"need --s3-bucket": {"--s3-endpoint", "http://127.0.0.1:1"},
		"--s3-endpoint is \"nowhere": {"--s3-bucket", "b", "--s3-endpoint", "nowhere", "--s3-access-key", "k",
			"--s3-secret-key", "hush"},
		"--s3-secret-key-file, are empty": {"--s3-bucket", "b", "--s3-endpoint", "http://127.0.0.1:1",
			"--s3-access-key", "k"},
		"--s3-prefix is \"/x\"": {"--s3-bucket", "b", "--s3-endpoint", "http://127.0.0.1:1", "--s3-access-key", "k",
			"--s3-secret-key", "hush", "--s3-prefix", "/x"},
		"--new-files is \"attic\"": {"--new-files", "attic"},
	} {
		got := c.run(t, append([]string{"check"}, args...)...)
		if got.code != exitUsage || !strings.Contains(got.stderr, want) || strings.Contains(got.stderr, "hush") {
			t.Errorf("%q: got %+v, want status %d and %q without the secret", args, got, exitUsage, want)
		}
	}
	for want, args := range map[string][]string{"--to is \"\"": nil, "files move needs the bucket": {"--to", "objects"}} {
		if got := c.run(t, append([]string{"files", "move"}, args...)...); got.code != exitUsage ||
			!strings.Contains(got.stderr, want) {
			t.Errorf("files move %q: got %+v, want status %d and %q", args, got, exitUsage, want)
		}
	}
}
