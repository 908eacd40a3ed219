package systemtest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/files/objects/objectstest"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/internal/testing/storetest"
)

// TestConformance runs the conformance suite for every way to open a store: all promises in the long form, otherwise
// every 32nd promise for a file, and with -short two handles, which run the most goroutines together. Engines with a
// server are tested wherever there is one (see pgtest), with -short by a sample.
func TestConformance(t *testing.T) {
	type backend struct {
		name string
		run  func(*testing.T, func(*testing.T, *Options) *Store)
		open func(t *testing.T) func(*testing.T, *Options) *Store
	}
	backends := []backend{
		{"file", runFile, openFile},
		{"memory", runMemory, openMemory},
		{"on disk", storetest.RunSearches, openOnDisk},
		{"two handles", storetest.RunTwoHandles, openFile},
		{"objects", storetest.RunFiles, openWithObjects},
		{"encrypted", runEncrypted, openEncrypted},
		{"keys", runWithKeys, openWithKeys},
		{"objects, keys", runObjectsWithKeys, openObjectsWithKeys},
	}
	always := []string{"file"}
	if testing.Short() {
		always = []string{"two handles"}
	}
	for _, e := range engines {
		if e.server == nil {
			continue
		}
		backends = append(backends, backend{e.name, e.suite, func(t *testing.T) func(*testing.T, *Options) *Store {
			return openIn(t, e, nil)
		}})
		if !e.walled {
			always = append(always, e.name)
			backends = append(backends, backend{e.name + ", keys", runAllWithKeys, e.openWithKeys})
		}
	}
	for _, backend := range backends {
		if !longtest.All() && !slices.Contains(always, backend.name) {
			continue
		}
		t.Run(backend.name, func(t *testing.T) { backend.run(t, backend.open(t)) })
	}
}

// runFile runs the whole suite in the long form, otherwise a 32nd of it, enough to notice a fault that breaks all
// promises.
func runFile(t *testing.T, open func(*testing.T, *Options) *Store) {
	if longtest.On() {
		storetest.Run(t, open)
		return
	}
	storetest.RunSample(t, 32, open)
}

// runMemory runs a third of the suite: the engine is the same as for a file.
func runMemory(t *testing.T, open func(*testing.T, *Options) *Store) { storetest.RunSample(t, 3, open) }

// runServer runs the whole suite, or with -short an eighth of it.
func runServer(t *testing.T, open func(*testing.T, *Options) *Store) {
	if testing.Short() {
		storetest.RunSample(t, 8, open)
		return
	}
	storetest.Run(t, open)
}

// openFile gives each test its own file, a copy of an empty store, because making the schema is most of the work.
func openFile(t *testing.T) func(*testing.T, *Options) *Store {
	dir := t.TempDir()
	empty := emptyFile(t, dir)
	return func(t *testing.T, options *Options) *Store {
		name := t.Name()[strings.Index(t.Name(), "/")+1:]
		path := filepath.Join(dir, fileName(name))
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			if err := os.WriteFile(path, empty, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return openStore(t, path, options)
	}
}

// emptyFile returns the bytes of a file of an empty store.
func emptyFile(t *testing.T, dir string) []byte {
	path := filepath.Join(dir, "empty.db")
	store, err := Open(t.Context(), path,
		&Options{Embedder: storetest.Words{}, Now: new(storetest.Clock).Now})
	if err != nil {
		t.Fatalf("Open %s: %v", path, err)
	}
	if err := store.Close(); err != nil {
		t.Fatalf("Close %s: %v", path, err)
	}
	empty, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return empty
}

// openOnDisk is openFile without an index in memory: every search runs on disk.
func openOnDisk(t *testing.T) func(*testing.T, *Options) *Store {
	open := openFile(t)
	return func(t *testing.T, options *Options) *Store {
		onDisk := *options
		onDisk.IndexMemory = -1
		return open(t, &onDisk)
	}
}

// runEncrypted runs a fifth of the suite.
func runEncrypted(t *testing.T, open func(*testing.T, *Options) *Store) {
	storetest.MasterKey = GenerateMasterKey()
	defer func() { storetest.MasterKey = MasterKey{} }()
	if os.Getenv(encryptedVariable) != "" {
		storetest.Run(t, open)
		return
	}
	storetest.RunSample(t, 5, open)
}

// encryptedVariable runs the whole suite on encrypted files.
const encryptedVariable = "SOUVENIR_TEST_ENCRYPTED"

// openEncrypted gives each test an encrypted file.
func openEncrypted(t *testing.T) func(*testing.T, *Options) *Store {
	dir := t.TempDir()
	return func(t *testing.T, options *Options) *Store {
		return openStore(t, filepath.Join(dir, fileName(t.Name())), options)
	}
}

// openWithObjects is openFile with object storage for the content of files.
func openWithObjects(t *testing.T) func(*testing.T, *Options) *Store {
	open := openFile(t)
	var storages sync.Map
	return func(t *testing.T, options *Options) *Store {
		storage, _ := storages.LoadOrStore(t.Name(), &objectstest.Memory{})
		with := *options
		with.Objects = storage.(*objectstest.Memory)
		return open(t, &with)
	}
}

// openMemory gives each test one store in memory, which cannot be reopened.
func openMemory(*testing.T) func(*testing.T, *Options) *Store {
	var opened sync.Map
	return func(t *testing.T, options *Options) *Store {
		if _, again := opened.LoadOrStore(t.Name(), true); again {
			t.Skip("a store in memory cannot be opened twice")
		}
		return openStore(t, ":memory:", options)
	}
}

// openIn gives each test its own database of an engine, and opens its store with a context, nil for the usual one.
func openIn(t *testing.T, e engine, with func(*testing.T) context.Context) func(*testing.T, *Options) *Store {
	e.server(t)
	var databases sync.Map
	return func(t *testing.T, options *Options) *Store {
		d, known := databases.Load(t.Name())
		if !known {
			d = e.empty(t)
			databases.Store(t.Name(), d)
		}
		ctx := context.Background()
		if with != nil {
			ctx = with(t)
		}
		store, err := d.(database).openWith(ctx, *options)
		if err != nil {
			t.Fatalf("Open: got %v, want no error", err)
		}
		t.Cleanup(func() {
			if err := store.Close(); err != nil {
				t.Errorf("Close: got %v, want no error", err)
			}
		})
		return store
	}
}

func openStore(t *testing.T, path string, options *Options) *Store {
	t.Helper()
	store, err := Open(context.Background(), path, options)
	if err != nil {
		t.Fatalf("Open %s: %v", path, err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return store
}

// fileName makes a file name from the name of a test.
func fileName(test string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, r) {
			return '-'
		}
		return r
	}, test) + ".db"
}
