// Package objectstest has object storage in memory that can fail, for tests, and tests of the contract that every
// storage must keep.
package objectstest

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/souvenir-ai/souvenir/internal/files/objects"
)

// Memory is object storage in memory. Its functions, which may be nil, run before each call, and their error becomes
// the error of the call. They are not called for the object that marks the database which may delete.
type Memory struct {
	mu      sync.Mutex
	objects map[string][]byte
	onPut   func(ctx context.Context, key string) error
	onGet   func(ctx context.Context, key string) error
	onDel   func(ctx context.Context, keys []string) error
}

// OnPut sets a function to call before an object is written.
func (m *Memory) OnPut(fn func(ctx context.Context, key string) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onPut = fn
}

// OnGet sets a function to call before an object is read.
func (m *Memory) OnGet(fn func(ctx context.Context, key string) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onGet = fn
}

// OnDelete sets a function to call before objects are deleted.
func (m *Memory) OnDelete(fn func(ctx context.Context, keys []string) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onDel = fn
}

// Put writes an object.
func (m *Memory) Put(ctx context.Context, key string, data []byte) error {
	m.mu.Lock()
	before := m.onPut
	m.mu.Unlock()
	if before != nil && !strings.HasPrefix(key, objects.Owner) {
		if err := before(ctx, key); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	m.Set(key, data)
	return nil
}

// Set changes an object without the knowledge of its store.
func (m *Memory) Set(key string, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.objects == nil {
		m.objects = map[string][]byte{}
	}
	m.objects[key] = bytes.Clone(data)
}

// Get reads an object.
func (m *Memory) Get(ctx context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	before := m.onGet
	m.mu.Unlock()
	if before != nil && !strings.HasPrefix(key, objects.Owner) {
		if err := before(ctx, key); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	data, there := m.objects[key]
	if !there {
		return nil, fmt.Errorf("object %s: %w", key, fs.ErrNotExist)
	}
	return bytes.Clone(data), nil
}

// Delete deletes objects.
func (m *Memory) Delete(ctx context.Context, keys []string) error {
	m.mu.Lock()
	before := m.onDel
	m.mu.Unlock()
	if before != nil {
		if err := before(ctx, keys); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		delete(m.objects, key)
	}
	return nil
}

// Keys returns the keys of all objects with content of files, sorted.
func (m *Memory) Keys() (keys []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.objects {
		if !strings.HasPrefix(key, objects.Owner) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
