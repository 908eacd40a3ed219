package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
	"github.com/souvenir-ai/souvenir/postgres"
)

// pooled starts PgBouncer in transaction mode, and returns the address of a schema through it, with the settings of
// docs/postgres.md. If PgBouncer is not installed, it skips the test. ended is closed when PgBouncer ends, which 1.18
// sometimes does when clients close connections.
func pooled(t *testing.T, address string) (through string, ended <-chan struct{}) {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/pgbouncer")
	}
	if err != nil {
		t.Skip("PgBouncer is not installed: on Debian, apt-get install pgbouncer")
	}
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pgbouncer.ini")
	err = os.WriteFile(file, fmt.Appendf(nil, `[databases]
pooled = host=%s port=%s dbname=%s user=%s connect_query='SET search_path TO %s'
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 12
ignore_startup_parameters = jit, search_path, extra_float_digits
`, to.Hostname(), to.Port(), to.Path[1:], to.User.Username(), to.Query().Get("search_path"), port), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	for dir := filepath.Dir(file); len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil { // another user may have to read it
			t.Fatal(err)
		}
	}
	args := []string{file}
	if os.Getuid() == 0 { // PgBouncer refuses to run as root
		args = []string{"-u", "nobody", file}
	}
	running := exec.CommandContext(t.Context(), program, args...)
	running.Stderr = t.Output()
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		_ = running.Wait()
		close(over)
	}()
	t.Cleanup(func() { <-over }) // ended by the test's context
	through = fmt.Sprintf("127.0.0.1:%d", port)
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", through)
		if err == nil {
			_ = conn.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatalf("PgBouncer does not listen: %v", err)
		}
	}
	return fmt.Sprintf("postgres://%s@%s/pooled?sslmode=disable&default_query_exec_mode=cache_describe",
		to.User.Username(), through), over
}

// Servers behind a transaction pooler find each other's writes, and canceled calls do not disturb others.
func TestServersWorkThroughPgBouncer(t *testing.T) {
	pgtest.NotOnCitus(t, "PgBouncer 1.18 ended in 3 of 13 runs, when clients of a busy coordinator close connections")
	address, ended := pooled(t, pgtest.Address(t))
	stores := []*souvenir.Store{}
	for range 2 {
		s, err := postgres.Open(t.Context(), address, nil)
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, s)
	}
	var mu sync.Mutex
	var wrong []string
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		wrong = append(wrong, fmt.Sprintf(format, args...))
	}
	var wg sync.WaitGroup
	for user := range 4 {
		wg.Go(func() {
			access := souvenir.Access{User: fmt.Sprint("user", user)}
			for i := range 20 {
				one, other := stores[i%2].As(access), stores[1-i%2].As(access)
				content := fmt.Sprintf("The courier number %d comes on Monday.", i)
				stored, err := one.AddMemory(t.Context(), souvenir.NewMemory{Content: content})
				if err != nil {
					note("AddMemory: got %v, want no error", err)
					return
				}
				short, cancel := context.WithTimeout(t.Context(), time.Duration(i)*100*time.Microsecond)
				if _, err := other.Search(short, souvenir.Query{Text: content}); err != nil &&
					!errors.Is(err, context.DeadlineExceeded) {
					note("a search that is cancelled: got %v, want %v", err, context.DeadlineExceeded)
				}
				cancel()
				found, err := other.Search(t.Context(), souvenir.Query{Text: content})
				if err != nil || len(found.Hits) == 0 || found.Hits[0].ID != stored.ID {
					note("memory %d of user %d in the other store: got %d hits, %v; want %s first", i, user, len(found.Hits),
						err, stored.ID)
				}
			}
		})
	}
	wg.Wait()
	report, err := stores[0].Upkeep().Check(t.Context(), nil)
	if err != nil || !report.OK || report.Checked["memory"] != 80 {
		note("check: got %+v, %v; want 80 sound memories", report, err)
	}
	if len(wrong) > 0 {
		select {
		case <-ended:
			t.Skipf("PgBouncer ended by itself; until then: %q", wrong)
		case <-time.After(5 * time.Second): // its end may be noticed late
			t.Errorf("got %q, want none of it", wrong)
		}
	}
	for _, s := range stores {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
