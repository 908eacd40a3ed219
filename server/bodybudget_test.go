package server_test

import (
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/server"
)

// emptyLists are bytes of which decoding everything would make thirty times as many.
var emptyLists = "[" + strings.Repeat("[],", 8<<20/3-1000) + "[]]"

// A body of the largest size costs its own bytes a few times, whatever is in it. Decoded whole, this one takes 274 MiB.
func TestBodiesOfEmptyListsStaySmall(t *testing.T) {
	w := newWorld(t, server.Options{})
	w.doc = nil
	call := `{"name":"memory","arguments":{"action":"search","query":"soup","junk":` + emptyLists + `}}`
	overMCP := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + call + `}`
	for name, c := range map[string]struct {
		path, body string
		status     int
		says       string
	}{
		"unknown, over HTTP":  {"/tools/call", call, http.StatusOK, "junk"},
		"unknown, over MCP":   {"/mcp", overMCP, http.StatusOK, "junk"},
		"beside, over HTTP":   {"/tools/call", `{"junk":` + emptyLists + `,"name":"list_collections"}`, http.StatusOK, "content"},
		"beside, over MCP":    {"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory","_meta":{"x":` + emptyLists + `}}}`, http.StatusBadRequest, "at most 100000 are allowed"},
		"known":               {"/tools/call", strings.Replace(call, "junk", "tags", 1), http.StatusBadRequest, "a call may have 100000 in all"},
		"no object":           {"/tools/call", `{"name":"memory","arguments":` + emptyLists + `}`, http.StatusBadRequest, "a JSON object is expected"},
		"a batch":             {"/mcp", emptyLists, http.StatusBadRequest, "at most 100000 are allowed"},
		"another endpoint":    {"/api/mcp-tokens", `{"name":"x","projects":` + emptyLists + `}`, http.StatusBadRequest, "at most 100000 are allowed"},
		"a list with commas":  {"/tools/call", `{"name":"memory","arguments":{"action":"search","query":"soup","tags":"` + strings.Repeat(",", 7<<20) + `"}}`, http.StatusBadRequest, "tags"},
		"a string with lists": {"/tools/call", `{"name":"memory","arguments":{"action":"search","query":"soup","tags":"` + emptyLists[:7<<20] + `[]]"}}`, http.StatusBadRequest, "tags"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a := w.do(owner, "POST", c.path, c.body)
		runtime.ReadMemStats(&after)
		took := (after.TotalAlloc - before.TotalAlloc) >> 20
		most := uint64(32)
		if strings.Contains(name, "MCP") || strings.Contains(name, "a list") || strings.Contains(name, "a string") {
			most = 220 // copies of the text, one after the other: the SDK's, and those of a string in a string
		}
		if a.expect(c.status, c.says); took > most {
			t.Errorf("%s: %d MiB were allocated; at most %d are allowed", name, took, most)
		}
		t.Logf("%s: %d MiB", name, took)
	}
}

// Twelve of them at once take less than 100 MiB in all.
func TestManyLargeBodiesAtOnceStaySmall(t *testing.T) {
	w := newWorld(t, server.Options{})
	w.doc = nil
	call := `{"name":"memory","arguments":{"action":"search","query":"soup","junk":` + emptyLists + `}}`
	w.do(owner, "POST", "/tools/call", call)
	defer debug.SetGCPercent(debug.SetGCPercent(5)) // so that the heap is hardly more than what is in use
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	base, most := stats.HeapAlloc, uint64(0)
	over := make(chan struct{})
	var watch, group sync.WaitGroup
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
	for i := range 12 {
		group.Go(func() {
			w.do([]string{owner, stranger}[i%2], "POST", "/tools/call", call).expect(http.StatusOK)
		})
	}
	group.Wait()
	close(over)
	watch.Wait()
	if took := int64(most-base) >> 20; took > 100 {
		t.Errorf("at most %d MiB were in use at once; 100 are allowed", took)
	} else {
		t.Logf("at most %d MiB", took)
	}
}
