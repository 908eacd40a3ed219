package memories

import (
	"net/url"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// space is how much of each memory a list shows.
type space struct {
	clip    int // characters of the text in the table view
	reading int // bytes of it in the reading view
	tags    int
	name    int // characters of an event type, a state, a project or a collection
	reasons int // of a score
}

// spaces are tried in turn, until the list is short enough to load on a slow connection: some characters take ten
// times their bytes in HTML and in addresses.
var spaces = []space{{240, 1200, 4, 256, 100}, {240, 600, 2, 40, 8}, {120, 300, 2, 40, 6}, {60, 150, 1, 20, 4},
	{30, 60, 0, 12, 2}}

// listBytes is about how many bytes the rows of a page may have. The rest of the page has 16 to 21 KB.
const listBytes = 77_000

// rowsOf builds the rows of a list, as long as there is room for them.
func rowsOf(hits []souvenir.Hit, words []string, reading bool) (rows []memoryRow) {
	for _, space := range spaces {
		rows = rows[:0]
		sum := 0
		for _, hit := range hits {
			row := rowOf(hit, words, reading, space)
			sum += row.bytes(reading)
			rows = append(rows, row)
		}
		if sum <= listBytes {
			break
		}
	}
	return rows
}

// bytes estimates how long a row is in HTML.
func (m memoryRow) bytes(reading bool) int {
	const each, score, reason, markup, link = 800, 570, 330, 15, 30
	sum := each + inHTML(m.Label()) + inHTML(m.ShortProject()) + inHTML(m.ShortCollection()) + inHTML(m.ShortState()) +
		inHTML(m.ShortType()) + inAddress(m.LinkedType()) + 3*len(m.ProjectID)
	for _, tag := range m.MostTags() {
		sum += link + inHTML(tag) + inAddress(tag)
	}
	if m.Explanation != nil {
		sum += score + reason*len(m.Reasons())
		for _, word := range m.Words {
			sum += markup + inHTML(word)
		}
	}
	if reading {
		return sum + inHTML(m.Label()) + len(web.Markdown(m.Text))
	}
	for _, s := range m.Clip {
		if sum += inHTML(s.Text); s.Marked {
			sum += markup
		}
		if s.Strong || s.Code {
			sum += markup
		}
	}
	return sum
}

// inHTML returns how many bytes a text takes in HTML.
func inHTML(text string) int {
	n := len(text)
	for _, special := range []string{`"`, `'`, `&`, `<`, `>`, `+`} {
		n += 4 * strings.Count(text, special)
	}
	return n
}

// inAddress returns how many bytes a text takes in an address of a page.
func inAddress(text string) int { return len(url.QueryEscape(text)) + 2*strings.Count(text, " ") }

// ShortType is the event type, as far as there is room for it.
func (m memoryRow) ShortType() string { return textview.Clip(m.EventType, m.space.name) }

// LinkedType is the event type for an address; empty: there is no room for it.
func (m memoryRow) LinkedType() string {
	if m.ShortType() != m.EventType && m.space.name < len(m.EventType) {
		return ""
	}
	return m.EventType
}

// ShortState is the state, as far as there is room for it.
func (m memoryRow) ShortState() string { return textview.Clip(m.State, m.space.name) }

// ShortProject is the name of the project, as far as there is room for it.
func (m memoryRow) ShortProject() string { return textview.Clip(m.ProjectName, m.space.name) }

// ShortCollection is the name of the collection, as far as there is room for it.
func (m memoryRow) ShortCollection() string { return textview.Clip(m.Collection, m.space.name) }
