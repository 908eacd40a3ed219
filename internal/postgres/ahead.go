package postgres

import (
	"container/list"
	"maps"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
)

// ahead records what transactions have read, by key; see package readahead. The next transaction with the same key
// reads the same with its first statement. Each of these statements has the arguments with which it would be sent
// anyway, on the same snapshot: so it may be of no use, but not wrong. If one fails, the transaction begins anew
// without them.
type ahead struct {
	mu    sync.Mutex
	all   map[string]*list.Element // of plans
	order list.List                // the one used last is in front
	size  int
}

// plan lists the expected reads of a transaction.
type plan struct {
	key    string
	size   int // bytes, about
	reads  []read
	missed map[string]int // how often a statement did not come as expected
}

// read is a statement with its arguments.
type read struct {
	key string // of seen
	st  statement
	// args are those of the driver.
	args []any
	most int // rows; 0: all
}

const (
	mostPlans = 16 << 20 // bytes of all plans of a server
	mostAhead = 50       // reads of a plan
	// mostMissed is how often a statement may not come as expected, such as one with the time in its arguments.
	mostMissed = 3
)

func (a *ahead) plan(key string) *plan {
	a.mu.Lock()
	defer a.mu.Unlock()
	kept := a.all[key]
	if kept == nil {
		return nil
	}
	a.order.MoveToFront(kept)
	return kept.Value.(*plan)
}

// set replaces a plan; nil removes it. The least recently used plans make room.
func (a *ahead) set(key string, p *plan) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.remove(a.all[key])
	if p == nil {
		return
	}
	p.key, p.size = key, len(key)+200
	for _, r := range p.reads {
		p.size += 2*len(r.key) + 200 // the key has the text and the arguments
	}
	for text := range p.missed {
		p.size += len(text)
	}
	a.all[key] = a.order.PushFront(p)
	for a.size += p.size; a.size > mostPlans; {
		a.remove(a.order.Back())
	}
}

func (a *ahead) remove(kept *list.Element) {
	if kept == nil {
		return
	}
	p := a.order.Remove(kept).(*plan)
	delete(a.all, p.key)
	a.size -= p.size
}

// learn makes the plan of what the transaction has read.
func (tx *Tx) learn() {
	s := tx.seen
	if s == nil || s.name == "" {
		return
	}
	if tx.lost != nil {
		tx.d.ahead.set(s.name, nil)
		return
	}
	next := &plan{missed: map[string]int{}}
	if s.plan != nil {
		maps.Copy(next.missed, s.plan.missed)
		for _, r := range s.plan.reads {
			if !s.used[r.key] {
				next.missed[r.st.text]++
			}
		}
	}
	for i, r := range s.order {
		if i > 0 && len(next.reads) < mostAhead && next.missed[r.st.text] < mostMissed { // the first one is sent in any case
			next.reads = append(next.reads, r)
		}
	}
	if len(next.reads) == 0 && len(next.missed) == 0 { // visitors without a session may send any number of keys
		next = nil
	}
	tx.d.ahead.set(s.name, next)
}

// expect makes a transaction read ahead what earlier ones with the same key have read.
func (tx *Tx) expect(key string) {
	if key != "" && tx.readsAhead() {
		tx.seen.name, tx.seen.plan = key, tx.d.ahead.plan(key)
	}
}

// readsAhead reports whether statements may be read ahead. Behind the second wall they could be those of another
// caller.
func (tx *Tx) readsAhead() bool { return tx.d.sessions && !tx.d.walled }

// beginAnew begins a transaction again after its first statement failed together with the reads ahead. It returns false
// if that is of no use.
func (tx *Tx) beginAnew(beginning []pending) bool {
	if beginning == nil || tx.rerun != nil || tx.ctx.Err() != nil || tx.conn.IsClosed() {
		return false
	}
	if _, err := tx.conn.PgConn().Exec(tx.ctx, "ROLLBACK").ReadAll(); err != nil {
		return false
	}
	tx.d.log.DebugContext(tx.ctx, "a transaction begins anew, without what it read ahead", "error", tx.lost)
	if tx.seen.plan != nil {
		tx.d.ahead.set(tx.seen.name, nil)
	}
	tx.seen.plan, tx.seen.rows, tx.seen.size = nil, map[string]known{}, 0
	tx.pending, tx.begun, tx.lost = beginning, false, nil
	return true
}

// Ahead reads the rows of a query with the next statement; see [db.Ahead].
func (tx *Tx) Ahead(query string, args ...any) {
	if tx.wrote || !tx.readsAhead() {
		return
	}
	st, bound, err := tx.prepare(query, args)
	if err != nil || !st.constant {
		return // it is sent by itself
	}
	if tx.seen == nil {
		tx.seen = newSeen()
	}
	tx.seen.next = append(tx.seen.next, read{key: tx.key(st, bound), st: st, args: bound})
}

// MarkAhead is Ahead for the position in the log of changes.
func (tx *Tx) MarkAhead() { tx.Ahead(tx.positionQuery()) }

// writes marks the reads of a transaction that may write as possibly out of date from now on.
func (tx *Tx) writes() {
	if tx.writable {
		tx.wrote, tx.seen = true, nil
	}
}

// key is that of a statement in what the transaction has seen.
func (tx *Tx) key(st statement, args []any) string {
	caller := tx.caller
	if !tx.d.walled {
		caller = nil // the caller makes no difference
	}
	return tx.seen.key(caller, st.text, args)
}

// expected returns the reads to send with a statement: those requested by Ahead, and with the first statement those of
// the plan.
func (tx *Tx) expected(with string) (all []read) {
	if tx.seen == nil {
		return nil
	}
	add := func(reads []read) {
		for _, r := range reads {
			_, has := tx.seen.rows[r.key]
			if !has && r.key != with && !slices.ContainsFunc(all, func(a read) bool { return a.key == r.key }) {
				all = append(all, r)
			}
		}
	}
	add(tx.seen.next)
	tx.seen.next = nil
	if tx.seen.plan != nil && !tx.begun {
		add(tx.seen.plan.reads)
	}
	return all
}

// readAhead reads the answers to what was expected.
func (tx *Tx) readAhead(answers pgx.BatchResults, all []read) error {
	for _, r := range all {
		rows, err := answers.Query()
		if err != nil {
			return err
		}
		read, err := collect(rows, r.most)
		if err != nil {
			return err
		}
		tx.seen.keep(r.key, read, r.most)
	}
	return nil
}
