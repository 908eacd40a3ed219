package migrate

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// chromem reads a database of chromem-go: its folder, with a folder for each collection and a file for each document,
// or a file that it exported. Both may be compressed; encrypted exports cannot be read. The name of the collection
// becomes a tag. Vectors are not imported: the store computes its own.
func chromem(_ context.Context, path string) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			yield(Item{}, err)
		case info.IsDir():
			chromemFolder(path, yield)
		case !info.Mode().IsRegular():
			yield(Item{}, fmt.Errorf("%q is neither a file nor a folder", path))
		default:
			chromemExport(path, yield)
		}
	}
}

// chromemDocument has the fields of a document that are read.
type chromemDocument struct {
	ID       string
	Metadata map[string]string
	Content  string
}

// chromemCollection is a collection in an export or, without documents, the first file of its folder.
type chromemCollection struct {
	Name      string
	Documents map[string]*chromemDocument
}

func chromemFolder(path string, yield func(Item, error) bool) {
	root, err := openFolder(path)
	if err != nil {
		yield(Item{}, err)
		return
	}
	defer root.Close()
	folders, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		yield(Item{}, err)
		return
	}
	const about = "00000000.gob" // the file about the collection
	found := false
	for _, folder := range folders {
		at := folder.Name()
		var c chromemCollection
		err := readGobIn(root, filepath.Join(at, about), &c)
		if errors.Is(err, fs.ErrNotExist) {
			err = readGobIn(root, filepath.Join(at, about+".gz"), &c)
		}
		if errors.Is(err, fs.ErrNotExist) || !folder.IsDir() {
			continue // not a collection
		}
		var files []fs.DirEntry
		if err == nil {
			files, err = fs.ReadDir(root.FS(), at)
		}
		if err != nil {
			yield(Item{}, err)
			return
		}
		found = true
		for _, file := range files {
			if name := strings.TrimSuffix(file.Name(), ".gz"); name == about || filepath.Ext(name) != ".gob" {
				continue
			}
			var d chromemDocument
			err := readGobIn(root, filepath.Join(at, file.Name()), &d)
			if !yield(d.item(c.Name), err) || err != nil {
				return
			}
		}
	}
	if !found {
		yield(Item{}, fmt.Errorf("%q has no collections of chromem-go", path))
	}
}

func chromemExport(path string, yield func(Item, error) bool) {
	var all struct{ Collections map[string]*chromemCollection }
	file, err := os.Open(path)
	if err == nil {
		err = readGob(file, maxGob, &all)
	}
	if err != nil {
		yield(Item{}, err)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(all.Collections)) {
		c := all.Collections[name]
		if c == nil { // a map in gob may contain it
			continue
		}
		for _, id := range slices.Sorted(maps.Keys(c.Documents)) {
			if !yield(c.Documents[id].item(name), nil) {
				return
			}
		}
	}
}

// maxGob bounds an export in bytes, since the whole of it is in memory.
const maxGob = 1 << 30

// readGobIn reads a value from a file in a folder.
func readGobIn(root *os.Root, name string, into any) error {
	file, err := openFile(root, name)
	if err != nil {
		return err
	}
	return readGob(file, maxObject, into)
}

// readGob reads a value from a file, which may be compressed, and closes the file.
func readGob(file *os.File, most int64, into any) error {
	defer file.Close()
	in := bufio.NewReader(file)
	var content io.Reader = in
	if start, _ := in.Peek(2); bytes.Equal(start, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return fmt.Errorf("%q: %w", file.Name(), err)
		}
		info, err := file.Stat()
		if err != nil {
			return err
		}
		content, most = unpacked, min(most, max(maxObject, info.Size()*mostUnpacked))
	}
	if err := gob.NewDecoder(bufio.NewReader(io.LimitReader(content, most))).Decode(into); err != nil {
		return fmt.Errorf("%q cannot be read as a file of chromem-go; an encrypted one cannot be imported: %w", file.Name(),
			err)
	}
	return nil
}

// item returns the memory of a document. A map in gob may contain nil.
func (d *chromemDocument) item(collection string) Item {
	if d == nil {
		return Item{Memory: souvenir.NewMemory{Key: keyOf("chromem", collection)}, Skipped: "a document is empty"}
	}
	m := souvenir.NewMemory{Key: keyOf("chromem", collection+"/"+d.ID), Content: d.Content, Tags: tagsOf(collection)}
	for key, value := range d.Metadata {
		if m.Metadata == nil {
			m.Metadata = map[string]any{}
		}
		m.Metadata[key] = value
	}
	return Item{Memory: m}
}
