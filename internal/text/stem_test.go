package text

import (
	"strings"
	"testing"
)

// TestStem has one word for each rule of Porter2, as Snowball 3 stems it.
func TestStem(t *testing.T) {
	for _, pair := range strings.Fields(`
		is:is sky:sky skies:sky news:news idly:idl gently:gentl
		caresses:caress ties:tie cries:cri gas:gas gaps:gap kiwis:kiwi this:this bus:bus glass:glass
		agreed:agre feed:feed plastered:plaster bled:bled motoring:motor sing:sing repeatedly:repeat seemingly:seem
		conflated:conflat troubled:troubl sized:size hopping:hop falling:fall hoping:hope fizzed:fizz
		adding:add egged:egg erring:err dying:die vying:vie inning:inning evening:evening outing:outing proceed:proceed
		succeeded:succeed
		happy:happi by:by say:say enjoy:enjoy
		relational:relat conditional:condit valency:valenc hesitancy:hesit conformably:conform radically:radic
		differently:differ
		vilely:vile analogously:analog vietnamization:vietnam predication:predic operator:oper feudalism:feudal
		decisiveness:decis hopefulness:hope callousness:callous formality:formal sensitivity:sensit sensibility:sensibl
		geologist:geolog geology:geolog hopelessly:hopeless quickly:quick really:realli
		triplicate:triplic formative:format formalize:formal electricity:electr electrical:electr hopeful:hope goodness:good
		revival:reviv allowance:allow inference:infer airliner:airlin adjustable:adjust irritant:irrit replacement:replac
		adjustment:adjust dependent:depend adoption:adopt decision:decis communism:communism activate:activ effective:effect
		probate:probat rate:rate cease:ceas controll:control roll:roll
		general:general generous:generous university:universiti universe:univers organic:organic organize:organiz
		international:internat internal:internal lateral:lateral paste:paste past:past communication:communic arsenal:arsenal
		went:go bought:buy children:child led:lead written:write people:person`) {
		word, want, _ := strings.Cut(pair, ":")
		if got := string(stem([]byte(word))); got != want {
			t.Errorf("stem of %s is %s, want %s", word, got, want)
		}
	}
}

func FuzzStem(f *testing.F) {
	for _, w := range []string{"", "y", "yyy", "eed", "ing", "ying", "ogi", "li", "ion", "ational", "pasting", "oyly"} {
		f.Add(w)
	}
	f.Fuzz(func(t *testing.T, s string) {
		w := make([]byte, 0, len(s))
		for _, c := range []byte(s) {
			w = append(w, 'a'+c%26)
		}
		word := string(w)
		got := stem(w)
		if len(got) > len(word)+1 || len(got) == 0 && word != "" || !isLatin(got) {
			t.Errorf("stem of %q is %q, want a word in Latin letters that is no longer", word, got)
		}
	})
}
