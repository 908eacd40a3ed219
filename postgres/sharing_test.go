package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
)

// addAs adds a memory for a user, in the background.
func addAs(ctx context.Context, s *souvenir.Store, user, content string) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := s.As(souvenir.Access{User: user}).AddMemory(ctx, souvenir.NewMemory{Content: content})
		done <- err
	}()
	return done
}

// withUsers gives each user a memory, so that all places exist.
func withUsers(t *testing.T, s *souvenir.Store, users ...string) {
	t.Helper()
	for _, user := range users {
		if err := <-addAs(t.Context(), s, user, "The first memory of "+user+"."); err != nil {
			t.Fatal(err)
		}
	}
}

// lock locks the partitions of some users until release is called.
func lock(t *testing.T, address string, users ...string) (release func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := conn.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), `SELECT p.id FROM partition p JOIN collection c ON c.id = p.collection_id
			JOIN users u ON u.id = c.owner_id WHERE u.uid = ANY ($1) FOR UPDATE OF p`, users)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() { _ = conn.Close(t.Context()) }
}

// waits returns once a statement waits for a row lock.
func waits(t *testing.T, address string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	statement := `SELECT EXISTS (SELECT 1 FROM pg_locks w WHERE NOT w.granted
		AND EXISTS (SELECT 1 FROM pg_locks l WHERE l.pid = w.pid AND l.relation = 'partition'::regclass))`
	if pgtest.OnCitus() { // the lock is on a worker, in a table with a number
		statement = `SELECT EXISTS (SELECT 1 FROM citus_locks w WHERE NOT w.granted
			AND EXISTS (SELECT 1 FROM citus_locks l WHERE l.global_pid = w.global_pid
				AND l.relation_name LIKE current_schema() || '.partition%'))`
	}
	for waiting := false; !waiting; runtime.Gosched() {
		if err := conn.QueryRow(ctx, statement).Scan(&waiting); err != nil {
			t.Fatal("no statement waits for the lock:", err)
		}
	}
}

// A caller whose rows are locked waits, and no other.
func TestALockOfOneCallerHoldsUpNoOther(t *testing.T) {
	address := pgtest.Address(t)
	s := open(t, address, nil)
	withUsers(t, s, "ann", "ben", "cas")
	release := lock(t, address, "ann", "cas")
	defer release()
	held := []<-chan error{addAs(t.Context(), s, "cas", "Tea at nine.")}
	waits(t, address) // the next ones share a transaction
	held = append(held, addAs(t.Context(), s, "ann", "Tea at ten."))
	for n := range 5 {
		if err := <-addAs(t.Context(), s, "ben", fmt.Sprintf("Tea at %d.", n)); err != nil {
			t.Errorf("call %d of a caller without a lock: got %v, want no error", n, err)
		}
		held = append(held, addAs(t.Context(), s, "ann", fmt.Sprintf("Coffee at %d.", n)))
	}
	for i, done := range held {
		select {
		case err := <-done:
			t.Errorf("held call %d: it ended with %v before its lock", i, err)
			held[i] = nil
		default:
		}
	}
	release()
	for i, done := range held {
		if done == nil {
			continue
		}
		if err := <-done; err != nil {
			t.Errorf("held call %d, once the lock is gone: got %v, want no error", i, err)
		}
	}
	stored := map[string]int{"ann": 7, "ben": 6, "cas": 2}
	for user, want := range stored {
		if got := len(contents(t, s, user)); got != want {
			t.Errorf("%s: got %d memories, want %d", user, got, want)
		}
	}
}

func contents(t *testing.T, s *souvenir.Store, user string) (all []string) {
	t.Helper()
	for m, err := range s.As(souvenir.Access{User: user}).Memories(t.Context(), souvenir.MemoryList{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m.Content)
	}
	return all
}

// If the network falls silent at a COMMIT, the call of unknown outcome waits, and others wait only briefly.
func TestASilentNetworkDoesNotHoldUpOthers(t *testing.T) {
	address := pgtest.Address(t)
	proxy := pgtest.NewProxy(t, address)
	s := open(t, proxy.Address, nil)
	withUsers(t, s, "ann", "ben")
	for n := 0; ; n++ { // the silent commit may be one of the background work
		proxy.Cut.Store(int32(pgtest.Silent))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		err := <-addAs(ctx, s, "ann", fmt.Sprintf("Tea at %d.", n))
		cancel()
		if err == nil && n < 20 {
			continue
		}
		if !errors.Is(err, souvenir.ErrOutcomeUnknown) {
			t.Errorf("a call whose COMMIT is not answered: got %v, want %v", err, souvenir.ErrOutcomeUnknown)
		}
		break
	}
	if err := <-addAs(t.Context(), s, "ben", "Tea at ten."); err != nil {
		t.Errorf("the next call: got %v, want no error", err)
	}
	if got := strings.Join(contents(t, s, "ben"), " "); !strings.Contains(got, "Tea at ten.") {
		t.Errorf("the memories of the next caller: got %s, want them with that at ten", got)
	}
}

// A failure of one call, such as a panic, affects no other.
func TestAPanicOfOneCallerFailsNoOther(t *testing.T) {
	address := pgtest.Address(t)
	var panicked atomic.Bool
	s := open(t, address, &souvenir.Options{NewID: func() string {
		if strings.Contains(string(debug.Stack()), "(*Transactions).share") {
			panicked.Store(true)
			panic("on purpose")
		}
		return rand.Text()
	}})
	withUsers(t, s, "ann", "ben", "cas")
	release := lock(t, address, "cas")
	defer release()
	calls := []<-chan error{addAs(t.Context(), s, "cas", "Tea at nine.")}
	waits(t, address)
	for n := range 10 {
		calls = append(calls, addAs(t.Context(), s, "ann", fmt.Sprintf("Tea at %d.", n)),
			addAs(t.Context(), s, "ben", fmt.Sprintf("Tea at %d.", n)))
	}
	for i, done := range calls[1:] {
		if err := <-done; err != nil {
			t.Errorf("call %d: got %v, want no error", i, err)
		}
	}
	if !panicked.Load() {
		t.Errorf("no calls shared a transaction")
	}
	release()
	if err := <-calls[0]; err != nil {
		t.Errorf("the call that was locked: got %v, want no error", err)
	}
	for _, user := range []string{"ann", "ben"} {
		if got := len(contents(t, s, user)); got != 11 {
			t.Errorf("%s: got %d memories, want 11", user, got)
		}
	}
}

// Calls whose shared COMMIT is not answered are not stored twice.
func TestCallsWithALostCommitAreStoredOnce(t *testing.T) {
	address := pgtest.Address(t)
	proxy := pgtest.NewProxy(t, address)
	s := open(t, proxy.Address, nil)
	users := []string{"ann", "ben", "dan"}
	withUsers(t, s, append(users, "cas")...)
	lost := 0
	for n := 0; lost == 0 && n < 20; n++ { // the cut commit may be one of the background work
		release := lock(t, address, "cas")
		first := addAs(t.Context(), s, "cas", fmt.Sprintf("Tea at %d.", n))
		waits(t, address)
		proxy.Cut.Store(int32(pgtest.AfterCommit))
		var calls []<-chan error
		for _, user := range users {
			calls = append(calls, addAs(t.Context(), s, user, fmt.Sprintf("Tea at %d.", n)))
		}
		release()
		for i, done := range append(calls, first) {
			err := <-done
			if errors.Is(err, souvenir.ErrOutcomeUnknown) {
				lost++
			} else if err != nil {
				t.Errorf("call %d: got %v, want no error or %v", i, err, souvenir.ErrOutcomeUnknown)
			}
		}
	}
	if lost == 0 {
		t.Errorf("no COMMIT was lost, want one")
	}
	for _, user := range users {
		all := contents(t, s, user)
		slices.Sort(all)
		if once := slices.Compact(slices.Clone(all)); len(once) != len(all) {
			t.Errorf("%s: got the memories %q, want each once", user, all)
		}
	}
}

// A caller at the quota fails alone.
func TestACallerAtTheQuotaHoldsUpNoOther(t *testing.T) {
	address := pgtest.Address(t)
	s := open(t, address, &souvenir.Options{Quota: souvenir.Quota{Memories: 12}})
	withUsers(t, s, "ann", "ben", "cas")
	for n := range 11 {
		if err := <-addAs(t.Context(), s, "ben", fmt.Sprintf("Coffee at %d.", n)); err != nil {
			t.Fatal(err)
		}
	}
	release := lock(t, address, "cas")
	first := addAs(t.Context(), s, "cas", "Tea at nine.")
	waits(t, address)
	var ann, ben []<-chan error
	for n := range 5 {
		ann = append(ann, addAs(t.Context(), s, "ann", fmt.Sprintf("Tea at %d.", n)))
		ben = append(ben, addAs(t.Context(), s, "ben", fmt.Sprintf("Tea at %d.", n)))
	}
	release()
	for i, done := range append(ann, first) {
		if err := <-done; err != nil {
			t.Errorf("call %d of a caller with room: got %v, want no error", i, err)
		}
	}
	for i, done := range ben {
		if err := <-done; !errors.Is(err, souvenir.ErrTooLarge) {
			t.Errorf("call %d at the quota: got %v, want %v", i, err, souvenir.ErrTooLarge)
		}
	}
}
