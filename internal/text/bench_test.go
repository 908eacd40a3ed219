package text

import (
	"strings"
	"testing"
)

// samples are own texts, repeated to 64 KiB.
var samples = []struct{ name, text string }{
	{"English", "Yesterday Hannah's sister went to the market, bought fresh strawberries and forgot her umbrella in the " +
		"tram. She'd been looking forward to baking a cake for the children; it didn't matter that it was raining. "},
	{"Code", "func (s *Store) GetUserByID(ctx context.Context, id string) (*User, error) { return s.users[id], nil } // " +
		"see internal/store/user_cache.go, v1.60.1 "},
	{"French", "Hier, la sœur de Zoé est allée au marché, où elle a acheté des fraises très mûres; l'été dernier " +
		"c'était déjà ainsi. "},
	{"Russian", "Вчера сестра пошла на рынок, купила свежей клубники и забыла зонтик в трамвае, хотя дождь ещё не " +
		"кончился. "},
	{"Chinese", "昨天姐姐去市场买了新鲜的草莓，把雨伞忘在电车上了。她本来打算给孩子们烤一个蛋糕。"},
	{"Hindi", "कल बहन बाज़ार गई और ताज़ी स्ट्रॉबेरी खरीदी, लेकिन अपना छाता ट्राम में भूल गई। "},
}

func sample(text string) string { return strings.Repeat(text, 1+(64<<10)/len(text)) }

func BenchmarkTerms(b *testing.B) {
	for _, t := range samples {
		b.Run(t.name, func(b *testing.B) {
			s := sample(t.text)
			var dst []string
			b.SetBytes(int64(len(s)))
			b.ReportAllocs()
			for b.Loop() {
				dst = AppendTerms(dst[:0], s)
			}
		})
	}
}

func BenchmarkQueryTerms(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		QueryTerms("When did Hannah's sister go to the market, and what did she buy there?")
	}
}

func BenchmarkStem(b *testing.B) {
	words := strings.Fields("running strawberries organization umbrella nationality happily children conditional " +
		"general market")
	buf := make([]byte, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		for _, w := range words {
			stem(append(buf[:0], w...))
		}
	}
}

func BenchmarkSplit(b *testing.B) {
	for _, t := range samples {
		b.Run(t.name, func(b *testing.B) {
			s := sample(t.text)
			b.SetBytes(int64(len(s)))
			b.ReportAllocs()
			for b.Loop() {
				Split(s, 1000)
			}
		})
	}
}
