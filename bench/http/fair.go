package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// fair measures how long one user's searches take while another user has 20, 200 or 600 in progress, more than may
// wait. Both users have the same number of memories. Each round has all four cases, so that other work on the machine
// affects all of them.
//
// Three processes stand in for three machines. The measured user's client has the highest priority, then the server,
// then the other user's client: their shares of one machine's processors say nothing about the server. That takes
// real-time priorities (chrt of util-linux, as root). Without them the figures also contain the waits for each other,
// up to a tick of the kernel.
func fair(binary string, s settings) (err error) {
	fmt.Printf("real-time priorities: %v\n", s.ranked)
	path := filepath.Join(s.dir, "fair.db")
	_, victim, err := makeStore(path, s.memories)
	if err != nil {
		return err
	}
	attacker, err := addUser(path, "mallory", s.memories)
	if err != nil {
		return err
	}
	p, err := startAs(rank(s.ranked, serverRank), binary, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	queries := texts(512, 8, 8)
	for _, token := range []string{victim, attacker} { // until the index is loaded and everything is warm
		if _, err := searches(p.address, token, queries, 3*time.Second); err != nil {
			return err
		}
	}
	crowds := []int{0, 20, 200, 600}
	p50, p99 := map[int][]float64{}, map[int][]float64{}
	for range s.rounds {
		for _, crowd := range crowds {
			stop, err := startAttack(p.address, attacker, crowd)
			if err != nil {
				return err
			}
			time.Sleep(500 * time.Millisecond)
			took, err := searches(p.address, victim, queries, s.seconds)
			answered, refused, err := stop(err)
			if err != nil {
				return err
			}
			slices.Sort(took)
			a, b := milliseconds(took[len(took)/2]), milliseconds(took[len(took)*99/100])
			p50[crowd], p99[crowd] = append(p50[crowd], a), append(p99[crowd], b)
			fmt.Printf("%3d beside: p50 %8.1f ms, p99 %8.1f ms of %d searches; of the others' %d were answered and %d refused\n",
				crowd, a, b, len(took), answered, refused)
		}
	}
	for _, crowd := range crowds {
		line(fmt.Sprintf("a search while another user has %d under way", crowd), "",
			fmt.Sprintf("p50 %.1f ms, p99 %.1f ms (%.1f and %.1f times idle)", median(p50[crowd]), median(p99[crowd]),
				median(p50[crowd])/median(p50[0]), median(p99[crowd])/median(p99[0])))
	}
	return nil
}

// Priorities of processes, as arguments of chrt(1).
var (
	clientRank = []string{"--rr", "20"}
	serverRank = []string{"--rr", "10"}
	idleRank   = []string{"--idle", "0"}
)

// rank returns the words before a command that give it a priority.
func rank(can bool, to []string) []string {
	if !can {
		return nil
	}
	return append([]string{"chrt"}, to...)
}

// canRank reports whether this process may set priorities.
func canRank() bool {
	words := append(rank(true, clientRank), "true")
	return exec.Command(words[0], words[1:]...).Run() == nil
}

// again runs this program again as the measured client, with one more flag.
func again(flag string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	words := append(append(rank(true, clientRank), self), append(os.Args[1:], flag)...)
	c := exec.Command(words[0], words[1:]...)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	return c.Run()
}

// addUser adds a user with memories, and returns a token.
func addUser(path, name string, memories int) (token string, err error) {
	ctx := context.Background()
	store, err := souvenir.Open(ctx, path, nil)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	u, err := store.Accounts().AddUser(ctx, souvenir.NewUser{Name: name})
	if err != nil {
		return "", err
	}
	added, err := store.Accounts().AddToken(ctx, souvenir.NewToken{User: u.ID, Name: "bench"})
	if err != nil {
		return "", err
	}
	var all []souvenir.NewMemory
	for _, text := range texts(memories, 12, 27) {
		all = append(all, souvenir.NewMemory{Content: text})
	}
	_, err = store.As(souvenir.Access{User: u.ID}).AddMemories(ctx, all, nil)
	return added.Value, err
}

// searches runs one search after the other over one connection for some time.
func searches(address, token string, queries []string, during time.Duration) ([]time.Duration, error) {
	requests := make([][]byte, len(queries))
	for i, text := range queries {
		requests[i] = protocol(overHTTP).search(token, text)
	}
	return rate(address, requests, 1, during)
}

// attack keeps a number of searches in progress until it is stopped. It repeats a refused search at once.
func attack(address, token string, queries []string, connections int) (stop func() (answered, refused int64)) {
	ctx, cancel := context.WithCancel(context.Background())
	var answered, refused atomic.Int64
	var group sync.WaitGroup
	for i := range connections {
		group.Go(func() {
			for ctx.Err() == nil {
				c, err := dial(address)
				if err != nil {
					return
				}
				for next := i; ctx.Err() == nil; next++ {
					status, err := c.try(protocol(overHTTP).search(token, queries[next%len(queries)]))
					if err != nil {
						break
					}
					if status == http.StatusOK {
						answered.Add(1)
					} else {
						refused.Add(1)
					}
				}
				c.close()
			}
		})
	}
	return func() (int64, int64) {
		cancel()
		group.Wait()
		return answered.Load(), refused.Load()
	}
}

// startAttack starts this program as an attacking process, until it is stopped.
func startAttack(address, token string, connections int) (stop func(error) (answered, refused int64, err error),
	err error) {
	if connections == 0 {
		return func(err error) (int64, int64, error) { return 0, 0, err }, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	words := append(rank(canRank(), idleRank), "nice", "-n", "19", self, "-attack", address, "-token", token,
		"-connections", strconv.Itoa(connections))
	c := exec.Command(words[0], words[1:]...)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	c.Stdout = &out
	if err := c.Start(); err != nil {
		return nil, err
	}
	return func(before error) (answered, refused int64, err error) {
		err = errors.Join(before, in.Close(), c.Wait())
		if err == nil {
			_, err = fmt.Sscan(out.String(), &answered, &refused)
		}
		return answered, refused, err
	}, nil
}

// attackUntilClosed attacks until the standard input ends, and prints how many searches were answered and refused.
func attackUntilClosed(s settings) error {
	stop := attack(s.attack, s.token, texts(512, 8, 8), s.connections)
	_, err := io.Copy(io.Discard, os.Stdin)
	fmt.Println(stop())
	return err
}

// try sends a request and reads the answer, of any status.
func (c *connection) try(request []byte) (status int, err error) {
	if _, err := c.Write(request); err != nil {
		return 0, err
	}
	r, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	_, err = io.Copy(io.Discard, r.Body)
	return r.StatusCode, err
}
