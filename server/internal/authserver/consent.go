package authserver

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/route"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// Consent: the page on which a person authorizes an application, and the handling of the answer.

// choice is the access that a person allows an application.
type choice struct {
	Scopes   []souvenir.Scope
	ReadOnly bool     // without the rights to change anything, even those in Scopes
	Limited  bool     // to Projects
	Projects []string // in the form of Project.Ref
}

// granted returns the scopes that a choice grants. A right to write includes the right to read.
func (c choice) granted() []souvenir.Scope {
	has := func(scope souvenir.Scope) bool { return slices.Contains(c.Scopes, scope) }
	return slices.DeleteFunc(souvenir.Scopes(), func(scope souvenir.Scope) bool {
		switch scope {
		case souvenir.ScopeMemoryRead:
			return !has(souvenir.ScopeMemoryRead) && !has(souvenir.ScopeMemoryWrite)
		case souvenir.ScopeFilesRead:
			return !has(souvenir.ScopeFilesRead) && !has(souvenir.ScopeFilesWrite)
		}
		return c.ReadOnly || !has(scope)
	})
}

// consentPage is the data of the template consent.
type consentPage struct {
	Action, Asked, Nonce string
	Problem              string // the form's error; empty: none
	Client               clientView
	Rights               []rightView // about memories and files
	Others               []rightView // to manage an account or the server: a separate choice, never preselected
	Writes               bool        // some of Rights change things
	ReadOnly, Limited    bool
	Projects             []projectView
	Unlisted             string // chosen projects that are not in the list, one per line
	More                 bool   // there are more projects than Projects
	Again                bool   // the application has been authorized before
	Paused               bool   // the user has paused what it was allowed before
	User                 string // name of the person
	Another              string // where to sign in as another user
}

// rightView is a scope as the page shows it.
type rightView struct {
	Scope          souvenir.Scope
	Detail         string // empty: the name suffices
	Chosen, Writes bool
}

// projectView is a project to which an application may be limited.
type projectView struct {
	Ref, Name, Owner string // Owner is empty for the user's own project
	Chosen           bool
}

// maxProjects keeps the page small. Others can be typed.
const maxProjects = 100

// rights are the scopes in the order of the page, with details where the name does not suffice.
func rights() []rightView {
	return []rightView{
		{Scope: souvenir.ScopeMemoryRead},
		{Scope: souvenir.ScopeMemoryWrite, Writes: true, Detail: "Includes reading."},
		{Scope: souvenir.ScopeFilesRead},
		{Scope: souvenir.ScopeFilesWrite, Writes: true, Detail: "Includes reading."},
		{Scope: souvenir.ScopeAccount, Writes: true,
			Detail: "It can give others access: create tokens for other programs, and add and remove members of your " +
				"projects. Most applications do not need this."},
		{Scope: souvenir.ScopeAdmin, Writes: true, Detail: "Very few applications need this."},
	}
}

// askConsent shows the consent page, with the requested access preselected.
func (s *Server) askConsent(r *http.Request, c request.Caller, a *asking) (any, error) {
	offered, chosen, before, err := s.preselect(r.Context(), c, a)
	if err != nil {
		return s.refuseAsking(r, a, err)
	}
	return s.consentPage(r, c, a, consentState{offered: offered, chosen: chosen, view: chosen, before: before})
}

// preselect returns which of the requested scopes a person can allow, and which are preselected: all requested
// ones, except the ones refused the last time and scopes that a person must tick by hand.
func (s *Server) preselect(ctx context.Context, c request.Caller, a *asking) (offered []souvenir.Scope, chosen choice,
	last *souvenir.Grant, err error) {
	offered = slices.DeleteFunc(slices.Clone(a.scopes), func(scope souvenir.Scope) bool {
		return scope == souvenir.ScopeAdmin && c.User.Role != souvenir.RoleAdmin
	})
	if len(offered) == 0 {
		return nil, choice{}, nil,
			oauthError(souvenir.OAuthInvalidScope, "scope", "scope is "+string(souvenir.ScopeAdmin)+
				", and the user is not an admin")
	}
	chosen.Scopes = slices.DeleteFunc(slices.Clone(offered), func(scope souvenir.Scope) bool {
		// Admin rights are never granted by oversight: the box must be ticked by hand, unless this person created the
		// client. The scope with which an application authorizes others is always ticked by hand, each time.
		return scope == souvenir.ScopeAccount || scope == souvenir.ScopeAdmin &&
			(a.client.Owner != c.User.ID || a.client.Made)
	})
	grants, err := c.Store.Accounts().Grants(ctx)
	if err != nil {
		return nil, choice{}, nil, err
	}
	at := slices.IndexFunc(grants, func(g souvenir.Grant) bool { return g.ClientID == a.clientID })
	if at < 0 {
		return offered, chosen, nil, nil
	}
	before := grants[at]
	if before.Projects != nil {
		chosen.Limited, chosen.Projects = true, before.Projects
	}
	chosen.Scopes = slices.DeleteFunc(chosen.Scopes,
		func(scope souvenir.Scope) bool { return slices.Contains(before.Refused, scope) })
	return offered, chosen, &before, nil
}

// consentState is the state of a consent page.
type consentState struct {
	offered []souvenir.Scope
	chosen  choice          // applies unless the form changes it
	view    choice          // as the page shows it
	before  *souvenir.Grant // what it was allowed last; nil: nothing
	problem string
}

// consentPage builds the page, with a nonce for one answer to exactly this question.
func (s *Server) consentPage(r *http.Request, c request.Caller, a *asking, state consentState) (any, error) {
	client, err := s.showClient(r.Context(), c, a)
	if err != nil {
		return s.refuseAsking(r, a, err)
	}
	projects, err := c.Store.Projects(r.Context())
	if err != nil {
		return s.refuseAsking(r, a, err)
	}
	nonce, err := s.questions.ask(r.Context(), web.BrowserSecret(r), a.questionFor(c, state.chosen), time.Now())
	if err != nil {
		return s.refuseAsking(r, a, err)
	}
	p := consentPage{
		Action: s.site.Path(route.AuthorizePath), Asked: a.query(), Problem: state.problem, Client: client,
		ReadOnly: state.view.ReadOnly,
		Limited:  state.view.Limited, More: len(projects) > maxProjects, Again: state.before != nil,
		Paused:  state.before != nil && !state.before.PausedAt.IsZero(),
		Another: s.signInFor(a, signInAgain), User: c.User.Name,
		Nonce: nonce,
	}
	for _, right := range rights() {
		if slices.Contains(state.offered, right.Scope) {
			right.Chosen = slices.Contains(state.view.Scopes, right.Scope)
			if right.Scope == souvenir.ScopeAccount || right.Scope == souvenir.ScopeAdmin {
				p.Others = append(p.Others, right)
				continue
			}
			p.Writes = p.Writes || right.Writes
			p.Rights = append(p.Rights, right)
		}
	}
	named := map[string]bool{}
	for _, ref := range state.view.Projects {
		named[ref] = true
	}
	for _, project := range projects[:min(len(projects), maxProjects)] {
		long, short := project.Owner+"/"+project.ID, project.Ref()
		view := projectView{Ref: short, Name: project.Name, Chosen: named[short] || named[long]}
		if short == long {
			view.Owner = project.OwnerName
		}
		delete(named, short)
		delete(named, long)
		p.Projects = append(p.Projects, view)
	}
	p.Unlisted = strings.Join(slices.DeleteFunc(slices.Clone(state.view.Projects),
		func(ref string) bool { return !named[ref] }), "\n")
	status := http.StatusOK
	if state.problem != "" {
		status = http.StatusBadRequest
	}
	return web.Page{Template: "consent", Title: "Allow this application?", Status: status, Data: p}, nil
}

// questionFor identifies the question: the request, the person asked, and the preselected access.
func (a *asking) questionFor(c request.Caller, chosen choice) [sha256.Size]byte {
	question, err := json.Marshal([]any{a.query(), c.User.ID, chosen})
	if err != nil {
		panic(err) // these are strings
	}
	return sha256.Sum256(question)
}

// decide handles a person's answer. A form that was sent before, was made for another browser, or is too old, is shown
// again.
func (s *Server) decide(w http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
	form, err := s.site.ReadForm(w, r)
	if errors.Is(err, web.ErrStaleForm) { // the answer is not kept: people answer on the page
		err = web.ErrStaleForm
	}
	if err != nil {
		return nil, err
	}
	a, err := s.readAsking(r.Context(), form.Get("asked"))
	if err != nil {
		return cannotConnect(a, err)
	}
	if err := s.checkAuthorizationRequest(r.Context(), a); err != nil {
		return s.refuseAsking(r, a, err)
	}
	c, err := s.signin.RequirePerson(r, route.Person)
	if errors.Is(err, web.ErrSignIn) {
		return web.Redirect(s.signInFor(a, "")), nil
	}
	if err != nil {
		return nil, err
	}
	request.Of(r.Context()).Caller = c
	offered, chosen, before, err := s.preselect(r.Context(), c, a)
	if err != nil {
		return s.refuseAsking(r, a, err)
	}
	state := consentState{offered: offered, chosen: chosen, view: chosen, before: before}
	// Granting account or admin rights takes a recent sign-in.
	if form.Get("decision") == "allow" &&
		(slices.Contains(form["scope"], string(souvenir.ScopeAccount)) ||
			slices.Contains(form["scope"], string(souvenir.ScopeAdmin))) {
		if asks, err := s.signin.Confirm(w, r, c, form, route.AuthorizePath+"?"+a.query()); asks != nil || err != nil {
			return asks, err
		}
	}
	taken, err := s.questions.take(r.Context(), form.Get("nonce"), web.BrowserSecret(r), a.questionFor(c, chosen),
		time.Now())
	if err != nil {
		return s.refuseAsking(r, a, err)
	}
	if !taken {
		state.problem = "This page was out of date, so no access was granted. Please check it, and decide again."
		return s.consentPage(r, c, a, state)
	}
	switch form.Get("decision") {
	case "deny":
		return s.refuseAsking(r, a, oauthError(souvenir.OAuthAccessDenied, "", "the user denied access"))
	case "allow":
	default:
		state.problem = "Choose one of the two buttons."
		return s.consentPage(r, c, a, state)
	}
	state.view, state.problem = readChoice(form, offered, chosen)
	if state.problem != "" {
		return s.consentPage(r, c, a, state)
	}
	return s.grantAccess(r, c, a, state)
}

// grantAccess stores the grant and redirects the browser to the application with a code.
func (s *Server) grantAccess(r *http.Request, c request.Caller, a *asking, state consentState) (any, error) {
	allowed := a.authorization()
	allowed.SignInID = c.SignInID
	allowed.Scopes, allowed.Refused = state.view.granted(), state.offered // less the allowed ones
	if state.view.Limited {
		allowed.Projects = state.view.Projects
	}
	code, err := c.Store.Accounts().Authorize(r.Context(), allowed)
	var known *souvenir.Error
	if errors.As(err, &known) && known.Argument == "projects" && known.Kind != souvenir.KindInternal {
		state.problem = fault.Text(known)
		return s.consentPage(r, c, a, state)
	}
	if err != nil {
		return s.refuseAsking(r, a, err)
	}
	return s.back(a, url.Values{"code": {code.Code}}), nil
}

// readChoice reads a person's choice. A browser always sends the field projects, since one of its buttons is always
// pressed: a form without it comes from a script that decides and leaves the rest unchanged.
func readChoice(form url.Values, offered []souvenir.Scope, chosen choice) (made choice, problem string) {
	made = chosen
	if form.Has("access") {
		made.ReadOnly = form.Get("access") == "read"
	}
	if form.Has("scope") || form.Has("projects") {
		made.Scopes = slices.DeleteFunc(slices.Clone(offered),
			func(scope souvenir.Scope) bool { return !slices.Contains(form["scope"], string(scope)) })
	}
	if form.Has("projects") || form.Has(
		"project") { // named projects are a limit, even where other fields were left out
		made.Limited, made.Projects = form.Get("projects") != "all", nil
		for _, ref := range append(slices.Clone(form["project"]), strings.Split(form.Get("others"), "\n")...) {
			if ref = strings.TrimSpace(ref); ref != "" && !slices.Contains(made.Projects, ref) {
				made.Projects = append(made.Projects, ref)
			}
		}
	}
	switch {
	case !oneOf(form["projects"], "all", "some") || !oneOf(form["access"], "write", "read"):
		return made, "The form was not valid, so no access was granted. Please check it, and decide again."
	case len(made.granted()) == 0:
		return made, "No access is selected. Select at least one permission, or deny."
	case made.Limited && len(made.Projects) == 0:
		return made, "No project is selected. Select at least one, or all."
	case made.Limited && len(made.Projects) > maxGrantProjects:
		return made, fmt.Sprintf("%d projects are selected; at most %d are allowed. Select fewer, or all.",
			len(made.Projects),
			maxGrantProjects)
	}
	return made, ""
}

// oneOf reports whether a field was left out, or has exactly one of the known values: an unknown value must not
// count as the widest one.
func oneOf(given []string, values ...string) bool {
	return len(given) == 0 || len(given) == 1 && slices.Contains(values, given[0])
}

// maxGrantProjects is the store's limit on the projects of one grant.
const maxGrantProjects = 100
