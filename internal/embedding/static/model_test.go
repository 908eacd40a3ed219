package static

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

func dot(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

func TestFileIsSmallEnoughAndTheOneOfTheModelCard(t *testing.T) {
	if len(file) > 16_000_000 {
		t.Errorf("model.bin has %d bytes, want at most 16,000,000", len(file))
	}
	card, err := os.ReadFile("MODEL_CARD.md")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(file)
	if h := hex.EncodeToString(sum[:]); !strings.Contains(string(card), h) {
		t.Errorf("got a MODEL_CARD.md without the file's SHA-256, want one that names it: %s", h)
	}
}

func TestParaphrasesAreCloserThanOtherTexts(t *testing.T) {
	cases := []struct{ text, near, far string }{
		{"I adopted a puppy from the shelter.", "We got a new dog.", "The server returned an error."},
		{"My sister is getting married in June.", "the wedding of my sibling", "He plays chess every evening."},
		{"What food am I allergic to?", "I can't eat peanuts, they make me sick.", "I bought a red bicycle."},
		{"The build fails on Windows.", "compilation error on a Microsoft machine", "She baked a chocolate cake."},
		{"We decided to use Postgres.", "Which database did we choose?", "Where did Anna go on holiday?"},
		{"He feels sad and lonely.", "She is depressed and unhappy.", "The train leaves at noon."},
		{"The film was boring.", "a dull movie", "a fast car"},
		{"Die Katze schläft.", "Eine Katze ruht.", "Das Auto ist rot."},
		{"猫在睡觉", "小猫睡了", "股票市场下跌"},
	}
	m := Default()
	for _, c := range cases {
		v := m.Embed(nil, c.text, false)
		near, far := dot(v, m.Embed(nil, c.near, false)), dot(v, m.Embed(nil, c.far, false))
		if near <= far {
			t.Errorf("%q: %.3f to %q, want more than the %.3f to %q", c.text, near, c.near, far, c.far)
		}
	}
}

// foreignWords reads the words that the model was made for. Each line has an English word and its forms in the
// languages of the header.
func foreignWords(t *testing.T) (languages []string, lines [][]string) {
	raw, err := os.ReadFile(filepath.Join("distill", "foreign.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		if header, ok := strings.CutPrefix(line, "# en|"); ok {
			languages = strings.Split(header, "|")
		} else if line != "" && line[0] != '#' {
			lines = append(lines, strings.Split(line, "|"))
		}
	}
	if len(languages) != 13 || len(lines) < 300 {
		t.Fatalf("%d languages and %d lines, want 13 languages and at least 300 lines", len(languages), len(lines))
	}
	return languages, lines
}

// In each language, this many first forms must be nearer to their English word than to any other of the list. Most
// misses are words with nearly the same meaning (trip and holiday, lunch and dinner). The floors are at least four
// points below the measured values.
func TestForeignWordsMeetTheirTranslation(t *testing.T) {
	m := Default()
	floors := map[string]int{"de": 86, "fr": 83, "es": 84, "it": 82, "pt": 83, "nl": 86, "pl": 81, "ru": 90, "tr": 75,
		"sv": 75, "ja": 83, "zh": 86, "ko": 74}
	languages, lines := foreignWords(t)
	english := make([][]float32, len(lines))
	for i, line := range lines {
		if len(line) != 1+len(languages) {
			t.Fatalf("%q has %d columns, want %v", line[0], len(line), 1+len(languages))
		}
		english[i] = m.Embed(nil, line[0], false)
	}
	pairs := 0
	for k, language := range languages {
		if !longtest.Part(k, 1, 4) {
			continue
		}
		met, all := 0, 0
		for i, line := range lines {
			word := strings.Fields(line[k+1])[0]
			if len(m.Tokens(word)) != 1 {
				t.Errorf("%s: %q has no row, got %v, want 1", language, word, len(m.Tokens(word)))
			}
			v, best, at := m.Embed(nil, word, true), -2.0, 0
			for j, e := range english {
				if x := dot(v, e); x > best {
					best, at = x, j
				}
			}
			if all++; at == i {
				met++
			}
		}
		pairs += all
		if percent := 100 * met / all; percent < floors[language] {
			t.Errorf("%s: %d of %d words (%d %%) meet their translation, want %d %%", language, met, all, percent,
				floors[language])
		} else {
			t.Logf("%s: %d of %d (%d %%)", language, met, all, percent)
		}
	}
	t.Logf("%d pairs", pairs)
}

// Whole notes outside the training data find their translation among twenty.
func TestForeignNotesMeetTheirTranslation(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("distill", "parallel.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var notes [][]string
	for line := range strings.Lines(string(raw)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			notes = append(notes, strings.Split(line, "|"))
		}
	}
	m, met, all := Default(), 0, 0
	for i, note := range notes {
		for _, foreign := range note[1:] {
			v, best, at := m.Embed(nil, foreign, true), -2.0, 0
			for j := range notes {
				if x := dot(v, m.Embed(nil, notes[j][0], false)); x > best {
					best, at = x, j
				}
			}
			if all++; at == i {
				met++
			}
		}
	}
	if all != 120 || met < 112 {
		t.Errorf("%d of %d notes meet their translation, want 112 of 120", met, all)
	}
}

func TestKoreanLetterByLetterEqualsSyllables(t *testing.T) {
	m := Default()
	for apart, whole := range map[string]string{
		"\u1112\u1161\u11ab\u1100\u116e\u11a8\u110b\u1165": "한국어", // as macOS writes file names
		"\u1100\u1161\u1102\u1161":                         "가나",  // a consonant after a vowel begins the next syllable
		"\ud558\u11ab":                                     "한",   // a syllable that lacks its final
	} {
		if got, want := m.Tokens(apart), m.Tokens(whole); !slices.Equal(got, want) {
			t.Errorf("%+q: tokens %v, want those of %q, %v", apart, got, whole, want)
		}
	}
}

func TestVectorsHaveUnitLengthOrAreZero(t *testing.T) {
	m := Default()
	for _, text := range []string{"a", "hello world", "ß", "猫", "한국어", "👍", "?", strings.Repeat("long ", 10_000),
		"x\xff\xfey", "\xffok"} {
		if n := dot(m.Embed(nil, text, false), m.Embed(nil, text, false)); math.Abs(n-1) > 1e-5 {
			t.Errorf("%.20q: squared length %g, want 1", text, n)
		}
	}
	for _, text := range []string{"", " ", "\t\n", "\x00\x01", "\xff\xfe", "\u200b", "\ufffd"} {
		if n := dot(m.Embed(nil, text, false), m.Embed(nil, text, false)); n != 0 {
			t.Errorf("%q: squared length %g, want 0", text, n)
		}
	}
}

func TestEveryScriptHasTokens(t *testing.T) {
	m := Default()
	for _, word := range []string{"hello", "straße", "привет", "γεια", "مرحبا", "שלום", "नमस्ते", "你好", "こんにちは", "안녕",
		"สวัสดี", "გამარჯობა", "բարև", "வணக்கம்", "ជំរាប", "မင်္ဂလာပါ", "ሰላም", "ສະບາຍດີ", "হ্যালো", "హలో", "ഹലോ"} {
		if len(m.Tokens(word)) == 0 {
			t.Errorf("got no token of %q, want at least one", word)
		}
	}
}

func TestTokens(t *testing.T) {
	m := Default()
	for text, want := range map[string]string{
		"Héllo, WORLD!":   "hello , world !",
		"don't":           "don ' t",
		"e\u0301te\u0301": "ete",
		"a\xffb":          "ab",
		"cat\u200bnap":    "cat ##na ##p",
		"good👍night":      "good 👍 night",
		"":                "",
	} {
		var got []string
		for _, row := range m.Tokens(text) {
			got = append(got, m.Piece(row))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%q: %q, want %q", text, s, want)
		}
	}
}

func TestEveryPieceIsFound(t *testing.T) {
	m := Default()
	for row := range m.Rows() {
		piece, continuing := strings.CutPrefix(m.Piece(int32(row)), "##")
		if piece == "" { // the piece is "##" itself or "#"
			piece, continuing = m.Piece(int32(row)), false
		}
		if got, size := m.pieces.longestMatch([]byte(piece), continuing); got != row || size != len(piece) {
			t.Fatalf("%q: found row %d and %d bytes, want row %d and %d bytes", m.Piece(int32(row)), got, size, row,
				len(piece))
		}
	}
}

func TestEmbedReusesStorageAndAllocatesNothing(t *testing.T) {
	m := Default()
	dst := make([]float32, 0, m.Dimensions())
	text := "The kids loved hiking in the mountains; die Straße, 猫が好き!"
	if n := testing.AllocsPerRun(20, func() { dst = m.Embed(dst, text, true) }); n != 0 {
		t.Errorf("%g allocations a call, want none", n)
	}
	for i := range dst {
		dst[i] = 99 // earlier values must not matter
	}
	if !slices.Equal(m.Embed(dst[:1], text, true), m.Embed(nil, text, true)) {
		t.Error("the vector depends on what dst held, want the same vector")
	}
}

func TestEmbedIsSafeForConcurrentUse(t *testing.T) {
	m := Default()
	want := m.Embed(nil, "several goroutines at once", false)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 50 {
				if !slices.Equal(m.Embed(nil, "several goroutines at once", false), want) {
					t.Errorf("another vector, want %v", want)
					return
				}
			}
		})
	}
	group.Wait()
}

func TestHugeTexts(t *testing.T) {
	m := Default()
	for _, unit := range []string{"a", "猫", "a ", ".", "\xff", "e\u0301", "ﷺ", "ส"} {
		size := 1 << 17
		if unit == "a" {
			size = 1 << 20 // one word of a mebibyte, which must not take quadratic time
		}
		v := m.Embed(nil, strings.Repeat(unit, size/len(unit)), false)
		if n := dot(v, v); n != 0 && math.Abs(n-1) > 1e-4 {
			t.Errorf("%d bytes of %q: squared length %g, want 0 or 1", size, unit, n)
		}
	}
}

func FuzzEmbed(f *testing.F) {
	for _, s := range []string{"", "hello", "Ünïcödé", "今天天气", "\xff\xc0a", "a\u0301", strings.Repeat("ก", 70),
		strings.Repeat("x", 200), "½ﷺ😀"} {
		f.Add(s)
	}
	m := Default()
	f.Fuzz(func(t *testing.T, text string) {
		tokens := m.Tokens(text)
		for _, row := range tokens {
			if row < 0 || int(row) >= m.Rows() {
				t.Fatalf("row %d of %d, want one of the table", row, m.Rows())
			}
		}
		v := m.Embed(nil, text, false)
		n := dot(v, v)
		if len(tokens) == 0 && n != 0 || len(tokens) > 0 && n != 0 && math.Abs(n-1) > 1e-4 || n != n {
			t.Fatalf("%d tokens, squared length %g, want 0 without tokens, else 1", len(tokens), n)
		}
		if !slices.Equal(m.Tokens(" "+text+"\n"), tokens) {
			t.Fatalf("spaces around the text change its tokens, want %v", tokens)
		}
	})
}

func BenchmarkEmbedShort(b *testing.B) {
	m := Default()
	dst := make([]float32, m.Dimensions())
	text := "I went to the store yesterday and bought some apples for my grandmother, who loves baking pies with them."
	b.ReportAllocs()
	for b.Loop() {
		dst = m.Embed(dst, text, false)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "texts/s")
}

// BenchmarkEmbedUnknownWords embeds words that the vocabulary only has in pieces.
func BenchmarkEmbedUnknownWords(b *testing.B) {
	m := Default()
	dst := make([]float32, m.Dimensions())
	text := strings.Repeat("rentulodelge kamilolo Donaudampfschifffahrt katupor miren tukatulolo ", 3)
	for b.Loop() {
		dst = m.Embed(dst, text, false)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "texts/s")
}

func BenchmarkEmbedLong(b *testing.B) {
	m := Default()
	dst := make([]float32, m.Dimensions())
	text := strings.Repeat("Übergröße, state-of-the-art 今天天气很好 antidisestablishmentarianism. ", 1000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		dst = m.Embed(dst, text, false)
	}
}

func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load(file); err != nil {
			b.Fatal(err)
		}
	}
}
