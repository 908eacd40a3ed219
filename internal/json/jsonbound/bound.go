// Package jsonbound bounds the memory of decoded JSON: a list of empty lists takes thirty times its length.
package jsonbound

import "bytes"

// Count returns a lower bound of the number of values in a JSON text, from its commas and brackets. It allocates
// nothing, and returns some number for invalid JSON, too.
func Count(encoded []byte) int {
	count := 1
	for i := 0; i < len(encoded); i++ {
		switch encoded[i] {
		case '"':
			i = endOfString(encoded, i)
		case ',', '[', '{':
			count++
		}
	}
	return count
}

// endOfString returns where the string that begins at i ends: the place of its last quote.
func endOfString(encoded []byte, i int) int {
	for i++; i < len(encoded); i++ {
		switch encoded[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return i
}

// Member is an encoded member of an object.
type Member struct {
	Key   []byte // with its quotes
	Value []byte
}

// Members iterates over the members of a valid JSON object until yield returns false; any other value has none. It
// allocates nothing.
func Members(encoded []byte, yield func(Member) bool) {
	rest := bytes.TrimSpace(encoded)
	if len(rest) < 2 || rest[0] != '{' {
		return
	}
	for i := 1; i < len(rest); {
		i = skip(rest, i, " \t\r\n,")
		if i >= len(rest) || rest[i] != '"' {
			return
		}
		end := endOfString(rest, i) + 1
		if end > len(rest) {
			return
		}
		m := Member{Key: rest[i:end]}
		i = skip(rest, end, " \t\r\n:")
		end = endOfValue(rest, i)
		m.Value = bytes.TrimSpace(rest[i:end])
		if !yield(m) {
			return
		}
		i = end
	}
}

func skip(encoded []byte, i int, what string) int {
	for i < len(encoded) && bytes.IndexByte([]byte(what), encoded[i]) >= 0 {
		i++
	}
	return i
}

// endOfValue returns the place after the value that begins at i.
func endOfValue(encoded []byte, i int) int {
	depth := 0
	for ; i < len(encoded); i++ {
		switch encoded[i] {
		case '"':
			i = endOfString(encoded, i)
		case '[', '{':
			depth++
		case ']', '}':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return len(encoded)
}
