package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/respjson"

	"github.com/souvenir-ai/souvenir"
)

// MemoryOptions configure [NewMemory]. Nil means the zero value.
type MemoryOptions struct {
	// Collection is where the files are stored. Empty means souvenir.DefaultCollection; any other must exist.
	Collection string

	// Project is the project that the files belong to, whose members share them. Zero means none: they are the user's.
	Project souvenir.ProjectRef

	// MaxView is the most characters that one view returns; the model reads the rest with view_range. Zero means
	// 16,000, as in the tool's description; a negative value means no limit.
	MaxView int
}

// Memory is Anthropic's memory tool, memory_20250818, with its files in a store: each file is a memory, which searches
// find. Each command is one transaction. It is safe for concurrent use, also by several processes.
type Memory struct {
	files   files
	maxView int
}

var _ sdk.BetaTool = (*Memory)(nil)

// NewMemory returns the memory tool of a store, or of a view of it, which decides the user.
func NewMemory(store *souvenir.Store, options *MemoryOptions) *Memory {
	var o MemoryOptions
	if options != nil {
		o = *options
	}
	if o.MaxView == 0 {
		o.MaxView = 16_000
	}
	return &Memory{files: filesOf(store, o.Collection, o.Project), maxView: o.MaxView}
}

// Name returns memory, the name that the API gives this tool.
func (m *Memory) Name() string { return "memory" }

// Description describes the tool to models that get it as a custom one. With [Set.Params] the API describes it itself.
func (m *Memory) Description() string {
	return "Files below " + root + " that stay between conversations. Look at " + root + " before anything else, and " +
		"record progress and what you learn. Commands: view a file or directory; create a file; str_replace a text that " +
		"occurs once; insert text after a line; delete or rename a file or directory."
}

// InputSchema is the JSON Schema of the commands.
func (m *Memory) InputSchema() sdk.BetaToolInputSchemaParam {
	text := func(d string) map[string]any { return map[string]any{"type": "string", "description": d} }
	whole := map[string]any{"type": "integer"}
	return sdk.BetaToolInputSchemaParam{Required: []string{"command"}, Properties: map[string]any{
		"command": map[string]any{"type": "string", "enum": commandNames},
		"path":    text("the file or directory, of every command but rename"),
		"view_range": map[string]any{"type": "array", "items": whole,
			"description": "of view: the first and the last line; -1 is the end of the file"},
		"file_text":   text("of create"),
		"old_str":     text("of str_replace: what to replace; it occurs once in the file"),
		"new_str":     text("of str_replace; without it, old_str is deleted"),
		"insert_line": map[string]any{"type": "integer", "description": "of insert: after this line; 0 is the beginning"},
		"insert_text": text("of insert"),
		"old_path":    text("of rename"),
		"new_path":    text("of rename"),
	}}
}

// Execute carries out a command in JSON. It is for a tool runner, which puts "Error: " before the text of errors.
func (m *Memory) Execute(ctx context.Context, input json.RawMessage) (
	[]sdk.BetaToolResultBlockParamContentUnion, error) {
	said, err := m.execute(ctx, input)
	if err != nil {
		return nil, refusal{strings.TrimPrefix(err.Error(), "Error: "), err}
	}
	return []sdk.BetaToolResultBlockParamContentUnion{{OfText: &sdk.BetaTextBlockParam{Text: said}}}, nil
}

func (m *Memory) execute(ctx context.Context, input json.RawMessage) (string, error) {
	var c sdk.BetaMemoryTool20250818CommandUnion
	if err := json.Unmarshal(input, &c); err != nil {
		return "", refuse("Error: the command is not a JSON object: %v", err)
	}
	return m.Run(ctx, c)
}

// commandNames are the values of command.
var commandNames = []string{"view", "create", "str_replace", "insert", "delete", "rename"}

// Run carries out a command and returns what the model should read. The text of an error is for the model, too: send
// it as a result with is_error.
func (m *Memory) Run(ctx context.Context, c sdk.BetaMemoryTool20250818CommandUnion) (said string, err error) {
	if err := complete(c); err != nil {
		return "", err
	}
	in := m.files.store.Transaction
	if c.Command == "view" {
		in = m.files.store.Snapshot
	}
	var failed error // a snapshot wraps it
	err = in(ctx, func(ctx context.Context) error {
		said, failed = m.do(ctx, c)
		return failed
	})
	err = cmp.Or(failed, err)
	var known *souvenir.Error
	if errors.As(err, &known) {
		err = refusal{"Error: " + known.Message, err}
	}
	if err != nil {
		return "", err
	}
	return said, nil
}

func (m *Memory) do(ctx context.Context, c sdk.BetaMemoryTool20250818CommandUnion) (string, error) {
	switch c.Command {
	case "view":
		return m.view(ctx, c)
	case "create":
		return m.create(ctx, c)
	case "str_replace":
		return m.replace(ctx, c)
	case "insert":
		return m.insert(ctx, c)
	case "delete":
		return m.delete(ctx, c)
	}
	return m.rename(ctx, c)
}

// complete checks that a command is known and, if it was read from JSON, that it has all it needs: a missing text is
// not an empty one.
func complete(c sdk.BetaMemoryTool20250818CommandUnion) error {
	if !slices.Contains(commandNames, c.Command) {
		return refuse("Error: Unknown command %q; the commands are %s", cut(c.Command), strings.Join(commandNames, ", "))
	}
	needed := map[string]respjson.Field{"path": c.JSON.Path}
	switch c.Command {
	case "create":
		needed["file_text"] = c.JSON.FileText
	case "str_replace":
		needed["old_str"] = c.JSON.OldStr
	case "insert":
		needed["insert_line"], needed["insert_text"] = c.JSON.InsertLine, c.JSON.InsertText
	case "rename":
		needed = map[string]respjson.Field{"old_path": c.JSON.OldPath, "new_path": c.JSON.NewPath}
	}
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		if field := needed[name]; c.RawJSON() != "" && !field.Valid() {
			return refuse("Error: Missing required parameter: %s needs `%s`", c.Command, name)
		}
	}
	return nil
}

func (m *Memory) view(ctx context.Context, c sdk.BetaMemoryTool20250818CommandUnion) (string, error) {
	path, err := clean(c.Path)
	if err != nil {
		return "", err
	}
	file, found, err := m.files.file(ctx, path)
	switch {
	case err != nil:
		return "", err
	case !found:
		return m.viewDirectory(ctx, path)
	}
	lines := linesOf(file.text)
	if len(lines) > 999_999 {
		return "", refuse("File %s exceeds maximum line limit of 999,999 lines.", path)
	}
	first, last := int64(1), int64(len(lines))
	if len(c.ViewRange) == 2 {
		first = max(first, c.ViewRange[0])
		if end := c.ViewRange[1]; end != -1 {
			last = min(last, end)
		}
	}
	if first > last || len(c.ViewRange) != 0 && len(c.ViewRange) != 2 {
		return "", refuse("Error: Invalid `view_range` parameter: %v. It should be [start, end] within the range of lines "+
			"of the file: [1, %d]", c.ViewRange, len(lines))
	}
	return "Here's the content of " + path + " with line numbers:\n" + m.numbered(lines[first-1:last], int(first)), nil
}

// numbered returns lines with their numbers, as far as they fit into MaxView.
func (m *Memory) numbered(lines []string, first int) string {
	var b strings.Builder
	room := m.maxView
	for i, line := range lines {
		length := utf8.RuneCountInString(line)
		if m.maxView > 0 && length > room && i > 0 {
			fmt.Fprintf(&b, "\n(cut after line %d; view the rest with view_range [%d, -1])", first+i-1, first+i)
			break
		}
		if m.maxView > 0 && length > room {
			line = string([]rune(line)[:room]) + fmt.Sprintf(" (line %d has %d characters and is cut here)", first, length)
		}
		room -= length + 1
		fmt.Fprintf(&b, "\n%6d\t%s", first+i, line)
	}
	return strings.TrimPrefix(b.String(), "\n")
}

func (m *Memory) viewDirectory(ctx context.Context, path string) (string, error) {
	entries, err := m.files.entries(ctx, path)
	if err != nil {
		return "", err
	}
	if len(entries) == 1 && path != root && entries[0].files == 0 {
		return "", refuse("The path %s does not exist. Please provide a valid path.", path)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Here're the files and directories up to 2 levels deep in %s, excluding hidden items and "+
		"node_modules:", path)
	for i, e := range entries {
		if m.maxView > 0 && b.Len() > m.maxView {
			fmt.Fprintf(&b, "\n(and %d more; view the directories below to see them)", len(entries)-i)
			break
		}
		fmt.Fprintf(&b, "\n%s\t%s", e.size(), e.path)
	}
	return b.String(), nil
}

func (m *Memory) create(ctx context.Context, c sdk.BetaMemoryTool20250818CommandUnion) (string, error) {
	path, err := clean(c.Path)
	if err != nil {
		return "", err
	}
	if free, err := m.files.free(ctx, path); err != nil || !free {
		return "", orRefuse(err, "Error: File %s already exists", path)
	}
	if err := m.files.add(ctx, path, c.FileText); err != nil {
		return "", err
	}
	return "File created successfully at: " + path, nil
}

func (m *Memory) replace(ctx context.Context, c sdk.BetaMemoryTool20250818CommandUnion) (string, error) {
	path, err := clean(c.Path)
	if err != nil {
		return "", err
	}
	file, found, err := m.files.file(ctx, path)
	if err != nil || !found {
		return "", orRefuse(err, "Error: The path %s does not exist. Please provide a valid path.", path)
	}
	if c.OldStr == "" {
		return "", refuse("Error: old_str is empty; give the text to replace, or use insert to add text")
	}
	at := strings.Index(file.text, c.OldStr)
	if at < 0 {
		return "", refuse("No replacement was performed, old_str `%s` did not appear verbatim in %s.", cut(c.OldStr), path)
	}
	if strings.Contains(file.text[at+1:], c.OldStr) {
		return "", refuse("No replacement was performed. Multiple occurrences of old_str `%s` in lines: %s. "+
			"Please ensure it is unique", cut(c.OldStr), occurrences(file.text, c.OldStr))
	}
	before := file.text[:at]
	edited := before + c.NewStr + file.text[at+len(c.OldStr):]
	if err := m.files.write(ctx, file, edited); err != nil {
		return "", err
	}
	lines := linesOf(edited)
	changed := strings.Count(before, "\n")
	first := max(0, changed-2)
	last := min(len(lines), changed+strings.Count(c.NewStr, "\n")+3)
	return "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n" +
		m.numbered(lines[min(first, last):last], first+1), nil
}

func (m *Memory) insert(ctx context.Context, c sdk.BetaMemoryTool20250818CommandUnion) (string, error) {
	path, err := clean(c.Path)
	if err != nil {
		return "", err
	}
	file, found, err := m.files.file(ctx, path)
	if err != nil || !found {
		return "", orRefuse(err, "Error: The path %s does not exist", path)
	}
	text := ended(file.text)
	count := strings.Count(text, "\n")
	if c.InsertLine < 0 || c.InsertLine > int64(count) {
		return "", refuse("Error: Invalid `insert_line` parameter: %d. It should be within the range of lines of the "+
			"file: [0, %d]", c.InsertLine, count)
	}
	at := 0
	for range c.InsertLine {
		at += strings.IndexByte(text[at:], '\n') + 1
	}
	if err := m.files.write(ctx, file, text[:at]+ended(c.InsertText)+text[at:]); err != nil {
		return "", err
	}
	return fmt.Sprintf("The file %s has been edited.", path), nil
}

func (m *Memory) delete(ctx context.Context, c sdk.BetaMemoryTool20250818CommandUnion) (string, error) {
	path, err := clean(c.Path)
	if err != nil || path == root {
		return "", orRefuse(err, "Error: Cannot delete the %s directory itself", root)
	}
	if deleted, err := m.files.delete(ctx, path); err != nil || deleted == 0 {
		return "", orRefuse(err, "Error: The path %s does not exist", path)
	}
	return "Successfully deleted " + path, nil
}

func (m *Memory) rename(ctx context.Context, c sdk.BetaMemoryTool20250818CommandUnion) (string, error) {
	from, err := clean(c.OldPath)
	if err != nil || from == root {
		return "", orRefuse(err, "Error: Cannot rename the %s directory itself", root)
	}
	to, err := clean(c.NewPath)
	if err != nil || strings.HasPrefix(to, from+"/") {
		return "", orRefuse(err, "Error: Cannot rename %s to %s, which is inside it", from, to)
	}
	moved, err := m.files.all(ctx, from)
	if err != nil || len(moved) == 0 {
		return "", orRefuse(err, "Error: The path %s does not exist", from)
	}
	if len(moved) > maxMoved {
		return "", refuse("Error: %s has %d files; at most %d can be renamed at once. Rename the directories in it", from,
			len(moved), maxMoved)
	}
	if free, err := m.files.free(ctx, to); err != nil || !free {
		return "", orRefuse(err, "Error: The destination %s already exists", to)
	}
	for _, file := range moved {
		if err := m.files.move(ctx, file, to+strings.TrimPrefix(file.path, from)); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("Successfully renamed %s to %s", from, to), nil
}
