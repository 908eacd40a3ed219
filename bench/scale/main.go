// Scale measures searches of a large store: the time from opening it to the first answer and to the index in memory,
// then idle, after a bulk insert and during one, and the memory of the process (VmRSS, Linux only). With -users, the
// memories are divided among users, each with their own collection, and a few of them search.
//
//	go run ./scale [-memories 100000] [-users 1] [-active 50] [-index-memory BYTES] [-file STORE] [-seconds 10]
//		[-texts FILE]
//
// The store in -file is created if it does not exist, and kept; a run changes only a copy. The memories of a single
// user are the lines of -texts, and the lines after them the questions. Without -texts they are made of syllables,
// which the built-in model does not know.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/seed"
	"github.com/souvenir-ai/souvenir/internal/testing/usage"
)

// settings are the flags.
type settings struct {
	memories, users, active int
	indexMemory             int64
	file                    string
	seconds                 int
	texts                   string
	key                     souvenir.MasterKey
}

func main() {
	log.SetFlags(0)
	var s settings
	flag.IntVar(&s.memories, "memories", 100_000, "memories in the store")
	flag.IntVar(&s.users, "users", 1, "users that they belong to")
	flag.IntVar(&s.active, "active", 50, "users that search, at most")
	flag.Int64Var(&s.indexMemory, "index-memory", 0, "souvenir.Options.IndexMemory")
	flag.StringVar(&s.file, "file", "", "the store; empty: a temporary one")
	flag.IntVar(&s.seconds, "seconds", 10, "how long searches run beside a bulk insert")
	flag.StringVar(&s.texts, "texts", "", "a file of texts for the memories of a single user, one a line")
	encrypted := flag.Bool("encrypted", false, "encrypt the store, which is a temporary one")
	flag.Parse()
	if *encrypted {
		s.key = souvenir.GenerateMasterKey()
	}
	if err := run(context.Background(), s); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, s settings) (err error) {
	dir, err := os.MkdirTemp("", "scale")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if s.file == "" {
		s.file = filepath.Join(dir, "made.db")
	}
	if _, err := os.Stat(s.file); errors.Is(err, fs.ErrNotExist) {
		if err := fill(ctx, s); err != nil {
			return err
		}
	}
	path := filepath.Join(dir, "copy.db")
	if err := duplicate(s.file, path); err != nil {
		return err
	}
	_, questions, err := s.corpus(0)
	if err != nil {
		return err
	}
	start, used := time.Now(), usage.Seconds()
	store, err := souvenir.Open(ctx, path, &souvenir.Options{IndexMemory: s.indexMemory, MasterKey: s.key})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if s.users > 1 {
		return measureManyUsers(ctx, s, store, start)
	}
	if err := measureOneUser(ctx, store, questions, start, used); err != nil {
		return err
	}
	if err := afterBulk(ctx, s, store); err != nil {
		return err
	}
	return measureBesideInserts(ctx, s, store)
}

// fill makes the store.
func fill(ctx context.Context, s settings) (err error) {
	store, err := souvenir.Open(ctx, s.file, &souvenir.Options{MasterKey: s.key})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	for u := range s.users {
		view := view(store, s, u)
		memories, _, err := s.corpus(u)
		if err != nil {
			return err
		}
		for batch := range slices.Chunk(memories, 10_000) {
			if _, err := view.AddMemories(ctx, batch, nil); err != nil {
				return err
			}
		}
	}
	began := time.Now()
	err = store.Upkeep().StoreIndex(ctx)
	fmt.Printf("stored the index in %.1f s\n", time.Since(began).Seconds())
	return err
}

// view returns the store as one of the users sees it.
func view(store *souvenir.Store, s settings, user int) *souvenir.Store {
	if s.users == 1 {
		return store
	}
	return store.As(souvenir.Access{User: fmt.Sprint("user", user)})
}

func duplicate(from, to string) error {
	r, err := os.Open(from)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}

// search searches for a text, and returns the duration.
func search(ctx context.Context, store *souvenir.Store, text string) (time.Duration, error) {
	start := time.Now()
	results, err := store.Search(ctx, souvenir.Query{Text: text})
	if err == nil && len(results.Hits) == 0 {
		err = fmt.Errorf("nothing is found for %q", text)
	}
	return time.Since(start), err
}

// texts returns texts to search for: the beginnings of other memories.
func texts(n int) []string {
	all := make([]string, n)
	for i, m := range seed.Sentences(77, n) {
		all[i] = strings.Join(strings.Fields(m.Content)[:8], " ")
	}
	return all
}

// corpus returns the memories of a user, and questions.
func (s settings) corpus(user int) (memories []souvenir.NewMemory, questions []string, err error) {
	if s.texts == "" || s.users > 1 {
		return seed.Sentences(uint64(user), s.memories/s.users), texts(500), nil
	}
	data, err := os.ReadFile(s.texts)
	if err != nil {
		return nil, nil, err
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(lines) < s.memories+500 {
		return nil, nil, fmt.Errorf("%s has %d lines; -memories wants %d and 500 more for questions", s.texts, len(lines),
			s.memories)
	}
	for i, line := range lines[:s.memories] {
		memories = append(memories, souvenir.NewMemory{Content: line, EventType: "decision",
			Tags: []string{fmt.Sprint("tag", i%50)}})
	}
	for _, line := range lines[s.memories : s.memories+500] {
		questions = append(questions, strings.Join(strings.Fields(line)[:6], " "))
	}
	return memories, questions, nil
}

// report prints the durations of searches, and their processor time, if it is known.
func report(what string, took []time.Duration, seconds float64) {
	slices.Sort(took)
	at := func(share int) float64 {
		return float64(took[(len(took)-1)*share/100].Microseconds()) / 1000
	}
	fmt.Printf("%-34s %6d searches: median %.2f ms, p95 %.2f, p99 %.2f, slowest %.2f", what, len(took), at(50), at(95),
		at(99), at(100))
	if seconds > 0 {
		fmt.Printf("; %.2f ms of the processor each", 1000*seconds/float64(len(took)))
	}
	fmt.Println()
}
