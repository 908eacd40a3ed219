// Package projects serves the pages of projects: main memories, rules and to-dos, the context that agents get,
// members, and invitations.
package projects

import (
	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/route"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// Service serves the pages of projects. Create one with [New].
type Service struct {
	site  *web.Site
	store *souvenir.Store
}

// New creates a Service for a store, which must be the operator's.
func New(site *web.Site, store *souvenir.Store) *Service { return &Service{site: site, store: store} }

// Routes are the routes of projects, their members, rules and to-do documents.
func (s *Service) Routes() []route.Route {
	const project = "/projects/{owner}/{id}"
	return []route.Route{
		route.Page("/projects", route.Person, s.showProjects),
		route.Post("/projects", route.Person, s.addProject),
		route.Page(generalRulesPath, route.Person, s.showGeneralRules),
		route.Page(generalRulesPath+"/edit", route.Person, s.showText),
		route.Post(generalRulesPath+"/edit", route.Person, s.saveText),
		route.Post(generalRulesPath+"/delete", route.Person, s.deleteRule),

		route.Page(project, route.Person, s.showProject),
		route.Page(project+"/memories", route.Person, s.showMemoriesOf),
		route.Page(project+"/files", route.Person, s.showFilesOf),
		route.Page(project+"/conversations", route.Person, s.showConversationsOf),
		route.Page(project+"/rules", route.Person, s.showRules),
		route.Post(project+"/rules/delete", route.Person, s.deleteRule),
		route.Page(project+"/todo", route.Person, s.showTodo),
		route.Post(project+"/todo/tick", route.Person, s.tickTodo),
		route.Post(project+"/todo/add", route.Person, s.addTask),
		route.Post(project+"/todo/move", route.Person, s.moveTask),
		route.Page(project+"/members", route.Person, s.showMembers),
		route.Post(project+"/members", route.Person, s.changeMembers),
		route.Page(project+"/modules", route.Person, s.showModules),
		route.Page(project+"/context", route.Person, s.showContext),
		route.Page("/context", route.Person, s.showAnyContext),
		route.Page(project+"/settings", route.Person, s.showProjectSettings),
		route.Post(project+"/settings", route.Person, s.renameProject),
		route.Post(project+"/retention", route.Person, s.changeRetention),
		route.Post(project+"/delete", route.Person, s.deleteProject),
		route.Page(project+"/edit", route.Person, s.showText),
		route.Post(project+"/edit", route.Person, s.saveText),

		route.Page(collectionsPath, route.Person, s.showCollections),
		route.Post(collectionsPath, route.Person, s.changeCollection),

		route.Page(web.SharingPath, route.Person, s.showProjectInvitations),
		route.Post(web.SharingPath, route.Person, s.answerProjectInvitation),
	}
}
