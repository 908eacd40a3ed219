package trash

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
)

// EraseMemoriesOf erases the trash, the memories and the collections of a user, and the memories in the user's
// projects, and reports whether all of them are gone.
func (m *Mover) EraseMemoriesOf(user int64, p Portion) (done bool, err error) {
	if done, err = m.EraseTrashOf(user, p); err != nil || !done {
		return false, err
	}
	done, err = m.Memories(0, `(p.collection_id IN (SELECT id FROM collection `+
		`WHERE owner_id = ?1) OR p.project_id IN (SELECT id FROM project WHERE owner_id = ?1))`, user)
	if err == nil && done {
		_, err = m.Tx.Exec(`DELETE FROM collection WHERE owner_id = ?`, user)
	}
	return done && err == nil, err
}

// Holdings is what deleting a user removes.
type Holdings struct {
	Name   string
	Bytes  int64            // of files
	Counts map[string]int64 // by kind
}

// HoldingsOf counts what deleting a user removes: the content of their collections and projects, even if another user
// stored it.
func HoldingsOf(tx db.Tx, namespace, user string) (Holdings, error) {
	h := Holdings{Counts: map[string]int64{}}
	kinds := []string{"memory", "revision", "collection", "project", "file", "trash", "token",
		"grant", "client", "session"}
	counts := make([]int64, len(kinds))
	into := []any{&h.Name, &h.Bytes}
	for i := range counts {
		into = append(into, &counts[i])
	}
	const places = `(SELECT p.id FROM partition p JOIN collection c ON c.id = p.collection_id WHERE c.name <> ''
		AND (c.owner_id = u.id OR p.project_id IN (SELECT id FROM project WHERE owner_id = u.id)))`
	if err := tx.QueryRow(`SELECT coalesce(u.name, ''),
		(SELECT coalesce(sum(size), 0) FROM file WHERE owner_id = u.id AND state = 'stored'),
		(SELECT count(*) FROM memory WHERE partition_id IN `+places+`),
		(SELECT count(*) FROM memory_revision r JOIN memory m ON m.id = r.memory_id WHERE m.partition_id IN `+places+`),
		(SELECT count(*) FROM collection WHERE owner_id = u.id AND name <> ''),
		(SELECT count(*) FROM project WHERE owner_id = u.id),
		(SELECT count(*) FROM file WHERE owner_id = u.id AND state = 'stored'),
		(SELECT count(*) FROM trash WHERE owner_id = u.id),
		(SELECT count(*) FROM token WHERE user_id = u.id AND revoked_at IS NULL),
		(SELECT count(*) FROM oauth_grant WHERE user_id = u.id AND revoked_at IS NULL),
		(SELECT count(*) FROM oauth_client WHERE owner_id = u.id),
		(SELECT count(*) FROM session WHERE user_id = u.id)
		FROM users u WHERE u.namespace = ? AND u.uid = ?`, namespace, user).Scan(into...); err != nil {
		return h, err
	}
	for i, kind := range kinds {
		h.Counts[kind] = counts[i]
	}
	return h, nil
}

// OwnedBy counts what a user owns: memories that have not expired, projects and files.
func OwnedBy(tx db.Tx, v kernel.Viewer, user int64) (memories, projects, files int64, err error) {
	err = tx.QueryRow(`SELECT
		(SELECT coalesce(sum(`+v.Held()+`), 0) FROM partition p JOIN collection c ON c.id = p.collection_id
		WHERE c.owner_id = ?1 AND c.name <> ''),
		(SELECT count(*) FROM project WHERE owner_id = ?1), (SELECT count(*) FROM file WHERE owner_id = ?1
		AND state = 'stored')`, user).Scan(&memories, &projects, &files)
	return memories, projects, files, err
}

// EmptyUser deletes the rest of a user's data, after memories and projects, and the account. The row itself stays:
// views remember it, and files are deleted after it.
func (m *Mover) EmptyUser(user int64) error {
	for _, statement := range emptyUser {
		if _, err := m.Tx.Exec(statement, user); err != nil {
			return err
		}
	}
	return db.Beyond(m.Tx, func() error { return m.leaveTrashed(user) })
}

// leaveTrashed removes a user from the members of other users' projects in the trash. Otherwise a restore would add
// another user who gets the id later.
func (m *Mover) leaveTrashed(user int64) error {
	var id string
	if err := m.Tx.QueryRow(`SELECT uid FROM users WHERE id = ?`, user).Scan(&id); err != nil {
		return err
	}
	entries, err := db.Column[int64](m.Tx, `SELECT t.id FROM trash t JOIN users o ON o.id = t.owner_id
		WHERE t.kind = 'project' AND o.namespace = (SELECT namespace FROM users WHERE id = ?)`, user)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		var data string
		var p project
		switch err := m.Tx.QueryRow(`SELECT data FROM trash WHERE id = ?`, entry).Scan(&data); {
		case errors.Is(err, keyring.ErrSealed):
			continue // a restore reports that the entry is damaged
		case err != nil:
			return err
		case json.Unmarshal([]byte(data), &p) != nil:
			continue
		}
		others := slices.DeleteFunc(slices.Clone(p.Members), func(member Member) bool { return member.User == id })
		if len(others) == len(p.Members) {
			continue
		}
		p.Members = others
		encoded, err := json.Marshal(p)
		if err != nil {
			return err
		}
		sealed, err := m.sealed(entry, sealedrows.TrashData, string(encoded))
		if err != nil {
			return err
		}
		if _, err := m.Tx.Exec(`UPDATE trash SET data = ? WHERE id = ?`, sealed, entry); err != nil {
			return err
		}
	}
	return nil
}

var emptyUser = []string{
	`DELETE FROM trash WHERE kind = 'file' AND 'trash/' || id IN (SELECT uid FROM file WHERE owner_id = ?1 ` +
		`AND state = 'trashed')`,
	`UPDATE file SET state = 'leaving', memory_id = NULL, project_id = NULL WHERE owner_id = ?1`,
	`DELETE FROM project_member WHERE user_id = ?1`,
	`DELETE FROM project_invitation WHERE sender_id = ?1`,
	`UPDATE project_invitation SET recipient_id = NULL WHERE recipient_id = ?1`,
	`DELETE FROM declined_invitation WHERE ?1 IN (user_id, sender_id)`,
	`DELETE FROM blocked_sender WHERE ?1 IN (user_id, sender_id)`,
	`DELETE FROM external_identity WHERE user_id = ?1`,
	`DELETE FROM preference WHERE user_id = ?1`,
	`DELETE FROM session WHERE user_id = ?1`,
	`DELETE FROM activity WHERE user_uid = (SELECT uid FROM users WHERE id = ?1)
		AND namespace = (SELECT namespace FROM users WHERE id = ?1)`,
	`DELETE FROM invitation WHERE created_by = ?1 AND used_at IS NULL`,
	`DELETE FROM token WHERE user_id = ?1`,
	`DELETE FROM oauth_grant WHERE user_id = ?1`,
	`DELETE FROM oauth_client WHERE owner_id = ?1`,
	`UPDATE users SET name = NULL, name_key = NULL, email = NULL, role = 'user', password = NULL WHERE id = ?1`,
}
