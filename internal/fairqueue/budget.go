package fairqueue

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"
)

// Budget bounds the bytes that all calls hold in memory at once. One user may hold half of them. It is safe for
// concurrent use.
type Budget struct {
	total    int64
	patience time.Duration

	mu    sync.Mutex
	held  int64
	users map[string]int64 // bytes that each holds
	line  list.List        // of *claim, in order
}

// claim waits for bytes.
type claim struct {
	user  string
	bytes int64
	ready chan struct{} // closed when they are held
}

// NewBudget returns a budget of total bytes, for which a call waits at most patience.
func NewBudget(total int64, patience time.Duration) *Budget {
	return &Budget{total: max(total, 1), patience: patience, users: map[string]int64{}}
}

// Take waits until the user may hold that many more bytes; Return gives them back. A claim above a user's share
// counts as the whole share, so that it is served once the user holds nothing else. The error is a [*Refused], or
// that of the context.
func (b *Budget) Take(ctx context.Context, user string, bytes int64) (taken int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	c := &claim{user, min(bytes, b.share()), make(chan struct{})}
	b.mu.Lock()
	at := b.line.PushBack(c)
	b.serve()
	b.mu.Unlock()
	select {
	case <-c.ready:
		return c.bytes, nil
	default:
	}
	timer := time.NewTimer(b.patience)
	defer timer.Stop()
	select {
	case <-c.ready:
		return c.bytes, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = &Refused{fmt.Sprintf("the server is busy: the body of the request has waited for memory for %s", b.patience),
			max(time.Second, b.patience/4)}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-c.ready: // served at the same moment
		return c.bytes, nil
	default:
	}
	b.line.Remove(at)
	b.serve()
	return 0, err
}

// Return gives back what Take took.
func (b *Budget) Return(user string, taken int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held -= taken
	if b.users[user] -= taken; b.users[user] <= 0 {
		delete(b.users, user)
	}
	b.serve()
}

// Held returns the number of bytes held.
func (b *Budget) Held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// share returns the maximum number of bytes of one user.
func (b *Budget) share() int64 { return max(b.total/2, 1) }

// serve serves waiting claims in order. It passes over users at their share; when too little is left for one
// claim, all later ones wait, so that large claims are served, too.
func (b *Budget) serve() {
	for at := b.line.Front(); at != nil; {
		next := at.Next()
		c, _ := at.Value.(*claim)
		if b.users[c.user]+c.bytes <= b.share() {
			if b.held+c.bytes > b.total {
				return
			}
			b.held += c.bytes
			b.users[c.user] += c.bytes
			b.line.Remove(at)
			close(c.ready)
		}
		at = next
	}
}
