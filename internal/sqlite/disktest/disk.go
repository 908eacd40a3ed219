//go:build linux && !souvenir_cgo

package disktest

import (
	"path/filepath"
	"slices"
	"sync"

	lib "modernc.org/sqlite/lib"
)

// Kind is a request of SQLite to a disk.
type Kind int

// The kinds of calls that can fail.
const (
	Open Kind = iota
	Read
	Write
	Truncate
	Sync
	Delete
	Size
	Lock
	Map // the shared memory of the log
	kinds
)

func (k Kind) String() string {
	return [...]string{"open", "read", "write", "truncate", "sync", "delete", "size", "lock", "map"}[k]
}

// Fault makes calls fail.
type Fault struct {
	Folder string  // of the affected files
	After  int     // how many calls succeed before
	Calls  int     // how many fail; 0 means all from then on
	Only   []Kind  // the kinds that count and fail; nil means all
	Full   bool    // a failing write reports a full disk instead of an I/O error
	Part   float64 // the part of a failing write that is written nevertheless, 0 to 1

	Seen   [kinds]int // the calls, by kind
	Failed []Kind     // the failed ones
	seen   int
}

// Disk is the file system.
type Disk struct {
	own    *lib.Tsqlite3_vfs
	kept   []any // referenced only from C memory
	mu     sync.Mutex
	files  map[uintptr]*wrapped
	tables map[uintptr]uintptr
	fault  *Fault
	record *Recording
}

// Fail makes calls fail from now on, until the returned function is called.
func (d *Disk) Fail(f *Fault) (end func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = f
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.fault = nil
	}
}

// fails counts a call, and returns the fault if the call is to fail.
func (d *Disk) fails(kind Kind, path string) *Fault {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.fault
	if f == nil || filepath.Dir(path) != f.Folder || f.Only != nil && !slices.Contains(f.Only, kind) {
		return nil
	}
	f.Seen[kind]++
	f.seen++
	if f.seen <= f.After || f.Calls > 0 && f.seen > f.After+f.Calls {
		return nil
	}
	f.Failed = append(f.Failed, kind)
	return f
}
