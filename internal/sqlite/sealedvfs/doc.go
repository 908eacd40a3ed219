// Package sealedvfs is a file system under SQLite that encrypts databases and their write-ahead logs with [sealing]. It
// passes everything on to SQLite's own file system. The shared memory of a log (-shm) is not encrypted: it has only
// page numbers. The file system opens no other files: a sealed database has no journals and no temporary files on disk.
//
// It needs the driver in pure Go.
package sealedvfs

import (
	"fmt"
	"strconv"
	"sync"

	"github.com/souvenir-ai/souvenir/internal/sealing"
)

// name is SQLite's name for the file system.
const name = "souvenir-sealed"

// parameter is the parameter of an address that names the keys.
const parameter = "sealed"

// Keys opens the files of one database and its copies.
type Keys struct {
	id int

	mu    sync.Mutex
	ring  *sealing.Ring
	files map[string]*sealing.File // the databases that were opened, by path
	err   error
}

var (
	all     sync.Map // of *Keys, by their ids as text
	numbers struct {
		sync.Mutex
		last int
	}
)

// New makes a ring known to the file system, until Forget.
func New(ring *sealing.Ring) (*Keys, error) {
	if err := register(); err != nil {
		return nil, err
	}
	numbers.Lock()
	defer numbers.Unlock()
	numbers.last++
	k := &Keys{id: numbers.last, ring: ring, files: map[string]*sealing.File{}}
	all.Store(strconv.Itoa(k.id), k)
	return k, nil
}

// Forget undoes New: no file may be opened with the keys afterwards.
func (k *Keys) Forget() { all.Delete(strconv.Itoa(k.id)) }

// Parameters returns the parameters of an address by which SQLite opens a file with these keys.
func (k *Keys) Parameters() string { return fmt.Sprintf("vfs=%s&%s=%d", name, parameter, k.id) }

// Err returns why the last opening of a file failed; nil if not because of its key.
func (k *Keys) Err() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// With calls fn with the ring, which no other call uses meanwhile.
func (k *Keys) With(fn func(*sealing.Ring) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return fn(k.ring)
}

// open takes the key of a database from its header.
func (k *Keys) open(path string, header []byte) (*sealing.File, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f, err := k.ring.Open(header)
	k.err = err
	if err == nil {
		k.files[path] = f
	}
	return f, err
}

// of returns the key of a database that was opened.
func (k *Keys) of(path string) *sealing.File {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.files[path]
}
