package service

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// newLink returns a link to a service that needs no key.
func newLink(t *testing.T, base string, timeout time.Duration) *Link {
	t.Helper()
	l, err := New(Settings{BaseURL: base, KeyOptional: true, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestRetryAfterIsSecondsOrADate(t *testing.T) {
	now := time.Date(2026, 11, 24, 1, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{"7": 7 * time.Second, "-1": 0, "": 0, "soon": 0,
		"Tue, 24 Nov 2026 01:00:30 GMT": 30 * time.Second, "Tue, 24 Nov 2026 00:00:00 GMT": 0, "99999999999": 0,
		"Fri, 31 Dec 9999 23:59:59 GMT": 1 << 31 * time.Second} {
		if got := retryAfter(value, now); got != want {
			t.Errorf("Retry-After %q: got %s, want %s", value, got, want)
		}
	}
}

func TestAttemptsAndPausesAreBounded(t *testing.T) {
	for _, patience := range []time.Duration{time.Minute, time.Second} {
		count := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			count++
			w.WriteHeader(http.StatusBadGateway)
		}))
		defer server.Close()
		l := newLink(t, server.URL, time.Minute)
		var waited time.Duration
		l.pause = func(_ context.Context, d time.Duration) error { waited += d; return nil }
		_, err := l.Post(t.Context(), "/", nil, patience, 100)
		if err == nil || !strings.Contains(err.Error(), "502 Bad Gateway") {
			t.Errorf("got the error %v, want one with 502 Bad Gateway", err)
		}
		if count > Attempts || waited > patience {
			t.Errorf("got %d attempts and pauses of %s, want at most %d and %s", count, waited, Attempts, patience)
		}
	}
}

func TestACallWithAShortTimeoutIsNotRetried(t *testing.T) {
	var count atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		count.Add(1)
		_, _ = io.Copy(io.Discard, r.Body) // so that the end of the connection is noticed
		<-r.Context().Done()
	}))
	defer server.Close()
	l := newLink(t, server.URL, time.Second+time.Millisecond)
	l.pause = func(context.Context, time.Duration) error { return nil }
	_, err := l.Post(t.Context(), "/", []byte("{}"), time.Second, 100)
	if !errors.Is(err, context.DeadlineExceeded) || count.Load() != 1 {
		t.Errorf("got %d attempts and the error %v, want 1 and a timeout", count.Load(), err)
	}
}
