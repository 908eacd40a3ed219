package memories

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// duplicatesPage is the data of the page of near duplicates.
type duplicatesPage struct {
	Search   memorySearch
	Similar  string // minimum similarity, in percent
	Limit    int    // how many memories are compared
	Projects []web.Option
	Likeness []web.Option
	Limits   []web.Option

	Looked, Total int
	Problem       string
	Warnings      []string
	Groups        []duplicateGroup
	Found         int // groups
	Pages         web.Leaves
	Older         string // address of the page for the older memories; empty: there are none
	Late          string // address from which a script requests the groups; empty: they are here
}

// duplicateGroup is a group of near duplicates, the most recently updated one first.
type duplicateGroup struct {
	Percent  int // similarity of the most similar pair
	Memories []mergeChoice
	More     int    // not shown
	Address  string // of the merge page
}

const (
	defaultCompared = 1000
	defaultLikeness = "80"
	groupsShown     = 10
)

// showDuplicates shows near duplicates among the most recently updated memories.
func (s *Service) showDuplicates(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	query := r.URL.Query()
	data := duplicatesPage{Search: readMemorySearch(query, web.ZoneOf(r)), Limit: defaultCompared,
		Similar: cmp.Or(query.Get("similar"), defaultLikeness)}
	page := web.Page{Template: "duplicates", Title: "Near duplicates", Part: "duplicates-found"}
	err := s.findDuplicates(r, c, &data)
	if err != nil {
		status, message := failure.Describe(err)
		if status != http.StatusBadRequest && status != http.StatusNotFound {
			return nil, err
		}
		page.Status, data.Problem = status, web.Sentence(data.Search.inWords(err, message))
	}
	if data.Projects, err = s.projectOptions(r, c, data.Search.Project); err != nil {
		return nil, err
	}
	data.Projects[0].Label = "All projects"
	data.Projects = web.Offered(data.Projects)
	data.Likeness = web.Choices(data.Similar, "95", "95% or more", "90", "90% or more", "80", "80% or more", "70",
		"70% or more")
	data.Limits = web.Choices(strconv.Itoa(data.Limit), "500", "500", "1000", "1,000", "2000", "2,000", "5000", "5,000")
	page.Data = data
	return page, nil
}

// findDuplicates compares memories with each other, and fills in the page.
func (s *Service) findDuplicates(r *http.Request, c request.Caller, data *duplicatesPage) error {
	query := r.URL.Query()
	if limit := query.Get("limit"); limit != "" {
		number, err := strconv.Atoi(limit)
		if err != nil || number < 1 || number > souvenir.MaxNodes {
			return failure.Invalid("limit", "limit is "+failure.Quote(limit)+"; 1 to "+web.Thousands(souvenir.MaxNodes)+
				" memories can be compared")
		}
		data.Limit = number
	}
	percent, err := strconv.Atoi(data.Similar)
	if err != nil || percent < 50 || percent > 100 {
		return failure.Invalid("similar", "similar is "+failure.Quote(data.Similar)+
			"; expected a similarity of 50 to 100 percent")
	}
	list, err := data.Search.list()
	if err != nil {
		return err
	}
	if data.Late, err = s.site.Late(r, c); data.Late != "" || err != nil {
		return err
	}
	graph, err := s.readGraph(r.Context(), c,
		souvenir.GraphQuery{MemoryList: list, Limit: data.Limit, Duplicates: float64(percent) / 100})
	if err != nil {
		return err
	}
	data.Looked, data.Total, data.Warnings = len(graph.Nodes), graph.Total, graph.Warnings
	groups := groupsOf(graph)
	data.Found = len(groups)
	parts := web.Pager{Name: "page", Page: data.Search.Page, Pages: max(1, (len(groups)+groupsShown-1)/groupsShown)}
	parts.Page = min(parts.Page, parts.Pages)
	data.Pages = web.LeavesOf(parts, data.values())
	if data.Looked < data.Total && data.Looked > 0 {
		before := data.values()
		before.Set("updated_to", graph.Nodes[data.Looked-1].UpdatedAt.UTC().Format(time.RFC3339Nano))
		data.Older = "?" + before.Encode()
	}
	first := (parts.Page - 1) * groupsShown
	return data.read(r, c, graph, groups[first:min(first+groupsShown, len(groups))])
}

// values returns the address parameters of the page.
func (p *duplicatesPage) values() url.Values {
	values := p.Search.values()
	values.Set("similar", p.Similar)
	values.Set("limit", strconv.Itoa(p.Limit))
	return values
}

// likeGroup is a group of nodes of a graph, with their highest similarity.
type likeGroup struct {
	places []int
	score  float64
}

// groupsOf returns the connected groups of similar memories, the most similar first. It leaves out a project's
// rules: each is the only one of its kind.
func groupsOf(graph souvenir.Graph) []likeGroup {
	leader := make([]int, len(graph.Nodes))
	for i := range leader {
		leader[i] = i
	}
	find := func(i int) int {
		for leader[i] != i {
			leader[i] = leader[leader[i]]
			i = leader[i]
		}
		return i
	}
	alike := slices.DeleteFunc(slices.Clone(graph.Edges), func(e souvenir.Edge) bool {
		return e.Kind != souvenir.EdgeSimilar || graph.Nodes[e.From].EventType == souvenir.EventProjectRule ||
			graph.Nodes[e.To].EventType == souvenir.EventProjectRule
	})
	for _, e := range alike {
		from, to := find(e.From), find(e.To)
		leader[max(from, to)] = min(from, to)
	}
	found := map[int]*likeGroup{}
	for _, e := range alike {
		at := find(e.From)
		if found[at] == nil {
			found[at] = &likeGroup{}
		}
		found[at].score = max(found[at].score, e.Score)
	}
	for i := range graph.Nodes {
		if group := found[find(i)]; group != nil {
			group.places = append(group.places, i)
		}
	}
	var groups []likeGroup
	for _, at := range slices.Sorted(maps.Keys(found)) {
		groups = append(groups, *found[at])
	}
	slices.SortStableFunc(groups, func(a, b likeGroup) int { return cmp.Compare(b.score, a.score) })
	return groups
}

// read loads the memories of the visible groups.
func (p *duplicatesPage) read(r *http.Request, c request.Caller, graph souvenir.Graph, groups []likeGroup) error {
	var ids []string
	for _, group := range groups {
		for _, at := range group.places[:min(len(group.places), maxMerge)] {
			ids = append(ids, graph.Nodes[at].ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	there := map[string]souvenir.Memory{}
	for m, err := range c.Store.Memories(r.Context(),
		souvenir.MemoryList{Filter: souvenir.Filter{"id": souvenir.In(ids...)}}) {
		if err != nil {
			return err
		}
		there[m.ID] = m
	}
	for _, group := range groups {
		page := duplicateGroup{Percent: int(min(1, group.score)*100 + 0.5),
			More: len(group.places) - min(len(group.places), maxMerge)}
		var chosen []string
		var first souvenir.Memory
		for _, at := range group.places[:min(len(group.places), maxMerge)] {
			m, ok := there[graph.Nodes[at].ID]
			if !ok {
				continue // deleted meanwhile
			}
			choice := mergeChoice{Memory: m}
			if len(page.Memories) == 0 {
				first = m
			}
			choice.Pieces = comparedPlain(m.Content, first.Content)
			page.Memories, chosen = append(page.Memories, choice), append(chosen, m.ID)
		}
		if len(chosen) > 1 {
			page.Address = mergeAddress(chosen)
			p.Groups = append(p.Groups, page)
		}
	}
	return nil
}

// comparedPlain returns the beginning of a text without its Markdown marks; words that the other text does not have are
// marked. Texts that differ only in their Markdown marks are shown as they are stored.
func comparedPlain(text, other string) []textview.Segment {
	text, _ = textview.Opening(text, maxReading)
	other, _ = textview.Opening(other, maxReading)
	if plain, plainOther := withoutMarks(text), withoutMarks(other); plain != plainOther || text == other {
		text, other = plain, plainOther
	}
	if text == other {
		return []textview.Segment{{Text: text}}
	}
	pieces, _ := compared(text, other)
	return pieces
}

// withoutMarks returns a text in one line, without its Markdown marks.
func withoutMarks(text string) string {
	var line strings.Builder
	for _, span := range web.Excerpt(text) {
		line.WriteString(span.Text)
	}
	return strings.TrimSpace(line.String())
}
