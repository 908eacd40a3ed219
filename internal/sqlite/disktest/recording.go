//go:build linux && !souvenir_cgo

package disktest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// sector is the unit that a disk writes whole or not at all.
const sector = 512

type eventKind int

const (
	created eventKind = iota
	removed
	wrote
	truncated
	synced
	syncFailed
	syncedFolder
)

// event is a call that changed something, or made changes durable.
type event struct {
	kind   eventKind
	path   string
	inode  int
	offset int64 // of a write; the new size of a truncation
	data   []byte
}

// Recording is the history of the files of a folder.
type Recording struct {
	folder string
	start  map[string][]byte // the content of the folder, by name
	names  map[string]int    // the inodes of present names
	inodes int
	events []event
}

// Record records what happens to the files of a folder from now on, until the returned function is called. Only SQLite
// may write them.
func (d *Disk) Record(folder string) (r *Recording, end func(), err error) {
	r = &Recording{folder: folder, start: map[string][]byte{}, names: map[string]int{}}
	// A store that is open may write meanwhile. A write is in the content that is read here, in the recording, or in both.
	d.mu.Lock()
	defer d.mu.Unlock()
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if r.start[e.Name()], err = os.ReadFile(filepath.Join(folder, e.Name())); err != nil {
			return nil, nil, err
		}
		r.inodes++
		r.names[e.Name()] = r.inodes
	}
	d.record = r
	return r, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.record = nil
	}, nil
}

func (d *Disk) noted(e event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.note(e)
}

// note records an event. The caller holds the mutex.
func (d *Disk) note(e event) {
	r := d.record
	if r == nil || e.kind != syncedFolder && filepath.Dir(e.path) != r.folder {
		return
	}
	e.path = filepath.Base(e.path)
	e.data = bytes.Clone(e.data)
	if e.kind == created || e.kind == wrote && r.names[e.path] == 0 {
		r.inodes++
		r.names[e.path] = r.inodes
	}
	e.inode = r.names[e.path]
	if e.kind == removed {
		delete(r.names, e.path)
	}
	r.events = append(r.events, e)
}

// found records a file that was made without SQLite, when SQLite opens it: its content is on disk before it has its
// name. The caller holds the mutex.
func (r *Recording) found(path string) error {
	name := filepath.Base(path)
	if filepath.Dir(path) != r.folder || r.names[name] != 0 {
		return nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	r.inodes++
	r.names[name] = r.inodes
	r.events = append(r.events, event{kind: wrote, path: name, inode: r.inodes, data: content},
		event{kind: synced, path: name, inode: r.inodes}, event{kind: created, path: name, inode: r.inodes},
		event{kind: syncedFolder})
	return nil
}

// Now returns the current moment: the number of events so far.
func (d *Disk) Now() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.record.events)
}

// Events returns the number of events.
func (r *Recording) Events() int { return len(r.events) }

// Describe says what happened at a moment.
func (r *Recording) Describe(at int) string {
	if at >= len(r.events) {
		return "the end"
	}
	e := r.events[at]
	name := [...]string{"create", "remove", "write", "truncate", "sync", "failed sync", "sync folder"}[e.kind]
	return fmt.Sprintf("event %d: %s %s at %d, %d bytes", at, name, e.path, e.offset, len(e.data))
}

// Loss is the effect of a crash on writes that were not synced.
type Loss int

// The effects of a crash.
const (
	Kept     Loss = iota // nothing is lost: only the program ended
	Dropped              // all are lost
	Torn                 // they end somewhere, maybe within a write, at the boundary of a sector
	Shuffled             // each sector of each is kept or lost, in any order
	Losses
)

func (l Loss) String() string { return [...]string{"kept", "dropped", "torn", "shuffled"}[l] }

// Image returns what the folder may hold after a crash before event number at, and how many changes were not durable
// then. The event itself may have happened in part, unless the loss is Kept.
func (r *Recording) Image(at int, loss Loss, random *rand.Rand) (files map[string][]byte, pending int) {
	happened := r.events[:at]
	if loss != Kept && at < len(r.events) && r.events[at].kind <= truncated {
		happened = r.events[:at+1]
	}
	content := make([][]byte, r.inodes+1)
	names := map[string]int{}
	inode := 0
	for _, name := range r.startNames() {
		inode++
		content[inode], names[name] = bytes.Clone(r.start[name]), inode
	}
	waiting := make([][]event, r.inodes+1) // for a sync of their file
	doubtful := make([][]event, r.inodes+1)
	var folder []event
	for _, e := range happened {
		switch e.kind {
		case created, removed:
			folder = append(folder, e)
		case wrote, truncated:
			waiting[e.inode] = append(waiting[e.inode], e)
		case syncFailed: // the system may forget what it could not write: a later sync does not bring it back
			doubtful[e.inode] = append(doubtful[e.inode], waiting[e.inode]...)
			waiting[e.inode] = nil
		case synced:
			content[e.inode] = lose(content[e.inode], doubtful[e.inode], loss, random)
			content[e.inode] = lose(content[e.inode], waiting[e.inode], Kept, random)
			waiting[e.inode], doubtful[e.inode] = nil, nil
		case syncedFolder:
			link(names, folder)
			folder = nil
		}
	}
	pending = len(folder)
	switch loss {
	case Dropped:
		folder = nil
	case Torn, Shuffled: // journals of file systems keep the order
		folder = folder[:random.IntN(len(folder)+1)]
	}
	link(names, folder)
	files = map[string][]byte{}
	for name, i := range names {
		left := slices.Concat(doubtful[i], waiting[i])
		pending += len(left)
		files[name] = lose(content[i], left, loss, random)
	}
	return files, pending
}

func (r *Recording) startNames() []string {
	var names []string
	for name := range r.start {
		names = append(names, name)
	}
	slices.Sort(names) // as os.ReadDir does
	return names
}

func link(names map[string]int, events []event) {
	for _, e := range events {
		if e.kind == created {
			names[e.path] = e.inode
		} else {
			delete(names, e.path)
		}
	}
}

// lose returns a file after changes that a crash may have lost.
func lose(file []byte, events []event, loss Loss, random *rand.Rand) []byte {
	switch loss {
	case Dropped:
		return file
	case Torn:
		n := random.IntN(len(events) + 1)
		var torn []event
		if n < len(events) && events[n].kind == wrote {
			e := events[n]
			e.data = e.data[:min(len(e.data), sector*random.IntN(len(e.data)/sector+1))]
			torn = append(torn, e)
		}
		events = append(slices.Clone(events[:n]), torn...)
	case Shuffled:
		events = shuffled(events, random)
	}
	for _, e := range events {
		file = e.apply(file)
	}
	return file
}

// shuffled returns some sectors of some changes, in some order.
func shuffled(events []event, random *rand.Rand) (some []event) {
	often := random.Float64()
	for _, e := range events {
		if e.kind != wrote {
			if random.Float64() < often {
				some = append(some, e)
			}
			continue
		}
		for at := 0; at < len(e.data); {
			// up to the next boundary of a sector of the file
			n := min(len(e.data)-at, sector-int(e.offset+int64(at))%sector)
			if random.Float64() < often {
				some = append(some, event{kind: wrote, offset: e.offset + int64(at), data: e.data[at : at+n]})
			}
			at += n
		}
	}
	random.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	return some
}

func (e event) apply(file []byte) []byte {
	size := int(e.offset) + len(e.data)
	if e.kind == truncated {
		if size <= len(file) {
			return file[:size:size]
		}
		return append(file, make([]byte, size-len(file))...)
	}
	if len(file) < size {
		file = append(file, make([]byte, size-len(file))...)
	}
	copy(file[e.offset:], e.data)
	return file
}
