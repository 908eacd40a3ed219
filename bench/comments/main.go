// Comments prints the paragraphs of the comments in the Go sources below a directory, each once and on its own line.
// The order depends only on the texts and does not keep neighbours together. Other measurements use them as real text
// for memories and questions. The sources of Go itself have about 110,000.
//
//	go run ./comments "$(go env GOROOT)/src" > TEXTS
package main

import (
	"bufio"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/souvenir-ai/souvenir/bench/internal/corpus"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: go run ./comments DIRECTORY")
	}
	if err := run(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(dir string) error {
	texts, err := corpus.Comments(dir)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	for _, text := range texts {
		_, err = fmt.Fprintln(out, text)
	}
	return errors.Join(err, out.Flush())
}
