package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// The garbage collector lets the heap grow to twice its use before it runs again. A server uses most of its heap for
// the search index, which hardly changes, so the growth would be wasted. Here the heap may grow by a quarter of its
// use, and by at least leastHeadroom.
const leastHeadroom = 32 << 20 // bytes

// collectPercent returns how much the heap may grow, in percent of its use.
func collectPercent(inUse uint64) int {
	if inUse <= leastHeadroom {
		return 100 // the default
	}
	return max(25, int(leastHeadroom*100/inUse))
}

// paceCollection sets after each collection when the next one is due, unless the operator has set GOGC.
func paceCollection(gogc string) (paces bool) {
	if gogc != "" {
		return false
	}
	afterCollection(func() bool {
		setPace()
		return true
	})
	return true
}

func setPace() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	debug.SetGCPercent(collectPercent(live[0].Value.Uint64()))
}

// afterCollection calls a function after each collection, until it returns false.
func afterCollection(call func() (more bool)) {
	type unreachable struct{ _ *int } // an object of its own, which each collection finds
	runtime.AddCleanup(new(unreachable), func(call func() bool) {
		if call() {
			afterCollection(call)
		}
	}, call)
}
