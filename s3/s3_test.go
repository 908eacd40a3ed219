package s3_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/files/objects/objectstest"
	"github.com/souvenir-ai/souvenir/s3"
)

// variable names the environment variable with the address of a bucket to test with,
// http://ACCESS-KEY:SECRET-KEY@HOST:PORT/BUCKET. e2e/s3.sh starts a server and sets it.
const variable = "SOUVENIR_TEST_S3"

// bucket returns a new place in the bucket of the variable. Without the variable it skips the test.
func bucket(t *testing.T) s3.Config {
	t.Helper()
	address := os.Getenv(variable)
	if address == "" {
		t.Skipf("%s is not set: no server to test with; e2e/s3.sh starts one", variable)
	}
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		t.Fatalf("%s: want http://ACCESS-KEY:SECRET-KEY@HOST:PORT/BUCKET", variable)
	}
	secret, _ := u.User.Password()
	return s3.Config{Endpoint: u.Scheme + "://" + u.Host, Bucket: strings.Trim(u.Path, "/"),
		Prefix: fmt.Sprintf("tests/%d/", time.Now().UnixNano()), AccessKey: u.User.Username(), SecretKey: secret}
}

func open(t *testing.T, c s3.Config) *s3.Storage {
	t.Helper()
	s, err := s3.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestABucketKeepsWhatStorageMust(t *testing.T) {
	s := open(t, bucket(t))
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	objectstest.Run(t, s)
}

func TestWrongKeysAndBucketsAreErrorsWithoutTheSecret(t *testing.T) {
	good := bucket(t)
	for name, change := range map[string]func(*s3.Config){
		"another secret":  func(c *s3.Config) { c.SecretKey = "not-the-secret-key" },
		"another user":    func(c *s3.Config) { c.AccessKey = "unknown" },
		"no such bucket":  func(c *s3.Config) { c.Bucket = "there-is-none" },
		"no service":      func(c *s3.Config) { c.Endpoint = "http://127.0.0.1:1" },
		"not one of them": func(c *s3.Config) { c.Endpoint = "http://127.0.0.1:1"; c.Region = "mars" },
	} {
		c := good
		change(&c)
		s := open(t, c)
		err := s.Check(t.Context())
		if err == nil || errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), c.SecretKey) {
			t.Errorf("%s: got %v, want an error without the secret key", name, err)
		}
		if err := s.Delete(t.Context(), []string{"one", "two"}); err == nil {
			t.Errorf("%s: Delete got no error, want one", name)
		}
	}
}

// A whole store with its files in a bucket.
func TestAStoreKeepsFilesInABucket(t *testing.T) {
	c := bucket(t)
	storage := open(t, c)
	path := filepath.Join(t.TempDir(), "souvenir.db")
	store, err := souvenir.Open(t.Context(), path, &souvenir.Options{Objects: storage})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	content := bytes.Repeat([]byte("The courier comes on Monday.\r\n"), 300_000)
	f, err := store.AddFile(t.Context(), souvenir.NewFile{Filename: "courier.txt"}, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	read := func() ([]byte, error) {
		r, err := store.OpenFile(t.Context(), f.ID)
		if err != nil {
			return nil, err
		}
		return io.ReadAll(r)
	}
	if got, err := read(); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the file: got %d bytes and %v, want the %d that were stored", len(got), err, len(content))
	}
	if info, err := os.Stat(path); err != nil || info.Size() > int64(len(content)) {
		t.Errorf("the database: got %d bytes and %v, want fewer than the file has", info.Size(), err)
	}
	report, err := store.Upkeep().Check(t.Context(), nil)
	if err != nil || !report.OK || report.Checked["file_object"] != 35 {
		t.Errorf("check: got %+v, %v, want 35 objects as they were stored", report, err)
	}
	for _, to := range []souvenir.FilePlace{souvenir.InDatabase, souvenir.InObjects} {
		if moved, err := store.Upkeep().MoveFiles(t.Context(), to, nil); err != nil || moved.Chunks != 35 {
			t.Errorf("MoveFiles to %s: got %+v, %v, want 35 chunks", to, moved, err)
		}
		if got, err := read(); err != nil || !bytes.Equal(got, content) {
			t.Errorf("the file after a move to %s: got %d bytes and %v, want all", to, len(got), err)
		}
	}
	if err := store.DeleteFile(t.Context(), f.ID, &souvenir.DeletionOptions{Erase: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Upkeep().Purge(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if stats, err := store.Upkeep().Stats(t.Context()); err != nil || stats.Objects+stats.GoneObjects != 0 {
		t.Errorf("Stats after the erasure: got %+v, %v, want no objects", stats, err)
	}
}

func TestConfigurationsThatCannotWork(t *testing.T) {
	good := s3.Config{Endpoint: "https://s3.example.com", Bucket: "files", AccessKey: "key", SecretKey: "hush-hush"}
	if _, err := s3.New(good); err != nil {
		t.Errorf("a good one: got %v, want no error", err)
	}
	for want, change := range map[string]func(*s3.Config){
		"Endpoint is \"s3.example":        func(c *s3.Config) { c.Endpoint = "s3.example.com" },
		"Endpoint is \"ftp":               func(c *s3.Config) { c.Endpoint = "ftp://s3.example.com" },
		"Endpoint is \"...@s3":            func(c *s3.Config) { c.Endpoint = "https://key:hush-hush@s3.example.com" },
		"the service alone":               func(c *s3.Config) { c.Endpoint = "https://s3.example.com/files" },
		"Bucket is empty":                 func(c *s3.Config) { c.Bucket = "" },
		"AccessKey or SecretKey is empty": func(c *s3.Config) { c.SecretKey = "" },
		"Prefix is \"/a\"":                func(c *s3.Config) { c.Prefix = "/a" },
		"Prefix is \"a//b\"":              func(c *s3.Config) { c.Prefix = "a//b" },
		"Prefix is \"é\"":                 func(c *s3.Config) { c.Prefix = "é" },
	} {
		c := good
		change(&c)
		_, err := s3.New(c)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("got %v, want %q without the secret key", err, want)
		}
		if text := fmt.Sprintf("%v %+v %#v %s", c, c, c, c); strings.Contains(text, "SecretKey:\"hush") {
			t.Errorf("the configuration is printed as %s, want it without the secret key", text)
		}
	}
}

func TestObjectsAreSentWholeWithTheirHash(t *testing.T) {
	data := bytes.Repeat([]byte("chunk"), 50_000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		sum := fmt.Sprintf("%x", sha256.Sum256(data))
		if err != nil || !bytes.Equal(body, data) || r.Header.Get("X-Amz-Content-Sha256") != sum {
			t.Errorf("the service got %d bytes with the hash %s, want %d with %s", len(body),
				r.Header.Get("X-Amz-Content-Sha256"), len(data), sum)
		}
		if r.URL.Path != "/files/of/me/key" || strings.Contains(fmt.Sprint(r.Header), "hush") {
			t.Errorf("the service got %s and %v, want the place of the object, and not the secret key", r.URL.Path, r.Header)
		}
	}))
	defer server.Close()
	s := open(t, s3.Config{Endpoint: server.URL, Bucket: "files", Prefix: "of/me/", AccessKey: "key",
		SecretKey: "hush-hush"})
	if err := s.Put(t.Context(), "key", data); err != nil {
		t.Error(err)
	}
}

// Answers of a broken service, or of another kind of service.
func TestOddAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		answer  func(w http.ResponseWriter)
		missing bool
	}{
		"no such key": {func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `<Error><Code>NoSuchKey</Code><Message>none</Message></Error>`)
		}, true},
		"no such bucket": {func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `<Error><Code>NoSuchBucket</Code><Message>none</Message></Error>`)
		}, false},
		"the secret": {func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `<Error><Code>AccessDenied</Code><Message>you signed with hush-hush</Message></Error>`)
		}, false},
		"too much": {func(w http.ResponseWriter) { _, _ = w.Write(make([]byte, 2<<20)) }, false},
		"too little": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write(make([]byte, 10))
		}, false},
		"not its protocol": {func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprint(w, `<html>hush-hush`)
		}, false},
		"elsewhere": {func(w http.ResponseWriter) {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(http.StatusFound)
		}, false},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { c.answer(w) }))
		s := open(t, s3.Config{Endpoint: server.URL, Bucket: "files", AccessKey: "key", SecretKey: "hush-hush"})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		data, err := s.Get(ctx, "key")
		if err == nil || errors.Is(err, fs.ErrNotExist) != c.missing || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: got %d bytes and %v, want an error, missing %t, without the secret key", name, len(data), err,
				c.missing)
		}
		cancel()
		server.Close()
	}
}
