package similarity

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// TestSketchesMissNoLikeText compares texts with each other, and with small changes of themselves. Every text that is
// like another must pass its probe, with the cosine of the two and with any higher one.
func TestSketchesMissNoLikeText(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	all := pairs(t)
	alike, passed, compared := 0, 0, 0
	check := func(a, b Text, cosine float64) {
		t.Helper()
		p, s := NewProbe(a, Duplicate), SketchOf(b)
		may := p.May(&s, cosine)
		compared++
		if found := p.Scan([]Sketch{{}, s}, nil); len(found) > 1 || may && (len(found) == 0 || found[0] != 1) {
			t.Errorf("%q and %q: a scan found %v, want place 1 and no other", a.source, b.source, found)
		}
		if may {
			passed++
		}
		like := Score(a, b, cosine)
		if float32(like) >= Duplicate {
			alike++
		}
		if float32(like) >= Duplicate && !may || like >= 0.1 && len(NewProbe(a, 0.1).Scan([]Sketch{s}, nil)) == 0 {
			t.Errorf("%q and %q have the score %v, but their sketches say that they cannot have; want them to allow it",
				a.source, b.source, like)
		}
	}
	for i, p := range all {
		if !longtest.Part(i, 1, 3) {
			continue
		}
		a := Read(p.A)
		for _, text := range []string{p.B, p.A, all[random.IntN(len(all))].A, strings.ToUpper(p.A),
			changed(random, p.A), changed(random, p.B)} {
			b := Read(text)
			for _, cosine := range []float64{CosineOf(a, b), 1} {
				check(a, b, cosine)
				check(b, a, cosine)
			}
		}
	}
	if refused := compared - passed; alike < longtest.Size(1000, 300) || refused < longtest.Size(1000, 300) {
		t.Errorf("of %d pairs %d were alike and %d refused: want 1,000 of each", compared, alike, refused)
	}
}

// TestAScanFindsWhatPasses compares scans of many sketches at once with a test of each of them.
func TestAScanFindsWhatPasses(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	all := pairs(t)
	var sketches []Sketch
	for len(sketches) < 3*siftAtOnce+5 {
		p := all[random.IntN(len(all))]
		sketches = append(sketches, SketchOf(Read(p.A)), Sketch{}, SketchOf(Read(changed(random, p.B))))
	}
	found, facts := 0, map[uint8]bool{}
	for range 300 {
		text := Read(changed(random, all[random.IntN(len(all))].A))
		least := []float64{Duplicate, 0.5, 0.1}[random.IntN(3)]
		p := NewProbe(text, least)
		var want []int32
		for i := range sketches {
			if p.passes(&sketches[i]) {
				want = append(want, int32(i))
				facts[max(p.sketch.Facts, sketches[i].Facts)] = true
			} else if p.May(&sketches[i], 1) {
				t.Fatalf("%q may be like sketch %d, which does not pass", text.source, i)
			}
		}
		if got := NewProbe(text, least).Scan(sketches, nil); !slices.Equal(got, want) {
			t.Fatalf("%q: a scan found %v, want %v", text.source, got, want)
		}
		found += len(want)
	}
	if found < 300 || len(facts) < 3 {
		t.Errorf("%d were found, with %d numbers of facts; want more", found, len(facts))
	}
}

// changed returns a text with some words removed, repeated, moved or replaced by a number.
func changed(random *rand.Rand, text string) string {
	words := strings.Fields(text)
	for range 1 + random.IntN(3) {
		if len(words) == 0 {
			break
		}
		i, j := random.IntN(len(words)), random.IntN(len(words))
		switch random.IntN(5) {
		case 0:
			words[i], words[j] = words[j], words[i]
		case 1:
			words = append(words[:i], words[i+1:]...)
		case 2:
			words = append(words, words[i])
		case 3:
			words[i] = fmt.Sprint(random.IntN(5))
		case 4:
			words[i] = strings.ToUpper(words[i])
		}
	}
	return strings.Join(words, " ")
}

func FuzzSketch(f *testing.F) {
	f.Add("2 pm on Tuesday", "火曜日14:00 UTC")
	f.Add("fooBar straße Σας", "FOOBAR STRASSE ΣΑΣ")
	f.Add(strings.Repeat("ab ", 3000), strings.Repeat("aB ", 3000))
	f.Fuzz(func(t *testing.T, one, other string) {
		a, b := Read(one), Read(other)
		if s := SketchOf(b); float32(Score(a, b, 1)) >= Duplicate && !NewProbe(a, Duplicate).May(&s, 1) {
			t.Errorf("%q and %q are alike, but their sketches say that they cannot be; want them to allow it", one, other)
		}
	})
}

// BenchmarkScan searches 100,000 texts for those like one of 20 words.
func BenchmarkScan(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		words := make([]string, 12+random.IntN(15))
		for i := range words {
			words[i] = fmt.Sprint("word", string(rune('a'+random.IntN(26))), string(rune('a'+random.IntN(26))))
		}
		return strings.Join(words, " ")
	}
	sketches := make([]Sketch, 100_000)
	for i := range sketches {
		sketches[i] = SketchOf(Read(text()))
	}
	given := Read(text())
	for b.Loop() {
		NewProbe(given, Duplicate).Scan(sketches, nil)
	}
}

func BenchmarkReadAndSketch(b *testing.B) {
	text := "The deploy window of Falcon is Tuesday 14:00 UTC, unless the queue worker was restarted before."
	for b.Loop() {
		SketchOf(Read(text))
	}
}
