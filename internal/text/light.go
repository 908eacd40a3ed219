package text

import "unicode/utf8"

// Some words of a search say little about its subject, but are not left out as stop words are: "may" can be a month,
// "die" a verb, and in a script without spaces a pair of characters may be a piece of anything. They count less than
// others. The rarity of terms alone is not enough: in a small collection, or one mostly in another language, function
// words are rare.

// Weights of light terms, against 1 of others. Names, see [Exactness], have nameWeight: the person or project that a
// question is about matters more than the rest. Fitted on the development parts of docs/retrieval.md.
const (
	lightWord  = 0.4  // a function word
	halfPair   = 0.4  // a pair of characters, where one is mostly grammar
	lightPair  = 0.15 // a pair of two such characters
	nameWeight = 1.5
)

// lightWords are the function words of each language, as terms are (folded, and as the English stemmer leaves them),
// with the stop words that tell it from others. They count less only in a search in that language: "hat" and "son" are
// English words, too.
var lightWords = []map[string]bool{
	wordSet(`who whom whose what which when where whi how a an the this that i my you your he his she her it it we
		our they their me him them us these those
		am is are was were be been have has had do do do will would should can could of in on at to from by for with about
		and or but if
		get get go go use use use mani much may not first more most like there some ani all onli also just veri too
		anyth someth everyth anyon someon up out off over under befor after between dure while becaus
		let make make need want pleas tell ever yet still again now`),
	wordSet(`wer wem wessen wann warum wieso welch welcher welch und oder ist sind wurd wurden ein ein einen einem
		einer was der die das den dem des er sie es ich du wir ihr mir mich dir dich un ihm ihn im in an am auf aus bei beim
		mit von vom vor zu zum zur fur uber unter nach um al wie wo auch nicht kein kein keinen keiner hat haben habe hatt
		soll sollen sollt muss mussen darf durfen kann konnen wird werden man mein mein meinen dein sein sein so
		viel dass ob wenn denn noch schon nur aber doch jeder jede jede all`),
	wordSet(`que quien quien cual cual cuando dond porqu una
		el la los las lo un uno una del al de en y o u se su sus mi mis tu tus te nos les por para con sin sobr como
		es son fue ser esta estan hay ha han hace hacer debe deben puedo pued pueden tien tienen si no mas muy ya hasta
		desd ant est esto ese esa cuanto cuanta cuanto cuanta`),
	wordSet(`quoi quel quell quel quell quand pourquoi dan avec une sont
		le la les l d de des du au aux et ou est ne pas ce cet cett ces il ell il ell je nous vous ses son mon ma mes
		ton ta tes leur leur sur sous san plus comment combien ont etr avoir qui que en`),
	wordSet(`di da il la lo gli i e che chi cosa come dove perch quando qual quali per con su tra fra non si ha hanno sono
		del della dei dell nel nella un una al alla`),
	wordSet(`quem ond qual quai uma um que quando como porqu o a os as do da dos das no na nos nas ao em com para por
		se mai foi ser tem e de`),
	wordSet(`wat waar wanneer waarom welk het zijn wie hoe de een en van voor meet op te dat die dit er niet is was aan bij
		naar om of`),
}

// language returns the function words of the most likely language of a search text: the one with the most function
// words in it, at least two. nil = unknown.
func (a *analyzer) language() map[string]bool {
	if i := a.languageNumber(); i >= 0 {
		return lightWords[i]
	}
	return nil
}

// languageNumber returns the place of that language in lightWords; -1 = unknown.
func (a *analyzer) languageNumber() (best int) {
	const enough = 100 // words
	most, start := 1, 0
	best = -1
	counts := make([]int, len(lightWords))
	for _, t := range a.tokens[:min(len(a.tokens), enough)] {
		if t.role == roleWord {
			for i, words := range lightWords {
				if words[string(a.out[start:t.end])] {
					counts[i]++
				}
			}
		}
		start = t.end
	}
	for i, n := range counts {
		if n > most {
			best, most = i, n
		}
	}
	return best
}

// lightHan are Chinese characters that are mostly grammar: particles, pronouns, prepositions, question words. Japanese
// writes grammar in hiragana.
const lightHan = "的了是在有和与或吗呢吧啊哪什么怎样几谁为因所以而且但也就还可该应没这那个些种把被给从到用于之其我你他她它们您何誰"

var lightCharacters = func() map[rune]bool {
	set := map[rune]bool{}
	for _, r := range lightHan {
		set[r] = true
	}
	return set
}()

func isLight(r rune) bool { return 0x3041 <= r && r <= 0x309f || lightCharacters[r] }

// lightness returns the factor of a term's weight in a search in the language with these function words: 1 for a
// possible subject.
func lightness(term string, r role, language map[string]bool) float32 {
	if r != rolePair {
		if r == roleWord && language[term] {
			return lightWord
		}
		return 1
	}
	light, all := 0, utf8.RuneCountInString(term)
	for _, c := range term {
		if isLight(c) {
			light++
		}
	}
	switch light {
	case 0:
		return 1
	case all:
		return lightPair
	}
	return halfPair
}
