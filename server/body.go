package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/json/jsonbound"
	"github.com/souvenir-ai/souvenir/internal/json/jsonescape"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

const (
	largeBody = 64 << 10 // bytes of a body whose parsing takes a turn
	firstRoom = 64 << 10 // bytes for a body of unknown length
)

// body is the body of a request. Reading it may take any time as long as data keeps arriving. net/http reads the unread
// rest before it answers, under the same deadline.
type body struct {
	io.ReadCloser
	control  *http.ResponseController
	patience time.Duration
	extended time.Time
	arrived  func(bytes int64)
}

// newBody wraps the body of a request.
func (s *Server) newBody(control *http.ResponseController, r *http.Request) io.ReadCloser {
	if r.Body == nil || r.Body == http.NoBody {
		return http.NoBody
	}
	b := &body{ReadCloser: r.Body, control: control, patience: s.options.Patience}
	b.arrived = func(bytes int64) { request.Of(r.Context()).Pace(r, bytes) }
	b.extend()
	return b
}

// extend gives the client time to send the next piece: at most once a second, since it is a system call.
func (b *body) extend() {
	if now := time.Now(); now.Sub(b.extended) >= min(time.Second, b.patience/2) {
		b.extended = now
		_ = b.control.SetReadDeadline(now.Add(b.patience)) // without support, the server has a timeout of its own
	}
}

// Read reads available data.
func (b *body) Read(p []byte) (int, error) {
	b.extend()
	n, err := b.ReadCloser.Read(p)
	b.arrived(int64(n))
	if err == io.EOF { // a wrapped io.EOF means a truncated body
		// A deadline that expires later would end the request while it is answered.
		b.control.SetReadDeadline(time.Time{}) //nolint:errcheck // as above
	}
	return n, b.explain(err)
}

// explain turns net/http's errors about a body into useful ones for the sender.
func (b *body) explain(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return failure.Invalid("body", fmt.Sprintf("no part of the body arrived for %s", b.patience))
	}
	return err
}

// bodyRead holds a body in memory, or the error of reading it, which its handler reports.
type bodyRead struct {
	bytes.Reader
	encoded []byte
	failed  error
}

// Read reads from memory.
func (b *bodyRead) Read(p []byte) (int, error) {
	if b.failed != nil {
		return 0, b.failed
	}
	return b.Reader.Read(p)
}

// Close does nothing.
func (b *bodyRead) Close() error { return nil }

// readBody reads a body of at most MaxBody bytes, once the budget of all bodies has room for it. The error is about
// the budget or the request; errors in the body are in the result.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) (*bodyRead, error) {
	if read, ok := r.Body.(*bodyRead); ok {
		return read, nil
	}
	e := request.Of(r.Context())
	in := http.MaxBytesReader(w, r.Body, s.options.MaxBody)
	room := r.ContentLength
	switch {
	case room == 0 || r.Body == http.NoBody:
		return &bodyRead{}, nil
	case room < 0:
		room = firstRoom
	}
	encoded := []byte(nil)
	for room = min(room, s.options.MaxBody) + 1; ; room *= 2 { // one byte more, to see the end without growing
		if e.Holds == 0 {
			e.Holder = e.Line()
		}
		taken, err := s.bodies.Take(r.Context(), e.Holder, room-int64(len(encoded)))
		if err != nil {
			return nil, err
		}
		e.Holds += taken
		encoded = append(make([]byte, 0, room), encoded...)
		for len(encoded) < cap(encoded) {
			n, err := in.Read(encoded[len(encoded):cap(encoded)])
			encoded = encoded[:len(encoded)+n]
			if errors.Is(err, io.EOF) {
				read := &bodyRead{encoded: encoded}
				read.Reset(encoded)
				return read, nil
			}
			if err != nil {
				return &bodyRead{failed: err}, nil //nolint:nilerr // its reader gets the error
			}
		}
	}
}

// encodedBody returns the whole body of a request.
func (s *Server) encodedBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	read, err := s.readBody(w, r)
	if err != nil {
		return nil, err
	}
	if read.failed != nil {
		return nil, failure.Unreadable(read.failed)
	}
	return read.encoded, nil
}

// maxValues is the maximum number of values in the JSON of a body, except in the arguments of tools, which bound
// them themselves.
const maxValues = 100_000

// strictBody, embedded in the type of a body, means that members without a field are refused, as needed where a
// misspelt limit would mean no limit. Other bodies may have members that only newer servers know.
type strictBody struct{}

func (strictBody) refusesUnknown() {}

// isStrict reports whether a body, or its pointer, refuses members without a field.
func isStrict(body any) bool {
	_, strict := body.(interface{ refusesUnknown() })
	return strict
}

// readJSON reads a body that is one JSON value into v.
func (s *Server) readJSON(w http.ResponseWriter, r *http.Request, v any) error {
	if given := r.Header.Get("Content-Type"); given != "" {
		kind, _, err := mime.ParseMediaType(given)
		if err != nil || kind != "application/json" &&
			!(strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")) {
			return failure.Invalid("Content-Type", "the body's Content-Type is "+failure.Quote(given)+
				"; expected application/json")
		}
	}
	encoded, err := s.encodedBody(w, r)
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(encoded)) == 0 {
		return failure.Invalid("body", "the body is empty; expected a JSON object")
	}
	if bytes.Equal(bytes.TrimSpace(encoded), []byte("null")) {
		return failure.Invalid("body", "the body is null; expected a JSON object")
	}
	if !utf8.Valid(encoded) {
		return failure.Invalid("body", "the body is not valid UTF-8, which JSON requires")
	}
	if escape, at := jsonescape.LoneSurrogate(encoded); at >= 0 {
		return failure.Invalid("body",
			fmt.Sprintf("the body has the escape %s at byte %d, which is half of a character; write both halves, or the "+
				"character itself", escape, at))
	}
	if _, call := v.(*toolCall); call && len(encoded) > largeBody {
		if err := json.Unmarshal(encoded, v); err != nil {
			return failure.BadJSON(err)
		}
		return nil
	}
	if n := jsonbound.Count(encoded); n > maxValues {
		return failure.Invalid("body", fmt.Sprintf("the body has %d values; at most %d are allowed", n, maxValues))
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	if isStrict(v) {
		decoder.DisallowUnknownFields()
	}
	if err := decoder.Decode(v); err != nil {
		return failure.BadJSON(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return failure.Invalid("body",
			fmt.Sprintf("the body has more text after its JSON value, which ends at byte %d; expected one value",
				decoder.InputOffset()))
	}
	return nil
}
