package sqlite

import (
	"context"
	"runtime"
	"strings"
	"time"
)

// nestedAfter is how long a caller waits before it checks whether it waits for itself.
const nestedAfter = 2 * time.Second

// await receives what another transaction of this process must send. A caller that waits within a transaction of
// its own goroutine would wait forever: it gets ErrNested. From time to time it asks whether to give up.
func await(ctx context.Context, c <-chan struct{}, giveUp func() error) error {
	look := time.NewTicker(nestedAfter)
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
			if err := giveUp(); err != nil {
				return err
			}
		}
	}
}

// insideTransaction reports whether this goroutine is running the function of a transaction. Functions run in
// their caller's goroutine, so its stack shows it.
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
