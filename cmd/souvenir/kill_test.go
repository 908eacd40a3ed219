package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// What a server leaves behind that is killed at work.

const soon = 20 * time.Second // how long tests wait for what should happen at once

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(soon); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v: got something else, want this: %s", soon, what)
		}
	}
}

// kill ends a server like a power failure.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.wait(t)
}

// sound opens a store after a crash and checks that it is intact.
func sound(t *testing.T, path string, options *souvenir.Options) *souvenir.Store {
	t.Helper()
	store, err := souvenir.Open(t.Context(), path, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if report, err := store.Upkeep().Check(t.Context(), nil); err != nil || !report.OK {
		t.Errorf("after the crash: %+v, %v, want no error and OK", report, err)
	}
	return store
}

// storedBytes returns the size of the file and its log.
func storedBytes(path string) (n int64) {
	for _, name := range []string{path, path + "-wal"} {
		if info, err := os.Stat(name); err == nil {
			n += info.Size()
		}
	}
	return n
}

// After a crash during an upload, no part of the file is visible. Its pieces are deleted once nothing more can arrive,
// and the same file can be uploaded meanwhile.
func TestKilledDuringAnUpload(t *testing.T) {
	longtest.Only(t)
	c := newStore(t)
	path := filepath.Join(c.dir, "souvenir.db")
	token := strings.TrimSpace(c.ok(t, "token", "add", "--user", "anna", "--name", "test"))
	p := c.start(t, "serve", "--listen", "127.0.0.1:0")
	before := storedBytes(path)

	const boundary, sent = "cut", 24 << 20 // bytes: several transactions
	head := "--" + boundary + "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"film.bin\"\r\n\r\n"
	upload := func(url string, content io.Reader) (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/files/upload", content)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "multipart/form-data; boundary="+boundary)
		return http.DefaultClient.Do(r)
	}
	body, write := io.Pipe()
	failed := make(chan error, 1)
	go func() {
		answer, err := upload(p.url, body)
		if err == nil {
			answer.Body.Close()
			err = fmt.Errorf("it was answered %s", answer.Status)
		}
		body.CloseWithError(err)
		failed <- err
	}()
	content := bytes.Repeat([]byte("\x00\x01\x02\x03\x04\x05\x06\x07"), sent/8)
	if _, err := write.Write(append([]byte(head), content...)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "most of the file is stored", func() bool { return storedBytes(path) > before+sent/2 })
	p.kill(t)
	write.CloseWithError(io.ErrClosedPipe) // the client waits for it
	if err := <-failed; err == nil || strings.Contains(err.Error(), "answered") {
		t.Errorf(`the upload: %v, want an error and no "answered" in the error`, err)
	}

	store := sound(t, path, nil)
	if stats, err := store.Upkeep().Stats(t.Context()); err != nil || stats.Files != 0 || stats.FileBytes != 0 {
		t.Errorf("after the crash there are %+v, %v, want no error, files 0 and file bytes 0", stats, err)
	}
	if purged, err := store.Upkeep().Purge(t.Context(), nil); err != nil || purged.Files != 0 {
		t.Errorf("an upload that may go on in another process was deleted: %+v, %v; want files 0", purged, err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	p = c.start(t, "serve", "--listen", "127.0.0.1:0")
	if status, list := request(t, "GET", p.url+"/api/files", token, nil); status != http.StatusOK ||
		decode[server.FileList](t, list).Total != 0 {
		t.Errorf("got %d %s, want status %v and total 0", status, list, http.StatusOK)
	}
	answer, err := upload(p.url, io.MultiReader(strings.NewReader(head), bytes.NewReader(content),
		strings.NewReader("\r\n--"+boundary+"--\r\n")))
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("uploaded again: %+v, %v; want status %v", answer, err, http.StatusOK)
	}
	answer.Body.Close()
	p.stop(t)

	tomorrow := sound(t, path, &souvenir.Options{Now: func() time.Time { return time.Now().Add(25 * time.Hour) }})
	// The background worker may have been faster.
	if _, err := tomorrow.Upkeep().Purge(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	stats, err := tomorrow.Upkeep().Stats(t.Context())
	if err != nil || stats.Files != 1 || stats.FileBytes != sent || stats.FreeBytes < sent/2 {
		t.Errorf("a day later: %+v, %v; the pieces of the first upload should be free, want no error, files 1, file bytes "+
			"%v and free bytes at least %v", stats, err, sent, sent/2)
	}
	if report, err := tomorrow.Upkeep().Check(t.Context(), nil); err != nil || !report.OK {
		t.Errorf("a day later: %+v, %v, want no error and OK", report, err)
	}
}

// What was answered before a crash is completely there afterwards. What was not answered is completely there or not at
// all.
func TestKilledDuringStores(t *testing.T) {
	longtest.Only(t)
	c := newStore(t)
	path := filepath.Join(c.dir, "souvenir.db")
	token := strings.TrimSpace(c.ok(t, "token", "add", "--user", "anna", "--name", "test"))
	p := c.start(t, "serve", "--listen", "127.0.0.1:0")

	const writers, enough = 4, 60
	var mu sync.Mutex
	answered := map[string]string{} // content by id
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				content := fmt.Sprintf("Writer %d notes for the %dth time that the harbour is calm.", w, n)
				id, err := storeOverHTTP(ctx, p.url, token, content)
				if err != nil {
					return // the server is gone
				}
				mu.Lock()
				answered[id] = content
				mu.Unlock()
			}
		})
	}
	eventually(t, "there are answers", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(answered) >= enough
	})
	p.kill(t)
	cancel()
	writing.Wait()

	store := sound(t, path, nil)
	anna, err := store.Accounts().GetUser(t.Context(), "anna")
	if err != nil {
		t.Fatal(err)
	}
	view := store.As(souvenir.Access{User: anna.ID})
	for id, content := range answered {
		if m, err := view.GetMemory(t.Context(), id); err != nil || m.Content != content {
			t.Errorf("%+v, %v after the answer, want no error and content %v", m, err, content)
		}
	}
	stored := 0
	for m, err := range view.Memories(t.Context(), souvenir.MemoryList{}) {
		if err != nil {
			t.Fatal(err)
		}
		if stored++; m.Content == "" {
			t.Errorf("%s is empty, want a content that is not empty", m.ID)
		}
	}
	if most := len(answered) + writers + 1; stored > most { // plus the one from before
		t.Errorf("got %d memories, want at most the limit of %d", stored, most)
	}
}

// storeOverHTTP stores a memory and returns its id.
func storeOverHTTP(ctx context.Context, url, token, content string) (string, error) {
	body := compact(object{"name": "memory", "arguments": object{"action": "store", "content": content}})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/tools/call", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	_, rest, found := strings.Cut(string(read), `\"id\":\"`)
	if !found || answer.StatusCode != http.StatusOK {
		return "", errors.New(string(read))
	}
	id, _, _ := strings.Cut(rest, `\"`)
	return id, nil
}
