package sqlite

import (
	"container/list"
	"database/sql/driver"
)

// maxStmts bounds the prepared statements that a connection keeps: enough for every fixed statement of the
// program, while filters, rewritten for each query, come and go.
const maxStmts = 256

type stmt struct {
	query  string
	ds     driver.Stmt
	params int           // the number of parameters, -1: the driver itself checks it
	rows   bool          // Exec must run it as a query, see execReturnsRows
	keeps  bool          // it removes no row: see keepsRows
	writes bool          // its rows count as affected
	busy   bool          // a Rows is reading from it
	elem   *list.Element // nil: not cached, closed when released
}

// stmtCache holds a connection's prepared statements, the least recently used last.
type stmtCache struct {
	byQuery   map[string]*stmt
	order     list.List
	closeStmt func(*stmt)
}

// take returns a free statement for the query, nil if it must be prepared.
func (c *stmtCache) take(query string) *stmt {
	s := c.byQuery[query]
	if s == nil || s.busy {
		return nil
	}
	s.busy = true
	c.order.MoveToFront(s.elem)
	return s
}

// add inserts a newly prepared statement, busy. The same query twice at once (one Rows read inside the loop over
// another) leaves the second one uncached.
func (c *stmtCache) add(s *stmt) {
	s.busy = true
	if c.byQuery[s.query] != nil {
		return
	}
	if c.byQuery == nil {
		c.byQuery = make(map[string]*stmt)
	}
	for e := c.order.Back(); e != nil && len(c.byQuery) >= maxStmts; {
		old := e.Value.(*stmt)
		e = e.Prev()
		if !old.busy {
			c.remove(old)
		}
	}
	s.elem = c.order.PushFront(s)
	c.byQuery[s.query] = s
}

func (c *stmtCache) release(s *stmt) {
	s.busy = false
	if s.elem == nil {
		c.closeStmt(s)
	}
}

func (c *stmtCache) remove(s *stmt) {
	delete(c.byQuery, s.query)
	c.order.Remove(s.elem)
	s.elem = nil
	c.closeStmt(s)
}

func (c *stmtCache) clear() {
	for _, s := range c.byQuery {
		c.remove(s)
	}
}
