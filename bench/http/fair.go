package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// fair measures how long one user's searches take while another user has 20, and 200, under way at a time. Both users have as many memories.
// Each round has all three, so that whatever else the machine does weighs on all.
func fair(binary string, s settings) (err error) {
	path := filepath.Join(s.dir, "fair.db")
	_, victim, err := makeStore(path, s.memories)
	if err != nil {
		return err
	}
	attacker, err := addAttacker(path, s.memories)
	if err != nil {
		return err
	}
	p, err := start(binary, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	queries := texts(512, 8, 8)
	for _, token := range []string{victim, attacker} { // until the index is loaded and all is warm
		if _, err := searches(p.address, token, queries, 3*time.Second); err != nil {
			return err
		}
	}
	crowds := []int{0, 20, 200}
	p50, p99 := map[int][]float64{}, map[int][]float64{}
	for range s.rounds {
		for _, crowd := range crowds {
			stop := attack(p.address, attacker, texts(512, 8, 8), crowd)
			time.Sleep(300 * time.Millisecond)
			took, err := searches(p.address, victim, queries, s.seconds)
			answered, refused := stop()
			if err != nil {
				return err
			}
			slices.Sort(took)
			a, b := milliseconds(took[len(took)/2]), milliseconds(took[len(took)*99/100])
			p50[crowd], p99[crowd] = append(p50[crowd], a), append(p99[crowd], b)
			fmt.Printf("%3d beside: p50 %8.1f ms, p99 %8.1f ms of %d searches; of the others' %d were answered and %d refused\n", crowd, a, b, len(took), answered, refused)
		}
	}
	for _, crowd := range crowds {
		line(fmt.Sprintf("a search while another user has %d under way", crowd), "",
			fmt.Sprintf("p50 %.1f ms, p99 %.1f ms (%.1f and %.1f times idle)", median(p50[crowd]), median(p99[crowd]), median(p50[crowd])/median(p50[0]), median(p99[crowd])/median(p99[0])))
	}
	return nil
}

// addAttacker adds a second user with memories, and returns a token.
func addAttacker(path string, memories int) (token string, err error) {
	ctx := context.Background()
	store, err := souvenir.Open(ctx, path, nil)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	u, err := store.AddUser(ctx, souvenir.NewUser{Name: "mallory"})
	if err != nil {
		return "", err
	}
	added, err := store.AddToken(ctx, souvenir.NewToken{User: u.ID, Name: "bench"})
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

// searches searches one after the other over one connection for some time.
func searches(address, token string, queries []string, during time.Duration) ([]time.Duration, error) {
	requests := make([][]byte, len(queries))
	for i, text := range queries {
		requests[i] = protocol(overHTTP).search(token, text)
	}
	return rate(address, requests, 1, during)
}

// attack keeps so many searches under way until it is stopped; what is refused is sent again at once.
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

// try sends a request and reads the answer, whatever it is.
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
