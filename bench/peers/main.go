// Peers compares Souvenir with other stores that a Go program can embed, in one run on one machine: adding texts,
// finding by vector and by words, opening, memory and disk. All of them get the same texts and the same model, and each
// runs in its own process.
//
//	go run ./peers [-sizes 1000,10000] [-questions 200] [-peers souvenir,bleve] [-chart FILE]
//	go run ./peers -sizes 100000 -export FOLDER
//
// With cgo there is sqlite-vec in C, too; see sqlitevec.go. python.py measures peers written in Python, on the texts
// that -export writes; -with adds its results to the tables.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// settings are the flags.
type settings struct {
	sizes         []int
	questions     int
	peers         []string
	chart         string
	export, with  string
	stage, folder string // for a process that measures one peer
}

func main() {
	log.SetFlags(0)
	s, err := parse()
	if err != nil {
		log.Fatal(err)
	}
	if s.stage != "" {
		err = measure(context.Background(), s)
	} else {
		err = run(context.Background(), s)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func parse() (s settings, err error) {
	var names []string
	for _, p := range peers {
		names = append(names, p.name)
	}
	sizes := flag.String("sizes", "1000,10000", "numbers of texts")
	flag.IntVar(&s.questions, "questions", 200, "searches of each kind")
	chosen := flag.String("peers", strings.Join(names, ","), "what to measure")
	flag.StringVar(&s.chart, "chart", "", "draw the vector searches into this SVG file")
	flag.StringVar(&s.export, "export", "", "write texts and questions to this folder, and measure nothing")
	flag.StringVar(&s.with, "with", "", "results of python.py to show as well, of the same sizes")
	flag.StringVar(&s.stage, "stage", "", "internal: what this process measures")
	flag.StringVar(&s.folder, "folder", "", "internal: where")
	flag.Parse()
	s.peers = strings.Split(*chosen, ",")
	for _, name := range s.peers {
		if !slices.Contains(names, name) {
			return s, fmt.Errorf("-peers: there is no %q in this build; it has %s", name, strings.Join(names, ", "))
		}
	}
	for size := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil || n < results {
			return s, fmt.Errorf("-sizes: %q is no number of at least %d", size, results)
		}
		s.sizes = append(s.sizes, n)
	}
	return s, nil
}

func run(ctx context.Context, s settings) (err error) {
	texts, questions, err := makeCorpus(slices.Max(s.sizes), s.questions)
	if err != nil {
		return err
	}
	if s.export != "" {
		return export(ctx, s.export, texts, questions)
	}
	folder, err := os.MkdirTemp("", "peers")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	others, err := readResults(s.with)
	if err != nil {
		return err
	}
	var all []result
	for _, size := range s.sizes {
		if err := writeLines(filepath.Join(folder, "texts"), texts[:size]); err != nil {
			return err
		}
		if err := writeLines(filepath.Join(folder, "questions"), questions); err != nil {
			return err
		}
		exact, err := nearestByHand(ctx, texts[:size], questions)
		if err != nil {
			return err
		}
		for _, name := range s.peers {
			r, err := measured(ctx, name, folder, size)
			if err != nil {
				return fmt.Errorf("%s with %d texts: %w", name, size, err)
			}
			if err := r.judge(ctx, exact, texts); err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "%s with %d texts: done\n", name, size)
			all = append(all, r)
		}
		for _, r := range others {
			if r.Size != size {
				continue
			}
			if err := r.judge(ctx, exact, texts); err != nil {
				return err
			}
			all = append(all, r)
		}
	}
	printTables(os.Stdout, all)
	if s.chart == "" {
		return nil
	}
	return os.WriteFile(s.chart, draw(all), 0o644)
}

// measured makes one peer add the texts in a process and search them in another.
func measured(ctx context.Context, name, folder string, size int) (r result, err error) {
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	place := filepath.Join(folder, "store")
	defer func() { err = errors.Join(err, os.RemoveAll(place)) }()
	if err := os.Mkdir(place, 0o755); err != nil {
		return r, err
	}
	r = result{Peer: name, Size: size}
	for _, stage := range []string{"add", "search"} {
		process := exec.CommandContext(ctx, self, "-stage", stage, "-folder", folder, "-peers", name)
		process.Stderr = os.Stderr
		output, err := process.Output()
		if err != nil {
			return r, err
		}
		if err := json.Unmarshal(output, &r); err != nil {
			return r, err
		}
	}
	return r, nil
}
