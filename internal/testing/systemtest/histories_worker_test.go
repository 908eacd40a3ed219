package systemtest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	. "github.com/souvenir-ai/souvenir"
)

// A server of a history is a separate process that calls the store and can be killed.

// serverVariable makes the test binary a server. Its value is a path or the address of a database.
const serverVariable = "SOUVENIR_TEST_SERVER"

// request is a call, and reply its outcome.
type request struct {
	N    int // also the number of the reply
	Call call
}

type reply struct {
	N       int
	Outcome outcome
}

// serveHistory answers the requests on its standard input, concurrently, until the input ends.
func serveHistory(where string) error {
	ctx := context.Background()
	s, err := databaseAt(where).open(Options{})
	if err != nil {
		return err
	}
	fmt.Println(`{"N":0}`)
	var mu sync.Mutex
	out, in := json.NewEncoder(os.Stdout), json.NewDecoder(os.Stdin)
	var running sync.WaitGroup
	for {
		var r request
		if err := in.Decode(&r); err != nil {
			running.Wait()
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return errors.Join(err, s.Close())
		}
		running.Go(func() {
			done := reply{N: r.N, Outcome: r.Call.carryOut(ctx, s)}
			mu.Lock()
			defer mu.Unlock()
			_ = out.Encode(done) // fails if the client is gone
		})
	}
}

// worker is the client's side of a server. After a kill, the next call starts it again.
type worker struct {
	t     *testing.T
	where string

	mu      sync.Mutex
	cmd     *exec.Cmd
	in      *json.Encoder
	ended   chan struct{}
	waiting map[int]chan outcome
	last    int
}

// start starts the process. The caller holds mu.
func (w *worker) start() error {
	cmd := exec.CommandContext(context.Background(), os.Args[0])
	cmd.Env = append(os.Environ(), serverVariable+"="+w.where)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(out)
	if _, err := lines.ReadString('\n'); err != nil {
		return fmt.Errorf("the process did not open the store: %w", err)
	}
	ended, waiting := make(chan struct{}), map[int]chan outcome{}
	w.cmd, w.in, w.ended, w.waiting = cmd, json.NewEncoder(in), ended, waiting
	go func() {
		defer close(ended)
		for answers := json.NewDecoder(lines); ; {
			var r reply
			if err := answers.Decode(&r); err != nil {
				_ = cmd.Wait()
				return
			}
			w.mu.Lock()
			waiting[r.N] <- r.Outcome
			delete(waiting, r.N)
			w.mu.Unlock()
		}
	}()
	return nil
}

// do makes a call. Without an answer, the outcome is unknown.
func (w *worker) do(c call) outcome {
	w.mu.Lock()
	if w.cmd == nil {
		if err := w.start(); err != nil {
			w.mu.Unlock()
			w.t.Error(err)
			return outcome{Unknown: true}
		}
	}
	w.last++
	answer, ended := make(chan outcome, 1), w.ended
	w.waiting[w.last] = answer
	err := w.in.Encode(request{w.last, c})
	w.mu.Unlock()
	if err != nil {
		return outcome{Unknown: true}
	}
	select {
	case o := <-answer:
		return o
	case <-ended:
	}
	select {
	case o := <-answer: // answered before the end
		return o
	default:
		return outcome{Unknown: true}
	}
}

// kill ends the process like a crash.
func (w *worker) kill() {
	w.mu.Lock()
	cmd, ended := w.cmd, w.ended
	w.cmd = nil
	w.mu.Unlock()
	if cmd != nil {
		_ = cmd.Process.Kill()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			w.t.Error("a killed process has not ended after a minute")
		}
	}
}
