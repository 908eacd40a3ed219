// Package trpcagent is a memory service for agents of trpc-agent-go (trpc.group/trpc-go/trpc-agent-go). It does not
// import the framework: its types are parameters, and [New] infers most of them.
//
//	service := trpcagent.New[memory.UserKey, memory.Key, memory.Entry, tool.Tool, session.Session](store,
//		memory.ResolveAddOptions, memory.ResolveUpdateOptions, memory.ResolveUpdateResult, memory.ResolveSearchOptions)
//
// With these, service is a memory.Service. Applications and users are kept apart: AppName is the namespace, UserID the
// user.
package trpcagent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// Keys of the metadata of a memory, for what the framework's Metadata has besides the time of the event.
const (
	keyKind         = "kind"
	keyParticipants = "participants"
	keyLocation     = "location"
)

// defaultResults is how many memories a search without a limit returns.
const defaultResults = 10

// Service keeps the memories of a store's users. Set its fields before the first call. It is safe for concurrent use.
// Its methods are those of the framework's memory.Service; the parameters are the framework's types of these names.
type Service[UserKey, Key, Entry, Tool, Session, AddOption, UpdateOption, SearchOption any] struct {
	// Offered are the framework's tools that Tools returns, such as those of its package memory/tool. Nil means none.
	Offered []Tool

	// Extract learns from a session, when the framework enqueues it. Nil means that nothing is learned.
	Extract func(ctx context.Context, session *Session) error

	// Collection is where the memories are. Empty means souvenir.DefaultCollection; any other must exist.
	Collection string

	// Access maps a user of an application to a user of the store. Nil means the user in the namespace AppName.
	Access func(appName, userID string) souvenir.Access

	store   *souvenir.Store
	added   func([]AddOption) any
	updated func([]UpdateOption) any
	report  func(options []UpdateOption, id string) error
	sought  func(string, []SearchOption) any
}

// New returns the memory service of a store. The functions are the framework's of the same names.
func New[UserKey, Key, Entry, Tool, Session, AddOption, UpdateOption, SearchOption, Metadata, UpdateResult,
	SearchOptions any](store *souvenir.Store, resolveAddOptions func([]AddOption) *Metadata,
	resolveUpdateOptions func([]UpdateOption) *Metadata, resolveUpdateResult func([]UpdateOption) *UpdateResult,
	resolveSearchOptions func(string, []SearchOption) SearchOptions,
) *Service[UserKey, Key, Entry, Tool, Session, AddOption, UpdateOption, SearchOption] {
	return &Service[UserKey, Key, Entry, Tool, Session, AddOption, UpdateOption, SearchOption]{
		store:   store,
		added:   func(o []AddOption) any { return resolveAddOptions(o) },
		updated: func(o []UpdateOption) any { return resolveUpdateOptions(o) },
		report: func(o []UpdateOption, id string) error {
			to := resolveUpdateResult(o)
			if to == nil {
				return nil
			}
			return convert(key{MemoryID: id}, to)
		},
		sought: func(query string, o []SearchOption) any { return resolveSearchOptions(query, o) },
	}
}

// key is the framework's UserKey and Key.
type key struct{ AppName, UserID, MemoryID string }

// metadata is the framework's Metadata.
type metadata struct {
	Kind         string
	EventTime    *time.Time
	Participants []string
	Location     string
}

// searchOptions are the framework's SearchOptions, as far as they apply.
type searchOptions struct {
	Query                 string
	Kind                  string
	TimeAfter, TimeBefore *time.Time
	MaxResults            int
	SimilarityThreshold   float64
	KindFallback          bool
}

// entry is the framework's Entry.
type entry struct {
	ID        string    `json:"id"`
	AppName   string    `json:"app_name"`
	Memory    content   `json:"memory"`
	UserID    string    `json:"user_id"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	Score     float64   `json:"score,omitempty"`
}

// content is the framework's Memory.
type content struct {
	Memory       string    `json:"memory"`
	Topics       []string  `json:"topics,omitempty"`
	LastUpdated  time.Time `json:"last_updated"`
	Kind         string    `json:"kind,omitempty"`
	EventTime    time.Time `json:"event_time,omitzero"`
	Participants []string  `json:"participants,omitempty"`
	Location     string    `json:"location,omitempty"`
}

// convert copies between a type of the framework and its counterpart here, by the JSON names of their fields.
func convert(from, to any) error {
	encoded, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(encoded, to)
}

// view returns the store for the user of a key.
func (s *Service[U, K, E, T, S, A, P, Q]) view(of any) (
	*souvenir.Store, key, error) {
	var k key
	if err := convert(of, &k); err != nil {
		return nil, k, err
	}
	if k.AppName == "" || k.UserID == "" {
		return nil, k, errors.New("a key has no AppName or no UserID; memories belong to a user of an application")
	}
	if s.Access == nil {
		return s.store.As(souvenir.Access{Namespace: k.AppName, User: k.UserID}), k, nil
	}
	return s.store.As(s.Access(k.AppName, k.UserID)), k, nil
}

// filter is the condition for the memories of a user.
func (s *Service[U, K, E, T, S, A, P, Q]) filter() souvenir.Filter {
	return souvenir.Filter{"project_id": nil, "collection_name": cmp.Or(s.Collection, souvenir.DefaultCollection)}
}

// AddMemory stores a memory. If the user already has one with this text, that memory gets the topics and the metadata.
func (s *Service[U, K, E, T, S, A, P, Q]) AddMemory(
	ctx context.Context, user U, memory string, topics []string, options ...A) error {
	store, _, err := s.view(user)
	if err != nil {
		return err
	}
	var meta metadata
	if err := convert(s.added(options), &meta); err != nil {
		return err
	}
	if meta.Kind == "" && (meta.EventTime != nil || len(meta.Participants) > 0 || meta.Location != "") {
		meta.Kind = "fact" // as the framework's own services do
	}
	m := souvenir.NewMemory{Collection: s.Collection, Content: memory, Tags: tags(topics), IfAbsent: true,
		Metadata: meta.own()}
	if meta.EventTime != nil {
		m.EventTime = *meta.EventTime
	}
	added, err := store.AddMemory(ctx, m)
	if err == nil && added.Effect == souvenir.EffectUnchanged {
		err = update(ctx, store, added.Memory, nil, topics, meta)
	}
	return err
}

// UpdateMemory replaces the text and the topics of a memory, and the metadata that are given. It keeps its id.
func (s *Service[U, K, E, T, S, A, P, Q]) UpdateMemory(
	ctx context.Context, of K, memory string, topics []string, options ...P) error {
	store, found, err := s.find(ctx, of)
	if err != nil {
		return err
	}
	var meta metadata
	if err := convert(s.updated(options), &meta); err != nil {
		return err
	}
	if err := update(ctx, store, found, &memory, topics, meta); err != nil {
		return err
	}
	return s.report(options, found.ID)
}

func update(ctx context.Context, store *souvenir.Store, m souvenir.Memory, text *string, topics []string,
	meta metadata) error {
	list := tags(topics)
	change := souvenir.MemoryUpdate{Content: text, Tags: &list, Metadata: meta.own(), EventTime: meta.EventTime}
	_, err := store.UpdateMemory(ctx, m.ID, change)
	return err
}

// find returns the memory of a key; one that is not the user's, or stored elsewhere, is souvenir.ErrNotFound.
func (s *Service[U, K, E, T, S, A, P, Q]) find(ctx context.Context,
	of K) (*souvenir.Store, souvenir.Memory, error) {
	store, k, err := s.view(of)
	if err != nil {
		return nil, souvenir.Memory{}, err
	}
	m, err := store.GetMemory(ctx, k.MemoryID)
	if err == nil && (m.ProjectID != "" || m.Collection != cmp.Or(s.Collection, souvenir.DefaultCollection)) {
		err = &souvenir.Error{Kind: souvenir.KindNotFound, Argument: "id",
			Message: fmt.Sprintf("memory id %q is stored elsewhere", k.MemoryID)}
	}
	return store, m, err
}

// DeleteMemory deletes a memory, which goes to the trash.
func (s *Service[U, K, E, T, S, A, P, Q]) DeleteMemory(
	ctx context.Context, of K) error {
	store, m, err := s.find(ctx, of)
	if err != nil {
		return err
	}
	return store.DeleteMemory(ctx, m.ID, nil)
}

// ClearMemories deletes the user's memories, which go to the trash.
func (s *Service[U, K, E, T, S, A, P, Q]) ClearMemories(
	ctx context.Context, user U) error {
	store, _, err := s.view(user)
	if err != nil {
		return err
	}
	_, err = store.DeleteMemories(ctx, souvenir.MemoriesDeletion{MemoryList: souvenir.MemoryList{Filter: s.filter()}})
	return err
}

// ReadMemories returns the user's memories, those updated last first: at most limit, or all if it is not above 0.
func (s *Service[U, K, E, T, S, A, P, Q]) ReadMemories(
	ctx context.Context, user U, limit int) ([]*E, error) {
	store, k, err := s.view(user)
	if err != nil {
		return nil, err
	}
	all := []*E{}
	for m, err := range store.Memories(ctx, souvenir.MemoryList{Filter: s.filter(), Sort: souvenir.SortUpdatedDesc}) {
		if err != nil {
			return nil, err
		}
		if all, err = appendEntry(all, k, m, 0); err != nil || len(all) == limit {
			return all, err
		}
	}
	return all, ctx.Err()
}

// SearchMemories returns the user's memories about a query, the best first. A query without text finds none. Scores,
// and the option SimilarityThreshold, are the confidence of souvenir.Hit.
func (s *Service[U, K, E, T, S, A, P, Q]) SearchMemories(
	ctx context.Context, user U, query string, options ...Q) ([]*E, error) {
	store, k, err := s.view(user)
	if err != nil {
		return nil, err
	}
	var o searchOptions
	if err := convert(s.sought(query, options), &o); err != nil {
		return nil, err
	}
	found := []*E{}
	if strings.TrimSpace(o.Query) == "" {
		return found, ctx.Err()
	}
	q := souvenir.Query{Text: beginning(o.Query), MinScore: o.SimilarityThreshold, Filter: o.within(s.filter()),
		Limit: min(cmp.Or(max(0, o.MaxResults), defaultResults), souvenir.MaxLimit)}
	results, err := store.Search(ctx, q)
	if err != nil {
		return nil, err
	}
	hits := results.Hits
	if o.Kind != "" && o.KindFallback && len(hits) < q.Limit {
		o.Kind = ""
		q.Filter = o.within(s.filter())
		if results, err = store.Search(ctx, q); err != nil {
			return nil, err
		}
		for _, other := range results.Hits {
			same := func(h souvenir.Hit) bool { return h.ID == other.ID }
			if len(hits) < q.Limit && !slices.ContainsFunc(hits, same) {
				hits = append(hits, other)
			}
		}
	}
	for _, hit := range hits {
		if found, err = appendEntry(found, k, hit.Memory, hit.Confidence); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// beginning returns as much of a text as a search takes.
func beginning(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), souvenir.MaxQuery)], "")
}

// within adds the conditions of the options to a filter.
func (o searchOptions) within(filter souvenir.Filter) souvenir.Filter {
	if o.Kind != "" {
		filter[keyKind] = o.Kind
	}
	if o.TimeAfter != nil || o.TimeBefore != nil {
		var during souvenir.Condition
		if o.TimeAfter != nil {
			during.AtLeast = *o.TimeAfter
		}
		if o.TimeBefore != nil {
			during.AtMost = *o.TimeBefore
		}
		filter["event_time"] = during
	}
	return filter
}

// Tools returns the tools of the field Offered.
func (s *Service[U, K, E, T, S, A, P, Q]) Tools() []T {
	return slices.Clone(s.Offered)
}

// EnqueueAutoMemoryJob calls Extract, if it is set.
func (s *Service[U, K, E, T, S, A, P, Q]) EnqueueAutoMemoryJob(
	ctx context.Context, session *S) error {
	if s.Extract == nil {
		return nil
	}
	return s.Extract(ctx, session)
}

// Close does nothing: the program that opened the store closes it.
func (s *Service[U, K, E, T, S, A, P, Q]) Close() error { return nil }

// own returns the metadata that are set.
func (m metadata) own() map[string]any {
	own := map[string]any{}
	if m.Kind != "" {
		own[keyKind] = m.Kind
	}
	if len(m.Participants) > 0 {
		own[keyParticipants] = m.Participants
	}
	if m.Location != "" {
		own[keyLocation] = m.Location
	}
	return own
}

// tags returns the topics that are not blank, each once.
func tags(topics []string) []string {
	var list []string
	for _, topic := range topics {
		if topic = strings.TrimSpace(topic); topic != "" && !slices.Contains(list, topic) {
			list = append(list, topic)
		}
	}
	return list
}

// appendEntry appends a memory as an entry of the framework.
func appendEntry[Entry any](to []*Entry, k key, m souvenir.Memory, score float64) ([]*Entry, error) {
	e := entry{ID: m.ID, AppName: k.AppName, UserID: k.UserID, CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt,
		Score: score, Memory: content{Memory: m.Content, Topics: m.Tags, LastUpdated: m.UpdatedAt, EventTime: m.EventTime}}
	e.Memory.Kind, _ = m.Metadata[keyKind].(string)
	e.Memory.Location, _ = m.Metadata[keyLocation].(string)
	if people, ok := m.Metadata[keyParticipants].([]any); ok {
		for _, p := range people {
			if name, ok := p.(string); ok {
				e.Memory.Participants = append(e.Memory.Participants, name)
			}
		}
	}
	made := new(Entry)
	err := convert(e, made)
	return append(to, made), err
}
