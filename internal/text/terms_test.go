package text

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func TestTermsOfOneText(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", ""},
		{"only punctuation", " \t\n.,;:!?()[]'\"-_…—🎂", ""},
		{"words are folded and stemmed", "The Cities were RUNNING.", "the citi were run"},
		{"irregular forms meet their base", "bought buy; children child; led lead", "buy buy child child lead lead"},
		{"plural and possessive", "friends' friend's", "friend friend"},

		{"clitics", "Hannah's we'll I'm they've she'd you're", "hannah we i they she you"},
		{"typographic clitics", "Hannah’s we’ll don’t", "hannah we dont"},
		{"negation", "don't DON'T can't", "dont dont cant"},
		{"names with apostrophes", "O'Brien l'homme", "o brien obrien l homm lhomm"},

		{"camel case", "getUserByID", "get user by id getuserbyid"},
		{"acronym in camel case", "HTTPServer parseURLs IDs", "http server httpserver pars url parseurl id"},
		{"snake and kebab case", "user_name wi-fi", "user name usernam wi fi wifi"},
		{"brand", "GitHub iPhone15", "git hub github i phone 15 iphone15"},
		{"path", "foo.bar/baz.go", "foo bar foobar baz go bazgo"},
		{"dunder", "__init__", "init"},
		{"version", "v1.60.1", "v 1 v1 60 1 1·60·1"},
		{"version without v", "1.60.1", "1 60 1 1·60·1"},
		{"e-mail", "jo.doe@example.org", "jo doe jodo exampl org exampleorg"},
		{"URL", "https://example.org/a-b?x=1", "https exampl org exampleorg a b ab x 1"},
		{"languages with signs", "C++ C# F#. g++", "c cplusplus c csharp f fsharp g gplusplus"},
		{"sums", "a+b c++d", "a b c d"},
		{"hash is one term", "3f2a9bc4d5", "3f2a9bc4d5"},
		{"encoded data is not shredded", "aGbXcYdZeWfVgUhTiS", "agbxcydzewfvguhti"},

		{"numbers", "1,000,000 3.14 1,00 12:30", "1000000 3 14 3·14 1 00 12 30"},
		{"units and ordinals", "5km 10am 2nd 21st", "5 km 5km 10 am 10am 2 2nd 21 21st"},
		{"date", "2023-05-08", "2023 05 08 20230508"},
		{"digits of other scripts", "١٢٣ १२३ １２３ ๑๒", "123 123 123 12"},

		{"French", "Zoé était à l’Élysée", "zoe etait a l elyse lelyse"},
		{"German", "Straße STRASSE Müller", "strass strass muller"},
		{"Turkish", "Işık ISIK İzmir", "isik isik izmir"},
		{"Nordic and Polish", "Ærø smørrebrød Łódź", "aero smorrebrod lodz"},
		{"Vietnamese", "Đường phố", "duong pho"},
		{"Catalan", "col·lecció", "col leccio"},
		{"Greek", "Σίσυφος ΣΙΣΥΦΟΣ", "σισυφοσ σισυφοσ"},
		{"Russian", "Ёлка ёлка Йод а́том", "елка елка йод атом"},
		{"Ukrainian", "м'ята їжак", "м ята мята їжак"},
		{"Hebrew points", "שָׁלוֹם שלום", "שלום שלום"},
		{"Arabic points, tatweel and alef", "شَمْس شـــمس أحمد احمد", "شمس شمس احمد احمد"},
		{"Persian letters", "کتاب كتاب", "كتاب كتاب"},
		{"Hindi keeps its vowel signs", "की कि का", "की कि का"},
		{"Tamil", "தமிழ் மொழி", "தமிழ் மொழி"},
		{"compatibility forms", "ＡＢＣ ﬁne x² ½", "abc fine x 2 x2 1 2"},
		{"soft hyphen and joiners", "co\u00adop pre\u200dfix", "coop prefix"},

		{"Chinese", "我喜欢猫", "我 我喜 喜 喜欢 欢 欢猫 猫"},
		{"one character", "猫", "猫"},
		{"Chinese beside Latin", "iPhone手机2台", "i phone iphon 手 手机 机 2 台"},
		{"Japanese", "タワーへ", "タ タワ ワ ワー ー ーへ へ"},
		{"voicing is kept, composed or not", "が か\u3099 ｶﾞ か", "が が ガ か"},
		{"Korean", "한국어 물", "한 한국 국 국어 어 물"},
		{"Korean, decomposed", "한", "한"},
		{"Thai keeps marks with their letter", "ที่นี่", "ที่ ที่นี่ นี่"},
		{"Khmer binds stacked letters", "ខ្មែរ", "ខ្មែ ខ្មែរ រ"},
		{"Burmese binds stacked letters", "မန္တလေး", "မ မန္တ န္တ န္တလေး လေး"},
		{"Lao", "ລາວ", "ລ ລາ າ າວ ວ"},

		{"invalid UTF-8 separates", "ab\xffcd \xe4\xb8", "ab cd"},
		{"NUL separates", "ab\x00cd", "ab cd"},
		{"a long word is cut", strings.Repeat("ä", 40) + strings.Repeat("б", 60), strings.Repeat("a", 40) +
			strings.Repeat("б", 12)},
		{"a long whole is left out", strings.Repeat("abcdefghijk-", 7) + "z",
			strings.TrimSpace(strings.Repeat("abcdefghijk ", 7)) + " z"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Indexed(tt.text); got != tt.want {
				t.Errorf("terms of %q:\n got %s\nwant %s", tt.text, got, tt.want)
			}
		})
	}
}

// TestSameWord lists spellings that a search has to match: they share a term.
func TestSameWord(t *testing.T) {
	for _, same := range [][]string{
		{"email", "e-mail", "E-Mail", "emails"},
		{"getUserByID", "getuserbyid", "get_user_by_id", "get-user-by-id", "GET_USER_BY_ID"},
		{"v1.60.1", "1.60.1", "V1.60.1"},
		{"gpt-4", "GPT4", "gpt 4"},
		{"GitHub", "github", "git hub"},
		{"organizing", "organized", "organizes"},
		{"went", "goes", "going", "gone"},
		{"Łukasz", "lukasz", "LUKASZ"},
		{"naïve", "naive", "nai\u0308ve"},
	} {
		for _, s := range same[1:] {
			if !slices.ContainsFunc(Terms(same[0]), func(x string) bool { return slices.Contains(Terms(s), x) }) {
				t.Errorf("%q %q and %q %q share no term, want one", same[0], Terms(same[0]), s, Terms(s))
			}
		}
	}
}

// TestDifferentWord lists words that must not become one.
func TestDifferentWord(t *testing.T) {
	for _, pair := range [][2]string{
		{"1.60.1", "16.0.1"}, {"C++", "C#"}, {"general", "generous"}, {"university", "universe"}, {"organic", "organize"},
		{"की", "का"}, {"か", "が"}, {"й", "и"}, {"rose", "rise"}, {"add", "ad"},
	} {
		a, b := Terms(pair[0]), Terms(pair[1])
		if slices.Equal(a, b) {
			t.Errorf("%q and %q are both %q, want other than %v", pair[0], pair[1], a, b)
		}
	}
}

func TestAppendTermsKeepsItsPrefix(t *testing.T) {
	got := AppendTerms([]string{"first"}, "second third")
	if want := []string{"first", "second", "third"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// checkTerms checks what holds for the terms of any text.
func checkTerms(t *testing.T, s string) {
	t.Helper()
	terms := Terms(s)
	for _, term := range terms {
		if len(term) > MaxTermBytes || !utf8.ValidString(term) || len(fts5Tokens(term)) != 1 || fts5Tokens(term)[0] != term {
			t.Errorf("term %q of %q is not one token, want it to be one", term, s)
		}
	}
	if got, want := Indexed(s), strings.Join(terms, " "); got != want {
		t.Errorf("Indexed(%q) = %q, want %q", s, got, want)
	}
	if got := Terms(norm.NFD.String(s)); utf8.ValidString(s) && !slices.Equal(got, terms) {
		t.Errorf("terms of %q depend on its normal form: %q, decomposed %q, want the same", s, terms, got)
	}
	if len(terms) > 4*len(norm.NFKC.String(s)) {
		t.Errorf("%d terms from %d bytes, want at most 4 per byte", len(terms), len(s))
	}
	// The terms of texts joined by a separator are the joined terms: no state crosses it.
	if got, want := Terms(s+"\n"+s), append(slices.Clone(terms), terms...); !slices.Equal(got, want) {
		t.Errorf("terms of %q twice: %q, want %q", s, got, want)
	}
}

// fts5Tokens splits like FTS5's ascii tokenizer (sqlite.org/fts5.html, 4.3.2): a token is a run of ASCII letters,
// digits and bytes above ASCII, with letters folded.
func fts5Tokens(s string) []string {
	return strings.FieldsFunc(strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s), func(r rune) bool {
		return r < utf8.RuneSelf && (r < '0' || r > '9') && (r < 'a' || r > 'z')
	})
}

func FuzzTerms(f *testing.F) {
	for _, s := range seedTexts {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checkTerms(t, s) })
}

func TestTermsOfSeeds(t *testing.T) {
	for _, s := range seedTexts {
		checkTerms(t, s)
	}
}

// seedTexts are small texts that use every rule.
var seedTexts = []string{
	"", " ", "a", "The quick brown fox's tail isn't v1.60.1.", "getUserByID HTTPServer IDs iPhone15 x86_64 2nd 1,000",
	"C++ C# https://example.org/a?b=c jo.doe@example.org", "Straße Işık İzmir Σίσυφος ЁЖ Йод",
	"שָׁלוֹם שלום צה״ל أحمد شَمْس کتاب",
	"हिन्दी की किताब தமிழ்", "我喜欢猫。東京タワーが好き！한국어를 배워요", "ภาษาไทย ລາວ ខ្មែរ မန္တလေး", "か\u3099ｶﾞ①㎞ﷺ½",
	"\xff\xfe\x00\xe4\xb8", "a\u0301\u0301\u200d\u00ad\ufe0f", "🎂🏽👩\u200d👩\u200d👧", "ก\u0e48\u0e48\u0e48\u0e48", "·a·1.2",
	"1.٢.三",
}
