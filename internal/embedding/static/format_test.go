package static

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unicode/utf8"
)

// small is a valid model of a few pieces and one page of ASCII, so that tests can damage it cheaply.
func small() []byte {
	names := []string{"a", "b", "##b", "ab", "#"}
	const dimensions, slots = 32, 16
	var out []byte
	section := func(b []byte) {
		out = append(out, b...)
		for len(out)%alignment != 0 {
			out = append(out, 0)
		}
	}
	u16 := func(xs ...uint16) (b []byte) {
		for _, x := range xs {
			b = binary.LittleEndian.AppendUint16(b, x)
		}
		return b
	}
	u32 := func(xs ...uint32) (b []byte) {
		for _, x := range xs {
			b = binary.LittleEndian.AppendUint32(b, x)
		}
		return b
	}
	header := append([]byte(magic), u32(dimensions, uint32(len(names)), slots, 2, 1, 2, 4, 0, 0)...)
	for i := range 16 {
		header = append(header, byte(int8(16*i-120)))
	}
	section(header)
	section([]byte("tiny"))
	section(u16(make([]uint16, pageCount)...)) // every page is page 0
	page := make([]uint16, 512)
	for c := range page {
		switch {
		case c == 'A':
			page[c] = classes // replacement 0
		case c <= ' ':
			page[c] = uint16(space)
		case c == '#':
			page[c] = uint16(punctuation)
		}
	}
	section(u16(page...))
	section(u32(0, 1))
	section([]byte("a"))
	offsets, text := []uint32{0}, ""
	table := make([]uint16, slots)
	for row, s := range names {
		text += s
		offsets = append(offsets, uint32(len(text)))
		h := uint32(fnvOffset)
		for i := range len(s) {
			h = (h ^ uint32(s[i])) * fnvPrime
		}
		slot := (h ^ h>>16) % slots
		for table[slot] != 0 {
			slot = (slot + 1) % slots
		}
		table[slot] = uint16(row + 1)
	}
	section(u32(offsets...))
	section([]byte(text))
	section(u16(table...))
	section(u32(slices.Repeat([]uint32{math.Float32bits(0.5)}, len(names))...))
	section(slices.Repeat([]byte{1, 2, 3, 4, 0x5f, 6, 7, 8}, len(names)*dimensions/16))
	binary.LittleEndian.PutUint32(out[8+4*8:], uint32(len(out)))
	return out
}

func TestLoadReadsASmallModel(t *testing.T) {
	m, err := Load(small())
	if err != nil {
		t.Fatal(err)
	}
	if m.Name() != "tiny" || m.Dimensions() != 32 || m.Rows() != 5 {
		t.Errorf(`%q, %d dimensions, %d rows, want name "tiny", dimensions 32 and rows 5`, m.Name(), m.Dimensions(), m.Rows())
	}
	if got, want := m.Tokens("AB abb #a zb"), []int32{0, 3, 2, 4, 0, 2}; !slices.Equal(got, want) {
		// "AB" folds to "aB", and "B" is unknown; in "zb" the unknown z leaves b a continuation.
		t.Errorf("tokens %v, want %v", got, want)
	}
}

func TestLoadRefusesDamage(t *testing.T) {
	word := func(at int, value uint32) func([]byte) []byte {
		return func(b []byte) []byte { binary.LittleEndian.PutUint32(b[at:], value); return b }
	}
	numbers := headerBytes + alignment
	pages := numbers + (2*pageCount+alignment-1)/alignment*alignment
	replacements := pages + 2*512
	offsets := replacements + 2*alignment
	slots := offsets + 2*alignment
	scales := slots + alignment
	for name, damage := range map[string]func([]byte) []byte{
		"empty":                        func(b []byte) []byte { return nil },
		"only a header":                func(b []byte) []byte { return b[:headerBytes] },
		"half a header":                func(b []byte) []byte { return b[:30] },
		"cut short":                    func(b []byte) []byte { return b[:len(b)-1] },
		"too long":                     func(b []byte) []byte { return append(b, 0) },
		"another magic":                func(b []byte) []byte { b[7]++; return b },
		"no dimensions":                word(8, 0),
		"odd dimensions":               word(8, 40),
		"more dimensions than vectors": word(8, 64),
		"enormous dimensions":          word(8, math.MaxUint32),
		"no rows":                      word(12, 0),
		"more rows than there are":     word(12, 15),
		"enormous rows":                word(12, math.MaxUint32),
		"slots no power of two":        word(16, 15),
		"fewer slots than rows":        word(16, 4),
		"enormous slots":               word(16, 1<<30),
		"no pages":                     word(20, 0),
		"too many pages":               word(20, math.MaxUint32),
		"too many replacements":        word(24, math.MaxUint32),
		"no longest piece":             word(28, 0),
		"longest piece too long":       word(28, maxPiece+1),
		"longest piece not the longest": func(b []byte) []byte {
			binary.LittleEndian.PutUint32(b[offsets+4:], 5)
			binary.LittleEndian.PutUint32(b[offsets+8:], 5)
			binary.LittleEndian.PutUint32(b[offsets+12:], 5)
			return b
		},
		"no name":                    word(32, 0),
		"query flag":                 word(36, 2),
		"query scales missing":       word(36, 1),
		"another size":               word(40, 1),
		"name not UTF-8":             func(b []byte) []byte { b[headerBytes] = 0xff; return b },
		"page out of range":          word(numbers+40, 7),
		"class out of range":         word(pages+20, uint32(end)),
		"replacement out of range":   word(pages+20, classes+1),
		"replacement not final":      func(b []byte) []byte { b[replacements+alignment] = 'A'; return b },
		"replacement not UTF-8":      func(b []byte) []byte { b[replacements+alignment] = 0xc0; return b },
		"strings not at zero":        word(replacements, 1),
		"strings that go back":       word(offsets+4, 1<<20),
		"strings past the end":       word(offsets+4*5, 1<<30),
		"an empty piece":             word(offsets+4, 0),
		"row out of range in a slot": func(b []byte) []byte { return word(slots, 0xffff)(b) },
		"every slot in use": func(b []byte) []byte {
			for i := range 16 {
				binary.LittleEndian.PutUint16(b[slots+2*i:], 1)
			}
			return b
		},
		"scale not a number": word(scales, math.Float32bits(float32(math.NaN()))),
		"scale infinite":     word(scales+4, math.Float32bits(float32(math.Inf(1)))),
	} {
		_, err := Load(damage(small()))
		if format := (*FormatError)(nil); !errors.As(err, &format) {
			t.Errorf("%s: error %v, want a *FormatError", name, err)
		}
	}
}

// TestDamageNeverPanics flips bytes outside the vectors. If the model still loads, it must embed.
func TestDamageNeverPanics(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	original := small()
	loaded := 0
	for range 4_000 {
		b := slices.Clone(original)
		for range 1 + r.IntN(3) {
			b[r.IntN(len(b))] = byte(r.Uint32())
		}
		if m, err := Load(b); err == nil {
			loaded++
			m.Embed(nil, "AB abb #a zb \xff é", r.IntN(2) == 0)
		}
	}
	if loaded == 0 {
		t.Errorf("got %v damaged models that load, want at least one to embed with", loaded)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(small(), "ab #")
	f.Add(small()[:100], "")
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		m, err := Load(data)
		if err != nil {
			return
		}
		if len(m.Embed(nil, text, true)) != m.Dimensions() || !utf8.ValidString(m.Name()) {
			t.Fatalf("a model that loads: got %d numbers and the name %q, want %d and a valid name",
				len(m.Embed(nil, text, true)), m.Name(), m.Dimensions())
		}
	})
}
