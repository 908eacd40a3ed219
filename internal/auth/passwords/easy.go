// Package passwords checks new passwords, refuses easily guessed ones, and hashes passwords with Argon2id.
package passwords

import (
	"slices"
	"strings"
	"unicode"

	"github.com/souvenir-ai/souvenir/internal/foldname"
)

// Passwords that an attacker tries first are refused (OWASP ASVS 2.1.7, NIST SP 800-63B, 5.1.1.2). A list of the most
// leaked passwords would miss each of them with an exclamation mark added. So a password is judged by its parts: after
// removing repetitions, runs along a row of the keyboard and a common word, enough must remain to guess.

// Shortest is the minimum length of a password in characters.
const Shortest = 8

// Easy returns why a password is easily guessed, in words that follow "it is"; empty if it is not. The name is that of
// the user.
func Easy(prepared, name string) string {
	folded := foldname.Key(prepared)
	runes := []rune(strings.ReplaceAll(folded, " ", ""))
	piece := repeated(runes)
	if len(piece) < len(runes) && len(piece) < Shortest {
		return "a repeated short piece"
	}
	if pieces(piece) < 4 {
		return "a sequence of keyboard rows, digits or letters"
	}
	own := []string{"souvenir", strings.ReplaceAll(foldname.Key(name), " ", "")}
	for _, letters := range []*strings.Replacer{strings.NewReplacer(), lettersFor("l"), lettersFor("i")} {
		spelt := letters.Replace(string(piece))
		switch is := func(word string) bool { return decorated(string(piece), spelt, word) }; {
		case slices.ContainsFunc(own, is):
			return "the name of the user or the service with little added"
		case slices.ContainsFunc(strings.Fields(commonWords), is):
			return "a common password with little added"
		}
	}
	return ""
}

// lettersFor returns a replacer that turns look-alike signs back into letters; a 1 may stand for two.
func lettersFor(one string) *strings.Replacer {
	return strings.NewReplacer("0", "o", "1", one, "3", "e", "4", "a", "5", "s", "7", "t", "@", "a", "$", "s", "!", "i")
}

// repeated returns the piece that a text repeats: "abc" for "abcabcab", and the text itself if it repeats nothing.
func repeated(text []rune) []rune {
	for n := 1; n <= len(text)/2; n++ {
		if slices.Equal(text[n:], text[:len(text)-n]) {
			return text[:n]
		}
	}
	return text
}

// keyRows are the sequences of characters that people type in a row, in both directions.
var keyRows = bothWays(
	"abcdefghijklmnopqrstuvwxyz", "01234567890", "!@#$%^&*()_+", "!\"§$%&/()=?",
	"qwertyuiop[]", "asdfghjkl;'", "zxcvbnm,./", "qwertzuiopü", "asdfghjklöä", "yxcvbnm,.-", "azertyuiop", "qsdfghjklm",
	"wxcvbn",
	"1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik", "1q2w3e4r5t6y7u8i9o0p", "q1w2e3r4t5y6u7i8o9p0", "qazwsxedcrfvtgbyhnujmik",
	"qweasdzxc",
	"147258369", "a1b2c3d4e5f6g7h8i9", "йцукенгшщзхъ", "фывапролджэ", "ячсмитьбю",
)

func bothWays(forwards ...string) [][]rune {
	var both [][]rune
	for _, row := range forwards {
		backwards := []rune(row)
		slices.Reverse(backwards)
		both = append(both, []rune(row), backwards)
	}
	return both
}

// pieces counts the parts of a text that have to be guessed. A run of three or more characters that are the same, or
// follow each other in a row, is one piece.
func pieces(text []rune) int {
	count := 0
	for ; len(text) > 0; count++ {
		n := 1
		for n < len(text) && text[n] == text[0] {
			n++
		}
		for _, row := range keyRows {
			n = max(n, common(text, row))
		}
		if n < 3 { // two neighbours may be chance
			n = 1
		}
		text = text[n:]
	}
	return count
}

// common returns how many characters of a text follow each other in a row, from its first one on.
func common(text, row []rune) int {
	n, start := 0, slices.Index(row, text[0])
	for start >= 0 && n < len(text) && start+n < len(row) && text[n] == row[start+n] {
		n++
	}
	return n
}

// decorated reports whether a text, or its form spelt in letters only, is a word, or the word several times, with
// little beside it: up to five digits and signs, where runs count as one, or a single letter.
func decorated(text, spelt, word string) bool {
	var rest []rune
	found := false
	for word != "" {
		at := strings.Index(spelt, word)
		if at < 0 {
			break
		}
		// A sign that stands for a letter is one byte, like the letter, so offsets are the same in both.
		rest, found = append(rest, []rune(text[:at])...), true
		text, spelt = text[at+len(word):], spelt[at+len(word):]
	}
	if !found {
		return false
	}
	rest = append(rest, []rune(text)...)
	if len(rest) > 40 { // too much in any case
		return false
	}
	beside := pieces(rest)
	return beside <= 1 || beside <= 5 && !slices.ContainsFunc(rest, unicode.IsLetter)
}

// commonWords are words that people commonly choose, without the digits and signs that they append.
const commonWords = `
access accessgranted admin adminadmin administrador administrator adminpassword alexander alexandra always amanda amazon
america andrea andrew android angel angels anthony anything apple april arsenal asdf asdfgh ashley august australia
autumn azerty baby babyboy babygirl bailey banana barbara barcelona baseball basketball batman bayern beatles beautiful
benjamin berlin bible bienvenido bienvenue birthday bitcoin black blahblah blessed blessing blink blue bonjour
boss brandon brasil brother buddy business buster butterfly california camaro canada candy champion changeit
changeme changemenow changethis charlie cheese chelsea cherry chocolate christ christian christmas christopher
church cisco
company computer confidential contrasena contraseña cookie cookies correcthorsebatterystaple corvette cowboy cowboys
crystal
cutie cycling daniel danielle darling database daughter debian december default demo diamond doggie dollar dolphin
dolphins
dragon eagle eagles elizabeth eminem england enter entry espana everything example facebook faith falcon family father
february ferrari fishing florida flower flowers football forever fortnite fortune france freedom friday friend friends
fuckyou fussball gamer gaming gandalf garden garfield geheim george germany ginger github godisgood godzilla golden
golfer golfing goodbye google green guest hacker hackme hallo hannah happiness happy happyday harley harleydavidson
heaven
hello hobbit hockey hola holiday honda honey horse hunter hunting iamgod ilovegod ilovehim ilovemyself iloveu
iloveyou india
internet iphone ironman italia january jennifer jessica jesus jesuschrist jonathan jordan joshua july june justin
juventus
kennwort killer king kingdom kitten kitty lakers lalala legend letmein letmeinnow letmeinplease liberty lifeisgood
lightning
linux lion liverpool login logon london love lovely loveme lover loveyou lucky lösenord maggie magic manager
manchester march
margaret martin master matrix matthew melissa mercedes metallica michael michelle mickey microsoft minecraft monday
money
monkey moonlight moscow motdepasse mother mountain mustang mylife mypass mypassword myusername naruto natasha nature
network
never newpassword newyork nicholas nicole ninja nintendo nirvana nopassword nothing november ocean october office
oldpassword
oliver onepassword opensesame openup oracle orange paris parola passcode passphrase passwd password passwordpassword
passwort
patricia patrick peace peaches pepper phoenix pikachu pirate player playstation pokemon ponies porsche pretty prince
princess
private public puppy purple pussycat qazwsx queen qwerty qwertz rabbit rachel rainbow ranger realmadrid rebecca redsox
richard river robert roblox rockstar root rootpassword rootroot running russia samantha sample samsung samurai saturday
scooby sebastian secret secrets secure security senha september server service sesame shadow signin silver simpsons
sister
slipknot smile smiley snoopy soccer soldier something sophie spiderman spring startrek starwars steelers stephanie sugar
summer sunday sunshine superadmin superman superstar superuser support suzuki sweetheart sweetie sweety swimming
sysadmin
system taylor temp temporary tennis terminator test tester testing testtest texas thisisapassword thomas thunder
thursday
tiger tigger together toor topsecret toyota truelove trustno trustnoone tuesday turtle twitter ubuntu united unknown
user
username userpassword vacation veronica victoria volleyball wachtwoord warrior website wednesday weekend welcome
whatever
white william willkommen windows winner winter wizard wolverine yamaha yankees yellow yourpassword zxcvbn zxcvbnm
пароль`
