package static

import (
	"bytes"
	"unicode/utf8"
)

// pieces is the vocabulary: a hash table laid out in the file, so that nothing is built at start.
type pieces struct {
	strings stringTable
	rows    int
	slots   []byte // uint16: row + 1, or 0 for an empty slot
	mask    uint32
	longest int // bytes of the longest piece, "##" not counted

	// some has a bit for the hash of each piece. It rules out most beginnings of a word, which are not pieces, with one
	// look-up.
	some [1 << someBits / 64]uint64
}

// someBits are the bits of a hash that choose a bit of pieces.some, the highest ones: one in 18 is set.
const someBits = 19

func (p *pieces) mayHave(hash uint32) bool {
	bit := hash >> (32 - someBits)
	return p.some[bit/64]&(1<<(bit%64)) != 0
}

const (
	fnvOffset = 2166136261
	fnvPrime  = 16777619
	// continuesHash is the state after "##", the mark of a piece that continues a word.
	continuesHash = 0x16c89023
)

func (p *pieces) at(row int) []byte { return p.strings.at(row) }

func (p *pieces) check() error {
	for row := range p.rows {
		s := p.at(row)
		if len(s) == 0 || len(s) > p.longest+2 || !utf8.Valid(s) {
			return malformed("piece %d is %q, want 1 to %d bytes of UTF-8", row, s, p.longest+2)
		}
		h := uint32(fnvOffset)
		for _, b := range s {
			h = (h ^ uint32(b)) * fnvPrime
		}
		bit := h >> (32 - someBits)
		p.some[bit/64] |= 1 << (bit % 64)
	}
	used := 0
	for i := range len(p.slots) / 2 {
		row := int(uint16At(p.slots, i))
		if row > p.rows {
			return malformed("hash slot %d holds row %d of %d", i, row-1, p.rows)
		}
		if row > 0 {
			used++
		}
	}
	if used > p.rows { // at least one slot stays empty, so that every probe ends
		return malformed("%d hash slots in use for %d rows", used, p.rows)
	}
	return nil
}

// longestMatch finds the longest piece that word begins with: its row and its bytes, or 0 bytes if there is none.
// Work is bounded by the longest piece, which keeps the tokenizer linear in the text.
func (p *pieces) longestMatch(word []byte, continuing bool) (row, size int) {
	var ends [maxPiece]uint8
	var hashes [maxPiece]uint32
	h := uint32(fnvOffset)
	if continuing {
		h = continuesHash
	}
	n := 0
	limit := min(len(word), p.longest)
	for i := 0; i < limit; i++ {
		h = (h ^ uint32(word[i])) * fnvPrime
		if p.mayHave(h) && (i+1 == len(word) || utf8.RuneStart(word[i+1])) {
			ends[n], hashes[n] = uint8(i+1), h
			n++
		}
	}
	for n--; n >= 0; n-- {
		if row := p.find(word[:ends[n]], hashes[n], continuing); row >= 0 {
			return row, int(ends[n])
		}
	}
	return 0, 0
}

func (p *pieces) find(piece []byte, hash uint32, continuing bool) int {
	for slot := (hash ^ hash>>16) & p.mask; ; slot = (slot + 1) & p.mask {
		row := int(uint16At(p.slots, int(slot))) - 1
		if row < 0 {
			return -1
		}
		s := p.at(row)
		if marked := len(s) > 2 && s[0] == '#' && s[1] == '#'; marked != continuing {
			continue
		} else if marked {
			s = s[2:]
		}
		if bytes.Equal(s, piece) {
			return row
		}
	}
}
