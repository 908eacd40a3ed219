package dbtest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// world is a row of most tables, with the numbers that the lists below name. Each ? is some bytes of its own. User 1
// owns rows that outlive their owner, user 2 has rows that are deleted with their user.
const world = `
INSERT INTO users (id, uid, created_at) VALUES (1, 'ann', 0), (2, 'bob', 0), (3, 'cid', 0);
INSERT INTO profile (id, key, model, dimensions, created_at) VALUES (1, 'p', 'p', 2, 0);
INSERT INTO collection (id, owner_id, name, description, created_at, updated_at)
	VALUES (1, 1, 'c', '', 0, 0), (2, 1, 'd', '', 0, 0), (3, 1, 'empty', '', 0, 0);
INSERT INTO project (id, owner_id, uid, name, created_at, updated_at)
	VALUES (1, 1, 'p', 'p', 0, 0), (2, 1, 'q', 'q', 0, 0);
INSERT INTO project_member (project_id, user_id, role, created_at) VALUES (1, 2, 'reader', 0), (2, 3, 'reader', 0);
INSERT INTO project_alias (owner_id, name_key, name, project_id, created_at) VALUES (1, 'old', 'old', 2, 0);
INSERT INTO partition (id, collection_id, project_id) VALUES (1, 1, 1), (2, 2, NULL);
INSERT INTO memory (id, uid, partition_id, content, metadata, revision, created_at, updated_at) VALUES
	(1, 'm1', 1, 'content', '{}', 1, 0, 0), (2, 'm2', 1, 'content', '{}', 1, 0, 0),
	(3, 'm3', 2, 'content', '{"k":1}', 1, 0, 0);
INSERT INTO memory_tag (memory_id, tag, position) VALUES (1, 't', 0);
INSERT INTO memory_link (memory_id, related_id, position) VALUES (1, 3, 0), (2, 1, 1);
INSERT INTO memory_revision (id, memory_id, revision, partition_id, content, attributes, created_at)
	VALUES (1, 1, 1, 1, 'abc', '{}', 0), (2, 3, 1, 1, '', '{}', 0);
INSERT INTO passage (id, memory_id, start, length, blank) VALUES (4294967297, 1, 0, 1, 0);
INSERT INTO turn (memory_id, partition_id, conversation, at, speaker) VALUES (1, 1, 1, 0, '');
INSERT INTO file (id, uid, owner_id, memory_id, filename, mime_type, size, sha256, description, category, created_at,
	updated_at, state) VALUES (1, 'f', 1, 1, '', '', 0, ?, '', '', 0, 0, 'stored');
INSERT INTO file_tag (file_id, tag, position) VALUES (1, 't', 0);
INSERT INTO file_chunk (id, sha256, data, object) VALUES (1, ?, ?, 'o1');
INSERT INTO file_object (key, state, size, due_at) VALUES ('o1', 'stored', 3, 9);
INSERT INTO external_identity (issuer, subject, user_id, email, created_at) VALUES ('i', 's', 2, '', 0);
INSERT INTO preference (user_id, value, updated_at) VALUES (2, '{}', 0);
INSERT INTO oauth_client (id, client_id, kind, owner_id, name, auth_method, redirect_uris, metadata, created_at,
	updated_at) VALUES (1, 'c1', 'admin', 2, '', 'none', '[]', '{}', 0, 0),
	(2, 'c2', 'registered', NULL, '', 'none', '[]', '{}', 0, 0);
INSERT INTO oauth_grant (id, uid, client_id, user_id, scopes, resource, created_at)
	VALUES (1, 'g1', 2, 3, '[]', '', 0), (2, 'g2', 1, 1, '[]', '', 0), (3, 'g3', 2, 2, '[]', '', 0);
INSERT INTO oauth_code (hash, grant_id, redirect_uri, challenge, created_at, expires_at) VALUES (?, 1, '', '', 0, 0);
INSERT INTO oauth_token (hash, grant_id, created_at, expires_at) VALUES (?, 1, 0, 0);
INSERT INTO token (id, uid, user_id, name, hash, prefix, scopes, created_at, grant_id, parent_id) VALUES
	(1, 't1', 2, '', ?, '', '[]', 0, NULL, NULL), (2, 't2', 1, '', ?, '', '[]', 0, 1, NULL),
	(3, 't3', 1, '', ?, '', '[]', 0, NULL, NULL), (4, 't4', 1, '', ?, '', '[]', 0, NULL, 3);
INSERT INTO session (id, uid, user_id, hash, user_agent, created_at, last_used_at, expires_at)
	VALUES (1, 's', 2, ?, '', 0, 0, 0);
INSERT INTO invitation (id, uid, hash, purpose, role, email, note, created_by, created_at, expires_at, used_by) VALUES
	(1, 'i1', ?, 'account', 'user', '', '', 2, 0, 0, NULL), (2, 'i2', ?, 'account', 'user', '', '', NULL, 0, 0, 2);
INSERT INTO signing_key (id, kid, algorithm, private_key, created_at, retired_at)
	VALUES (1, 'k1', 'EdDSA', ?, 0, 0), (2, 'k2', 'EdDSA', ?, 0, NULL);
INSERT INTO project_invitation (id, uid, project_id, sender_id, invited, recipient_id, role, created_at,
	expires_at) VALUES (1, 'p1', 2, 1, 'cid', 3, 'reader', 0, 0), (2, 'p2', 1, 2, 'cid', 3, 'reader', 0, 0),
	(3, 'p3', 1, 3, 'bob', 2, 'reader', 0, 0);
INSERT INTO declined_invitation (id, user_id, sender_id, project_id, declined_at)
	VALUES (1, 2, 1, 1, 0), (2, 1, 2, 1, 0), (3, 1, 3, 2, 0);
INSERT INTO blocked_sender (user_id, sender_id, created_at) VALUES (2, 1, 0), (1, 2, 0), (1, 3, 0);
INSERT INTO trash (id, uid, kind, item, title, owner_id, collection_id, project_id, collection, project, project_name,
	data, memories, size, deleted_by, deleted_through, deleted_at, restorable_until)
	VALUES (1, 'x', 'memory', '', '', 1, 3, 2, '', '', '', '', 0, 0, 1, '', 0, 0);
INSERT INTO trash_item (id, entry_id, kind, uid, data) VALUES (1, 1, 'memory', 'x', '{}');
INSERT INTO trash_link (kind, source, target, position) VALUES ('memory', 'a', 'b', 0);
INSERT INTO activity (id, uid, user_uid, credential, credential_id, client, tool, action, project_id, memory, file,
	outcome, started_at, duration, bytes) VALUES (1, 'y', '', '', '', '', '', '', 2, '', '', '', 0, 0, 0)`

// effects are statements with the result of a query before and after. A trigger or a foreign key's action makes the
// difference.
var effects = []struct{ change, look, before, after string }{
	{`DELETE FROM memory WHERE id = 1`, `SELECT memory_id FROM file`, "[1]", "[<nil>]"},
	{`DELETE FROM memory WHERE id = 1`, `SELECT project_id FROM file`, "[<nil>]", "[1]"},
	{`DELETE FROM partition WHERE id = 1`, `SELECT project_id FROM file`, "[<nil>]", "[1]"},
	{`DELETE FROM memory WHERE id = 1`, `SELECT count(*) FROM memory_tag`, "[1]", "[0]"},
	{`DELETE FROM memory WHERE id = 1`, `SELECT count(*) FROM memory_link WHERE related_id = 3`, "[1]", "[0]"},
	{`DELETE FROM memory WHERE id = 1`, `SELECT count(*) FROM memory_link WHERE related_id = 1`, "[1]", "[0]"},
	{`DELETE FROM memory WHERE id = 1`, `SELECT count(*) FROM memory_revision WHERE memory_id = 1`, "[1]", "[0]"},
	{`DELETE FROM partition WHERE id = 1`, `SELECT count(*) FROM memory_revision WHERE memory_id = 3`, "[1]", "[0]"},
	{`DELETE FROM memory WHERE id = 1`, `SELECT count(*) FROM passage`, "[1]", "[0]"},
	{`DELETE FROM memory WHERE id = 1`, `SELECT count(*) FROM turn`, "[1]", "[0]"},
	{`DELETE FROM memory WHERE id = 3`, `SELECT count(*) FROM memory_own`, "[1]", "[0]"},
	{`DELETE FROM collection WHERE id = 1`, `SELECT id FROM partition ORDER BY id`, "[1 2]", "[2]"},
	{`DELETE FROM partition WHERE id = 1`, `SELECT id FROM memory ORDER BY id`, "[1 2 3]", "[3]"},
	{`DELETE FROM file`, `SELECT count(*) FROM file_tag`, "[1]", "[0]"},
	{`DELETE FROM trash`, `SELECT count(*) FROM trash_item`, "[1]", "[0]"},

	{`INSERT INTO memory_revision (id, memory_id, revision, partition_id, content, attributes, created_at)
		VALUES (3, 1, 2, 1, 'é', '{"a":1}', 0)`, partitionCounts, "[2 2 25 1 0 14]", "[2 3 34 1 0 14]"},
	{`DELETE FROM memory_revision`, partitionCounts, "[2 2 25 1 0 14]", "[2 0 18 1 0 14]"},
	{`UPDATE memory_revision SET partition_id = 2`, partitionCounts, "[2 2 25 1 0 14]", "[2 0 18 1 2 21]"},
	{`UPDATE memory_revision SET content = ''`, partitionCounts, "[2 2 25 1 0 14]", "[2 2 22 1 0 14]"},
	{`UPDATE memory SET content = content || 'é' WHERE id = 1`, partitionCounts, "[2 2 25 1 0 14]", "[2 2 27 1 0 14]"},
	{`UPDATE memory SET partition_id = 2 WHERE id = 2`, partitionCounts, "[2 2 25 1 0 14]", "[1 2 16 2 0 23]"},
	{`DELETE FROM memory WHERE id = 1`, partitionCounts, "[2 2 25 1 0 14]", "[1 1 11 1 0 14]"},

	{`DELETE FROM file_chunk`, `SELECT state FROM file_object`, "[stored]", "[leaving]"},
	{`DELETE FROM file_chunk`, `SELECT due_at FROM file_object`, "[9]", "[0]"},
	{`UPDATE file_chunk SET object = 'o2'`, `SELECT state FROM file_object`, "[stored]", "[leaving]"},
	{`UPDATE file_chunk SET object = NULL`, `SELECT due_at FROM file_object`, "[9]", "[0]"},
	{`UPDATE file_chunk SET object = object`, `SELECT state FROM file_object`, "[stored]", "[stored]"},

	{`DELETE FROM users WHERE id = 2`, `SELECT user_id FROM project_member ORDER BY user_id`, "[2 3]", "[3]"},
	{`DELETE FROM users WHERE id = 2`, `SELECT count(*) FROM external_identity`, "[1]", "[0]"},
	{`DELETE FROM users WHERE id = 2`, `SELECT count(*) FROM preference`, "[1]", "[0]"},
	{`DELETE FROM users WHERE id = 2`, `SELECT count(*) FROM token WHERE id = 1`, "[1]", "[0]"},
	{`DELETE FROM users WHERE id = 2`, `SELECT count(*) FROM session`, "[1]", "[0]"},
	{`DELETE FROM users WHERE id = 2`, `SELECT id FROM oauth_client ORDER BY id`, "[1 2]", "[2]"},
	{`DELETE FROM users WHERE id = 2`, `SELECT count(*) FROM oauth_grant WHERE id = 3`, "[1]", "[0]"},
	{`DELETE FROM users WHERE id = 2`, `SELECT count(*) FROM invitation WHERE id = 1`, "[1]", "[0]"},
	{`DELETE FROM users WHERE id = 2`, `SELECT used_by FROM invitation WHERE id = 2`, "[2]", "[<nil>]"},
	{`DELETE FROM users WHERE id = 2`, `SELECT count(*) FROM project_invitation WHERE id = 2`, "[1]", "[0]"},
	{`DELETE FROM users WHERE id = 2`, `SELECT recipient_id FROM project_invitation WHERE id = 3`, "[2]", "[<nil>]"},
	{`DELETE FROM users WHERE id = 2`, `SELECT count(*) FROM declined_invitation WHERE id = 1`, "[1]", "[0]"},
	{`DELETE FROM users WHERE id = 2`, `SELECT count(*) FROM declined_invitation WHERE id = 2`, "[1]", "[0]"},
	{`DELETE FROM users WHERE id = 2`, `SELECT count(*) FROM blocked_sender WHERE user_id = 2`, "[1]", "[0]"},
	{`DELETE FROM users WHERE id = 2`, `SELECT count(*) FROM blocked_sender WHERE sender_id = 2`, "[1]", "[0]"},

	{`DELETE FROM project WHERE id = 2`, `SELECT project_id FROM project_member ORDER BY project_id`, "[1 2]", "[1]"},
	{`DELETE FROM project WHERE id = 2`, `SELECT count(*) FROM project_alias`, "[1]", "[0]"},
	{`DELETE FROM project WHERE id = 2`, `SELECT count(*) FROM project_invitation WHERE id = 1`, "[1]", "[0]"},
	{`DELETE FROM project WHERE id = 2`, `SELECT project_id FROM declined_invitation WHERE id = 3`, "[2]", "[<nil>]"},
	{`DELETE FROM project WHERE id = 2`, `SELECT project_id FROM trash`, "[2]", "[<nil>]"},
	{`DELETE FROM project WHERE id = 2`, `SELECT project_id FROM activity`, "[2]", "[<nil>]"},
	{`DELETE FROM collection WHERE id = 3`, `SELECT collection_id FROM trash`, "[3]", "[<nil>]"},

	{`DELETE FROM oauth_client WHERE id = 1`, `SELECT count(*) FROM oauth_grant WHERE id = 2`, "[1]", "[0]"},
	{`DELETE FROM oauth_grant WHERE id = 1`, `SELECT count(*) FROM oauth_code`, "[1]", "[0]"},
	{`DELETE FROM oauth_grant WHERE id = 1`, `SELECT count(*) FROM oauth_token`, "[1]", "[0]"},
	{`DELETE FROM oauth_grant WHERE id = 1`, `SELECT count(*) FROM token WHERE id = 2`, "[1]", "[0]"},
	{`DELETE FROM token WHERE id = 3`, `SELECT count(*) FROM token WHERE id = 4`, "[1]", "[0]"},
}

// partitionCounts has the memories, revisions and bytes of the partitions, one after the other.
const partitionCounts = `SELECT CASE n.value WHEN 0 THEN memories WHEN 1 THEN revisions ELSE bytes END
	FROM partition, (SELECT 0 AS value UNION ALL SELECT 1 UNION ALL SELECT 2) n ORDER BY id, n.value`

// refusals are statements that violate a constraint.
var refusals = []struct {
	change string
	want   error
}{
	{`UPDATE signing_key SET retired_at = NULL WHERE id = 1`, db.ErrUnique},
	{`UPDATE project_invitation SET recipient_id = 3 WHERE id = 3`, db.ErrUnique},
	{`UPDATE project_invitation SET invited = 'cid' WHERE id = 3`, db.ErrUnique},
	{`INSERT INTO file_chunk (id, sha256, data, object) VALUES (2, ?, ?, 'o1')`, db.ErrUnique},
	{`INSERT INTO file (id, uid, owner_id, filename, mime_type, size, sha256, description, category, created_at,
		updated_at, state, text_id) VALUES (2, 'g', 1, '', '', 0, ?, '', '', 0, 0, 'stored', 2),
		(3, 'h', 1, '', '', 0, ?, '', '', 0, 0, 'stored', 2)`, db.ErrUnique},
	{`INSERT INTO memory_link (memory_id, related_id, position) VALUES (1, 3, 5)`, db.ErrUnique},
	{`INSERT INTO memory_tag (memory_id, tag, position) VALUES (1, 't', 5)`, db.ErrUnique},
	{`INSERT INTO file_tag (file_id, tag, position) VALUES (1, 't', 5)`, db.ErrUnique},
	{`INSERT INTO external_identity (issuer, subject, user_id, email, created_at)
		VALUES ('i', 's', 3, '', 0)`, db.ErrUnique},
	{`INSERT INTO project_member (project_id, user_id, role, created_at) VALUES (1, 2, 'writer', 0)`, db.ErrUnique},
	{`INSERT INTO blocked_sender (user_id, sender_id, created_at) VALUES (2, 1, 5)`, db.ErrUnique},
	{`INSERT INTO project_alias (owner_id, name_key, name, project_id, created_at)
		VALUES (1, 'old', '', 1, 0)`, db.ErrUnique},
	{`INSERT INTO memory_revision (id, memory_id, revision, partition_id, content, attributes, created_at)
		VALUES (3, 1, 1, 1, '', '{}', 0)`, db.ErrUnique},
	{`INSERT INTO trash_link (kind, source, target, position) VALUES ('memory', 'a', 'b', 1)`, db.ErrUnique},
	{`UPDATE memory SET uid = 'm1' WHERE id = 2`, db.ErrUnique},
	{`UPDATE project SET uid = 'p' WHERE id = 2`, db.ErrUnique},
	{`UPDATE collection SET name = 'c' WHERE id = 2`, db.ErrUnique},
	{`UPDATE oauth_client SET client_id = 'c1' WHERE id = 2`, db.ErrUnique},
	{`UPDATE oauth_grant SET uid = 'g1' WHERE id = 2`, db.ErrUnique},
	{`UPDATE token SET uid = 't1' WHERE id = 2`, db.ErrUnique},
	{`UPDATE token SET hash = (SELECT hash FROM token WHERE id = 1) WHERE id = 2`, db.ErrUnique},
	{`UPDATE invitation SET hash = (SELECT hash FROM invitation WHERE id = 1) WHERE id = 2`, db.ErrUnique},
	{`DELETE FROM users WHERE id = 1`, db.ErrForeignKey},
	{`DELETE FROM project WHERE id = 1`, db.ErrForeignKey},
	{`UPDATE token SET user_id = 9 WHERE id = 1`, db.ErrForeignKey},
	{`UPDATE file SET memory_id = 9`, db.ErrForeignKey},
	{`UPDATE file SET state = 'lost'`, db.ErrConstraint},
	{`UPDATE file SET text_state = 'lost'`, db.ErrConstraint},
	{`UPDATE file_object SET state = 'lost'`, db.ErrConstraint},
	{`UPDATE project_member SET role = 'king'`, db.ErrConstraint},
	{`UPDATE token SET with_session = 2`, db.ErrConstraint},
	{`UPDATE invitation SET purpose = 'fun'`, db.ErrConstraint},
	{`UPDATE trash SET kind = 'user'`, db.ErrConstraint},
}

// withBytes runs a statement whose parameters are some bytes.
func withBytes(tx db.Tx, statement string) error {
	var args []any
	for n := range strings.Count(statement, "?") {
		args = append(args, fmt.Appendf(nil, "%d of %s", n, statement))
	}
	_, err := tx.Exec(statement, args...)
	if err != nil {
		return fmt.Errorf("%.60s: %w", statement, err)
	}
	return nil
}

// schemaAnswers checks the effects of statements: which rows go with a deleted one, what triggers write, and which
// statements are refused. Other tests look more closely at the log of changes, own metadata, texts of files, segments
// and names of users.
func schemaAnswers(t *testing.T, d db.DB) {
	write(t, d, func(tx db.Tx) error {
		for _, statement := range strings.Split(world, ";\n") {
			if err := withBytes(tx, strings.TrimSpace(statement)); err != nil {
				return err
			}
		}
		return nil
	})
	undone := errors.New("undone")
	for _, c := range effects {
		is(t, c.change, d.Write(t.Context(), func(tx db.Tx) error {
			look := func() string {
				found, err := db.Column[any](tx, c.look)
				if err != nil {
					t.Errorf("%s: %v", c.look, err)
				}
				return fmt.Sprint(found)
			}
			equal(t, "before "+c.change+": "+c.look, look(), c.before)
			if err := withBytes(tx, c.change); err != nil {
				return err
			}
			equal(t, c.change+": "+c.look, look(), c.after)
			return undone
		}), undone)
	}
	for _, c := range refusals {
		is(t, c.change, d.Write(t.Context(), func(tx db.Tx) error { return withBytes(tx, c.change) }), c.want)
	}
}

// counters checks what the schema does by itself: it counts memories and passages of a partition, and deletes what
// belongs to a deleted row.
func counters(t *testing.T, d db.DB) {
	partition := place(t, d)
	var rows []int64
	write(t, d, func(tx db.Tx) error {
		rows = nil
		for m := range 3 {
			row, err := addMemory(tx, partition, fmt.Sprint(m), "{}")
			if err != nil {
				return err
			}
			rows = append(rows, row)
			if _, err := tx.Exec(`INSERT INTO memory_tag (memory_id, tag, position) VALUES (?, 'tag', 0)`, row); err != nil {
				return err
			}
			for n := range 2 {
				if _, err := tx.Exec(`INSERT INTO passage (id, memory_id, start, length, blank) VALUES (?, ?, 0, 1, 0)`,
					partition<<32+int64(10*m+n), row); err != nil {
					return err
				}
			}
		}
		return nil
	})
	counted := func(what, want string) {
		t.Helper()
		read(t, d, func(tx db.Tx) error {
			var memories, passages, tags, stored int
			err := tx.QueryRow(`SELECT memories, passages FROM partition WHERE id = ?`, partition).Scan(&memories, &passages)
			if errors.Is(err, db.ErrNoRows) {
				err = nil
			}
			err = errors.Join(err, tx.QueryRow(`SELECT (SELECT count(*) FROM memory_tag), (SELECT count(*) FROM passage)`).
				Scan(&tags, &stored))
			equal(t, what, fmt.Sprint(memories, passages, tags, stored), want)
			return err
		})
	}
	counted("three memories of two passages and a tag", "3 6 3 6")
	write(t, d, func(tx db.Tx) error {
		_, err := tx.Exec(`DELETE FROM memory WHERE id = ?`, rows[0])
		return err
	})
	counted("after a deletion", "2 4 2 4")
	undone := errors.New("undone")
	is(t, "a Write with an error", d.Write(t.Context(), func(tx db.Tx) error {
		_, err := tx.Exec(`DELETE FROM memory`)
		return errors.Join(err, undone)
	}), undone)
	counted("after a deletion that was undone", "2 4 2 4")
	write(t, d, func(tx db.Tx) error {
		_, err := tx.Exec(`DELETE FROM collection`)
		return err
	})
	counted("after the collection is gone", "0 0 0 0")
}

// rules checks the constraints and triggers behind the checks of the store's code.
func rules(t *testing.T, d db.DB) {
	partition := place(t, d)
	var collection, project, memory, other int64
	write(t, d, func(tx db.Tx) (err error) {
		insert := func(query string, args ...any) (row int64) {
			if err == nil {
				row, err = db.Insert(tx, query, args...)
			}
			return row
		}
		other = insert(`INSERT INTO users (uid, name, name_key, namespace, created_at)
			VALUES ('bob', 'Bob', 'bob', 'shop', 0) RETURNING id`)
		insert(`INSERT INTO users (uid, uid_key, namespace, created_at) VALUES ('cal', 'cal', 'shop', 0) RETURNING id`)
		project = insert(`INSERT INTO project (owner_id, uid, name, created_at, updated_at)
			SELECT id, 'p', 'p', 0, 0 FROM users WHERE uid = 'ann' RETURNING id`)
		collection = insert(`INSERT INTO collection (owner_id, name, description, created_at, updated_at)
			VALUES (?, 'box', '', 0, 0) RETURNING id`, other)
		memory = insert(`INSERT INTO memory (uid, partition_id, content, metadata, revision, created_at, updated_at, key,
			rule_of, rule_type) VALUES ('m', ?, '', '{}', 1, 0, 0, 'k', ?, 'style') RETURNING id`, partition, project)
		if err == nil {
			_, err = tx.Exec(`INSERT INTO file (uid, owner_id, memory_id, filename, mime_type, size, sha256, description,
				category, created_at, updated_at) SELECT 'f', id, ?, '', '', 0, ?, '', '', 0, 0 FROM users WHERE uid = 'ann'`,
				memory, []byte{})
		}
		return err
	})
	for what, c := range map[string]struct {
		query string
		args  []any
	}{
		"a user's id again": {`INSERT INTO users (uid, namespace, created_at) VALUES ('bob', 'shop', 0)`, nil},
		"a folded name again": {`INSERT INTO users (uid, name, name_key, namespace, created_at)
			VALUES ('x', 'BOB', 'bob', 'shop', 0)`, nil},
		"a name that is a user's id": {`INSERT INTO users (uid, name, name_key, namespace, created_at)
			VALUES ('x', 'CAL', 'cal', 'shop', 0)`, nil},
		"another name that is a user's id": {`UPDATE users SET name = 'CAL', name_key = 'cal' WHERE uid = 'bob'`, nil},
		"an id that is a user's name": {`INSERT INTO users (uid, uid_key, namespace, created_at)
			VALUES ('BOB', 'bob', 'shop', 0)`, nil},
		"a key again": {`INSERT INTO memory (uid, partition_id, content, metadata, revision, created_at, updated_at, key)
			VALUES ('n', ?, '', '{}', 1, 0, 0, 'k')`, []any{partition}},
		"a rule's type again": {`INSERT INTO memory (uid, partition_id, content, metadata, revision, created_at, updated_at,
			rule_of, rule_type) VALUES ('n', ?, '', '{}', 1, 0, 0, ?, 'style')`, []any{partition, project}},
		"a member of another namespace": {`INSERT INTO project_member (project_id, user_id, role, created_at)
			VALUES (?, ?, 'reader', 0)`, []any{project, other}},
		"a recipient of another namespace": {`INSERT INTO project_invitation (uid, project_id, sender_id, invited,
			recipient_id, role, created_at, expires_at) VALUES ('i', ?, ?, 'x', ?, 'reader', 0, 0)`,
			[]any{project, other, other}},
		"a place in a project of another namespace": {`INSERT INTO partition (collection_id, project_id) VALUES (?, ?)`,
			[]any{collection, project}},
		"a move to another namespace": {`UPDATE users SET namespace = '' WHERE id = ?`, []any{other}},
	} {
		is(t, what, d.Write(t.Context(), func(tx db.Tx) error {
			_, err := tx.Exec(c.query, c.args...)
			return err
		}), db.ErrConstraint)
	}
	write(t, d, func(tx db.Tx) error {
		_, err := tx.Exec(`DELETE FROM memory WHERE id = ?`, memory)
		return err
	})
	read(t, d, func(tx db.Tx) error {
		linked, err := db.Column[bool](tx, `SELECT memory_id IS NOT NULL FROM file`)
		equal(t, "files of a deleted memory, and whether they are linked", fmt.Sprint(linked), "[false]")
		return err
	})
}

// fills checks that a migration is completed in Go, in its own transaction.
func fills(t *testing.T, e Engine) {
	if e.Fill == nil {
		t.Skip("this engine has no migration that is completed in Go")
	}
	failed := errors.New("failed")
	d, err := e.Fill(t, map[string]func(db.Tx) error{"namespaces": func(tx db.Tx) error {
		return errors.Join(set(tx, key("filled"), 1), failed)
	}})
	is(t, "opening with a migration that fails", err, failed)
	if err == nil {
		_ = d.Close()
	}
	ran := 0
	d, err = e.Fill(t, map[string]func(db.Tx) error{"namespaces": func(tx db.Tx) error {
		ran++
		n, err := count(tx)
		equal(t, "rows that the failed migration has left", n, 0)
		return errors.Join(err, set(tx, key("filled"), 1))
	}, "unknown": func(db.Tx) error { return failed }})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	read(t, d, func(tx db.Tx) error {
		n, err := count(tx)
		equal(t, "rows, and how often it ran", fmt.Sprint(n, ran), "1 1")
		return err
	})
}
