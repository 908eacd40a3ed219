// Package embeddertest tests all HTTP embedders for the same promises, against a local server that answers in the
// provider's form, or with errors.
package embeddertest

import (
	"encoding/json"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// Key is the key of the made-up account.
const Key = "sk-made-up-Key-0123456789"

// Provider describes the form of a provider's requests and answers, as its documentation shows them.
type Provider struct {
	// New makes the embedder with the key Key, and vectors of Dimensions numbers.
	New func(baseURL string, client *http.Client, timeout time.Duration) (souvenir.Embedder, error)

	Path   string                                             // of requests
	Header string                                             // that holds the key
	Texts  func(body []byte) (texts []string, purpose string) // the texts and the purpose of a request
	Answer func(vectors [][]float32) any                      // with a vector for each text

	Query, Document string // the values of the purpose; "" for providers without
	MaxTexts        int    // of a request, by the documentation
}

// Dimensions is the length of the vectors.
const Dimensions = 8

// Request is a request that the server got.
type Request struct {
	Texts   []string
	Purpose string
	Body    string
}

// Server is a service that answers correctly, unless Spoil answers instead.
type Server struct {
	*httptest.Server
	Spoil func(n int, w http.ResponseWriter, r *http.Request) bool // n counts from 1; true if it has answered

	mu       sync.Mutex
	requests []Request
	count    int
}

// Serve starts a service.
func Serve(p Provider) *Server {
	s := &Server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.count++
		n := s.count
		s.mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		if s.Spoil != nil && s.Spoil(n, w, r) {
			return
		}
		if r.Method != http.MethodPost || r.URL.Path != p.Path || !strings.HasSuffix(r.Header.Get(p.Header), Key) {
			http.Error(w, `{"error":"wrong method, path or key"}`, http.StatusUnauthorized)
			return
		}
		texts, purpose := p.Texts(body)
		s.mu.Lock()
		s.requests = append(s.requests, Request{texts, purpose, string(body)})
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_ = json.NewEncoder(w).Encode(p.Answer(Vectors(texts)))
	}))
	return s
}

// Requests returns the requests that were answered successfully.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// Count returns the number of requests received.
func (s *Server) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// Vectors are made-up vectors: the sum of a direction for each word.
func Vectors(texts []string) [][]float32 {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		vectors[i] = make([]float32, Dimensions)
		for _, word := range strings.Fields(strings.ToLower(text)) {
			h := fnv.New32a()
			h.Write([]byte(strings.Trim(word, ".,:;?")))
			vectors[i][h.Sum32()%Dimensions]++
		}
		vectors[i][0] += 0.5
	}
	return vectors
}

// encoded returns a value as JSON.
func encoded(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		return []byte(err.Error())
	}
	return data
}
