package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// connection is one kept-alive connection. Requests are prepared in advance, so that the client leaves the processors
// to the server.
type connection struct {
	net.Conn
	in *bufio.Reader
}

func dial(address string) (*connection, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &connection{c, bufio.NewReaderSize(c, 64<<10)}, nil
}

func (c *connection) close() { c.Close() } //nolint:errcheck // there is nothing left to send

// do sends a request and reads the answer, which must be a success.
func (c *connection) do(request []byte) (size int64, err error) {
	if _, err := c.Write(request); err != nil {
		return 0, err
	}
	r, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(r.Body)
		return 0, fmt.Errorf("status %d: %s", r.StatusCode, said)
	}
	return io.Copy(io.Discard, r.Body)
}

func listing(token string) []byte {
	return fmt.Appendf(nil, "GET /api/files HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n\r\n", token)
}

// protocol is a way to call the tool memory. It returns the request for a token and arguments.
type protocol func(token string, arguments map[string]any) []byte

func (p protocol) search(token, text string) []byte {
	return p(token, map[string]any{"action": "search", "query": text})
}

func (p protocol) store(token, text string) []byte {
	return p(token, map[string]any{"action": "store", "content": text})
}

// overHTTP calls the tool with POST /tools/call.
func overHTTP(token string, arguments map[string]any) []byte {
	return post(token, "/tools/call", "", map[string]any{"name": "memory", "arguments": arguments})
}

// overMCP calls it over the Model Context Protocol, in the revision that most clients use.
func overMCP(token string, arguments map[string]any) []byte {
	return post(token, "/mcp", "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\n",
		map[string]any{
			"jsonrpc": "2.0", "id": 1, "method": "tools/call",
			"params": map[string]any{"name": "memory", "arguments": arguments}})
}

func post(token, path, headers string, message map[string]any) []byte {
	body, err := json.Marshal(message)
	if err != nil {
		panic(err) // strings can always be encoded
	}
	return fmt.Appendf(nil,
		"POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n%sContent-Type: "+
			"application/json\r\nContent-Length: %d\r\n\r\n%s",
		path, token, headers, len(body), body)
}

// rate sends requests over several connections for some time, and returns the duration of each.
func rate(address string, requests [][]byte, connections int, during time.Duration) ([]time.Duration, error) {
	var next atomic.Int64
	took := make([][]time.Duration, connections)
	failed := make([]error, connections)
	var group sync.WaitGroup
	end := time.Now().Add(during)
	for i := range connections {
		group.Go(func() {
			c, err := dial(address)
			if err != nil {
				failed[i] = err
				return
			}
			defer c.close()
			for failed[i] == nil && time.Now().Before(end) {
				began := time.Now()
				_, failed[i] = c.do(requests[next.Add(1)%int64(len(requests))])
				took[i] = append(took[i], time.Since(began))
			}
		})
	}
	group.Wait()
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	var all []time.Duration
	for _, some := range took {
		all = append(all, some...)
	}
	return all, nil
}

// upload sends a large file, generated on the way, and returns its id.
func upload(address, token string, size int64) (id string, err error) {
	out, in := io.Pipe()
	form := multipart.NewWriter(in)
	go func() {
		part, err := form.CreateFormFile("file", "large.bin")
		if err == nil {
			_, err = io.CopyN(part, endless{}, size)
		}
		in.CloseWithError(errors.Join(err, form.Close()))
	}()
	r, err := http.NewRequest(http.MethodPost, "http://"+address+"/api/files/upload", out)
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", form.FormDataContentType())
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	var stored struct {
		File struct {
			ID   string `json:"id"`
			Size int64  `json:"size"`
		} `json:"file"`
		Error string `json:"error"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&stored); err != nil {
		return "", err
	}
	if stored.File.Size != size {
		return "", fmt.Errorf("%d of %d bytes were stored: %s", stored.File.Size, size, stored.Error)
	}
	return stored.File.ID, nil
}

// download reads a file to its end.
func download(address, token, id string, size int64) error {
	c, err := dial(address)
	if err != nil {
		return err
	}
	defer c.close()
	var request bytes.Buffer
	fmt.Fprintf(&request, "GET /api/files/%s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n\r\n", id, token)
	read, err := c.do(request.Bytes())
	if err == nil && read != size {
		err = fmt.Errorf("%d of %d bytes came", read, size)
	}
	return err
}

// endless is an endless reader of changing bytes.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(i * 7 >> 3)
	}
	return len(p), nil
}
