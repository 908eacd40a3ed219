package jsonescape_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/json/jsonescape"
)

func TestLoneSurrogateFindsEscapesThatStandForNoCharacter(t *testing.T) {
	for text, want := range map[string]int{
		`"plain"`: -1, `"é"`: -1, `"\ud83d\ude00"`: -1, `"a\\ud800"`: -1, `"\\\\ud800"`: -1, `"\ud800`: 1, `"\uD800"`: 1,
		`"x\udc00"`: 2, `"\ud800\ud800\udc00"`: 1, `"\ud83d\ude00\udfff"`: 13, `"\ud800\u0041"`: 1, `"\ud800x\udc00"`: 1,
		`{"\ud800":1}`: 2, `"\\\ud800"`: 3, `\`: -1, `"\u12`: -1, `"\ud800\`: 1,
	} {
		if _, got := jsonescape.LoneSurrogate([]byte(text)); got != want {
			t.Errorf("LoneSurrogate(%s): got offset %d, want %d", text, got, want)
		}
	}
}

func FuzzLoneSurrogate(f *testing.F) {
	f.Add(`"\ud83d\ude00"`)
	f.Add(`["\\\udc00"]`)
	f.Fuzz(func(t *testing.T, text string) {
		escape, at := jsonescape.LoneSurrogate([]byte(text))
		if at >= 0 && text[at:at+6] != escape {
			t.Fatalf("LoneSurrogate(%q): got %q, which is not at %d, want the one there", text, escape, at)
		}
		if strings.Contains(text, "\uFFFD") || strings.ToValidUTF8(text, "") != text {
			return
		}
		var decoded any
		if json.Unmarshal([]byte(text), &decoded) != nil {
			return
		}
		encoded, err := json.Marshal(decoded)
		if err != nil {
			return
		}
		repaired := strings.Contains(string(encoded), "\uFFFD") || strings.Contains(string(encoded), `\ufffd`)
		if at < 0 && repaired && !strings.Contains(strings.ToLower(text), `\ufffd`) {
			t.Fatalf("LoneSurrogate(%q): got none, but decoding put U+FFFD in, want \"\\\\ufffd\" in the text", text)
		}
	})
}
