package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/souvenir-ai/souvenir"
)

// maxFile is the maximum size in bytes of a file read as a resource, since it is sent in one piece, and as base64
// unless it is text.
const maxFile = 1 << 20

// read reads the resource at an address. If a known project does not have a part yet, the result is a text that
// explains how to create it.
func read(ctx context.Context, store *souvenir.Store, a address) (*mcp.ResourceContents, error) {
	switch a.kind {
	case kindMemory:
		m, err := store.GetMemory(ctx, a.id)
		return &mcp.ResourceContents{MIMEType: markdown, Text: mark(m.SharedBy, cmp.Or(m.ProjectName, m.ProjectID)) +
			m.Content}, err
	case kindFile:
		return readFile(ctx, store, a.id)
	case kindProjects:
		projects, err := store.Projects(ctx)
		if err != nil {
			return nil, err
		}
		return asJSON(map[string]any{"projects": append([]souvenir.Project{}, projects...)})
	case kindGeneralRules:
		rules, err := store.Rules(ctx, souvenir.ProjectRef{})
		instead := "There are no general rules yet. The tool rules stores them."
		if len(rules.Warnings) > 0 {
			instead = strings.Join(rules.Warnings, "; ")
		}
		return rulesText(rules, instead), err
	}
	p, err := projectOf(ctx, store, a.id)
	if err != nil {
		return nil, err
	}
	if a.kind == kindProject {
		return asJSON(p)
	}
	contents, err := readOf(ctx, store, a.kind, p)
	if err == nil {
		contents.Text = mark(sharer(p), p.Name) + contents.Text
	}
	return contents, err
}

// mark returns the line before content from another user's project; "" for the user's own.
func mark(by, project string) string {
	if by == "" {
		return ""
	}
	return "> From the project " + project + " of " + by + ", who shares it. These are not the user's own words.\n\n"
}

// readOf reads a text of a project.
func readOf(ctx context.Context, store *souvenir.Store, kind kind, p souvenir.Project) (*mcp.ResourceContents, error) {
	project := souvenir.ProjectRef{ID: p.Ref()}
	switch kind {
	case kindRules:
		rules, err := store.Rules(ctx, project)
		return rulesText(rules, "The project "+p.Name+" has no rules yet. The tool rules stores them."), err
	case kindTodo:
		todo, err := store.GetTodo(ctx, project)
		return orText(todo.Content, err, "The project "+p.Name+" has no to-do document yet. The tool todo stores one.")
	}
	main, err := store.GetMainMemory(ctx, project)
	return orText(main.Memory.Content, err, "The project "+p.Name+
		" has no main memory yet. The tool memory stores one, with event_type project-main.")
}

// orText returns a text, or instead if there is none.
func orText(content string, err error, instead string) (*mcp.ResourceContents, error) {
	if errors.Is(err, souvenir.ErrNotFound) {
		content, err = instead, nil
	}
	return &mcp.ResourceContents{MIMEType: markdown, Text: content}, err
}

func asJSON(value any) (*mcp.ResourceContents, error) {
	encoded, err := plainJSON(value)
	return &mcp.ResourceContents{MIMEType: jsonType, Text: string(encoded)}, err
}

// rulesText returns both rules as one document.
func rulesText(rules souvenir.Rules, instead string) *mcp.ResourceContents {
	var b strings.Builder
	for _, part := range []struct {
		title string
		rule  *souvenir.Memory
	}{{"Do", rules.Do}, {"Don't", rules.Dont}} {
		if part.rule != nil {
			fmt.Fprintf(&b, "# %s\n\n%s\n\n", part.title, strings.TrimSpace(part.rule.Content))
		}
	}
	if b.Len() == 0 {
		b.WriteString(instead)
	}
	return &mcp.ResourceContents{MIMEType: markdown, Text: strings.TrimSpace(b.String()) + "\n"}
}

// readFile reads a whole file: as text if it is text, else as bytes.
func readFile(ctx context.Context, store *souvenir.Store, id string) (*mcp.ResourceContents, error) {
	reader, err := store.OpenFile(ctx, id)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	f := reader.File()
	if f.Size > maxFile {
		return nil, &souvenir.Error{Kind: souvenir.KindTooLarge, Argument: "uri",
			Message: fmt.Sprintf("file %s has %d bytes; a resource has at most %d. Get it with GET /api/files/%s", f.ID, f.Size,
				maxFile, f.ID)}
	}
	content, err := io.ReadAll(reader)
	if err != nil {
		return nil, err
	}
	if isText(f.MIMEType) && utf8.Valid(content) {
		return &mcp.ResourceContents{MIMEType: f.MIMEType, Text: string(content)}, nil
	}
	return &mcp.ResourceContents{MIMEType: f.MIMEType, Blob: content}, nil
}

// isText reports whether a type is text for people to read.
func isText(mimeType string) bool {
	kind, _, err := mime.ParseMediaType(mimeType)
	if err != nil {
		return false
	}
	switch kind {
	case jsonType, "application/xml", "application/yaml", "application/toml", "application/javascript", "application/sql",
		"application/x-ndjson":
		return true
	}
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml")
}
