// Serverfiles measures the cost of a large file over HTTP: it uploads one to a server and downloads it again. It prints
// the time and the peak memory (VmHWM, Linux only) of the process, which contains both server and client.
//
//	go run ./serverfiles [-mib 1024] [-dir DIR]
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/bench/internal/large"
	"github.com/souvenir-ai/souvenir/server"
)

func main() {
	log.SetFlags(0)
	size := flag.Int64("mib", 1024, "MiB of the file")
	dir := flag.String("dir", os.TempDir(), "where the store is made")
	flag.Parse()
	if err := run(*dir, *size<<20); err != nil {
		log.Fatal(err)
	}
}

func run(dir string, size int64) (err error) {
	dir, err = os.MkdirTemp(dir, "serverfiles")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	store, err := souvenir.Open(ctx, filepath.Join(dir, "files.db"), &souvenir.Options{MaxFile: -1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	token, err := store.Accounts().AddToken(ctx, souvenir.NewToken{Name: "bench"})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener, server.New(store, nil), nil) }()
	defer func() { stop(); err = errors.Join(err, <-ended) }()

	c := client{"http://" + listener.Addr().String() + "/api/files/", token.Value}
	fmt.Printf("%-11s %s\n", "opened", large.Memory())
	var id, sum string
	if err := large.Step("uploaded", size,
		func() (err error) { id, sum, err = c.upload(ctx, size); return err }); err != nil {
		return err
	}
	return large.Step("downloaded", size, func() error { return c.download(ctx, id, sum) })
}

type client struct{ files, token string }

// upload sends a generated file, and returns its id and SHA-256.
func (c client) upload(ctx context.Context, size int64) (id, sum string, err error) {
	read, write := io.Pipe()
	form, hash := multipart.NewWriter(write), sha256.New()
	go func() {
		part, err := form.CreateFormFile("file", "large.bin")
		if err == nil {
			_, err = io.Copy(io.MultiWriter(part, hash), large.Content(size))
		}
		if err == nil {
			err = form.Close()
		}
		write.CloseWithError(err) // nil: the end
	}()
	response, err := c.do(ctx, http.MethodPost, "upload", form.FormDataContentType(), read)
	if err != nil {
		return "", "", err
	}
	defer response.Body.Close()
	var stored struct {
		File struct{ ID, SHA256 string }
	}
	if err := json.NewDecoder(response.Body).Decode(&stored); err != nil {
		return "", "", err
	}
	if sum = hex.EncodeToString(hash.Sum(nil)); sum != stored.File.SHA256 {
		return "", "", fmt.Errorf("sent %s, stored is %s", sum, stored.File.SHA256)
	}
	return stored.File.ID, sum, nil
}

func (c client) download(ctx context.Context, id, sum string) error {
	response, err := c.do(ctx, http.MethodGet, id, "", nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, response.Body); err != nil {
		return err
	}
	if found := hex.EncodeToString(hash.Sum(nil)); found != sum {
		return fmt.Errorf("got %s, sent was %s", found, sum)
	}
	return nil
}

func (c client) do(ctx context.Context, method, path, kind string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.files+path, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	response, err := http.DefaultClient.Do(r)
	if err == nil && response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		response.Body.Close()
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	return response, err
}
