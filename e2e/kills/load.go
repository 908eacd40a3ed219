package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// load counts the calls of the clients, in all rounds.
type load struct {
	settings  *settings
	random    *rand.Rand // of the rounds
	clients   []*client
	call      *connection
	colleague *connection
	read      []int       // of each server's log, bytes
	away      atomic.Bool // the database was killed, and may not be back

	mu    sync.Mutex
	wrong []string
}

// client calls one server after the other, one call at a time.
type client struct {
	load    *load
	number  int
	random  *rand.Rand
	call    *connection
	objects map[string]*object // by mark
	last    int                // of the marks
	said    int                // of the texts

	answered, unanswered, refused int // since the last count
}

func newLoad(s *settings) *load {
	l := &load{settings: s, random: rand.New(rand.NewPCG(s.seed, 0)), call: newConnection(s.token),
		colleague: newConnection(s.colleague),
		read:      make([]int, s.servers)}
	for i := range s.clients {
		c := &client{load: l, number: i, random: rand.New(rand.NewPCG(s.seed, uint64(i+1))), call: l.call,
			objects: map[string]*object{}}
		project := fmt.Sprintf("p%d", i)
		for _, o := range []*object{{kind: rule, project: project}, {kind: todo, project: project},
			{kind: member, project: project}} {
			o.mark = mark(o.kind, i, 0)
			c.objects[o.mark] = o
		}
		if i == 0 { // a user has one set of rules
			c.objects["preferences"] = &object{kind: preferences, mark: "preferences"}
		}
		l.clients = append(l.clients, c)
	}
	return l
}

// begin makes the clients call. The returned function stops them.
func (l *load) begin(servers []*server) (stop func()) {
	var ended atomic.Bool
	var all sync.WaitGroup
	for _, c := range l.clients {
		all.Go(func() {
			for !ended.Load() {
				p := servers[c.random.IntN(len(servers))]
				if p.gone() {
					if !p.dead.Load() && l.settings.memory == 0 {
						l.fault("server %s ended by itself", p.url)
						return
					}
					time.Sleep(time.Millisecond)
					continue
				}
				c.act(p)
			}
		})
	}
	return func() {
		if !alive(servers) && len(servers) == 1 { // no server answers
			time.Sleep(10 * time.Millisecond)
		}
		ended.Store(true)
		all.Wait()
	}
}

// there counts the existing objects.
func (l *load) there() (n int) {
	for _, c := range l.clients {
		for _, o := range c.objects {
			if o.now.There {
				n++
			}
		}
	}
	return n
}

func (l *load) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.wrong) < 20 {
		l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
	}
}

func (l *load) faults() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%d faults:\n%s", len(l.wrong), strings.Join(l.wrong, "\n"))
}

// count moves what the clients counted into the totals.
func (l *load) count(sum *totals) {
	for _, c := range l.clients {
		sum.answered += c.answered
		sum.unanswered += c.unanswered
		sum.refused += c.refused
		c.answered, c.unanswered, c.refused = 0, 0, 0
	}
}

// settle records the known result of a change of an object.
func (c *client) settle(p *server, o *object, next state, what string, status int, text []byte, err error) bool {
	o.touched = true
	switch c.load.judge(p, status, text, err) {
	case answered:
		c.answered++
		o.now = next
		return true
	case unknown:
		c.unanswered++
		o.next = &next
	case refused:
		c.refused++
		time.Sleep(5 * time.Millisecond)
	case failed:
		c.load.fault("%s of %s at %s: status %d, %.400s, %v", what, o.mark, p.url, status, text, err)
		time.Sleep(50 * time.Millisecond)
	}
	return false
}

// pick returns one of the client's objects of a kind that satisfies a condition and whose calls were all answered, or
// nil.
func (c *client) pick(k kind, which func(*object) bool) *object {
	var found *object
	n := 0
	for _, o := range c.objects {
		if o.kind == k && o.next == nil && which(o) {
			if n++; c.random.IntN(n) == 0 {
				found = o
			}
		}
	}
	return found
}

func there(o *object) bool   { return o.now.There }
func inTrash(o *object) bool { return o.now.Trash }

// sentence is a new text with a mark in it.
func (c *client) sentence(mark string) string {
	c.said++
	words := []string{"kettle", "harbour", "lantern", "meadow", "winter", "ladder", "copper", "orchard",
		"signal", "planet",
		"hafen", "河流", "gömb", "naïve", "crew"}
	var b strings.Builder
	fmt.Fprintf(&b, "Note %s says for the %dth time", mark, c.said)
	length := 5 + c.random.IntN(20)
	if c.random.IntN(25) == 0 {
		length = 900 // several passages
	}
	for range length {
		b.WriteString(" " + words[c.random.IntN(len(words))])
	}
	b.WriteString(".")
	return b.String()
}
