package memories

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/readahead"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// memoriesPage is the data of the page of memories.
type memoriesPage struct {
	Search  memorySearch
	Choices filterChoices // of the form; not needed for a script that requests only the list

	Problem  string // error in the query; empty: none
	Warnings []string
	Found    int // matches; by relevance, all ranked memories
	Past     int // the requested part, if it is past the last one; else 0
	WordsHit bool
	Rows     []memoryRow
	Fits     int          // the rows that fit the search
	Sorts    []web.Option // orders
	Swapped  bool         // a script gets only the list and the orders
	Pages    web.Leaves
	Projects []web.Option // targets of a move; the first is no project
	Files    bool         // there are files; known only if there are no memories

	Documents []souvenir.DocumentHit // files found by their texts

	Late string // address from which a script requests the results; empty: they are here
}

// None reports whether there are no memories at all.
func (p memoriesPage) None() bool {
	return p.Problem == "" && p.Late == "" && !p.Search.Filtered() && p.Found == 0
}

// All reports whether a step can apply to all matches and not only to the selected ones. By relevance, every memory
// matches to some degree.
func (p memoriesPage) All() bool { return p.Search.Text == "" && p.Found > len(p.Rows) }

// Folds reports whether weaker matches are folded away: on the first page of a search by relevance.
func (p memoriesPage) Folds() bool {
	return p.Search.Text != "" && p.Search.ByRelevance() && p.Search.Page == 1
}

// Fitting are the rows that fit the search, or all.
func (p memoriesPage) Fitting() rowList {
	return p.some("Memories", func(m memoryRow) bool { return m.Fits || !p.Folds() })
}

// Weaker are the other rows; nil: none.
func (p memoriesPage) Weaker() *rowList {
	if !p.Folds() || p.Fits == len(p.Rows) {
		return nil
	}
	list := p.some("Weaker matches", func(m memoryRow) bool { return !m.Fits })
	return &list
}

func (p memoriesPage) some(label string, keep func(memoryRow) bool) rowList {
	list := rowList{Search: p.Search, Label: label}
	for _, row := range p.Rows {
		list.Base = row.Base
		if keep(row) {
			list.Rows = append(list.Rows, row)
		}
	}
	return list
}

// WeakerLabel names the weaker matches, with their number.
func (p memoriesPage) WeakerLabel() string {
	if n := p.Found - p.Fits; n > 1 {
		return web.Thousands(n) + " weaker matches"
	}
	return "A weaker match"
}

// Most is how many of the matches can be changed in one step.
func (p memoriesPage) Most() int { return min(p.Found, maxBulk) }

// More reports whether there are more matches.
func (p memoriesPage) More() bool { return p.Found > maxBulk }

// showMemories shows the memories that match the search.
func (s *Service) showMemories(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	data := memoriesPage{Search: readMemorySearch(r.URL.Query(), web.ZoneOf(r)), Swapped: web.FromScript(r)}
	data.Sorts = choose(sortOptions(data.Search.Text != ""), data.Search.Sort)
	page := web.Page{Template: "memories", Title: "Memories", Part: "memory-results"}
	projects, err := c.Store.Projects(r.Context())
	if err != nil {
		return nil, err
	}
	data.Projects = web.ProjectOptions(projects, c.User.ID, "", "No project")
	if err := data.nameChips(r, c); err != nil {
		return nil, err
	}
	var choosing sync.WaitGroup
	var failed error
	var choices filterChoices                 // apart from data, which is read meanwhile
	if search := data.Search; !data.Swapped { // both are slow for many memories
		part := r.WithContext(readahead.Part(r.Context(), "choices"))
		choosing.Go(func() {
			_, broken := failure.Guard(r.Context(), s.log, "choices of filters", func() (any, error) {
				choices, failed = s.filterChoices(part, c, search, projects)
				return nil, nil
			})
			failed = cmp.Or(failed, broken)
		})
	}
	query, err := data.Search.query()
	if err == nil && data.Search.ByRelevance() && !data.Swapped {
		data.Late, err = s.site.Late(r, c)
	}
	if err == nil && data.Late == "" {
		err = s.findMemories(r, c, &data, query)
	}
	choosing.Wait()
	data.Choices, data.Projects = choices, web.Offered(data.Projects)
	if err != nil {
		status, message := failure.Describe(err)
		if status != http.StatusBadRequest && status != http.StatusNotFound {
			return nil, err
		}
		page.Status, data.Problem = status, web.Sentence(data.Search.inWords(err, message))
	}
	if failed != nil {
		return nil, failed
	}
	if data.None() {
		files, err := c.Store.FilePage(r.Context(), souvenir.FileQuery{Limit: 1})
		if err != nil {
			return nil, err
		}
		data.Files = len(files.Files) > 0
	}
	page.Data = data
	return page, nil
}

const (
	documentsShown = 5   // files, below the memories
	documentClip   = 400 // bytes of a passage
)

// findMemories fills in the list.
func (s *Service) findMemories(r *http.Request, c request.Caller, data *memoriesPage, query souvenir.Query) error {
	query.Explain = query.Text != ""
	if query.Offset == 0 {
		query.Documents = documentsShown
	}
	results, err := c.Store.Search(r.Context(), query)
	if err != nil {
		return err
	}
	if len(results.Hits) == 0 && results.Total > 0 { // past the end: memories were deleted, or the address was typed
		data.Past = data.Search.Page
		data.Search.Page = (results.Total-1)/web.PerPage + 1
		query.Offset = (data.Search.Page - 1) * web.PerPage
		if results, err = c.Store.Search(r.Context(), query); err != nil {
			return err
		}
	}
	data.Found, data.Warnings = results.Total, results.Warnings
	for _, d := range results.Documents {
		d.Text = textview.ClipAround(d.Text, textview.SearchWords(data.Search.Text), documentClip)
		data.Documents = append(data.Documents, d)
	}
	data.Pages = web.LeavesOf(web.Pager{Name: "page", Page: data.Search.Page,
		Pages: max(1, (results.Total+web.PerPage-1)/web.PerPage)}, data.Search.values())
	words := textview.SearchWords(data.Search.Text)
	for _, row := range rowsOf(results.Hits, words, data.Search.Reading()) {
		row.Base = s.site.Base()
		if row.Project, err = data.projectOf(r, c, row.Memory); err != nil {
			return err
		}
		data.WordsHit = data.WordsHit || row.Parts.Text > 0
		if row.Fits = data.Folds() && row.fits(words); row.Fits {
			data.Fits++
		}
		data.Rows = append(data.Rows, row)
	}
	return nil
}

// nameChips finds the names of the project and the memory that the address names by id.
func (p *memoriesPage) nameChips(r *http.Request, c request.Caller) error {
	for _, one := range p.Projects {
		if p.Search.Project != "" && one.Value == p.Search.Project {
			p.Search.projectName = one.Label
		}
	}
	if p.Search.Related == "" {
		return nil
	}
	m, err := c.Store.GetMemory(r.Context(), p.Search.Related)
	if errors.Is(err, souvenir.ErrNotFound) {
		return nil
	}
	p.Search.relatedTitle = Title(m.Content)
	return err
}

// projectOf returns the project of a memory as OWNER/ID, since several users may use the same id.
func (p *memoriesPage) projectOf(r *http.Request, c request.Caller, m souvenir.Memory) (string, error) {
	if m.ProjectID == "" {
		return "", nil
	}
	var same []string
	for _, one := range p.Projects {
		if _, id, _ := strings.Cut(one.Value, "/"); id == m.ProjectID {
			same = append(same, one.Value)
		}
	}
	if len(same) == 1 {
		return same[0], nil
	}
	status, err := c.Store.Insights().MemoryStatus(r.Context(), m.ID)
	if errors.Is(err, souvenir.ErrNotFound) { // just deleted
		return m.ProjectID, nil
	}
	return status.ProjectOwner + "/" + status.ProjectID, err
}

// filterChoices are the values that the form offers, with their numbers of memories.
type filterChoices struct {
	Projects, Collections, EventTypes, States []web.Option
	Importances, Classifications, RuleTypes   []web.Option
}

// filterChoices loads the available values.
func (s *Service) filterChoices(r *http.Request, c request.Caller, search memorySearch,
	projects []souvenir.Project) (filterChoices, error) {
	overview, err := c.Store.Insights().Overview(r.Context(), souvenir.OverviewQuery{Days: 1, MemoriesOnly: true})
	if err != nil {
		return filterChoices{}, err
	}
	var choices filterChoices
	withCount := func(label string, n int) string { return label + " (" + web.Thousands(n) + ")" }
	without := web.Option{Value: web.NotSet, Label: "No project"}
	for _, p := range overview.Projects {
		if p.ID == "" {
			without.Label = withCount(without.Label, p.Memories)
		}
	}
	choices.Projects = append(choices.Projects, web.Option{Label: "All projects"}, without)
	for i, p := range web.ProjectOptions(projects, c.User.ID, "", "")[1:] {
		p.Label = withCount(p.Label, projects[i].MemoryCount)
		choices.Projects = append(choices.Projects, p)
	}
	choices.Collections = append(choices.Collections, web.Option{Label: "All collections"})
	seen := map[string]int{}
	for _, found := range overview.Collections {
		seen[found.Name] += found.Memories // several owners may use the same name
	}
	for _, found := range overview.Collections {
		if n, first := seen[found.Name]; first {
			choices.Collections = append(choices.Collections, web.Option{Value: found.Name, Label: withCount(found.Name, n)})
			delete(seen, found.Name)
		}
	}
	choices.EventTypes = append(choices.EventTypes, web.Option{Label: "All types"})
	for _, found := range overview.EventTypes {
		if found.Name == "" {
			choices.EventTypes = append(choices.EventTypes,
				web.Option{Value: web.NotSet, Label: withCount("No type", found.Memories)})
		} else {
			choices.EventTypes = append(choices.EventTypes,
				web.Option{Value: found.Name, Label: withCount(found.Name, found.Memories)})
		}
	}
	choices.States = options("Any state", append([]string{web.NotSet}, memoryStates...))
	choices.Importances = options("Any", append([]string{web.NotSet}, memoryImportances...))
	choices.Classifications = options("Any", append([]string{web.NotSet}, memoryClassifications...))
	choices.RuleTypes = options("Any", append([]string{web.NotSet}, memoryRuleTypes...))
	for _, made := range []struct {
		options *[]web.Option
		value   string
	}{
		{&choices.Projects, search.Project}, {&choices.Collections, search.Collection},
		{&choices.EventTypes, search.EventType}, {&choices.States, search.State},
		{&choices.Importances, search.Importance}, {&choices.Classifications, search.Classification},
		{&choices.RuleTypes, search.RuleType},
	} {
		*made.options = choose(*made.options, made.value)
	}
	for _, list := range []*[]web.Option{&choices.Projects, &choices.Collections, &choices.EventTypes} {
		*list = web.Offered(*list)
	}
	return choices, nil
}

// options are the options of a select, the first one empty.
func options(none string, values []string) []web.Option {
	all := []web.Option{{Label: none}}
	for _, value := range values {
		label := value
		if value == web.NotSet {
			label = "Not set"
		}
		all = append(all, web.Option{Value: value, Label: label})
	}
	return all
}

// choose selects the option with a value. It adds a missing one, so that the value is kept.
func choose(all []web.Option, value string) []web.Option {
	for i := range all {
		if all[i].Chosen || all[i].Value == value {
			all[i].Chosen = true
			return all
		}
	}
	return append(all, web.Option{Value: value, Label: value, Chosen: true})
}

// projectOptions are the projects that the user sees, as OWNER/ID; the first is none.
func (s *Service) projectOptions(r *http.Request, c request.Caller, chosen string) ([]web.Option, error) {
	all, err := c.Store.Projects(r.Context())
	if err != nil {
		return nil, err
	}
	return choose(web.ProjectOptions(all, c.User.ID, chosen, "No project"), chosen), nil
}

// inWords describes an error in a search with the labels of the form.
func (m memorySearch) inWords(err error, message string) string {
	var known *souvenir.Error
	if errors.As(err, &known) {
		if label := searchLabels[known.Argument]; label != "" {
			return relabel(message, known.Argument, label)
		}
	}
	return message
}
