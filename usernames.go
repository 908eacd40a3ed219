package souvenir

import (
	"strings"
	"unicode"

	"github.com/souvenir-ai/souvenir/internal/check"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"golang.org/x/text/unicode/norm"
)

// maxUserName is the number of characters that a user's name may have.
const maxUserName = 64

// checkUserName checks a name to sign in with and returns it as it is kept: in Unicode's form NFC, and without spaces
// that nobody sees. What people could mistake for another name is refused: characters that cannot be seen, and words
// that mix alphabets that look alike (a Cyrillic а in a Latin name; after UTS #39, section 5). Nothing is done about
// words that are wholly of another alphabet: they are names.
func checkUserName(name string) (string, error) {
	if err := check.Line("name", name, maxUserName); err != nil {
		return "", err
	}
	name = norm.NFC.String(strings.Join(strings.Fields(name), " "))
	for _, r := range name {
		switch {
		case r == '/':
			return "", invalid("name", "name is %s; a name contains no slash", show(name))
		case foldname.Unseen(r):
			return "", invalid("name", "name is %s, which contains the character %U, which cannot be seen; none is allowed", show(name), r)
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
			return "", invalid("name", "name is %s, where %s mixes %s letters, which look alike; use one alphabet in a word",
				show(name), show(word), strings.Join(alphabets, " and "))
		}
	}
	if foldName(name) == "" {
		return "", invalid("name", "name is %s; 1 to %d characters that can be seen are needed", show(name), maxUserName)
	}
	return name, nil
}

// foldName brings a name to the form in which two names are the same; see [foldname.Key].
func foldName(name string) string { return foldname.Key(name) }

// UserNameKey brings what somebody gives as a user's name to the form in which two names are the same: without regard to case,
// width, spaces, ways of writing one character, and characters that cannot be seen (Unicode's NFKC_Casefold). Whoever counts
// tries of a name counts them under this key, whether there is such a user or not: otherwise the counts tell which names exist.
func UserNameKey(name string) string { return foldName(name) }
