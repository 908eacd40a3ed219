package main

import (
	"math"
	"math/rand/v2"
	"slices"
)

// metric is a figure of one answer, 0 to 1.
type metric struct {
	name string
	of   func(answer) float64
}

var metrics = []metric{
	{"recall@1", func(a answer) float64 { return a.recall(1) }},
	{"recall@5", func(a answer) float64 { return a.recall(5) }},
	{"recall@10", func(a answer) float64 { return a.recall(10) }},
	{"recall@20", func(a answer) float64 { return a.recall(20) }},
	{"MRR", answer.reciprocalRank},
	{"nDCG@10", answer.ndcg},
}

// main metric: the one in charts and in the list of the largest changes.
var recall10 = metrics[2]

// recall is the share of the question's answers that are among the best k.
func (a answer) recall(k int) float64 {
	n := 0
	for _, rank := range a.Ranks {
		if rank > 0 && rank <= k {
			n++
		}
	}
	return float64(n) / float64(len(a.Ranks))
}

// first is the rank of the first memory that answers the question, 0 for none.
func (a answer) first() int {
	for _, rank := range a.Ranks {
		if rank > 0 {
			return rank
		}
	}
	return 0
}

func (a answer) reciprocalRank() float64 {
	if first := a.first(); first > 0 {
		return 1 / float64(first)
	}
	return 0
}

// ndcg is the discounted gain of the best ten, as a fraction of the best possible (Järvelin & Kekäläinen 2002).
func (a answer) ndcg() float64 {
	var gain, ideal float64
	for _, rank := range a.Ranks {
		if rank > 0 && rank <= 10 {
			gain += 1 / math.Log2(float64(rank)+1)
		}
	}
	for i := range min(10, len(a.Ranks)) {
		ideal += 1 / math.Log2(float64(i)+2)
	}
	return gain / ideal
}

// estimate is a mean with its 95 % interval.
type estimate struct{ mean, low, high float64 }

const (
	resamples = 2000
	seed      = 15
)

// bootstrap returns the mean of values, with the interval of the means of samples drawn from them (Efron 1979). Its
// draws are always the same.
func bootstrap(values []float64) estimate {
	if len(values) == 0 {
		return estimate{}
	}
	random := rand.New(rand.NewPCG(seed, uint64(len(values))))
	means := make([]float64, resamples)
	for i := range means {
		sum := 0.0
		for range values {
			sum += values[random.IntN(len(values))]
		}
		means[i] = sum / float64(len(values))
	}
	slices.Sort(means)
	return estimate{mean(values), means[resamples*25/1000], means[resamples*975/1000-1]}
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// values returns a metric of each answer.
func (m metric) values(answers []answer) []float64 {
	values := make([]float64, len(answers))
	for i, a := range answers {
		values[i] = m.of(a)
	}
	return values
}

// groupBy returns the answers by a key, in their order.
func groupBy(answers []answer, key func(answer) string) map[string][]answer {
	groups := map[string][]answer{}
	for _, a := range answers {
		groups[key(a)] = append(groups[key(a)], a)
	}
	return groups
}

// order returns the keys in the order of their first answers.
func order(answers []answer, key func(answer) string) []string {
	var keys []string
	seen := map[string]bool{}
	for _, a := range answers {
		if k := key(a); !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	return keys
}
