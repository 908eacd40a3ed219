package shorten_test

import (
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/shorten"
)

func TestTextsAreCutBetweenCharacters(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want string
	}{
		{"no characters", shorten.Characters("語言", 0), ""},
		{"one of two", shorten.Characters("語言", 1), "語"},
		{"as many as there are", shorten.Characters("語言", 2), "語言"},
		{"more than there are", shorten.Characters("語言", 3), "語言"},
		{"invalid bytes count, too", shorten.Characters("\xff\xffa", 2), "\xff\xff"},
		{"bytes in the middle of a character", shorten.Bytes("a語", 3), "a"},
		{"all bytes", shorten.Bytes("a語", 4), "a語"},
		{"fewer than no bytes", shorten.Bytes("a", -1), ""},
		{"whole words", shorten.Words("the old kettle", 10), "the old"},
		{"at the end of a word", shorten.Words("the old kettle", 7), "the old"},
		{"a word that is too long to give up", shorten.Words("a "+strings.Repeat("b", 60), 50),
			"a " + strings.Repeat("b", 48)},
		{"no spaces", shorten.Words("語語語語", 2), "語語"},
		{"after: it fits", shorten.After("語言學", 3), "語言學"},
		{"after: it does not", shorten.After("語言學", 2), "語言…"},
		{"title: the first line with words", shorten.Title("---\n\n## **The** \t`kettle`\nis old", 20), "The kettle"},
		{"title: too long", shorten.Title("語言 學", 2), "語言…"},
		{"title: cut before a space", shorten.Title("the old kettle", 4), "the…"},
		{"title: cut between words", shorten.Title("The old kettle. It leaks", 16), "The old kettle…"},
		{"title: none", shorten.Title("# \n\x00", 4), ""},
		{"within: it fits", shorten.Within("語言學", 3), "語言學"},
		{"within: it does not", shorten.Within("語言學", 2), "語…"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, c.got, c.want)
		}
	}
}
