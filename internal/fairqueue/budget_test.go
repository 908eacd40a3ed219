package fairqueue

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestBytesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(100, time.Second)
		take := func(user string, bytes int64) int64 {
			t.Helper()
			taken, err := b.Take(t.Context(), user, bytes)
			if err != nil {
				t.Fatal(err)
			}
			return taken
		}
		if got := take("anna", 500); got != 50 {
			t.Errorf("more than a user may have takes %d, want 50", got)
		}
		take("bob", 30)
		var r *Refused
		if _, err := b.Take(t.Context(), "anna", 1); !errors.As(err, &r) {
			t.Errorf("anna takes more than half: got %v, want a refusal", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 2)
		go func() {
			_, err := b.Take(ctx, "cleo", 40)
			done <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
		go func() {
			_, err := b.Take(t.Context(), "cleo", 40)
			done <- err
		}()
		synctest.Wait()
		go func() {
			_, err := b.Take(t.Context(), "dora", 10) // would fit, and waits behind cleo
			done <- err
		}()
		synctest.Wait()
		if b.Held() != 80 {
			t.Errorf("%d bytes are held, want 80", b.Held())
		}
		b.Return("anna", 50)
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if b.Held() != 80 {
			t.Errorf("%d bytes are held, want 80", b.Held())
		}
		b.Return("bob", 30)
		b.Return("cleo", 40)
		b.Return("dora", 10)
		if b.Held() != 0 || len(b.users) != 0 {
			t.Errorf("%d bytes are left over, of %v, want held 0 and no users", b.Held(), b.users)
		}
	})
}
