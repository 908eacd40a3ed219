package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	base "github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/db/dbtest"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// The tests with several processes start this test binary again, with its job in the environment.
const (
	childTask = "SOUVENIR_SQLITE_TEST_TASK"
	childFile = "SOUVENIR_SQLITE_TEST_FILE"
	childName = "SOUVENIR_SQLITE_TEST_NAME"
)

func TestMain(m *testing.M) {
	task, ok := childTasks[os.Getenv(childTask)]
	if !ok {
		os.Exit(m.Run())
	}
	if err := task(os.Getenv(childFile), os.Getenv(childName)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var childTasks = map[string]func(path, name string) error{
	"write for ever":  writeForEver,
	"contract":        writeContract,
	"write 200":       write200,
	"open":            openAndClose,
	"hold the lock":   holdTheLock,
	"read unwritable": readUnwritable,
}

func child(t *testing.T, task, path, name string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.Command(exe) // not t.Context(), which ends before the clean-up
	cmd.Env = append(os.Environ(), childTask+"="+task, childFile+"="+path, childName+"="+name, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	return cmd
}

// writeForEver writes from 8 goroutines and prints each name once its write is answered.
func writeForEver(path, _ string) error {
	db, err := Open(context.Background(), testConfig(path))
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				name := fmt.Sprintf("%d/%d", g, i)
				err := db.Write(context.Background(), insert(name))
				mu.Lock()
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				fmt.Println(name)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return nil
}

// writeContract is the process that the contract's test kills.
func writeContract(path, _ string) error {
	d, err := Open(context.Background(), Config{Path: path, ApplicationID: contractID, Migrations: Migrations()})
	if err != nil {
		return err
	}
	return dbtest.WriteUntilKilled(context.Background(), d, os.Stdout)
}

// contractID marks the files of the contract's tests.
const contractID = 0x534f5556

// KillContract kills a process that writes to a file once it has printed 200 lines, and returns what it printed.
func KillContract(t *testing.T, path string) string {
	t.Helper()
	cmd := child(t, "contract", path, "")
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	var printed strings.Builder
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		printed.WriteString(lines.Text() + "\n")
		if n == 200 {
			must(t, cmd.Process.Kill()) // what the pipe still holds was answered too
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the process ended by itself, want an error")
	}
	return printed.String()
}

func TestEveryAnsweredWriteIsThereAfterAKill(t *testing.T) {
	longtest.Only(t)
	path := newFile(t)
	answered := map[string]bool{}
	for round := range 3 {
		cmd := child(t, "write for ever", path, "")
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			answered[lines.Text()] = true
			if n == 300 {
				must(t, cmd.Process.Kill()) // what the pipe still holds was answered too
			}
		}
		if err := cmd.Wait(); err == nil || len(answered) < 300 {
			t.Fatalf("the child ended by itself after %d writes: %v, want at least 300", len(answered), err)
		}
		db := openTest(t, testConfig(path))
		stored := map[string]bool{}
		for _, name := range names(t, db) {
			stored[name] = true
		}
		for name := range answered {
			if !stored[name] {
				t.Errorf("round %d: %s was answered, but is lost", round, name)
			}
		}
		var check string
		must(t, db.Read(t.Context(), func(tx base.Tx) error { return tx.QueryRow("PRAGMA integrity_check").Scan(&check) }))
		if check != "ok" {
			t.Fatalf("round %d: integrity check: %s; want \"ok\"", round, check)
		}
		must(t, db.Write(t.Context(), func(tx base.Tx) error { _, err := tx.Exec("DELETE FROM item"); return err }))
		must(t, db.Close())
		clear(answered)
	}
}

func write200(path, name string) error {
	db, err := Open(context.Background(), testConfig(path))
	if err != nil {
		return err
	}
	defer db.Close()
	errs := make(chan error, 4)
	var longest time.Duration
	var mu sync.Mutex
	for g := range cap(errs) {
		go func() {
			for i := range 50 {
				began := time.Now()
				if err := db.Write(context.Background(), insert(fmt.Sprintf("%s/%d/%d", name, g, i))); err != nil {
					errs <- err
					return
				}
				mu.Lock()
				longest = max(longest, time.Since(began))
				mu.Unlock()
			}
			errs <- nil
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			return err
		}
	}
	fmt.Println("longest write:", longest)
	return nil
}

func TestSeveralProcessesWriteAtOnce(t *testing.T) {
	longtest.Only(t)
	path := newFile(t)
	var children []*exec.Cmd
	var outs []*strings.Builder
	for p := range 4 { // none of them finds the file, so they also race to create it
		cmd := child(t, "write 200", path, fmt.Sprint(p))
		out := new(strings.Builder)
		cmd.Stdout = out
		must(t, cmd.Start())
		children, outs = append(children, cmd), append(outs, out)
	}
	for i, cmd := range children {
		if err := cmd.Wait(); err != nil {
			t.Errorf("process %d: %v", i, err)
		}
		t.Logf("process %d: %s", i, outs[i])
	}
	if n := len(names(t, openTest(t, testConfig(path)))); n != 800 {
		t.Errorf("%d of 800 writes are stored, want 800", n)
	}
}

func openAndClose(path, _ string) error {
	db, err := Open(context.Background(), testConfig(path))
	if err != nil {
		return err
	}
	return db.Close()
}

func TestProcessesAndGoroutinesRaceToCreateAFile(t *testing.T) {
	longtest.Only(t)
	for round := range 5 {
		path := newFile(t)
		var wg sync.WaitGroup
		for range 3 {
			cmd := child(t, "open", path, "")
			must(t, cmd.Start())
			wg.Go(func() {
				if err := cmd.Wait(); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		for range 4 {
			wg.Go(func() {
				if err := openAndClose(path, ""); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		wg.Wait()
		db := openTest(t, testConfig(path))
		must(t, db.Write(t.Context(), insert("a"))) // the schema exists, once
	}
}

// holdTheLock keeps another process's write transaction open until standard input ends.
func holdTheLock(path, _ string) error {
	db, err := Open(context.Background(), testConfig(path))
	if err != nil {
		return err
	}
	defer db.Close()
	return db.Write(context.Background(), func(tx base.Tx) error {
		fmt.Println("locked")
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		return insert("by the other process")(tx)
	})
}

// lockedByAnother makes another process lock the file until release is called.
func lockedByAnother(t *testing.T, path string) (release func()) {
	t.Helper()
	cmd := child(t, "hold the lock", path, "")
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "locked\n" {
		t.Fatalf("child says %q, %v; want %v", line, err, "locked\n")
	}
	release = sync.OnceFunc(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(release)
	return release
}

func TestWaitingForAnotherProcessEndsWithTheContext(t *testing.T) {
	path := newFile(t)
	db := openTest(t, testConfig(path))
	release := lockedByAnother(t, path)

	mustNotRun := func(base.Tx) error { t.Error("ran in spite of the lock"); return nil }
	ctx, cancel := context.WithCancel(t.Context())
	const callers = 5
	errs := make(chan error, callers)
	for range callers { // the first waits for the lock, the others behind it
		go func() { errs <- db.Write(ctx, mustNotRun) }()
	}
	queued(t, db, callers-1)
	must(t, db.Read(t.Context(), func(tx base.Tx) error { return nil })) // reads go on
	cancel()
	for range callers {
		mustBe(t, <-errs, context.Canceled)
	}

	deadline, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	mustBe(t, db.Write(deadline, mustNotRun), context.DeadlineExceeded)

	// A caller that keeps waiting gets the lock, although the one before gave up.
	impatient, cancel := context.WithCancel(t.Context())
	go func() { errs <- db.Write(impatient, mustNotRun) }()
	eventually(t, "a process waits",
		func() bool { db.writer.mu.Lock(); defer db.writer.mu.Unlock(); return db.writer.held })
	patient := make(chan error)
	go func() { patient <- db.Write(t.Context(), insert("patient")) }()
	queued(t, db, 1)
	cancel()
	mustBe(t, <-errs, context.Canceled)
	release()
	must(t, <-patient)
	if n := len(names(t, db)); n != 2 {
		t.Errorf("%d items, want the other process's and the patient one's", n)
	}
}

func TestLockTimeoutIsATypedErrorForEveryoneInTheQueue(t *testing.T) {
	path := newFile(t)
	c := testConfig(path)
	c.LockTimeout = 50 * time.Millisecond
	db := openTest(t, c)
	lockedByAnother(t, path)
	errs := make(chan error)
	for range 5 {
		go func() { errs <- db.Write(t.Context(), insert("x")) }()
	}
	for range 5 {
		mustBe(t, <-errs, base.ErrBusy)
	}
}

func TestCloseEndsTheWaitForAnotherProcess(t *testing.T) {
	path := newFile(t)
	db := openTest(t, testConfig(path))
	lockedByAnother(t, path)
	err := make(chan error)
	go func() { err <- db.Write(t.Context(), insert("x")) }()
	eventually(t, "a process waits",
		func() bool { db.writer.mu.Lock(); defer db.writer.mu.Unlock(); return db.writer.held })
	must(t, db.Close())
	mustBe(t, <-err, base.ErrClosed)
}

func TestOpenWaitsForALockAndHonoursTheContext(t *testing.T) {
	path := newFile(t)
	openTest(t, testConfig(path))
	release := lockedByAnother(t, path)
	newer := testConfig(path)
	newer.Migrations = migrationsAnd(t, "0003_more.sql", "CREATE TABLE more (id INTEGER PRIMARY KEY) STRICT")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := Open(ctx, newer)
	mustBe(t, err, context.DeadlineExceeded)
	opened := make(chan error)
	go func() {
		db, err := Open(t.Context(), newer)
		if err == nil {
			err = db.Close()
		}
		opened <- err
	}()
	release()
	must(t, <-opened)
}
