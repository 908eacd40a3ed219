// Command cituskill loads servers whose stores are on different workers of a Citus cluster, kills one store's worker,
// starts it again, moves the store to the other worker, and searches for every memory that was acknowledged.
//
//	cituskill SECONDS KILL START MOVE STORE...
//
// KILL, START and MOVE are shell commands. A STORE is TOKEN@URL,URL: two servers of one store. The killed worker is
// that of the first store, and this store is moved. cituskill fails if a server of another store fails meanwhile, if
// one of the first does not answer 503 with Retry-After, or if something acknowledged is missing afterwards.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cituskill:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 5 {
		return errors.New("SECONDS KILL START MOVE STORE... are expected")
	}
	seconds, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	return load(time.Duration(seconds)*time.Second, args[1], args[2], args[3], args[4:])
}

// Phases of the load.
const (
	before = iota
	killed
	after
	moving
	phases
)

// store is a store with several servers, and the requests to it.
type store struct {
	token   string
	servers []string
	phase   *atomic.Int64

	mu       sync.Mutex
	asked    int
	stored   map[string]string   // acknowledged: id -> content
	sent     map[string]bool     // contents that were not acknowledged
	statuses [phases]map[int]int // of answers to requests that began and ended in the phase
	wrong    []string
}

func newStore(argument string, phase *atomic.Int64) (*store, error) {
	token, servers, found := strings.Cut(argument, "@")
	if !found {
		return nil, fmt.Errorf("the store %q is not TOKEN@URL,URL", argument)
	}
	s := &store{token: token, servers: strings.Split(servers, ","), phase: phase, stored: map[string]string{},
		sent: map[string]bool{}}
	for i := range s.statuses {
		s.statuses[i] = map[int]int{}
	}
	return s, nil
}

var client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

// call calls the tool memory on a server.
func (s *store) call(server string, arguments map[string]any) (status int, answer map[string]any) {
	began := s.phase.Load()
	body, _ := json.Marshal(map[string]any{"name": "memory", "arguments": arguments})
	request, err := http.NewRequest(http.MethodPost, server+"/tools/call", bytes.NewReader(body))
	if err != nil {
		s.fault("%v", err)
		return 0, nil
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		s.fault("%s: %v", server, err)
		return 0, nil
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	status = response.StatusCode
	unknown := status == http.StatusInternalServerError && bytes.Contains(text, []byte("may have been stored"))
	if err != nil || status != http.StatusOK && status != http.StatusServiceUnavailable && !unknown ||
		status == http.StatusServiceUnavailable && response.Header.Get("Retry-After") == "" {
		s.fault("%s %v: status %d, Retry-After %q, %.300s, %v", server, arguments, status,
			response.Header.Get("Retry-After"), text, err)
	}
	var result struct{ Content []struct{ Text string } }
	if json.Unmarshal(text, &result) == nil && len(result.Content) > 0 {
		_ = json.Unmarshal([]byte(result.Content[0].Text), &answer)
	}
	if s.phase.Load() == began {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.statuses[began][status]++
	}
	return status, answer
}

func (s *store) fault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.wrong) < 20 {
		s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
	}
}

// write adds a memory on one server, and searches for it on the next.
func (s *store) write() {
	s.mu.Lock()
	s.asked++
	n := s.asked
	s.mu.Unlock()
	content := fmt.Sprintf("Kettle %d of room %d is number %d.", n, n%97, n*7919%10007)
	server, other := s.servers[n%len(s.servers)], s.servers[(n+1)%len(s.servers)]
	status, answer := s.call(server, map[string]any{"action": "store", "content": content})
	id, _ := answer["id"].(string)
	s.mu.Lock()
	if status == http.StatusOK && id != "" {
		s.stored[id] = content
	} else {
		s.sent[content] = true
	}
	s.mu.Unlock()
	if status != http.StatusOK {
		time.Sleep(50 * time.Millisecond)
		return
	}
	status, answer = s.call(other, map[string]any{"action": "search", "query": content, "limit": 3})
	if found, _ := json.Marshal(answer); status == http.StatusOK && !strings.Contains(string(found), id) {
		s.fault("%s does not find %s, which %s has stored: %.300s", other, id, server, found)
	}
}

func load(each time.Duration, kill, start, move string, arguments []string) error {
	var phase atomic.Int64
	var all []*store
	for _, argument := range arguments {
		s, err := newStore(argument, &phase)
		if err != nil {
			return err
		}
		all = append(all, s)
	}
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for _, s := range all {
		for range 4 {
			writers.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						s.write()
					}
				}
			})
		}
	}
	time.Sleep(each)
	err := shell(kill)
	phase.Store(killed)
	time.Sleep(each)
	phase.Store(after) // it starts to answer during this phase
	err = errors.Join(err, shell(start))
	time.Sleep(each)
	phase.Store(moving)
	err = errors.Join(err, shell(move))
	time.Sleep(each)
	close(stop)
	writers.Wait()
	for i, s := range all {
		fmt.Printf("store %d: %d acknowledged; statuses before %v, while the worker was away %v, after its start %v, "+
			"during and after the move %v\n", i+1, len(s.stored), s.statuses[before], s.statuses[killed], s.statuses[after],
			s.statuses[moving])
		err = errors.Join(err, s.check(i == 0))
	}
	return err
}

func shell(command string) error {
	out, err := exec.Command("bash", "-c", command).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, out)
	}
	return nil
}

// check examines the servers' answers, and searches for everything that they acknowledged.
func (s *store) check(ended bool) error {
	missing, late := 0, 0
	for id, content := range s.stored {
		for _, server := range s.servers {
			status, answer := s.call(server, map[string]any{"action": "retrieve", "id": id})
			if got, _ := json.Marshal(answer); status != http.StatusOK || !strings.Contains(string(got), content) {
				missing++
				s.fault("%s: memory %s is not as acknowledged: status %d, %.300s", server, id, status, got)
			}
		}
	}
	for content := range s.sent { // without an answer: stored at most once
		_, answer := s.call(s.servers[0], map[string]any{"action": "search", "query": content, "limit": 3})
		switch got, _ := json.Marshal(answer); strings.Count(string(got), content) {
		case 0:
		case 1:
			late++
		default:
			s.fault("stored more than once, without an acknowledgement: %s", content)
		}
	}
	fmt.Printf("  %d without an answer, %d of them stored; %d acknowledged ones missing\n", len(s.sent), late,
		missing)
	switch away := s.statuses[killed]; {
	case ended && (away[http.StatusOK] > 0 || away[http.StatusServiceUnavailable] == 0):
		s.fault("while its worker was away: got the statuses %v, want 503 only", away)
	case !ended && (len(away) != 1 || away[http.StatusOK] == 0):
		s.fault("while another worker was away: got the statuses %v, want 200 only", away)
	case s.statuses[before][http.StatusOK] == 0 || s.statuses[after][http.StatusOK] == 0 ||
		s.statuses[moving][http.StatusOK] == 0:
		s.fault("got no answers before, after, or since the move")
	}
	if len(s.wrong) > 0 {
		return errors.New(strings.Join(s.wrong, "\n"))
	}
	return nil
}
