// Scale measures searches of a large store: from opening it to the first answer and to the index in memory, idle, after
// a bulk insert and beside one, and the memory that the process holds (VmRSS, Linux only). With -users the memories
// are divided among users, each with a collection of their own, and a few of them search.
//
//	go run ./scale [-memories 100000] [-users 1] [-active 50] [-index-memory BYTES] [-file STORE] [-seconds 10]
//
// The store in -file is made if it does not exist, and is kept; what a run changes, it changes in a copy.
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
)

// settings are the flags.
type settings struct {
	memories, users, active int
	indexMemory             int64
	file                    string
	seconds                 int
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
	flag.Parse()
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
	start := time.Now()
	store, err := souvenir.Open(ctx, path, &souvenir.Options{IndexMemory: s.indexMemory})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if s.users > 1 {
		return many(ctx, s, store, start)
	}
	if err := one(ctx, store, start); err != nil {
		return err
	}
	if err := afterBulk(ctx, s, store); err != nil {
		return err
	}
	return beside(ctx, s, store)
}

// fill makes the store.
func fill(ctx context.Context, s settings) (err error) {
	store, err := souvenir.Open(ctx, s.file, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	for u := range s.users {
		view := view(store, s, u)
		for batch := range slices.Chunk(seed.Sentences(uint64(u), s.memories/s.users), 10_000) {
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

// search asks for a text, and returns how long the answer took.
func search(ctx context.Context, store *souvenir.Store, text string) (time.Duration, error) {
	start := time.Now()
	results, err := store.Search(ctx, souvenir.Query{Text: text})
	if err == nil && len(results.Hits) == 0 {
		err = fmt.Errorf("nothing is found for %q", text)
	}
	return time.Since(start), err
}

// texts returns what to search for: the beginnings of other memories.
func texts(n int) []string {
	all := make([]string, n)
	for i, m := range seed.Sentences(77, n) {
		all[i] = strings.Join(strings.Fields(m.Content)[:8], " ")
	}
	return all
}

func report(what string, took []time.Duration) {
	slices.Sort(took)
	at := func(share int) float64 {
		return float64(took[(len(took)-1)*share/100].Microseconds()) / 1000
	}
	fmt.Printf("%-34s %6d searches: median %.2f ms, p95 %.2f, p99 %.2f, slowest %.2f\n", what, len(took), at(50), at(95),
		at(99), at(100))
}
