package overview

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/calendar"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// activityPage is the data of the page of recorded calls.
type activityPage struct {
	Filter   activityFilter
	Zone     web.Zone
	Wrong    string // error in the filter; empty: none
	Days     []callDay
	Kinds    []kindChoice  // what calls did, to choose from
	Orders   []kindChoice  // how the calls of a day are ordered
	Uses     []clientUse   // the busiest clients, of the latest calls
	Client   *clientAccess // the client whose calls are shown; nil: of several, or not known
	Users    []web.Option  // of the filter; empty: only the user's own calls
	Names    bool          // the list shows user names
	Tools    []string      // to choose from
	Clients  []string
	Projects []souvenir.Project // of the user
	Places   []web.Option       // of these, to choose from
	Outcomes []outcomeChoice
	Older    string // address of the older calls; empty: there are none
	Newest   string // address of the newest calls; empty: this page shows them
	Follow   string // address of the page that starts or stops live updates
	Ways     []wayChoice
	Recorded bool   // calls are recorded
	Keep     string // retention, in words
	Most     int    // maximum number of calls, of all users
	Lost     int    // calls that could not be recorded since the server started
}

// callDay is a day of calls, in the reader's time zone.
type callDay struct {
	Day   time.Time
	Name  string // Today, Yesterday or a date
	Calls []callRow
	By    []callGroup // the same, by client; nil: in their order
}

// activityFilter is the filter of the calls.
type activityFilter struct {
	User, Credential, ID, Client, Tool, Outcome, Project string
	Kind                                                 string // of deedKinds
	Since, Until                                         string // days, the last one included
	Before                                               string
	Group                                                string // client: the calls of a day are grouped by client
	Live                                                 bool
}

// Some reports whether a filter is on.
func (f activityFilter) Some() bool { return f.Kind != "" || f.Folded() }

// Folded reports whether one of the further filters is on, which are folded away.
func (f activityFilter) Folded() bool {
	return f.User+f.Credential+f.ID+f.Client+f.Tool+f.Outcome+f.Project+f.Since+f.Until != ""
}

// outcomeChoice, wayChoice and kindChoice are values of the filter.
type (
	kindChoice struct {
		Name, Path string
		Here       bool
	}
	outcomeChoice struct{ Value, Name string }
	wayChoice     struct{ Value, Name string }
)

const (
	callsShown = 50  // on a page
	usersRead  = 100 // for the filter, which offers the first ones
	allUsers   = "*" // as the user of a filter
)

// credentialWays are the kinds of credentials, with names for the page.
var credentialWays = []wayChoice{
	{string(souvenir.CredentialToken), "a token"}, {string(souvenir.CredentialClient), "an application"},
	{string(souvenir.CredentialSignIn), "a browser"},
}

// showActivity shows recorded calls: the user's own, and, to admins who request them, those of other users.
func (s *Service) showActivity(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	data := activityPage{Filter: filterOf(r.URL.Query()), Zone: web.ZoneOf(r), Recorded: !s.noActivity,
		Ways: credentialWays, Tools: s.toolNames}
	p := web.Page{Template: "activity", Title: "Activity", Part: "activity-list"}
	var err error
	if data.Projects, err = c.Store.Projects(r.Context()); err != nil {
		return nil, err
	}
	if err := s.fillChoices(r, c, &data); err != nil {
		return nil, err
	}
	configuration, err := s.store.Upkeep().Configuration(r.Context())
	if err != nil {
		return nil, err
	}
	data.Kinds, data.Orders = kindChoices(data.Filter), orderChoices(data.Filter)
	if data.Client, err = clientOf(r, c, data.Filter); err == nil && data.Client != nil {
		data.Client.Next = data.Filter.address("", "")
		data.Client.Did, err = didOf(r, c, data.Filter)
	}
	if err != nil {
		return nil, err
	}
	data.Keep, data.Most = web.Span(configuration.KeepActivity), configuration.MaxActivity
	q, err := data.Filter.query(data.Zone)
	if err == nil {
		err = s.fillCalls(r, c, &data, q)
	}
	if err != nil {
		status, message := failure.Describe(err)
		if status != http.StatusBadRequest && status != http.StatusNotFound {
			return nil, err
		}
		p.Status, data.Wrong = status, web.Sentence(message)
		data.Filter.Live = false
	}
	p.Data = data
	return p, nil
}

// filterOf reads the filter from an address.
func filterOf(query url.Values) activityFilter {
	get := func(name string) string { return strings.TrimSpace(query.Get(name)) }
	return activityFilter{User: get("user"), Credential: get("credential"), ID: get("credential_id"),
		Client: query.Get("client"), Tool: get("tool"), Outcome: get("outcome"),
		Kind: get("kind"), Project: get("project"), Since: get("since"), Until: get("until"),
		Before: get("before"), Group: get("group"), Live: query.Has("live") &&
			!query.Has("before")}
}

// values returns the filter as address parameters, without the part of the list.
func (f activityFilter) values() url.Values {
	values := url.Values{}
	for name, value := range map[string]string{"user": f.User, "credential": f.Credential, "credential_id": f.ID,
		"client": f.Client, "tool": f.Tool, "outcome": f.Outcome, "kind": f.Kind, "group": f.Group,
		"project": f.Project, "since": f.Since, "until": f.Until} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return values
}

// address returns the address of the page with the filter and one more parameter.
func (f activityFilter) address(name, value string) string {
	values := f.values()
	if name != "" {
		values.Set(name, value)
	}
	if len(values) == 0 {
		return "/activity"
	}
	return "/activity?" + values.Encode()
}

// query returns the store's query. Days are in the reader's time zone.
func (f activityFilter) query(z web.Zone) (souvenir.ActivityQuery, error) {
	q := souvenir.ActivityQuery{User: f.User, Credential: souvenir.CredentialKind(f.Credential), ID: f.ID,
		Client: f.Client, Tool: f.Tool, ProjectID: f.Project,
		Outcome: souvenir.Outcome(f.Outcome), Before: f.Before, Limit: callsShown}
	if f.Kind != "" {
		if q.Calls = callsOfKind(f.Kind); q.Calls == nil {
			return q, failure.Invalid("kind", "kind is "+failure.Quote(f.Kind)+
				"; expected stored, updated, deleted or read")
		}
	}
	for _, bound := range []struct {
		name, given string
		begin, end  *time.Time
	}{{"since", f.Since, &q.Since, new(time.Time)}, {"until", f.Until, new(time.Time), &q.Until}} {
		if bound.given == "" {
			continue
		}
		var err error
		if *bound.begin, *bound.end, err = calendar.Span(bound.given, z.Location); err != nil {
			return q, failure.Invalid(bound.name, bound.name+" is "+failure.Quote(bound.given)+
				"; expected a day, such as 2026-03-01")
		}
	}
	return q, nil
}

// fillCalls loads the calls.
func (s *Service) fillCalls(r *http.Request, c request.Caller, data *activityPage, q souvenir.ActivityQuery) error {
	store := c.Store
	switch {
	case q.User == "" || q.User == c.User.ID:
		q.User = ""
	case c.User.Role != souvenir.RoleAdmin:
		return failure.Invalid("user", "user is "+failure.Quote(q.User)+"; only admins see other users' calls")
	default:
		store, data.Names = s.store, true
		if q.User == allUsers {
			q.User = ""
		}
	}
	found, err := store.Insights().ActivityPage(r.Context(), q)
	if err != nil {
		return err
	}
	about, err := subjectsOf(r.Context(), c, found.Activities, data.Projects)
	if err != nil {
		return err
	}
	data.Days, data.Lost = byDay(callRows(found.Activities, c, about), data.Zone.Location), found.Lost
	for i := range data.Days {
		if data.Filter.Group == groupByClient {
			data.Days[i].By = byClient(data.Days[i].Calls)
		}
	}
	if found.HasMore {
		data.Older = data.Filter.address("before", found.Activities[len(found.Activities)-1].ID)
	}
	if data.Filter.Before != "" {
		data.Newest = data.Filter.address("", "")
	}
	if data.Filter.Live {
		data.Follow = data.Filter.address("", "")
	} else {
		data.Follow = data.Filter.address("live", "1")
	}
	return nil
}

// fillChoices loads the values of the filter.
func (s *Service) fillChoices(r *http.Request, c request.Caller, data *activityPage) error {
	if web.FromScript(r) {
		return nil // only the list was requested
	}
	for _, one := range souvenir.Outcomes() {
		data.Outcomes = append(data.Outcomes, outcomeChoice{string(one), outcomeLabel(one)})
	}
	overview, err := c.Store.Insights().ActivityPage(r.Context(), souvenir.ActivityQuery{Limit: souvenir.MaxActivityLimit})
	if err != nil {
		return err
	}
	if data.Filter.Before == "" {
		data.Uses = usesOf(overview.Activities, c)
	}
	data.Places = web.Offered(web.ProjectOptions(calledFirst(data.Projects, overview.Activities), c.User.ID,
		data.Filter.Project, "All"))
	for _, a := range overview.Activities { // the latest calls supply the values
		if a.Client != "" && !slices.Contains(data.Clients, a.Client) && len(data.Clients) < 30 {
			data.Clients = append(data.Clients, a.Client)
		}
		if !slices.Contains(data.Tools, a.Tool) && len(data.Tools) < 60 {
			data.Tools = append(data.Tools[:len(data.Tools):len(data.Tools)], a.Tool)
		}
	}
	if c.User.Role != souvenir.RoleAdmin {
		return nil
	}
	page, err := s.store.Accounts().UserPage(r.Context(), souvenir.UserQuery{Accounts: true, Limit: usersRead})
	if err != nil {
		return err
	}
	pairs := []string{"", "You", allUsers, "All users"}
	for _, u := range page.Users {
		if u.ID != c.User.ID {
			pairs = append(pairs, u.ID, u.Name)
		}
	}
	data.Users = web.Offered(web.Choices(data.Filter.User, pairs...))
	return nil
}

// calledFirst returns the projects, those of the latest calls first.
func calledFirst(projects []souvenir.Project, calls []souvenir.Activity) []souvenir.Project {
	called := map[string]bool{}
	for _, a := range calls {
		called[a.ProjectID] = true
	}
	var first, others []souvenir.Project
	for _, p := range projects {
		if called[p.ID] {
			first = append(first, p)
		} else {
			others = append(others, p)
		}
	}
	return append(first, others...)
}

// Address is the address at which a script polls the list.
func (f activityFilter) Address() string { return f.address("live", "1") }

// byDay groups calls by the day on which they began, in the order of the list.
func byDay(calls []callRow, zone *time.Location) []callDay {
	const form = "Monday, 2 January 2006"
	today := time.Now().In(zone)
	var days []callDay
	for _, call := range calls {
		at := call.StartedAt.In(zone)
		name := at.Format(form)
		switch name {
		case today.Format(form):
			name = "Today"
		case today.AddDate(0, 0, -1).Format(form):
			name = "Yesterday"
		}
		if len(days) == 0 || days[len(days)-1].Name != name {
			days = append(days, callDay{Day: at, Name: name})
		}
		last := &days[len(days)-1]
		last.Calls = append(last.Calls, call)
	}
	return days
}

// kindChoices are the links that choose what calls did, beside the rest of a filter.
func kindChoices(f activityFilter) []kindChoice {
	only := func(kind, outcome string) activityFilter {
		g := f
		g.Kind, g.Outcome, g.Before = kind, outcome, ""
		return g
	}
	choices := []kindChoice{{"Everything", only("", "").address("", ""), f.Kind+f.Outcome == ""}}
	for _, kind := range deedKinds {
		choices = append(choices, kindChoice{kind.Name, only(kind.Value, "").address("", ""),
			f.Kind == kind.Value && f.Outcome == ""})
	}
	failed := string(souvenir.OutcomeError)
	return append(choices, kindChoice{"Failed", only("", failed).address("", ""), f.Kind == "" && f.Outcome == failed})
}

const groupByClient = "client"

// orderChoices are the links that choose how the calls of a day are ordered.
func orderChoices(f activityFilter) []kindChoice {
	byTime, byClient := f, f
	byTime.Group, byClient.Group = "", groupByClient
	return []kindChoice{{"By time", byTime.address("", ""), f.Group != groupByClient},
		{"By client", byClient.address("", ""), f.Group == groupByClient}}
}
