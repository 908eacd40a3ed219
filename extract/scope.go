package extract

import (
	"context"

	"github.com/souvenir-ai/souvenir"
)

// scope is the place that proposals may touch: a collection in a project, or outside of any, as a view sees it.
type scope struct {
	store               *souvenir.Store
	collection          string
	ref, project, owner string // of the project; empty outside of any
	role                souvenir.MemberRole
}

// scope is the learner's place.
func (l *Learner) scope(ctx context.Context) (scope, error) {
	s := scope{store: l.store, collection: l.options.Collection}
	if l.options.ProjectID == "" && l.options.ProjectName == "" {
		return s, nil
	}
	p, err := l.store.GetProject(ctx, souvenir.ProjectRef{ID: l.options.ProjectID, Name: l.options.ProjectName})
	s.ref, s.project, s.owner, s.role = p.Ref(), p.ID, p.Owner, p.Role
	return s, err
}

// scopeOf is the place of a memory.
func scopeOf(store *souvenir.Store, m souvenir.Memory) scope {
	s := scope{store: store, collection: m.Collection}
	if m.ProjectID != "" {
		s.ref, s.project, s.owner = m.Owner+"/"+m.ProjectID, m.ProjectID, m.Owner
	}
	return s
}

// holds reports whether a memory is in the place.
func (s scope) holds(m souvenir.Memory) bool {
	return m.Collection == s.collection && m.ProjectID == s.project && (s.project == "" || m.Owner == s.owner)
}

// filter leaves out memories in projects, if the place is outside of any.
func (s scope) filter() souvenir.Filter {
	if s.project != "" {
		return nil
	}
	return souvenir.Filter{"project_id": nil}
}

// query returns a search of the place.
func (s scope) query(text string) souvenir.Query {
	return souvenir.Query{Text: text, Collections: []string{s.collection}, ProjectID: s.ref, Filter: s.filter(),
		Limit: similarHits, Rerank: -1}
}
