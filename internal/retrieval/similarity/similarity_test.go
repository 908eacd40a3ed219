package similarity

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// labelled is a pair of texts, with people's judgement whether they mean the same.
type labelled struct {
	Language string `json:"lang"`
	Kind     string
	A, B     string
	Same     bool
}

func pairs(t *testing.T) (all []labelled) {
	t.Helper()
	file, err := os.Open("testdata/pairs.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var p labelled
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

func score(a, b string) float64 {
	x, y := Read(a), Read(b)
	return Score(x, y, CosineOf(x, y))
}

// TestNearDuplicatesAreDuplicates checks the precision and recall in docs/benchmarks.md.
func TestNearDuplicatesAreDuplicates(t *testing.T) {
	type count struct{ offered, right, same int }
	counts := map[string]*count{"all": {}}
	for _, p := range pairs(t) {
		if counts[p.Language] == nil {
			counts[p.Language] = &count{}
		}
		offered := score(p.A, p.B) >= Duplicate
		for _, c := range []*count{counts["all"], counts[p.Language]} {
			if p.Same {
				c.same++
			}
			if offered {
				c.offered++
			}
			if offered && p.Same {
				c.right++
			}
		}
		if offered && !p.Same {
			t.Logf("offered, though %s: %q and %q", p.Kind, p.A, p.B)
		}
	}
	for language, leastRecall := range map[string]float64{"all": 0.40, "en": 0.54, "de": 0.35, "es": 0.25, "zh": 0.34,
		"ja": 0.40} {
		c := counts[language]
		precision, recall := float64(c.right)/float64(max(1, c.offered)), float64(c.right)/float64(max(1, c.same))
		t.Logf("%s: %d offered, precision %.3f, recall %.3f", language, c.offered, precision, recall)
		if precision < 0.95 || recall < leastRecall {
			t.Errorf("%s: precision %.3f and recall %.3f, want at least 0.95 and %v", language, precision, recall, leastRecall)
		}
	}
}

func TestScore(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"The deploy window of Falcon is Tuesday 14:00 UTC.", "Falcon deploys on Tuesdays at 14:00 UTC.", true},
		{"The deploy window of Falcon is Tuesday 14:00 UTC.", "Falcon deploys on Tuesdays at 2 pm UTC.", true},
		{"The deploy window of Falcon is Tuesday 14:00 UTC.", "Falcon deploys on Mondays at 14:00 UTC.", false},
		{"The deploy window of Falcon is Tuesday 14:00 UTC.", "Falcon deploys on Tuesdays at 15:00 UTC.", false},
		{"The deploy window of Falcon is Tuesday 14:00 UTC.", "Kestrel deploys on Tuesdays at 14:00 UTC.", false},
		{"京都の宿は夜10時に門が閉まります。部屋は305号室です。", "京都の宿は夜11時に門が閉まります。部屋は712号室です。", false},
		{"Restart the queue worker after each deploy.", "Note: Restart the queue worker after each deploy", true},
		{"Restart the queue worker after each deploy.", "Do not restart the queue worker after each deploy.", false},
		{"ferry tickets are cheap in May", "The certificate of the gateway has expired", false},
		{"", "", true},
		{"x", "", false},
	} {
		if got := score(c.a, c.b); got >= Duplicate != c.same || got < 0 || got > 1 {
			t.Errorf("%q and %q: score %.2f, duplicates should be %v, want a score from 0 to 1 on its side of the "+
				"limit", c.a, c.b, got, c.same)
		}
		if there, back := score(c.a, c.b), score(c.b, c.a); there-back > 0.05 || back-there > 0.05 {
			t.Errorf("%q and %q: score %.2f one way and %.2f the other, want there - back at most 0.05 and back - there "+
				"at most 0.05", c.a, c.b, there, back)
		}
	}
}

// TestScoreFromIsExactAboveTheBound compares the fast way with the full one: it leaves out the order of words, which
// can only lower the score.
func TestScoreFromIsExactAboveTheBound(t *testing.T) {
	if w := weights; w[substitute] != 0 || w[swapped] > 0 || w[slot] > 0 || w[wideReplaced] > 0 {
		t.Errorf("the order of words may not count as score, and words that replace others count only in scripts "+
			"without spaces: got the weights %v, %v, %v and %v, want 0 and none above 0", w[substitute], w[swapped],
			w[slot], w[wideReplaced])
	}
	sooner := 0
	for _, p := range pairs(t) {
		a, b := Read(p.A), Read(p.B)
		for _, cosine := range []float64{0.5, CosineOf(a, b), 1} {
			whole := Score(a, b, cosine)
			for _, least := range []float64{0.1, Duplicate} {
				switch quick := ScoreFrom(least, a, b, cosine); {
				case (whole >= least || quick >= least) && quick != whole:
					t.Errorf("%q and %q, cosine %.2f: %v, and from %v on %v", p.A, p.B, cosine, whole, least, quick)
				case quick != whole:
					sooner++
				}
			}
		}
	}
	if sooner == 0 {
		t.Errorf("got %v found sooner, want at least one", sooner)
	}
}

func FuzzScore(f *testing.F) {
	f.Add("2 pm on Tuesday", "火曜日14:00 UTC")
	f.Add(strings.Repeat("ab ", 3000), "\xff\x00ー-'")
	f.Add("星期二周", "1,000.5-")
	f.Fuzz(func(t *testing.T, a, b string) {
		if got := score(a, b); !(got >= 0 && got <= 1) {
			t.Errorf("%q and %q: score %v, want it from 0 to 1", a, b, got)
		}
		if got := score(a, a); len(a) < MaxBytes && got != 1 {
			t.Errorf("%q and itself: score %v, want 1", a, got)
		}
	})
}
