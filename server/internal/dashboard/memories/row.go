package memories

import (
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
)

const (
	maxClip    = 240  // characters of a memory in the table view
	maxReading = 1200 // bytes of it in the reading view
)

// memoryRow is a memory in a list.
type memoryRow struct {
	souvenir.Hit
	Base    string             // path of the server
	Project string             // OWNER/ID; empty: none
	Clip    []textview.Segment // the beginning, or the best match
	Words   []string           // search words in the visible text, as spelled there
	Long    bool               // the text is longer than the reading view shows
	Text    string             // of the reading view
}

// Label names the memory in labels for screen readers.
func (m memoryRow) Label() string {
	var whole strings.Builder
	for _, s := range m.Clip {
		whole.WriteString(s.Text)
	}
	return textview.Clip(whole.String(), 60)
}

// Archived reports whether it is archived.
func (m memoryRow) Archived() bool { return m.State == "archived" }

// MostTags are the first tags; a list has no room for 64.
func (m memoryRow) MostTags() []string { return m.Tags[:min(len(m.Tags), 4)] }

// OtherTags is the number of further tags.
func (m memoryRow) OtherTags() int { return len(m.Tags) - len(m.MostTags()) }

// Percent converts a score to percent, for a bar and as a number.
func (m memoryRow) Percent(part float64) int { return int(min(1, max(0, part))*100 + 0.5) }

// rowOf builds a memory's row in a list.
func rowOf(hit souvenir.Hit, words []string, reading bool) memoryRow {
	row := memoryRow{Hit: hit}
	passage := hit.Content
	if len(words) > 0 {
		passage = hit.Content[hit.Start:hit.End]
	}
	row.Clip = textview.Marked(textview.ClipAround(passage, words, maxClip), words)
	if hit.Start > 0 && len(words) > 0 {
		row.Clip = slices.Insert(row.Clip, 0, textview.Segment{Text: "… "})
	}
	for _, s := range row.Clip {
		if s.Marked && !slices.ContainsFunc(row.Words, func(word string) bool { return strings.EqualFold(word, s.Text) }) {
			row.Words = append(row.Words, s.Text)
		}
	}
	if reading {
		row.Text, row.Long = textview.Opening(hit.Content, maxReading)
	}
	return row
}
