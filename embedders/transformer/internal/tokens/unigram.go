package tokens

import (
	"fmt"
	"math"
	"unicode/utf8"
)

const (
	maxVocabulary = 4_000_000
	longestPiece  = 1024 // bytes
	// unknownPenalty is subtracted from the score of the least likely piece for an unknown character.
	unknownPenalty = 10
)

// unigram cuts a text into the most likely pieces: a piece's score is the logarithm of its probability.
type unigram struct {
	ids     map[string]int32
	scores  []float64 // by id
	unknown int32
	penalty float64
	longest int // bytes of the longest piece
	count   int
	single  bool // scores are added in float32, as SentencePiece does
}

// newUnigram makes the model from pieces in the order of their ids; matched reports which of them may occur in texts.
func newUnigram(pieces []string, scores []float64, matched []bool, unknown int) (*unigram, error) {
	if unknown < 0 || unknown >= len(pieces) {
		return nil, fmt.Errorf("unk_id is %d; expected the id of one of the %d pieces", unknown, len(pieces))
	}
	u := &unigram{ids: make(map[string]int32, len(pieces)), scores: scores, unknown: int32(unknown), count: len(pieces)}
	least := math.Inf(1)
	for i, piece := range pieces {
		if len(piece) > longestPiece {
			return nil, fmt.Errorf("piece %d has %d bytes; expected at most %d", i, len(piece), longestPiece)
		}
		if math.IsNaN(scores[i]) || math.IsInf(scores[i], 0) {
			return nil, fmt.Errorf("piece %d has the score %v; expected a finite number", i, scores[i])
		}
		if len(matched) == len(pieces) && !matched[i] {
			continue
		}
		least = min(least, scores[i])
		if piece != "" {
			u.ids[piece] = int32(i)
			u.longest = max(u.longest, len(piece))
		}
	}
	u.penalty = least - unknownPenalty
	return u, nil
}

func (u *unigram) size() int { return u.count }

// node is the best way to cut a text up to a place.
type node struct {
	score float64
	from  int32 // where the last piece begins; -1: no way yet
	id    int32
}

// encode finds the best way to cut the text, from left to right (Viterbi). Adjacent unknown characters become one
// unknown piece.
func (u *unigram) encode(ids []int32, text string) []int32 {
	if id, ok := u.ids[text]; ok && utf8.RuneCountInString(text) == 1 {
		return append(ids, id)
	}
	best := make([]node, len(text)+1)
	for i := 1; i < len(best); i++ {
		best[i].from = -1
	}
	for at := 0; at < len(text); {
		_, width := utf8.DecodeRuneInString(text[at:])
		single, here := false, best[at].score
		for end := at + width; end <= len(text) && end-at <= u.longest; end++ {
			if end < len(text) && !utf8.RuneStart(text[end]) {
				continue
			}
			id, ok := u.ids[text[at:end]]
			if !ok {
				continue
			}
			best[end].offer(u.sum(here, u.scores[id]), at, id)
			single = single || end == at+width
		}
		if !single {
			best[at+width].offer(u.sum(here, u.penalty), at, u.unknown)
		}
		at += width
	}
	begin := len(ids)
	for end := len(text); end > 0; end = int(best[end].from) {
		if id := best[end].id; id != u.unknown || len(ids) == begin || ids[len(ids)-1] != u.unknown {
			ids = append(ids, id)
		}
	}
	for i, j := begin, len(ids)-1; i < j; i, j = i+1, j-1 {
		ids[i], ids[j] = ids[j], ids[i]
	}
	return ids
}

func (u *unigram) sum(a, b float64) float64 {
	if u.single {
		return float64(float32(a) + float32(b))
	}
	return a + b
}

func (n *node) offer(score float64, from int, id int32) {
	if n.from < 0 || score > n.score {
		*n = node{score, int32(from), id}
	}
}
