package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"testing"
)

func TestTheHeapGrowsByAQuarterOfWhatIsInUse(t *testing.T) {
	for inUse, want := range map[uint64]int{0: 100, 5 << 20: 100, 32 << 20: 100, 64 << 20: 50, 100 << 20: 32,
		128 << 20: 25, 4 << 30: 25, 1 << 50: 25} {
		if got := collectPercent(inUse); got != want {
			t.Errorf("%d MiB in use: %d percent, want %d", inUse>>20, got, want)
		}
	}
}

func TestThePaceIsSetAfterEachCollection(t *testing.T) {
	var calls atomic.Int32
	afterCollection(func() bool { return calls.Add(1) < 3 })
	for range 10_000 { // one collection may come before the last call prepares for the next
		if runtime.GC(); calls.Load() == 3 {
			break
		}
	}
	for range 5 {
		runtime.GC()
	}
	if n := calls.Load(); n != 3 {
		t.Errorf("%d calls, want 3 and none after the third", n)
	}
}

func TestThePaceFollowsTheHeap(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	large := make([]byte, 256<<20)
	runtime.GC()
	setPace()
	percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	if metrics.Read(percent); percent[0].Value.Uint64() != 25 {
		t.Errorf("%d percent with 256 MiB in use, want 25", percent[0].Value.Uint64())
	}
	runtime.KeepAlive(large)
	if paceCollection("73") {
		t.Error("the program paces collections although the operator does, want false")
	}
}
