package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func search() concept {
	return concept{"Search", []promise{
		{"finds a word in any form", searchByWord},
		{"finds by meaning what shares no word", searchByMeaning},
		{"ranks what fits in both ways first", searchHybrid},
		{"takes plain language: no character has a special sense", searchPlainLanguage},
		{"finds words in many languages", searchLanguages},
		{"finds words of tags", searchTagWords},
		{"puts what holds a rare identifier first, however long it is", searchExact},
		{"gives scores and parts between their bounds", searchScores},
		{"says how likely each hit is about the text", searchConfidence},
		{"leaves out what is less likely than asked for", searchMinScore},
		{"answers several queries as it does each", searchBatch},
		{"iterates over all hits as its pages show them", searchAll},
		{"names the invalid one of several queries", searchBatchArguments},
		{"stays within chosen keys", searchKeys},
		{"leaves out contents on request", searchWithoutContent},
		{"has the best hits ordered again by a reranker", searchReranked},
		{"keeps its order when the reranker fails", searchRerankerFails},
		{"takes a vector in place of the text's", searchVector},
		{"stays within collections", searchCollections},
		{"groups by collection, the best one's first", searchGroups},
		{"combines everything that is set", searchCombined},
		{"without a text orders by time", searchByTime},
		{"by time leaves out memories far less relevant than the best", searchRelevantByTime},
		{"sees each write at once", searchSeesWrites},
		{"names bad arguments, and the allowed values", searchArguments},
		{"answers the same with and without an index in memory", searchOnDisk},
	}}
}

func searchByWord(f *fixture) {
	f.addTexts("The herons were nesting", "An otter swam by", "Zürich is a city", "call getUserByID first")
	for text, want := range map[string]string{
		"heron": "The herons were nesting", "HERON": "The herons were nesting", "nest": "The herons were nesting",
		"zurich": "Zürich is a city", "otters": "An otter swam by", "getUserByID": "call getUserByID first",
		"userbyid user": "call getUserByID first",
	} {
		if got := f.byWord(text); len(got) == 0 || got[0] != want {
			f.Errorf("%q: found %q; want %q first", text, got, want)
		}
	}
	f.same("a word that is nowhere", f.byWord("pelican"))
}

func searchByMeaning(f *fixture) {
	f.addTexts("my automobile is red", "the physician said so", "a dwelling near the ocean", "unrelated gardening")
	for text, want := range map[string]string{
		"car": "my automobile is red", "vehicle": "my automobile is red", "doctor": "the physician said so",
		"sea house": "a dwelling near the ocean",
	} {
		f.same(text, f.find(text), want)
		hit := f.search(souvenir.Query{Text: text}).Hits[0]
		if hit.Parts.Text != 0 || hit.Parts.Vector <= 0 {
			f.Errorf("%q: parts %+v; want meaning alone", text, hit.Parts)
		}
	}
}

func searchHybrid(f *fixture) {
	f.addTexts("red automobile", "car", "gardening in may", "blue puppy")
	f.same("word and meaning before meaning alone", f.find("car"), "car", "red automobile")
	results := f.search(souvenir.Query{Text: "car"})
	f.equal("ranks", []int{results.Hits[0].Rank, results.Hits[1].Rank}, []int{1, 2})
	if results.Hits[0].Score <= results.Hits[1].Score {
		f.Errorf("scores %v and %v; want the better first", results.Hits[0].Score, results.Hits[1].Score)
	}
}

// hostile are texts with a special meaning in FTS5's query language, in SQL or in Unicode.
var hostile = []string{
	`"`, `""`, `"heron`, `heron"`, `'`, `''`, `*`, `heron*`, `* heron`, `AND`, `OR`, `NOT`, `heron AND`, `AND heron`,
	`heron NOT heron`, `NEAR(`, `NEAR(heron otter, 2)`,
	`NEAR`, `-`, `-heron`, `heron -otter`, `--`, `:`, `content:heron`, `tags : heron`, `{content} : heron`, `^`, `^heron`,
	`(`, `)`, `((heron)`, `()`, `heron)`, `+`, `heron + otter`,
	`\`, `heron\`, `%`, `_`, `?`, `;`, `heron; DROP TABLE memory`, `/* heron`, "heron\x00otter", "\x00", "heron\x00", "🐦",
	"🐦 heron", "👩‍👩‍👧‍👦", "heron\u200d", "\u202eheron", "h\u0301eron", "heron…",
	"\ufeffheron", "\n\t heron \r\n", "{", "[heron]", "<heron>", "heron,otter", "a", "the", "rank", "rowid:1", "NULL", "0",
	"-1", "1e400", strings.Repeat("(", 1000), strings.Repeat("heron ", 1000), strings.Repeat(`"`, 999),
}

func searchPlainLanguage(f *fixture) {
	f.addTexts("the heron in the reeds", "an otter")
	for _, text := range hostile {
		for _, sort := range []souvenir.SortOrder{souvenir.SortRelevance, souvenir.SortUpdatedDesc} {
			results, err := f.reader.Search(f.ctx, souvenir.Query{Text: text, Sort: sort})
			if err != nil {
				f.Errorf("search for %q: %v", brief(text), err)
				continue
			}
			if strings.Contains(text, "heron") && !strings.Contains(text, "h\u0301") {
				if found := fitting(results); !slices.Contains(found, "the heron in the reeds") {
					f.Errorf("search for %q found %q; want the heron", brief(text), found)
				}
			}
		}
	}
	for _, word := range []string{"AND", "OR", "NOT", "NEAR"} {
		id := f.addTexts("chapter " + word)[0]
		f.equal("found by "+word, f.search(souvenir.Query{Text: word + " chapter"}).Hits[0].ID, id)
		f.delete(id)
	}
	for _, text := range hostile {
		text = strings.ReplaceAll(text, "\x00", "\x01") // not allowed in stored text
		id := f.addTexts("a note: " + text)[0]
		f.equal("content", f.get(id).Content, "a note: "+text)
		f.delete(id)
	}
}

func searchLanguages(f *fixture) {
	for _, c := range []struct{ content, text string }{
		{"我喜欢在周末喝咖啡", "喝咖啡"}, {"東京タワーは高いです", "東京タワー"}, {"서울은 한국의 수도입니다", "수도"}, {"ฉันชอบกินข้าวผัด", "ข้าวผัด"},
		{"Встреча завтра в Омске", "встреча"}, {"Die Straße nach Köln", "strasse"}, {"η γάτα κοιμάται", "γάτα"},
		{"القط على الحصير", "القط"},
	} {
		f.addTexts(c.content)
		if got := f.byWord(c.text); !slices.Contains(got, c.content) {
			f.Errorf("%q: found %q by word; want %q", c.text, got, c.content)
		}
	}
}

func searchTagWords(f *fixture) {
	f.add(souvenir.NewMemory{Content: "stand still and look", Tags: []string{"bird watching"}})
	f.addTexts("something else")
	f.same("by a word of a tag", f.byWord("bird"), "stand still and look")
}

func searchExact(f *fixture) {
	filler := strings.Repeat("gardening in the puppy house by the ocean, ", 30)
	for _, c := range []struct{ exact, similar string }{
		{"ERR_X7731", "ERR_X78%02d"}, {"PAY-4412", "PAY-45%02d"}, {"mara.quill@example.com", "mara.quill%02d@example.com"},
		{"v4.17.2", "v4.18.%d"},
		{"/srv/ledger/main.db", "/srv/ledger/main%02d.db"},
	} {
		collection := "about " + strings.Trim(c.exact, "/")
		f.addCollection(souvenir.NewCollection{Name: collection})
		for i := range 20 {
			f.add(souvenir.NewMemory{Content: "the car failed with " + fmt.Sprintf(c.similar, i), Collection: collection})
		}
		want := f.add(souvenir.NewMemory{Content: filler + "it was " + c.exact + ", and " + filler,
			Collection: collection}).ID
		for _, text := range []string{c.exact, "why has the car failed with " + c.exact + "?", "关于" + c.exact + "我们知道什么",
			strings.ToLower(c.exact)} {
			results := f.search(souvenir.Query{Text: text, Collections: []string{collection}})
			f.equal("first for "+text, results.Hits[0].ID, want)
			if h := results.Hits[0]; h.Score > 1 || h.Parts.Text > 1.000001 {
				f.Errorf("%s: score %v of %+v is out of its bounds, want score at most 1 and text at most 1.000001", text, h.Score,
					h.Parts)
			}
		}
	}
}

func searchScores(f *fixture) {
	f.addTexts("a car and a house", "a car", "car", "house house house", "gardening", "automobile dwelling",
		strings.Repeat("car house ", 50))
	for _, q := range []souvenir.Query{{Text: "car"}, {Text: "car house pelican"}, {Text: "CAR"},
		{Vector: Words{}.Vector("car")}, {Text: "house", Vector: Words{}.Vector("car")}, {Text: "***"}} {
		results := f.search(q)
		last := 2.0
		for i, h := range results.Hits {
			if h.Score < 0 || h.Score > 1.000001 || h.Parts.Text < 0 || h.Parts.Text > 1.000001 || h.Parts.Vector < -1.000001 ||
				h.Parts.Vector > 1.000001 {
				f.Errorf("%s: score %v of %+v is out of its bounds, want scores up to 1", brief(q.Text), h.Score, h.Parts)
			}
			if h.Score > last {
				f.Errorf("%s: hit %d has a higher score, %v, than the one before it; want at most %v", brief(q.Text), i,
					h.Score,
					last)
			}
			last = h.Score
			f.equal("rank", h.Rank, i+1)
		}
	}
	exact := f.search(souvenir.Query{Vector: Words{}.Vector("car")}).Hits[0]
	if exact.Content != "car" || exact.Score < 0.999 || exact.Parts.Text != 0 {
		f.Errorf("the best hit for the vector of car is %q with %v, %+v; want the same text with the similarity 1",
			exact.Content, exact.Score, exact.Parts)
	}
	for _, h := range f.search(souvenir.Query{}).Hits {
		f.equal("score when nothing is sought", []any{h.Score, h.Parts}, []any{0.0, souvenir.Parts{}})
	}
}

func searchVector(f *fixture) {
	f.addTexts("a red car", "a dog")
	embedded := len(f.embedder.Texts())
	vector := Words{}.Vector("hound")
	for i := range vector {
		vector[i] *= 7 // its length does not matter
	}
	results := f.search(souvenir.Query{Vector: vector})
	f.equal("order and sort", []any{results.Hits[0].Content, results.Sort}, []any{"a dog", souvenir.SortRelevance})
	f.equal("the caller's vector", slices.Max(vector), float32(7))
	for _, h := range f.search(souvenir.Query{Vector: vector, Text: "red"}).Hits {
		f.equal("with a text, words count as well: "+h.Content, []bool{h.Parts.Text > 0, h.Parts.Vector > 0},
			[]bool{h.Content == "a red car", h.Content == "a dog"})
	}
	f.equal("texts embedded", len(f.embedder.Texts()), embedded)

	_, err := f.reader.Search(f.ctx, souvenir.Query{Vector: []float32{1, 2, 3}})
	f.failsAt("Search with a vector of another size", err, souvenir.ErrInvalid, "query_embedding", "3",
		fmt.Sprint(wordDimensions))
	vector[0] = nan()
	_, err = f.reader.Search(f.ctx, souvenir.Query{Vector: vector})
	f.failsAt("Search with a vector that has no number", err, souvenir.ErrInvalid, "query_embedding", "NaN")
}

func searchCollections(f *fixture) {
	for _, name := range []string{"a", "b", "c"} {
		f.addCollection(souvenir.NewCollection{Name: name})
		f.add(souvenir.NewMemory{Collection: name, Content: "car in " + name + name})
	}
	for _, c := range []struct {
		names []string
		want  int
	}{{nil, 3}, {[]string{"b"}, 1}, {[]string{"a", "c"}, 2}, {[]string{"a", "a"}, 1}, {[]string{"default"}, -1}} {
		for _, text := range []string{"", "car"} {
			results, err := f.reader.Search(f.ctx, souvenir.Query{Text: text, Collections: c.names})
			if c.want < 0 {
				f.failsAt("Search in a collection that is not there yet", err, souvenir.ErrNotFound, "collection_name")
				continue
			}
			f.check("Search", err)
			f.equal(fmt.Sprint("found in ", c.names), []int{len(results.Hits), results.Total}, []int{c.want, c.want})
		}
	}
	_, err := f.reader.Search(f.ctx, souvenir.Query{Collections: []string{"a", ""}})
	f.failsAt("Search in a nameless collection", err, souvenir.ErrInvalid, "collection_name")
}

func searchGroups(f *fixture) {
	for _, name := range []string{"a", "b", "c"} {
		f.addCollection(souvenir.NewCollection{Name: name})
	}
	f.add(souvenir.NewMemory{Collection: "a", Content: "car and plenty of other things to say"})
	f.add(souvenir.NewMemory{Collection: "b", Content: "car"})
	f.add(souvenir.NewMemory{Collection: "b", Content: "gardening"})
	f.add(souvenir.NewMemory{Collection: "c", Content: "car and house"})
	results := f.search(souvenir.Query{Text: "car"})
	var got []string
	ranks := 0
	for _, g := range results.Groups() {
		line := g.Collection
		for i, h := range g.Hits {
			line += fmt.Sprint(" ", h.Rank)
			ranks += h.Rank
			if i > 0 && h.Rank < g.Hits[i-1].Rank {
				f.Errorf("group %s has rank %d, want at least %d, as before it", g.Collection, h.Rank, g.Hits[i-1].Rank)
			}
			f.equal("collection of a hit", h.Collection, g.Collection)
		}
		got = append(got, line)
	}
	f.same("groups with their ranks", got, "b 1 4", "c 2", "a 3")
	same(f, "groups of nothing", souvenir.Results{}.Groups(), nil)
}

func searchCombined(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "notes"})
	for i, m := range []souvenir.NewMemory{
		{}, {Collection: "notes"}, {Collection: "notes", Classification: "do"},
		{Collection: "notes", Classification: "do", Tags: []string{"x"}},
		{Collection: "notes", Classification: "do", Tags: []string{"x"}, ProjectID: "p"},
		{Collection: "notes", Classification: "do", Tags: []string{"x"}, ProjectID: "p", State: "active"},
	} {
		m.Content = fmt.Sprint("car ", i)
		f.add(m)
	}
	q := souvenir.Query{Text: "automobile"}
	for _, step := range []struct {
		narrow func()
		want   int
	}{
		{func() {}, 6},
		{func() { q.Collections = []string{"notes"} }, 5},
		{func() { q.Classification = "do" }, 4},
		{func() { q.Tags = []string{"y", "x"} }, 3},
		{func() { q.ProjectID = "p" }, 2},
		{func() { q.Filter = souvenir.Filter{"state": "active"} }, 1},
		{func() { q.Filter = souvenir.Filter{"state": "archived"} }, 0},
	} {
		step.narrow()
		for _, sort := range []souvenir.SortOrder{souvenir.SortRelevance, souvenir.SortCreatedAsc} {
			q.Sort = sort
			f.equal(fmt.Sprintf("total of %+v", q), f.search(q).Total, step.want)
		}
	}
}

func searchByTime(f *fixture) {
	var want []string
	for _, content := range []string{"one", "two", "three"} {
		f.addTexts(content)
		f.clock.Pass(time.Second)
		want = append([]string{content}, want...)
	}
	for _, q := range []souvenir.Query{{}, {Text: "  \n"}, {Sort: souvenir.SortRelevance},
		{Text: " ", Sort: souvenir.SortRelevance}, {Vector: []float32{}}} {
		results := f.search(q)
		f.same("order", contents(results), want...)
		f.equal("sort, limit, total", []any{results.Sort, results.Limit, results.Offset, results.Total},
			[]any{souvenir.SortUpdatedDesc, souvenir.DefaultLimit, 0, 3})
	}
	slices.Reverse(want)
	f.same("the other way round", contents(f.search(souvenir.Query{Sort: souvenir.SortUpdatedAsc})), want...)
	f.equal("sort with a text", f.search(souvenir.Query{Text: "one"}).Sort, souvenir.SortRelevance)
}

func searchRelevantByTime(f *fixture) {
	for _, content := range []string{"car house dog coffee", "a car in the yard", "the car, the house and the dog",
		"gardening", "automobile dwelling hound espresso", "coffee car dog house"} {
		f.addTexts(content)
		f.clock.Pass(time.Second)
	}
	const text = "car house dog coffee"
	best := f.search(souvenir.Query{Text: text})
	var want []string
	little := 0 // hits of little relevance
	for _, m := range f.list(souvenir.MemoryList{}) {
		for _, h := range best.Hits {
			switch {
			case h.ID != m.ID:
			case h.Score >= best.Hits[0].Score/2:
				want = append(want, h.Content)
			case h.Score > 0:
				little++
			}
		}
	}
	if len(want) < 2 || little == 0 {
		f.Fatalf("at least half as relevant as the best: %q, less so: %d; want some of both", want, little)
	}
	asc := f.search(souvenir.Query{Text: text, Sort: souvenir.SortCreatedAsc})
	f.same("by time", contents(asc), want...)
	f.equal("total", asc.Total, len(want))
	slices.Reverse(want)
	desc := f.search(souvenir.Query{Text: text, Sort: souvenir.SortUpdatedDesc, Limit: 1})
	f.same("the newest", contents(desc), want[0])
	f.equal("score and more", []bool{desc.Hits[0].Score > 0, desc.HasMore()}, []bool{true, true})
}

func searchSeesWrites(f *fixture) {
	kept := 0
	for i := range 20 {
		word := "kap" + string(rune('a'+i)) + "o" // a new word each time, and no stem of another
		changed, project := "zu"+word, fmt.Sprint("p", i%3)
		id := f.addTexts(word)[0]
		f.same("after storing", f.find(word), word)
		f.rewrite(id, changed)
		f.same("by the old content", f.find(word))
		f.same("after an update", f.find(changed), changed)
		f.patch(id, map[string]any{"project_id": project})
		f.equal("after a move", f.search(souvenir.Query{Text: changed, ProjectID: project}).Hits[0].ID, id)
		if i%2 == 1 {
			kept++
			continue
		}
		f.delete(id)
		f.same("after the deletion", f.find(changed))
		f.equal("in all", f.search(souvenir.Query{Text: word}).Total, kept)
	}
}

func searchArguments(f *fixture) {
	f.addTexts("some memory")
	for _, c := range []struct {
		name     string
		q        souvenir.Query
		kind     *souvenir.Error
		argument string
		says     string
	}{
		{"negative limit", souvenir.Query{Limit: -1}, souvenir.ErrInvalid, "limit", "limit is -1; expected 1 to 100"},
		{"limit past the most", souvenir.Query{Limit: 101}, souvenir.ErrInvalid, "limit", "limit is 101; expected 1 to 100"},
		{"negative offset", souvenir.Query{Offset: -1}, souvenir.ErrInvalid, "offset", "offset is -1"},
		{"unknown sort", souvenir.Query{Sort: "best"}, souvenir.ErrInvalid, "sort_order",
			`"best"; expected "relevance", "updated_at_asc"`},
		{"unknown classification", souvenir.Query{Classification: "maybe"}, souvenir.ErrInvalid, "classification",
			`"do", "dont", "todo" or "notes"`},
		{"long text", souvenir.Query{Text: strings.Repeat("x", souvenir.MaxQuery+1)}, souvenir.ErrTooLarge, "query", "65536"},
		{"text that is not UTF-8", souvenir.Query{Text: "a\xff"}, souvenir.ErrInvalid, "query", "UTF-8"},
		{"bad filter with an unknown project", souvenir.Query{ProjectID: "nowhere", Filter: souvenir.Filter{"state": 7}},
			souvenir.ErrInvalid, "filter", "state"},
		{"unknown classification with an unknown project", souvenir.Query{ProjectID: "nowhere", Classification: "maybe"},
			souvenir.ErrInvalid, "classification", "maybe"},
	} {
		_, err := f.reader.Search(f.ctx, c.q)
		f.failsAt("Search with "+c.name, err, c.kind, c.argument, c.says)
	}
	f.search(souvenir.Query{Text: strings.Repeat("x ", souvenir.MaxQuery/2)})
	f.search(souvenir.Query{Limit: 100, Offset: 1 << 30, Text: "memory"})
}

func searchOnDisk(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "own", OwnVectors: true, VectorSize: wordDimensions})
	subjects := []string{"car", "automobile", "dog", "house", "coffee", "ocean"}
	for i := range 120 {
		m := souvenir.NewMemory{Content: fmt.Sprint("the ", subjects[i%6], " and the ", subjects[i%5], " of ", i%7),
			Tags: []string{subjects[i%4]}}
		if i%10 == 0 {
			m.ProjectID = "p"
		}
		if i%9 == 0 {
			m.Collection, m.Embedding = "own", Words{}.Vector(m.Content)
		}
		f.add(m)
	}
	var others []*souvenir.Store
	for _, bytes := range []int64{-1, 1, 0} { // no index, one that does not fit, one that does
		options := f.options(f.embedder)
		options.IndexMemory = bytes
		others = append(others, f.open(f.T, options))
	}
	for _, q := range []souvenir.Query{
		{Text: "vehicle"}, {Text: "the dog of 3"}, {Text: "hound 4", Tags: []string{"car"}}, {Text: "sea", ProjectID: "p"},
		{Text: "***"}, {Text: "pelican"},
		{Vector: Words{}.Vector("puppy")}, {Text: "house", Vector: Words{}.Vector("puppy")},
		{Text: "coffee", Sort: souvenir.SortCreatedDesc},
		{Text: "dog", Collections: []string{"own"}}, {Text: "car", Filter: souvenir.Filter{"tags": souvenir.Not("dog")}},
	} {
		for offset := 0; offset < 120; offset += 50 {
			q.Offset, q.Limit = offset, 50
			a := f.search(q)
			for _, other := range others {
				b, err := other.Search(f.ctx, q)
				f.check("Search", err)
				f.sameHits(brief(q.Text), a, b)
			}
		}
	}
}

// sameHits compares results except for the rounding of scores, which may also swap equally good hits.
func (f *fixture) sameHits(what string, a, b souvenir.Results) {
	f.Helper()
	f.equal(what+": hits and total", []int{len(b.Hits), b.Total}, []int{len(a.Hits), a.Total})
	for i := range min(len(a.Hits), len(b.Hits)) {
		x, y := a.Hits[i], b.Hits[i]
		if !near(x.Score, y.Score) || !near(x.Parts.Text, y.Parts.Text) || !near(x.Parts.Vector, y.Parts.Vector) {
			f.Errorf("%s: rank %d: got %q with %v %+v in one way and %q with %v %+v in the other, want the same scores",
				what, x.Rank, x.Content, x.Score, x.Parts, y.Content, y.Score, y.Parts)
			return
		}
	}
}
