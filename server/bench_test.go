package server_test

import (
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

// What HTTP adds to the tools, and how many calls go through 16 connections:
//
//	go test ./server -run '^$' -bench . -benchtime 3s

const benchMemories = 10_000

// benchText makes a text of n words, with the frequencies of words falling as in real text.
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
	user, err := store.AddUser(ctx, souvenir.NewUser{Name: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	view := store.As(souvenir.Access{User: user.ID})
	token, err := view.AddToken(ctx, souvenir.NewToken{Name: "bench"})
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
	at := httptest.NewServer(server.New(store, &server.Options{PublicURL: publicAt}))
	at.Client().Transport.(*http.Transport).MaxIdleConnsPerHost = 64
	b.Cleanup(func() { at.Close(); store.Close() })
	return &bench{view, at, token.Value, texts}
}

// post calls the tool memory over HTTP.
func (h *bench) post(b *testing.B, arguments string) {
	r, err := http.NewRequest(http.MethodPost, h.at.URL+"/tools/call", strings.NewReader(`{"name":"memory","arguments":`+arguments+`}`))
	if err != nil {
		b.Error(err)
		return
	}
	r.Header.Set("Authorization", "Bearer "+h.token)
	r.Header.Set("Content-Type", "application/json")
	response, err := h.at.Client().Do(r)
	if err != nil {
		b.Error(err)
		return
	}
	defer response.Body.Close()
	var body bytes.Buffer
	if _, err := io.Copy(&body, response.Body); err != nil || response.StatusCode != http.StatusOK {
		b.Errorf("%d %v %.300s", response.StatusCode, err, body.String())
	}
}

func reportMedian(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-median")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "ms-p95")
}

// BenchmarkCall searches and stores through the library, the tools and HTTP, one call after the other.
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
		{"store/tools", func(b *testing.B, i int) { call(b, store(i)) }},
		{"store/http", func(b *testing.B, i int) { h.post(b, store(i)) }},
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
	for name, arguments := range map[string]string{"search": `{"action":"search","query":%q}`, "store": `{"action":"store","content":%q}`} {
		b.Run(name, func(b *testing.B) {
			const connections = 16
			var next atomic.Int64
			began := time.Now()
			b.SetParallelism(connections) // times GOMAXPROCS; the next line brings it to 16 in all
			slots := make(chan struct{}, connections)
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					slots <- struct{}{}
					h.post(b, fmt.Sprintf(arguments, h.texts[int(next.Add(1))%len(h.texts)]))
					<-slots
				}
			})
			b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "calls/s")
		})
	}
}
