package tools

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir"
)

var memoryTool = definition{
	name:  "memory",
	title: "Memory",
	description: `Long-term memory: texts with metadata, found again by meaning and by word. Actions:
- get_context (query, project): call it first in every interaction. Returns identity; project_rules and general_do_dont, which you follow; conversation_memory_id, which you update as the case goes on (if null, store one with event_type conversation); related_memories.
- store (content): remember something. Returns id, and similar memories that say nearly the same: if one does, update it and delete the new one.
- search (query, or only filters): returns results by collection; rank is the order over all. Page with offset while has_more.
- retrieve (id): the whole memory with its files.
- update (id; content, metadata or both): metadata merges, null removes a key; former revisions are kept.
- delete (id): for good; its files stay.
Name the project whenever you work on one.`,
	annotations: Annotations{Destructive: true},
	parameters: slices.Concat([]parameter{
		{name: "query", kind: text, description: "What to look for, in plain language."},
		{name: "content", kind: text, description: "The text to remember, up to 1 MiB; Markdown is fine."},
		{name: "id", kind: word, description: "Memory id."},
		{name: "collection_name", kind: word, description: `Left out: store uses "default", everything else looks in all.`},
	}, knownKeys, []parameter{
		{name: "metadata", kind: object, description: "Anything else worth keeping; the arguments above may stand here, too."},
		{name: "expected_revision", kind: integer, description: "Fail if the memory was changed since you read this revision."},
		{name: "filter", kind: object, description: `Field or metadata key to a value, a list of values, or {"in","ne","gte","lte","all"}: {"event_type": "decision", "created_at": {"gte": "2026-01-01"}}.`},
		{name: "limit", kind: integer, least: 1, most: souvenir.MaxLimit, preset: souvenir.DefaultLimit},
		{name: "offset", kind: integer, description: "Results to skip."},
		{name: "sort_order", kind: word, allowed: []string{"relevance", "updated_at_asc", "updated_at_desc", "created_at_asc", "created_at_desc"}},
		{name: "include_files", kind: boolean, description: "List each result's files, not only file_count."},
		{name: "detected_identity", kind: object, description: "get_context: what you know of who you are and whom you talk to."},
		{name: "token_budget", kind: integer, description: "get_context: most tokens of the answer, 500 or more."},
		{name: "query_embedding", kind: numbers, description: "Vector instead of query."},
		{name: "embedding", kind: numbers, description: "Vector of content, in a collection with own_vectors."},
	}),
	actions: []action{
		{
			name: "get_context", scope: souvenir.ScopeMemoryRead,
			optional: []string{"query", "project_name", "project_id", "detected_identity", "token_budget"},
			call:     (*Set).getContext,
		},
		{
			name: "store", scope: souvenir.ScopeMemoryWrite,
			required: []string{"content"},
			optional: []string{"collection_name", "metadata", "event_type", "state", "project_name", "project_id", "importance", "classification", "rule_type",
				"tags", "related_memory_ids", "embedding"},
			call: (*Set).storeMemory,
		},
		{
			name: "search", scope: souvenir.ScopeMemoryRead,
			optional: []string{"query", "query_embedding", "collection_name", "project_name", "project_id", "event_type", "state", "importance", "classification",
				"tags", "filter", "limit", "offset", "sort_order", "include_files"},
			call: (*Set).searchMemories,
		},
		{
			name: "retrieve", scope: souvenir.ScopeMemoryRead,
			required: []string{"id"}, optional: []string{"collection_name"},
			call: (*Set).retrieveMemory,
		},
		{
			name: "update", scope: souvenir.ScopeMemoryWrite,
			required: []string{"id"},
			optional: []string{"collection_name", "content", "metadata", "event_type", "state", "project_name", "project_id", "importance", "classification", "rule_type",
				"tags", "related_memory_ids", "expected_revision", "embedding"},
			call: (*Set).updateMemory,
		},
		{
			name: "delete", scope: souvenir.ScopeMemoryWrite,
			required: []string{"id"}, optional: []string{"collection_name"},
			call: (*Set).deleteMemory,
		},
	},
}

// knownKeys are the keys of metadata that are arguments as well.
var knownKeys = []parameter{
	{name: "project_name", kind: word, description: "Project to work in; store makes a new one."},
	{name: "project_id", kind: word, description: "Alternative to project_name."},
	{name: "event_type", kind: word, description: "Such as project-main, conversation, decision; IDENTITY for who you are."},
	{name: "state", kind: word, description: "Such as active, archived, completed."},
	{name: "importance", kind: word, allowed: []string{"low", "medium", "high", "critical"}},
	{name: "classification", kind: word, allowed: []string{"do", "dont", "todo", "notes"}},
	{name: "rule_type", kind: word, allowed: []string{"do", "dont", "todo"}, description: "With event_type project-rule only."},
	{name: "tags", kind: words, description: "For search: any of them."},
	{name: "related_memory_ids", kind: words, description: "Memories to link to."},
}

// takeKnown moves the known keys from the argument metadata to the arguments, as far as these are not given themselves: so they
// are read in the same way wherever they stand. It returns the rest of the metadata. A null stays there: in an update it
// removes the key.
func (a *arguments) takeKnown() (rest map[string]any, err error) {
	rest = maps.Clone(a.object("metadata"))
	projectGiven := a.project() != souvenir.ProjectRef{} // the two names of a project are one thing
	for i := range knownKeys {
		key := knownKeys[i].name
		given, isThere := rest[key]
		ofProject := key == "project_name" || key == "project_id"
		if a.has(key) || ofProject && projectGiven {
			delete(rest, key)
			continue
		}
		if !isThere || given == nil {
			continue
		}
		decoded, err := knownKeys[i].decode("metadata."+key, given)
		if err != nil {
			return nil, err
		}
		list, isList := given.([]any)
		if isList && len(list) == 0 {
			continue // removes them all
		}
		delete(rest, key)
		if decoded != nil {
			a.values[key] = decoded
		}
	}
	return rest, nil
}

func (s *Set) getContext(ctx context.Context, a *arguments) (any, error) {
	store := s.store
	if !s.allows(souvenir.ScopeMemoryWrite) { // a caller who may not store is not told to
		access := store.Access()
		access.ReadOnly = true
		store = store.As(access)
	}
	project := a.project()
	q := souvenir.ContextQuery{
		Query: a.text("query"), ProjectID: project.ID, ProjectName: project.Name,
		DetectedIdentity: a.object("detected_identity"), TokenBudget: a.integer("token_budget"),
	}
	extra := 0 // tokens of the warnings about the arguments, which count as well
	if len(a.warnings) > 0 {
		encoded, err := json.Marshal(a.warnings)
		if err != nil {
			return nil, err
		}
		extra = (len(encoded) + len(`"warnings":,`) + 3) / 4
		if q.TokenBudget > souvenir.MinTokenBudget {
			q.TokenBudget = max(souvenir.MinTokenBudget, q.TokenBudget-extra)
		}
	}
	found, err := store.GetContext(ctx, q)
	if err != nil {
		return nil, err
	}
	found.Tokens += extra
	return found, nil
}

// mostSimilar is how many near duplicates storing tells of, mostPreview how many characters of each.
const (
	mostSimilar = 3
	mostPreview = 200
)

// similarMemory is a memory that says nearly the same as one that was stored.
type similarMemory struct {
	ID         string  `json:"id"`
	Score      float64 `json:"score"`
	Collection string  `json:"collection_name"`
	Preview    string  `json:"preview"`
	SharedBy   string  `json:"shared_by,omitempty"` // who owns the project, if somebody else does
}

// storedMemory is the result of memory store. The content is not repeated: the caller has just sent it.
type storedMemory struct {
	ID          string          `json:"id"`
	Collection  string          `json:"collection_name"`
	ProjectID   string          `json:"project_id,omitempty"`
	ProjectName string          `json:"project_name,omitempty"`
	Revision    int             `json:"revision"`
	CreatedAt   time.Time       `json:"created_at"`
	UpdatedAt   time.Time       `json:"updated_at"`
	Indexed     bool            `json:"indexed"`
	Similar     []similarMemory `json:"similar"`
	SharedBy    string          `json:"shared_by,omitempty"` // who owns the project, if somebody else does

	ProjectCreated bool     `json:"project_created,omitempty"` // there was no such project
	Warnings       []string `json:"warnings,omitempty"`
}

func (s *Set) storeMemory(ctx context.Context, a *arguments) (any, error) {
	rest, err := a.takeKnown()
	if err != nil {
		return nil, err
	}
	project := a.project()
	m, err := s.store.AddMemory(ctx, souvenir.NewMemory{
		Collection: a.text("collection_name"), Content: a.text("content"), EventType: a.text("event_type"), State: a.text("state"),
		ProjectID: project.ID, ProjectName: project.Name, Importance: souvenir.Importance(a.text("importance")),
		Classification: souvenir.Classification(a.text("classification")), RuleType: souvenir.RuleType(a.text("rule_type")),
		Tags: a.words("tags"), Related: a.words("related_memory_ids"), Metadata: rest, Embedding: a.numbers("embedding"), Similar: mostSimilar,
	})
	if err != nil {
		return nil, err
	}
	similar := make([]similarMemory, len(m.Similar))
	for i, like := range m.Similar {
		similar[i] = similarMemory{like.ID, like.Score, like.Collection, clip(like.Content, mostPreview), like.SharedBy}
	}
	return storedMemory{m.ID, m.Collection, m.ProjectID, m.ProjectName, m.Revision, m.CreatedAt, m.UpdatedAt, m.Indexed, similar, m.SharedBy, m.ProjectCreated, m.Warnings}, nil
}

// updatedMemory is the result of memory update.
type updatedMemory struct {
	ID         string         `json:"id"`
	Collection string         `json:"collection_name"`
	Metadata   map[string]any `json:"metadata"`
	Revision   int            `json:"revision"`
	CreatedAt  time.Time      `json:"created_at"`
	UpdatedAt  time.Time      `json:"updated_at"`
	Indexed    bool           `json:"indexed"`

	ProjectCreated bool     `json:"project_created,omitempty"` // there was no such project
	Warnings       []string `json:"warnings,omitempty"`
}

func (s *Set) updateMemory(ctx context.Context, a *arguments) (any, error) {
	patch, err := a.takeKnown()
	if err != nil {
		return nil, err
	}
	for i := range knownKeys {
		if key := knownKeys[i].name; a.has(key) {
			if patch == nil {
				patch = map[string]any{}
			}
			patch[key] = a.values[key]
		}
	}
	u := souvenir.UpdateMemory{Metadata: patch, Embedding: a.numbers("embedding"), ExpectedRevision: a.integer("expected_revision")}
	if a.has("content") {
		content := a.text("content")
		u.Content = &content
	} else if len(patch) == 0 {
		return nil, invalid("content", "content and metadata are missing; memory update needs what shall change")
	}
	if _, err := s.memoryIn(ctx, a); err != nil {
		return nil, err
	}
	m, err := s.store.UpdateMemory(ctx, a.text("id"), u)
	if err != nil {
		return nil, err
	}
	return updatedMemory{m.ID, m.Collection, m.ShownMetadata(), m.Revision, m.CreatedAt, m.UpdatedAt, m.Indexed, m.ProjectCreated, m.Warnings}, nil
}

// memoryIn returns the memory that a call names, if it lies in the collection that the call names, if any.
func (s *Set) memoryIn(ctx context.Context, a *arguments) (souvenir.Memory, error) {
	m, err := s.store.GetMemory(ctx, a.text("id"))
	if err != nil {
		return m, err
	}
	if collection := a.text("collection_name"); collection != "" && collection != m.Collection {
		if _, err := s.store.GetCollection(ctx, collection); err != nil {
			return m, err
		}
		return m, notFound("id", "id %s is no memory of collection %s; it lies in %s", show(m.ID), show(collection), show(m.Collection))
	}
	return m, nil
}

// deletedMemory is the result of memory delete.
type deletedMemory struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`

	RestorableUntil *time.Time `json:"restorable_until,omitempty"` // from the trash; nil: it is switched off
}

func (s *Set) deleteMemory(ctx context.Context, a *arguments) (any, error) {
	m, err := s.memoryIn(ctx, a)
	if err != nil {
		return nil, err
	}
	if err := s.store.DeleteMemory(ctx, m.ID); err != nil {
		return nil, err
	}
	result := deletedMemory{ID: m.ID, Deleted: true}
	if entry, err := s.store.GetTrashed(ctx, m.ID); err == nil {
		result.RestorableUntil = &entry.Until
	}
	return result, nil
}
