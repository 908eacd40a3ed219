package projects

import (
	"net/http"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// generalRulesPath is the page of the rules for all of a user's work.
const generalRulesPath = "/projects/rules"

// rulesPage is the data of the page of a project's rules, or of the general ones.
type rulesPage struct {
	Head     *projectHead // nil: the general ones
	Path     string       // under which they are edited
	CanWrite bool
	Rules    []ruleView
	Short    []shortRule // the last ones changed, of ShortTotal
	Warnings []string

	ShortTotal int
}

// shortRule is a memory with the classification do or dont, which agents get besides the rules.
type shortRule struct{ ID, Line, Kind string }

// ruleView is one of the two rules.
type ruleView struct {
	projectText
	Memory *souvenir.Memory // nil: not set
	Body   textview.Cut
}

func (s *Service) showRules(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	head, err := s.projectAt(r, c, "Rules")
	if err != nil {
		return nil, err
	}
	data := rulesPage{Head: &head, Path: head.Path, CanWrite: head.CanWrite()}
	return s.rulesPage(r, c, "Rules of "+head.Name, data, head.Reference())
}

func (s *Service) showGeneralRules(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	return s.rulesPage(r, c, "Rules for all your work", rulesPage{Path: generalRulesPath, CanWrite: true},
		souvenir.ProjectRef{})
}

func (s *Service) rulesPage(r *http.Request, c request.Caller, title string, data rulesPage,
	ref souvenir.ProjectRef) (any, error) {
	rules, err := c.Store.Rules(r.Context(), ref)
	if err != nil {
		return nil, err
	}
	for _, rule := range []struct {
		key    string
		memory *souvenir.Memory
	}{{"do", rules.Do}, {"dont", rules.Dont}} {
		view := ruleView{projectText: projectTexts[rule.key], Memory: rule.memory}
		if rule.memory != nil {
			view.Body = textview.CutTo(rule.memory.Content, 16<<10)
		}
		data.Rules = append(data.Rules, view)
	}
	short := souvenir.Filter{"classification": []string{"do", "dont"}, "rule_type": nil,
		"state": souvenir.Condition{Not: souvenir.StateArchived}}
	if data.Head == nil {
		short["project_id"] = nil
	}
	found, err := c.Store.Search(r.Context(), souvenir.Query{ProjectID: ref.ID, Filter: short, Limit: web.PerPage})
	if err != nil {
		return nil, err
	}
	data.ShortTotal = found.Total
	for _, hit := range found.Hits {
		kind := projectTexts[string(hit.Classification)].Title
		data.Short = append(data.Short, shortRule{hit.ID, openingLine(hit.Content), kind})
	}
	for _, warning := range rules.Warnings {
		data.Warnings = append(data.Warnings, web.Sentence(warning))
	}
	return web.Page{Template: "projectrules", Title: title, Data: data}, nil
}

// deleteRule deletes a rule. Undoing restores it with its history.
func (s *Service) deleteRule(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	text, ok := projectTexts[values.Get("text")]
	if !ok || text.rule == "" {
		return nil, failure.Invalid("text", "text is "+failure.Quote(values.Get("text"))+"; expected do or dont")
	}
	var ref souvenir.ProjectRef
	back := generalRulesPath
	if r.PathValue("id") != "" {
		head, err := s.projectAt(r, c, "Rules")
		if err != nil {
			return nil, err
		}
		ref, back = head.Reference(), head.Path+"/rules"
	}
	rule, err := c.Store.GetRule(r.Context(), ref, text.rule)
	if err != nil {
		return nil, err
	}
	if err := c.Store.DeleteMemory(r.Context(), rule.ID, nil); err != nil {
		return nil, err
	}
	return s.site.DeletedWithUndo(r, c, back, back, "“"+text.Title+"” is deleted.", rule.ID), nil
}
