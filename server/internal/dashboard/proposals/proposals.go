// Package proposals serves the page on which people decide about proposals: changes to memories that conversations
// suggest. Deciding needs no model.
package proposals

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/extract"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/route"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

const (
	mostCounted = 100              // proposals that the menu counts
	mostUsers   = 10_000           // whose counts are remembered
	countsFor   = 30 * time.Second // how long the menu of other pages shows a count
	mostSources = 3                // turns of a proposal that the page shows
	sourceClip  = 160              // characters of them
	maxID       = 128              // bytes of the id of a turn: tools can store anything as one
	keyClip     = 120              // characters of the key of a conversation
	pageName    = "waiting"
)

// Service serves the page of the proposals. Create one with [New].
type Service struct {
	site *web.Site

	mu      sync.Mutex
	counted map[string]counted // by user
}

// counted is how many proposals a user could decide about at a time.
type counted struct {
	proposals int
	at        time.Time
}

// New creates a Service, and lets the menu count proposals.
func New(site *web.Site) *Service {
	s := &Service{site: site, counted: map[string]counted{}}
	site.Proposals = s.count
	return s
}

// Routes are the routes of the proposals.
func (s *Service) Routes() []route.Route {
	return []route.Route{
		route.Page(web.ProposalsPath, route.Person, s.show),
		route.Post(web.ProposalsPath, route.Person, s.decide),
	}
}

// proposalsPage is the data of the page.
type proposalsPage struct {
	Sections []*section
	Total    int
	Decides  bool // about one of them at least
	Accepts  bool // one of them can be accepted
	Pages    web.Pager
	Error    string
}

// section is the proposals from one conversation, or about one group of memories.
type section struct {
	ID           string // of its heading
	Conversation string
	Group        bool // near duplicates or contradictions
	Place        place
	Collection   string
	ProjectPath  string
	ProjectName  string
	OwnerName    string // of a place that another user shares
	Items        []*item
}

// Key is the key of the conversation as the page shows it.
func (s *section) Key() string { return textview.Clip(s.Conversation, keyClip) }

// place is where a proposal is, and whether the user may write there.
type place struct {
	owner, project, collection string
}

func placeOf(p extract.Pending) place { return place{p.Owner, p.ProjectID, p.Collection} }

// status is a user's access in a place.
type status struct {
	writable bool
	owner    string // the name of its owner
}

// item is a proposal on the page.
type item struct {
	extract.Waiting
	Decides  bool
	Diff     *textview.Diff // from the present text to the proposed one; nil: they are not compared
	Was      string         // the text of the memory to forget
	Sources  []source
	More     int    // turns that are not shown
	Typed    string // in the field for other words
	Problem  string // with what was typed
	Replaces bool
}

// source is a turn that a proposal comes from.
type source struct {
	ID, By, Text string
}

// Value is the value of the proposal in forms: its id, and the revision that was shown.
func (i *item) Value() string { return i.ID + "." + strconv.Itoa(i.Revision) }

// Label names the proposal for screen readers.
func (i *item) Label() string {
	return i.Verb() + " “" + textview.Clip(cmp.Or(i.Proposal.Content, i.Was, i.Proposal.Reason), 60) + "”"
}

// Verb is the proposal's action, in a word.
func (i *item) Verb() string {
	switch i.Proposal.Action {
	case extract.Add:
		return "Add"
	case extract.Update:
		return "Update"
	case extract.Supersede:
		return "Replace"
	case extract.Forget:
		return "Forget"
	}
	return "Unreadable"
}

// Percent is the confidence; 0: not given.
func (i *item) Percent() int { return int(i.Proposal.Confidence*100 + 0.5) }

// otherMemory matches a memory that a reason names by its id, as the reason for a pair of similar memories does.
var otherMemory = regexp.MustCompile(`memory ([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}): `)

// Why is the reason as people read it: without Markdown marks, and without the id of the other memory, to which
// [item.Other] leads.
func (i *item) Why() string {
	reason := i.Proposal.Reason
	if at := otherMemory.FindStringIndex(reason); at != nil {
		return reason[:at[0]] + "another memory: " + web.Plain(reason[at[1]:])
	}
	return web.Plain(reason)
}

// Other is the id of the memory that the reason names; empty: none.
func (i *item) Other() string {
	if found := otherMemory.FindStringSubmatch(i.Proposal.Reason); found != nil {
		return found[1]
	}
	return ""
}

// Writes reports whether the proposal has a text that can be edited.
func (i *item) Writes() bool { return i.Conflict == "" && i.Proposal.Action != extract.Forget }

// Open are the proposals that can be accepted together, if there are several.
func (s *section) Open() []*item {
	var all []*item
	for _, i := range s.Items {
		if i.Decides && i.Conflict == "" {
			all = append(all, i)
		}
	}
	if len(all) < 2 {
		return nil
	}
	return all
}

func (s *Service) show(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	return s.page(r, c, "", nil)
}

// page makes the page, with the error and the input of a form.
func (s *Service) page(r *http.Request, c request.Caller, problem string, typed *item) (web.Page, error) {
	ctx := r.Context()
	data := &proposalsPage{Error: problem, Pages: web.Pager{Name: pageName, Page: web.PageNumber(r, pageName)}}
	reviewer := extract.NewReviewer(c.Store)
	read := func() (extract.ReviewPage, error) {
		return reviewer.Page(ctx, extract.ReviewQuery{Limit: web.PerPage, Offset: (data.Pages.Page - 1) * web.PerPage})
	}
	found, err := read()
	if err != nil {
		return web.Page{}, err
	}
	data.Total, data.Pages.Pages = found.Total, max(1, (found.Total+web.PerPage-1)/web.PerPage)
	if data.Pages.Page > data.Pages.Pages {
		data.Pages.Page = data.Pages.Pages
		if found, err = read(); err != nil {
			return web.Page{}, err
		}
	}
	turns, err := sourcesOf(ctx, c.Store, found.Waiting)
	if err != nil {
		return web.Page{}, err
	}
	places := places{c.Store, map[place]status{}}
	room := textview.MaxDiffsShown
	for _, w := range found.Waiting {
		at, err := places.of(ctx, w.Pending)
		if err != nil {
			return web.Page{}, err
		}
		i := &item{Waiting: w, Decides: at.writable, Typed: w.Proposal.Content,
			Replaces: w.Proposal.Action == extract.Supersede}
		i.compare(&room)
		i.addSources(turns)
		if typed != nil && typed.ID == i.ID {
			i.Typed, i.Problem = typed.Typed, typed.Problem
		}
		data.Decides = data.Decides || i.Decides
		data.Accepts = data.Accepts || i.Decides && i.Conflict == ""
		data.add(i, c.User.ID, at.owner)
	}
	return web.Page{Template: "proposals", Title: "Proposals", Data: data}, nil
}

// add puts a proposal into the section of its conversation or group.
func (p *proposalsPage) add(i *item, user, owner string) {
	at, group := placeOf(i.Pending), i.Proposal.Group
	for _, s := range p.Sections {
		first := s.Items[0]
		if s.Place == at && s.Conversation == i.Conversation && first.Proposal.Group == group {
			s.Items = append(s.Items, i)
			return
		}
	}
	s := &section{ID: "section-" + strconv.Itoa(len(p.Sections)+1), Conversation: i.Conversation, Group: group != "",
		Place: at, Collection: i.Collection, Items: []*item{i}}
	if i.ProjectID != "" {
		s.ProjectPath = web.ProjectPath(souvenir.Project{ID: i.ProjectID, Owner: i.Owner})
		s.ProjectName = cmp.Or(i.ProjectName, i.ProjectID)
	}
	if i.Owner != user {
		s.OwnerName = cmp.Or(owner, i.Owner)
	}
	p.Sections = append(p.Sections, s)
}

// compare compares the proposed text with the current one, within the room that all comparisons share.
func (i *item) compare(room *int) {
	if i.Target == nil {
		return
	}
	switch i.Proposal.Action {
	case extract.Update, extract.Supersede:
		i.Diff = textview.Compare(i.Target.Content, i.Proposal.Content, min(*room, textview.MaxDiffShown))
		*room = max(0, *room-(min(*room, textview.MaxDiffShown)-i.Diff.Left))
	case extract.Forget:
		i.Was, _ = textview.Opening(i.Target.Content, extract.MaxContent)
	}
}

// sourcesOf reads the first turns of proposals, by id, if they still exist and the user can see them.
func sourcesOf(ctx context.Context, store *souvenir.Store, all []extract.Waiting) (map[string]souvenir.Memory, error) {
	turns := map[string]souvenir.Memory{}
	var ids []string
	for _, w := range all {
		for _, id := range w.Proposal.Sources[:min(mostSources, len(w.Proposal.Sources))] {
			if _, known := turns[id]; !known && id != "" && len(id) <= maxID {
				turns[id], ids = souvenir.Memory{}, append(ids, id)
			}
		}
	}
	if len(ids) == 0 {
		return turns, nil
	}
	for m, err := range store.Memories(ctx, souvenir.MemoryList{Filter: souvenir.Filter{"id": ids}}) {
		if err != nil {
			return nil, err
		}
		turns[m.ID] = m
	}
	return turns, nil
}

func (i *item) addSources(turns map[string]souvenir.Memory) {
	for n, id := range i.Proposal.Sources {
		m := turns[id]
		if n >= mostSources || m.ID == "" {
			i.More++
			continue
		}
		by := textview.Plain(cmp.Or(m.Metadata["speaker"], m.Metadata["role"]))
		i.Sources = append(i.Sources, source{id, textview.Clip(by, 40), textview.Clip(m.Content, sourceClip)})
	}
}

// places remembers the user's access in each place.
type places struct {
	store *souvenir.Store
	known map[place]status
}

func (p places) of(ctx context.Context, w extract.Pending) (status, error) {
	at, known := p.known[placeOf(w)]
	if known {
		return at, nil
	}
	m, err := p.store.Insights().MemoryStatus(ctx, w.ID)
	if errors.Is(err, souvenir.ErrNotFound) { // it has just been decided about
		return status{}, nil
	}
	at = status{m.Writable, cmp.Or(m.OwnerName, m.Owner)}
	if err == nil {
		p.known[placeOf(w)] = at
	}
	return at, err
}

// count returns how many proposals the user can decide about, at most mostCounted. All pages show it, so only the page
// of the proposals counts each time.
func (s *Service) count(r *http.Request, c request.Caller) int {
	now := time.Now()
	s.mu.Lock()
	before, known := s.counted[c.User.ID]
	s.mu.Unlock()
	here := strings.TrimPrefix(r.URL.Path, s.site.Base()) == web.ProposalsPath
	if known && !here && now.Sub(before.at) < countsFor {
		return before.proposals
	}
	n := s.countNow(r, c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.counted) >= mostUsers {
		clear(s.counted)
	}
	s.counted[c.User.ID] = counted{n, now}
	return n
}

// countNow counts them in the store. An error counts as none, since the menu works without the number.
func (s *Service) countNow(r *http.Request, c request.Caller) int {
	places := places{c.Store, map[place]status{}}
	n, err := extract.NewReviewer(c.Store).Count(r.Context(), mostCounted, func(p extract.Pending) bool {
		at, err := places.of(r.Context(), p)
		return err == nil && at.writable
	})
	if err != nil {
		return 0
	}
	return n
}

// here is the path of the part of the page that a form was on.
func here(r *http.Request) string {
	if n := web.PageNumber(r, pageName); n > 1 {
		return web.ProposalsPath + "?" + pageName + "=" + strconv.Itoa(n)
	}
	return web.ProposalsPath
}

// readValue is the reverse of item.Value.
func readValue(value string) (id string, revision int, ok bool) {
	at := strings.LastIndexByte(value, '.')
	if at < 1 {
		return "", 0, false
	}
	revision, err := strconv.Atoi(value[at+1:])
	return value[:at], revision, err == nil && revision > 0
}
