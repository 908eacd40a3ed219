package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// On Citus, postgres/citus.sql puts all tables of a schema on one worker. The coordinator, to which servers connect,
// passes their statements on to it as they are, in a transaction of the same isolation: so all promises of this package
// hold. This file has the differences.

// lookForCitus notes whether Citus keeps the schema on a worker.
func (d *DB) lookForCitus(ctx context.Context) error {
	var there, stamped bool
	err := d.pool.QueryRow(ctx, `SELECT to_regclass('pg_catalog.pg_dist_schema') IS NOT NULL`).Scan(&there)
	if err == nil && there {
		err = d.pool.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_dist_schema
				WHERE schemaid = to_regnamespace(quote_ident(current_schema()))),
			EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass('change_floor') AND attname = 'node')`).
			Scan(&d.distributed, &stamped)
	}
	if err == nil && d.distributed && !stamped {
		return &Error{Op: "open", err: errors.New("the schema is distributed by Citus, but not prepared for it: " +
			"make an ordinary schema, open the store once, and then run postgres/citus.sql")}
	}
	return classify("open", err)
}

// distributedSettings returns the settings of each transaction on Citus: its worker gets the settings that follow,
// functions of the schema may read tables there, which are all on that worker, and parameters are known when a
// statement is planned, as Citus requires for the query of an INSERT.
func distributedSettings() []string {
	return []string{"SET LOCAL citus.propagate_set_commands = 'local'",
		"SET LOCAL citus.allow_nested_distributed_execution = on", "SET LOCAL plan_cache_mode = force_custom_plan"}
}

// scriptParts splits a script into the parts to send: on Citus single statements, since the coordinator forwards the
// whole text.
func (d *DB) scriptParts(script string) (parts []string) {
	if !d.distributed {
		return []string{script}
	}
	begin := 0
	for i := 0; i < len(script); i++ {
		if end := skipped(script, i); end > i {
			i = end - 1
		} else if body, dollars := strings.CutPrefix(script[i:], "$$"); dollars {
			i += 2 + strings.Index(body, "$$") + 1
		} else if script[i] == ';' {
			parts, begin = append(parts, script[begin:i]), i+1
		}
	}
	return append(parts, script[begin:])
}

// reason is the key under which a connection has the last notice of what went wrong with a worker.
const reason = "souvenir: what went wrong with a worker"

// noticed keeps such a notice: some errors of the coordinator (XX000) do not name their cause.
func noticed(conn *pgconn.PgConn, n *pgconn.Notice) {
	if e := (*pgconn.PgError)(n); undone(e) || strings.HasPrefix(e.Code, "08") {
		conn.CustomData()[reason] = e
	}
}

// undone reports whether an error says that its transaction was undone: in favour of another one, or by a constraint.
func undone(e *pgconn.PgError) bool {
	return strings.HasPrefix(e.Code, "40") || strings.HasPrefix(e.Code, "23")
}

// ofWorker returns the cause of a statement's error.
func (tx *Tx) ofWorker(err error) error {
	var known *Error
	var answer *pgconn.PgError
	if !tx.d.distributed || errors.As(err, &known) || !errors.As(err, &answer) || answer.Code != "XX000" {
		return err
	}
	if why, given := tx.conn.PgConn().CustomData()[reason].(*pgconn.PgError); given {
		return why
	}
	if code := worded(answer.Message); code != "" {
		known := *answer
		known.Code = code
		return &known
	}
	return err
}

// worded returns the code of an error by its text, or "". At times the coordinator passes on the text of a worker's
// error alone, in English unless the worker is set up otherwise.
func worded(message string) string {
	switch {
	case strings.HasPrefix(message, "could not serialize access"):
		return codeSerialization
	case strings.HasPrefix(message, "deadlock detected"):
		return codeDeadlock
	case strings.HasPrefix(message, "server closed the connection unexpectedly"): // the worker's, on the coordinator
		return codeGone
	}
	return ""
}

// uncommitted is [unanswered]. On Citus the coordinator commits by sending COMMIT to the worker, and answers with an
// ERROR if that fails: unless the worker gave a reason, it may have committed and ended before it could say so.
func (tx *Tx) uncommitted(err error) error {
	var answer *pgconn.PgError
	if err == nil || !tx.d.distributed || errors.As(err, &answer) && undone(answer) {
		return unanswered(err)
	}
	if why, given := tx.conn.PgConn().CustomData()[reason].(*pgconn.PgError); given && undone(why) {
		return why
	}
	return &Error{Op: "commit", kind: db.ErrOutcomeUnknown, err: err}
}
