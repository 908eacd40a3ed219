package similarity

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"
	"unsafe"

	"github.com/souvenir-ai/souvenir/internal/simd"
)

// SketchVersion is the version of the content of sketches. It changes when the tokens of a text do.
const SketchVersion = 1

// Sketch summarizes the words of a text in a few bytes. It rules out nearly all texts that do not say the same as
// another one. The zero value is the sketch of no text, and similar to none.
type Sketch struct {
	Words   Words
	Whole   uint32 // a hash of the whole text without regard to case, above 0; 0 if it is too long for that
	Content uint16 // tokens that are not function words, at most maxTokens
	Facts   uint8  // different numbers, names and words that begin sentences, at most 255
	Wide    bool   // most of it is in a script without spaces
}

// Words has a bit for each word, which several words may share.
type Words [2]uint64

// functionBits is the number of bits reserved for function words, which are in most texts.
const functionBits = 16

func (w *token) isFact() bool { return w.number || w.name || w.initial }

func (w *Words) add(at uint32)      { w[at/64] |= 1 << (at % 64) }
func (w *Words) has(at uint32) bool { return w[at/64]>>(at%64)&1 == 1 }

// common counts the bits in common.
func (w *Words) common(x *Words) int {
	return bits.OnesCount64(w[0]&x[0]) + bits.OnesCount64(w[1]&x[1])
}

// bitOf returns the bit of a word.
func bitOf(word string) uint32 {
	h := uint32(2166136261) // FNV-1a, whose upper bits are then mixed into the lower ones
	for i := range len(word) {
		h = (h ^ uint32(word[i])) * 16777619
	}
	h = (h ^ h>>15) * 0x2c1b3c6d
	h ^= h >> 12
	if first, size := utf8.DecodeRuneInString(word); functionWords[word] || size == len(word) && wideParticles[first] {
		return h % functionBits
	}
	return functionBits + h%(64*uint32(len(Words{}))-functionBits)
}

// SketchOf returns the sketch of a text.
func SketchOf(t Text) Sketch {
	facts := uint8(min(len(t.facts()), math.MaxUint8))
	s := Sketch{Whole: t.whole(), Content: uint16(t.content), Facts: facts, Wide: t.wide}
	for w := range t.words {
		s.Words.add(bitOf(w))
	}
	return s
}

// SketchBytes is the size of a stored sketch in bytes.
const SketchBytes = 24

// Append appends the bytes of a sketch.
func (s *Sketch) Append(to []byte) []byte {
	for _, w := range s.Words {
		to = binary.LittleEndian.AppendUint64(to, w)
	}
	to = binary.LittleEndian.AppendUint32(to, s.Whole)
	to = append(binary.LittleEndian.AppendUint16(to, s.Content), s.Facts, 0)
	if s.Wide {
		to[len(to)-1] = 1
	}
	return to
}

// DecodeSketch decodes a sketch from the first SketchBytes bytes.
func DecodeSketch(b []byte) (s Sketch) {
	for i := range s.Words {
		s.Words[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	s.Whole, s.Content = binary.LittleEndian.Uint32(b[16:]), binary.LittleEndian.Uint16(b[20:])
	s.Content = min(s.Content, maxTokens)
	s.Facts, s.Wide = b[22], b[23] != 0
	return s
}

// facts returns the words that may count as facts in common.
func (t Text) facts() map[string]bool {
	var facts map[string]bool
	for i := range t.tokens {
		if w := &t.tokens[i]; w.isFact() {
			if facts == nil {
				facts = map[string]bool{}
			}
			facts[w.text] = true
		}
	}
	return facts
}

// whole returns a number that is the same for texts that differ only in case.
func (t Text) whole() uint32 {
	if t.truncated {
		return 0
	}
	h := uint32(2166136261)
	for _, r := range strings.TrimSpace(t.source) {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		h = (h ^ uint32(least)) * 16777619
	}
	return max(h, 1)
}

// Probe reports, for sketches, whether their texts may say the same as a given text.
type Probe struct {
	sketch  Sketch
	least   float64 // the evidence from which texts count
	content Words   // of the tokens that are not function words
	again   []Words // of words that occur twice or share a bit, then three times, and so on
	more    int     // tokens that are only in again, or occur more often than it records
	rest    int     // of these, the latter
	facts   Words
	hidden  int // facts whose bit is that of another one
	beside  int // words whose bit is that of another one

	sieve simd.Sieve // holds need plus one; 0 = unknown
}

// mostFacts is the largest number of facts that a scan distinguishes; more count as this many.
const mostFacts = simd.SieveCounts - 1

// mostAgain limits Probe.again.
const mostAgain = 8

// NewProbe returns a probe for texts that say the same as t with a probability of at least least, above 0 and below 1.
func NewProbe(t Text, least float64) *Probe {
	least -= 1e-6 // callers may round
	p := &Probe{sketch: SketchOf(t), least: math.Log(least / (1 - least))}
	p.beside = len(t.words) - p.sketch.Words.common(&p.sketch.Words)
	for _, w := range t.tokens {
		if !w.function {
			p.take(bitOf(w.text))
		}
	}
	for w := range t.facts() {
		at := bitOf(w)
		if p.facts.has(at) {
			p.hidden++
		}
		p.facts.add(at)
	}
	p.sieve.First, p.sieve.Second, p.sieve.Number = p.content[0], p.content[1], uint64(p.sketch.Whole)
	p.sieve.More, p.sieve.Count = int64(p.more)+1, int64(p.sketch.Facts)
	return p
}

// take adds a token that is not a function word.
func (p *Probe) take(at uint32) {
	if !p.content.has(at) {
		p.content.add(at)
		return
	}
	p.more++
	for i := range mostAgain {
		if i == len(p.again) {
			p.again = append(p.again, Words{})
		}
		if !p.again[i].has(at) {
			p.again[i].add(at)
			return
		}
	}
	p.rest++
}

// kind identifies sketches with the same need for a number of facts in common.
func (s *Sketch) kind(facts uint8) int {
	kind := int(s.Content)
	if s.Wide {
		kind += simd.SieveSizes
	}
	return (int(facts)*2*simd.SieveSizes + kind) % (simd.SieveCounts * 2 * simd.SieveSizes)
}

// need returns the minimum number of tokens that a text must share with the given one, if they share at most a number
// of facts.
func (p *Probe) need(s *Sketch, facts uint8) int32 {
	inCommon := int(facts)
	if facts == mostFacts {
		inCommon = math.MaxInt32
	}
	for common := range int(min(p.sketch.Content, s.Content)) + 1 {
		if p.evidence(s, common, inCommon, 1) >= p.least {
			return int32(common)
		}
	}
	return math.MaxInt32 - 1
}

// common returns an upper bound of the tokens that a text shares with the given one.
func (p *Probe) common(s *Sketch) int {
	common := s.Words.common(&p.content) + p.rest
	for i := range p.again {
		common += s.Words.common(&p.again[i])
	}
	return common
}

// evidence returns an upper bound of the sum of evidence, given those of the common words, of the common facts, and of
// the cosine.
func (p *Probe) evidence(s *Sketch, common, factsInCommon int, similarity float64) (sum float64) {
	var e evidence
	e[bias], e[cosine] = 1, similarity
	ours, theirs := int(p.sketch.Content), int(s.Content)
	common = min(common, ours, theirs)
	if smaller := min(ours, theirs); smaller > 0 {
		e[overlap] = float64(common) / float64(smaller)
		e[dice] = 2 * float64(common) / float64(ours+theirs)
	}
	e[facts] = e[overlap] * (1 - 1/float64(1+factsInCommon))
	if ours == theirs && common == ours {
		e[exact] = 1
	}
	if p.sketch.Wide || s.Wide {
		e[wideCosine], e[wideBias], e[wideDice] = e[cosine], 1, e[dice]
	}
	for i, x := range e {
		sum += weights[i] * x
	}
	return sum
}

// siftAtOnce is the number of sketches in one call of the sieve, which learns the needs of new kinds between calls.
const siftAtOnce = 512

// Scan appends the places of the sketches whose texts may be like the given one if their vectors are equal.
func (p *Probe) Scan(sketches []Sketch, places []int32) []int32 {
	from := 0
	if simd.Fast() {
		var marks [siftAtOnce / 8]byte
		for len(sketches)-from >= 8 {
			some := sketches[from : from+min(siftAtOnce, (len(sketches)-from)/8*8)]
			p.sieve.Sift(bytesOf(some), marks[:])
			for i, mark := range marks[:len(some)/8] {
				for ; mark != 0; mark &= mark - 1 {
					if at := 8*i + bits.TrailingZeros8(mark); p.passes(&some[at]) {
						places = append(places, int32(from+at))
					}
				}
			}
			from += len(some)
		}
	}
	for i := range sketches[from:] {
		if p.passes(&sketches[from+i]) {
			places = append(places, int32(from+i))
		}
	}
	return places
}

// bytesOf returns sketches as the bytes that a sieve reads. Machines with a fast one have this byte order.
func bytesOf(sketches []Sketch) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(sketches))), len(sketches)*int(unsafe.Sizeof(Sketch{})))
}

// passes reports whether the text of a sketch may be like the given one if their vectors are equal.
func (p *Probe) passes(s *Sketch) bool {
	facts := min(max(p.sketch.Facts, s.Facts), mostFacts) // a fact in common is one of either text
	need := &p.sieve.Needs[s.kind(facts)]
	if *need == 0 {
		*need = p.need(s, facts) + 1
	}
	common := bits.OnesCount64(s.Words[0]&p.content[0]) + bits.OnesCount64(s.Words[1]&p.content[1])
	if s.Whole != p.sketch.Whole && (common+p.more < int(*need-1) || p.common(s) < int(*need-1)) {
		return false
	}
	return p.May(s, 1)
}

// May reports whether a text may be like the given one, given its sketch and the cosine similarity of their vectors, or
// an upper bound of it.
func (p *Probe) May(s *Sketch, similarity float64) bool {
	if s.Whole == p.sketch.Whole && s.Whole != 0 {
		return true
	}
	// A word that begins a sentence counts as a fact, and may be an ordinary word in the other text.
	ours := s.Words.common(&p.facts) + p.hidden
	theirs := s.Words.common(&p.sketch.Words) + p.beside
	if s.Facts < math.MaxUint8 {
		theirs = min(theirs, int(s.Facts))
	}
	return p.evidence(s, p.common(s), max(ours, theirs), similarity) >= p.least
}
