// Package lru keeps the values that were used last, up to a number of bytes.
package lru

import (
	"container/list"
	"sync"
)

// Cache holds values by their keys. The zero value is empty and ready. It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	mu    sync.Mutex
	kept  map[K]*list.Element // of uses
	uses  list.List           // of entry[K, V], the one used last first
	bytes int
}

type entry[K comparable, V any] struct {
	key   K
	value V
	bytes int
}

// Get returns the value of a key, and counts as a use of it.
func (c *Cache[K, V]) Get(key K) (value V, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.kept[key]
	if at == nil {
		return value, false
	}
	c.uses.MoveToFront(at)
	return at.Value.(entry[K, V]).value, true
}

// Put keeps a value of some bytes, in place of the key's former one. It drops the values used the longest ago while
// there are more than most bytes, if need be the new one, too.
func (c *Cache[K, V]) Put(key K, value V, bytes, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		c.kept = map[K]*list.Element{}
	}
	if before := c.kept[key]; before != nil {
		c.drop(before)
	}
	c.kept[key] = c.uses.PushFront(entry[K, V]{key, value, bytes})
	c.bytes += bytes
	for c.bytes > most {
		c.drop(c.uses.Back())
	}
}

func (c *Cache[K, V]) drop(at *list.Element) {
	one := c.uses.Remove(at).(entry[K, V])
	c.bytes -= one.bytes
	delete(c.kept, one.key)
}

// Size returns how many values are kept, and their bytes.
func (c *Cache[K, V]) Size() (values, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.kept), c.bytes
}
