// Retrieval measures how well a store finds what answers a question: it loads a set of conversations or documents,
// asks every question of the set, and prints recall, MRR and nDCG.
//
//	go run ./retrieval [-ranking text|vector|hybrid] SET.jsonl.gz ...
//
// A set is JSON Lines, gzipped: {"type": "corpus", "conv", "dia_id", "speaker", "session_date", "text", "caption"} is
// stored, as one memory, in the collection of its conversation; {"type": "query", "conv", "cat_name", "question",
// "evidence": [dia_id ...]} is asked there. The metrics and the stored text are those of the evaluation over HTTP.
package main

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir"
)

type row struct {
	Type     string   `json:"type"`
	Conv     string   `json:"conv"`
	ID       string   `json:"dia_id"`
	Speaker  string   `json:"speaker"`
	Date     string   `json:"session_date"`
	Text     string   `json:"text"`
	Caption  string   `json:"caption"`
	Category string   `json:"cat_name"`
	Question string   `json:"question"`
	Evidence []string `json:"evidence"`
}

// stored is the text that a turn is stored with.
func (r row) stored() string {
	text := r.Text
	if r.Caption != "" {
		text += " [shared image: " + r.Caption + "]"
	}
	if r.Speaker != "" {
		text = r.Speaker + ": " + text
		if r.Date != "" {
			text = "(" + r.Date + ") " + text
		}
	}
	return text
}

// apart is the category that is reported on its own: questions whose right answer is that there is none.
const apart = "adversarial"

type scores struct {
	n                           int
	recall5, recall10, recall20 float64
	mrr, ndcg                   float64
}

func (s *scores) add(ranked, evidence []string) {
	s.n++
	found := func(k int) float64 {
		n := 0
		for _, id := range evidence {
			if slices.Contains(ranked[:min(k, len(ranked))], id) {
				n++
			}
		}
		return float64(n) / float64(len(evidence))
	}
	s.recall5 += found(5)
	s.recall10 += found(10)
	s.recall20 += found(20)
	var dcg, ideal float64
	first := 0
	for i, id := range ranked[:min(20, len(ranked))] {
		if slices.Contains(evidence, id) {
			if first == 0 {
				first = i + 1
				s.mrr += 1 / float64(first)
			}
			if i < 10 {
				dcg += 1 / math.Log2(float64(i)+2)
			}
		}
	}
	for i := range min(10, len(evidence)) {
		ideal += 1 / math.Log2(float64(i)+2)
	}
	s.ndcg += dcg / ideal
}

func (s scores) print(name string) {
	percent := func(sum float64) float64 { return 100 * sum / float64(max(1, s.n)) }
	fmt.Printf("%-16s %5d  %8.2f  %9.2f  %9.2f  %6.2f  %7.2f\n", name, s.n,
		percent(s.recall5), percent(s.recall10), percent(s.recall20), percent(s.mrr), percent(s.ndcg))
}

func main() {
	log.SetFlags(0)
	ranking := flag.String("ranking", "hybrid", "what ranks: text, vector or hybrid")
	onDisk := flag.Bool("disk", false, "search on disk instead of in memory")
	flag.Parse()
	for _, path := range flag.Args() {
		if err := run(path, *ranking, *onDisk); err != nil {
			log.Fatal(err)
		}
	}
}

func run(path, ranking string, onDisk bool) error {
	corpus, queries, err := load(path)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "retrieval")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var options souvenir.Options
	if onDisk {
		options.IndexMemory = -1
	}
	ctx := context.Background()
	store, err := souvenir.Open(ctx, filepath.Join(dir, "retrieval.db"), &options)
	if err != nil {
		return err
	}
	defer store.Close()
	start := time.Now()
	turn := map[string]string{} // memory id -> turn
	n := 0
	for conv, rows := range corpus {
		if _, err := store.AddCollection(ctx, souvenir.NewCollection{Name: conv}); err != nil {
			return err
		}
		var memories []souvenir.NewMemory
		for _, r := range rows {
			memories = append(memories,
				souvenir.NewMemory{Collection: conv, Content: r.stored(), Metadata: map[string]any{"conv": conv, "dia_id": r.ID}})
		}
		stored, err := store.AddMemories(ctx, memories, nil)
		if err != nil {
			return err
		}
		for i, m := range stored {
			turn[m.ID] = rows[i].ID
		}
		n += len(rows)
	}
	loaded := time.Since(start)
	embedder := souvenir.Builtin()
	var all, adversarial scores
	byCategory := map[string]*scores{}
	var took []time.Duration
	for _, q := range queries {
		query := souvenir.Query{Text: q.Question, Collections: []string{q.Conv}, Limit: 20}
		switch ranking {
		case "vector":
			vectors, err := embedder.Embed(ctx, souvenir.ForQuery, []string{q.Question})
			if err != nil {
				return err
			}
			query.Text, query.Vector = "", vectors[0]
		case "text":
			query.Vector = make([]float32, embedder.Dimensions()) // of zeros: similar to nothing
		}
		start := time.Now()
		results, err := store.Search(ctx, query)
		if err != nil {
			return err
		}
		took = append(took, time.Since(start))
		var ranked []string
		for _, h := range results.Hits {
			ranked = append(ranked, turn[h.ID])
		}
		if q.Category == apart {
			adversarial.add(ranked, q.Evidence)
			continue
		}
		all.add(ranked, q.Evidence)
		if byCategory[q.Category] == nil {
			byCategory[q.Category] = &scores{}
		}
		byCategory[q.Category].add(ranked, q.Evidence)
	}
	slices.Sort(took)
	fmt.Printf("%s, ranking by %s: %d memories stored in %.2f s, median search %.2f ms\n", filepath.Base(path), ranking, n,
		loaded.Seconds(),
		float64(took[len(took)/2].Microseconds())/1000)
	fmt.Printf("%-16s %5s  %8s  %9s  %9s  %6s  %7s\n", "category", "n", "recall@5", "recall@10", "recall@20", "mrr",
		"ndcg@10")
	names := []string{}
	for name := range byCategory {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		byCategory[name].print(cmp.Or(name, "-"))
	}
	all.print("ALL")
	if adversarial.n > 0 {
		adversarial.print(apart)
	}
	return nil
}

func load(path string) (corpus map[string][]row, queries []row, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return nil, nil, err
	}
	corpus = map[string][]row{}
	lines := bufio.NewScanner(unzipped)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, nil, err
		}
		switch {
		case r.Type == "corpus":
			corpus[r.Conv] = append(corpus[r.Conv], r)
		case r.Type == "query" && len(r.Evidence) > 0:
			queries = append(queries, r)
		}
	}
	return corpus, queries, lines.Err()
}
