package main

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/bench/internal/corpus"
)

// fewest and most bound the number of words of a text.
const (
	fewest = 6
	most   = 60
)

// makeCorpus returns n different texts and as many questions as wanted. The texts are paragraphs of Go's documentation
// and of the descriptions of Debian's packages, where apt has a list of them; if these do not suffice, the others are
// made of two paragraphs' halves. A question is eight words in a row from a text that is not stored.
func makeCorpus(n, questions int) (texts, asked []string, err error) {
	paragraphs, err := documentation()
	if err != nil {
		return nil, nil, err
	}
	described, err := descriptions()
	if err != nil {
		return nil, nil, err
	}
	paragraphs = distinct(append(paragraphs, described...))
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(len(paragraphs), func(i, j int) { paragraphs[i], paragraphs[j] = paragraphs[j], paragraphs[i] })
	if len(paragraphs) < 2*questions {
		return nil, nil, fmt.Errorf("only %d paragraphs are here: too few for %d questions", len(paragraphs), questions)
	}
	for _, p := range paragraphs[:questions] {
		words := strings.Fields(p)
		start := random.IntN(max(1, len(words)-8))
		asked = append(asked, strings.Join(words[start:min(start+8, len(words))], " "))
	}
	paragraphs = paragraphs[questions:]
	texts = paragraphs[:min(n, len(paragraphs))]
	have := map[string]bool{}
	for len(texts) < n {
		a := strings.Fields(paragraphs[random.IntN(len(paragraphs))])
		b := strings.Fields(paragraphs[random.IntN(len(paragraphs))])
		text := strings.Join(append(a[:len(a)/2:len(a)/2], b[len(b)/2:]...), " ")
		if !have[text] {
			have[text] = true
			texts = append(texts, text)
		}
	}
	return texts, asked, nil
}

// distinct removes texts that occur twice, in place.
func distinct(texts []string) []string {
	have := make(map[string]bool, len(texts))
	kept := texts[:0]
	for _, t := range texts {
		if !have[t] {
			have[t] = true
			kept = append(kept, t)
		}
	}
	return kept
}

// documentation returns the paragraphs of the comments in Go's standard library.
func documentation() (paragraphs []string, err error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	comments, err := corpus.Comments(filepath.Join(strings.TrimSpace(string(root)), "src"))
	for _, c := range comments {
		paragraphs = appendText(paragraphs, c)
	}
	return paragraphs, err
}

// descriptions returns the descriptions of Debian's packages, none where there is no apt.
func descriptions() (texts []string, err error) {
	command := exec.Command("apt-cache", "dumpavail")
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); errors.Is(err, exec.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var text strings.Builder
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	inside := false
	for lines.Scan() {
		first, isField := strings.CutPrefix(lines.Text(), "Description:")
		switch {
		case isField:
			inside = true
			text.WriteString(first + ": ")
		case inside && strings.TrimSpace(lines.Text()) == ".", inside && !strings.HasPrefix(lines.Text(), " "):
			texts = appendText(texts, text.String())
			text.Reset()
			inside = strings.HasPrefix(lines.Text(), " ")
		case inside:
			text.WriteString(lines.Text())
		}
	}
	return texts, errors.Join(lines.Err(), command.Wait())
}

// appendText appends a text of a length that a memory may have, with single spaces.
func appendText(texts []string, text string) []string {
	words := strings.Fields(text)
	if len(words) < fewest || !utf8.ValidString(text) || strings.Contains(text, "\x00") {
		return texts
	}
	return append(texts, strings.Join(words[:min(len(words), most)], " "))
}
