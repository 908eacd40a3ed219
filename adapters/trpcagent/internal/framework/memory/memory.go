// Package memory is a stand-in for the framework's package of this name in tests: it has the names, fields and methods
// that the adapter is used with, as of trpc-agent-go v1.9.1. Programs use the framework's own.
package memory

import (
	"context"
	"time"

	"github.com/souvenir-ai/souvenir/adapters/trpcagent/internal/framework/session"
	"github.com/souvenir-ai/souvenir/adapters/trpcagent/internal/framework/tool"
)

// Service is the interface that the framework's runner needs.
type Service interface {
	AddMemory(ctx context.Context, user UserKey, memory string, topics []string, options ...AddOption) error
	UpdateMemory(ctx context.Context, of Key, memory string, topics []string, options ...UpdateOption) error
	DeleteMemory(ctx context.Context, of Key) error
	ClearMemories(ctx context.Context, user UserKey) error
	ReadMemories(ctx context.Context, user UserKey, limit int) ([]*Entry, error)
	SearchMemories(ctx context.Context, user UserKey, query string, options ...SearchOption) ([]*Entry, error)
	Tools() []tool.Tool
	EnqueueAutoMemoryJob(ctx context.Context, s *session.Session) error
	Close() error
}

// UserKey names a user.
type UserKey struct{ AppName, UserID string }

// Key names a memory.
type Key struct{ AppName, UserID, MemoryID string }

// Kind is fact or episode.
type Kind string

// Metadata describes a memory besides its text and topics.
type Metadata struct {
	Kind         Kind
	EventTime    *time.Time
	Participants []string
	Location     string
}

// Entry is a stored memory.
type Entry struct {
	ID        string    `json:"id"`
	AppName   string    `json:"app_name"`
	Memory    *Memory   `json:"memory"`
	UserID    string    `json:"user_id"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	Score     float64   `json:"score,omitempty"`
}

// Memory is the text of an entry with its metadata.
type Memory struct {
	Memory       string     `json:"memory"`
	Topics       []string   `json:"topics,omitempty"`
	LastUpdated  *time.Time `json:"last_updated,omitempty"`
	Kind         Kind       `json:"kind,omitempty"`
	EventTime    *time.Time `json:"event_time,omitempty"`
	Participants []string   `json:"participants,omitempty"`
	Location     string     `json:"location,omitempty"`
}

// SearchOptions are the options of a search.
type SearchOptions struct {
	Query                 string
	Kind                  Kind
	TimeAfter, TimeBefore *time.Time
	MaxResults            int
	SimilarityThreshold   float64
	OrderByEventTime      bool
	KindFallback          bool
	Deduplicate           bool
	HybridSearch          bool
	HybridRRFK            int
}

// UpdateResult receives the id that the memory has after an update.
type UpdateResult struct{ MemoryID string }

// AddOption is an option of AddMemory.
type AddOption func(*Metadata)

// UpdateOption is an option of UpdateMemory.
type UpdateOption func(*updateOptions)

// SearchOption is an option of SearchMemories.
type SearchOption func(*SearchOptions)

type updateOptions struct {
	metadata *Metadata
	result   *UpdateResult
}

// WithMetadata gives the metadata of an added memory.
func WithMetadata(m *Metadata) AddOption { return func(o *Metadata) { *o = *m } }

// WithUpdateMetadata gives metadata that an update changes.
func WithUpdateMetadata(m *Metadata) UpdateOption { return func(o *updateOptions) { o.metadata = m } }

// WithUpdateResult asks an update for its result.
func WithUpdateResult(r *UpdateResult) UpdateOption { return func(o *updateOptions) { o.result = r } }

// WithSearchOptions gives all options of a search.
func WithSearchOptions(s SearchOptions) SearchOption { return func(o *SearchOptions) { *o = s } }

// ResolveAddOptions returns the metadata of options, nil without any.
func ResolveAddOptions(options []AddOption) *Metadata {
	if len(options) == 0 {
		return nil
	}
	var m Metadata
	for _, o := range options {
		o(&m)
	}
	return &m
}

// ResolveUpdateOptions returns the metadata of options, nil without any.
func ResolveUpdateOptions(options []UpdateOption) *Metadata { return resolved(options).metadata }

// ResolveUpdateResult returns where the result of an update goes, nil for nowhere.
func ResolveUpdateResult(options []UpdateOption) *UpdateResult { return resolved(options).result }

func resolved(options []UpdateOption) (all updateOptions) {
	for _, o := range options {
		o(&all)
	}
	return all
}

// ResolveSearchOptions returns the options of a search.
func ResolveSearchOptions(query string, options []SearchOption) SearchOptions {
	s := SearchOptions{Query: query}
	for _, o := range options {
		o(&s)
	}
	return s
}
