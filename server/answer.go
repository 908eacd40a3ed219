package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// answer writes a value as JSON. A value that cannot be encoded is a bug in this program, found before anything is
// sent.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, status int, value any) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false) // nosniff and the content type prevent browsers from reading it as HTML
	if err := encoder.Encode(value); err != nil {
		s.log.ErrorContext(r.Context(), "could not encode a response as JSON",
			"route", request.Of(r.Context()).Route, "error", err)
		status = http.StatusInternalServerError
		body.Reset()
		body.WriteString(`{"error":` + strconv.Quote(failure.Internal) + `,"content":[{"type":"text","text":` +
			strconv.Quote("Error: "+failure.Internal) + `}],"isError":true}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(status)
	w.Write(body.Bytes()) //nolint:errcheck // the client is gone, and the log has the count
}

// response is an [http.ResponseWriter] that notes status and size for the log, and gives up on a client that stalls for
// too long.
type response struct {
	http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
	status   int // 0: nothing sent yet
	bytes    int64
	extended time.Time // last change of the deadline; zero: none
	sending  func(bytes int)
}

// WriteHeader sends the header.
func (w *response) WriteHeader(status int) {
	if status >= http.StatusOK && w.status == 0 {
		w.status = status
	}
	w.extend()
	w.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body.
func (w *response) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	w.sending(len(p))
	w.extend()
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// Flush sends the buffered data.
func (w *response) Flush() {
	w.extend()
	w.control.Flush() //nolint:errcheck // a writer without support has sent it, or will
}

// Unwrap returns the writer underneath, for [http.ResponseController].
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// extend gives the client time to receive the next piece: at most once a second, since it is a system call.
func (w *response) extend() {
	now := time.Now()
	if now.Sub(w.extended) < min(time.Second, w.patience/2) {
		return
	}
	w.extended = now
	w.control.SetWriteDeadline(now.Add(w.patience)) //nolint:errcheck // without support, the server's own timeout applies
}

// finish removes the deadline: the connection may serve other requests, and other handlers.
func (w *response) finish() {
	if !w.extended.IsZero() {
		w.control.SetWriteDeadline(time.Time{}) //nolint:errcheck // as in extend
	}
}
