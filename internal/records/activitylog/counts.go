package activitylog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/lru"
)

// Span counts the recorded calls of a client on a day.
type Span struct {
	Client string
	Begin  int64 // of the day, in microseconds
	All    int
	Last   int64 // when the last one began, in microseconds

	// of calls by programs, not by people in browsers
	Calls    int
	Failed   int
	Searches int // with a known result
	Found    int // searches that found something

	first int64 // the least row
}

// Caller is the user whose calls are counted.
type Caller struct{ Namespace, User string }

// Counts caches the counts of recorded calls of recent users, by the days of the time zone that was last requested, so
// that a page counts only newer calls. The rows of calls never change. They are deleted by lowest number, by earliest
// time, or all of a user at once, so a read compares the cache with the rows that remain. The zero value is ready.
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
	days   []int64 // where they begin, and the last one ends
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

// Of returns the counts of a user's calls, by client and day. They belong to the Counts. Days are the times at which
// days begin, ascending, and the one at which the last day ends; calls before and after are counted together. Nil means
// any days: if none are kept, the spans are those of all time, with only Client, All and Last.
func (c *Counts) Of(tx db.Tx, caller Caller, days []int64) ([]Span, error) {
	old, _ := lru.Get[counted](&c.kept, caller)
	if days != nil && !slices.Equal(days, old.days) {
		old = counted{days: days}
	}
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
		if days == nil {
			return total(tx, caller)
		}
		old, spans = counted{days: days}, nil
	case last == old.upto:
		return spans, nil
	}
	complete := c.settled(last)
	if tx.Writable() || complete.row < old.upto.row+foldAfter && old.upto.row > 0 {
		later, err := old.count(tx, caller, old.upto.row, last.row)
		return merge(spans, later), err
	}
	more, err := old.count(tx, caller, old.upto.row, complete.row)
	if err != nil {
		return nil, err
	}
	kept := counted{days: old.days, upto: complete, least: now, spans: merge(spans, more)}
	if kept.newest, err = newestOf(tx, caller, complete.row); err != nil {
		return nil, err
	}
	if complete.row > 0 {
		c.kept.Put(caller, kept, 200+8*len(kept.days)+len(kept.spans)*120, mostKept)
	}
	if complete.row >= last.row {
		return kept.spans, nil
	}
	later, err := old.count(tx, caller, complete.row, last.row)
	return merge(kept.spans, later), err
}

// Names is like Of for any days, but counts nothing where that would take long: if the user has many calls and none are
// kept. Then the spans have only Client.
func (c *Counts) Names(tx db.Tx, caller Caller) ([]Span, error) {
	if old, _ := lru.Get[counted](&c.kept, caller); old.upto.row == 0 {
		var rows int64
		err := tx.QueryRow(`SELECT count(*) FROM (SELECT 1 FROM activity `+db.ByActivityClient+` WHERE user_uid = ?
			LIMIT ?) a`, caller.User, mostRows+1).Scan(&rows)
		if err != nil {
			return nil, err
		}
		if rows > mostRows {
			names, err := db.Column[string](tx, `WITH RECURSIVE `+callers+`
				SELECT client FROM caller c WHERE client IS NOT NULL AND EXISTS (SELECT 1`+of+`) ORDER BY client`,
				caller.User, caller.Namespace)
			spans := make([]Span, len(names))
			for i, name := range names {
				spans[i].Client = name
			}
			return spans, err
		}
	}
	return c.Of(tx, caller, nil)
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

// newestOf returns the newest row of a user, up to a row.
func newestOf(tx db.Tx, caller Caller, upto int64) (b bound, err error) {
	err = tx.QueryRow(`SELECT id, uid FROM activity WHERE user_uid = ? AND `+db.NoIndex+`namespace = ? AND id <= ?
		ORDER BY id DESC LIMIT 1`, caller.User, caller.Namespace, upto).Scan(&b.row, &b.uid)
	if errors.Is(err, db.ErrNoRows) {
		err = nil
	}
	return b, err
}

// left returns the counts without the oldest rows, which were deleted. It returns false if they have to be counted
// again.
func (k *counted) left(tx db.Tx, caller Caller, now least) (spans []Span, is bool, err error) {
	if now == k.least {
		return k.spans, true, nil
	}
	again := 0
	for _, s := range k.spans {
		end := k.end(s.Begin)
		gone := end <= now.started
		whole := s.first >= now.row && s.Begin > now.started
		switch {
		case gone:
		case whole:
			spans = append(spans, s)
		default:
			if again++; again > mostSpans {
				return nil, false, nil
			}
			some, err := k.group(tx, `FROM activity `+db.ByActivityClient+` WHERE user_uid = ? AND namespace = ?
				AND client = ? AND started_at >= ? AND started_at < ? AND id <= ?`, caller.User, caller.Namespace, s.Client,
				s.Begin, end, k.upto.row)
			if err != nil {
				return nil, false, err
			}
			spans = append(spans, some...)
		}
	}
	return spans, true, nil
}

// Times before and after all days.
const (
	beforeDays = -1 << 60
	afterDays  = 1 << 60
)

// begin returns the beginning of the day of a time.
func (k *counted) begin(at int64) int64 {
	next, found := slices.BinarySearch(k.days, at)
	switch {
	case found:
		return at
	case next == 0:
		return beforeDays
	}
	return k.days[next-1]
}

// end returns the end of the day that begins at a time.
func (k *counted) end(begin int64) int64 {
	if next, _ := slices.BinarySearch(k.days, begin+1); next < len(k.days) {
		return k.days[next]
	}
	return afterDays
}

// count counts the calls of a user after a row, up to another: few rows by their numbers, many by the index.
func (k *counted) count(tx db.Tx, caller Caller, after, upto int64) ([]Span, error) {
	if upto <= after {
		return nil, nil
	}
	if after > 0 && upto-after <= mostRows { // the expression prevents use of the user's index
		return k.group(tx, `FROM activity WHERE coalesce(user_uid, '') = ? AND namespace = ? AND id > ? AND id <= ?`,
			caller.User, caller.Namespace, after, upto)
	}
	var clients int
	err := tx.QueryRow(`WITH RECURSIVE `+callers+`
		SELECT count(*) FROM (SELECT 1 FROM caller WHERE client IS NOT NULL LIMIT ?2) c`, caller.User, mostClients+1).
		Scan(&clients)
	if err != nil {
		return nil, err
	}
	if clients > mostClients {
		return k.group(tx, `FROM activity `+db.ByActivityClient+` WHERE user_uid = ? AND namespace = ? AND id > ?
			AND id <= ?`, caller.User, caller.Namespace, after, upto)
	}
	return k.all(tx, caller, after, upto)
}

// mostClients is how many clients of a user are counted by ranges of the index: one for each client and day.
const mostClients = 50

// group counts rows by client and day. It groups by quarters of an hour, as days begin at one in all time zones.
func (k *counted) group(tx db.Tx, from string, args ...any) ([]Span, error) {
	var spans []Span
	err := tx.Each(func(row db.Rows) error {
		var s Span
		err := row.Scan(&s.Client, &s.Begin, &s.All, &s.Last, &s.Calls, &s.Failed, &s.Searches, &s.Found, &s.first)
		s.Begin = k.begin(s.Begin)
		spans = append(spans, s)
		return err
	}, `SELECT client, started_at - started_at % 900000000, count(*), max(started_at),
		count(*) FILTER (WHERE credential <> 'session'),
		count(*) FILTER (WHERE credential <> 'session' AND outcome <> 'ok'),
		count(hits) FILTER (WHERE credential <> 'session'),
		count(*) FILTER (WHERE credential <> 'session' AND hits > 0), min(id) `+from+` GROUP BY 1, 2`, args...)
	slices.SortFunc(spans, Span.compare) // a database may sort texts differently
	return folded(spans), err
}

// callers are the clients of the user ?1, each found by one step in the index.
const callers = `caller (client) AS (
	SELECT min(client) FROM activity ` + db.ByActivityClient + ` WHERE user_uid = ?1 UNION ALL
	SELECT (SELECT min(client) FROM activity ` + db.ByActivityClient + ` WHERE user_uid = ?1 AND client > caller.client)
	FROM caller WHERE caller.client IS NOT NULL)`

// of selects the calls of a client of the user ?1 in the namespace ?2, along the index.
const of = ` FROM activity ` + db.ByActivityClient + ` WHERE user_uid = ?1 AND client = c.client AND namespace = ?2`

// total counts the calls of a user by client alone.
func total(tx db.Tx, caller Caller) ([]Span, error) {
	var spans []Span
	err := tx.Each(func(row db.Rows) error {
		var s Span
		err := row.Scan(&s.Client, &s.All, &s.Last)
		if s.All > 0 {
			spans = append(spans, s)
		}
		return err
	}, `WITH RECURSIVE `+callers+`
		SELECT client, (SELECT count(*)`+of+`), coalesce((SELECT started_at`+of+` ORDER BY started_at DESC LIMIT 1), 0)
		FROM caller c WHERE client IS NOT NULL`, caller.User, caller.Namespace)
	slices.SortFunc(spans, Span.compare)
	return spans, err
}

// all counts the calls of a user after a row, up to another, along ranges of the index: a GROUP BY of all rows would
// sort them, and take four times as long. One subquery counts all of a range, so its numbers are one text.
func (k *counted) all(tx db.Tx, caller Caller, after, upto int64) ([]Span, error) {
	const in = of + ` AND started_at >= begins AND started_at < ends AND id > ?4 AND id <= ?5`
	bounds := slices.Concat([]int64{beforeDays}, k.days, []int64{afterDays})
	var spans []Span
	err := tx.Each(func(row db.Rows) error {
		var s Span
		var numbers string
		if err := row.Scan(&s.Client, &s.Begin, &s.Last, &numbers); err != nil || numbers == "" {
			return err
		}
		_, err := fmt.Sscan(numbers, &s.All, &s.Calls, &s.Failed, &s.Searches, &s.Found, &s.first)
		spans = append(spans, s)
		return err
	}, `WITH RECURSIVE `+callers+`,
		c (client, earliest, latest) AS MATERIALIZED (SELECT client,
			(SELECT min(started_at) FROM activity `+db.ByActivityClient+` WHERE user_uid = ?1 AND client = caller.client),
			(SELECT max(started_at) FROM activity `+db.ByActivityClient+` WHERE user_uid = ?1 AND client = caller.client)
			FROM caller WHERE client IS NOT NULL),
		day (begins, ends) AS MATERIALIZED (SELECT value, lead(value) OVER (ORDER BY value) FROM `+db.Numbered3+` l)
		SELECT client, begins, coalesce((SELECT max(started_at)`+in+`), 0), coalesce((SELECT count(*) || ' ' ||
			count(*) FILTER (WHERE credential <> 'session') || ' ' ||
			count(*) FILTER (WHERE credential <> 'session' AND outcome <> 'ok') || ' ' ||
			count(hits) FILTER (WHERE credential <> 'session') || ' ' ||
			count(*) FILTER (WHERE credential <> 'session' AND hits > 0) || ' ' || min(id)`+in+`), '')
		FROM c JOIN day ON ends > earliest AND begins <= latest`, caller.User, caller.Namespace, db.List(bounds), after, upto)
	slices.SortFunc(spans, Span.compare)
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
			all, spans, more = append(all, spans[0].plus(more[0])), spans[1:], more[1:]
		}
	}
	return append(append(all, spans...), more...)
}

// folded adds up spans of the same client and day, in order, in the same slice.
func folded(spans []Span) []Span {
	n := 0
	for _, s := range spans {
		if n > 0 && spans[n-1].compare(s) == 0 {
			spans[n-1] = spans[n-1].plus(s)
			continue
		}
		spans[n], n = s, n+1
	}
	return spans[:n]
}

func (s Span) plus(t Span) Span {
	s.All, s.Last, s.Calls, s.Failed = s.All+t.All, max(s.Last, t.Last), s.Calls+t.Calls, s.Failed+t.Failed
	s.Searches, s.Found, s.first = s.Searches+t.Searches, s.Found+t.Found, min(s.first, t.first)
	return s
}
