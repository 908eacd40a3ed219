package sqlite

import (
	"context"
	"runtime"
	"strings"
	"time"
)

// nestedAfter is how long a caller waits before it looks whether it waits for itself.
const nestedAfter = 2 * time.Second

// await receives what another transaction of this process must give. One who waits within a
// transaction of its own goroutine would wait for ever: it gets ErrNested.
func await(ctx context.Context, c <-chan struct{}) error {
	look := time.NewTimer(nestedAfter)
	defer look.Stop()
	for {
		select {
		case <-c:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
			if insideTransaction() {
				return ErrNested
			}
		}
	}
}

// insideTransaction tells whether this goroutine is running the function of a transaction. Functions
// run in their caller's goroutine, so its stack names who runs them.
func insideTransaction() bool {
	pcs := make([]uintptr, 512)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, "sqlite.(*writer).perform") ||
			strings.HasSuffix(f.Function, "sqlite.(*conn).snapshot") {
			return true
		}
		if !more {
			return false
		}
	}
}
