// Http compares the server with the library: how many searches and adds per second it answers over 16 connections, what
// HTTP and MCP add to a search, how much memory it needs with an empty store and while it transfers a large file, and
// how large the program is. Client and server share the machine. Linux only.
//
//	go run ./http [-memories 10000] [-users 1] [-seconds 5] [-rounds 3] [-mib 1024] [-dir DIR]
//	go run ./http -fair [-memories 10000] [-seconds 5] [-rounds 3] [-binary PROGRAM]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// settings are the flags.
type settings struct {
	memories, users, connections, rounds int
	seconds                              time.Duration
	large                                int64 // bytes
	dir                                  string
	fair                                 bool
	binary                               string // empty: build it
	attack, token                        string // address of a server to search, and the token
	ranked                               bool   // this process has a client's priority
}

func main() {
	log.SetFlags(0)
	var s settings
	flag.IntVar(&s.memories, "memories", 10_000, "memories that the store has")
	flag.IntVar(&s.users, "users", 1, "users who share the connections, with as many memories each")
	flag.IntVar(&s.connections, "connections", 16, "connections over which requests come at once")
	flag.IntVar(&s.rounds, "rounds", 3, "how often rates are measured; the median is shown")
	seconds := flag.Int("seconds", 5, "seconds of each round")
	mib := flag.Int64("mib", 1024, "MiB of the large file; 0: none")
	flag.StringVar(&s.dir, "dir", os.TempDir(), "where the stores are made")
	flag.BoolVar(&s.fair, "fair", false, "measure one user's searches beside another user's, and nothing else")
	flag.StringVar(&s.binary, "binary", "", "the program to measure; empty: it is built from the sources")
	flag.StringVar(&s.attack, "attack", "",
		"search the server at this address until the standard input ends, and nothing else; -fair starts such a process")
	flag.StringVar(&s.token, "token", "", "the token for -attack")
	flag.BoolVar(&s.ranked, "ranked", false, "this process has the priority of the measured client; -fair sets it")
	flag.Parse()
	s.seconds, s.large = time.Duration(*seconds)*time.Second, *mib<<20
	if err := run(s); err != nil {
		log.Fatal(err)
	}
}

func run(s settings) (err error) {
	if s.attack != "" {
		return attackUntilClosed(s)
	}
	if s.fair && !s.ranked && canRank() {
		return again("-ranked")
	}
	s.dir, err = os.MkdirTemp(s.dir, "http")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	binary := filepath.Join(s.dir, "souvenir")
	if s.binary != "" {
		binary = s.binary
	} else if err := build(binary); err != nil {
		return err
	}
	info, err := os.Stat(binary)
	if err != nil {
		return err
	}
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return err
	}
	fmt.Printf("load of the machine before: %s\n\n", strings.Join(strings.Fields(string(load))[:3], " "))
	fmt.Printf("%-52s %10s  %s\n", "what", "goal", "measured")
	if s.fair {
		return fair(binary, s)
	}
	line("program, stripped", "45 MB", fmt.Sprintf("%.1f MB", mb(info.Size())))
	if err := empty(binary, s); err != nil {
		return err
	}
	if err := full(binary, s); err != nil {
		return err
	}
	if s.large > 0 {
		return large(binary, s)
	}
	return nil
}

func line(what, goal, measured string) { fmt.Printf("%-52s %10s  %s\n", what, goal, measured) }

func mb(bytes int64) float64 { return float64(bytes) / 1e6 }

// empty measures a server on an empty store.
func empty(binary string, s settings) (err error) {
	_, token, err := makeStore(filepath.Join(s.dir, "empty.db"), 0)
	if err != nil {
		return err
	}
	p, err := start(binary, filepath.Join(s.dir, "empty.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	c, err := dial(p.address)
	if err != nil {
		return err
	}
	defer c.close()
	if _, err := c.do(listing(token)); err != nil {
		return err
	}
	now, _, err := p.resident()
	if err != nil {
		return err
	}
	line("resident, idle, empty store", "40 MB", fmt.Sprintf("%.1f MB", mb(now)))
	return nil
}

// full measures rates and latency on a store with many memories.
func full(binary string, s settings) (err error) {
	path := filepath.Join(s.dir, "full.db")
	user, token, err := makeStore(path, s.memories)
	if err != nil {
		return err
	}
	all := []string{token}
	for i := 1; i < s.users; i++ {
		another, err := addUser(path, fmt.Sprint("user", i), s.memories)
		if err != nil {
			return err
		}
		all = append(all, another)
	}
	p, err := start(binary, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	if err := latency(p, path, user, token); err != nil {
		return err
	}
	queries, there := texts(512, 8, 8), texts(2048, 12, 27) // as in makeStore, so all of them exist
	memories := texts(40_000, 11, 27)
	for _, kind := range []struct {
		what, goal string
		request    func(token, text string) []byte
		texts      []string
	}{
		{"searches a second", "1,500", protocol(overHTTP).search, queries},
		{"the same over MCP", "1,000", protocol(overMCP).search, queries},
		{"stores a second", "1,500", protocol(overHTTP).store, memories[:20_000]},
		{"the same over MCP", "1,000", protocol(overMCP).store, memories[20_000:]},
		{"stores a second of texts that are there", "", protocol(overHTTP).store, there},
	} {
		requests := make([][]byte, len(kind.texts))
		for i, text := range kind.texts {
			requests[i] = kind.request(all[i%len(all)], text)
		}
		var rates, medians, busy []float64
		for range s.rounds {
			before, err := p.processorTime()
			if err != nil {
				return err
			}
			took, err := rate(p.address, requests, s.connections, s.seconds)
			if err != nil {
				return err
			}
			rates = append(rates, float64(len(took))/s.seconds.Seconds())
			medians = append(medians, milliseconds(median(took)))
			after, err := p.processorTime()
			if err != nil {
				return err
			}
			busy = append(busy, milliseconds(after-before)/float64(len(took)))
		}
		line(fmt.Sprintf("%s, %d memories, %d connections, users: %d", kind.what, s.memories, s.connections, s.users),
			kind.goal,
			fmt.Sprintf("%.0f (%.1f ms median; rounds %s; %.2f ms of the server's processor time each)", median(rates),
				median(medians), rounded(rates), median(busy)))
	}
	now, _, err := p.resident()
	if err != nil {
		return err
	}
	line("resident, after all that", "", fmt.Sprintf("%.1f MB", mb(now)))
	return nil
}

// latency compares a search over one connection, with and without MCP, with one through the library. It alternates
// them, so that other work on the machine affects all.
func latency(p *process, path, user, token string) error {
	ctx := context.Background()
	whole, err := souvenir.Open(ctx, path, nil)
	if err != nil {
		return err
	}
	defer whole.Close()
	view := whole.As(souvenir.Access{User: user})
	c, err := dial(p.address)
	if err != nil {
		return err
	}
	defer c.close()
	var inside, http, mcp []time.Duration
	for i, text := range texts(1_100, 8, 8) {
		began := time.Now()
		if _, err := view.Search(ctx, souvenir.Query{Text: text, Limit: 7}); err != nil {
			return err
		}
		library := time.Now()
		if _, err := c.do(protocol(overHTTP).search(token, text)); err != nil {
			return err
		}
		between := time.Now()
		if _, err := c.do(protocol(overMCP).search(token, text)); err != nil {
			return err
		}
		if i >= 100 { // all have warmed up
			inside, http, mcp = append(inside, library.Sub(began)), append(http, between.Sub(library)),
				append(mcp, time.Since(between))
		}
	}
	a, b, d := milliseconds(median(inside)), milliseconds(median(http)), milliseconds(median(mcp))
	line("median added to a search by HTTP, one connection", "1 ms",
		fmt.Sprintf("%.2f ms (library %.2f, HTTP %.2f)", b-a, a, b))
	line("median added to that by MCP", "1 ms", fmt.Sprintf("%.2f ms (MCP %.2f)", d-b, d))
	return nil
}

// large measures the memory needed to receive and send a large file.
func large(binary string, s settings) (err error) {
	path := filepath.Join(s.dir, "large.db")
	_, token, err := makeStore(path, 0)
	if err != nil {
		return err
	}
	p, err := start(binary, path, "--max-file", "0")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	began := time.Now()
	id, err := upload(p.address, token, s.large)
	if err != nil {
		return err
	}
	if err := report(p, "upload", s.large, time.Since(began)); err != nil {
		return err
	}
	if err := p.forgetMost(); err != nil {
		return err
	}
	began = time.Now()
	if err := download(p.address, token, id, s.large); err != nil {
		return err
	}
	return report(p, "download", s.large, time.Since(began))
}

func report(p *process, what string, size int64, took time.Duration) error {
	_, most, err := p.resident()
	if err != nil {
		return err
	}
	line(fmt.Sprintf("resident at most, %s of %d MiB", what, size>>20), "100 MB",
		fmt.Sprintf("%.1f MB (%.0f MB/s)", mb(most), mb(size)/took.Seconds()))
	return nil
}

func median[T float64 | time.Duration](all []T) T {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func rounded(rates []float64) string {
	var words []string
	for _, r := range rates {
		words = append(words, fmt.Sprintf("%.0f", r))
	}
	return strings.Join(words, ", ")
}
