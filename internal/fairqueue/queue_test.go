package fairqueue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// small returns limits that tests can reach.
func small() Limits {
	return Limits{Running: 2, RunningPerUser: 1, Begun: 6, BegunPerUser: 3, Waiting: 8, WaitingPerUser: 4,
		Patience: time.Second}
}

// record records the order in which calls run.
type record struct {
	mu   sync.Mutex
	runs []string
}

func (r *record) note(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs = append(r.runs, name)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.runs, " ")
}

// One user's calls wait for each other, and another user's do not wait for them.
func TestUsersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := small()
		l.Running, l.WaitingPerUser, l.Waiting = 1, 100, 200
		q := New(l)
		first := q.Ticket()
		if err := first.Enter(t.Context(), "anna"); err != nil {
			t.Fatal(err)
		}
		var order record
		for i := range 4 {
			go func() {
				ticket := q.Ticket()
				if err := ticket.Enter(t.Context(), "anna"); err != nil {
					t.Error(err)
				}
				order.note(fmt.Sprint("a", i))
				ticket.Leave()
			}()
			synctest.Wait()
		}
		for i, user := range []string{"bob", "cleo", "bob"} {
			go func() {
				ticket := q.Ticket()
				if err := ticket.Enter(t.Context(), user); err != nil {
					t.Error(err)
				}
				order.note(user[:1] + fmt.Sprint(i))
				ticket.Leave()
			}()
			synctest.Wait()
		}
		if order.String() != "" {
			t.Fatalf("%s ran beside a call that fills the queue, want no order", &order)
		}
		first.Leave()
		synctest.Wait()
		if got, want := order.String(), "a0 b0 c1 a1 b2 a2 a3"; got != want {
			t.Errorf("calls ran as %s, want %s", got, want)
		}
		checkEmpty(t, q)
	})
}

func checkEmpty(t *testing.T, q *Queue) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running != 0 || q.begun != 0 || q.waiting != 0 || len(q.users) != 0 || q.turns.Len() != 0 {
		t.Errorf("the queue is not empty: %d running, %d begun, %d waiting, %d users, %d turns; want 0 of each",
			q.running, q.begun,
			q.waiting, len(q.users), q.turns.Len())
	}
}

// Another user's call runs at once while there is room, however many calls the first user has.
func TestAnotherUserRunsBesideOneWithManyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := small()
		l.WaitingPerUser, l.Waiting = 1000, 2000
		q := New(l)
		ctx, cancel := context.WithCancel(t.Context())
		for range 200 {
			go func() {
				if q.Ticket().Enter(ctx, "anna") == nil {
					<-ctx.Done() // and never leaves by itself
				}
			}()
		}
		synctest.Wait()
		if err := q.Ticket().Enter(t.Context(), "bob"); err != nil {
			t.Errorf("bob waits behind anna: %v", err)
		}
		cancel()
		synctest.Wait()
		q.mu.Lock()
		if q.waiting != 0 || q.running != 2 {
			t.Errorf("%d wait and %d run after the callers are gone, want waiting 0 and running 2", q.waiting, q.running)
		}
		q.mu.Unlock()
	})
}

// A call is refused with a time to retry if its queue is full, or after waiting too long.
func TestFullQueuesAndLongWaitsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(small())
		running := q.Ticket()
		if err := running.Enter(t.Context(), "anna"); err != nil {
			t.Fatal(err)
		}
		var refused record
		for range 4 {
			go func() { refused.note(fmt.Sprint(q.Ticket().Enter(t.Context(), "anna"))) }()
		}
		synctest.Wait()
		var r *Refused
		if err := q.Ticket().Enter(t.Context(), "anna"); !errors.As(err, &r) || r.After < time.Second ||
			!strings.Contains(r.Reason, "4 of your calls") {
			t.Errorf(`a call too many: got %v, want a refusal for at least %v that says "4 of your calls"`, err,
				time.Second)
		}
		other := q.Ticket()
		if err := other.Enter(t.Context(), "bob"); err != nil {
			t.Fatal(err)
		}
		for _, user := range []string{"cleo", "cleo", "dora", "dora"} {
			go func() { refused.note(fmt.Sprint(q.Ticket().Enter(t.Context(), user))) }()
		}
		synctest.Wait()
		if err := q.Ticket().Enter(t.Context(), "emil"); !errors.As(err, &r) ||
			!strings.Contains(r.Reason, "8 calls are waiting") {
			t.Errorf("a call too many of all: got %v, want \"8 calls are waiting\" in it", err)
		}
		time.Sleep(2 * time.Second)
		if got := strings.Count(refused.String(), "has waited for its turn for 1s"); got != 8 {
			t.Errorf("%d of 8 have waited for too long: %s; want 8", got, &refused)
		}
		running.Leave()
		other.Leave()
		checkEmpty(t, q)
	})
}

// A canceled caller leaves the queue, and takes no place.
func TestCancelledCallersLeaveTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(small())
		first := q.Ticket()
		if err := first.Enter(t.Context(), "anna"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- q.Ticket().Enter(ctx, "anna") }()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
		if err := q.Ticket().Enter(ctx, "bob"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
		first.Leave()
		first.Leave()
		checkEmpty(t, q)
	})
}

// A call that waits for the disk gives its place to others. When it comes back, it goes before calls that have not
// begun.
func TestPausedCallsGiveTheirPlaceBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := small()
		l.Running = 1
		q := New(l)
		ticket := q.Ticket()
		ctx := With(t.Context(), ticket)
		Pause(ctx)() // not begun: nothing happens
		if err := ticket.Enter(ctx, "anna"); err != nil {
			t.Fatal(err)
		}
		resume := Pause(ctx)
		inner := Pause(ctx) // a pause in a pause ends with the first
		second := q.Ticket()
		if err := second.Enter(t.Context(), "anna"); err != nil {
			t.Fatal(err)
		}
		var order record
		go func() {
			third := q.Ticket()
			if err := third.Enter(t.Context(), "anna"); err != nil {
				t.Error(err)
			}
			order.note("third")
			third.Leave()
		}()
		synctest.Wait()
		go func() {
			inner()
			resume()
			order.note("first")
			ticket.Leave()
		}()
		synctest.Wait()
		second.Leave()
		synctest.Wait()
		if got := order.String(); got != "first third" {
			t.Errorf("the order is %s; want \"first third\"", got)
		}
		Pause(ctx)() // it has left: nothing happens
		checkEmpty(t, q)
	})
}

// Paused calls count as begun: one user cannot fill the queues behind this one, such as the queue of writers.
func TestStartedCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(small())
		var tickets []*Ticket
		for range 3 {
			ticket := q.Ticket()
			if err := ticket.Enter(t.Context(), "anna"); err != nil {
				t.Fatal(err)
			}
			Pause(With(t.Context(), ticket))
			tickets = append(tickets, ticket)
		}
		var r *Refused
		if err := q.Ticket().Enter(t.Context(), "anna"); !errors.As(err, &r) {
			t.Errorf("a fourth call: got %v, want a refusal", err)
		}
		if err := q.Ticket().Enter(t.Context(), "bob"); err != nil {
			t.Errorf("bob: %v", err)
		}
		for _, ticket := range tickets {
			ticket.Leave()
		}
	})
}

// A stream takes turns, and is never refused.
func TestStreamsArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(small())
		running := q.Ticket()
		if err := running.Enter(t.Context(), "anna"); err != nil {
			t.Fatal(err)
		}
		var order record
		go func() {
			q.Ticket().Turn(t.Context(), "anna")
			order.note("turn")
		}()
		time.Sleep(time.Minute)
		if order.String() != "" {
			t.Errorf("a stream went on beside a call that fills the user's places: got %v, want no order", order.String())
		}
		running.Leave()
		synctest.Wait()
		if order.String() != "turn" {
			t.Errorf(`the stream did not go on: got %v, want "turn"`, order.String())
		}
		var none *Ticket
		none.Turn(t.Context(), "anna")
		if err := none.Enter(t.Context(), "anna"); err != nil {
			t.Error(err)
		}
		none.Leave()
		checkEmpty(t, q)
	})
}

// A user who is alone may run as many calls as all users together. Another user's call still runs at once, and while
// others call, there is a place for them.
func TestAUserWhoIsAloneRunsMoreCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := small()
		l.Running, l.RunningPerUser, l.Begun, l.BegunPerUser, l.Alone, l.Patience = 3, 2, 20, 10, 10*time.Second, time.Minute
		q := New(l)
		anna := make(chan *Ticket, 20)
		begin := func() {
			ticket := q.Ticket()
			if err := ticket.Enter(t.Context(), "anna"); err != nil {
				t.Error(err)
			}
			anna <- ticket
		}
		runs := func(want int, when string) {
			t.Helper()
			synctest.Wait()
			if len(anna) != want {
				t.Fatalf("%s %d calls of anna's run, want %d", when, len(anna), want)
			}
		}
		for range 4 {
			go begin()
		}
		runs(3, "alone")
		bob := q.Ticket()
		if err := bob.Enter(t.Context(), "bob"); err != nil {
			t.Fatal(err)
		}
		(<-anna).Leave() // the borrowed one
		runs(2, "beside bob")
		bob.Leave()
		runs(2, "right after bob")
		time.Sleep(l.Alone - time.Millisecond)
		runs(2, "a moment before bob is long gone")
		time.Sleep(time.Millisecond)
		runs(3, "long after bob")
		for range 3 {
			(<-anna).Leave()
		}
		checkEmpty(t, q)
		if q.borrowed != 0 {
			t.Errorf("%d places are still borrowed, want 0", q.borrowed)
		}
	})
}

// A long call still counts as company, however long ago it began.
func TestALongCallIsCompany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := small()
		l.Running, l.Alone = 3, time.Second
		q := New(l)
		bob, first := q.Ticket(), q.Ticket()
		if err := errors.Join(bob.Enter(t.Context(), "bob"), first.Enter(t.Context(), "anna")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		var r *Refused
		second := q.Ticket()
		if err := second.Enter(t.Context(), "anna"); !errors.As(err, &r) {
			t.Errorf("anna takes the place that is kept beside bob: got %v, want a refusal", err)
		}
		bob.Leave()
		if err := second.Enter(t.Context(), "anna"); err != nil {
			t.Errorf("alone: %v", err)
		}
		first.Leave()
		second.Leave()
		checkEmpty(t, q)
	})
}

// Whatever users do, no limit is exceeded and nothing is left over.
func TestLimitsAlwaysHold(t *testing.T) {
	limitsHold(t, small(), 0)
	l := small()
	l.Alone = 50 * time.Millisecond
	limitsHold(t, l, l.Running-l.RunningPerUser)
}

// limitsHold makes users act at random; one may borrow some places.
func limitsHold(t *testing.T, limits Limits, borrow int) {
	synctest.Test(t, func(t *testing.T) {
		q := New(limits)
		var mu sync.Mutex
		now := map[string]int{}
		note := func(user string, by int) {
			mu.Lock()
			defer mu.Unlock()
			now[user] += by
			now[""] += by
			if now[user] > q.limits.RunningPerUser+borrow || now[""] > q.limits.Running+borrow {
				t.Errorf("%d of %s run, %d in all, want at most %v and %v", now[user], user, now[""],
					q.limits.RunningPerUser+borrow, q.limits.Running+borrow)
			}
		}
		users := []string{"anna", "bob", "cleo", "dora"}
		var group sync.WaitGroup
		for i := range 400 {
			random := rand.New(rand.NewPCG(uint64(i), 7))
			group.Go(func() {
				time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
				user := users[min(random.IntN(8), 3)]
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+random.IntN(900))*time.Millisecond)
				defer cancel()
				ticket := q.Ticket()
				ctx = With(ctx, ticket)
				if ticket.Enter(ctx, user) != nil {
					return
				}
				defer ticket.Leave()
				for range random.IntN(3) {
					note(user, 1)
					time.Sleep(time.Duration(random.IntN(40)) * time.Millisecond)
					note(user, -1)
					resume := Pause(ctx)
					time.Sleep(time.Duration(random.IntN(40)) * time.Millisecond)
					resume()
					if ctx.Err() != nil {
						return
					}
				}
			})
		}
		group.Wait()
		checkEmpty(t, q)
		if q.borrowed != 0 {
			t.Errorf("%d places are still borrowed, want 0", q.borrowed)
		}
	})
}
