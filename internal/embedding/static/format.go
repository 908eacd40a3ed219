package static

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/simd"
)

// The file is read in place: nothing is copied or built at load, so pages that no text needs are never read
// from disk. distill/modelfile.py writes it and describes the layout.
const (
	magic       = "SVNSTAT2"
	headerBytes = 64
	valuesAt    = 44 // of the header
	alignment   = 64
	pageCount   = 0x110000 >> 8
	maxPiece    = 64  // bytes
	maxName     = 128 // bytes

	maxDimensions = 4096
)

// FormatError is the reason why a model file is invalid.
type FormatError struct{ Reason string }

func (e *FormatError) Error() string { return "static model: " + e.Reason }

func malformed(format string, args ...any) error {
	return &FormatError{Reason: fmt.Sprintf(format, args...)}
}

// Load reads a model from data, which must not change afterwards. It checks everything that could make a later
// call fail, except the vectors, where any bytes are valid. The error is a *FormatError.
func Load(data []byte) (*Model, error) {
	if len(data) < headerBytes {
		return nil, malformed("%d bytes, the header alone has %d", len(data), headerBytes)
	}
	if string(data[:8]) != magic {
		return nil, malformed("begins with %q, want %q", data[:8], magic)
	}
	var h [9]int
	for i := range h {
		h[i] = int(uint32At(data[8:], i))
	}
	dimensions, rows, slots, pages, replacements, longest, name, hasQuery, size := h[0], h[1], h[2], h[3], h[4], h[5],
		h[6], h[7], h[8]
	switch {
	case size != len(data):
		return nil, malformed("%d bytes, the header says %d", len(data), size)
	case dimensions == 0 || dimensions%simd.Width != 0 || dimensions > maxDimensions:
		return nil, malformed("%d dimensions, want a multiple of %d up to %d", dimensions, simd.Width, maxDimensions)
	case rows == 0 || rows >= math.MaxUint16:
		return nil, malformed("%d rows, want 1 to %d", rows, math.MaxUint16-1)
	case slots <= rows || slots > 1<<20 || slots&(slots-1) != 0:
		return nil, malformed("%d hash slots for %d rows, want a greater power of two", slots, rows)
	case pages == 0 || pages > pageCount:
		return nil, malformed("%d pages, want 1 to %d", pages, pageCount)
	case replacements > math.MaxUint16-classes:
		return nil, malformed("%d replacements, want at most %d", replacements, math.MaxUint16-classes)
	case longest == 0 || longest > maxPiece:
		return nil, malformed("longest piece of %d bytes, want 1 to %d", longest, maxPiece)
	case name == 0 || name > maxName:
		return nil, malformed("name of %d bytes, want 1 to %d", name, maxName)
	case hasQuery > 1:
		return nil, malformed("query flag %d, want 0 or 1", hasQuery)
	}

	r := reader{data: data, at: headerBytes}
	m := &Model{dimensions: dimensions, name: string(r.take(name)), lengths: new(lengths)}
	for i := range m.values {
		m.values[i] = int8(data[valuesAt+i])
	}
	m.folds = folds{numbers: r.take(2 * pageCount), pages: r.take(2 * 256 * pages),
		replacements: r.takeStrings(replacements)}
	m.pieces = pieces{strings: r.takeStrings(rows), rows: rows, slots: r.take(2 * slots), mask: uint32(slots - 1),
		longest: longest}
	m.document = r.take(4 * rows)
	m.query = m.document
	if hasQuery == 1 {
		m.query = r.take(4 * rows)
	}
	m.vectors = r.take(rows * dimensions / 2)
	if r.err == nil && r.at != len(data) {
		r.err = malformed("%d bytes after the last section", len(data)-r.at)
	}
	if r.err != nil {
		return nil, r.err
	}
	if !utf8.ValidString(m.name) {
		return nil, malformed("the name is not UTF-8")
	}
	if err := m.folds.check(pages); err != nil {
		return nil, err
	}
	if err := m.pieces.check(); err != nil {
		return nil, err
	}
	for i := range rows {
		if s, q := float32At(m.document, i), float32At(m.query, i); !finite(s) || !finite(q) {
			return nil, malformed("row %d has a scale of %g or %g", i, s, q)
		}
	}
	return m, nil
}

// finite reports whether products and sums of a scale stay finite over a text of any length.
func finite(x float32) bool { return x > -1e12 && x < 1e12 }

// reader hands out the sections one after the other; after an error it hands out nil.
type reader struct {
	data []byte
	at   int
	err  error
}

func (r *reader) take(n int) []byte {
	end := r.at + n
	next := (end + alignment - 1) / alignment * alignment
	if r.err == nil && (n < 0 || next > len(r.data)) {
		r.err = malformed("a section of %d bytes at %d passes the end, %d", n, r.at, len(r.data))
	}
	if r.err != nil {
		return nil
	}
	section := r.data[r.at:end:end]
	r.at = next
	return section
}

// stringTable is n strings laid end to end, with n+1 offsets.
type stringTable struct {
	offsets []byte
	text    []byte
}

func (r *reader) takeStrings(n int) stringTable {
	offsets := r.take(4 * (n + 1))
	if r.err != nil {
		return stringTable{}
	}
	for i := range n {
		if uint32At(offsets, i) > uint32At(offsets, i+1) {
			r.err = malformed("string %d of %d ends before it begins", i, n)
			return stringTable{}
		}
	}
	if first := uint32At(offsets, 0); first != 0 {
		r.err = malformed("strings begin at %d, want 0", first)
	}
	return stringTable{offsets: offsets, text: r.take(int(uint32At(offsets, n)))}
}

func (t stringTable) at(i int) []byte { return t.text[uint32At(t.offsets, i):uint32At(t.offsets, i+1)] }

func uint16At(b []byte, i int) uint16   { return binary.LittleEndian.Uint16(b[2*i:]) }
func uint32At(b []byte, i int) uint32   { return binary.LittleEndian.Uint32(b[4*i:]) }
func float32At(b []byte, i int) float32 { return math.Float32frombits(uint32At(b, i)) }
