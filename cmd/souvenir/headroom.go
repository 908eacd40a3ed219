package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// The collector of garbage lets the heap grow to twice its use before it runs again. Most of what a server has
// in use is the search index, which hardly changes, so that would be as much again for nothing. Here the heap may grow
// by a quarter of its use, at least by leastHeadroom.
const leastHeadroom = 32 << 20 // bytes

// collectPercent returns how much the heap may grow, in percent of its use.
func collectPercent(inUse uint64) int {
	if inUse <= leastHeadroom {
		return 100 // the usual
	}
	return max(25, int(leastHeadroom*100/inUse))
}

// paceCollection sets after each collection when the next one is due, unless the operator has said so by GOGC.
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
