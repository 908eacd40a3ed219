package postgres

import (
	"fmt"
	"time"
)

// Every Write locks the table write_turn for its turn: in a mode that admits other Writes, or, after it had to run
// again a few times, in one that admits none. What limits the waits for locks is here, too.

// How often, and for how long, a Write runs again; from alone on it runs while no other does.
const (
	alone       = 4
	patience    = 60 * time.Second
	lockTimeout = 30 * time.Second // for each lock; as long as SQLite waits for another process
	// turnTime is how long a Write waits for the turn to run alone, and then for each lock: meanwhile no other begins, and
	// a running one, or another program, may take long.
	turnTime = 500 * time.Millisecond
)

// lockWait is a statement that limits the wait for each lock.
func lockWait(limit time.Duration) pending {
	return pending{text: fmt.Sprintf("SET LOCAL lock_timeout = %d", limit.Milliseconds())}
}

// lockWaits returns the statement that limits the waits of a Read. Connections have their limit from the beginning,
// except behind a pooler, and those of a coordinator to workers.
func (d *DB) lockWaits() []pending {
	if d.sessions && !d.distributed {
		return nil
	}
	return []pending{lockWait(d.lockTimeout)}
}

// takeTurn returns the statements with which a Write waits for its turn, and which limit its wait for other locks. One
// that runs alone waits only briefly for these: other programs hold them, and all Writes wait for its end. On Citus the
// lock is only on the coordinator, where all Writes meet, and not on all workers, some of which may be away; the worker
// gets the timeout.
func (d *DB) takeTurn(exclusive bool, wait time.Duration) (all []pending) {
	add := func(text string) { all = append(all, pending{text: text}) }
	mode := "ROW EXCLUSIVE"
	if exclusive {
		mode, wait = "EXCLUSIVE", min(wait, turnTime)
	}
	all = append(all, lockWait(wait))
	if d.distributed {
		add("SET LOCAL citus.enable_ddl_propagation = off")
	}
	table := "write_turn"
	if d.ofKeys {
		table = "user_key"
	}
	// LOCK takes no snapshot: one that waited for it sees what was committed meanwhile.
	add("LOCK TABLE " + table + " IN " + mode + " MODE")
	if d.distributed {
		add("SET LOCAL citus.enable_ddl_propagation = on")
	}
	return all
}
