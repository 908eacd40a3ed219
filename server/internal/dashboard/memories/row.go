package memories

import (
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
)

const (
	maxClip    = 240  // characters of a memory that a table shows
	maxReading = 1200 // bytes of it that are shown for reading
)

// memoryRow is a memory in a list.
type memoryRow struct {
	souvenir.Hit
	Project string             // OWNER/ID; empty: none
	Clip    []textview.Segment // the beginning, or what fits best
	Words   []string           // of the search that are in what is shown, as they stand there
	Long    bool               // there is more than the reading view shows
	Text    string             // what that shows
}

// Label names the memory for those who do not see where in the list something stands.
func (m memoryRow) Label() string {
	var whole strings.Builder
	for _, s := range m.Clip {
		whole.WriteString(s.Text)
	}
	return textview.Clip(whole.String(), 60)
}

// Archived reports whether it has been put away.
func (m memoryRow) Archived() bool { return m.State == "archived" }

// MostTags are the first tags; a list has no room for 64.
func (m memoryRow) MostTags() []string { return m.Tags[:min(len(m.Tags), 4)] }

// OtherTags is how many more there are.
func (m memoryRow) OtherTags() int { return len(m.Tags) - len(m.MostTags()) }

// Percent is a part of a score as a length, and as people read it.
func (m memoryRow) Percent(part float64) int { return int(min(1, max(0, part))*100 + 0.5) }

// rowOf shows a memory in a list.
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
