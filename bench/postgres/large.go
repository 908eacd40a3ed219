package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/seed"
	"github.com/souvenir-ai/souvenir/postgres"
)

// queries are texts of a few words.
func queries(n int) []string { return seed.Texts(rand.New(rand.NewPCG(7, 7)), n, 3, 8) }

// asked returns the query of a kind for a text.
func (k kind) asked(ctx context.Context, text string) (souvenir.Query, error) {
	vectors, err := souvenir.Builtin().Embed(ctx, souvenir.ForQuery, []string{text})
	if err != nil {
		return souvenir.Query{}, err
	}
	q := k.query(text, vectors[0])
	q.Limit, q.Explain = 10, true
	return q, nil
}

// answers are the ids and the number of all results, by kind and text.
type answers map[string][]answer

type answer struct {
	ids   []string
	total int
}

// search searches with all texts, and reports the durations and the way.
func (k kind) search(ctx context.Context, store *souvenir.Store, texts []string) (all []answer, took []time.Duration,
	ways map[souvenir.SearchPlan]int, err error) {
	ways = map[souvenir.SearchPlan]int{}
	for _, text := range texts {
		q, err := k.asked(ctx, text)
		if err != nil {
			return nil, nil, nil, err
		}
		start := time.Now()
		found, err := store.Search(ctx, q)
		if err != nil {
			return nil, nil, nil, err
		}
		took = append(took, time.Since(start))
		ways[found.Plan]++
		a := answer{total: found.Total}
		for _, h := range found.Hits {
			a.ids = append(a.ids, h.ID)
		}
		all = append(all, a)
	}
	return all, took, ways, nil
}

// inMemory returns the answers of the index in memory, which compares all vectors.
func inMemory(ctx context.Context, address string, texts []string) (want answers, err error) {
	store, err := postgres.Open(ctx, address, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	start := time.Now()
	if err := store.Upkeep().LoadIndex(ctx); err != nil {
		return nil, err
	}
	for {
		overview, err := store.Insights().Overview(ctx, souvenir.OverviewQuery{MemoriesOnly: true, Days: 1})
		if err != nil {
			return nil, err
		}
		if overview.Index == souvenir.IndexInMemory {
			break
		}
		time.Sleep(time.Second)
	}
	fmt.Printf("index in memory after %.1f s\n", time.Since(start).Seconds())
	want = answers{}
	for _, k := range kinds {
		all, took, ways, err := k.search(ctx, store, texts)
		if err != nil {
			return nil, err
		}
		want[k.name] = all
		report(k.name, ways, took)
	}
	return want, nil
}

// compare searches, and reports how many of the ten best results it found.
func compare(ctx context.Context, store *souvenir.Store, texts []string, want answers) error {
	for _, k := range kinds {
		got, took, ways, err := k.search(ctx, store, texts)
		if err != nil {
			return err
		}
		report(k.name, ways, took)
		right, all, first, totals := 0, 0, 0, 0
		for i, w := range want[k.name][:len(got)] {
			for _, id := range w.ids {
				if all++; slices.Contains(got[i].ids, id) {
					right++
				}
			}
			if slices.Equal(got[i].ids, w.ids) {
				first++
			}
			if got[i].total == w.total {
				totals++
			}
		}
		fmt.Printf("%34s recall@10 %.4f, %d of %d with all ten in order, %d with the same number of results\n", "",
			float64(right)/float64(max(all, 1)), first, len(got), totals)
	}
	return nil
}

func report(what string, ways map[souvenir.SearchPlan]int, took []time.Duration) {
	reportTimes(what, fmt.Sprint(ways), took)
}

func reportTimes(what, besides string, took []time.Duration) {
	slices.Sort(took)
	at := func(share int) float64 {
		return float64(took[(len(took)-1)*share/100].Microseconds()) / 1000
	}
	fmt.Printf("%-34s median %.2f ms, p95 %.2f, slowest %.2f %s\n", what, at(50), at(95), at(100), besides)
}
