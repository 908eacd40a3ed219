package postgres

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Changes is the log that triggers on memory and passage write. Transactions do not commit in the order of their
// numbers: the log has the number of the transaction of each change, and a mark says which of them were running.
func (tx *Tx) Changes() db.Changes { return changes{tx} }

type changes struct{ *Tx }

// position is a decoded mark: the changes of all transactions up to the newest that has any, except the ones that were
// running. So two marks are equal if the log is the same.
type position struct {
	newest  int64
	running []int64 // in order, all below newest
	node    int64   // whose transactions they are, on Citus; else 0
}

func (p position) mark() db.Mark {
	if p.newest == 0 && p.node == 0 {
		return ""
	}
	numbers := []string{strconv.FormatInt(p.newest, 10)}
	for _, xid := range p.running {
		numbers = append(numbers, strconv.FormatInt(xid, 10))
	}
	if p.node != 0 {
		numbers = append(numbers, onNode+strconv.FormatInt(p.node, 10))
	}
	return db.Mark(strings.Join(numbers, " "))
}

// onNode begins the last field of a mark on Citus.
const onNode = "@"

func parseMark(mark db.Mark) (p position, err error) {
	for i, field := range strings.Fields(string(mark)) {
		number, node := strings.CutPrefix(field, onNode)
		n, err := strconv.ParseInt(number, 10, 64)
		switch {
		case err != nil:
			return p, fmt.Errorf("postgres: a mark of another engine: %w", err)
		case node:
			p.node = n
		case i == 0:
			p.newest = n
		default:
			p.running = append(p.running, n)
		}
	}
	return p, nil
}

// here is the newest transaction of the log, and the newest that was removed from it. A Write gets its number after its
// snapshot, which may not include the changes of others with lower numbers. So its own is left out.
const here = `SELECT coalesce(max(xid)::text::int8, 0) AS xid, (SELECT xid::text::int8 FROM change_floor) AS removed,
	0::int8 AS node FROM change WHERE xid < pg_snapshot_xmax(pg_current_snapshot())`

// onWorker is the same on Citus. Until the first change after a move of the schema, the log is another worker's.
const onWorker = `SELECT CASE WHEN f.node = c.system_identifier
		THEN coalesce((SELECT max(xid)::text::int8 FROM change
			WHERE xid < pg_snapshot_xmax(pg_current_snapshot())), 0) ELSE 0 END AS xid,
	f.xid::text::int8 AS removed, c.system_identifier AS node FROM change_floor f, pg_control_system() c`

func (tx *Tx) positionQuery() string {
	query := here
	if tx.d.distributed {
		query = onWorker
	}
	return `SELECT n.xid, n.removed, coalesce(pg_current_xact_id_if_assigned()::text::int8, 0),
			(SELECT coalesce(string_agg(x::text, ' ' ORDER BY x), '') FROM pg_snapshot_xip(pg_current_snapshot()) x
				WHERE x::text::int8 < n.xid), n.node
		FROM (` + query + `) n`
}

// position returns the position of the transaction's snapshot. If own is not 0, the position does not cover what the
// transaction itself wrote.
func (c changes) position() (p position, removed, own int64, err error) {
	var running string
	err = c.QueryRow(c.positionQuery()).Scan(&p.newest, &removed, &own, &running, &p.node)
	if err != nil {
		return p, 0, 0, err
	}
	for _, text := range strings.Fields(running) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return p, 0, 0, err
		}
		p.running = append(p.running, n)
	}
	if own != 0 && own <= p.newest && !slices.Contains(p.running, own) {
		p.running = append(p.running, own)
		slices.Sort(p.running)
	}
	return p, removed, own, err
}

func (c changes) Mark() (db.Mark, error) {
	p, _, _, err := c.position()
	return p.mark(), err
}

func (c changes) Since(mark db.Mark, limit int) ([]int64, db.Mark, bool, error) {
	seen, err := parseMark(mark)
	if err != nil {
		return nil, mark, false, err
	}
	now, removed, own, err := c.position()
	if err != nil {
		return nil, mark, false, err
	}
	if seen.node != 0 && seen.node != now.node {
		return nil, mark, false, nil
	}
	// Snapshots of one server are ordered: the older one has seen fewer transactions, or more of them still running.
	if own == 0 && (now.newest < seen.newest || now.newest == seen.newest && len(now.running) >= len(seen.running)) {
		return nil, mark, true, nil
	}
	if removed > seen.newest || len(seen.running) > 0 && removed >= seen.running[0] {
		return nil, mark, false, nil
	}
	memories, err := db.Column[int64](c, `SELECT DISTINCT memory_id FROM change
		WHERE xid > ?1::text::xid8 OR xid IN (SELECT x::text::xid8 FROM unnest(translate(?2, '[]', '{}')::int8[]) x)
		LIMIT ?3`, seen.newest, db.List(seen.running), limit+1)
	if err != nil || len(memories) > limit {
		return nil, mark, false, err
	}
	return memories, now.mark(), true, nil
}
