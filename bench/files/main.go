// Files measures the cost of a large file: it streams one into a new store, out of it again, and deletes it. It prints
// the time, the process's peak memory (VmHWM, Linux only) and the largest size of the write-ahead log.
//
//	go run ./files [-mib 1024] [-dir DIR]
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/bench/internal/large"
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
	fmt.Printf("%-11s %s\n", "opened", large.Memory())

	var log int64
	watch := func(string, int, int) { log = max(log, sizeOf(path+"-wal")) }
	var file souvenir.File
	if err := large.Step("stored", size, func() (err error) {
		file, err = store.AddFile(ctx, souvenir.NewFile{Filename: "large", Size: size, Progress: watch}, large.Content(size))
		return err
	}); err != nil {
		return err
	}
	fmt.Printf("%-11s write-ahead log %.1f MiB at most, %.1f MiB now\n", "", large.MiB(log),
		large.MiB(sizeOf(path+"-wal")))
	if err := large.Step("read", size, func() error { return read(ctx, store, file) }); err != nil {
		return err
	}
	err = large.Step("deleted", size, func() error { return store.DeleteFile(ctx, file.ID, nil) })
	fmt.Printf("%-11s write-ahead log %.1f MiB, file %.1f MiB\n", "", large.MiB(sizeOf(path+"-wal")),
		large.MiB(sizeOf(path)))
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

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
