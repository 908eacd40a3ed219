package sqlite

// SQLite keeps pages of the file for each connection. As the driver is built (SQLITE_ENABLE_MEMORY_MANAGEMENT), the
// caches of a process are one pool, of the size that all have together. A connection whose own share is full takes the
// page that was used least recently, in any connection. Once the pool is full, a connection that was left without pages
// keeps none: each is freed after its use, so it reads all of them again and again.
//
// So the shares are larger than what a file may hold in all. After a transaction, the excess is freed, least recently
// used first. The pool is never full then, and memory is bounded.
const (
	filePages  = 16 << 20 // bytes of pages that the connections to a file hold between transactions
	spare      = 2 << 20  // bytes that stay free in the pool with few connections
	freedAhead = 1 << 20  // bytes freed beyond the excess, so that not every transaction has to free some
)

// balance frees pages if the connections to the file hold too much. The caller has c, between transactions.
func (d *DB) balance(c *conn) {
	if d.memory || !d.count(c) {
		return
	}
	over := d.pages.Load() - min(filePages, d.caches.Load()*connPages-spare)
	if over <= 0 {
		return
	}
	freePages(over + freedAhead)
	d.count(c)
	d.readers.mu.Lock()
	for _, idle := range d.readers.idle {
		d.count(idle)
	}
	d.readers.mu.Unlock()
	if w := d.writer; w != nil {
		w.mu.Lock()
		if !w.held {
			d.count(w.conn)
		}
		w.mu.Unlock()
	}
}

// count notes how much a connection holds, which must not be in use. It reports false if the driver does not say.
func (d *DB) count(c *conn) bool {
	held := heldPages(c.raw)
	if c.pages == 0 && held > 0 {
		d.caches.Add(1)
	}
	d.pages.Add(held - c.pages)
	c.pages = held
	return held > 0
}

// uncount forgets a connection that is to be closed.
func (d *DB) uncount(c *conn) {
	if c.pages > 0 {
		d.caches.Add(-1)
		d.pages.Add(-c.pages)
	}
}
