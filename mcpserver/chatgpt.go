package mcpserver

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/tools"
)

// ChatGPT's connectors and deep research call two tools with prescribed names, arguments and results: search
// returns ids, titles and URLs to cite, fetch returns the text of one.

// chatGPTResults is how many results search returns: there is no second page.
const chatGPTResults = 10

// found is a result of search.
type found struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	URL   string `json:"url"`
}

// fetched is the result of fetch.
type fetched struct {
	found
	Text     string         `json:"text"`
	Metadata map[string]any `json:"metadata"`
}

// oneText is the schema of a tool whose only argument is a text.
func oneText(name, description string) json.RawMessage {
	encoded, err := json.Marshal(map[string]any{
		"type": "object", "required": []string{name},
		"properties": map[string]any{name: map[string]any{"type": "string", "description": description}},
	})
	if err != nil {
		return json.RawMessage(`{"type":"object"}`) // strings are always JSON
	}
	return encoded
}

// chatGPTTools returns the definitions of ToolsetChatGPT.
func chatGPTTools() (search, fetch tools.Tool) {
	reading := tools.Annotations{ReadOnly: true, Idempotent: true}
	return tools.Tool{
			Name: "search", Title: "Search memories", Annotations: reading,
			Description: "Search the user's long-term memory, and what others share with the user, by meaning and by word. " +
				"Returns ids, titles and URLs of the ten best; fetch gives the text of one.",
			InputSchema: oneText("query", "What to look for, in plain language."),
		}, tools.Tool{
			Name: "fetch", Title: "Fetch memory", Annotations: reading,
			Description: "The whole text of a memory that search has found, with its details.",
			InputSchema: oneText("id", "An id from search."),
		}
}

// searchForChatGPT is the tool search.
func (s *service) searchForChatGPT(ctx context.Context, arguments json.RawMessage) (any, error) {
	store, query, err := s.chatGPTCall(ctx, "search", "query", arguments)
	if err != nil {
		return nil, err
	}
	results, err := store.Search(ctx, souvenir.Query{Text: query, Limit: chatGPTResults})
	if err != nil {
		return nil, err
	}
	list := []found{}
	for _, hit := range results.Hits {
		list = append(list, s.found(hit.Memory))
	}
	return map[string]any{"results": list}, nil
}

// fetchForChatGPT is the tool fetch.
func (s *service) fetchForChatGPT(ctx context.Context, arguments json.RawMessage) (any, error) {
	store, id, err := s.chatGPTCall(ctx, "fetch", "id", arguments)
	if err != nil {
		return nil, err
	}
	m, err := store.GetMemory(ctx, id)
	if err != nil {
		return nil, err
	}
	metadata := m.ShownMetadata()
	metadata["collection_name"], metadata["created_at"], metadata["updated_at"] = m.Collection, m.CreatedAt, m.UpdatedAt
	if m.SharedBy != "" {
		metadata["shared_by"] = m.SharedBy
	}
	return fetched{s.found(m), m.Content, metadata}, nil
}

// found returns a memory as a source to cite. Its URL is that of its page, or of its resource if there are no
// pages.
func (s *service) found(m souvenir.Memory) found {
	url := address{kindMemory, m.ID}.uri()
	if s.PublicURL != "" {
		url = s.PublicURL + "/memories/" + m.ID
	}
	return found{m.ID, titleOf(m.Content) + sharedMark(m), url}
}

// chatGPTCall returns the view for a call, and its argument.
func (s *service) chatGPTCall(ctx context.Context, tool, name string, arguments json.RawMessage) (*souvenir.Store,
	string, error) {
	store, allows := s.view(ctx)
	if !allows(souvenir.ScopeMemoryRead) {
		return nil, "", missingScope(tool, souvenir.ScopeMemoryRead)
	}
	var given map[string]any
	if len(arguments) > 0 {
		if err := json.Unmarshal(arguments, &given); err != nil {
			return nil, "", invalid("arguments", "the arguments are not a JSON object; {\""+name+"\": \"...\"} is needed")
		}
	}
	value, _ := given[name].(string)
	if value = strings.TrimSpace(value); value == "" {
		return nil, "", invalid(name, tool+` needs the argument "`+name+`", a text that is not empty`)
	}
	return store, value, nil
}
