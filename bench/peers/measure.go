package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// result holds the measurements of a peer at a size. Zero means not measured.
type result struct {
	Peer string `json:"peer"`
	Size int    `json:"size"`

	PerSecond float64 `json:"per_second"`   // texts added, embedding included
	Bytes     int64   `json:"bytes"`        // on disk
	Resident  int     `json:"resident_mib"` // after the searches and a garbage collection
	Open      float64 `json:"open_ms"`      // from opening to the first answer

	Vector times `json:"vector"`
	Words  times `json:"words"` // by words, or by words and meaning

	Found  [][]int `json:"found"`  // by vector, question by question
	Recall float64 `json:"recall"` // of the ten nearest
}

// times are durations of searches, in milliseconds.
type times struct {
	Median float64 `json:"median_ms"`
	P99    float64 `json:"p99_ms"`
}

// measure runs one stage for one peer and prints what it measured.
func measure(ctx context.Context, s settings) (err error) {
	texts, err := readLines(filepath.Join(s.folder, "texts"))
	if err != nil {
		return err
	}
	questions, err := readLines(filepath.Join(s.folder, "questions"))
	if err != nil {
		return err
	}
	at := slices.IndexFunc(peers, func(p peer) bool { return p.name == s.peers[0] })
	var r result
	place := filepath.Join(s.folder, "store")
	if s.stage == "add" {
		r, err = measureAdd(ctx, peers[at], place, texts)
	} else {
		texts = nil
		r, err = measureSearch(ctx, peers[at], place, questions)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r.stage())
}

// stage returns the result without the values that this process has not measured, since they would overwrite those of
// the other process.
func (r result) stage() map[string]any {
	if r.PerSecond > 0 {
		return map[string]any{"per_second": r.PerSecond, "bytes": r.Bytes}
	}
	return map[string]any{"resident_mib": r.Resident, "open_ms": r.Open, "vector": r.Vector, "words": r.Words,
		"found": r.Found}
}

func measureAdd(ctx context.Context, p peer, place string, texts []string) (r result, err error) {
	s, err := p.open(ctx, place)
	if err != nil {
		return r, err
	}
	start, first := time.Now(), 0
	for portion := range slices.Chunk(texts, 10_000) {
		if err := s.add(ctx, first, portion); err != nil {
			return r, errors.Join(err, s.Close())
		}
		first += len(portion)
	}
	r.PerSecond = float64(len(texts)) / time.Since(start).Seconds()
	if s.settle != nil {
		err = s.settle(ctx)
	}
	if err := errors.Join(err, s.Close()); err != nil {
		return r, err
	}
	r.Bytes, err = size(place)
	return r, err
}

func measureSearch(ctx context.Context, p peer, place string, questions []string) (r result, err error) {
	vectors, err := embed(ctx, souvenir.ForQuery, questions)
	if err != nil {
		return r, err
	}
	start := time.Now()
	s, err := p.open(ctx, place)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if s.nearest != nil {
		_, err = s.nearest(ctx, vectors[0])
	} else {
		_, err = s.find(ctx, questions[0])
	}
	if err != nil {
		return r, err
	}
	r.Open = ms(time.Since(start))
	if s.nearest != nil {
		r.Vector, r.Found, err = each(vectors, func(v []float32) ([]int, error) { return s.nearest(ctx, v) })
		if err != nil {
			return r, err
		}
	}
	if s.find != nil {
		r.Words, _, err = each(questions, func(q string) ([]int, error) { return s.find(ctx, q) })
		if err != nil {
			return r, err
		}
	}
	debug.FreeOSMemory()
	r.Resident = resident()
	return r, nil
}

// each searches for all questions twice, and returns the times and answers of the second round.
func each[Q any](questions []Q, search func(Q) ([]int, error)) (t times, found [][]int, err error) {
	var took []time.Duration
	for range 2 {
		took, found = took[:0], found[:0]
		for _, q := range questions {
			start := time.Now()
			numbers, err := search(q)
			if err != nil {
				return t, nil, err
			}
			took = append(took, time.Since(start))
			found = append(found, numbers)
		}
	}
	slices.Sort(took)
	return times{Median: ms(took[len(took)/2]), P99: ms(took[len(took)*99/100])}, found, nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// size returns the bytes of all files in a folder.
func size(folder string) (bytes int64, err error) {
	err = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	return bytes, err
}

// resident returns the memory of this process in MiB, 0 if the system does not report it.
func resident() (mib int) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, "VmRSS:"); found {
			_, _ = fmt.Sscan(rest, &mib)
		}
	}
	return mib / 1024
}

func writeLines(path string, lines []string) error {
	return os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}

func readLines(path string) (lines []string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
	}
	return lines, scanner.Err()
}

// readResults reads the results of python.py, one on each line; an empty path gives none.
func readResults(path string) (all []result, err error) {
	if path == "" {
		return nil, nil
	}
	lines, err := readLines(path)
	for _, line := range lines {
		var r result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, r)
	}
	return all, err
}
