package souvenir

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Fuzz targets for what comes from outside are next to what they fuzz: go test -fuzz FuzzQuery -fuzztime 30s

// openBoth opens one file twice: with an index in memory, and on disk only.
func openBoth(tb testing.TB) (inMemory, onDisk *Store) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "fuzz.db")
	return openWords(tb, path, Options{}), openWords(tb, path, Options{IndexMemory: -1})
}

var library = []NewMemory{
	{Content: "The quick brown fox jumps over the lazy dog."},
	{Content: "Deploy with `kubectl apply -f deploy.yaml --namespace=prod`; roll back with helm.",
		Tags: []string{"ops", "kubernetes"}},
	{Content: "getUserByID(ctx, id) returns ErrNotFound; see user_store.go:142"},
	{Content: "O'Brien said: \"NEAR AND OR NOT\" is what the query was, with a * and a ^ and (brackets)."},
	{Content: "Grüße aus Köln; naïve café, Straße, ﬁnancial ﬂow."},
	{Content: "東京タワーは東京都港区にある電波塔である。"},
	{Content: "中文分词没有空格。我喜欢喝咖啡。"},
	{Content: "서울은 대한민국의 수도이다."},
	{Content: "กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย"},
	{Content: "Москва — столица России. Ёлка и ёжик."},
	{Content: "القاهرة عاصمة مصر", Tags: []string{"مصر"}},
	{Content: "v1.2.3-rc.4+build.5, 192.168.0.1, 3.14159, 1e-9, 50%"},
	{Content: "aaa aaa aaa aaa bbb"},
	{Content: "bbb aaa"},
	{Content: "the of and to a in is it"},
	{Content: "US WHO IT it who us"},
	{Content: "🦊🐶 emoji and ZWJ 👩‍👩‍👧 sequences"},
	{Content: "a\x01one and \u200bzero-width and a tab\tand\r\nlines"},
	{Content: strings.Repeat("A long memory is split into passages, each of which is searched. ", 80) +
		"The end speaks of a fox."},
	{Content: strings.Repeat("x", 5000) + " after one long word"},
}

func FuzzQuery(f *testing.F) {
	for _, m := range library {
		f.Add(m.Content)
	}
	for _, q := range []string{
		"", " ", "\x00", `"`, `""`, `"unclosed`, "fox AND", "NOT fox", "NEAR(fox dog, 2)", "content:fox", "tags : x", "fox*",
		"^fox", "(fox", ")", "{content tags}: fox",
		"-fox", "+fox", "fox OR OR dog", "'; DROP TABLE memory; --", "%_", "\\", "fox\"dog", "東京", "京", "กรุง", "\xff\xfe",
		"ﬁ", "İ", "ß", "�", "a b c d e f g h",
		"AND", "OR", "NOT", "NEAR", "user_store.go:142", "1e-9", "kubectl --namespace=prod", strings.Repeat("fox ", 300),
	} {
		f.Add(q)
	}
	inMemory, onDisk := openBoth(f)
	if _, err := inMemory.AddMemories(context.Background(), library, nil); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, query string) {
		q := Query{Text: query, Limit: MaxLimit}
		a, errA := inMemory.Search(context.Background(), q)
		b, errB := onDisk.Search(context.Background(), q)
		if errA != nil || errB != nil {
			allowed := errors.Is(errA, ErrInvalid) && !utf8.ValidString(query) || errors.Is(errA, ErrTooLarge) &&
				len(query) > MaxQuery
			if !allowed || errB == nil || errA.Error() != errB.Error() {
				t.Fatalf("search for %q: %v in memory, %v on disk", query, errA, errB)
			}
			return
		}
		sameHits(t, a, b)
	})
}

// sameHits sees that two searches found the same in the same order, where the scores differ by more than rounding.
func sameHits(t *testing.T, a, b Results) {
	t.Helper()
	if a.Total != b.Total || len(a.Hits) != len(b.Hits) || a.Sort != b.Sort || !slices.Equal(a.Warnings, b.Warnings) {
		t.Fatalf("in memory %d of %d by %s %v, on disk %d of %d by %s %v, want total %v, %v hits, sort %v and warnings %v",
			len(a.Hits), a.Total, a.Sort, a.Warnings, len(b.Hits), b.Total, b.Sort, b.Warnings, b.Total, len(b.Hits), b.Sort,
			b.Warnings)
	}
	const rounding = 4e-5 // the index in memory has 16 bits of each number of a vector
	scores := map[string]Hit{}
	for _, h := range b.Hits {
		scores[h.ID] = h
	}
	for i, h := range a.Hits {
		other, ok := scores[h.ID]
		if !ok {
			t.Fatalf("%q is found in memory only, want it found in the file, too", h.Content)
		}
		if math.Abs(h.Score-other.Score) > rounding || math.Abs(h.Parts.Text-other.Parts.Text) > rounding ||
			math.Abs(h.Parts.Vector-other.Parts.Vector) > rounding {
			t.Fatalf("%q scores %v %+v in memory, %v %+v on disk", h.Content, h.Score, h.Parts, other.Score, other.Parts)
		}
		if there := b.Hits[i]; there.ID != h.ID && math.Abs(there.Score-h.Score) > rounding {
			t.Fatalf("place %d is %q in memory, %q on disk", i, h.Content, there.Content)
		}
	}
}
