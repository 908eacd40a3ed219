package web

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/souvenir-ai/souvenir/server/internal/request"
)

const minCompressed = 1 << 10 // bytes: less would not become smaller than a packet

// compressors are writers to use again, as each needs much memory.
var compressors = sync.Pool{New: func() any {
	compressor, _ := gzip.NewWriterLevel(nil, gzip.DefaultCompression) // the level is valid
	return compressor
}}

// compress compresses some bytes.
func compress(plain []byte) ([]byte, error) {
	var compressed bytes.Buffer
	compressor := compressors.Get().(*gzip.Writer)
	defer compressors.Put(compressor)
	compressor.Reset(&compressed)
	if _, err := compressor.Write(plain); err != nil {
		return nil, err
	}
	err := compressor.Close()
	return compressed.Bytes(), err
}

// WriteCompressed writes the body of an answer, compressed if the client accepts that and the request was not caused by
// another site. Such a site could have chosen a part of the body, and learned from the lengths of many answers what
// else is in it (BREACH).
func WriteCompressed(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	if len(body) >= minCompressed && AcceptsGzip(r.Header.Get("Accept-Encoding")) && !fromOtherSite(r) {
		if compressed, err := compress(body); err == nil {
			h.Set("Content-Encoding", "gzip")
			body = compressed
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body) //nolint:errcheck // the client is gone, and the log has the count
}

// fromOtherSite reports whether a page of another origin has caused a request. Browsers say so over TLS; without it,
// there is no length to hide.
func fromOtherSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}

// AcceptsGzip reports whether a client accepts gzip: "q=0" means no (RFC 9110, section 12.5.3).
func AcceptsGzip(accepted string) bool {
	for one := range strings.SplitSeq(accepted, ",") {
		name, parameters, _ := strings.Cut(strings.TrimSpace(one), ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			quality := strings.ReplaceAll(parameters, " ", "")
			return quality != "q=0" && !strings.HasPrefix(quality, "q=0.0")
		}
	}
	return false
}

// compresses reports whether a page is compressed: one of a signed-in user, as only those are large.
func compresses(r *http.Request) bool {
	return r.Method == http.MethodGet && request.Of(r.Context()).Caller.SignInID != ""
}
