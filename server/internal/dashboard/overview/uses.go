package overview

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// The activity of clients is counted over the latest calls only, so that the cost of the page does not grow with the
// number of calls.

// clientUse is the activity of a client.
type clientUse struct {
	Name   string
	Path   string // of its calls; empty: none
	Calls  int
	Failed int
	Read   int // without the searches
	// Searches are successful searches; the results of Counted are known, and Empty found nothing.
	Searches, Counted, Empty int
	Stored, Updated, Deleted int
	// Part is its calls, FailedPart the failed ones, CountedPart and EmptyPart its searches as above: in percent of the
	// calls of the busiest client, so that all bars of the chart have one scale.
	Part, FailedPart, CountedPart, EmptyPart float64
}

// usesShown is how many clients the chart shows.
const usesShown = 8

// add counts a call.
func (u *clientUse) add(a souvenir.Activity) {
	u.Calls++
	if a.Outcome != souvenir.OutcomeOK {
		u.Failed++
		return
	}
	if a.Tool == "memory" && a.Action == "search" {
		u.Searches++
		if a.Hits != nil {
			u.Counted++
		}
		if a.Hits != nil && *a.Hits == 0 {
			u.Empty++
		}
		return
	}
	switch deedOf(a).kind {
	case kindRead:
		u.Read++
	case kindStored:
		u.Stored++
	case kindUpdated:
		u.Updated++
	case kindDeleted:
		u.Deleted++
	}
}

// usesOf counts calls by client, the busiest first. People in browsers are left out.
func usesOf(calls []souvenir.Activity, c request.Caller) []clientUse {
	byPath := map[string]*clientUse{}
	for _, a := range calls {
		own := a.User == c.User.ID
		name, _ := callerOf(a, own)
		if name == "You" {
			continue
		}
		path := clientPath(a, own, c)
		u := byPath[cmp.Or(path, name)]
		if u == nil {
			u = &clientUse{Name: name, Path: path}
			byPath[cmp.Or(path, name)] = u
		}
		u.add(a)
	}
	var uses []clientUse
	for _, u := range byPath {
		uses = append(uses, *u)
	}
	slices.SortFunc(uses, func(a, b clientUse) int {
		return cmp.Or(b.Calls-a.Calls, cmp.Compare(a.Name, b.Name), cmp.Compare(a.Path, b.Path))
	})
	uses = uses[:min(len(uses), usesShown)]
	for i := range uses {
		u := &uses[i]
		part := func(of int) float64 { return 100 * float64(of) / float64(uses[0].Calls) }
		u.Part, u.FailedPart, u.CountedPart, u.EmptyPart = part(u.Calls), part(u.Failed), part(u.Counted), part(u.Empty)
	}
	return uses
}

// Searched counts the searches whose results are known, and the ones without results.
func (p activityPage) Searched() (u clientUse) {
	for _, one := range p.Uses {
		u.Counted += one.Counted
		u.Empty += one.Empty
	}
	return u
}

// didOf counts the latest calls of the client of a filter.
func didOf(r *http.Request, c request.Caller, f activityFilter) (clientUse, error) {
	var did clientUse
	found, err := c.Store.Insights().ActivityPage(r.Context(), souvenir.ActivityQuery{
		Credential: souvenir.CredentialKind(f.Credential), ID: f.ID, Limit: souvenir.MaxActivityLimit})
	for _, a := range found.Activities {
		did.add(a)
	}
	return did, err
}

// callGroup is the calls of a client on a day.
type callGroup struct {
	By, Client string // its name, and the path of its calls
	Calls      []callRow
}

// byClient groups the calls of a day, the busiest client first.
func byClient(calls []callRow) []callGroup {
	var groups []callGroup
	for _, call := range calls {
		i := slices.IndexFunc(groups, func(g callGroup) bool { return g.By == call.By && g.Client == call.Client })
		if i < 0 {
			i = len(groups)
			groups = append(groups, callGroup{By: call.By, Client: call.Client})
		}
		groups[i].Calls = append(groups[i].Calls, call)
	}
	slices.SortStableFunc(groups, func(a, b callGroup) int { return len(b.Calls) - len(a.Calls) })
	return groups
}
