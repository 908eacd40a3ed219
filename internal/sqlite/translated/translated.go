//go:build !souvenir_cgo

package translated

import (
	"unsafe"

	"modernc.org/libc"
)

// The functions of a file system and of its files, as https://www.sqlite.org/c3ref/vfs.html and io_methods.html have
// them.
//
//nolint:revive // one comment says what all of them are
type (
	OpenFunc     func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32
	DeleteFunc   func(tls *libc.TLS, vfs, name uintptr, syncDir int32) int32
	CloseFunc    func(tls *libc.TLS, file uintptr) int32
	TransferFunc func(tls *libc.TLS, file, buffer uintptr, amount int32, offset int64) int32
	TruncateFunc func(tls *libc.TLS, file uintptr, size int64) int32
	FlagFunc     func(tls *libc.TLS, file uintptr, flag int32) int32
	SizeFunc     func(tls *libc.TLS, file, size uintptr) int32
	MapFunc      func(tls *libc.TLS, file uintptr, region, size, extend int32, out uintptr) int32
	ControlFunc  func(tls *libc.TLS, file uintptr, operation int32, argument uintptr) int32
)

// Function returns the Go function behind a pointer of translated C, as its callers there do.
func Function[F any](pointer uintptr) F { return *(*F)(unsafe.Pointer(&struct{ uintptr }{pointer})) }

// Pointer returns the pointer by which translated C calls a Go function. The caller has to keep a reference to the
// function, since the garbage collector does not see the pointer.
func Pointer(f any) uintptr {
	type pair [2]uintptr
	return (*pair)(unsafe.Pointer(&f))[1]
}

// At returns a pointer to the value at an address of C's memory, which the garbage collector does not move.
func At[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }
