package server

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// memoryRoutes are the page of a memory, and what is done to one.
func memoryRoutes() []route {
	return []route{
		{"GET", "/memories/{id}", person, (*Server).showMemory},
	}
}

// memoryPage is what the page of a memory shows: where the URLs lead that ChatGPT gives as its sources.
type memoryPage struct {
	souvenir.Memory
	Facts []fact // its metadata
	Files []souvenir.File
}

// fact is a key of the metadata with its value, as text.
type fact struct{ Key, Value string }

// showMemory shows a memory that the user can see.
func (s *Server) showMemory(_ http.ResponseWriter, r *http.Request, c caller) (any, error) {
	m, err := c.store.GetMemory(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	data := memoryPage{Memory: m}
	metadata := m.ShownMetadata()
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		data.Facts = append(data.Facts, fact{key, plain(metadata[key])})
	}
	for file, err := range c.store.Files(r.Context(), souvenir.FileList{MemoryID: m.ID}) {
		if err != nil {
			return nil, err
		}
		data.Files = append(data.Files, file)
	}
	return page{template: "memory", title: "Memory", data: data}, nil
}

// plain is a value of JSON as people read it: texts and lists of texts without quotes.
func plain(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case []string:
		return strings.Join(value, ", ")
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return "" // it came from JSON
	}
	return string(encoded)
}
