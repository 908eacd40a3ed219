// Package corpus makes real text for measurements from the comments in Go's sources.
package corpus

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/fnv"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// Comments returns the paragraphs of the comments in the Go sources below a directory, each once. The order depends
// only on the texts and does not keep neighbours together.
func Comments(dir string) ([]string, error) {
	hashes := map[string]uint64{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil // invalid on purpose, for a test of a compiler
		}
		for _, group := range file.Comments {
			for _, text := range paragraphs(group) {
				hash := fnv.New64a()
				_, _ = hash.Write([]byte(text))
				hashes[text] = hash.Sum64()
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	all := make([]string, 0, len(hashes))
	for text := range hashes {
		all = append(all, text)
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(hashes[a], hashes[b]), cmp.Compare(a, b)) })
	return all, nil
}

// paragraphs returns the paragraphs of a comment that have at least about a sentence.
func paragraphs(group *ast.CommentGroup) (all []string) {
	for p := range strings.SplitSeq(group.Text(), "\n\n") {
		if words := strings.Fields(p); len(words) >= 6 && len(words) <= 120 {
			all = append(all, strings.Join(words, " "))
		}
	}
	return all
}
