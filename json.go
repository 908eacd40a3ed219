package souvenir

import (
	"encoding/json"
	"time"

	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// UnmarshalJSON reads the output of MarshalJSON. A type that embeds [Memory] needs its own method: Memory's would read
// only the memory.

// UnmarshalJSON reads the output of MarshalJSON: the known keys of metadata go into their fields. A known key with a
// value of another type stays in Metadata, which is never nil.
func (m *Memory) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	var given struct {
		ID         string          `json:"id"`
		Content    string          `json:"content"`
		Collection string          `json:"collection_name"`
		Owner      string          `json:"owner"`
		Metadata   json.RawMessage `json:"metadata"`
		Revision   int             `json:"revision"`
		CreatedAt  time.Time       `json:"created_at"`
		UpdatedAt  time.Time       `json:"updated_at"`
		SharedBy   string          `json:"shared_by"`
	}
	if err := json.Unmarshal(data, &given); err != nil {
		return err
	}
	metadata, err := parseMetadata(given.Metadata)
	if err != nil {
		return err
	}
	read := Memory{
		ID: given.ID, Collection: given.Collection, Owner: given.Owner, Content: given.Content, Metadata: kernel.OrEmpty(metadata),
		Revision: given.Revision, CreatedAt: given.CreatedAt, UpdatedAt: given.UpdatedAt, SharedBy: given.SharedBy,
	}
	for key, into := range map[string]*string{
		"event_type": &read.EventType, "state": &read.State, "project_id": &read.ProjectID, "project_name": &read.ProjectName,
		"importance": (*string)(&read.Importance), "classification": (*string)(&read.Classification),
		"rule_type": (*string)(&read.RuleType),
	} {
		if text, ok := metadata[key].(string); ok && text != "" {
			*into = text
			delete(metadata, key)
		}
	}
	for key, into := range map[string]*[]string{"tags": &read.Tags, "related_memory_ids": &read.Related} {
		if list, ok := texts(metadata[key]); ok {
			*into = list
			delete(metadata, key)
		}
	}
	*m = read
	return nil
}

// texts returns a list of at least one string.
func texts(value any) ([]string, bool) {
	list, ok := value.([]any)
	all := make([]string, len(list))
	for i := 0; ok && i < len(list); i++ {
		all[i], ok = list[i].(string)
	}
	return all, ok && len(list) > 0
}

// withMemory reads a memory and the additional members beside it.
func withMemory(data []byte, m *Memory, beside any) error {
	if err := json.Unmarshal(data, beside); err != nil {
		return err
	}
	return m.UnmarshalJSON(data)
}

// UnmarshalJSON reads the output of MarshalJSON.
func (h *Hit) UnmarshalJSON(data []byte) error {
	var beside hitJSON
	var m Memory
	if err := withMemory(data, &m, &beside); err != nil {
		return err
	}
	*h = Hit{m, beside.Rank, beside.Score, beside.Parts, beside.Start, beside.End, beside.FileCount, beside.Files}
	return nil
}

// UnmarshalJSON reads the output of MarshalJSON.
func (s *Stored) UnmarshalJSON(data []byte) error {
	var beside storedJSON
	var m Memory
	if err := withMemory(data, &m, &beside); err != nil {
		return err
	}
	*s = Stored{Memory: m, Indexed: beside.Indexed, Similar: beside.Similar, Warnings: beside.Warnings,
		ProjectCreated: beside.ProjectCreated}
	return nil
}

// UnmarshalJSON reads the output of MarshalJSON.
func (r *StoredRule) UnmarshalJSON(data []byte) error {
	var given storedRuleJSON
	if err := json.Unmarshal(data, &given); err != nil {
		return err
	}
	*r = StoredRule{Stored{Memory: given.Memory, Indexed: given.Indexed, Warnings: given.Warnings,
		ProjectCreated: given.ProjectCreated}, given.Created}
	return nil
}

// UnmarshalJSON reads the output of MarshalJSON. The document is parsed from the content.
func (t *StoredTodo) UnmarshalJSON(data []byte) error {
	var rule StoredRule
	if err := rule.UnmarshalJSON(data); err != nil {
		return err
	}
	*t = StoredTodo{StoredRule: rule}
	if document, err := ParseTodo(rule.Content); err == nil { // as GetTodo does
		t.Document = document
	}
	return nil
}

// UnmarshalJSON reads the output of MarshalJSON. The document is parsed from the content.
func (t *Todo) UnmarshalJSON(data []byte) error {
	var beside struct {
		Warnings []string `json:"warnings"`
	}
	var m Memory
	if err := withMemory(data, &m, &beside); err != nil {
		return err
	}
	*t = Todo{Memory: m, Warnings: beside.Warnings}
	if document, err := ParseTodo(m.Content); err == nil {
		t.Document = document
	}
	return nil
}

// UnmarshalJSON reads the output of MarshalJSON.
func (m *ContextMemory) UnmarshalJSON(data []byte) error {
	var beside contextMemoryJSON
	var memory Memory
	if err := withMemory(data, &memory, &beside); err != nil {
		return err
	}
	*m = ContextMemory{Memory: memory, Score: beside.Score, Truncated: beside.Truncated}
	return nil
}

// UnmarshalJSON reads the output of MarshalJSON.
func (m *ModuleMemory) UnmarshalJSON(data []byte) error {
	var beside moduleMemoryJSON
	var memory Memory
	if err := withMemory(data, &memory, &beside); err != nil {
		return err
	}
	*m = ModuleMemory{Memory: memory, Match: beside.Match, Score: beside.Score, Truncated: beside.Truncated}
	return nil
}

// UnmarshalJSON reads the output of MarshalJSON.
func (r *Related) UnmarshalJSON(data []byte) error {
	var beside relatedJSON
	var m Memory
	if err := withMemory(data, &m, &beside); err != nil {
		return err
	}
	*r = Related{Memory: m, Depth: beside.Depth, Direction: beside.Direction, Path: beside.Path,
		Truncated: beside.Truncated}
	return nil
}

// MarshalJSON returns hits (never null), total, offset, limit, sort_order, has_more and warnings.
func (r Results) MarshalJSON() ([]byte, error) {
	type plain Results
	r.Hits = emptyList(r.Hits)
	return json.Marshal(struct {
		plain
		HasMore bool `json:"has_more"`
	}{plain(r), r.HasMore()})
}

// MarshalJSON returns files (never null), total, offset, limit and has_more.
func (p FilePage) MarshalJSON() ([]byte, error) {
	type plain FilePage
	p.Files = emptyList(p.Files)
	return json.Marshal(struct {
		plain
		HasMore bool `json:"has_more"`
	}{plain(p), p.HasMore()})
}
