// Serverfiles measures what a large file costs over HTTP: it uploads one to a server, downloads it again, and prints the
// time and the most memory that the process had (VmHWM, Linux only), in which server and client both are.
//
//	go run ./serverfiles [-mib 1024] [-dir DIR]
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
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
	"time"

	"github.com/souvenir-ai/souvenir"
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
	token, err := store.AddToken(ctx, souvenir.NewToken{Name: "bench"})
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
	fmt.Printf("%-11s %s\n", "opened", memory())
	var id, sum string
	if err := step("uploaded", size, func() (err error) { id, sum, err = c.upload(ctx, size); return err }); err != nil {
		return err
	}
	return step("downloaded", size, func() error { return c.download(ctx, id, sum) })
}

type client struct{ files, token string }

// upload sends a file as it is made, and returns its id and its SHA-256.
func (c client) upload(ctx context.Context, size int64) (id, sum string, err error) {
	read, write := io.Pipe()
	form, hash := multipart.NewWriter(write), sha256.New()
	go func() {
		part, err := form.CreateFormFile("file", "large.bin")
		if err == nil {
			_, err = io.Copy(io.MultiWriter(part, hash), io.LimitReader(&numbers{}, size))
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

func step(what string, size int64, work func() error) error {
	began := time.Now()
	if err := work(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	took := time.Since(began)
	fmt.Printf("%-11s %s  %.0f MiB/s (%v)\n", what, memory(), float64(size)/(1<<20)/took.Seconds(), took.Round(time.Millisecond))
	return nil
}

// numbers is content that does not repeat: 64-bit numbers, one after the other, times a large prime.
type numbers struct{ next uint64 }

func (n *numbers) Read(p []byte) (int, error) {
	whole := len(p) &^ 7
	for i := 0; i < whole; i += 8 {
		n.next++
		binary.LittleEndian.PutUint64(p[i:], n.next*0x9e3779b97f4a7c15)
	}
	clear(p[whole:])
	return len(p), nil
}

// memory is the most memory that the process has had.
func memory() string {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "memory unknown"
	}
	var kib int64
	for line := range bytes.Lines(status) {
		if _, err := fmt.Sscanf(string(line), "VmHWM: %d kB", &kib); err == nil {
			break
		}
	}
	return fmt.Sprintf("%6.1f MiB resident at most", float64(kib)/1024)
}
