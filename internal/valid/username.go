package valid

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/foldname"
)

// MaxUserName is the maximum length of a user's name in characters.
const MaxUserName = 64

// MaxFoldedName is the maximum number of bytes to fold for the look-up of a name. No name is longer.
const MaxFoldedName = 4 * 4 * MaxUserName

// UserName checks a sign-in name and returns it as stored: in Unicode's form NFC, and without invisible spaces. It
// refuses names that people could mistake for another: with invisible characters, or with words that mix look-alike
// alphabets (a Cyrillic а in a Latin name; after UTS #39, section 5). Words wholly in another alphabet are allowed,
// since they are names.
func UserName(name string) (string, error) {
	if err := Line("name", name, MaxUserName); err != nil {
		return "", err
	}
	name = norm.NFC.String(strings.Join(strings.Fields(name), " "))
	for _, r := range name {
		switch {
		case r == '/':
			return "", fault.Invalid("name", "{} is %s; a name cannot contain a slash", fault.Show(name))
		case foldname.Unseen(r):
			return "", fault.Invalid("name",
				"{} is %s, which contains the invisible character %U; remove it", fault.Show(name), r)
		}
	}
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return !unicode.IsLetter(r) }) {
		var alphabets []string
		for _, script := range []string{"Latin", "Cyrillic", "Greek"} {
			if strings.ContainsFunc(word, func(r rune) bool { return unicode.Is(unicode.Scripts[script], r) }) {
				alphabets = append(alphabets, script)
			}
		}
		if len(alphabets) > 1 {
			return "", fault.Invalid("name",
				"{} is %s, where %s mixes %s letters, which look alike; use one alphabet in a word",
				fault.Show(name), fault.Show(word), strings.Join(alphabets, " and "))
		}
	}
	if foldname.Key(name) == "" {
		return "", fault.Invalid("name", "{} is %s; expected 1 to %d visible characters", fault.Show(name),
			MaxUserName)
	}
	return name, nil
}
