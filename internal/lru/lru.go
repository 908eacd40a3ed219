// Package lru keeps the most recently used values, up to a number of bytes.
package lru

import (
	"container/list"
	"sync"
)

// Cache holds values by their keys, which can be compared. The zero value is empty and ready. It is safe for concurrent
// use.
//
// It is not a generic type: caches are fields of stores, and each package that uses a store would compile the methods
// of each cache again. Instead, Get has a type parameter.
type Cache struct {
	mu    sync.Mutex
	kept  map[any]*list.Element // of uses
	uses  list.List             // of entry, the one used last first
	bytes int
}

type entry struct {
	key, value any
	bytes      int
}

// Get returns the value of a key, and counts as a use of it.
func Get[V any](c *Cache, key any) (value V, found bool) {
	kept := c.get(key)
	value, found = kept.(V)
	return value, found
}

func (c *Cache) get(key any) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.kept[key]
	if at == nil {
		return nil
	}
	c.uses.MoveToFront(at)
	return at.Value.(entry).value
}

// Put keeps a value of some bytes, and replaces the key's previous one. It drops the least recently used values while
// all together exceed most bytes, if necessary even the new one.
func (c *Cache) Put(key, value any, bytes, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		c.kept = map[any]*list.Element{}
	}
	if before := c.kept[key]; before != nil {
		c.drop(before)
	}
	c.kept[key] = c.uses.PushFront(entry{key, value, bytes})
	c.bytes += bytes
	for c.bytes > most {
		c.drop(c.uses.Back())
	}
}

func (c *Cache) drop(at *list.Element) {
	one := c.uses.Remove(at).(entry)
	c.bytes -= one.bytes
	delete(c.kept, one.key)
}

// Size returns how many values are kept, and their bytes.
func (c *Cache) Size() (values, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.kept), c.bytes
}
