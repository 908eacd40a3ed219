package embeddertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// Run checks what all embedders promise.
func Run(t *testing.T, p Provider) {
	t.Helper()
	t.Run("order, batches and purposes", func(t *testing.T) { batches(t, p) })
	t.Run("a store finds by meaning", func(t *testing.T) { inStore(t, p) })
	t.Run("temporary failures", func(t *testing.T) { temporary(t, p) })
	t.Run("failures that stay", func(t *testing.T) { lasting(t, p) })
	t.Run("hostile answers", func(t *testing.T) { hostile(t, p) })
	t.Run("redirects", func(t *testing.T) { redirects(t, p) })
	t.Run("slow answers", func(t *testing.T) { slow(t, p) })
	t.Run("the key stays secret", func(t *testing.T) { secret(t, p) })
}

// start starts a server and an embedder that calls it.
func start(t *testing.T, p Provider, spoil func(n int, w http.ResponseWriter, r *http.Request) bool) (*Server,
	souvenir.Embedder) {
	t.Helper()
	s := Serve(p)
	s.Spoil = spoil
	t.Cleanup(s.Close)
	e, err := p.New(s.URL, nil, time.Minute)
	if err != nil {
		t.Fatalf("New: got %v, want an embedder", err)
	}
	return s, e
}

func batches(t *testing.T, p Provider) {
	s, e := start(t, p, nil)
	texts := make([]string, souvenir.EmbedBatch)
	for i := range texts {
		texts[i] = fmt.Sprintf("text %d of %s", i, strings.Repeat("x", i%7))
	}
	texts[5] = strings.Repeat("long words ", 140)
	vectors, err := e.Embed(t.Context(), souvenir.ForDocument, texts)
	if err != nil || len(vectors) != len(texts) {
		t.Fatalf("got %d vectors and %v, want %d and no error", len(vectors), err, len(texts))
	}
	if _, err := e.Embed(t.Context(), souvenir.ForQuery, []string{"which text"}); err != nil {
		t.Fatalf("a query: got %v, want no error", err)
	}
	var sent []string
	requests := s.Requests()
	for _, r := range requests[:len(requests)-1] {
		if len(r.Texts) > p.MaxTexts {
			t.Errorf("a request has %d texts, want at most %d", len(r.Texts), p.MaxTexts)
		}
		if r.Purpose != p.Document {
			t.Errorf("the purpose of documents is %q, want %q", r.Purpose, p.Document)
		}
		sent = append(sent, r.Texts...)
	}
	if last := requests[len(requests)-1]; last.Purpose != p.Query {
		t.Errorf("the purpose of a query is %q, want %q", last.Purpose, p.Query)
	}
	for i, want := range Vectors(sent) {
		if !strings.HasSuffix(sent[i], texts[i]) || !slices.Equal(vectors[i], want) {
			t.Fatalf("text %d: got %q with the vector %v, want %q with %v", i, sent[i], vectors[i], texts[i], want)
		}
	}
}

func inStore(t *testing.T, p Provider) {
	_, e := start(t, p, nil)
	store, err := souvenir.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), &souvenir.Options{Embedder: e})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, content := range []string{"Anna eats no peanuts.", "The train leaves at eight."} {
		if m, err := store.AddMemory(t.Context(), souvenir.NewMemory{Content: content}); err != nil || !m.Indexed {
			t.Fatalf("AddMemory: indexed %v and %v, want true and no error", m.Indexed, err)
		}
	}
	found, err := store.Search(t.Context(), souvenir.Query{Text: "train"})
	if err != nil || len(found.Hits) == 0 || !strings.Contains(found.Hits[0].Content, "train") {
		t.Errorf("Search: got %v and %v, want the train first", found.Hits, err)
	}
}

// temporary checks that 429 and 5xx are retried, and that a batch that is too large is halved.
func temporary(t *testing.T, p Provider) {
	for _, status := range []int{429, 503} {
		s, e := start(t, p, func(n int, w http.ResponseWriter, _ *http.Request) bool {
			if n == 1 {
				w.Header().Set("Retry-After", "0")
				http.Error(w, `{"error":{"message":"busy"}}`, status)
			}
			return n == 1
		})
		if _, err := e.Embed(t.Context(), souvenir.ForDocument, []string{"a text"}); err != nil || s.Count() != 2 {
			t.Errorf("after one %d: got %v and %d requests, want no error and 2", status, err, s.Count())
		}
	}
	s, e := start(t, p, func(n int, w http.ResponseWriter, _ *http.Request) bool {
		if n == 1 {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}
		return n == 1
	})
	got, err := e.Embed(t.Context(), souvenir.ForDocument, []string{"one", "two", "three"})
	if err != nil || len(got) != 3 || s.Count() != 3 {
		t.Errorf("after 413: got %d vectors, %v and %d requests, want 3, no error and 3", len(got), err, s.Count())
	}
}

// lasting checks that permanent errors name the status and quote the service, after one attempt.
func lasting(t *testing.T, p Provider) {
	for _, test := range []struct {
		status int
		kind   string
		body   string
		want   string
	}{
		{401, "application/json", `{"error":{"message":"Incorrect API key provided"}}`, "Incorrect API key"},
		{400, "application/json", `{"message":"too\nmany\u0000 tokens"}`, "400 Bad Request"},
		{404, "text/html", "<html><body>not here</body></html>", "404 Not Found"},
		{429, "application/json", `{"detail":"come back tomorrow"}`, "come back tomorrow"},
	} {
		s, e := start(t, p, func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", test.kind)
			w.Header().Set("Retry-After", "86400")
			w.WriteHeader(test.status)
			_, _ = w.Write([]byte(test.body))
			return true
		})
		_, err := e.Embed(t.Context(), souvenir.ForDocument, []string{"a text"})
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.ContainsAny(err.Error(), "\n\x00<") {
			t.Errorf("%d: got the error %v, want one line with %q", test.status, err, test.want)
		}
		if s.Count() != 1 {
			t.Errorf("%d: got %d requests, want 1", test.status, s.Count())
		}
	}
}

func hostile(t *testing.T, p Provider) {
	good := Vectors([]string{"one", "two"})
	short := [][]float32{good[0][:3], good[1][:3]}
	encode := func(vectors [][]float32) string { return string(encoded(p.Answer(vectors))) }
	for _, test := range []struct{ name, body, want string }{
		{"one vector too few", encode(good[:1]), "1 vectors for 2 texts"},
		{"one too many", encode(append(slices.Clone(good), good[0])), "3 vectors for 2 texts"},
		{"another size", encode(short), "3 numbers; Dimensions is 8"},
		{"nothing", "{}", "0 vectors for 2 texts"},
		{"null", strings.Replace(encode(good), "0.5", "null", 1), "expected a finite number"},
		{"NaN", strings.Replace(encode(good), "0.5", "NaN", 1), "not as documented"},
		{"too large a number", strings.Replace(encode(good), "0.5", "1e400", 1), "expected a finite number"},
		{"a text for a number", strings.Replace(encode(good), "0.5", `"0.5"`, 1), "expected a finite number"},
		{"cut off", encode(good)[:40], "not as documented"},
		{"no JSON", "ok", "not as documented"},
		{"a page", "<html>sign in</html>", "not as documented"},
		{"huge", strings.Repeat(" ", 1<<20) + encode(good), "more than"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, e := start(t, p, func(_ int, w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(test.body))
				return true
			})
			got, err := e.Embed(t.Context(), souvenir.ForDocument, []string{"one", "two"})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %d vectors and the error %v, want an error with %q", len(got), err, test.want)
			}
		})
	}
	_, e := start(t, p, func(_ int, w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<html>sign in</html>"))
		return true
	})
	if _, err := e.Embed(t.Context(), souvenir.ForDocument, []string{"one"}); err == nil ||
		!strings.Contains(err.Error(), "an HTML page") {
		t.Errorf("an HTML page: got the error %v, want one that says so", err)
	}
}

// redirects checks that neither the key nor a text goes to another address.
func redirects(t *testing.T, p Provider) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a request went to the other address, with the headers %v", r.Header)
	}))
	defer elsewhere.Close()
	for _, status := range []int{301, 302, 307, 308} {
		_, e := start(t, p, func(_ int, w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, elsewhere.URL+"/"+Key, status)
			return true
		})
		_, err := e.Embed(t.Context(), souvenir.ForDocument, []string{"a text"})
		if err == nil || !strings.Contains(err.Error(), "redirects to") || strings.Contains(err.Error(), Key) {
			t.Errorf("%d: got the error %v, want one that says where it redirects to", status, err)
		}
	}
}

// slow checks the time limit of an attempt, and that the end of the caller's context stops all attempts.
func slow(t *testing.T, p Provider) {
	s := Serve(p)
	defer s.Close()
	s.Spoil = func(n int, _ http.ResponseWriter, r *http.Request) bool {
		if n == 1 {
			<-r.Context().Done()
		}
		return n == 1
	}
	e, err := p.New(s.URL, nil, 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Embed(t.Context(), souvenir.ForDocument, []string{"a text"}); err != nil {
		t.Errorf("after an attempt that took too long: got %v, want the vector of the second one", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, e = start(t, p, func(_ int, w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusServiceUnavailable)
		cancel()
		return true
	})
	if _, err := e.Embed(ctx, souvenir.ForDocument, []string{"a text"}); !errors.Is(err, context.Canceled) {
		t.Errorf("the context ended: got %v, want its error", err)
	}
}

// talkative is a transport whose errors hold the headers.
type talkative struct{}

func (talkative) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("no connection for %v", r.Header)
}

// secret checks that errors, logs and printed values do not contain the key.
func secret(t *testing.T, p Provider) {
	var all strings.Builder
	s, e := start(t, p, func(_ int, w http.ResponseWriter, r *http.Request) bool {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"message":"the key %s may not do this"}`, r.Header.Get(p.Header))
		return true
	})
	_, err := e.Embed(t.Context(), souvenir.ForQuery, []string{"a text"})
	fmt.Fprintln(&all, err, s.Count())
	fmt.Fprintf(&all, "%v %+v %#v %s", e, e, e, e)
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("made", "embedder", e, "error", err)
	slog.New(slog.NewTextHandler(&log, nil)).Info("made", "embedder", e, "error", err)
	all.Write(log.Bytes())
	e, err = p.New(s.URL, &http.Client{Transport: talkative{}}, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Embed(t.Context(), souvenir.ForQuery, []string{"a text"})
	fmt.Fprintln(&all, err)
	_, err = p.New("https://anna:"+Key+"@example.com", nil, 0)
	fmt.Fprintln(&all, err)
	_, err = p.New("ht tps://"+Key, nil, 0)
	fmt.Fprintln(&all, err)
	if strings.Contains(all.String(), Key) {
		t.Errorf("the key is in what was printed:\n%s", all.String())
	}
	if !strings.Contains(all.String(), "[key] may not do this") {
		t.Errorf("got %s, want the service's message with [key]", all.String())
	}
}
