package systemtest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// Histories: several clients call the same object through several servers at once, which are killed now and then. All
// results must be possible if each call takes effect at one moment between its start and its return (linearizability;
// Herlihy and Wing 1990), across all servers. A call without an answer may take effect at any later moment, or never.

// state is the state of an object in its model.
type state struct {
	There    bool
	Text, ID string // id "": unknown, since the call that added the memory got no answer
	Revision int
}

// write returns the state after a write that may have happened.
func (s state) write(text string, o outcome) (ok bool, next state) {
	next = state{There: true, Text: text, ID: o.ID, Revision: 1}
	if s.There {
		next = state{true, text, cmp.Or(s.ID, o.ID), s.Revision + 1}
	}
	return o.Unknown || o.Error == "" && o.Revision == next.Revision && o.Created != s.There && s.has(o.ID), next
}

// has reports whether the memory may have an id.
func (s state) has(id string) bool { return s.ID == "" || id == "" || s.ID == id }

// failed returns the state after a call that must fail.
func (s state) failed(o outcome, with string) (ok bool, next state) {
	return o.Unknown || o.Error == with, s
}

// stepText is the model of memories and rules.
func stepText(s state, c call, o outcome) (ok bool, next state) {
	switch {
	case c.Verb == "get" && o.Unknown:
		return true, s
	case c.Verb == "get" && !s.There:
		return o.Error == notFound, s
	case c.Verb == "get":
		ok = o.Error == "" && o.Text == s.Text && o.Revision == s.Revision && s.has(o.ID)
		s.ID = o.ID
		return ok, s
	case c.Verb == "put":
		return s.write(c.Text, o)
	case c.ID != "" && (!s.There || s.ID != c.ID), c.Verb == "delete" && !s.There:
		return s.failed(o, notFound)
	case c.Revision != 0 && (!s.There || s.Revision != c.Revision):
		return s.failed(o, conflict)
	case c.Verb == "delete":
		return o.Unknown || o.Error == "", state{}
	}
	return s.write(c.Text, o)
}

// stepTodo is the model of a todo; see onTodo.
func stepTodo(s state, c call, o outcome) (ok bool, next state) {
	if s.Text == "" {
		s = state{true, "none 0000", "", 1}
	}
	var spec, done string
	_, _ = fmt.Sscan(s.Text, &spec, &done)
	next = s
	switch {
	case c.Verb == "get":
		return o.Unknown || o.Error == "" && o.Text == s.Text && o.Revision == s.Revision, s
	case c.Revision != 0 && c.Revision != s.Revision:
		return s.failed(o, conflict)
	case c.Verb == "section":
		next.Text, next.Revision = c.Text+" "+done, s.Revision+1
		return o.Unknown || o.Error == "" && o.Revision == next.Revision, next
	}
	bits, task := []byte(done), 0
	_, _ = fmt.Sscanf(c.ID, "T%d", &task)
	changes := bits[task-1] == '0'
	if changes {
		bits[task-1] = '1'
		next.Text, next.Revision = spec+" "+string(bits), s.Revision+1
	}
	return o.Unknown || o.Error == "" && o.Created == changes && o.Revision == next.Revision, next
}

// stepMember is the model of a member, whose text is a role.
func stepMember(s state, c call, o outcome) (ok bool, next state) {
	member := s.Text != ""
	switch {
	case c.Verb == "get", c.Verb == "see":
		return o.Unknown || o.Error == "" && o.Text == s.Text, s
	case c.Verb == "add" && member:
		return s.failed(o, conflict)
	case c.Verb != "add" && !member:
		return s.failed(o, notFound)
	}
	return o.Unknown || o.Error == "", state{Text: c.Text}
}

func modelOf(step func(s state, c call, o outcome) (bool, state)) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return state{} },
		Step: func(s, c, o any) (bool, any) { return step(s.(state), c.(call), o.(outcome)) },
	}
}

var models = map[string]porcupine.Model{"memory": modelOf(stepText), "rule": modelOf(stepText),
	"todo": modelOf(stepTodo), "member": modelOf(stepMember)}

// client calls one object, and remembers its last result.
type client struct {
	object string
	n      int // number of the client
	random *rand.Rand
	seen   outcome
}

// next is the client's next call.
func (c *client) next(i int) call {
	n := call{Object: c.object, Text: fmt.Sprintf("t%d.%d", c.n, i)}
	dice := c.random.IntN(10)
	switch n.kind() {
	case "memory", "rule":
		switch memory := n.kind() == "memory"; {
		case dice < 3 || c.seen.Revision == 0:
			n.Verb = []string{"get", "put"}[dice%2]
		case dice < 5:
			n.Verb = "put"
		case dice < 8:
			n.Verb, n.Revision = "update", c.seen.Revision
			if memory {
				n.ID = c.seen.ID
			}
		default:
			n.Verb = "delete"
			if memory {
				n.ID = c.seen.ID
			}
		}
	case "todo":
		switch {
		case dice < 4:
			n.Verb = "get"
		case dice < 7:
			n.Verb, n.ID = "complete", fmt.Sprintf("T%03d", 1+c.random.IntN(tasksOfHistory))
		default:
			n.Verb = "section"
			if dice > 7 {
				n.Revision = c.seen.Revision
			}
		}
	case "member":
		n.Text = ""
		n.Verb = []string{"get", "see", "get", "see", "add", "add", "add", "update", "delete", "delete"}[dice]
		if n.Verb == "add" || n.Verb == "update" {
			n.Text = string([]MemberRole{MemberReader, MemberWriter}[c.random.IntN(2)])
		}
	}
	return n
}

const clientsOfHistory, callsOfClient = 3, 8

// history records the results of clients for one object. It calls answered after each.
func history(t *testing.T, workers []*worker, object string, seed uint64, answered func()) (all []porcupine.Operation) {
	began := time.Now()
	if kind := (call{Object: object}).kind(); kind == "todo" || kind == "member" {
		made := outcome{Unknown: true}
		for made.Unknown {
			made = workers[0].do(call{Object: object, Verb: "make"})
		}
		if made.Error != "" && made.Error != conflict { // another client without an answer may have added it
			t.Errorf("making %s: got the error %q, want none", object, made.Error)
		}
	}
	var mu sync.Mutex
	var clients sync.WaitGroup
	for n := range clientsOfHistory {
		clients.Go(func() {
			c := client{object: object, n: n, random: rand.New(rand.NewPCG(seed, uint64(n)))}
			for i := range callsOfClient {
				asked := c.next(i)
				start := time.Since(began)
				o := workers[c.random.IntN(len(workers))].do(asked)
				end := time.Since(began)
				answered()
				if o.Unknown {
					end = time.Hour
				} else if o.Revision != 0 {
					c.seen = o
				}
				mu.Lock()
				all = append(all, porcupine.Operation{ClientId: n, Input: asked, Call: start.Nanoseconds(), Output: o,
					Return: end.Nanoseconds()})
				mu.Unlock()
				if o.Unknown { // a client makes one call at a time
					n += clientsOfHistory
				}
			}
		})
	}
	clients.Wait()
	return all
}

// historiesVariable is the number of histories to test, for each engine and number of servers.
const historiesVariable = "SOUVENIR_TEST_HISTORIES"

// TestHistoriesAreLinearizable tests many short histories of memories, rules, todos and members.
func TestHistoriesAreLinearizable(t *testing.T) {
	objects := longtest.Size(200, 8)
	if n, err := strconv.Atoi(os.Getenv(historiesVariable)); err == nil {
		objects = n
	}
	onEachEngine(t, func(t *testing.T, empty database) {
		for i, servers := range []int{3, 1} {
			if !longtest.Part(i, 1, 2) {
				continue
			}
			t.Run(fmt.Sprint(servers, " servers"), func(t *testing.T) {
				histories(t, empty.copied(t), servers, objects)
			})
		}
	})
}

func histories(t *testing.T, d database, servers, objects int) {
	s, err := d.open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{anna, ben} {
		_, err := s.As(Access{User: user}).AddMemory(context.Background(), NewMemory{Content: "The first one."})
		if err != nil {
			t.Error(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	workers := make([]*worker, servers)
	for i := range workers {
		workers[i] = &worker{t: t, where: d.where()}
		defer workers[i].kill()
	}
	numbers := make(chan int)
	go func() {
		defer close(numbers)
		for i := range objects {
			numbers <- i
		}
	}()
	var unknown, calls, kills atomic.Int64
	answered := func() { // kills a server at about every 100th answer
		if rand.IntN(100) == 0 {
			workers[rand.IntN(servers)].kill()
			kills.Add(1)
		}
	}
	var groups sync.WaitGroup
	for range 4 {
		groups.Go(func() {
			for i := range numbers {
				object := fmt.Sprintf("%s-%d", []string{"memory", "rule", "todo", "member"}[i%4], i)
				all := history(t, workers, object, uint64(i), answered)
				for _, o := range all {
					if o.Output.(outcome).Unknown {
						unknown.Add(1)
					}
				}
				calls.Add(int64(len(all)))
				if porcupine.CheckOperationsTimeout(models[call{Object: object}.kind()], all, time.Minute) != porcupine.Ok {
					t.Errorf("%s: got answers that no order of the calls explains, want some:\n%s", object, inWords(all))
				}
			}
		})
	}
	groups.Wait()
	t.Logf("%d histories, %d calls, %d without an answer, %d kills", objects, calls.Load(), unknown.Load(), kills.Load())
}

func inWords(all []porcupine.Operation) (text string) {
	for _, o := range all {
		text += fmt.Sprintf("%2d %12d %14d %+v: %+v\n", o.ClientId, o.Call, o.Return, o.Input, o.Output)
	}
	return text
}
