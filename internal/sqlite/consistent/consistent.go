// Package consistent reads the database of a store directly, and fails a test if its rows contradict each other.
package consistent

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/text"
)

// Check checks that everything in a database agrees. It changes nothing.
func Check(tb testing.TB, d db.DB) {
	tb.Helper()
	over := errors.New("nothing of this is kept")
	err := d.Write(context.Background(), func(tx db.Tx) error { // it makes a temporary table and rolls back
		if err := wrongRows(tb, tx); err != nil {
			return err
		}
		if err := wrongTerms(tb, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(`INSERT INTO passage_text (passage_text) VALUES ('integrity-check')`); err != nil {
			tb.Errorf("full text: %v", err)
		}
		return over
	})
	if !errors.Is(err, over) {
		tb.Errorf("checking the file: %v, want %v", err, over)
	}
}

// wrongRows runs queries whose results are the faults.
func wrongRows(tb testing.TB, tx db.Tx) error {
	tb.Helper()
	for _, c := range []struct{ promise, query string }{
		{"SQLite finds no damage", `SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'`},
		{"references lead somewhere", `SELECT "table" || ' ' || rowid FROM pragma_foreign_key_check`},
		{"each memory has a passage, unless it is blank",
			`SELECT uid FROM memory WHERE id NOT IN (SELECT memory_id FROM passage) ` +
				`AND trim(content, char(9, 10, 13, 32)) <> ''`},
		{"each passage has its row in full text", `SELECT id FROM passage WHERE id NOT IN (SELECT rowid FROM passage_text)`},
		{"each row in full text has its passage",
			`SELECT rowid FROM passage_text WHERE rowid NOT IN (SELECT id FROM passage)`},
		{"passages are in their memory's partition",
			`SELECT p.id FROM passage p JOIN memory m ON m.id = p.memory_id WHERE p.id >> 32 <> m.partition_id`},
		{"passages lie within the content", `SELECT p.id FROM passage p JOIN memory m ON m.id = p.memory_id
			WHERE p.start < 0 OR p.length < 0 OR p.start + p.length > length(CAST(m.content AS BLOB))`},
		{"a partition counts its memories",
			`SELECT id || ': ' || memories FROM partition p WHERE memories <> (SELECT count(*) FROM memory ` +
				`WHERE partition_id = p.id)`},
		{"a partition counts its passages",
			`SELECT id || ': ' || passages FROM partition p WHERE passages <> (SELECT count(*) FROM passage ` +
				`WHERE id >> 32 = p.id)`},
		{"a partition counts its past versions",
			`SELECT id || ': ' || revisions FROM partition p WHERE revisions <> (SELECT count(*) FROM memory_revision ` +
				`WHERE partition_id = p.id)`},
		{"a partition counts its bytes", `SELECT id || ': ' || bytes FROM partition p WHERE bytes <>
			(SELECT ifnull(sum(octet_length(content) + octet_length(metadata)), 0) FROM memory WHERE partition_id = p.id)
			+ (SELECT ifnull(sum(octet_length(content) + octet_length(attributes)), 0) FROM memory_revision
			WHERE partition_id = p.id)`},
		{"ids of passages are not given twice",
			`SELECT p.id FROM passage p JOIN partition a ON a.id = p.id >> 32 WHERE p.id & 0xffffffff >= a.next_passage`},
		{"vectors have their profile's size",
			`SELECT p.id FROM passage p LEFT JOIN profile f ON f.id = p.profile_id WHERE p.vector IS NOT NULL ` +
				`AND (f.id IS NULL OR length(p.vector) NOT IN (4 * f.dimensions, 1 + 2 * f.dimensions))`},
		{"tags are numbered without gaps",
			`SELECT memory_id FROM memory_tag GROUP BY memory_id HAVING count(*) <> max(position) + 1 OR min(position) <> 0`},
		{"revisions are kept without gaps",
			`SELECT uid FROM memory m WHERE revision <> 1 + (SELECT count(*) FROM memory_revision WHERE memory_id = m.id)
			OR revision <= (SELECT max(revision) FROM memory_revision WHERE memory_id = m.id)`},
		{"each memory is in the log of changes",
			`SELECT uid FROM memory WHERE ifnull((SELECT max(seq) FROM change), 0) <= 65536 AND id NOT IN (SELECT memory_id ` +
				`FROM change)`},
		{"no collection has two partitions of a project",
			`SELECT collection_id FROM partition GROUP BY collection_id, ifnull(project_id, 0) HAVING count(*) > 1`},
		{"the rows of a project are stored with its owner",
			`SELECT p.id FROM partition p JOIN collection c ON c.id = p.collection_id JOIN project j ON j.id = p.project_id ` +
				`WHERE c.owner_id <> j.owner_id`},
		{"files in a project are its owner's",
			`SELECT f.uid FROM file f LEFT JOIN memory m ON m.id = f.memory_id LEFT JOIN partition p ON p.id = m.partition_id
			JOIN project j ON j.id = iif(m.id IS NULL, f.project_id, p.project_id) WHERE f.state = 'stored'
			AND f.owner_id <> j.owner_id`},
		{"metadata is an object", `SELECT uid FROM memory WHERE json_type(metadata) <> 'object'`},
	} {
		found, err := db.Column[string](tx, c.query)
		if err != nil {
			return fmt.Errorf("%s: %w", c.promise, err)
		}
		if len(found) > 0 {
			tb.Errorf("it does not hold that %s: %d times, first %s, want found empty", c.promise, len(found), found[0])
		}
	}
	return nil
}

// wrongTerms compares the terms in full text with those of the contents and tags.
func wrongTerms(tb testing.TB, tx db.Tx) error {
	tb.Helper()
	if _, err := tx.Exec(`CREATE VIRTUAL TABLE temp.held USING fts5vocab('main', 'passage_text', ` +
		`'instance')`); err != nil {
		return err
	}
	held := map[string]string{}
	err := tx.Each(func(row db.Rows) error {
		var doc int64
		var column, terms string
		err := row.Scan(&doc, &column, &terms)
		held[fmt.Sprint(doc, column)] = terms
		return err
	}, `SELECT doc, col, group_concat(term, ' ' ORDER BY offset) FROM temp.held GROUP BY doc, col`)
	if err != nil {
		return err
	}
	previous := int64(0)
	wrong := 0
	err = tx.Each(func(row db.Rows) error {
		var id, memory int64
		var start, length int
		var content, tags string
		if err := row.Scan(&id, &memory, &start, &length, &content, &tags); err != nil {
			return err
		}
		if memory == previous {
			tags = "" // only the first passage has the tags
		}
		previous = memory
		want, wantTags := text.Indexed(content[start:start+length]), text.Indexed(tags)
		got, gotTags := held[fmt.Sprint(id, "content")], held[fmt.Sprint(id, "tags")]
		if want != got || wantTags != gotTags {
			wrong++
			if wrong == 1 {
				tb.Errorf("passage %d: full text holds %s and %s, its words are %s and %s, got %v, want wrong other than 1", id,
					cut(got), cut(gotTags), cut(want), cut(wantTags), wrong)
			}
		}
		return nil
	}, `SELECT p.id, p.memory_id, p.start, p.length, m.content,
			ifnull((SELECT group_concat(tag, char(10) ORDER BY position) FROM memory_tag WHERE memory_id = m.id), '')
		FROM passage p JOIN memory m ON m.id = p.memory_id ORDER BY p.memory_id, p.id`)
	if wrong > 1 {
		tb.Errorf("so it is with %d passages, want at most 1", wrong)
	}
	return err
}

func cut(s string) string { return strconv.Quote(s[:min(len(s), 200)]) }
