package memories

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/shorten"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

const maxReading = 1200 // bytes of a memory in the reading view

// memoryRow is a memory in a list.
type memoryRow struct {
	souvenir.Hit
	Base    string             // path of the server
	Project string             // OWNER/ID; empty: none
	Clip    []textview.Segment // the beginning, or the best match
	Words   []string           // search words in the visible text, as spelled there
	Long    bool               // the text is longer than the reading view shows
	Text    string             // of the reading view
	Fits    bool               // it fits the search, and is not a weaker match
	space   space              // for it
}

// Label names the memory in labels for screen readers.
func (m memoryRow) Label() string {
	var whole strings.Builder
	for _, s := range m.Clip {
		whole.WriteString(s.Text)
	}
	return textview.Clip(whole.String(), min(60, m.space.clip))
}

// Archived reports whether it is archived.
func (m memoryRow) Archived() bool { return m.State == "archived" }

// MostTags are the first tags; a list has no room for 64.
func (m memoryRow) MostTags() []string { return m.Tags[:min(len(m.Tags), m.space.tags)] }

// OtherTags is the number of further tags.
func (m memoryRow) OtherTags() int { return len(m.Tags) - len(m.MostTags()) }

// Percent converts a score to percent, for a bar and as a number.
func (m memoryRow) Percent(part float64) int { return int(min(1, max(0, part))*100 + 0.5) }

// rowOf builds a memory's row in a list.
func rowOf(hit souvenir.Hit, words []string, reading bool, space space) memoryRow {
	row := memoryRow{Hit: hit, space: space}
	passage := hit.Content
	if len(words) > 0 {
		passage = hit.Content[hit.Start:hit.End]
	}
	row.Clip = excerpt(passage, words, hit.Start == 0 || len(words) == 0, space.clip)
	for _, s := range row.Clip {
		if s.Marked && !slices.ContainsFunc(row.Words, func(word string) bool { return strings.EqualFold(word, s.Text) }) {
			row.Words = append(row.Words, s.Text)
		}
	}
	if reading {
		row.Text, row.Long = textview.Opening(hit.Content, space.reading)
	}
	return row
}

// excerpt is the part of a text that a list shows: at most some characters of its beginning, or from the best match on.
func excerpt(text string, words []string, whole bool, most int) []textview.Segment {
	window, start := textview.Window(text, words, most)
	var all []textview.Segment
	if !whole || !start {
		all = append(all, textview.Segment{Text: "… "})
	}
	left := most
	spans := web.Excerpt(window)
	for i, span := range spans {
		piece := shorten.Characters(span.Text, left)
		left -= utf8.RuneCountInString(piece)
		cut := len(piece) < len(span.Text)
		if last := i == len(spans)-1; last || cut {
			piece = strings.TrimRight(piece, " ")
		}
		for _, s := range textview.Marked(piece, words) {
			s.Strong, s.Code = span.Strong, span.Code
			all = append(all, s)
		}
		if cut || left <= 0 && i < len(spans)-1 {
			return append(all, textview.Segment{Text: " …"})
		}
	}
	if len(window) < len(text) && left > 0 && len(text)-len(window) > 1 && !strings.HasSuffix(text, window) {
		all = append(all, textview.Segment{Text: " …"})
	}
	return all
}

// fits reports whether the memory is probably about the search, or has all of its words.
func (m memoryRow) fits(words []string) bool {
	const probably = 0.5 // the same as in get_context
	if m.Confidence >= probably {
		return true
	}
	return len(words) > 0 && textview.HasAll(m.Content, words)
}

// rowList is a part of the list: memories that fit a search, or weaker matches.
type rowList struct {
	Rows   []memoryRow
	Search memorySearch
	Base   string // path of the server
	Label  string
}
