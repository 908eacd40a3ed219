package text

import "strings"

// stopWords are words that form a question but say nothing about its subject. They are in folded form.
//
// The lists are short on purpose: a word is here only if it means hardly anything in any search, in any language.
// "may" (the month), "not", "first", "more", "like" and similar words stay searchable; and so do der, die, la,
// los, von, which are words or names elsewhere. The rarity of terms does the rest.
var stopWords = wordSet(
	// English: questions, articles, pronouns, forms of be, have, do, modals, prepositions, conjunctions
	`who whom whose what which when where why how
	a an the this that these those
	i me my mine you your yours he him his she her hers it its we us our ours they them their theirs
	am is are was were be been being have has had having do does did doing done
	will would shall should can could might must
	of in on at to from by for with about into as
	and or but if than then so there
	dont doesnt didnt isnt arent wasnt werent hasnt havent hadnt wont wouldnt cant couldnt shouldnt
	im ive youre youve hes shes theyre theyve thats whats`,
	// German, French, Spanish and Portuguese, Dutch: question words, and words that the other languages do not
	// have
	`wer wem wessen wann warum wieso welche welcher welches und oder ist sind wurde wurden ein eine einen einem einer
	quoi quel quelle quels quelles quand pourquoi dans avec une sont
	que quien quienes cual cuales cuando donde porque quem onde qual quais uma
	wat waar wanneer waarom welke het zijn`,
	// Russian
	`кто что где когда как почему зачем какой какая какое какие который которая
	и а но или в во на с со к о об по из за от до у же ли бы это
	я ты он она оно мы вы они был была было были`,
)

func wordSet(lists ...string) map[string]bool {
	set := make(map[string]bool)
	for _, list := range lists {
		for _, w := range strings.Fields(list) {
			set[w] = true
		}
	}
	return set
}
