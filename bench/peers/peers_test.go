// Package peers measures Souvenir beside other Go packages that keep memories, in one run on one machine:
//
//	go test -run '^$' -bench . -benchtime 3s ./peers
//
// All of them get the same texts and the same embedding function, so that what is compared is storing and finding.
package peers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/philippgille/chromem-go"

	"github.com/souvenir-ai/souvenir"
)

const stored = 10_000

// texts makes n different texts of some 20 words, with frequencies of words that fall as in real text.
func texts(n int) []string {
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.1, 4, 20_000)
	syllables := []string{"ka", "lo", "mi", "ren", "tu", "sha", "del", "por", "vin", "ge"}
	all := make([]string, n)
	for i := range all {
		words := make([]string, 12+random.IntN(16))
		for j := range words {
			for _, digit := range strconv.FormatUint(zipf.Uint64(), 10) {
				words[j] += syllables[digit-'0']
			}
		}
		all[i] = strings.Join(words, " ")
	}
	return all
}

func embed(ctx context.Context, text string) ([]float32, error) {
	vectors, err := souvenir.Builtin().Embed(ctx, souvenir.ForDocument, []string{text})
	if err != nil {
		return nil, err
	}
	return vectors[0], nil
}

// peer is one package under test: what it takes to store texts and to ask for the ten best.
type peer struct {
	name string
	open func(b *testing.B) (add func(texts []string) error, search func(text string) (int, error))
}

var peers = []peer{
	{"souvenir", func(b *testing.B) (func([]string) error, func(string) (int, error)) {
		store, err := souvenir.Open(b.Context(), filepath.Join(b.TempDir(), "souvenir.db"), nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { store.Close() })
		add := func(texts []string) error {
			memories := make([]souvenir.NewMemory, len(texts))
			for i, t := range texts {
				memories[i].Content = t
			}
			_, err := store.AddMemories(context.Background(), memories, nil)
			return err
		}
		search := func(text string) (int, error) {
			results, err := store.Search(context.Background(), souvenir.Query{Text: text, Limit: 10})
			return len(results.Hits), err
		}
		return add, search
	}},
	{"chromem-go, in memory", chromemPeer(func(*testing.B) (*chromem.DB, error) { return chromem.NewDB(), nil })},
	{"chromem-go, persistent", chromemPeer(func(b *testing.B) (*chromem.DB, error) {
		return chromem.NewPersistentDB(b.TempDir(), false)
	})},
}

func chromemPeer(open func(*testing.B) (*chromem.DB, error)) func(*testing.B) (func([]string) error,
	func(string) (int, error)) {
	return func(b *testing.B) (func([]string) error, func(string) (int, error)) {
		db, err := open(b)
		if err != nil {
			b.Fatal(err)
		}
		collection, err := db.CreateCollection("bench", nil, embed)
		if err != nil {
			b.Fatal(err)
		}
		next := 0
		add := func(texts []string) error {
			documents := make([]chromem.Document, len(texts))
			for i, t := range texts {
				documents[i] = chromem.Document{ID: strconv.Itoa(next), Content: t}
				next++
			}
			return collection.AddDocuments(context.Background(), documents, runtime.NumCPU())
		}
		search := func(text string) (int, error) {
			results, err := collection.Query(context.Background(), text, 10, nil, nil)
			return len(results), err
		}
		return add, search
	}
}

func BenchmarkAdd(b *testing.B) {
	all := texts(stored)
	for _, p := range peers {
		b.Run(p.name+fmt.Sprintf(", %d at once", stored), func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				add, _ := p.open(b)
				start := time.Now()
				if err := add(all); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(stored/took[len(took)/2].Seconds(), "memories/s")
		})
	}
}

func BenchmarkAddOne(b *testing.B) {
	all := texts(stored)
	for _, p := range peers {
		b.Run(p.name, func(b *testing.B) {
			add, _ := p.open(b)
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				start := time.Now()
				if err := add(all[i%stored : i%stored+1]); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs-median")
		})
	}
}

func BenchmarkSearch(b *testing.B) {
	all := texts(stored)
	for _, p := range peers {
		b.Run(p.name, func(b *testing.B) {
			add, search := p.open(b)
			if err := add(all); err != nil {
				b.Fatal(err)
			}
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				question := strings.Join(strings.Fields(all[i*7%stored])[:8], " ")
				start := time.Now()
				n, err := search(question)
				took = append(took, time.Since(start))
				if n != 10 || err != nil {
					b.Fatal(n, err)
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-median")
		})
	}
}
