package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/tools"
)

// These benchmarks measure what HTTP and the Model Context Protocol add to the tools, and how many calls per second 16
// connections make:
//
//	go test ./server -run '^$' -bench . -benchtime 3s

const benchMemories = 10_000

// benchText makes a text of n words, with falling frequencies as in real text.
func benchText(zipf *rand.Zipf, n int) string {
	syllables := []string{"ka", "lo", "mi", "ren", "tu", "sha", "del", "por", "vin", "ge"}
	words := make([]string, n)
	for i := range words {
		number := zipf.Uint64()
		words[i] = syllables[number%10]
		for number /= 10; number > 0; number /= 10 {
			words[i] += syllables[number%10]
		}
	}
	return strings.Join(words, " ")
}

// bench is a server with memories, and a token for it.
type bench struct {
	store *souvenir.Store
	view  *souvenir.Store
	at    *httptest.Server
	token string
	texts []string
}

func newBench(b *testing.B) *bench {
	b.Helper()
	ctx := context.Background()
	store, err := souvenir.Open(ctx, filepath.Join(b.TempDir(), "bench.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	user, err := store.Accounts().AddUser(ctx, souvenir.NewUser{Name: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	view := store.As(souvenir.Access{User: user.ID})
	token, err := view.Accounts().AddToken(ctx, souvenir.NewToken{Name: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	zipf := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 4, 20_000)
	memories, texts := make([]souvenir.NewMemory, benchMemories), make([]string, benchMemories)
	for i := range memories {
		memories[i].Content = benchText(zipf, 20)
		texts[i] = benchText(zipf, 6)
	}
	if _, err := view.AddMemories(ctx, memories, nil); err != nil {
		b.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < 2*time.Second; { // until the index is in memory
		if _, err := view.Search(ctx, souvenir.Query{Text: texts[0]}); err != nil {
			b.Fatal(err)
		}
	}
	at := httptest.NewServer(server.New(store, &server.Options{PublicURL: servertest.PublicAt}))
	at.Client().Transport.(*http.Transport).MaxIdleConnsPerHost = 64
	b.Cleanup(func() { at.Close(); store.Close() })
	return &bench{store, view, at, token.Value, texts}
}

// post calls the tool memory over HTTP.
func (h *bench) post(b *testing.B, arguments string) {
	h.send(b, "/tools/call", `{"name":"memory","arguments":`+arguments+`}`)
}

// postMCP does so over the Model Context Protocol.
func (h *bench) postMCP(b *testing.B, arguments string) {
	h.send(b, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory","arguments":`+arguments+
		`}}`)
}

func (h *bench) send(b *testing.B, path, body string) {
	r, err := http.NewRequest(http.MethodPost, h.at.URL+path, strings.NewReader(body))
	if err != nil {
		b.Error(err)
		return
	}
	r.Header.Set("Authorization", "Bearer "+h.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	response, err := h.at.Client().Do(r)
	if err != nil {
		b.Error(err)
		return
	}
	defer response.Body.Close()
	var answer bytes.Buffer
	if _, err := io.Copy(&answer, response.Body); err != nil || response.StatusCode != http.StatusOK {
		b.Errorf("%d %v %.300s, want %v", response.StatusCode, err, answer.String(), http.StatusOK)
	}
}

func reportMedian(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-median")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "ms-p95")
}

// BenchmarkCall searches and adds through the library, the tools and HTTP, one call after the other.
func BenchmarkCall(b *testing.B) {
	h := newBench(b)
	set := tools.New(h.view, nil)
	search := func(i int) string { return fmt.Sprintf(`{"action":"search","query":%q}`, h.texts[i%len(h.texts)]) }
	store := func(i int) string { return fmt.Sprintf(`{"action":"store","content":%q}`, h.texts[i%len(h.texts)]) }
	call := func(b *testing.B, arguments string) {
		result, err := set.Call(context.Background(), "memory", json.RawMessage(arguments))
		if err == nil {
			_, err = json.Marshal(result)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		call func(b *testing.B, i int)
	}{
		{"search/library", func(b *testing.B, i int) {
			if _, err := h.view.Search(context.Background(), souvenir.Query{Text: h.texts[i%len(h.texts)]}); err != nil {
				b.Fatal(err)
			}
		}},
		{"search/tools", func(b *testing.B, i int) { call(b, search(i)) }},
		{"search/http", func(b *testing.B, i int) { h.post(b, search(i)) }},
		{"search/mcp", func(b *testing.B, i int) { h.postMCP(b, search(i)) }},
		{"store/tools", func(b *testing.B, i int) { call(b, store(i)) }},
		{"store/http", func(b *testing.B, i int) { h.post(b, store(i)) }},
		{"store/mcp", func(b *testing.B, i int) { h.postMCP(b, store(i)) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				began := time.Now()
				c.call(b, i)
				took = append(took, time.Since(began))
			}
			reportMedian(b, took)
		})
	}
}

// BenchmarkConnections calls over 16 connections at once.
func BenchmarkConnections(b *testing.B) {
	h := newBench(b)
	const search, store = `{"action":"search","query":%q}`, `{"action":"store","content":%q}`
	for _, c := range []struct {
		name, arguments string
		post            func(*testing.B, string)
	}{{"search/http", search, h.post}, {"search/mcp", search, h.postMCP}, {"store/http", store, h.post},
		{"store/mcp", store, h.postMCP}} {
		b.Run(c.name, func(b *testing.B) {
			const connections = 16
			var next atomic.Int64
			began := time.Now()
			b.SetParallelism(connections) // times GOMAXPROCS; the next line brings it to 16 in all
			slots := make(chan struct{}, connections)
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					slots <- struct{}{}
					c.post(b, fmt.Sprintf(c.arguments, h.texts[int(next.Add(1))%len(h.texts)]))
					<-slots
				}
			})
			b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "calls/s")
		})
	}
}

// BenchmarkActivity measures what recording adds to a short call of a tool.
func BenchmarkActivity(b *testing.B) {
	for _, off := range []bool{false, true} {
		b.Run(fmt.Sprintf("off=%t", off), func(b *testing.B) {
			ctx := context.Background()
			store, err := souvenir.Open(ctx, filepath.Join(b.TempDir(), "bench.db"), nil)
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			token, err := store.Accounts().AddToken(ctx, souvenir.NewToken{Name: "bench"})
			if err != nil {
				b.Fatal(err)
			}
			handler := server.New(store, &server.Options{NoActivity: off})
			var took []time.Duration
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, "/tools/call", strings.NewReader(`{"name":"list_collections"}`))
				r.Header.Set("Authorization", "Bearer "+token.Value)
				r.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				began := time.Now()
				handler.ServeHTTP(w, r)
				took = append(took, time.Since(began))
				if w.Code != http.StatusOK {
					b.Fatalf("got %v, want %v", w.Body, http.StatusOK)
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "µs-median")
		})
	}
}
