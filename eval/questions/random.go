package questions

import "hash/fnv"

// random is SplitMix64 (Steele, Lea & Flood 2014): the same numbers in every version of Go.
type random struct{ state uint64 }

func newRandom(name string) *random {
	h := fnv.New64a()
	h.Write([]byte(name))
	return &random{h.Sum64()}
}

func (r *random) next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (r *random) intn(n int) int { return int((r.next() >> 33) % uint64(n)) }

func (r *random) shuffle(n int, swap func(i, j int)) {
	for i := n - 1; i > 0; i-- {
		swap(i, r.intn(i+1))
	}
}

func (r *random) permutation(n int) []int {
	places := make([]int, n)
	for i := range places {
		places[i] = i
	}
	r.shuffle(n, func(i, j int) { places[i], places[j] = places[j], places[i] })
	return places
}

func (r *random) permuted(values []string) []string {
	out := make([]string, len(values))
	for i, at := range r.permutation(len(values)) {
		out[i] = values[at]
	}
	return out
}
