package overview

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// activityPage is what the page of the recorded calls shows.
type activityPage struct {
	Filter   activityFilter
	Zone     web.Zone
	Wrong    string // what is wrong with the filter; empty: nothing
	Calls    []shownCall
	Users    []userChoice // whose calls can be asked for; none: one's own only
	Names    bool         // of users are shown
	Tools    []string     // to choose from
	Clients  []string
	Projects []souvenir.Project
	Outcomes []outcomeChoice
	Older    string // address of the calls before; empty: there are none
	Newest   string // address of the first part; empty: this is it
	Follow   string // address of the page that follows what comes, or no more
	Ways     []wayChoice
	Recorded bool   // calls are
	Keep     string // how long, in words
	Most     int    // how many, of all users
	Lost     int    // how many could not be recorded since the server was started
}

// activityFilter is what the calls have to fit.
type activityFilter struct {
	User, Credential, ID, Client, Tool, Outcome, Project string
	Since, Until                                         string // days, the last one included
	Before                                               string
	Live                                                 bool
}

// Some reports whether anything is asked for but everything.
func (f activityFilter) Some() bool {
	return f.User+f.Credential+f.ID+f.Client+f.Tool+f.Outcome+f.Project+f.Since+f.Until != ""
}

// userChoice, outcomeChoice and wayChoice are what can be chosen in the filter.
type (
	userChoice    struct{ Value, Name string }
	outcomeChoice struct{ Value, Name string }
	wayChoice     struct{ Value, Name string }
)

const (
	callsShown = 50  // on a page
	everybody  = "*" // as the user of a filter
)

// credentialWays are the kinds of what calls are made with, as people know them.
var credentialWays = []wayChoice{
	{string(souvenir.CredentialToken), "a token"}, {string(souvenir.CredentialClient), "an application"},
	{string(souvenir.CredentialSession), "a browser"},
}

// showActivity shows calls that were recorded: one's own, and to admins who ask for them those of others.
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

// filterOf reads the filter of an address.
func filterOf(query url.Values) activityFilter {
	get := func(name string) string { return strings.TrimSpace(query.Get(name)) }
	return activityFilter{User: get("user"), Credential: get("credential"), ID: get("credential_id"),
		Client: query.Get("client"), Tool: get("tool"), Outcome: get("outcome"),
		Project: get("project"), Since: get("since"), Until: get("until"), Before: get("before"), Live: query.Has("live") &&
			!query.Has("before")}
}

// values is the filter as an address has it, without the part of the list.
func (f activityFilter) values() url.Values {
	values := url.Values{}
	for name, value := range map[string]string{"user": f.User, "credential": f.Credential, "credential_id": f.ID,
		"client": f.Client, "tool": f.Tool, "outcome": f.Outcome,
		"project": f.Project, "since": f.Since, "until": f.Until} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return values
}

// address is the address of the page with the filter and one more parameter.
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

// query asks the store for what fits. Days are those of the reader.
func (f activityFilter) query(z web.Zone) (souvenir.ActivityQuery, error) {
	q := souvenir.ActivityQuery{User: f.User, Credential: souvenir.CredentialKind(f.Credential), ID: f.ID,
		Client: f.Client, Tool: f.Tool, ProjectID: f.Project,
		Outcome: souvenir.Outcome(f.Outcome), Before: f.Before, Limit: callsShown}
	for _, bound := range []struct {
		name, given string
		into        *time.Time
		days        int
	}{{"since", f.Since, &q.Since, 0}, {"until", f.Until, &q.Until, 1}} {
		if bound.given == "" {
			continue
		}
		at, err := time.ParseInLocation(time.DateOnly, bound.given, z.Location)
		if err != nil {
			return q, failure.Invalid(bound.name, bound.name+" is "+failure.Quote(bound.given)+
				"; a day is needed, such as 2026-03-01")
		}
		*bound.into = at.AddDate(0, 0, bound.days)
	}
	return q, nil
}

// fillCalls reads the calls.
func (s *Service) fillCalls(r *http.Request, c request.Caller, data *activityPage, q souvenir.ActivityQuery) error {
	store := c.Store
	switch {
	case q.User == "" || q.User == c.User.ID:
		q.User = ""
	case c.User.Role != souvenir.RoleAdmin:
		return failure.Invalid("user", "user is "+failure.Quote(q.User)+"; only admins see the calls of others")
	default:
		store, data.Names = s.store, true
		if q.User == everybody {
			q.User = ""
		}
	}
	found, err := store.Insights().Activities(r.Context(), q)
	if err != nil {
		return err
	}
	data.Calls, data.Lost = shownCalls(found.Activities, c, data.Projects), found.Lost
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

// fillChoices gathers what can be chosen in the filter.
func (s *Service) fillChoices(r *http.Request, c request.Caller, data *activityPage) error {
	if web.FromScript(r) {
		return nil // the list alone is wanted
	}
	for _, one := range souvenir.Outcomes() {
		data.Outcomes = append(data.Outcomes, outcomeChoice{string(one), outcomeInWords(one)})
	}
	overview, err := c.Store.Insights().Activities(r.Context(), souvenir.ActivityQuery{Limit: souvenir.MaxActivityLimit})
	if err != nil {
		return err
	}
	for _, a := range overview.Activities { // what the latest calls came from is what people look for
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
	users, err := s.store.Accounts().Users(r.Context())
	if err != nil {
		return err
	}
	data.Users = []userChoice{{everybody, "Everybody"}}
	for _, u := range users {
		if u.Name != "" && u.ID != c.User.ID && len(data.Users) < 200 {
			data.Users = append(data.Users, userChoice{u.ID, u.Name})
		}
	}
	return nil
}

// Address is the address from which a script asks for the list again.
func (f activityFilter) Address() string { return f.address("live", "1") }
