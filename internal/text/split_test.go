package text

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// passages returns the texts of the spans.
func passages(s string, max int) []string {
	var out []string
	for _, p := range Split(s, max) {
		out = append(out, s[p.Start:p.End])
	}
	return out
}

func TestSplit(t *testing.T) {
	for _, tt := range []struct {
		name string
		text string
		max  int
		want []string
	}{
		{"empty", "", 10, nil},
		{"white space", " \r\n\t\u3000\u00a0", 10, nil},
		{"short", "  short text\n", 10, []string{"short text"}},
		{"white space does not count", strings.Repeat(" ", 50) + "short", 5, []string{"short"}},

		{"paragraphs are packed", "One one.\n\nTwo two.\n\nThree three.", 20,
			[]string{"One one.\n\nTwo two.", "Three three."}},
		{"before a heading", "# A\n\nAlpha alpha alpha.\n\n# B\n\nBeta beta.", 30,
			[]string{"# A\n\nAlpha alpha alpha.", "# B\n\nBeta beta."}},
		{"setext heading", "Alpha alpha alpha.\n\nTitle\n=====\n\nBeta beta.", 30,
			[]string{"Alpha alpha alpha.", "Title\n=====\n\nBeta beta."}},
		{"a heading stays with what follows", "Alpha.\n\n# B\n\nBeta one is here. Beta two is here.", 28,
			[]string{"Alpha.", "# B\n\nBeta one is here.", "Beta two is here."}},
		{"a title stays with what follows", "My title\n\nFirst one is here. Second one is here.", 30,
			[]string{"My title\n\nFirst one is here.", "Second one is here."}},
		{"headings stay together", "Alpha alpha alpha.\n\n# B\n\n## C\n\nGamma.", 22,
			[]string{"Alpha alpha alpha.", "# B\n\n## C\n\nGamma."}},
		{"no heading inside code", "Alpha.\n\n```\n# no\n# yes\n```\n\nOmega.", 24,
			[]string{"Alpha.", "```\n# no\n# yes\n```", "Omega."}},
		{"code stays together", "Alpha alpha. Alpha.\n\n~~~go\na()\n\nb()\n~~~\n\nOmega omega.", 30,
			[]string{"Alpha alpha. Alpha.", "~~~go\na()\n\nb()\n~~~", "Omega omega."}},
		{"code too long is cut at its blank lines", "```\naaaa\nbbbb\n\ncccc\ndddd\n```", 20,
			[]string{"```\naaaa\nbbbb", "cccc\ndddd\n```"}},
		{"a list stays together", "Alpha alpha alpha alpha.\n\n- one\n- two\n- three", 30,
			[]string{"Alpha alpha alpha alpha.", "- one\n- two\n- three"}},
		{"what introduces a list stays with it", "Alpha alpha alpha.\n\nWe need:\n\n- one\n- two", 25,
			[]string{"Alpha alpha alpha.", "We need:\n\n- one\n- two"}},
		{"a list too long is cut between items", "1. one one one\n2. two two two\n3. three three", 32,
			[]string{"1. one one one\n2. two two two", "3. three three"}},
		{"a table is cut between rows", "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |", 20,
			[]string{"| a | b |\n|---|---|", "| 1 | 2 |\n| 3 | 4 |"}},

		{"sentences", "One one one. Two two two! Three three?", 26, []string{"One one one. Two two two!", "Three three?"}},
		{"closing quotes", "He said “one one.” She said two.", 24, []string{"He said “one one.”", "She said two."}},
		{"abbreviations and decimals", "We saw Dr. Smith at 3.14 p.m. there. Then J. K. left, e.g. For him.", 40,
			[]string{"We saw Dr. Smith at 3.14 p.m. there.", "Then J. K. left, e.g. For him."}},
		{"German ordinals", "Wir kamen am 3. Mai an. Am 4. Mai gingen wir.", 24,
			[]string{"Wir kamen am 3. Mai an.", "Am 4. Mai gingen wir."}},
		{"Chinese", "我喜欢猫。她喜欢狗！他呢？", 30, []string{"我喜欢猫。她喜欢狗！", "他呢？"}},
		{"Japanese quotes", "「東京へ行く。」と言った。雨だ。", 40, []string{"「東京へ行く。」と言った。", "雨だ。"}},
		{"Hindi", "मैं घर गया। वह आया।", 35, []string{"मैं घर गया।", "वह आया।"}},
		{"Arabic", "هل أنت هنا؟ نعم أنا هنا.", 26, []string{"هل أنت هنا؟", "نعم أنا هنا."}},
		{"chat lines", "Jo: hi there\nMo: hello you\nJo: bye", 26, []string{"Jo: hi there\nMo: hello you", "Jo: bye"}},

		{"words", "aaa bbb ccc ddd", 8, []string{"aaa bbb", "ccc ddd"}},
		{"characters", "日本語日本語", 10, []string{"日本語", "日本語"}},
		{"marks stay with their letter", "aaae\u0301aaa", 5, []string{"aaa", "e\u0301aa", "a"}},
		{"max below one character", "日本", 0, []string{"日", "本"}},
		{"invalid UTF-8", "\x80\x80\x80\x80\x80\x80", 4, []string{"\x80\x80\x80\x80", "\x80\x80"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := passages(tt.text, tt.max); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// longText is a document with every kind of block.
var longText = `# The garden

A short introduction. It has two sentences.

## Plants

Tomatoes need sun, e.g. Dr. Green's need 6.5 hours. Water them early! Why? Because
the leaves dry by noon, and
dry leaves stay healthy.

- basil
- mint
  and its relatives

  a second paragraph of mint
- sage

Tools we use:

` + "```go\nfunc water(m float64) {\n\tpour(m)\n}\n\nfunc main() { water(2.5) }\n```" + `

| plant | litres |
|-------|--------|
| basil | 1      |

Harvest
-------

庭で野菜を育てる。毎朝、水をやる。楽しい！ ` + strings.Repeat("A long tail of words follows here without any stop ", 8) + `

> quoted words
`

// checkSplit checks what holds for the passages of any text.
func checkSplit(t *testing.T, s string, max int) {
	t.Helper()
	spans := Split(s, max)
	bound := max
	if bound < utf8.UTFMax {
		bound = utf8.UTFMax
	}
	at := 0
	for i, p := range spans {
		if p.Start < at || p.End <= p.Start || p.End > len(s) {
			t.Fatalf("max %d: got span %d %v, want it not empty and within %d to %d", max, i, p, at, len(s))
		}
		text := s[p.Start:p.End]
		if len(text) > bound {
			t.Fatalf("max %d: span %d %v is %d bytes long, want at most %v", max, i, p, len(text), bound)
		}
		if strings.TrimSpace(text) != text {
			t.Fatalf("max %d: got span %d %q, want no white space around it", max, i, text)
		}
		if gap := s[at:p.Start]; strings.TrimSpace(gap) != "" {
			t.Fatalf("max %d: %q before span %d is not covered, want no gap", max, gap, i)
		}
		if utf8.ValidString(s) && !utf8.ValidString(text) {
			t.Fatalf("max %d: span %d cuts a character", max, i)
		}
		if again := Split(text, max); len(again) != 1 || again[0] != (Span{0, len(text)}) {
			t.Fatalf("max %d: passage %q is split again: got %v, want only %v", max, text, again, Span{0, len(text)})
		}
		at = p.End
	}
	if strings.TrimSpace(s[at:]) != "" {
		t.Fatalf(`max %d: %q at the end is not covered, want ""`, max, s[at:])
	}
	if strings.TrimSpace(s) != "" && len(strings.TrimSpace(s)) <= max && len(spans) != 1 {
		t.Fatalf("max %d: short content is %d passages, want 1 span", max, len(spans))
	}
	// Two neighbours would not fit into one passage: packing is greedy.
	for i := 2; i < len(spans); i++ {
		if whole := spans[i].End - spans[i-2].Start; whole <= bound/4 {
			t.Fatalf("max %d: three passages in %d bytes, want more than %v", max, whole, bound/4)
		}
	}
}

func TestSplitHolds(t *testing.T) {
	for _, s := range append(slices.Clone(seedTexts), longText, strings.ReplaceAll(longText, "\n", "\r\n"),
		strings.ReplaceAll(longText, "\n", "\r")) {
		for max := -1; max < 200; max++ {
			checkSplit(t, s, max)
		}
		checkSplit(t, s, 10_000)
	}
}

// TestSplitLineEnds checks that the passages of a text do not depend on its line endings, where there is room.
func TestSplitLineEnds(t *testing.T) {
	lines := strings.TrimSpace(longText)
	crlf := strings.ReplaceAll(lines, "\n", "\r\n")
	cr := strings.ReplaceAll(lines, "\n", "\r")
	for _, max := range []int{210, 260, 340} {
		want := passages(lines, max)
		for i := range want {
			want[i] = strings.Join(strings.Fields(want[i]), " ")
		}
		for name, s := range map[string]string{"CRLF": crlf, "CR": cr} {
			got := passages(s, max)
			for i := range got {
				got[i] = strings.Join(strings.Fields(got[i]), " ")
			}
			if !slices.Equal(got, want) {
				t.Errorf("max %d, %s:\n got %q\nwant %q", max, name, got, want)
			}
		}
	}
}

// TestSplitOfManyShapes splits a mebibyte of texts that could make a careless splitter slow. A quadratic one would not
// finish before the test's deadline.
func TestSplitOfManyShapes(t *testing.T) {
	size := longtest.Size(1<<20, 1<<15)
	for _, unit := range []string{
		"a", " ", "\n", "\r\n", "a\n", "a ", ".", "a.", "A. ", "a. ", "# ", "# a\n", "- ", "- a\n", "```\n", "`", "~~~",
		"|\n", "|",
		"=\n", "a\n---\n", "-", "1. ", "1.", "e.g. ", "。", "日", "e\u0301", "\u0301", "\u200d", "\x80", "a\n\n", "a:\n\n", "(",
		"\"",
	} {
		s := strings.Repeat(unit, size/len(unit))
		for _, max := range []int{4, 100_000} {
			spans := Split(s, max)
			if strings.TrimSpace(s) != "" && len(spans) == 0 {
				t.Errorf("%q: no passages, want at least one", unit)
			}
			if n := len(strings.TrimSpace(s)); len(spans) > n {
				t.Errorf("%q: got %d spans, want at most %d, one for each byte", unit, len(spans), n)
			}
		}
	}
}

// TestSentenceStops checks that every stop is a sentence terminal of Unicode. The ellipsis is an exception; the Khmer
// stops became terminals in Unicode 16.
func TestSentenceStops(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if _, stop := sentenceStop(r); stop && !strings.ContainsRune("…．។៕", r) && !unicode.Is(unicode.Sentence_Terminal, r) {
			t.Errorf("%q is no sentence terminal", r)
		}
	}
}

func FuzzSplit(f *testing.F) {
	for _, s := range seedTexts {
		f.Add(s, 7)
	}
	f.Add(longText, 80)
	f.Add(strings.ReplaceAll(longText, "\n", "\r\n"), 33)
	f.Fuzz(func(t *testing.T, s string, max int) { checkSplit(t, s, max%4096) })
}

func ExampleSplit() {
	notes := "# Trip\n\nWe left on Monday. It rained.\n\n# Food\n\nBring bread."
	for _, p := range Split(notes, 40) {
		fmt.Printf("%q\n", notes[p.Start:p.End])
	}
	// Output:
	// "# Trip\n\nWe left on Monday. It rained."
	// "# Food\n\nBring bread."
}
