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

	"github.com/souvenir-ai/souvenir/internal/jsonbound"
	"github.com/souvenir-ai/souvenir/internal/jsonescape"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// body is the body of a request, read with patience: it may take any time as long as data arrives. net/http reads
// the unread rest before it answers, under the same deadline.
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
	if err == io.EOF { // wrapped, it is a truncated body
		// A deadline that expires later would end the request while it is answered.
		b.control.SetReadDeadline(time.Time{}) //nolint:errcheck // as above
	}
	return n, b.explain(err)
}

// explain turns net/http's errors about a body into useful ones for the sender.
func (b *body) explain(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return failure.Invalid("body", fmt.Sprintf("nothing of the body arrived for %s", b.patience))
	}
	return err
}

// maxValues is the maximum number of values in the JSON of a body, except in the arguments of tools, which bound
// them themselves.
const maxValues = 100_000

// readJSON reads a body that is one JSON value into v. Strict refuses members that v has no field for: for bodies
// in which a misspelt limit would mean no limit.
func (s *Server) readJSON(w http.ResponseWriter, r *http.Request, v any, strict bool) error {
	if given := r.Header.Get("Content-Type"); given != "" {
		kind, _, err := mime.ParseMediaType(given)
		if err != nil || kind != "application/json" &&
			!(strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")) {
			return failure.Invalid("Content-Type", "the body's Content-Type is "+failure.Quote(given)+
				"; application/json is needed")
		}
	}
	encoded, err := s.encodedBody(w, r)
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(encoded)) == 0 {
		return failure.Invalid("body", "the body is empty; a JSON object is needed")
	}
	if bytes.Equal(bytes.TrimSpace(encoded), []byte("null")) {
		return failure.Invalid("body", "the body is null; a JSON object is needed")
	}
	if !utf8.Valid(encoded) {
		return failure.Invalid("body", "the body is not valid UTF-8, which JSON is written in")
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
	if strict {
		decoder.DisallowUnknownFields()
	}
	if err := decoder.Decode(v); err != nil {
		return failure.BadJSON(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return failure.Invalid("body",
			fmt.Sprintf("the body has more text after its JSON value, which ends at byte %d; one value is needed",
				decoder.InputOffset()))
	}
	return nil
}
