// Package adk gives agents of Google's Agent Development Kit (google.golang.org/adk) Souvenir as their memory service
// and as tools. It is a module of its own, so that other programs do not depend on the kit.
//
//	memory := adk.NewMemoryService(store, nil)
//	r, err := runner.New(runner.Config{AppName: "travel", Agent: a, SessionService: sessions, MemoryService: memory})
//
// Sessions become conversations whose turns are memories. Applications and users are kept apart: AppName is the
// namespace, UserID the user.
package adk

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"google.golang.org/adk/v2/memory"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/souvenir-ai/souvenir"
)

// Keys of the metadata of a turn, beside those of every turn.
const (
	keyEvent  = "event_id"
	keyCustom = "custom_metadata"
)

// MemoryOptions configure [NewMemoryService]. Nil means the zero value.
type MemoryOptions struct {
	// Limit is the most entries of a search, 1 to 100. Zero means 7.
	Limit int

	// MinScore leaves out memories with less confidence that they are about the query, as in souvenir.Query. Zero means
	// 0.2, which with the built-in model leaves out the unrelated ones; a negative value keeps all, up to the limit.
	MinScore float64

	// Access maps a user of an application to a user of the store. Nil means AppAccess.
	Access func(appName, userID string) souvenir.Access
}

// AppAccess is the user of an application: AppName is the namespace, UserID the user in it.
func AppAccess(appName, userID string) souvenir.Access {
	return souvenir.Access{Namespace: appName, User: userID}
}

// MemoryService keeps sessions in a store, and searches it. It is safe for concurrent use.
type MemoryService struct {
	store   *souvenir.Store
	options MemoryOptions
}

var _ memory.Service = (*MemoryService)(nil)

// NewMemoryService returns the memory service of a store.
func NewMemoryService(store *souvenir.Store, options *MemoryOptions) *MemoryService {
	s := MemoryService{store: store}
	if options != nil {
		s.options = *options
	}
	if s.options.MinScore == 0 {
		s.options.MinScore = 0.2
	}
	s.options.MinScore = max(0, s.options.MinScore)
	if s.options.Access == nil {
		s.options.Access = AppAccess
	}
	return &s
}

// View returns the store for an application's user, for everything that the kit's interface lacks, such as deleting a
// session: View(app, user).Conversation(sessionID).Clear(ctx, nil). Without a user it has no access to anything.
func (s *MemoryService) View(appName, userID string) *souvenir.Store {
	if userID == "" {
		return s.store.As(souvenir.Access{Projects: []string{}})
	}
	return s.store.As(s.options.Access(appName, userID))
}

// AddSessionToMemory stores the events of a session that have text as turns of the conversation with the session's id.
// Events that are already stored are not stored again, so it may be called after each answer. Partial events and
// thoughts are left out.
func (s *MemoryService) AddSessionToMemory(ctx context.Context, of session.Session) error {
	if of.UserID() == "" {
		return fmt.Errorf("session %q has no user id; memories belong to a user", of.ID())
	}
	conversation := s.View(of.AppName(), of.UserID()).Conversation(of.ID())
	for turns := range slices.Chunk(turnsOf(of), souvenir.MaxTurns) {
		if _, err := conversation.Append(ctx, turns...); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// turnsOf returns the events of a session as turns.
func turnsOf(of session.Session) []souvenir.Turn {
	var turns []souvenir.Turn
	seen := map[string]int{}
	for event := range of.Events().All() {
		text := textOf(event.Content)
		if isBlank(text) || event.Partial {
			continue
		}
		t := souvenir.Turn{Key: event.ID, Role: event.Content.Role, Speaker: event.Author, Content: text,
			Time: event.Timestamp, Metadata: map[string]any{}}
		if event.ID == "" || len(event.ID) > souvenir.MaxTurnKey { // identified by its text and time
			sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s\x00%s", event.ID, event.Timestamp.UnixNano(), event.Author,
				text))
			seen[string(sum[:])]++
			t.Key = fmt.Sprintf("%x-%d", sum, seen[string(sum[:])])
		}
		if event.ID != "" {
			t.Metadata[keyEvent] = event.ID
		}
		if event.CustomMetadata != nil {
			t.Metadata[keyCustom] = event.CustomMetadata
		}
		turns = append(turns, t)
	}
	return turns
}

// textOf joins the texts of a content, without thoughts. Text that a store cannot hold is replaced or cut off.
func textOf(content *genai.Content) string {
	if content == nil {
		return ""
	}
	var texts []string
	for _, part := range content.Parts {
		if part != nil && part.Text != "" && !part.Thought {
			texts = append(texts, part.Text)
		}
	}
	text := strings.ReplaceAll(strings.ToValidUTF8(strings.Join(texts, "\n"), "\uFFFD"), "\x00", "\uFFFD")
	if len(text) > souvenir.MaxContent {
		text = strings.ToValidUTF8(text[:souvenir.MaxContent], "")
	}
	return text
}

// isBlank reports whether a text has nothing to remember: white space and format characters only.
func isBlank(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return !unicode.IsSpace(r) && !unicode.Is(unicode.Cf, r) }) < 0
}

// beginning returns as much of a text as a search takes.
func beginning(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), souvenir.MaxQuery)], "")
}

// SearchMemory returns the user's memories about a query, the best first: turns of sessions, and anything else
// stored for the user. An empty query finds nothing.
func (s *MemoryService) SearchMemory(ctx context.Context, req *memory.SearchRequest) (*memory.SearchResponse, error) {
	if req == nil || req.UserID == "" || isBlank(req.Query) {
		return &memory.SearchResponse{}, ctx.Err()
	}
	found, err := s.View(req.AppName, req.UserID).Search(ctx, souvenir.Query{Text: beginning(req.Query),
		Limit: s.options.Limit, MinScore: s.options.MinScore})
	if err != nil {
		return nil, err
	}
	response := &memory.SearchResponse{}
	for _, hit := range found.Hits {
		response.Memories = append(response.Memories, entryOf(hit.Memory))
	}
	return response, nil
}

// entryOf returns a memory as the kit has it. A turn has the id, the author and the metadata of its event.
func entryOf(m souvenir.Memory) memory.Entry {
	text := func(key string) string { s, _ := m.Metadata[key].(string); return s }
	e := memory.Entry{ID: m.ID, Author: text("speaker"), Timestamp: m.EventTime,
		Content: genai.NewContentFromText(m.Content, genai.Role(cmp.Or(text("role"), genai.RoleUser)))}
	if m.EventTime.IsZero() {
		e.Timestamp = m.CreatedAt
	}
	if m.EventType != souvenir.EventTurn {
		if len(m.Metadata) > 0 {
			e.CustomMetadata = maps.Clone(m.Metadata)
		}
		return e
	}
	e.ID = cmp.Or(text(keyEvent), m.ID)
	e.CustomMetadata, _ = m.Metadata[keyCustom].(map[string]any)
	return e
}
