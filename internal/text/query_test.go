package text

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite"
)

func TestQueryTerms(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", ""},
		{"function words go", "What did Hannah's sister buy in the market?", "hannah 1.5, sister 1, buy 1, market 1"},
		{"unless there is nothing else", "Who was it?", "who 1, was 1, it 1"},
		{"each term once", "cat, cats and more Cats", "cat 1.5, more 0.4"},
		{"parts weigh less than the whole", "where is getUserByID", "get 0.75, user 0.75, id 0.75, getuserbyid 1"},
		{"a part that is also a word weighs as one", "user getUser", "user 1.5, get 0.75, getus 1"},
		{"acronyms are no function words", "the IT of the US and WHO", "it 1.5, us 1.5, who 1.5"},
		{"shouting is no acronym", "WHAT DID SHE BUY?", "buy 1.5"},
		{"the month stays", "in May", "may 1.5"},
		{"pairs cover their characters", "我喜欢猫", "我喜 0.4, 喜欢 1.5, 欢猫 1.5"},
		{"one character is searched for", "猫?", "猫 1.5"},
		{"German question", "Wann wurde Müller geboren?", "muller 1.5, geboren 1.5"},
		{"Russian question", "Когда она была в Омске", "омске 1.5"},
		{"light words", "is there anything that we want to change after the trip",
			"anyth 0.4, want 0.4, chang 1, after 0.4, trip 1"},
		{"German light words", "wo hat der Verein die roten Leitern und Seile",
			"wo 0.4, hat 0.4, der 0.4, verein 1.5, die 0.4, roten 1, leitern 1.5, seil 1.5"},
		{"but not in English", "whose hat did the man die in", "hat 1, man 1, die 1"},
		{"nor with one word", "hat red roof tiles", "hat 1, red 1, roof 1, tile 1"},
		{"pairs with grammar", "银杏的服务器放在哪个城市",
			"银杏 1, 杏的 0.4, 的服 0.4, 服务 1, 务器 1, 器放 1, 放在 0.4, 在哪 0.15, 哪个 0.15, 个城 0.4, 城市 1"},
		{"hiragana is mostly grammar", "京都の旅館", "京都 1.5, 都の 0.4, の旅 0.4, 旅館 1.5"},
		{"unless there is nothing else in it", "さくら", "さく 0.15, くら 0.15"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, term := range QueryTerms(tt.text) {
				got = append(got, fmt.Sprint(term.Text, " ", term.Weight))
			}
			if s := strings.Join(got, ", "); s != tt.want {
				t.Errorf("%q: got %s, want %s", tt.text, s, tt.want)
			}
		})
	}
}

// TestPartsOfAPathAreOfOneChunk covers which parts belong together.
func TestPartsOfAPathAreOfOneChunk(t *testing.T) {
	chunks := map[string]int{}
	for _, term := range QueryTerms("is /srv/mirror/render.go or a/b2/archive.go in PAY-4412") {
		chunks[term.Text] = term.Chunk
	}
	one, other := chunks["mirror"], chunks["archivego"]
	if one == 0 || other == 0 || one == other || chunks["srv"] != one || chunks["rendergo"] != one ||
		chunks["b2"] != other || chunks["pay4412"] != 0 {
		t.Errorf("chunks %v; want one for each path, and none for the ticket", chunks)
	}
}

func TestQueryTermsAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 10 * MaxQueryTerms {
		fmt.Fprintf(&b, "%d ", i)
	}
	if got := len(QueryTerms(b.String())); got != MaxQueryTerms {
		t.Errorf("%d terms, want %d", got, MaxQueryTerms)
	}
}

// fullText is a real FTS5 table with one row.
type fullText struct{ db *sql.DB }

func openFullText(t testing.TB) fullText {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1) // each connection would have its own memory
	for _, stmt := range []string{
		`CREATE VIRTUAL TABLE passage USING fts5(content, tokenize = 'ascii')`,
		`CREATE VIRTUAL TABLE term USING fts5vocab(passage, instance)`,
	} {
		if _, err := db.Exec(stmt); err != nil {
			t.Fatal(err)
		}
	}
	return fullText{db}
}

// store replaces the row and returns the tokens that FTS5 found in it.
func (f fullText) store(t *testing.T, s string) (tokens []string) {
	t.Helper()
	if _, err := f.db.Exec(`DELETE FROM passage`); err != nil {
		t.Fatal(err)
	}
	if _, err := f.db.Exec(`INSERT INTO passage(content) VALUES (?)`, Indexed(s)); err != nil {
		t.Fatal(err)
	}
	rows, err := f.db.Query(`SELECT term FROM term ORDER BY offset`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var token string
		if err := rows.Scan(&token); err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, token)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return tokens
}

// finds reports whether the search text matches the row.
func (f fullText) finds(t *testing.T, query string) bool {
	t.Helper()
	var terms []string
	for _, t := range QueryTerms(query) {
		terms = append(terms, `"`+t.Text+`"`)
	}
	if len(terms) == 0 {
		return false
	}
	match := strings.Join(terms, " OR ")
	var n int
	if err := f.db.QueryRow(`SELECT count(*) FROM passage WHERE passage MATCH ?`, match).Scan(&n); err != nil {
		t.Fatalf("search text %q, query %s: %v", query, match, err)
	}
	return n > 0
}

func (f fullText) check(t *testing.T, stored, query string) {
	t.Helper()
	terms := Terms(stored)
	if tokens := f.store(t, stored); !slices.Equal(tokens, terms) {
		t.Errorf("FTS5 sees %q in the terms of %q, which are %q, want the same", tokens, stored, terms)
	}
	want := slices.ContainsFunc(QueryTerms(query), func(q Term) bool { return slices.Contains(terms, q.Text) })
	if got := f.finds(t, query); got != want {
		t.Errorf("%q finds %q: %v, want %v", query, stored, got, want)
	}
	if len(QueryTerms(stored)) > 0 && !f.finds(t, stored) {
		t.Errorf("%q does not find itself, want it found", stored)
	}
}

func FuzzQuery(f *testing.F) {
	for i, s := range seedTexts {
		f.Add(s, seedTexts[len(seedTexts)-1-i])
		f.Add(s, s)
	}
	for _, s := range []string{`"`, `""`, "a AND", "NEAR(a b, 2)", "content:", "^a*", "NOT", "(", "a\x00b", "-a",
		"{a b}:c", "a + b"} {
		f.Add("a b c content near not and", s)
	}
	db := openFullText(f)
	f.Fuzz(func(t *testing.T, stored, query string) { db.check(t, stored, query) })
}

// TestLongestQuery checks that FTS5's limits on an expression are wider than ours.
func TestLongestQuery(t *testing.T) {
	var b strings.Builder
	for i := range 4 * MaxQueryTerms {
		fmt.Fprintf(&b, "%s%d ", strings.Repeat("長", 20), i)
		fmt.Fprintf(&b, "term%dterm ", i)
	}
	openFullText(t).check(t, b.String(), b.String())
}

func TestExactnessOfQueryTerms(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"what do we know about ERR_X7731?", "errx7731"},
		{"what did Mara say about PAY-4412 on Monday evening", "pay4412"},
		{"the seat map of 10.20.30.40 and v1.2.3", "10·20·30·40 1·2·3"},
		{"why is parseInvoice so slow in max_retry", "parseinvoic maxretri"},
		{"mail from anna@example.com about the bill", "anna examplecom"},
		{"look into https://example.org/a/blue for the cause", "https exampleorg blue"},
		{"the file /etc/shop.conf was lost again", "etc shopconf"},
		{"run twelve of 0x1f3ab and 3f9ac21 and 83920417", "0x1f3ab 3f9ac21 83920417"},
		{"a self-care and/or well-being day at 7pm on 21.01.2024, in 2023, for 40 km, i.e. the 2nd", ""},
		{"2026-11-22 was a long day for the whole team", ""},
	} {
		var got []string
		for _, term := range QueryTerms(tt.text) {
			if term.Exact == Identifier {
				got = append(got, term.Text)
			}
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%q: identifiers %q, want %q", tt.text, s, tt.want)
		}
	}
	for _, tt := range []struct{ text, want string }{
		{"okonkwo", "okonkwo"},
		{"what do we know about okonkwo", "okonkwo"},
		{"When did the old boat of Okonkwo leave the harbour?", "okonkwo"},
		{"Boats leave the harbour at noon. Sailors are happy, says NASA", "nasa"},
		{"boats leave the harbour at noon", ""},
	} {
		var got []string
		for _, term := range QueryTerms(tt.text) {
			if term.Exact == Name {
				got = append(got, term.Text)
			}
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%q: names %q, want %q", tt.text, s, tt.want)
		}
	}
}
