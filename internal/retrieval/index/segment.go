package index

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"
)

// A segment is the index of some memories of a partition, as bytes to store. Loading it decodes short lists, and copies
// its vectors and postings as they are; it analyses no text and encodes no vector. All numbers are in little endian; a
// count or difference is a varint. In order:
//
//   - segmentMagic, the numbers of memories and of passages,
//   - of the memories, in the order of their passages: rows, numbers of passages, ids, turns, sketches,
//   - of the passages: ids, spans, numbers of terms, rows of words, which begin at an even place,
//   - the matrices of vectors: which passages have one, what is held of them,
//   - the postings, see frozen,
//   - the CRC-32C of all that.

// SegmentVersion is the version of the format.
const SegmentVersion = 5

// segmentMagic begins every segment.
const segmentMagic = "svix" + string(rune(SegmentVersion))

// mostShared limits how much of a string is taken from the one before it, so that malicious bytes cannot stand for much
// more text than they are.
const mostShared = 40

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// EncodeSegment returns memories of one partition as a segment. Those without passages are left out. Of several with
// one row the last counts.
func EncodeSegment(memories []Memory) Encoded {
	ix := New()
	ix.putSorted(memories)
	return ix.encoded()
}

// putSorted puts memories in the order of their rows, which takes less space in a segment.
func (ix *Index) putSorted(memories []Memory) {
	memories = slices.Clone(memories)
	slices.SortStableFunc(memories, func(a, b Memory) int { return cmp.Compare(a.Row, b.Row) })
	ix.Put(memories...)
}

// MergeSegments returns the memories of some segments as one segment, except the rows that skip selects; nil = skips
// none. Of several memories with one row, the one in the last segment counts. The error is ErrSegment if an index of
// this machine holds vectors in another way.
func MergeSegments(segments []*Segment, skip func(row int64) bool) (Encoded, error) {
	ix := New()
	for _, s := range segments {
		if err := ix.PutSegment(0, s, skip); err != nil {
			return Encoded{}, err
		}
	}
	return ix.encoded(), nil
}

// Encoded is an encoded segment, and the values that are stored with it.
type Encoded struct {
	Data        []byte
	Memories    int   // in it; 0: there is no need to store it
	First, Last int64 // the lowest and the highest of their rows
}

// encoded encodes all memories, which are in one partition.
func (ix *Index) encoded() Encoded {
	e := Encoded{Memories: ix.memories.count, First: math.MaxInt64, Last: math.MinInt64}
	for m := range ix.memories.all {
		e.First, e.Last = min(e.First, m.row), max(e.Last, m.row)
	}
	e.Data = ix.segment()
	return e
}

// KeepsCodes reports whether indexes of this machine keep the vectors of a usual size as codes. The segments of a
// machine that does not are of no use to others.
func KeepsCodes() bool { return fastestCoarse() != nil }

// segment encodes the only partition, if there is one.
func (ix *Index) segment() []byte {
	w := segmentWriter{data: []byte(segmentMagic), p: &partition{}}
	for _, p := range ix.partitions { // one or none
		w.p = p
		if p.dead > 0 {
			p.compact()
		}
	}
	w.memories()
	w.passages()
	w.vectors()
	w.terms()
	return binary.LittleEndian.AppendUint32(w.data, crc32.Checksum(w.data, castagnoli))
}

type segmentWriter struct {
	p      *partition
	data   []byte
	before string // the last string
}

func (w *segmentWriter) number(n int)       { w.data = binary.AppendUvarint(w.data, uint64(n)) }
func (w *segmentWriter) difference(n int64) { w.data = binary.AppendVarint(w.data, n) }

// text writes a string as the length of the prefix that it shares with the last one, and the rest.
func (w *segmentWriter) text(s string) {
	shared, most := 0, min(len(s), len(w.before), mostShared)
	for shared < most && s[shared] == w.before[shared] {
		shared++
	}
	w.number(shared)
	w.number(len(s) - shared)
	w.data = append(w.data, s[shared:]...)
	w.before = s
}

func (w *segmentWriter) memories() {
	var list []*memory
	for _, m := range w.p.owners {
		if n := len(list); n == 0 || list[n-1] != m {
			list = append(list, m)
		}
	}
	w.number(len(list))
	w.number(len(w.p.owners))
	row := int64(0)
	for _, m := range list {
		w.difference(m.row - row)
		row = m.row
	}
	for _, m := range list {
		w.number(int(m.count))
	}
	for _, m := range list {
		w.text(m.id)
	}
	w.number(w.p.turns)
	next, at := 0, int64(0)
	for i, m := range list {
		if m.turn == nil {
			continue
		}
		w.number(i - next)
		next = i + 1
		w.data = binary.LittleEndian.AppendUint64(w.data, uint64(m.turn.Conversation))
		w.difference(m.turn.At - at)
		at = m.turn.At
		asks := 0
		if m.turn.Asks {
			asks = 1
		}
		w.number(asks)
		w.text(m.turn.Speaker)
	}
	for _, m := range list {
		w.data = w.p.sketches[m.first].Append(w.data)
	}
}

func (w *segmentWriter) passages() {
	before := int64(0)
	for _, passage := range w.p.passages {
		w.difference(passage - before)
		before = passage
	}
	for _, span := range w.p.spans {
		w.number(int(span.Start))
		w.difference(int64(span.End) - int64(span.Start))
	}
	for _, length := range w.p.lengths {
		w.number(int(length))
	}
	for slot := range w.p.owners {
		w.number(len(w.p.words.of(uint32(slot))))
	}
	if len(w.data)%2 == 1 {
		w.data = append(w.data, 0) // so that what follows can be read where it is
	}
	for slot := range w.p.owners {
		for _, row := range w.p.words.of(uint32(slot)) {
			w.data = binary.LittleEndian.AppendUint16(w.data, row)
		}
	}
}

func (w *segmentWriter) vectors() {
	w.number(len(w.p.matrices))
	for _, m := range w.p.matrices {
		w.number(m.size)
		w.number(m.fine.width) // 0: without codes
		w.number(len(m.slots))
		next := uint32(0)
		for _, slot := range m.slots {
			w.number(int(slot - next))
			next = slot + 1
		}
		w.data = binary.LittleEndian.AppendUint64(w.data, math.Float64bits(m.longest))
		if m.fine.width == 0 {
			for i := range m.slots {
				w.floats(rowAt(&m.rows, i)...)
			}
			continue
		}
		for _, c := range m.coarse {
			w.floats(c.scale, c.slack, c.rough)
		}
		for _, block := range slices.Concat(m.upper.list, m.lower.list) {
			w.data = append(w.data, block...)
		}
		for _, block := range m.fine.list {
			for _, x := range block {
				w.data = append(w.data, byte(x))
			}
		}
	}
}

func (w *segmentWriter) floats(list ...float32) {
	for _, x := range list {
		w.data = binary.LittleEndian.AppendUint32(w.data, math.Float32bits(x))
	}
}

// bytes writes bytes after their number.
func (w *segmentWriter) bytes(b []byte) {
	w.number(len(b))
	w.data = append(w.data, b...)
}

// terms writes the postings, as if all were frozen as one.
func (w *segmentWriter) terms() {
	f := freeze(0, uint32(len(w.p.owners)), w.p.frozen, &w.p.recent, nil)
	w.bytes(f.groups)
	w.bytes(f.terms)
	w.bytes(f.lists)
}
