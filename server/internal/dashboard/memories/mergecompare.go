package memories

import (
	"strings"

	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
)

// comparedWords is how many words of each of two texts are compared: the work grows with their product.
const comparedWords = 1500

// compared splits a text into words that another text has, too, and words that it does not have, by the longest
// common subsequence of words. If the text is too long, its beginning stays unmarked.
func compared(text, other string) (pieces []textview.Segment, long bool) {
	if len(text) > comparedContent || len(other) > comparedContent {
		first, _ := textview.Opening(text, comparedContent)
		return []textview.Segment{{Text: first}}, true
	}
	words, others := wordsWithSpace(text), wordsWithSpace(other)
	if len(words) > comparedWords || len(others) > comparedWords {
		return []textview.Segment{{Text: text}}, true
	}
	shared := inBoth(words, others)
	for i, word := range words {
		last := len(pieces) - 1
		if last >= 0 && pieces[last].Marked == !shared[i] {
			pieces[last].Text += word
		} else {
			pieces = append(pieces, textview.Segment{Text: word, Marked: !shared[i]})
		}
	}
	return pieces, false
}

// wordsWithSpace cuts a text into words, each with the white space after it.
func wordsWithSpace(text string) []string {
	var words []string
	for text != "" {
		end := strings.IndexAny(text, " \t\r\n")
		if end < 0 {
			end = len(text)
		}
		for end < len(text) && strings.ContainsRune(" \t\r\n", rune(text[end])) {
			end++
		}
		words, text = append(words, text[:end]), text[end:]
	}
	return words
}

// inBoth marks the words that are part of the longest common subsequence with others.
func inBoth(words, others []string) []bool {
	width := len(others) + 1
	longest := make([]uint16, (len(words)+1)*width) // of the remaining words of both
	same := func(i, j int) bool { return strings.TrimSpace(words[i]) == strings.TrimSpace(others[j]) }
	for i := len(words) - 1; i >= 0; i-- {
		for j := len(others) - 1; j >= 0; j-- {
			if same(i, j) {
				longest[i*width+j] = longest[(i+1)*width+j+1] + 1
			} else {
				longest[i*width+j] = max(longest[(i+1)*width+j], longest[i*width+j+1])
			}
		}
	}
	shared := make([]bool, len(words))
	for i, j := 0, 0; i < len(words) && j < len(others); {
		switch {
		case same(i, j):
			shared[i] = true
			i++
			j++
		case longest[(i+1)*width+j] >= longest[i*width+j+1]:
			i++
		default:
			j++
		}
	}
	return shared
}
