package anthropic

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/souvenir-ai/souvenir"
)

// root is the directory of all files of the memory tool.
const root = "/memories"

// The marks of the memory of a file: its event type, and keys of its metadata.
const (
	eventFile = "memory_file"
	keyPath   = "path"        // of the file, from /memories on
	keyAbove  = "directories" // the paths of the directories that the file is in, without /memories
	keyText   = "text"        // the text of a file that is empty or blank, whose memory has the path as its content
)

const (
	maxPath  = 512    // bytes
	maxDepth = 32     // directories above a file, without /memories
	maxMoved = 10_000 // files that a rename moves: all in one transaction, for which other writers wait
)

// file is a file with its text.
type file struct {
	id, path, text string
}

// files are the files in one place of a store. Methods take the context of a transaction or snapshot.
type files struct {
	store      *souvenir.Store
	collection string
	project    souvenir.ProjectRef
}

// filesOf returns the files of a place; in a view that is limited to one project, that is its default.
func filesOf(store *souvenir.Store, collection string, project souvenir.ProjectRef) files {
	if limit := store.Access().Projects; project == (souvenir.ProjectRef{}) && len(limit) == 1 {
		project.ID = limit[0]
	}
	return files{store, cmp.Or(collection, souvenir.DefaultCollection), project}
}

// at is the condition of the files with one of these paths.
func at(paths ...string) souvenir.Filter { return souvenir.Filter{keyPath: souvenir.In(paths...)} }

// below is the condition of the files in a directory, at any depth.
func below(directory string) souvenir.Filter {
	if directory == root {
		return souvenir.Filter{}
	}
	return souvenir.Filter{keyAbove: directory}
}

// list lists the files that meet a condition. The collection is part of it, since it may not exist yet.
func (f files) list(condition souvenir.Filter) souvenir.MemoryList {
	filter := maps.Clone(condition)
	filter["event_type"], filter["collection_name"] = eventFile, f.collection
	if f.project == (souvenir.ProjectRef{}) {
		filter["project_id"] = nil
	}
	return souvenir.MemoryList{ProjectID: f.project.ID, ProjectName: f.project.Name, Filter: filter}
}

// read returns the files that match, by path. A path has one file, unless one was restored from the trash beside a
// newer one, which then counts; with every, both are returned.
func (f files) read(ctx context.Context, condition souvenir.Filter, every bool) ([]file, error) {
	var found []file
	for m, err := range f.store.Memories(ctx, f.list(condition)) {
		if err != nil {
			return nil, err
		}
		found = append(found, fileOf(m))
	}
	slices.SortStableFunc(found, func(a, b file) int { return strings.Compare(a.path, b.path) })
	if every {
		return found, nil
	}
	var newest []file
	for i := range found {
		if i+1 == len(found) || found[i].path != found[i+1].path {
			newest = append(newest, found[i])
		}
	}
	return newest, nil
}

func fileOf(m souvenir.Memory) file {
	f := file{id: m.ID, text: m.Content}
	f.path, _ = m.Metadata[keyPath].(string)
	if text, ok := m.Metadata[keyText].(string); ok && m.Content == f.path { // not edited since
		f.text = text
	}
	return f
}

// file returns the file with a path.
func (f files) file(ctx context.Context, path string) (found file, ok bool, err error) {
	all, err := f.read(ctx, at(path), false)
	if err != nil || len(all) == 0 {
		return file{}, false, err
	}
	return all[0], true, nil
}

// all returns the file with a path, or all files in the directory.
func (f files) all(ctx context.Context, path string) ([]file, error) {
	found, err := f.read(ctx, at(path), true)
	if err != nil || len(found) > 0 {
		return found, err
	}
	return f.read(ctx, below(path), true)
}

// free reports whether a file may get a path: nothing is there, and no directory above it is a file.
func (f files) free(ctx context.Context, path string) (bool, error) {
	if path == root {
		return false, nil
	}
	found, err := f.read(ctx, at(append(above(path), path)...), false)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(found, func(other file) bool { return other.path == path }) {
		return false, nil
	}
	if len(found) > 0 {
		return false, refuse("Error: %s is a file, not a directory", found[0].path)
	}
	for _, err := range f.store.Memories(ctx, f.list(below(path))) {
		return false, err
	}
	return true, nil
}

func (f files) add(ctx context.Context, path, text string) error {
	content, blank, err := stored(path, text)
	if err != nil {
		return err
	}
	own := map[string]any{keyPath: path, keyAbove: above(path)}
	if blank != nil {
		own[keyText] = blank
	}
	_, err = f.store.AddMemory(ctx, souvenir.NewMemory{Collection: f.collection, ProjectID: f.project.ID,
		ProjectName: f.project.Name, EventType: eventFile, Content: content, Metadata: own})
	return err
}

func (f files) write(ctx context.Context, to file, text string) error {
	content, blank, err := stored(to.path, text)
	if err != nil {
		return err
	}
	_, err = f.store.UpdateMemory(ctx, to.id, souvenir.MemoryUpdate{Content: &content,
		Metadata: map[string]any{keyText: blank}})
	return err
}

// move gives a file another path. It stays the same memory, with its history, links and metadata.
func (f files) move(ctx context.Context, from file, to string) error {
	to, err := clean(to) // it may have become too long
	if err != nil {
		return err
	}
	update := souvenir.MemoryUpdate{Metadata: map[string]any{keyPath: to, keyAbove: above(to)}}
	if isBlank(from.text) {
		update.Content = &to
	}
	_, err = f.store.UpdateMemory(ctx, from.id, update)
	return err
}

// delete deletes a file, or a directory with all files in it, and returns how many.
func (f files) delete(ctx context.Context, path string) (deleted int, err error) {
	for _, condition := range []souvenir.Filter{at(path), below(path)} {
		done, err := f.store.DeleteMemories(ctx, souvenir.MemoriesDeletion{MemoryList: f.list(condition)})
		if err != nil {
			return 0, err
		}
		if done.ReadOnly > 0 {
			return 0, refuse("Error: %s is shared read-only and cannot be deleted", path)
		}
		deleted += done.Changed
	}
	return deleted, nil
}

// entry is a line of a listing: a file, or a directory with the size of all that is in it.
type entry struct {
	path  string
	bytes int
	files int
}

// size returns the size as a person writes it: 512B, 5.5K, 1.2M.
func (e entry) size() string {
	size, units := float64(e.bytes), "BKMG"
	for size >= 1024 && len(units) > 1 {
		size, units = size/1024, units[1:]
	}
	return strings.TrimSuffix(strconv.FormatFloat(size, 'f', 1, 64), ".0") + units[:1]
}

// entries lists a directory, itself first, and its content up to two levels deep.
func (f files) entries(ctx context.Context, directory string) ([]entry, error) {
	found, err := f.read(ctx, below(directory), false)
	if err != nil {
		return nil, err
	}
	listed := map[string]entry{directory: {path: directory}}
	for _, file := range found {
		names := strings.Split(strings.TrimPrefix(file.path, directory+"/"), "/")
		if hidden := slices.IndexFunc(names, isHidden); hidden >= 0 {
			names = names[:hidden]
		} else if len(names) < 3 {
			listed[file.path] = entry{file.path, len(file.text), 1}
			names = names[:len(names)-1]
		}
		in := []string{directory}
		for i := range min(2, len(names)) {
			in = append(in, directory+"/"+strings.Join(names[:i+1], "/")+"/")
		}
		for _, at := range in {
			listed[at] = entry{at, listed[at].bytes + len(file.text), listed[at].files + 1}
		}
	}
	return slices.SortedFunc(maps.Values(listed), func(a, b entry) int { return strings.Compare(a.path, b.path) }), nil
}

// isHidden reports whether listings leave a name out.
func isHidden(name string) bool { return strings.HasPrefix(name, ".") || name == "node_modules" }

// isBlank reports whether the store refuses a text as invisible: it has white space and format characters only.
func isBlank(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return !unicode.IsSpace(r) && !unicode.Is(unicode.Cf, r) }) < 0
}

// stored returns the content of a file's memory. A memory is never blank, so the memory of a blank file has the path as
// its content and the text in its metadata; blank is nil for other files.
func stored(path, text string) (content string, blank any, err error) {
	if len(text) > souvenir.MaxContent {
		return "", nil, refuse("Error: %s would have %d bytes; a file may have %d", path, len(text), souvenir.MaxContent)
	}
	if isBlank(text) {
		return path, text, nil
	}
	return text, nil, nil
}

// clean returns a path in its one form: /memories, or /memories/NAME/NAME.
func clean(given string) (string, error) {
	inside, ok := strings.CutPrefix(given, root)
	if !ok || inside != "" && inside[0] != '/' {
		return "", refuse("Error: Path must start with %s, got: %s", root, cut(given))
	}
	lower := strings.ToLower(given)
	for _, part := range strings.FieldsFunc(lower, func(r rune) bool { return r == '/' || r == '\\' }) {
		if part == ".." || strings.Contains(part, "%2e") || strings.Contains(part, "%2f") || strings.Contains(part, "%5c") {
			return "", refuse("Error: Path %s would escape %s directory", cut(given), root)
		}
	}
	if strings.ContainsFunc(given, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' }) {
		return "", refuse("Error: Path %q has a backslash or a control character; use printable names", cut(given))
	}
	cleaned := path.Clean(given)
	if len(cleaned) > maxPath {
		return "", refuse("Error: Path %s has %d bytes; at most %d are allowed", cut(cleaned), len(cleaned), maxPath)
	}
	if depth := len(above(cleaned)); depth > maxDepth {
		return "", refuse("Error: Path %s is in %d directories; at most %d are allowed", cut(cleaned), depth, maxDepth)
	}
	return cleaned, nil
}

// above returns the directories that a path is in, without /memories, the nearest first.
func above(file string) []string {
	directories := []string{}
	for at := path.Dir(file); len(at) > len(root); at = path.Dir(at) {
		directories = append(directories, at)
	}
	return directories
}

// linesOf returns the lines of a text. An empty one has one line, which is empty.
func linesOf(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

// ended returns a text whose last line is complete.
func ended(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// occurrences lists the lines in which a text begins, at most twenty.
func occurrences(text, sought string) string {
	var lines []string
	line := 1
	for {
		next := strings.Index(text, sought)
		if next < 0 {
			return strings.Join(lines, ", ")
		}
		if len(lines) == 20 {
			return strings.Join(lines, ", ") + " and more"
		}
		line += strings.Count(text[:next], "\n")
		lines = append(lines, strconv.Itoa(line))
		end := strings.IndexByte(text[next:], '\n')
		if end < 0 {
			return strings.Join(lines, ", ")
		}
		text = text[next+end+1:]
		line++
	}
}

// cut shortens a text of the caller's for a message.
func cut(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// refusal is an error whose text is for the model.
type refusal struct {
	text  string
	cause error
}

func (r refusal) Error() string { return r.text }
func (r refusal) Unwrap() error { return r.cause }

func refuse(format string, args ...any) error { return refusal{text: fmt.Sprintf(format, args...)} }

// orRefuse returns the error, or a refusal if there is none.
func orRefuse(err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	return refuse(format, args...)
}
