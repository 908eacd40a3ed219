package activitylog

import (
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Query selects recorded calls, the last recorded first. Fields with a zero value select all.
type Query struct {
	Namespace, User                                string
	Credential, CredentialID, Client, Tool, Action string
	Calls                                          []Action // any of these
	Outcome                                        string
	Failed                                         bool   // every outcome but OK
	Since, Until                                   *int64 // microseconds
	Project                                        int64  // row
	Before                                         int64  // row: only calls recorded before it
}

// OK is the outcome of a call that did not fail.
const OK = "ok"

// Action is an action of a tool. Without an Action it stands for every call of the tool.
type Action struct{ Tool, Action string }

// Found is a recorded call as it is read. Its Project is not set.
type Found struct {
	Number int64 // of its row
	Row
	UserName, CredentialName, ProjectID string // empty: none, or no longer
}

// shortWhile is the longest time range for which calls are looked up by time, in microseconds.
const shortWhile = int64(time.Hour / time.Microsecond)

// caller is the condition that a call a is of the query's user.
func (q Query) caller() (condition string, args []any) {
	condition, args = db.NoIndex+`a.namespace = ?`, []any{q.Namespace}
	if q.User != "" {
		condition, args = condition+` AND a.user_uid = ?`, append(args, q.User)
	}
	return condition, args
}

// RowOf returns the row of a call by its id, 0 if the query's user has none.
func (q Query) RowOf(tx db.Tx, id string) (int64, error) {
	condition, args := q.caller()
	rows, err := db.Column[int64](tx, `SELECT a.id FROM activity a WHERE a.uid = ? AND `+condition,
		append([]any{id}, args...)...)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return rows[0], nil
}

// condition returns the condition on a call a.
func (q Query) condition() (condition string, args []any) {
	condition, args = q.caller()
	add := func(part string, values ...any) {
		condition += ` AND ` + part
		args = append(args, values...)
	}
	if q.Before != 0 {
		add(`a.id < ?`, q.Before)
	}
	for _, equal := range []struct{ column, value string }{
		{"credential", q.Credential}, {"credential_id", q.CredentialID}, {"client", q.Client}, {"tool", q.Tool},
		{"action", q.Action},
	} {
		if equal.value != "" {
			add(db.NoIndex+`a.`+equal.column+` = ?`, equal.value) // the query must use the order by id
		}
	}
	if len(q.Calls) > 0 {
		part, values := oneOf(q.Calls)
		add(part, values...)
	}
	switch {
	case q.Failed:
		add(`a.outcome <> ?`, OK)
	case q.Outcome != "":
		add(`a.outcome = ?`, q.Outcome)
	}
	switch {
	case q.Since != nil && q.Until != nil && *q.Until-*q.Since <= shortWhile: // faster than a scan
		add(`a.id IN (SELECT id FROM activity `+db.ByActivityStarted+` WHERE started_at >= ? AND started_at < ?)`, *q.Since,
			*q.Until)
	default:
		if q.Since != nil {
			add(db.NoIndex+`a.started_at >= ?`, *q.Since)
		}
		if q.Until != nil {
			add(db.NoIndex+`a.started_at < ?`, *q.Until)
		}
	}
	if q.Project != 0 {
		add(`a.project_id = ?`, q.Project)
	}
	return condition, args
}

// oneOf returns the condition that a call a is one of some actions.
func oneOf(calls []Action) (condition string, args []any) {
	parts := make([]string, len(calls))
	for i, c := range calls {
		parts[i] = `a.tool = ?`
		args = append(args, c.Tool)
		if c.Action != "" {
			parts[i] += ` AND a.action = ?`
			args = append(args, c.Action)
		}
	}
	return `(` + strings.Join(parts, ` OR `) + `)`, args
}

// Read returns up to limit calls. The project of a call is named if a condition on the project j holds, too.
func (q Query) Read(tx db.Tx, limit int, visible string, visibleArgs ...any) ([]Found, error) {
	condition, args := q.condition()
	found := []Found{}
	err := tx.Each(func(row db.Rows) error {
		var a Found
		err := row.Scan(&a.Number, &a.ID, &a.User, &a.UserName, &a.Credential, &a.CredentialID, &a.CredentialName, &a.Client,
			&a.Tool, &a.Action, &a.ProjectID, &a.Memory, &a.File, &a.Outcome, &a.StartedAt, &a.Duration, &a.Length, &a.Hits)
		found = append(found, a)
		return err
	}, `SELECT a.id, a.uid, a.user_uid, coalesce((SELECT u.name FROM users u WHERE u.namespace = a.namespace
		AND u.uid = a.user_uid), ''), a.credential, a.credential_id,
			coalesce(CASE a.credential WHEN 'token' THEN (SELECT t.name FROM token t WHERE t.uid = a.credential_id)
				WHEN 'client' THEN (SELECT o.name FROM oauth_client o WHERE o.client_id = a.credential_id) END, ''),
			a.client, a.tool, a.action, coalesce((SELECT j.uid FROM project j WHERE j.id = a.project_id AND `+visible+
		`), ''), a.memory, a.file, a.outcome, a.started_at, a.duration, a.bytes, a.hits
		FROM activity a WHERE `+condition+` ORDER BY a.id DESC LIMIT ?`,
		append(append(visibleArgs, args...), limit)...)
	return found, err
}
