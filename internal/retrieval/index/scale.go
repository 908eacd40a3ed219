package index

import (
	"math/rand/v2"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/simd"
)

// Scale makes cosines comparable between groups of vectors, such as the texts of a language: a model places the texts
// of one language closer together than those of another, related or not. Create one with [NewScale]. It is not safe
// for concurrent use.
type Scale struct {
	vectors []float32
	size    int
	groups  []int
	members [][]int32
	levels  map[[2]int]scaleLevel
}

// scaleLevel are the cosines that mean 0 and 0.5.
type scaleLevel struct{ unrelated, related float32 }

const (
	scaleMembers = 24   // vectors of a group, below which all groups together are the measure
	scaleSample  = 2000 // pairs

	// allVectors stands for the vectors of all groups.
	allVectors = -1
)

// usualScale is the measure for few vectors: about that of the built-in model for English.
var usualScale = scaleLevel{0.1, 0.5}

// NewScale returns the scale of vectors of unit length and one size, stored one after another, whose groups have the
// numbers 0 to below count.
func NewScale(vectors []float32, size int, groups []int, count int) *Scale {
	s := &Scale{vectors: vectors, size: size, groups: groups, members: make([][]int32, count),
		levels: map[[2]int]scaleLevel{}}
	for i, group := range groups {
		s.members[group] = append(s.members[group], int32(i))
	}
	return s
}

// Of returns how similar two vectors are, by their places, given their cosine: 0 for two that have nothing to do with
// each other, 0.5 four standard deviations above that, which hardly happens by chance, and 1 for equal ones. It is less
// than 0, but at least -1, for texts that differ more than most.
func (s *Scale) Of(a, b int, cosine float32) float32 {
	level := s.level(s.groups[a], s.groups[b])
	if cosine <= level.related {
		return max((cosine-level.unrelated)/(level.related-level.unrelated)/2, -1)
	}
	return min(0.5+(cosine-level.related)/(1-level.related)/2, 1)
}

// level returns the measure for vectors of two groups.
func (s *Scale) level(a, b int) scaleLevel {
	key := [2]int{min(a, b), max(a, b)}
	if level, known := s.levels[key]; known {
		return level
	}
	var level scaleLevel
	switch {
	case a == allVectors:
		level = usualScale
		if len(s.groups) >= scaleMembers {
			level = s.measure(nil, nil)
		}
	case len(s.members[a]) < scaleMembers || len(s.members[b]) < scaleMembers:
		level = s.level(allVectors, allVectors)
	default:
		level = s.measure(s.members[key[0]], s.members[key[1]])
	}
	s.levels[key] = level
	return level
}

// measure estimates the mean and the standard deviation of the cosines of vectors that have nothing to do with each
// other, from the lower quarter of random pairs: the upper part has the pairs of one subject. Nil stands for all.
func (s *Scale) measure(a, b []int32) scaleLevel {
	random := rand.New(rand.NewPCG(11, 13))
	pick := func(from []int32) int {
		if from == nil {
			return random.IntN(len(s.groups))
		}
		return int(from[random.IntN(len(from))])
	}
	cosines := make([]float32, 0, scaleSample)
	dot := simd.DotFloats
	for range scaleSample {
		x, y := pick(a), pick(b)
		if x != y {
			cosines = append(cosines, dot(s.vectors[x*s.size:(x+1)*s.size], s.vectors[y*s.size:(y+1)*s.size]))
		}
	}
	slices.Sort(cosines)
	// Of a normal distribution, a quarter is below the mean - 0.674 deviations, and a twentieth below it - 1.645.
	quarter, twentieth := cosines[len(cosines)/4], cosines[len(cosines)/20]
	deviation := (quarter - twentieth) / (1.645 - 0.674)
	level := scaleLevel{unrelated: min(max(quarter+0.674*deviation, -0.5), 0.95)}
	room := 1 - level.unrelated
	level.related = level.unrelated + min(max(4*deviation, 0.1*room), 0.8*room)
	return level
}
