package text

import "strings"

// irregularForms are the common English words whose forms no suffix rule can connect: the base form first. "When
// did she buy it?" should find "I bought it".
//
// Left out are forms that are at least as common as words of their own: rose, bit, bore, ground, wound, lay, lie,
// born, leaves, lives.
const irregularForms = `
become became
begin began begun
bend bent
bind bound
blow blew blown
break broke broken
breed bred
bring brought
build built
burn burnt
buy bought
catch caught
choose chose chosen
come came
creep crept
deal dealt
dig dug
draw drew drawn
dream dreamt
drink drank drunk
drive drove driven
eat ate eaten
fall fell fallen
feed fed
feel felt
fight fought
find found
flee fled
fly flew flown
forbid forbade forbidden
forget forgot forgotten
forgive forgave forgiven
freeze froze frozen
get got gotten
give gave given
do does did done
go goes went gone
grow grew grown
hang hung
hear heard
hide hid hidden
hold held
keep kept
know knew known
lead led
learn learnt
leave left
lend lent
lose lost
make made
mean meant
meet met
overcome overcame
pay paid
ride rode ridden
ring rang rung
rise risen
run ran
say said
see saw seen
seek sought
sell sold
send sent
shake shook shaken
shine shone
shoot shot
sing sang sung
sink sank sunk
sit sat
sleep slept
speak spoke spoken
spell spelt
spend spent
stand stood
steal stole stolen
stick stuck
strike struck stricken
swear swore sworn
sweep swept
swim swam swum
swing swung
take took taken
teach taught
tear tore torn
tell told
think thought
throw threw thrown
undergo underwent undergone
understand understood
wake woke woken
wear wore worn
weep wept
win won
withdraw withdrew withdrawn
write wrote written
child children
foot feet
goose geese
knife knives
man men
mouse mice
ox oxen
person people
tooth teeth
wife wives
wolf wolves
woman women
`

// wholeWordStems are the stems of words that are looked up, not computed.
var wholeWordStems = func() map[string]string {
	stems := make(map[string]string)
	for line := range strings.Lines(irregularForms) {
		forms := strings.Fields(line)
		if len(forms) == 0 {
			continue
		}
		base := string(stemByRule([]byte(forms[0])))
		for _, form := range forms[1:] {
			stems[form] = base
		}
	}
	for word, s := range stemException {
		stems[word] = s
	}
	return stems
}()
