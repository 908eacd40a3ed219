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

// body is the body of a request, read with patience: as long as something arrives it may take its time. What is not
// read of it, net/http reads before it answers, under the same deadline.
type body struct {
	io.ReadCloser
	control  *http.ResponseController
	patience time.Duration
	extended time.Time
	arrived  func(bytes int64)
}

// newBody makes the body of a request patient.
func (s *Server) newBody(control *http.ResponseController, r *http.Request) io.ReadCloser {
	if r.Body == nil || r.Body == http.NoBody {
		return http.NoBody
	}
	b := &body{ReadCloser: r.Body, control: control, patience: s.options.Patience}
	b.arrived = func(bytes int64) { request.Of(r.Context()).Pace(r, bytes) }
	b.extend()
	return b
}

// extend gives the client time to send the next piece: at most once a second, for it is a call of the network's.
func (b *body) extend() {
	if now := time.Now(); now.Sub(b.extended) >= min(time.Second, b.patience/2) {
		b.extended = now
		b.control.SetReadDeadline(now.Add(b.patience)) //nolint:errcheck // a server that cannot has a timeout of its own
	}
}

// Read reads what has arrived.
func (b *body) Read(p []byte) (int, error) {
	b.extend()
	n, err := b.ReadCloser.Read(p)
	b.arrived(int64(n))
	if err == io.EOF { // wrapped, it is an end that comes too early
		// A deadline that passes later would end the request while it is being answered.
		b.control.SetReadDeadline(time.Time{}) //nolint:errcheck // as above
	}
	return n, b.explain(err)
}

// explain turns what net/http says about a body into what its sender can use.
func (b *body) explain(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return failure.Invalid("body", fmt.Sprintf("nothing of the body arrived for %s", b.patience))
	}
	return err
}

// maxValues is how many values the JSON of a body may have, but for the arguments of tools, which bound them
// themselves.
const maxValues = 100_000

// readJSON reads a body that is one JSON value into v. Strict refuses members that v has no field for: where a misspelt
// limit would otherwise mean no limit.
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
			fmt.Sprintf("the body has the escape %s at byte %d, which is half of a character; write both halves, or the character itself", escape, at))
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
			fmt.Sprintf("the body goes on behind its JSON value, which ends at byte %d; one value is needed",
				decoder.InputOffset()))
	}
	return nil
}
