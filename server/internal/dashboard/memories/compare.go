package memories

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// comparePage is the data of the page that shows a search with two settings side by side.
type comparePage struct {
	Text     string
	Error    string
	Sides    []comparedSide
	Warnings []string
	Late     string // address from which a script requests the results; empty: they are here
}

// comparedSide is the search with one of the settings.
type comparedSide struct {
	Name       string // A or B
	Key        string // prefix of the parameters
	Project    []web.Option
	Recency    []web.Option
	Importance []web.Option
	Least      []web.Option
	Rows       []comparedRow
	Found      int
}

// comparedRow is a result.
type comparedRow struct {
	memoryRow
	Rank  int
	Moved string // compared with the other side; empty: the same place
}

const comparedShown = 10

// showCompare searches with two settings.
func (s *Service) showCompare(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values := r.URL.Query()
	values.Del(web.AtOnce)
	data := comparePage{Text: strings.TrimSpace(strings.ToValidUTF8(values.Get("q"), "\uFFFD"))}
	page := web.Page{Template: "compare", Title: "Compare two searches", Part: "compare-sides"}
	projects, err := s.projectOptions(r, c, "")
	if err != nil {
		return nil, err
	}
	projects[0] = web.Option{Label: "All projects"}
	if len(values) == 0 || values.Get("b_recency") == "" && len(values) == 1 {
		values.Set("b_recency", "0.3") // something to compare
	}
	if data.Text != "" && !web.FromScript(r) {
		if data.Late, err = s.site.Late(r, c); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"A", "B"} {
		side := comparedSide{Name: name, Key: strings.ToLower(name)}
		q, err := side.settings(values, projects)
		if err == nil && data.Text != "" && data.Late == "" {
			q.Text, q.Limit, q.Explain = data.Text, comparedShown, true
			var found souvenir.Results
			if found, err = c.Store.Search(r.Context(), q); err == nil {
				side.fill(found, data.Text, s.site.Base())
				data.Warnings = found.Warnings
			}
		}
		data.Sides = append(data.Sides, side)
		if err != nil {
			_, message := failure.Describe(err)
			data.Error = web.Sentence(relabel(message, "query", searchLabels["query"]))
			page.Data = data
			return web.Again(page, err)
		}
	}
	data.compare()
	page.Data = data
	return page, nil
}

// settings reads the settings of a side.
func (side *comparedSide) settings(values url.Values, projects []web.Option) (souvenir.Query, error) {
	get := func(name string) string { return values.Get(side.Key + "_" + name) }
	weights := func(value string) []web.Option {
		return web.Choices(value, "", "Not counted", "0.1", "A little (0.1)", "0.3", "Much (0.3)")
	}
	side.Project = web.Offered(choose(append([]web.Option(nil), projects...), get("project")))
	side.Recency, side.Importance = weights(get("recency")), weights(get("importance"))
	side.Least = web.Choices(get("least"), "", "Any", "0.25", "At least 0.25", "0.5", "Probably fits (0.5)", "0.75",
		"At least 0.75")
	q := souvenir.Query{ProjectID: get("project")}
	for _, number := range []struct {
		name string
		into *float64
	}{{"recency", &q.Priors.Recency}, {"importance", &q.Priors.Importance}, {"least", &q.MinScore}} {
		text := get(number.name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !(n >= 0 && n <= 1) {
			name := side.Key + "_" + number.name
			return q, failure.Invalid(name, name+" is "+failure.Quote(text)+"; expected a number from 0 to 1")
		}
		*number.into = n
	}
	return q, nil
}

func (side *comparedSide) fill(found souvenir.Results, text, base string) {
	words := textview.SearchWords(text)
	side.Found = found.Found
	for i, hit := range found.Hits {
		row := rowOf(hit, words, false, spaces[0])
		row.Base = base
		side.Rows = append(side.Rows, comparedRow{memoryRow: row, Rank: i + 1})
	}
}

// compare notes for each result its place on the other side.
func (p *comparePage) compare() {
	if len(p.Sides) != 2 {
		return
	}
	for i := range p.Sides {
		ranks := map[string]int{}
		for _, row := range p.Sides[1-i].Rows {
			ranks[row.ID] = row.Rank
		}
		for k := range p.Sides[i].Rows {
			row := &p.Sides[i].Rows[k]
			switch other, there := ranks[row.ID]; {
			case !there:
				row.Moved = "not in " + p.Sides[1-i].Name
			case other != row.Rank:
				row.Moved = strconv.Itoa(other) + " in " + p.Sides[1-i].Name
			}
		}
	}
}
