package index

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"slices"
	"unsafe"

	"github.com/souvenir-ai/souvenir/internal/retrieval/similarity"
)

// ErrSegment is the error of bytes that are not a segment of this version: they are damaged, or another program wrote
// them.
var ErrSegment = errors.New("index: no segment, or a damaged one")

// Segment is a decoded segment. It refers to the bytes that it was made of, which must not change while it is used.
type Segment struct {
	rows      []int64 // each once
	counts    []uint32
	ids       []string
	turns     []segmentTurn // by memory, ascending
	sketches  []byte        // by memory, encoded
	passages  []int64
	spans     []Span
	lengths   []uint32
	wordEnds  []uint32 // by passage
	words     []uint16
	matrices  []segmentMatrix
	postings  frozen
	wordLimit int
}

type segmentTurn struct {
	memory int
	Turn
}

// segmentMatrix is the vectors of one size.
type segmentMatrix struct {
	size, width int // width is 0 without codes
	slots       []uint32
	longest     float64
	rows        []float32
	coarse      []coarse
	upper       []byte // see matrix
	lower       []byte
	fine        []int8
}

// Memories returns the rows of the memories, each once, which the caller must not change.
func (s *Segment) Memories() []int64 { return s.rows }

// Passages returns the number of passages.
func (s *Segment) Passages() int { return len(s.passages) }

// CheckSegment returns ErrSegment if bytes are no segment of this version, or have changed since it was made.
func CheckSegment(data []byte) error {
	end := len(data) - crc32.Size
	if end < len(segmentMagic) || string(data[:len(segmentMagic)]) != segmentMagic ||
		crc32.Checksum(data[:end], castagnoli) != binary.LittleEndian.Uint32(data[end:]) {
		return ErrSegment
	}
	return nil
}

// DecodeSegment reads a segment. Its error is ErrSegment. The rows of words are below wordRows. Its memory is in
// proportion to the number of bytes, even if they are malicious.
func DecodeSegment(data []byte, wordRows int) (*Segment, error) {
	s := new(Segment)
	if err := s.Decode(data, wordRows); err != nil {
		return nil, err
	}
	return s, nil
}

// Decode is DecodeSegment, into the memory of an earlier segment, which is of no use afterwards.
func (s *Segment) Decode(data []byte, wordRows int) error {
	if err := CheckSegment(data); err != nil {
		return err
	}
	r := segmentReader{data: data[len(segmentMagic) : len(data)-crc32.Size], size: len(data) - crc32.Size}
	s.wordLimit = wordRows
	r.memories(s)
	r.passages(s)
	r.vectors(s)
	r.terms(s)
	if r.failed || len(r.data) > 0 {
		return ErrSegment
	}
	return nil
}

// resized returns a slice of n elements, in the memory of s if that is enough. What they hold does not count.
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// segmentReader reads from the front of data. After the first failure it has no data left and returns zeros.
type segmentReader struct {
	data   []byte
	size   int    // of the data from the beginning of the segment on
	before []byte // the last string, which the caller does not change
	failed bool
}

func (r *segmentReader) fail() {
	r.failed, r.data = true, nil
}

// number reads a number up to most.
func (r *segmentReader) number(most int) int {
	if len(r.data) > 0 && r.data[0] < 0x80 && int(r.data[0]) <= most { // the common case
		n := int(r.data[0])
		r.data = r.data[1:]
		return n
	}
	n, size := binary.Uvarint(r.data)
	if size <= 0 || n > uint64(max(most, 0)) || most < 0 {
		r.fail()
		return 0
	}
	r.data = r.data[size:]
	return int(n)
}

// count reads a number of things that take at least some bytes each.
func (r *segmentReader) count(bytes int) int { return r.number(len(r.data) / bytes) }

func (r *segmentReader) difference() int64 {
	n, size := binary.Varint(r.data)
	if size <= 0 {
		r.fail()
		return 0
	}
	r.data = r.data[size:]
	return n
}

// take returns the next bytes; nil if there are not as many.
func (r *segmentReader) take(n int) []byte {
	if n < 0 || n > len(r.data) {
		r.fail()
		return nil
	}
	taken := r.data[:n]
	r.data = r.data[n:]
	return taken
}

// text appends the next string.
func (r *segmentReader) text(to []byte) []byte {
	shared := r.number(min(len(r.before), mostShared))
	rest := r.take(r.number(len(r.data)))
	from := len(to)
	to = append(append(to, r.before[:shared]...), rest...)
	r.before = to[from:]
	return to
}

// length reads a finite number that is not negative.
func (r *segmentReader) length() float64 {
	b := r.take(8)
	if b == nil {
		return 0
	}
	x := math.Float64frombits(binary.LittleEndian.Uint64(b))
	if !(x >= 0 && x <= math.MaxFloat64) {
		r.fail()
		return 0
	}
	return x
}

// floats reads finite numbers that are at least a value.
func (r *segmentReader) floats(n int, least float32) []float32 {
	b := r.take(4 * n)
	if b == nil {
		return nil
	}
	list := make([]float32, n)
	for i := range list {
		list[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		if !(list[i] >= least && list[i] <= math.MaxFloat32) {
			r.fail()
			return nil
		}
	}
	return list
}

func (r *segmentReader) memories(s *Segment) {
	memories := r.count(4)
	passages := r.count(4)
	s.rows, s.counts, s.ids = resized(s.rows, memories), resized(s.counts, memories), resized(s.ids, memories)
	row, ascending := int64(0), true
	for i := range s.rows {
		before := row
		row += r.difference() // what overflows is another row
		ascending = ascending && (i == 0 || row > before)
		s.rows[i] = row
	}
	if !ascending && hasTwice(s.rows) {
		r.fail()
	}
	left := passages
	for i := range s.counts {
		n := r.number(left)
		if n == 0 {
			r.fail()
			return
		}
		s.counts[i] = uint32(n)
		left -= n
	}
	if left != 0 {
		r.fail()
		return
	}
	r.texts(s.ids)
	s.turns = resized(s.turns, r.count(12))
	next, at := 0, int64(0)
	for i := range s.turns {
		t := &s.turns[i]
		t.memory = next + r.number(memories-next-1)
		next = t.memory + 1
		if b := r.take(8); b != nil {
			t.Conversation = int64(binary.LittleEndian.Uint64(b))
		}
		at += r.difference()
		t.At = at
		t.Asks = r.number(1) == 1
		t.Speaker = string(r.text(nil))
		if r.failed {
			return
		}
	}
	s.sketches = r.take(similarity.SketchBytes * memories)
	if r.failed {
		return
	}
	s.passages = resized(s.passages, passages)
}

// texts reads strings, which share one piece of memory.
func (r *segmentReader) texts(to []string) {
	if len(to) == 0 {
		return
	}
	all := r.text(nil)
	ends := make([]int, len(to))
	ends[0] = len(all)
	// Most ids have one length. A string takes two bytes at least, so this is in proportion to the data.
	all = slices.Grow(all, min(len(all)*(len(to)-1), mostShared*len(r.data)/2))
	for i := range ends[1:] {
		all = r.text(all)
		ends[1+i] = len(all)
	}
	whole, from := unsafe.String(unsafe.SliceData(all), len(all)), 0
	for i, end := range ends {
		to[i] = whole[from:end]
		from = end
	}
}

func hasTwice(rows []int64) bool {
	sorted := slices.Sorted(slices.Values(rows))
	return len(slices.Compact(sorted)) < len(rows)
}

func (r *segmentReader) passages(s *Segment) {
	if r.failed {
		return
	}
	n := len(s.passages)
	passage := int64(0)
	for i := range s.passages {
		passage += r.difference()
		s.passages[i] = passage
	}
	s.spans = resized(s.spans, n)
	for i := range s.spans {
		start := r.number(math.MaxUint32)
		end := int64(start) + r.difference()
		if end < 0 || end > math.MaxUint32 {
			r.fail()
			return
		}
		s.spans[i] = Span{uint32(start), uint32(end)}
	}
	s.lengths = resized(s.lengths, n)
	for i := range s.lengths {
		s.lengths[i] = uint32(r.number(math.MaxUint32))
	}
	s.wordEnds = resized(s.wordEnds, n)
	end := 0
	for i := range s.wordEnds {
		end += r.number(len(r.data))
		if end > len(r.data) {
			r.fail()
			return
		}
		s.wordEnds[i] = uint32(end)
	}
	if (r.size-len(r.data))%2 == 1 {
		r.take(1)
	}
	s.words = rowsOfWords(r.take(2 * end))
	for _, row := range s.words {
		if int(row) >= s.wordLimit {
			r.fail()
			return
		}
	}
}

// rowsOfWords reads rows, where they are if this machine holds numbers in the same way.
func rowsOfWords(b []byte) []uint16 {
	at := unsafe.Pointer(unsafe.SliceData(b))
	if n := uint16(1); *(*byte)(unsafe.Pointer(&n)) == 1 && uintptr(at)%2 == 0 {
		return unsafe.Slice((*uint16)(at), len(b)/2)
	}
	rows := make([]uint16, len(b)/2)
	for i := range rows {
		rows[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return rows
}

func (r *segmentReader) vectors(s *Segment) {
	s.matrices = resized(s.matrices, r.count(12))
	for i := range s.matrices {
		m := &s.matrices[i]
		m.size = r.number(len(r.data))
		m.width = r.number(len(r.data) + roundUp(m.size, 64))
		n := r.number(min(len(s.passages), len(r.data)))
		if m.size == 0 || n == 0 || m.width != 0 && m.width != codeWidth(m.size) {
			r.fail()
			return
		}
		m.slots = resized(m.slots, n)
		next := 0
		for j := range m.slots {
			m.slots[j] = uint32(next + r.number(len(s.passages)-next-1))
			next = int(m.slots[j]) + 1
		}
		m.longest = r.length()
		if m.size > len(r.data)/n { // a number takes a byte at least
			r.fail()
			return
		}
		if m.width == 0 {
			m.rows = r.floats(n*m.size, -math.MaxFloat32)
			continue
		}
		meanings := r.floats(3*n, 0)
		if meanings == nil {
			return
		}
		m.coarse = resized(m.coarse, n)
		for j := range m.coarse {
			m.coarse[j] = coarse{meanings[3*j], meanings[3*j+1], meanings[3*j+2]}
		}
		m.upper = r.take(n * m.width / 2)
		m.lower = r.take(n * m.width / 2)
		m.fine = r.codes(n * m.width)
		if r.failed {
			return
		}
	}
}

// codes takes numbers of one byte, without copying them.
func (r *segmentReader) codes(n int) []int8 {
	b := r.take(n)
	return unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(b))), len(b))
}

func (r *segmentReader) terms(s *Segment) {
	s.postings.groups = r.bytes()
	s.postings.terms = r.bytes()
	s.postings.lists = r.bytes()
	if len(s.postings.groups)%groupBytes != 0 {
		r.fail()
	}
}

// bytes reads bytes after their number.
func (r *segmentReader) bytes() []byte {
	b := r.take(r.number(len(r.data)))
	return b[:len(b):len(b)]
}
