// Package ranking decides which memories answer a question best. It is one pipeline for every way in which memories are
// found: the index in memory, and the search in the database.
//
//  1. The candidates are found by words and by meaning, and scored by [Fuse]: the best [Depth] of them go on.
//  2. Their neighbourhoods are read: what was said right before and after them in the same conversation.
//  3. Evidence is added up for each of them and for its next neighbours: what it says itself (own.go: words, meaning,
//     late interaction), and what stands around it (conversation.go).
//  4. They are put in order ([Ranking.Rank]), before all other candidates.
//
// Each step is a pure function of its arguments. docs/retrieval.md shows what each part gains, and
// docs/retrieval-experiments.md what did not help.
package ranking

import "math"

// Weights say how much each kind of evidence counts. Evidence is between 0 and 1.
type Weights struct {
	// A memory by itself: own = (Words * words + Meaning * meaning + Late * late) / (their sum); evidence that a query
	// lacks, such as a vector, is left out of the sum.
	Words   float32 // BM25 as a fraction of the best that the query's words could reach
	Meaning float32 // cosine of the vectors, if above 0
	Late    float32 // late interaction, see internal/embedding/static

	// The same for a memory outside conversations. Turns are short; in longer texts the best window says less.
	AloneMeaning, AloneLate float32

	// OtherMeaning is AloneMeaning where the vectors are those of an embedder of the caller's own, which says more than
	// the built-in model.
	OtherMeaning float32

	// Known is the exponent of [Question.Known], which Meaning and Late are multiplied by: where the built-in model
	// knows few of the query's words, as in most languages except English, words decide. 0 = no effect.
	Known float32

	// A memory in a conversation gains from the own evidence of others in it. All of this is divided by 1 + Near +
	// Around. For a memory without a conversation, Near and Around count its own evidence, so that both are comparable.
	Before, Before2 float32 // of the one before it, and of the one before that
	After, After2   float32 // of those after it
	Answer          float32 // of the one before it, if that one asks
	Near, Around    float32 // of the best within NearReach and AroundReach places, itself included
	Asking          float32 // of itself, 1 if it asks
	Speaker         float32 // 1 if the query names its speaker

	// In a chat people send several messages in a row, answer late and talk about several things at once. Chat says how
	// much less Before, Before2, After, After2 and Near count where all messages around are by the same speaker, and Same
	// how much the one before it counts less if that is by the same speaker.
	Chat, Same float32
}

// The reach of Near and Around in places to both sides.
const (
	NearReach   = 3
	AroundReach = 8
)

// leastMeaning is the cosine above which a memory without a word of the query is compared token by token.
const leastMeaning = 0.1

// leastOwn is the weighted evidence by words and meaning from which on a neighbour of a candidate is compared token by
// token. A neighbour with less lends little in any case.
const leastOwn = 0.05

// Depth is how many candidates are ranked with all evidence, and nextTo how many places on each side of them.
const (
	Depth  = 30
	nextTo = 2
)

// Reach is how far evidence reaches in a conversation, in places to both sides of a candidate.
const Reach = nextTo + AroundReach

// Default are the weights of searches. Those of a memory by itself were fitted on the development part of LoCoMo,
// those of conversations on it and on that of REALTALK together; Chat and Same tell the two apart.
var Default = Weights{
	Words: 0.65, Meaning: 0.35, Late: 0.30, AloneMeaning: 0.45, AloneLate: 0.20,
	OtherMeaning: 0.55, Known: 1,
	Before: 0.05, Before2: 0.23, After: 0.20, After2: 0.06, Answer: 0.50, Near: 0.32, Around: 0.42,
	Asking: -0.06, Speaker: 0.10, Chat: 0.3, Same: 0.22,
}

// For returns the weights for a question. builtin reports whether the compared vectors are the built-in model's;
// [Question.Known] only applies to these, and OtherMeaning to all others.
func (w Weights) For(q Question, builtin bool) Weights {
	known := float32(math.Pow(float64(q.Known), float64(w.Known)))
	if builtin {
		w.Meaning, w.AloneMeaning = w.Meaning*known, w.AloneMeaning*known
	} else {
		w.AloneMeaning = w.OtherMeaning
	}
	w.Late, w.AloneLate = w.Late*known, w.AloneLate*known
	return w
}
