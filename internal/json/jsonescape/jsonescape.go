// Package jsonescape finds escapes of half a character, which encoding/json replaces silently.
package jsonescape

import (
	"bytes"
	"strconv"
)

// LoneSurrogate returns the first escape \uD800 to \uDFFF of a JSON text that is not half of a pair, and its offset in
// bytes; -1 if there is none. Such an escape represents no character (RFC 8259, section 8.2), and encoding/json
// replaces it with U+FFFD.
func LoneSurrogate(encoded []byte) (escape string, offset int) {
	for at := 0; ; {
		next := bytes.IndexByte(encoded[at:], '\\')
		if next < 0 || at+next+1 >= len(encoded) {
			return "", -1
		}
		at += next
		unit, ok := codeUnit(encoded[at:])
		switch {
		case !ok:
			at += 2 // any other escape, such as \\, which is not the beginning of another one
			continue
		case unit < 0xd800 || unit > 0xdfff:
			at += 6
			continue
		}
		low, paired := codeUnit(encoded[at+6:])
		if unit > 0xdbff || !paired || low < 0xdc00 || low > 0xdfff {
			return string(encoded[at : at+6]), at
		}
		at += 12
	}
}

// codeUnit parses an escape \uXXXX at the beginning of a text.
func codeUnit(text []byte) (uint64, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return unit, err == nil
}
