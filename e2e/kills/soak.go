package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// latencies are the durations of successful calls.
type latencies struct {
	mu  sync.Mutex
	all []time.Duration
}

func (l *latencies) note(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, d)
}

func (l *latencies) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}

// String sorts them and returns some percentiles.
func (l *latencies) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == 0 {
		return "no calls"
	}
	slices.Sort(l.all)
	at := func(part float64) string {
		return l.all[int(part*float64(len(l.all)-1))].Round(time.Millisecond).String()
	}
	return fmt.Sprintf("%d calls: half within %s, 95%% within %s, 99%% within %s, the slowest %s", len(l.all), at(0.5),
		at(0.95), at(0.99), at(1))
}

// soak measures the usage of the first server during the rounds.
type soak struct {
	settings *settings
	metrics  string // host:port of the first server's
	rounds   [][]sample
	calls    func() int // so far
	called   []int      // by the end of each round
	backups  int
}

// sample is the usage at one time.
type sample [4]float64

// used names the numbers of a sample, and the rise of each that is tolerated: relative, and in units.
var used = [...]struct {
	name, metric string
	unit         float64
	slack        float64
}{
	{"memory, MiB", "process_resident_memory_bytes", 1 << 20, 40},
	{"descriptors", "process_open_fds", 1, 10},
	{"goroutines", "go_goroutines", 1, 20},
	{"disk, MiB", "", 1 << 20, 16},
}

func newSoak(s *settings) (*soak, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // a free port
	if err != nil {
		return nil, err
	}
	defer l.Close()
	return &soak{settings: s, metrics: l.Addr().String()}, nil
}

// flags are those of the first server.
func (k *soak) flags() []string {
	return []string{"--metrics", k.metrics, "--backup-to", k.settings.backups, "--backup-every", "1m",
		"--keep-backups", "2"}
}

// watch watches the load during a round: it takes samples, and makes other processes back up and delete past versions.
func (k *soak) watch() error {
	const samples = 5
	var all []sample
	for i := range samples {
		time.Sleep(k.settings.load / samples)
		now, err := k.sample()
		if err != nil {
			return err
		}
		all = append(all, now)
		if i == samples/2 {
			k.backups++
			to := filepath.Join(k.settings.backups, "by-hand.db")
			out, err := exec.Command(k.settings.program, "backup", "--db", k.settings.db, to).CombinedOutput()
			if err = errors.Join(err, os.Remove(to)); err != nil {
				return fmt.Errorf("backup: %w: %s", err, out)
			}
			out, err = exec.Command(k.settings.program, "purge", "--db", k.settings.db, "--keep-revisions",
				"2").CombinedOutput()
			if err != nil {
				return fmt.Errorf("purge: %w: %s", err, out)
			}
		}
	}
	k.rounds, k.called = append(k.rounds, all), append(k.called, k.calls())
	return nil
}

func (k *soak) sample() (now sample, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+k.metrics+"/metrics", nil)
	if err != nil {
		return now, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return now, err
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		for i, u := range used {
			if name == u.metric {
				if now[i], err = strconv.ParseFloat(value, 64); err != nil {
					return now, err
				}
			}
		}
	}
	now[len(used)-1], err = sizeOf(k.settings.db)
	return now, errors.Join(err, lines.Err())
}

// sizeOf returns the size of a store with its log and the other files beside it.
func sizeOf(db string) (sum float64, err error) {
	all, err := filepath.Glob(db + "*")
	for _, name := range all {
		if info, err := os.Stat(name); err == nil {
			sum += float64(info.Size())
		} else if !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
	}
	return sum, err
}

// recorded is how many bytes a call may take permanently: the page Activity shows the calls of the last 30 days.
const recorded = 400

// report prints the usage, and fails if the last quarter of the rounds used more than the second. During the first
// quarter the store fills.
func (k *soak) report() error {
	var err error
	fmt.Printf("%d backups and purges by other processes, beside the backups of the server\n", k.backups)
	for i, u := range used {
		var ends []float64
		most := 0.0
		for _, round := range k.rounds {
			ends = append(ends, round[len(round)-1][i]/u.unit)
			for _, s := range round {
				most = max(most, s[i]/u.unit)
			}
		}
		n := len(ends)
		early, late := middle(ends[n/4:n/2]), middle(ends[n-n/4:])
		fmt.Printf("%s: at the end of the rounds %.0f in the second quarter, %.0f in the last, the most %.0f\n", u.name,
			early, late, most)
		slack := u.slack
		if u.metric == "" && n > 0 {
			slack += recorded * float64(k.called[n-1]-k.called[n/4]) / u.unit
		}
		if n >= 8 && late > 1.25*early+slack {
			err = errors.Join(err, fmt.Errorf("%s rose from %.0f to %.0f", u.name, early, late))
		}
	}
	return err
}

func middle(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
