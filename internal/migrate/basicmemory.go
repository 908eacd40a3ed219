package migrate

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/souvenir-ai/souvenir"
)

// basicMemory reads the notes of basic-memory: the Markdown files in a folder and all folders in it. Front matter gives
// title, tags, type and times; [[links]] lead to other notes, by title, permalink or path.
func basicMemory(ctx context.Context, path string) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		root, err := openFolder(path)
		if err != nil {
			yield(Item{}, err)
			return
		}
		defer root.Close()
		keys := map[string]string{} // of notes, by all names that links use
		var read kept[note]
		for n, err := range notes(root) {
			if err != nil {
				yield(Item{}, err)
				return
			}
			for _, name := range n.names() {
				keys[name] = n.key()
			}
			read.add(n, len(n.text))
		}
		if len(keys) == 0 {
			yield(Item{}, fmt.Errorf("%q has no Markdown files", path))
			return
		}
		again := read.all(ctx, path)
		if read.full {
			again = notes(root)
		}
		for n, err := range again {
			if err != nil {
				yield(Item{}, err)
				return
			}
			if !yield(n.item(keys), nil) {
				return
			}
		}
	}
}

// note is a Markdown file.
type note struct {
	path, text string // relative, with slashes; without the front matter
	changed    time.Time
	front      frontMatter
	wrong      string // why it cannot be imported
}

type frontMatter struct {
	Title     string `yaml:"title"`
	Type      string `yaml:"type"`
	Permalink string `yaml:"permalink"`
	Tags      any    `yaml:"tags"` // a list, or text with commas
	Created   string `yaml:"created"`
}

// notes yields the Markdown files in a folder. Hidden files and folders do not count.
func notes(root *os.Root) iter.Seq2[note, error] {
	return func(yield func(note, error) bool) {
		err := fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case path != "." && strings.HasPrefix(entry.Name(), "."):
				if entry.IsDir() {
					return fs.SkipDir
				}
				return nil
			case !entry.Type().IsRegular() || !strings.EqualFold(filepath.Ext(path), ".md"):
				return nil
			}
			n, err := readNote(root, path)
			if err == nil && !yield(n, nil) {
				return fs.SkipAll
			}
			return err
		})
		if err != nil {
			yield(note{}, err)
		}
	}
}

const (
	maxNote        = 2 << 20 // bytes of a file; the store takes memories of 1 MiB
	maxFrontMatter = 64 << 10
)

func readNote(root *os.Root, path string) (note, error) {
	n := note{path: path}
	file, err := root.Open(path)
	if err != nil {
		return n, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return n, err
	}
	n.changed = info.ModTime()
	content, err := io.ReadAll(io.LimitReader(file, maxNote+1))
	if len(content) > maxNote {
		n.wrong = fmt.Sprintf("it has more than %d MiB", maxNote>>20)
		return n, err
	}
	n.text = strings.ReplaceAll(strings.TrimPrefix(string(content), "\ufeff"), "\r\n", "\n")
	if rest, has := strings.CutPrefix(n.text, "---\n"); has {
		if front, text, ends := strings.Cut(rest, "\n---"); ends && len(front) <= maxFrontMatter {
			n.text = strings.TrimLeft(text, "-")
			if wrong := yaml.Unmarshal([]byte(front), &n.front); wrong != nil {
				n.front, n.wrong = frontMatter{}, "its front matter is not YAML: "+wrong.Error()
			}
		}
	}
	n.text = strings.TrimSpace(n.text)
	return n, err
}

// key returns the note's permalink, which stays when the file moves, or else its path.
func (n note) key() string {
	if n.front.Permalink != "" {
		return keyOf("basic-memory", n.front.Permalink)
	}
	return keyOf("basic-memory", strings.TrimSuffix(n.path, filepath.Ext(n.path)))
}

// title is the note's name in links.
func (n note) title() string {
	if n.front.Title != "" {
		return n.front.Title
	}
	base := n.path[strings.LastIndexByte(n.path, '/')+1:]
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// names returns the names that links may use, folded.
func (n note) names() []string {
	names := []string{strings.ToLower(n.title()), strings.ToLower(strings.TrimSuffix(n.path, filepath.Ext(n.path)))}
	if n.front.Permalink != "" {
		names = append(names, strings.ToLower(n.front.Permalink))
	}
	return names
}

// wikiLink matches a link to another note, with or without a text of its own.
var wikiLink = regexp.MustCompile(`\[\[([^\[\]|\n]+)(?:\|[^\[\]\n]*)?\]\]`)

// item returns the memory of a note. Links to missing notes stay only in the text.
func (n note) item(keys map[string]string) Item {
	m := souvenir.NewMemory{Key: n.key(), Content: n.text, Tags: n.tags(),
		Metadata: map[string]any{"path": n.path, "title": n.title()}}
	if n.wrong != "" {
		return Item{Memory: m, Skipped: n.wrong}
	}
	if title := "# " + n.title(); !strings.HasPrefix(n.text, title) {
		m.Content = strings.TrimSpace(title + "\n\n" + n.text)
	}
	m.CreatedAt = past(textTime(n.front.Created))
	if m.CreatedAt.IsZero() {
		m.CreatedAt = past(n.changed.UTC().Truncate(time.Microsecond))
	}
	var links []string
	for _, match := range wikiLink.FindAllStringSubmatch(n.text, -1) {
		if key := keys[strings.ToLower(strings.TrimSpace(match[1]))]; key != "" && key != m.Key {
			links = append(links, key)
		}
	}
	return Item{Memory: m, Links: links}
}

func (n note) tags() []string {
	var texts []string
	switch tags := n.front.Tags.(type) {
	case string:
		texts = strings.Split(tags, ",")
	case []any:
		for _, tag := range tags {
			texts = append(texts, strings.TrimPrefix(fmt.Sprint(tag), "#"))
		}
	}
	if n.front.Type != "note" {
		texts = append(texts, n.front.Type)
	}
	return tagsOf(texts...)
}
