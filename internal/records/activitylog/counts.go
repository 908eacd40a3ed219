package activitylog

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/lru"
)

// Quarter is the time in which the calls of a client are counted together, in microseconds: days begin at a quarter of
// an hour in all time zones.
const Quarter = int64(15 * time.Minute / time.Microsecond)

// Span counts the recorded calls of a client in a quarter of an hour.
type Span struct {
	Client string
	Begin  int64 // microseconds
	All    int
	Last   int64 // when the last one began, in microseconds

	// of calls by programs, not by people in browsers
	Calls    int
	Failed   int
	Searches int // with a known result
	Found    int // searches that found something

	first, last int64 // the least and the greatest row
}

// Caller is the user whose calls are counted.
type Caller struct{ Namespace, User string }

// Counts caches the counts of recorded calls of recent users, so that a page counts only newer calls. The rows of calls
// never change. They are deleted by lowest number, by earliest time, or all of a user at once, so a read compares the
// cache with the rows that remain. The zero value is ready.
type Counts struct {
	// Settles is the time after which no row with a lower number than a visible one can appear: 0 where writers take
	// turns.
	Settles time.Duration

	kept lru.Cache // counted by Caller

	mu       sync.Mutex
	seen     bound // becomes complete after Settles
	seenAt   time.Time
	complete bound // all rows up to it are visible
}

// bound is a row of the table.
type bound struct {
	row int64
	uid string
}

// counted are the calls of a user up to a row. It never changes.
type counted struct {
	upto   bound
	newest bound // of the user's
	least  least // when it was counted
	spans  []Span
}

// least is the row with the lowest number, and the time of the earliest call. Deleted rows are below these.
type least struct{ row, started int64 }

// Limits of the counts that are kept and compared.
const (
	mostKept  = 16 << 20 // bytes
	mostRows  = 10_000   // of all users since a count; with more, the user's calls are counted by their index again
	mostSpans = 200      // with deleted calls; with more, all are counted again
	foldAfter = 500      // rows of all users, before newer calls are added to the cache
)

// Of returns the counts of a user's calls, by client and time. They belong to the Counts.
func (c *Counts) Of(tx db.Tx, caller Caller) ([]Span, error) {
	old, _ := lru.Get[counted](&c.kept, caller)
	var last, upto, newest bound
	var now least
	err := db.Beyond(tx, func() error {
		return tx.QueryRow(`SELECT id, uid, (SELECT min(id) FROM activity), (SELECT min(started_at) FROM activity),
			coalesce((SELECT uid FROM activity WHERE id = ?1), ''), coalesce((SELECT uid FROM activity WHERE id = ?2), '')
			FROM activity ORDER BY id DESC LIMIT 1`, old.upto.row, old.newest.row).
			Scan(&last.row, &last.uid, &now.row, &now.started, &upto.uid, &newest.uid)
	})
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	// The row is gone, or its number was reused: calls of a user were deleted, or this snapshot is older.
	known := old.upto.row > 0 && upto.uid == old.upto.uid && newest.uid == old.newest.uid && last.row >= old.upto.row
	var spans []Span
	if known {
		spans, known, err = old.left(tx, caller, now)
	}
	switch {
	case err != nil:
		return nil, err
	case !known || last.row-old.upto.row > mostRows:
		old, spans = counted{}, nil
	case last == old.upto:
		return spans, nil
	}
	complete := c.settled(last)
	if tx.Writable() || complete.row < old.upto.row+foldAfter && old.upto.row > 0 {
		later, err := count(tx, caller, old.upto.row, last.row)
		return merge(spans, later), err
	}
	more, err := count(tx, caller, old.upto.row, complete.row)
	if err != nil {
		return nil, err
	}
	kept := counted{upto: complete, newest: old.newest, least: now, spans: merge(spans, more)}
	if err := kept.findNewest(tx, more); err != nil {
		return nil, err
	}
	c.kept.Put(caller, kept, 200+len(kept.spans)*120, mostKept)
	if complete.row >= last.row {
		return kept.spans, nil
	}
	later, err := count(tx, caller, complete.row, last.row)
	return merge(kept.spans, later), err
}

// settled returns the row up to which all rows are visible, given the last visible one; the zero value is none.
func (c *Counts) settled(last bound) bound {
	if c.Settles == 0 {
		return last
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.seenAt.IsZero() || now.Sub(c.seenAt) >= c.Settles {
		c.complete, c.seen, c.seenAt = c.seen, last, now
	}
	if c.complete.row > last.row {
		return bound{}
	}
	return c.complete
}

// findNewest records the user's newest row, if it was just counted.
func (k *counted) findNewest(tx db.Tx, more []Span) error {
	if len(more) == 0 {
		return nil
	}
	k.newest.row = slices.MaxFunc(more, func(a, b Span) int { return cmp.Compare(a.last, b.last) }).last
	return tx.QueryRow(`SELECT uid FROM activity WHERE id = ?`, k.newest.row).Scan(&k.newest.uid)
}

// left returns the counts without the oldest rows, which were deleted. It returns false if they have to be counted
// again.
func (k *counted) left(tx db.Tx, caller Caller, now least) (spans []Span, is bool, err error) {
	if now == k.least {
		return k.spans, true, nil
	}
	again := 0
	for _, s := range k.spans {
		gone := s.last < now.row || s.Begin+Quarter <= now.started
		whole := s.first >= now.row && s.Begin > now.started
		switch {
		case gone:
		case whole:
			spans = append(spans, s)
		default:
			if again++; again > mostSpans {
				return nil, false, nil
			}
			some, err := group(tx, `FROM activity `+db.ByActivityClient+` WHERE user_uid = ? AND namespace = ? AND client = ?
				AND started_at >= ? AND started_at < ? AND id <= ?`, caller.User, caller.Namespace, s.Client, s.Begin,
				s.Begin+Quarter, k.upto.row)
			if err != nil {
				return nil, false, err
			}
			spans = append(spans, some...)
		}
	}
	return spans, true, nil
}

// count counts the calls of a user after a row, up to another: few rows by their numbers, all of them by the index.
func count(tx db.Tx, caller Caller, after, upto int64) ([]Span, error) {
	from := `FROM activity ` + db.ByActivityClient + ` WHERE user_uid = ? AND namespace = ? AND id > ? AND id <= ?`
	if after > 0 && upto-after <= mostRows { // the expression prevents use of the user's index
		from = `FROM activity WHERE coalesce(user_uid, '') = ? AND namespace = ? AND id > ? AND id <= ?`
	}
	return group(tx, from, caller.User, caller.Namespace, after, upto)
}

// group counts rows by client and time.
func group(tx db.Tx, from string, args ...any) ([]Span, error) {
	var spans []Span
	err := tx.Each(func(row db.Rows) error {
		var s Span
		err := row.Scan(&s.Client, &s.Begin, &s.All, &s.Last, &s.Calls, &s.Failed, &s.Searches, &s.Found, &s.first, &s.last)
		if n := len(spans); n > 0 && spans[n-1].Client == s.Client {
			s.Client = spans[n-1].Client // one copy of the name
		}
		spans = append(spans, s)
		return err
	}, `SELECT client, started_at - started_at % 900000000, count(*), max(started_at),
		count(*) FILTER (WHERE credential <> 'session'),
		count(*) FILTER (WHERE credential <> 'session' AND outcome <> 'ok'),
		count(hits) FILTER (WHERE credential <> 'session'),
		count(*) FILTER (WHERE credential <> 'session' AND hits > 0), min(id), max(id) `+from+` GROUP BY 1, 2`, args...)
	slices.SortFunc(spans, Span.compare) // a database may sort texts differently
	return spans, err
}

func (s Span) compare(t Span) int {
	return cmp.Or(strings.Compare(s.Client, t.Client), cmp.Compare(s.Begin, t.Begin))
}

// merge adds spans to others, both in order, in a new slice.
func merge(spans, more []Span) []Span {
	if len(more) == 0 {
		return spans
	}
	all := make([]Span, 0, len(spans)+len(more))
	for len(spans) > 0 && len(more) > 0 {
		switch order := spans[0].compare(more[0]); {
		case order < 0:
			all, spans = append(all, spans[0]), spans[1:]
		case order > 0:
			all, more = append(all, more[0]), more[1:]
		default:
			s, t := spans[0], more[0]
			s.All, s.Last, s.Calls, s.Failed = s.All+t.All, max(s.Last, t.Last), s.Calls+t.Calls, s.Failed+t.Failed
			s.Searches, s.Found = s.Searches+t.Searches, s.Found+t.Found
			s.first, s.last = min(s.first, t.first), max(s.last, t.last)
			all, spans, more = append(all, s), spans[1:], more[1:]
		}
	}
	return append(append(all, spans...), more...)
}
