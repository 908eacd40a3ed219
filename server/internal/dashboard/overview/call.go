package overview

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// callRow is a recorded call as the page shows it, in a sentence: By Did On in Project.
type callRow struct {
	souvenir.Activity
	By      string // the calling program, or the person
	Client  string // the path of its calls
	Agent   string // its own name, if By is another
	With    string // the credential, in words
	Who     string // the user's name, among the calls of several users
	Did     string // or "could not do"
	Thing   string // its object in words, if On has none
	On      []web.Link
	Change  *change   // what it changed of a memory; nil: unknown
	Project *web.Link // nil: none
	Took    string
	Ended   string // outcome, in words
	Fine    bool   // it succeeded
	Method  string // the technical name of the action
	Times   int    // how many calls in a row were the same
}

// callRows converts calls for the page. Objects of other users get no links: an admin sees that they call, not
// what they store.
func callRows(all []souvenir.Activity, c request.Caller, about subjects) []callRow {
	var calls []callRow
	for _, a := range all {
		call := rowOf(a, c, about)
		if n := len(calls); n > 0 && calls[n-1].like(call) {
			calls[n-1].Times++
			continue
		}
		calls = append(calls, call)
	}
	return calls
}

// like reports whether a call reads the same as the one before, so that they share a row. Calls with an object, and
// failures, each have a row of their own.
func (r callRow) like(other callRow) bool {
	return r.Fine && other.Fine && len(r.On)+len(other.On) == 0 && r.By == other.By && r.Who == other.Who &&
		r.Agent == other.Agent && r.Method == other.Method && r.ProjectID == other.ProjectID &&
		r.StartedAt.Sub(other.StartedAt).Abs() < time.Hour
}

func rowOf(a souvenir.Activity, c request.Caller, about subjects) callRow {
	own, d := a.User == c.User.ID, deedOf(a)
	call := callRow{Activity: a, Did: d.did, Thing: d.thing, With: calledWith(a.Credential, own),
		Who: cmp.Or(a.UserName, "a deleted user"), Took: took(a.DurationMS), Ended: outcomeLabel(a.Outcome),
		Fine: a.Outcome == souvenir.OutcomeOK, Method: strings.TrimSpace(a.Tool + " " + a.Action), Times: 1}
	call.By, call.Agent = callerOf(a, own)
	call.Client = clientPath(a, own, c)
	if !call.Fine {
		call.Did = "could not " + d.do
	}
	if call.Change = about.changes[a.ID]; call.Change != nil {
		call.Did += call.Change.of()
	}
	if a.MemoryID != "" {
		call.On = append(call.On, about.memory(a.MemoryID, own))
	}
	if a.FileID != "" {
		call.On = append(call.On, about.file(a.FileID, own))
	}
	if a.ProjectID != "" {
		project := about.project(a, c.User.ID)
		call.Project = &project
	}
	return call
}

// callerOf returns the name of the program that made a call, or of the person in a browser, and the program's own name
// if it differs. The user's own credential has precedence: people know the names of their tokens, and of applications
// that they have authorized.
func callerOf(a souvenir.Activity, own bool) (name, agent string) {
	program := web.ClientName(a.Client)
	switch {
	case a.Credential.Kind == souvenir.CredentialSignIn && own, a.Credential.Kind == "" && web.IsBrowser(a.Client) && own:
		return "You", program
	case a.Credential.Name != "" && own:
		if name := web.ShortName(a.Credential.Name); !strings.EqualFold(name, program) {
			return name, program
		}
	}
	return cmp.Or(program, "An unknown program"), ""
}

// clientPath is the path of all calls with the credential of a call, or else of its program.
func clientPath(a souvenir.Activity, own bool, c request.Caller) string {
	f := activityFilter{Client: a.Client}
	if a.Credential.Kind != "" && a.Credential.ID != "" && a.Credential.Kind != souvenir.CredentialSignIn {
		f = activityFilter{Credential: string(a.Credential.Kind), ID: a.Credential.ID}
	}
	if !own {
		f.User = a.User
	}
	if f.Some() && (own || c.User.Role == souvenir.RoleAdmin) {
		return f.address("", "")
	}
	return ""
}

// calledWith describes a credential. It omits the name of the user's own credential, which the sentence already has.
func calledWith(c souvenir.Credential, own bool) string {
	name := " " + cmp.Or(web.ShortName(c.Name), "(deleted)")
	if own && c.Name != "" {
		name = ""
	}
	switch c.Kind {
	case souvenir.CredentialToken:
		return "token" + name
	case souvenir.CredentialClient:
		return "application" + name
	}
	return ""
}

// outcomeLabel describes an outcome.
func outcomeLabel(o souvenir.Outcome) string {
	i := slices.IndexFunc(endings, func(one ending) bool { return one.outcome == o })
	if i < 0 {
		return strings.ReplaceAll(string(o), "_", " ")
	}
	return endings[i].words
}

type ending struct {
	outcome souvenir.Outcome
	words   string
}

// endings are the outcomes whose names need explanation.
var endings = []ending{
	{souvenir.OutcomeOK, "OK"}, {"invalid", "invalid"}, {"forbidden", "not allowed"},
	{"unauthenticated", "not signed in"}, {"full", "out of space"},
	{"foreign", "not a store"}, {"master_key", "another master key"}, {"user_keys", "other user keys"},
	{"newer", "from a newer version"}, {"corrupt", "damaged"}, {"internal", "server error"},
}

// took formats a duration.
func took(milliseconds float64) string {
	switch {
	case milliseconds < 1:
		return "under 1 ms"
	case milliseconds < 10:
		return strconv.FormatFloat(milliseconds, 'f', 1, 64) + " ms"
	case milliseconds < 1000:
		return strconv.Itoa(int(milliseconds+0.5)) + " ms"
	}
	return strconv.FormatFloat((time.Duration(milliseconds*1e6)).Seconds(), 'f', 1, 64) + " s"
}
