// Package disktest is a file system under SQLite, for tests. It fails, writes in part, and records: from a recording it
// makes what a disk may hold after a loss of power at any moment, with writes that were not synced dropped, torn or in
// another order. It works on Linux, with the driver in pure Go.
//
// It passes everything on to SQLite's own file system, except syncs, which it only records. The shared memory of the
// write-ahead log (-shm) is in that file system alone; no crash keeps it, and SQLite recreates it.
package disktest
