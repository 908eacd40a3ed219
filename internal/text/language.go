package text

import (
	"unicode"
	"unicode/utf8"
)

// languages are the names of the languages of lightWords, in their order.
var languages = [...]string{"en", "de", "es", "fr", "it", "pt", "nl"}

// Language guesses the language of a text from its beginning: an ISO 639-1 code if it has at least two function words
// of a known language, and the most of all; else the name of the script of most of its letters, such as "Cyrillic";
// empty if it has no letters. It is a guess for statistics, not for decisions about one text.
func Language(s string) string {
	const looked = 400 // bytes
	if len(s) > looked {
		s = s[:looked]
		for len(s) > 0 && !utf8.RuneStart(s[len(s)-1]) {
			s = s[:len(s)-1]
		}
	}
	script, han := scriptOf(s)
	if script != "Latin" {
		return script
	}
	if han {
		return "Han"
	}
	a := analyzers.Get().(*analyzer)
	defer a.release()
	a.analyze(s)
	if i := a.languageNumber(); i >= 0 {
		return languages[i]
	}
	return script
}

// scripts have a name of their own; others are "other".
var scripts = []struct {
	name  string
	table *unicode.RangeTable
}{
	{"Latin", unicode.Latin}, {"Han", unicode.Han}, {"Cyrillic", unicode.Cyrillic}, {"Kana", unicode.Hiragana},
	{"Kana", unicode.Katakana}, {"Hangul", unicode.Hangul}, {"Arabic", unicode.Arabic}, {"Greek", unicode.Greek},
	{"Hebrew", unicode.Hebrew}, {"Devanagari", unicode.Devanagari}, {"Thai", unicode.Thai},
}

// scriptOf returns the script of most of the letters. A Chinese character counts as several letters. Japanese uses them
// too, so a few kana make a text Japanese.
func scriptOf(s string) (most string, han bool) {
	counts := map[string]int{}
	for _, r := range s {
		if !unicode.IsLetter(r) {
			continue
		}
		if r < 0x250 {
			counts["Latin"]++
			continue
		}
		name := "other"
		for _, script := range scripts {
			if unicode.Is(script.table, r) {
				name = script.name
				break
			}
		}
		counts[name]++
	}
	if counts["Kana"] > 0 && 4*counts["Kana"] > counts["Han"] {
		counts["Kana"] += counts["Han"]
	}
	for name, n := range counts {
		if n > counts[most] || n == counts[most] && name < most {
			most = name
		}
	}
	return most, most == "Latin" && 4*counts["Han"] > counts["Latin"]
}

// IsFunctionWord reports whether a term of [Terms] says little about the subject of a text in a language, as named by
// [Language].
func IsFunctionWord(term, language string) bool {
	if stopWords[term] {
		return true
	}
	for i, name := range languages {
		if name == language {
			return lightWords[i][term]
		}
	}
	for _, r := range term {
		if !isLight(r) {
			return false
		}
	}
	return true
}
