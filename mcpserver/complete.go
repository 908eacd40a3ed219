package mcpserver

import (
	"context"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/souvenir-ai/souvenir"
)

// maxCompletions is the protocol's limit on the values of a completion.
const maxCompletions = 100

// complete proposes values for the arguments of prompts and resource templates.
func (s *service) complete(ctx context.Context, request *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	ref, argument := request.Params.Ref, request.Params.Argument
	var completer func(context.Context, *souvenir.Store, string) ([]string, error)
	needs := souvenir.ScopeMemoryRead
	switch {
	case ref.Type == "ref/prompt" && slices.ContainsFunc(prompts(), func(p prompt) bool { return p.Name == ref.Name }):
		if argument.Name == projectArgument {
			completer = projectNames
		}
	case ref.Type == "ref/resource" && strings.HasPrefix(ref.URI, projectsURI+"/{project}"):
		if argument.Name == projectArgument {
			completer = projectRefs
		}
	case ref.Type == "ref/resource" && ref.URI == uriStart+"memories/{id}":
		if argument.Name == "id" {
			completer = memoryIDs
		}
	case ref.Type == "ref/resource" && ref.URI == uriStart+"files/{id}":
		if argument.Name == "id" {
			completer, needs = fileIDs, souvenir.ScopeFilesRead
		}
	default:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
			Message: "no such prompt or template; see prompts/list and resources/templates/list"}
	}
	found := []string{}
	if store, allows := s.view(ctx); completer != nil && allows(needs) {
		values, err := completer(ctx, store, strings.ToLower(strings.TrimSpace(argument.Value)))
		if err != nil {
			return nil, err
		}
		found = append(found, values...)
	}
	listed := found[:min(len(found), maxCompletions)]
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: listed, Total: len(found),
		HasMore: len(found) > len(listed)}}, nil
}

// projectRefs returns the ids of the projects whose id or name begins with, or then contains, the typed text.
func projectRefs(ctx context.Context, store *souvenir.Store, typed string) ([]string, error) {
	projects, err := store.Projects(ctx)
	if err != nil {
		return nil, err
	}
	return fitting(projects, typed, func(p souvenir.Project) (value, other string) { return p.Ref(), p.Name }), nil
}

// projectNames returns the names of the projects instead, except names that several have.
func projectNames(ctx context.Context, store *souvenir.Store, typed string) ([]string, error) {
	projects, err := store.Projects(ctx)
	if err != nil {
		return nil, err
	}
	count := map[string]int{}
	for _, p := range projects {
		count[strings.ToLower(p.Name)]++
	}
	return fitting(projects, typed, func(p souvenir.Project) (value, other string) {
		if count[strings.ToLower(p.Name)] > 1 {
			return p.Ref(), p.Name
		}
		return p.Name, p.Ref()
	}), nil
}

// memoryIDs returns the ids of the most recently updated memories whose id or title matches.
func memoryIDs(ctx context.Context, store *souvenir.Store, typed string) ([]string, error) {
	var memories []souvenir.Memory
	for m, err := range store.Memories(ctx, souvenir.MemoryList{Sort: souvenir.SortUpdatedDesc}) {
		if err != nil {
			return nil, err
		}
		if memories = append(memories, m); len(memories) == listedMemories {
			break
		}
	}
	return fitting(memories, typed, func(m souvenir.Memory) (value, other string) { return m.ID, titleOf(m.Content) }), nil
}

// fileIDs returns the ids of the newest files whose id or name matches.
func fileIDs(ctx context.Context, store *souvenir.Store, typed string) ([]string, error) {
	var files []souvenir.File
	for f, err := range store.Files(ctx, souvenir.FileList{}) {
		if err != nil {
			return nil, err
		}
		if files = append(files, f); len(files) == listedFiles {
			break
		}
	}
	return fitting(files, typed, func(f souvenir.File) (value, other string) { return f.ID, f.Filename }), nil
}

// fitting returns the values of the things that match the typed text: first those that begin with it, then those that
// contain it, each in the order of the things.
func fitting[T any](things []T, typed string, of func(T) (value, other string)) []string {
	var begin, contain []string
	for _, thing := range things {
		value, other := of(thing)
		lower, otherLower := strings.ToLower(value), strings.ToLower(other)
		switch {
		case strings.HasPrefix(lower, typed), strings.HasPrefix(otherLower, typed):
			begin = append(begin, value)
		case strings.Contains(lower, typed), strings.Contains(otherLower, typed):
			contain = append(contain, value)
		}
	}
	return append(begin, contain...)
}
