package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"time"
)

// verdict is the known result of a call.
type verdict int

const (
	answered verdict = iota // it succeeded
	unknown                 // it may have happened
	refused                 // it has not happened, since the database was away, or no memory was left
	failed                  // it may not have failed like this
)

// connection sends requests to one server.
type connection struct {
	http  *http.Client
	token string
	took  latencies
	// uploads are separate, since their answers wait up to two seconds until the file is indexed.
	uploads latencies
}

func newConnection(token string) *connection {
	return &connection{token: token, http: &http.Client{Timeout: 2 * time.Minute,
		Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
}

// send sends a request. The answer's body is decoded into result, unless that is nil.
func (c *connection) send(ctx context.Context, method, url, kind string, body []byte, result any) (int, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	began := time.Now()
	answer, err := c.http.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, nil, err
	}
	if answer.StatusCode == http.StatusOK {
		if strings.HasSuffix(url, "/upload") {
			c.uploads.note(time.Since(began))
		} else {
			c.took.note(time.Since(began))
		}
	}
	if answer.StatusCode == http.StatusServiceUnavailable && answer.Header.Get("Retry-After") == "" {
		return answer.StatusCode, text, fmt.Errorf("status 503 without Retry-After: %s", text)
	}
	if answer.StatusCode == http.StatusOK && result != nil {
		if err := json.Unmarshal(text, result); err != nil {
			return answer.StatusCode, text, fmt.Errorf("%s: %w", text, err)
		}
	}
	return answer.StatusCode, text, nil
}

// tool calls a tool, whose answer is decoded into result.
func (c *connection) tool(ctx context.Context, url, name string, arguments map[string]any,
	result any) (int, []byte, error) {
	body, err := json.Marshal(map[string]any{"name": name, "arguments": arguments})
	if err != nil {
		return 0, nil, err
	}
	var outer struct{ Content []struct{ Text string } }
	status, text, err := c.send(ctx, http.MethodPost, url+"/tools/call", "application/json", body, &outer)
	if err != nil || status != http.StatusOK {
		return status, text, err
	}
	if len(outer.Content) != 1 {
		return status, text, fmt.Errorf("an answer with %d texts: %s", len(outer.Content), text)
	}
	if err := json.Unmarshal([]byte(outer.Content[0].Text), result); err != nil {
		return status, text, fmt.Errorf("%s: %w", text, err)
	}
	return status, text, nil
}

// judge interprets an answer. During the load, the servers are killed or the database is away.
func (l *load) judge(p *server, status int, text []byte, err error) verdict {
	switch {
	case status == http.StatusOK && err == nil:
		return answered
	case status == 0:
		if p.dead.Load() || l.settings.memory > 0 {
			return unknown
		}
	case l.settings.endNode == "" && l.settings.memory == 0 || err != nil:
	case status == http.StatusInternalServerError && bytes.Contains(text, []byte("may have been stored")):
		return unknown
	case status == http.StatusServiceUnavailable, l.settings.memory > 0 && status == http.StatusInternalServerError:
		return refused
	}
	return failed
}

// form is the body of an upload.
func form(name, description string, content []byte) (kind string, body []byte) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	err := w.WriteField("description", description)
	if err == nil {
		var part io.Writer
		if part, err = w.CreateFormFile("file", name); err == nil {
			_, err = part.Write(content)
		}
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err) // writing to a buffer never fails
	}
	return w.FormDataContentType(), b.Bytes()
}

// markOf returns the mark in a text, which names the text's object.
func markOf(text string) string {
	for _, word := range strings.Fields(text) {
		if strings.HasPrefix(word, markPrefix) {
			return strings.TrimRight(word, ".:")
		}
	}
	return ""
}
