package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"maps"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// emptyLists are bytes that would need thirty times as much memory if all of them were decoded.
var emptyLists = "[" + strings.Repeat("[],", 8<<20/3-1000) + "[]]"

// A body of the maximum size costs a few times its own bytes, whatever its content. Decoded completely, this one takes
// 274 MiB.
func TestBodiesOfEmptyListsStaySmall(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	w.Doc = nil
	call := `{"name":"memory","arguments":{"action":"search","query":"soup","junk":` + emptyLists + `}}`
	overMCP := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + call + `}`
	bodies := map[string]struct {
		path, body string
		status     int
		says       string
	}{
		"unknown, over HTTP": {"/tools/call", call, http.StatusOK, "junk"},
		"unknown, over MCP":  {"/mcp", overMCP, http.StatusOK, "junk"},
		"beside, over HTTP": {"/tools/call", `{"junk":` + emptyLists + `,"name":"list_collections"}`, http.StatusOK,
			"content"},
		"beside, over MCP": {"/mcp",
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory","_meta":{"x":` + emptyLists + `}}}`,
			http.StatusBadRequest, "at most 100000 are allowed"},
		"much beside, over MCP": {"/mcp",
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory","_meta":{"x":"` +
				strings.Repeat("x", 7<<20) + `"}}}`,
			http.StatusBadRequest, "besides the arguments of a tool; at most 1048576 are allowed"},
		"arguments twice, over MCP": {"/mcp", strings.Replace(overMCP, `"arguments":`, `"Arguments":1,"arguments":`, 1),
			http.StatusBadRequest, "besides the arguments of a tool"},
		"known, over MCP": {"/mcp", strings.Replace(overMCP, "junk", "tags", 1), http.StatusOK,
			"a call may have 100000 in all"},
		"known": {"/tools/call", strings.Replace(call, "junk", "tags", 1), http.StatusBadRequest,
			"a call may have 100000 in all"},
		"no object": {"/tools/call", `{"name":"memory","arguments":` + emptyLists + `}`,
			http.StatusBadRequest, "expected a JSON object"},
		"a batch": {"/mcp", emptyLists, http.StatusBadRequest, "at most 100000 are allowed"},
		"another endpoint": {"/api/mcp-tokens", `{"name":"x","projects":` + emptyLists + `}`, http.StatusBadRequest,
			"at most 100000 are allowed"},
		"a list with commas": {"/tools/call",
			`{"name":"memory","arguments":{"action":"search","query":"soup","tags":"` + strings.Repeat(",", 7<<20) + `"}}`,
			http.StatusBadRequest, "tags"},
		"a string with lists": {"/tools/call",
			`{"name":"memory","arguments":{"action":"search","query":"soup","tags":"` + emptyLists[:7<<20] + `[]]"}}`,
			http.StatusBadRequest, "tags"},
	}
	for i, name := range slices.Sorted(maps.Keys(bodies)) {
		if !longtest.Part(i, 1, 3) {
			continue
		}
		c := bodies[name]
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a := w.Do(servertest.Owner, "POST", c.path, c.body)
		runtime.ReadMemStats(&after)
		took := (after.TotalAlloc - before.TotalAlloc) >> 20
		most := uint64(32)
		if strings.Contains(name, "a list") || strings.Contains(name, "a string") {
			most = 220 // copies of the text, one after the other, for a string in a string
		}
		if a.Expect(c.status, c.says); took > most {
			t.Errorf("%s: %d MiB were allocated, want at most %d", name, took, most)
		}
		t.Logf("%s: %d MiB", name, took)
	}
}

// Twelve of them at once take about 100 MiB in all.
func TestManyLargeBodiesAtOnceStaySmall(t *testing.T) {
	longtest.Only(t)
	call := `{"name":"memory","arguments":{"action":"search","query":"soup","junk":` + emptyLists + `}}`
	clients := 12
	if !longtest.On() {
		clients = 4
	}
	for i, c := range []struct{ name, path, body string }{
		{"over HTTP", "/tools/call", call},
		{"over MCP", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + call + `}`},
	} {
		if !longtest.Part(i, 1, 2) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			w := servertest.New(t, server.Options{})
			w.Doc = nil
			w.Do(servertest.Owner, "POST", c.path, c.body)
			took := heapAtMost(func() {
				var group sync.WaitGroup
				for i := range clients {
					group.Go(func() {
						who := []string{servertest.Owner, servertest.Stranger}[i%2]
						a := w.Do(who, "POST", c.path, c.body)
						for a.Status == http.StatusServiceUnavailable { // a busy machine: calls wait 15 s for their turn
							a = w.Do(who, "POST", c.path, c.body)
						}
						a.Expect(http.StatusOK, "junk")
					})
				}
				group.Wait()
			}) >> 20
			if took > 120 { // including what the collector has not freed yet
				t.Errorf("at most %d MiB were in use at once, want at most 120", took)
			}
			t.Logf("at most %d MiB", took)
		})
	}
}

// heapAtMost returns how many bytes the heap grows at most while do runs.
func heapAtMost(do func()) (bytes int64) {
	defer debug.SetGCPercent(debug.SetGCPercent(5)) // so that the heap is hardly larger than the memory in use
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	base, most := stats.HeapAlloc, stats.HeapAlloc
	over := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc)
			select {
			case <-over:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	})
	do()
	close(over)
	watch.Wait()
	return int64(most - base)
}
