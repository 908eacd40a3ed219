package postgres

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Row-level security is a second wall behind the conditions of statements, if the operator makes it by
// postgres/wall.sql: policies hide the rows of memories, files and trash that the caller of a transaction may not see,
// and refuse changes of rows that the caller may not change. They read the caller from the setting souvenir.caller, and
// show nothing without it. The wall does not hold for owners of the tables.

// server is the caller of transactions for the store as a whole.
const server = "server"

// lookForWall notes whether the role of the connections is one that policies hold for.
func (d *DB) lookForWall(ctx context.Context) error {
	err := d.pool.QueryRow(ctx, `SELECT coalesce(bool_or(row_security_active(oid)), false) FROM pg_class
		WHERE relname = 'memory' AND relnamespace = current_schema()::regnamespace`).Scan(&d.walled)
	if err == nil && d.walled && d.distributed {
		return &Error{Op: "open", err: errors.New("row-level security does not work on Citus, as workers do not learn the " +
			"caller; connect as the owner of the tables")}
	}
	return classify("open", err)
}

// ActFor sets the caller that the policies check. The server gets it with the next statement.
func (tx *Tx) ActFor(c *db.Caller) { tx.caller = c }

// settle sends the caller to the server, unless the server knows it.
func (tx *Tx) settle() {
	if !tx.d.walled || !tx.unsettled && same(tx.declared, tx.caller) {
		return
	}
	c := tx.caller
	who, projects := server, ""
	if c != nil {
		who = strconv.FormatInt(c.User, 10)
		if c.Limited {
			projects = "{" + strings.Trim(db.List(c.Projects), "[]") + "}"
		}
	}
	tx.pending = append(tx.pending, pending{text: `SELECT set_config('souvenir.caller', $1, true),
		set_config('souvenir.projects', $2, true)`, args: []any{who, projects}})
	tx.declared, tx.unsettled = c, false
}

// Caller returns the transaction's caller, nil for none.
func (tx *Tx) Caller() *db.Caller { return tx.caller }

func same(a, b *db.Caller) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.User == b.User && a.Limited == b.Limited && slices.Equal(a.Projects, b.Projects)
}
