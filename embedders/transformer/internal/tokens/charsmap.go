package tokens

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"
)

// charsMap is SentencePiece's table of replacements ("precompiled_charsmap"): the size in bytes of a double array,
// the double array (a trie as in darts-clone, of uint32, little-endian), and the replacements, each ended by a zero
// byte.
type charsMap struct {
	trie []uint32
	text string
}

const maxCharsMap = 16 << 20

func newCharsMap(data []byte) (*charsMap, error) {
	if len(data) > maxCharsMap {
		return nil, fmt.Errorf("the charsmap has %d bytes; expected at most %d", len(data), maxCharsMap)
	}
	if len(data) < 4 {
		return nil, fmt.Errorf("the charsmap has %d bytes; expected at least 4", len(data))
	}
	size := int64(binary.LittleEndian.Uint32(data))
	if size%4 != 0 || size > int64(len(data)-4) {
		return nil, fmt.Errorf("the charsmap's trie is said to have %d bytes, of %d", size, len(data)-4)
	}
	m := &charsMap{trie: make([]uint32, size/4), text: string(data[4+size:])}
	for i := range m.trie {
		m.trie[i] = binary.LittleEndian.Uint32(data[4+4*i:])
	}
	return m, nil
}

// prefixes calls found with the length and the replacement of each entry that text begins with, the shortest first,
// until found returns false.
func (m *charsMap) prefixes(text string, found func(length int, replacement string) bool) {
	if len(m.trie) == 0 {
		return
	}
	unit := m.trie[0]
	at := offset(unit)
	for i := 0; i < len(text) && text[i] != 0; i++ {
		at ^= uint32(text[i])
		if at >= uint32(len(m.trie)) {
			return
		}
		unit = m.trie[at]
		if unit&(1<<31|0xFF) != uint32(text[i]) {
			return
		}
		at ^= offset(unit)
		if unit>>8&1 == 0 {
			continue
		}
		if at >= uint32(len(m.trie)) {
			return
		}
		start := m.trie[at] & (1<<31 - 1)
		if start > uint32(len(m.text)) {
			return
		}
		replacement := m.text[start:]
		end := strings.IndexByte(replacement[:min(len(replacement), longestPiece)], 0)
		if end < 0 && len(replacement) > longestPiece {
			return
		}
		if end >= 0 {
			replacement = replacement[:end]
		}
		if !found(i+1, replacement) {
			return
		}
	}
}

func offset(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }

// shortest returns the replacement of the shortest entry that text begins with.
func (m *charsMap) shortest(text string) (replacement string, ok bool) {
	m.prefixes(text, func(_ int, r string) bool {
		replacement, ok = r, true
		return false
	})
	return replacement, ok
}

// longest returns the longest entry that text begins with, and its replacement.
func (m *charsMap) longest(text string) (length int, replacement string) {
	m.prefixes(text, func(n int, r string) bool {
		length, replacement = n, r
		return true
	})
	return length, replacement
}

// replace changes a text like the normalizer Precompiled of the library tokenizers. It replaces a user-perceived
// character of less than 6 bytes as a whole if an entry matches its beginning, and otherwise each character by itself.
func (m *charsMap) replace(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for len(text) > 0 {
		cluster := text[:clusterEnd(text)]
		text = text[len(cluster):]
		if len(cluster) < 6 {
			if r, ok := m.shortest(cluster); ok {
				b.WriteString(r)
				continue
			}
		}
		for len(cluster) > 0 {
			_, width := utf8.DecodeRuneInString(cluster)
			if r, ok := m.shortest(cluster[:width]); ok {
				b.WriteString(r)
			} else {
				b.WriteString(cluster[:width])
			}
			cluster = cluster[width:]
		}
	}
	return b.String()
}
