package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/shorten"
)

// searchResult is the result of memory search. Models read it: fields without information are left out.
type searchResult struct {
	Results  []searchGroup       `json:"results"`
	Total    int                 `json:"total"` // over all pages
	Offset   int                 `json:"offset"`
	Limit    int                 `json:"limit"`
	Sort     souvenir.SortOrder  `json:"sort_order"` // the order used
	HasMore  bool                `json:"has_more"`
	Warnings []string            `json:"warnings"`
	Way      souvenir.SearchPlan `json:"way,omitempty"` // the way of the search, if explain was given

	Documents []foundDocument `json:"documents,omitempty"` // files found by their text, on the first page
}

// foundDocument is a file whose text is about the query.
type foundDocument struct {
	Type      string  `json:"type"` // file
	FileID    string  `json:"file_id"`
	Filename  string  `json:"filename"`
	MIMEType  string  `json:"mime_type"`
	Place     string  `json:"place,omitempty"` // such as "page 3"
	Text      string  `json:"text"`            // the passage
	MemoryID  string  `json:"memory_id,omitempty"`
	ProjectID string  `json:"project_id,omitempty"`
	Score     float64 `json:"score"` // rounded to three digits
}

const (
	documentsShown = 3    // at most, with memories
	documentLength = 1200 // characters of a passage
)

// documentViews formats the documents of a search.
func documentViews(hits []souvenir.DocumentHit) (views []foundDocument) {
	for _, h := range hits {
		views = append(views, foundDocument{Type: "file", FileID: h.FileID, Filename: h.Filename, MIMEType: h.MIMEType,
			Place: h.Place, Text: shorten.Characters(h.Text, documentLength), MemoryID: h.MemoryID, ProjectID: h.ProjectID,
			Score: threeDigits(h.Score)})
	}
	return views
}

// contextWithDocuments is a context with the files that are about its query.
type contextWithDocuments struct {
	souvenir.Context
	documents []foundDocument
}

// MarshalJSON encodes the context's object with the documents in it.
func (c contextWithDocuments) MarshalJSON() ([]byte, error) {
	encoded, err := json.Marshal(c.Context)
	if err != nil || len(c.documents) == 0 {
		return encoded, err
	}
	documents, err := json.Marshal(c.documents)
	if err != nil {
		return nil, err
	}
	return slices.Concat(encoded[:len(encoded)-1], []byte(`,"documents":`), documents, []byte("}")), nil
}

// withDocuments adds the files that are about a query to its context, within its budget. The context is useful without
// them, so a failed search adds none and is not an error.
func (s *Set) withDocuments(ctx context.Context, store *souvenir.Store, found souvenir.Context,
	a *memoryArguments) (any, error) {
	if strings.TrimSpace(a.Query) == "" || !s.allows(souvenir.ScopeFilesRead) {
		return found, nil
	}
	results, err := store.Search(ctx, souvenir.Query{Text: a.Query, ProjectID: a.ProjectID, ProjectName: a.ProjectName,
		Limit: 1, WithoutContent: true, Documents: documentsShown, Rerank: -1})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return found, nil //nolint:nilerr // see above
	}
	c := contextWithDocuments{Context: found}
	for _, view := range documentViews(results.Documents) {
		encoded, err := json.Marshal(view)
		if err != nil {
			return nil, err
		}
		tokens := (len(encoded) + len(`,"documents":[]`) + 3) / 4
		if a.TokenBudget > 0 && c.Tokens+tokens > a.TokenBudget {
			continue
		}
		c.Tokens += tokens
		c.documents = append(c.documents, view)
	}
	return c, nil
}

// searchGroup is the part of a page in one collection. The owner distinguishes collections with the same name, and
// is shown if it is not the caller.
type searchGroup struct {
	Collection string        `json:"collection_name"`
	Owner      string        `json:"owner,omitempty"`
	Memories   []foundMemory `json:"memories"`
}

type foundMemory struct {
	ID        string                 `json:"id"`
	Content   string                 `json:"content"`
	Metadata  map[string]any         `json:"metadata"` // without the project if the search is in one
	Score     float64                `json:"score"`    // rounded to three digits
	Rank      int                    `json:"rank"`     // place in the whole result, from 1
	Revision  int                    `json:"revision,omitempty"`
	CreatedAt time.Time              `json:"created_at"` // in seconds, like the next
	UpdatedAt time.Time              `json:"updated_at"`
	FileCount int                    `json:"file_count,omitempty"`
	SharedBy  string                 `json:"shared_by,omitempty"` // the project's owner, if another user
	Files     []souvenir.FileSummary `json:"files"`

	// how likely it is about the query, 0 to 1, rounded down to two digits; if min_score or explain was given
	Confidence  float64               `json:"confidence,omitempty"`
	Explanation *souvenir.Explanation `json:"explanation,omitempty"` // if it was asked for
}

// hitView formats a hit for a search result. It omits the first revision.
func hitView(h souvenir.Hit, inProject bool) foundMemory {
	m := foundMemory{
		ID: h.ID, Content: h.Content, Metadata: h.ShownMetadata(), Score: threeDigits(h.Score), Rank: h.Rank,
		CreatedAt: h.CreatedAt.Truncate(time.Second), UpdatedAt: h.UpdatedAt.Truncate(time.Second), FileCount: h.FileCount,
		Files: jsonobject.List(h.Files), SharedBy: h.SharedBy, Explanation: shortExplanation(h.Explanation),
	}
	if h.Revision > 1 {
		m.Revision = h.Revision
	}
	if inProject {
		delete(m.Metadata, "project_id")
		delete(m.Metadata, "project_name")
	}
	return m
}

// shortExplanation rounds an explanation to three digits; models read it.
func shortExplanation(e *souvenir.Explanation) *souvenir.Explanation {
	if e == nil {
		return nil
	}
	short := func(x float64) float64 { return math.Round(x*1000) / 1000 }
	evidence := func(x souvenir.Evidence) souvenir.Evidence {
		return souvenir.Evidence{Value: short(x.Value), Gain: short(x.Gain)}
	}
	s := souvenir.Explanation{Words: evidence(e.Words), Meaning: evidence(e.Meaning), Late: evidence(e.Late),
		Exact: short(e.Exact), Asking: short(e.Asking), Speaker: short(e.Speaker)}
	if e.Reranked != nil {
		s.Reranked = &souvenir.Reranking{Score: short(e.Reranked.Score), From: e.Reranked.From}
	}
	for _, l := range e.Neighbours {
		l.Value, l.Gain = short(l.Value), short(l.Gain)
		s.Neighbours = append(s.Neighbours, l)
	}
	return &s
}

func (s *Set) searchMemories(ctx context.Context, a *memoryArguments) (any, error) {
	filter, project, err := a.filter()
	if err != nil {
		return nil, err
	}
	q := souvenir.Query{
		Text: a.Query, Vector: a.QueryEmbedding, ProjectID: project.ID, ProjectName: project.Name,
		Tags: a.Tags, Filter: filter,
		Sort: a.Sort, Limit: a.Limit, Offset: a.Offset, IncludeFiles: a.IncludeFiles, MinScore: a.MinScore,
		Explain: a.Explain,
	}
	if a.Collection != "" {
		q.Collections = []string{a.Collection}
	}
	if !a.OnlyMemories && a.Offset == 0 && s.allows(souvenir.ScopeFilesRead) {
		q.Documents = documentsShown
	}
	found, err := s.store.Search(ctx, q)
	if err != nil {
		return nil, err
	}
	result := searchResult{
		Results: []searchGroup{}, Total: found.Total, Offset: found.Offset, Limit: found.Limit, Sort: found.Sort,
		HasMore: found.HasMore(), Warnings: []string{}, Way: found.Plan, Documents: documentViews(found.Documents),
	}
	result.Warnings = append(result.Warnings, found.Warnings...)
	for _, g := range found.Groups() {
		group := searchGroup{Collection: g.Collection}
		if g.Owner != cmp.Or(s.store.Access().User, souvenir.LocalUser) {
			group.Owner = g.Owner
		}
		for _, h := range g.Hits {
			view := hitView(h, project != souvenir.ProjectRef{})
			if a.MinScore > 0 || a.Explain {
				view.Confidence = math.Floor(h.Confidence*100) / 100
			}
			group.Memories = append(group.Memories, view)
		}
		result.Results = append(result.Results, group)
	}
	return result, nil
}

// filter returns the filter of a search, and its project. Arguments that are known keys are part of it and win over its
// own values. A project in it is looked up as elsewhere, the caller's own first.
func (a *memoryArguments) filter() (souvenir.Filter, souvenir.ProjectRef, error) {
	project := a.ref()
	filter := souvenir.Filter(maps.Clone(a.Filter))
	if filter == nil {
		filter = souvenir.Filter{}
	}
	named := souvenir.ProjectRef{}
	for key, into := range map[string]*string{"project_id": &named.ID, "project_name": &named.Name} {
		if name, ok := filter[key].(string); ok {
			*into = strings.TrimSpace(name)
			delete(filter, key)
		}
	}
	for i := range knownParameters {
		p := &knownParameters[i]
		key := p.name
		given, present := filter[key]
		if !present {
			continue
		}
		if list, ok := given.([]any); isAbsent(given) && given != nil || ok && len(list) == 0 { // null means "not set" here
			delete(filter, key)
			continue
		}
		if _, isText := given.(string); isText && p.allowed != nil {
			decoded, err := p.decode("filter."+key, given)
			if err != nil {
				return nil, project, err
			}
			filter[key] = decoded
		}
	}
	for key, value := range map[string]string{"event_type": a.EventType, "state": a.State,
		"importance": string(a.Importance), "classification": string(a.Classification)} {
		if value != "" {
			filter[key] = value
		}
	}
	return filter, cmp.Or(project, named), nil
}

// retrievedMemory is the result of memory retrieve.
type retrievedMemory struct {
	Result string                 `json:"result"` // the memory as a readable text
	Memory souvenir.Memory        `json:"memory"`
	Files  []souvenir.FileSummary `json:"files"`
}

func (s *Set) retrieveMemory(ctx context.Context, a *memoryArguments) (any, error) {
	m, err := s.memoryIn(ctx, a)
	if err != nil {
		return nil, err
	}
	files := []souvenir.FileSummary{}
	for f, err := range s.store.Files(ctx, souvenir.FileList{MemoryID: m.ID}) {
		if err != nil {
			return nil, err
		}
		files = append(files, f.Summary())
	}
	return retrievedMemory{readable(m, files), m, files}, nil
}

// readable formats a memory as a text.
func readable(m souvenir.Memory, files []souvenir.FileSummary) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Memory %s in collection %s", m.ID, m.Collection)
	if m.ProjectID != "" {
		fmt.Fprintf(&b, ", project %s", cmp.Or(m.ProjectName, m.ProjectID))
		if m.SharedBy != "" {
			fmt.Fprintf(&b, ", shared by %s", m.SharedBy)
		}
	}
	fmt.Fprintf(&b, ", revision %d:\n\n%s", m.Revision, m.Content)
	if len(files) > 0 {
		b.WriteString("\n\nFiles:")
		for _, f := range files {
			fmt.Fprintf(&b, "\n- %s (%s, %d bytes, id %s)", f.Filename, f.MIMEType, f.Size, f.ID)
		}
	}
	return b.String()
}
