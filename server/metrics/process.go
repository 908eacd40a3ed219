package metrics

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"
)

// process writes the numbers of the process, under the names that programs in Go have for them.
func (p *page) process(started time.Time) {
	p.one("process_start_time_seconds", gauge, "When the process began to count.", float64(started.UnixMilli())/1e3)
	p.about("go_info", gauge, "The version of Go; always 1.")
	p.line("go_info", labelled([]string{"version"}, []string{runtime.Version()}), 1)
	p.one("go_goroutines", gauge, "Goroutines.", float64(runtime.NumGoroutine()))
	p.one("go_threads", gauge, "Threads that were made.", float64(pprof.Lookup("threadcreate").Count()))
	p.one("go_sched_gomaxprocs_threads", gauge, "Threads that run Go at once.", float64(runtime.GOMAXPROCS(0)))
	var gc debug.GCStats
	debug.ReadGCStats(&gc)
	p.about("go_gc_duration_seconds", summary, "How long collections of garbage stopped the process.")
	p.line("go_gc_duration_seconds_sum", "", gc.PauseTotal.Seconds())
	p.line("go_gc_duration_seconds_count", "", float64(gc.NumGC))
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	for _, of := range []struct {
		name, kind, help string
		value            uint64
	}{
		{"alloc_bytes", gauge, "Bytes in use on the heap.", m.Alloc},
		{"alloc_bytes_total", counter, "Bytes allocated on the heap so far.", m.TotalAlloc},
		{"sys_bytes", gauge, "Bytes obtained from the system.", m.Sys},
		{"mallocs_total", counter, "Objects allocated on the heap so far.", m.Mallocs},
		{"frees_total", counter, "Objects freed so far.", m.Frees},
		{"heap_objects", gauge, "Objects on the heap.", m.HeapObjects},
		{"heap_alloc_bytes", gauge, "Bytes in use on the heap.", m.HeapAlloc},
		{"heap_inuse_bytes", gauge, "Bytes of the heap's spans that are in use.", m.HeapInuse},
		{"heap_idle_bytes", gauge, "Bytes of the heap's spans that are not in use.", m.HeapIdle},
		{"heap_released_bytes", gauge, "Bytes of the heap returned to the system.", m.HeapReleased},
		{"heap_sys_bytes", gauge, "Bytes of the heap obtained from the system.", m.HeapSys},
		{"stack_inuse_bytes", gauge, "Bytes of stacks.", m.StackInuse},
		{"next_gc_bytes", gauge, "Bytes on the heap at which garbage is collected next.", m.NextGC},
	} {
		p.one("go_memstats_"+of.name, of.kind, of.help, float64(of.value))
	}
	p.one("go_memstats_last_gc_time_seconds", gauge, "When garbage was collected last.", float64(m.LastGC)/1e9)
	p.system("/proc/self")
}

// ticks are in a second of the times in stat: USER_HZ, which Linux fixes for programs.
const ticks = 100

// system writes what Linux says about the process in a folder. Other systems have no such folder.
func (p *page) system(folder string) {
	content, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return
	}
	// The fields are numbered from 1; the second, a name in parentheses, may have spaces.
	after := strings.Fields(string(content)[strings.LastIndexByte(string(content), ')')+1:])
	field := func(number int) float64 {
		if number-3 >= len(after) {
			return 0
		}
		n, _ := strconv.ParseFloat(after[number-3], 64)
		return n
	}
	p.one("process_cpu_seconds_total", counter, "Processor time of the process.", (field(14)+field(15))/ticks)
	p.one("process_virtual_memory_bytes", gauge, "Memory of the process, mapped files included.", field(23))
	p.one("process_resident_memory_bytes", gauge, "Memory of the process that is not swapped out.",
		field(24)*float64(os.Getpagesize()))
	if open, err := os.ReadDir(filepath.Join(folder, "fd")); err == nil {
		p.one("process_open_fds", gauge, "Open files of the process.", float64(len(open)))
	}
	if limits, err := os.ReadFile(filepath.Join(folder, "limits")); err == nil {
		_, rest, _ := strings.Cut(string(limits), "Max open files")
		if soft := strings.Fields(rest); len(soft) > 0 {
			if most, err := strconv.ParseFloat(soft[0], 64); err == nil {
				p.one("process_max_fds", gauge, "Files that the process may open.", most)
			}
		}
	}
}
