package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/longtest"
)

const (
	mostBinary   = 50 << 20 // bytes; 47.3 MiB were measured
	mostResident = 46 << 10 // KiB; 40.8 to 42.1 MiB were measured
)

func TestTheProgramIsSmall(t *testing.T) {
	longtest.Only(t) // which builds the program as it is shipped
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
	longtest.Only(t) // which builds the program as it is shipped
	c := call{dir: t.TempDir()}
	p := c.start(t, "serve", "--listen", "127.0.0.1:0")
	if status, body := request(t, "GET", p.url+"/health", "", nil); status != http.StatusOK {
		t.Fatalf("%d %s; want %v", status, body, http.StatusOK)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	var resident int
	if _, err := fmt.Sscan(rest, &resident); err != nil {
		t.Fatal(err)
	}
	t.Logf("an idle server has %d KiB resident", resident)
	if resident > mostResident {
		t.Errorf("an idle server has %d KiB resident, more than %d, want at most %v", resident, mostResident, mostResident)
	}
}
