// Comments prints the paragraphs of the comments in the Go sources below a directory, each once and on a line of its
// own, in an order that depends on the texts alone and keeps none of their neighbourhoods: real text for the memories
// and questions of other measurements. The sources of Go itself have about 110,000.
//
//	go run ./comments "$(go env GOROOT)/src" > TEXTS
package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/fnv"
	"io"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: go run ./comments DIRECTORY")
	}
	if err := run(os.Stdout, os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(to io.Writer, dir string) error {
	hashes := map[string]uint64{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil // it is wrong on purpose, for a test of a compiler
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
		return err
	}
	all := make([]string, 0, len(hashes))
	for text := range hashes {
		all = append(all, text)
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(hashes[a], hashes[b]), cmp.Compare(a, b)) })
	out := bufio.NewWriter(to)
	for _, text := range all {
		_, err = fmt.Fprintln(out, text)
	}
	return errors.Join(err, out.Flush())
}

// paragraphs returns the paragraphs of a comment that are about a sentence or more.
func paragraphs(group *ast.CommentGroup) (all []string) {
	for p := range strings.SplitSeq(group.Text(), "\n\n") {
		if words := strings.Fields(p); len(words) >= 6 && len(words) <= 120 {
			all = append(all, strings.Join(words, " "))
		}
	}
	return all
}
