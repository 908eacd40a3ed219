// Duplicates measures the detection of near duplicates on labelled pairs:
//
//	go run ./duplicates ../internal/retrieval/similarity/testdata/pairs.jsonl stsb_en.jsonl.gz
//
// A set is JSON Lines, gzipped or not: {"a", "b", "lang", "same": bool}, or with {"split", "score": 0 to 5} in place of
// same: pairs that score 4.4 or more are duplicates, those of 3.4 or less are not; the rest and the split "train" are
// skipped.
package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

type pair struct {
	A, B, Lang, Split string
	Same              *bool
	Score             float64
}

type counts struct{ pairs, same, offered, right int }

func main() {
	log.SetFlags(0)
	for _, path := range os.Args[1:] {
		if err := run(path); err != nil {
			log.Fatalf("%s: %v", path, err)
		}
	}
}

func run(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	var in io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(file); err != nil {
			return err
		}
	}
	for _, least := range []float64{0.7, 0.8, 0.9} {
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if zipped, ok := in.(*gzip.Reader); ok {
			if err := zipped.Reset(file); err != nil {
				return err
			}
		}
		all, err := measure(in, least)
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			c := all[name]
			fmt.Printf("%s from %.1f on, %-3s: %d pairs, %d the same, %d offered, precision %.1f %%, recall %.1f %%\n", path,
				least, name, c.pairs, c.same, c.offered,
				100*float64(c.right)/float64(max(1, c.offered)), 100*float64(c.right)/float64(max(1, c.same)))
		}
	}
	return nil
}

func measure(in io.Reader, least float64) (map[string]*counts, error) {
	all := map[string]*counts{"all": {}}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var p pair
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			return nil, err
		}
		same := p.Score >= 4.4
		if p.Same != nil {
			same = *p.Same
		} else if p.Split == "train" || p.Score > 3.4 && p.Score < 4.4 {
			continue
		}
		into := []*counts{all["all"]}
		if p.Lang != "" {
			if all[p.Lang] == nil {
				all[p.Lang] = &counts{}
			}
			into = append(into, all[p.Lang])
		}
		offered := souvenir.Likeness(p.A, p.B) >= least
		for _, c := range into {
			c.pairs++
			if same {
				c.same++
			}
			if offered {
				c.offered++
			}
			if offered && same {
				c.right++
			}
		}
	}
	return all, nil
}
