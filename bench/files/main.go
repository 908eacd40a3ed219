// Files measures what a large file costs: it streams one into a new store, out of it again, and deletes it, and prints the
// time, the most memory that the process had (VmHWM, Linux only) and the most that the write-ahead log grew to.
//
//	go run ./files [-mib 1024] [-dir DIR]
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func main() {
	log.SetFlags(0)
	size := flag.Int64("mib", 1024, "MiB of the file")
	dir := flag.String("dir", os.TempDir(), "where the store is made")
	flag.Parse()
	if err := run(*dir, *size<<20); err != nil {
		log.Fatal(err)
	}
}

func run(dir string, size int64) (err error) {
	dir, err = os.MkdirTemp(dir, "files")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx := context.Background()
	path := filepath.Join(dir, "files.db")
	store, err := souvenir.Open(ctx, path, &souvenir.Options{MaxFile: -1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	fmt.Printf("%-10s %s\n", "opened", memory())

	var log int64
	watch := func(string, int, int) { log = max(log, sizeOf(path+"-wal")) }
	var file souvenir.File
	if err := step("stored", size, func() (err error) {
		file, err = store.AddFile(ctx, souvenir.NewFile{Filename: "large", Size: size, Progress: watch}, io.LimitReader(&numbers{}, size))
		return err
	}); err != nil {
		return err
	}
	fmt.Printf("%-10s write-ahead log %.1f MiB at most, %.1f MiB now\n", "", mib(log), mib(sizeOf(path+"-wal")))
	if err := step("read", size, func() error { return read(ctx, store, file) }); err != nil {
		return err
	}
	err = step("deleted", size, func() error { return store.DeleteFile(ctx, file.ID) })
	fmt.Printf("%-10s write-ahead log %.1f MiB, file %.1f MiB\n", "", mib(sizeOf(path+"-wal")), mib(sizeOf(path)))
	return err
}

// read reads the file and compares it with its SHA-256.
func read(ctx context.Context, store *souvenir.Store, file souvenir.File) error {
	r, err := store.OpenFile(ctx, file.ID)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, r)
	if found := hex.EncodeToString(sum.Sum(nil)); err == nil && found != file.SHA256 {
		err = fmt.Errorf("read %s, stored was %s", found, file.SHA256)
	}
	return errors.Join(err, r.Close())
}

func step(what string, size int64, work func() error) error {
	began := time.Now()
	if err := work(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	took := time.Since(began)
	fmt.Printf("%-10s %s  %.0f MiB/s (%v)\n", what, memory(), mib(size)/took.Seconds(), took.Round(time.Millisecond))
	return nil
}

// numbers is content that does not repeat: 64-bit numbers, one after the other, times a large prime.
type numbers struct{ next uint64 }

func (n *numbers) Read(p []byte) (int, error) {
	whole := len(p) &^ 7
	for i := 0; i < whole; i += 8 {
		n.next++
		binary.LittleEndian.PutUint64(p[i:], n.next*0x9e3779b97f4a7c15)
	}
	clear(p[whole:])
	return len(p), nil
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// memory is the most memory that the process has had.
func memory() string {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "memory unknown"
	}
	var kib int64
	for line := range bytes.Lines(status) {
		if _, err := fmt.Sscanf(string(line), "VmHWM: %d kB", &kib); err == nil {
			break
		}
	}
	return fmt.Sprintf("%6.1f MiB resident at most", float64(kib)/1024)
}
