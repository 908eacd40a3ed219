package shorten

import (
	"strings"
	"testing"
)

func TestTextsAreCutBetweenCharacters(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want string
	}{
		{"no characters", Characters("語言", 0), ""},
		{"one of two", Characters("語言", 1), "語"},
		{"as many as there are", Characters("語言", 2), "語言"},
		{"more than there are", Characters("語言", 3), "語言"},
		{"invalid bytes count, too", Characters("\xff\xffa", 2), "\xff\xff"},
		{"bytes in the middle of a character", Bytes("a語", 3), "a"},
		{"all bytes", Bytes("a語", 4), "a語"},
		{"fewer than no bytes", Bytes("a", -1), ""},
		{"whole words", Words("the old kettle", 10), "the old"},
		{"at the end of a word", Words("the old kettle", 7), "the old"},
		{"a word that is too long to give up", Words("a "+strings.Repeat("b", 60), 50), "a " + strings.Repeat("b", 48)},
		{"no spaces", Words("語語語語", 2), "語語"},
		{"after: it fits", After("語言學", 3), "語言學"},
		{"after: it does not", After("語言學", 2), "語言…"},
		{"title: the first line with words", Title("---\n\n## **The** \t`kettle`\nis old", 20), "The kettle"},
		{"title: too long", Title("語言 學", 2), "語言…"},
		{"title: cut before a space", Title("the old kettle", 4), "the…"},
		{"title: none", Title("# \n\x00", 4), ""},
		{"within: it fits", Within("語言學", 3), "語言學"},
		{"within: it does not", Within("語言學", 2), "語…"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, c.got, c.want)
		}
	}
}
