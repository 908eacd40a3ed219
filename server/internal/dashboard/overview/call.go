package overview

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// callRow is a recorded call as the page shows it.
type callRow struct {
	souvenir.Activity
	What   string // the tool with its action, or the action in words
	By     string // the calling program
	With   string // the credential, in words
	Who    string // the user's name
	On     []web.Link
	Took   string
	Ended  string // outcome, in words
	Fine   bool   // it succeeded
	Method string // the exact action
}

// callRows converts calls for the page. Objects of other users get no links: an admin sees that they call, not
// what they store.
func callRows(all []souvenir.Activity, c request.Caller, projects []souvenir.Project) []callRow {
	var calls []callRow
	for _, a := range all {
		own := a.User == c.User.ID
		call := callRow{Activity: a, What: whatWasDone(a),
			By: cmp.Or(web.ClientName(a.Client), a.Credential.Name, "an unknown program"), With: calledWith(a.Credential),
			Who: cmp.Or(a.UserName, "a deleted user"), Took: took(a.DurationMS), Ended: outcomeInWords(a.Outcome),
			Fine: a.Outcome == souvenir.OutcomeOK, Method: exactly(a)}
		if a.ProjectID != "" {
			call.On = append(call.On, projectThing(a, projects, c.User.ID))
		}
		if a.MemoryID != "" {
			call.On = append(call.On, ownThing("memory", "/memories/", a.MemoryID, own))
		}
		if a.FileID != "" {
			call.On = append(call.On, ownThing("file", "/files/", a.FileID, own))
		}
		calls = append(calls, call)
	}
	return calls
}

// projectThing returns the project of a call; several users may use the same id.
func projectThing(a souvenir.Activity, projects []souvenir.Project, user string) web.Link {
	seen := -1
	for i, p := range projects {
		if p.ID == a.ProjectID && (seen < 0 || p.Owner == a.User) {
			seen = i
		}
	}
	if seen < 0 || a.User != user {
		return web.Link{Noun: "project", Name: a.ProjectID, Path: ""}
	}
	p := projects[seen]
	return web.Link{Noun: "project", Name: cmp.Or(p.Name, p.ID), Path: web.ProjectPath(p)}
}

func ownThing(noun, folder, id string, own bool) web.Link {
	short := "…" + id[max(0, len(id)-8):] // ids of the same minute begin alike
	if !own {
		return web.Link{Noun: noun, Name: short, Path: ""}
	}
	return web.Link{Noun: noun, Name: short, Path: folder + url.PathEscape(id)}
}

// whatWasDone returns a tool with its action, or describes the action of an endpoint or a form.
func whatWasDone(a souvenir.Activity) string {
	if words, ok := deeds[a.Tool]; ok {
		return words
	}
	return strings.TrimSpace(a.Tool + " " + a.Action)
}

// exactly returns the technical name of the action; empty: the same.
func exactly(a souvenir.Activity) string {
	if _, ok := deeds[a.Tool]; ok {
		return a.Tool
	}
	return ""
}

// deeds describes frequent calls that are not tool calls.
var deeds = map[string]string{
	"GET /api/files": "listed files", "POST /api/files/upload": "uploaded a file", "GET /api/files/{id}": "opened a file",
	"PUT /api/files/{id}":    "changed a file",
	"DELETE /api/files/{id}": "deleted a file", "POST /mcp": "sent an MCP message", "GET /tools": "listed the tools",
	"POST /tools/call": "called a tool",
	"POST /connect":    "created a token for a client", "POST /profile/tokens": "created a token",
	"POST /login":   "signed in",
	"POST /logout":  "signed out",
	"POST /profile": "changed the profile", "POST /profile/password": "changed the password",
	"POST /undo": "undid a change", "POST /files": "uploaded files",
	"POST /files/{id}/edit": "changed a file", "POST /files/{id}/link": "linked a file",
	"POST /files/{id}/delete": "deleted a file",
}

// calledWith describes a credential.
func calledWith(c souvenir.Credential) string {
	switch c.Kind {
	case souvenir.CredentialToken:
		return "token " + cmp.Or(c.Name, "(deleted)")
	case souvenir.CredentialClient:
		return "application " + cmp.Or(web.ShortName(c.Name), "(deleted)")
	case souvenir.CredentialSignIn:
		return "signed in"
	}
	return ""
}

// outcomeInWords describes an outcome.
func outcomeInWords(o souvenir.Outcome) string {
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
	{"foreign", "not a store"}, {"newer", "from a newer version"}, {"corrupt", "damaged"}, {"internal", "server error"},
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
