package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// server is a process that serves the store.
type server struct {
	cmd   *exec.Cmd
	url   string
	lines *bufio.Reader
	ended chan struct{}
	dead  atomic.Bool // killed by this program
}

// startLimit is longer than any start takes.
const startLimit = 60 * time.Second

// serve starts a server without waiting for it.
func (s *settings) serve(number int) (*server, error) {
	log, err := os.OpenFile(s.log(number), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(s.program, "serve", "--db", s.db, "--listen", "127.0.0.1:0", "--log-level", "warn",
		"--max-running-per-user", "0")
	if s.soak != nil && number == 0 {
		cmd.Args = append(cmd.Args, s.soak.flags()...)
	}
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &server{cmd: cmd, lines: bufio.NewReader(out), ended: make(chan struct{})}
	return p, nil
}

func (s *settings) log(number int) string {
	return filepath.Join(s.logs, fmt.Sprintf("server%d.log", number))
}

// start starts all servers and waits until they listen.
func (l *load) start(sum *totals) ([]*server, error) {
	var all []*server
	began := time.Now()
	for i := range l.settings.servers {
		p, err := l.settings.serve(i)
		if err != nil {
			stop(all)
			return nil, err
		}
		all = append(all, p)
	}
	for i, p := range all {
		late := time.AfterFunc(startLimit, func() { _ = p.cmd.Process.Kill() })
		line, err := p.lines.ReadString('\n')
		late.Stop()
		url, found := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
		if err != nil || !found {
			stop(all)
			log, _ := os.ReadFile(l.settings.log(i))
			return nil, fmt.Errorf("server %d did not start: %q, %w; its log ends with %s", i, line, err,
				log[max(0, len(log)-2000):])
		}
		p.url = url
		sum.slowest = max(sum.slowest, time.Since(began))
		go func() {
			_, _ = io.Copy(io.Discard, p.lines)
			close(p.ended)
		}()
	}
	return all, nil
}

// starve limits the server's address space to its current size plus the given number of MiB.
func (p *server) starve(more int) error {
	pid := p.cmd.Process.Pid
	pages, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return err
	}
	var now int
	if _, err := fmt.Sscan(string(pages), &now); err != nil {
		return err
	}
	out, err := exec.Command("prlimit", "--pid", strconv.Itoa(pid),
		fmt.Sprintf("--as=%d", now*os.Getpagesize()+more<<20)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("prlimit: %w: %s", err, out)
	}
	return nil
}

// kill ends the server as kill -9 does.
func (p *server) kill() {
	p.dead.Store(true)
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// gone reports whether the server no longer runs.
func (p *server) gone() bool {
	if p.dead.Load() {
		return true
	}
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// stop kills the processes that still run.
func stop(servers []*server) {
	for _, p := range servers {
		if !p.dead.Load() {
			p.kill()
		}
	}
}

func alive(servers []*server) bool {
	for _, p := range servers {
		if p.gone() {
			return false
		}
	}
	return true
}

// unwanted matches lines that no server may log. While its database is away, it may log errors.
var unwanted = regexp.MustCompile(`(?m)^.*(panic:|fatal error:|goroutine \d+ \[|DATA RACE).*$|^.*level=ERROR.*$`)

// readLogs checks what the servers have logged since the last call.
func (l *load) readLogs() error {
	for i := range l.settings.servers {
		log, err := os.ReadFile(l.settings.log(i))
		if err != nil {
			return err
		}
		old := l.read[i]
		l.read[i] = len(log)
		for _, line := range unwanted.FindAllString(string(log[old:]), -1) {
			if l.settings.endNode != "" && strings.Contains(line, "level=ERROR") {
				continue
			}
			if l.settings.memory > 0 { // then it ends with a trace
				continue
			}
			return fmt.Errorf("server %d logged %s", i, line)
		}
	}
	return nil
}
