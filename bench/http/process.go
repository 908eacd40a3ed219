package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/seed"
)

// build builds the program as released.
func build(binary string) error {
	c := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary,
		"github.com/souvenir-ai/souvenir/cmd/souvenir")
	c.Dir = ".."
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("go build, which must run in bench/: %w\n%s", err, out)
	}
	return nil
}

// makeStore makes a store with one user and some memories, and a token of the user's.
func makeStore(path string, memories int) (user, token string, err error) {
	ctx := context.Background()
	s, err := souvenir.Open(ctx, path, nil)
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	u, err := s.Accounts().AddUser(ctx, souvenir.NewUser{Name: "anna"})
	if err != nil {
		return "", "", err
	}
	added, err := s.Accounts().AddToken(ctx, souvenir.NewToken{User: u.ID, Name: "bench"})
	if err != nil {
		return "", "", err
	}
	var all []souvenir.NewMemory
	for i, text := range texts(memories, 12, 27) {
		all = append(all, souvenir.NewMemory{Content: text, EventType: "decision", Tags: []string{fmt.Sprint("tag", i%50)}})
	}
	if len(all) > 0 {
		_, err = s.As(souvenir.Access{User: u.ID}).AddMemories(ctx, all, nil)
	}
	if err == nil { // otherwise the server would do it during the measurement
		err = s.Upkeep().StoreIndex(ctx)
	}
	return u.ID, added.Value, err
}

// texts makes n texts of least to most words.
func texts(n, least, most int) []string {
	return seed.Texts(rand.New(rand.NewPCG(uint64(least), uint64(most))), n, least, most)
}

// process is a running server.
type process struct {
	cmd     *exec.Cmd
	address string
}

// start starts a server and waits until it is ready.
func start(binary, path string, flags ...string) (*process, error) {
	return startAs(nil, binary, path, flags...)
}

// startAs starts a server with a command that runs others.
func startAs(by []string, binary, path string, flags ...string) (*process, error) {
	words := append(append(by, binary, "serve", "--db", path, "--listen", "127.0.0.1:0", "--log-level", "warn"), flags...)
	c := exec.Command(words[0], words[1:]...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	address, ready := strings.CutPrefix(strings.TrimSpace(said), "listening on http://")
	if err != nil || !ready {
		return nil, errors.Join(fmt.Errorf("the server said %q: %w", said, err), c.Process.Kill(), c.Wait())
	}
	return &process{c, address}, nil
}

func (p *process) stop() error {
	return errors.Join(p.cmd.Process.Signal(syscall.SIGTERM), p.cmd.Wait())
}

// resident returns the process's resident memory in bytes, now and at most since forgetMost.
func (p *process) resident() (now, most int64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	for _, of := range []struct {
		name string
		into *int64
	}{{"VmRSS:", &now}, {"VmHWM:", &most}} {
		_, rest, _ := strings.Cut(string(status), of.name)
		if _, err := fmt.Sscan(rest, of.into); err != nil {
			return 0, 0, err
		}
		*of.into <<= 10 // KiB
	}
	return now, most, nil
}

// processorTime returns how long the process has worked, in its own code and in the kernel. Unlike wall time, it does
// not depend on other work on the machine.
func (p *process) processorTime() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // after the name, from field 3 on (proc(5))
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc says %q", stat)
	}
	var total time.Duration
	for _, field := range fields[11:13] { // utime and stime
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		total += time.Duration(ticks) * time.Second / 100 // USER_HZ
	}
	return total, nil
}

// forgetMost resets the peak memory to the current use (proc(5), clear_refs).
func (p *process) forgetMost() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.cmd.Process.Pid), []byte("5"), 0)
}
