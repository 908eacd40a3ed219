package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

const (
	mostBinary = 50 << 20 // bytes; 47.3 MiB were measured
	mostOwn    = 16 << 10 // KiB of private memory; 10.7 to 11.8 MiB were measured
)

func TestTheProgramIsSmall(t *testing.T) {
	longtest.Only(t) // it builds the program as released
	info, err := os.Stat(builtBinary)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the program has %s", size(info.Size()))
	if info.Size() > mostBinary {
		t.Errorf("the program has %s, more than %s, want size at most %v", size(info.Size()), size(mostBinary), mostBinary)
	}
}

func TestAnIdleServerNeedsLittleMemory(t *testing.T) {
	longtest.Only(t) // it builds the program as released
	c := call{dir: t.TempDir()}
	p := c.start(t, "serve", "--listen", "127.0.0.1:0")
	if status, body := request(t, "GET", p.url+"/health", "", nil); status != http.StatusOK {
		t.Fatalf("%d %s; want %v", status, body, http.StatusOK)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	own, all := kibibytes(t, string(status), "RssAnon:"), kibibytes(t, string(status), "VmRSS:")
	// The rest are pages of the program, which the system may drop. Their number depends on the page cache.
	t.Logf("an idle server has %d KiB resident, %d KiB of them its own", all, own)
	if own > mostOwn {
		t.Errorf("an idle server has %d KiB of its own resident, want at most %d", own, mostOwn)
	}
}

// kibibytes returns a value of /proc/PID/status.
func kibibytes(t *testing.T, status, name string) int {
	t.Helper()
	var n int
	_, rest, _ := strings.Cut(status, name)
	if _, err := fmt.Sscan(rest, &n); err != nil {
		t.Fatalf("%s in %q: %v", name, status, err)
	}
	return n
}
