package systemtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/db"
	enginepostgres "github.com/souvenir-ai/souvenir/internal/postgres"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
	"github.com/souvenir-ai/souvenir/internal/testing/storetest"
)

// unconditional are statements that read memories, files and trash without the condition of a view.
var unconditional = map[string]string{
	"memory":          `SELECT content FROM memory`,
	"memory_revision": `SELECT content FROM memory_revision`,
	"memory_own":      `SELECT value::text FROM memory_own`,
	"memory_tag":      `SELECT tag FROM memory_tag`,
	"passage_text":    `SELECT content FROM passage_text`,
	"passage_term":    `SELECT term FROM passage_term`,
	"passage":         `SELECT id::text FROM passage`,
	"turn":            `SELECT speaker FROM turn`,
	"file":            `SELECT filename FROM file`,
	"file_tag":        `SELECT tag FROM file_tag`,
	"file_chunk":      `SELECT convert_from(data, 'UTF8') FROM file_chunk`,
	"trash":           `SELECT title FROM trash`,
	"trash_item":      `SELECT data FROM trash_item`,
	"preference":      `SELECT value FROM preference`,
	"segmented":       `SELECT partition_id::text FROM segmented`,
	"segment":         `SELECT convert_from(data, 'UTF8') FROM segment`,
	"segment_stale":   `SELECT memory_id::text FROM segment_stale`,
}

// segments are the rows of a search index that holds all memories.
var segments = []string{
	`INSERT INTO segmented (partition_id, profile_id, kind, upto, memories) SELECT id, 1, '', 0, 0 FROM partition`,
	`INSERT INTO segment (partition_id, memories, first_row, last_row, data) SELECT partition_id, count(*), 0, 0,
		convert_to(string_agg(content, ' '), 'UTF8') FROM memory GROUP BY partition_id`,
	`INSERT INTO segment_stale (partition_id, memory_id) SELECT partition_id, id FROM memory`,
}

// indexedWords are the rows that background work makes for partitions with many passages.
var indexedWords = []string{
	`INSERT INTO word_partition (partition_id, upto) SELECT id, id * 4294967296 + next_passage - 1 FROM partition`,
	`INSERT INTO passage_term (term, passage_id, times)
		SELECT t, x.id, count(*) FROM passage_text x, LATERAL terms_of(x.content, x.tags) t GROUP BY t, x.id`,
}

// preferences gives each user preferences with the contents of the user's own memories.
const preferences = `INSERT INTO preference (user_id, value, updated_at)
	SELECT c.owner_id, string_agg(m.content, ' '), 0 FROM memory m JOIN partition p ON p.id = m.partition_id
		JOIN collection c ON c.id = p.collection_id WHERE p.project_id IS NULL GROUP BY c.owner_id
	ON CONFLICT (user_id) DO UPDATE SET value = excluded.value`

// A statement without the condition of its view returns only what the view may see. One without a view returns nothing.
func TestTheSecondWallHoldsWithoutConditions(t *testing.T) {
	n := buildNeighbourhood(t, schema{pgtest.Empty(t)})
	owned := n.built.copied(t).(schema)
	for _, statement := range slices.Concat(segments, indexedWords, []string{preferences}) {
		pgtest.Query(t, owned.address, statement)
	}
	address := behindWall(t, owned).runtime
	engine, err := enginepostgres.Open(context.Background(), address, db.Opening{Readers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	rows := func(tx db.Tx, table string) []string {
		t.Helper()
		all, err := db.Column[string](tx, unconditional[table])
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	for _, v := range visitors {
		err := engine.Read(t.Context(), func(tx db.Tx) error {
			for table := range unconditional {
				if got := rows(tx, table); len(got) == 0 && table != "file_tag" {
					t.Errorf("%s for the store as a whole: got no rows, want some", table)
				}
			}
			c := callerOf(t, tx, v)
			db.ActFor(tx, &c)
			var names []string
			for _, content := range rows(tx, "memory") {
				name, _, _ := strings.Cut(content, " ")
				names = append(names, name)
			}
			if slices.Sort(names); !slices.Equal(names, v.sees) {
				t.Errorf("%s sees the memories %v without a condition, want %v", v.name, names, v.sees)
			}
			for table := range unconditional {
				said := strings.Join(rows(tx, table), "\n")
				for _, m := range neighbours {
					if !slices.Contains(v.sees, m.name) && strings.Contains(said, m.name) {
						t.Errorf("%s sees %s in %s without a condition, want it hidden", v.name, m.name, table)
					}
				}
				if strings.Contains(said, adjacent) {
					t.Errorf("%s sees another application's data in %s, want it hidden", v.name, table)
				}
			}
			return db.Beyond(tx, func() error {
				if got := len(rows(tx, "memory")); got <= len(v.sees) {
					t.Errorf("beyond the wall: got %d memories, want more", got)
				}
				return nil
			})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for table, statement := range unconditional {
		if got := pgtest.Query(t, address, statement); len(got) != 0 {
			t.Errorf("%s without a caller: got %q, want no rows", table, got)
		}
	}
}

// changing are statements that change everyone's memories, files and trash, and return the changed rows.
var changing = map[string]string{
	"update memories": `UPDATE memory SET content = content || '.' RETURNING content`,
	"delete memories": `DELETE FROM memory RETURNING content`,
	"delete versions": `DELETE FROM memory_revision RETURNING content`,
	"delete tags":     `DELETE FROM memory_tag RETURNING tag`,
	"update own":      `UPDATE memory_own SET value = value RETURNING value::text`,
	"empty passages":  `UPDATE passage SET vector = NULL RETURNING id::text`,
	"update words":    `UPDATE passage_text SET tags = '' RETURNING content`,
	"update terms":    `DELETE FROM passage_term RETURNING term`,
	"update turns":    `UPDATE turn SET speaker = speaker RETURNING speaker`,
	"update files":    `UPDATE file SET description = '' RETURNING filename`,
	"delete files":    `DELETE FROM file RETURNING filename`,
	"delete labels":   `DELETE FROM file_tag RETURNING tag`,
	"delete bytes":    `DELETE FROM file_chunk RETURNING convert_from(data, 'UTF8')`,
	"empty trash":     `DELETE FROM trash RETURNING title`,
	"empty entries":   `DELETE FROM trash_item RETURNING data`,
	"set preferences": `UPDATE preference SET updated_at = 1 RETURNING value`,
}

// errUndo undoes a test's changes.
var errUndo = errors.New("undo")

// A statement without the condition of its view changes only what the view may change, and adds nothing where the view
// may not write.
func TestTheSecondWallHoldsForWritesWithoutConditions(t *testing.T) {
	n := buildNeighbourhood(t, schema{pgtest.Empty(t)})
	owned := n.built.copied(t).(schema)
	for _, statement := range append(indexedWords, preferences) {
		pgtest.Query(t, owned.address, statement)
	}
	engine, err := enginepostgres.Open(context.Background(), behindWall(t, owned).runtime, db.Opening{Readers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	inTurn := func(act func(tx db.Tx) error) {
		t.Helper()
		err := engine.Write(t.Context(), func(tx db.Tx) error { return cmp.Or(act(tx), errUndo) })
		if !errors.Is(err, errUndo) {
			t.Fatalf("got %v, want %v", err, errUndo)
		}
	}
	for name, statement := range changing {
		inTurn(func(tx db.Tx) error {
			if got, err := db.Column[string](tx, statement); err != nil || len(got) == 0 && name != "delete labels" {
				t.Errorf("%s for the store as a whole: got %d rows, %v; want some", name, len(got), err)
			}
			return nil
		})
	}
	for _, v := range visitors {
		if v.access.ReadOnly { // its transactions cannot write
			continue
		}
		for name, statement := range changing {
			inTurn(func(tx db.Tx) error {
				c := callerOf(t, tx, v)
				db.ActFor(tx, &c)
				got, err := db.Column[string](tx, statement)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", v.name, name, err)
				}
				said := strings.Join(got, "\n")
				for _, m := range neighbours {
					if !slices.Contains(v.changes, m.name) && strings.Contains(said, m.name) {
						t.Errorf("%s, %s without a condition: it changes %s, want it unchanged", v.name, name, m.name)
					}
				}
				if name != "update memories" {
					return nil
				}
				for i := range got {
					got[i], _, _ = strings.Cut(got[i], " ")
				}
				if slices.Sort(got); !slices.Equal(got, v.changes) {
					t.Errorf("%s changes the memories %v without a condition, want %v", v.name, got, v.changes)
				}
				return nil
			})
		}
		inTurn(func(tx db.Tx) error {
			c := callerOf(t, tx, v)
			places, err := db.Column[int64](tx, `SELECT DISTINCT partition_id FROM memory
				WHERE split_part(content, ' ', 1) NOT IN `+db.Texts, db.List(v.changes))
			if err != nil {
				return err
			}
			db.ActFor(tx, &c)
			for _, place := range places {
				_, err := tx.Exec(`INSERT INTO memory (uid, partition_id, content, metadata, revision, created_at, updated_at)
					VALUES ('smuggled', ?, 'x', '{}', 1, 0, 0)`, place)
				if err == nil {
					t.Errorf("%s adds a memory to the partition %d, want it refused", v.name, place)
				}
			}
			return nil
		})
	}
}

// unwalled are the tables that are not behind the wall, each with the reason.
var unwalled = map[string]string{
	"activity":            "who called what and when, without contents",
	"audit":               "actions on accounts, for admins",
	"blocked_sender":      "accounts: whose invitations a user does not want",
	"change":              "numbers of memories, which the index of all users reads",
	"change_floor":        "the beginning of the log of changes",
	"collection":          "names; the wall reads it",
	"declined_invitation": "accounts: invitations",
	"external_identity":   "accounts: read before the caller is known",
	"file_object":         "hashes of files of all users, which share an object",
	"invitation":          "accounts: read before the caller is known",
	"memory_link":         "numbers of memories; a restore puts back links of other users' memories",
	"oauth_client":        "accounts: read before the caller is known",
	"oauth_code":          "accounts: read before the caller is known",
	"oauth_grant":         "accounts: read before the caller is known",
	"oauth_token":         "accounts: read before the caller is known",
	"partition":           "numbers; the wall reads it",
	"profile":             "models of embeddings, which all users share",
	"project":             "names; the wall reads it",
	"project_alias":       "names",
	"project_invitation":  "accounts: invitations",
	"project_member":      "numbers and roles; the wall reads it",
	"row_hash":            "empty: only files have hashes",
	"schema_version":      "the version",
	"session":             "accounts: read before the caller is known",
	"setting":             "settings of the store",
	"shared_state":        "accounts: sign-ins, before the caller is known",
	"signing_key":         "keys of the store",
	"token":               "accounts: read before the caller is known",
	"trash_link":          "ids; a restore puts back links of other users' memories",
	"users":               "accounts, and names",
	"word_partition":      "numbers, for background work",
	"write_turn":          "empty",
}

// Every new table is behind the wall, or listed with a reason.
func TestEveryTableIsBehindTheWallOrKnown(t *testing.T) {
	d := behindWall(t, schema{pgtest.Empty(t)})
	for _, line := range pgtest.Query(t, d.address, `SELECT c.relname || ' ' || c.relrowsecurity FROM pg_class c
		WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace`) {
		table, behind, _ := strings.Cut(line, " ")
		if _, tried := unconditional[table]; tried != (behind == "true") {
			t.Errorf("%s: behind the wall %s, tried without a condition %t, want both or neither", table, behind, tried)
		}
		if reason := unwalled[table]; (behind == "false") != (reason != "") {
			t.Errorf("%s: behind the second wall %s, with a reason not to be %q: want it in postgres/wall.sql, or in unwalled",
				table, behind, reason)
		}
	}
}

// callerOf looks up the user and the projects of a visitor.
func callerOf(t *testing.T, tx db.Tx, v visitor) db.Caller {
	t.Helper()
	users, err := db.Column[int64](tx, `SELECT id FROM users WHERE namespace = '' AND uid = ?`, v.access.User)
	if err != nil {
		t.Fatal(err)
	}
	c := db.Caller{Limited: v.access.Projects != nil}
	if len(users) > 0 {
		c.User = users[0]
	}
	for _, ref := range v.access.Projects {
		owner, id, given := strings.Cut(ref, "/")
		if !given {
			owner, id = v.access.User, ref
		}
		projects, err := db.Column[int64](tx, `SELECT j.id FROM project j JOIN users u ON u.id = j.owner_id
			WHERE u.namespace = '' AND u.uid = ? AND j.uid = ?`, owner, id)
		if err != nil {
			t.Fatal(err)
		}
		c.Projects = append(c.Projects, projects...)
	}
	return c
}

// The rows that match a filter are kept for all callers. What another caller has read beyond the wall does not count.
func TestTotalsBehindTheWallIgnoreWhatOtherCallersHaveRead(t *testing.T) {
	const shared, tagged, private = 6_000, 600, 50 // so many that a page is read from a stretch of an order
	s, err := emptyBehindWall(t).open(Options{Embedder: storetest.Words{}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ann, bob := s.As(Access{User: "ann"}), s.As(Access{User: "bob"})
	project := mustAddProject(t, ann, NewProject{ID: "p", Name: "p"})
	memories := make([]NewMemory, shared+private)
	for i := range memories {
		memories[i] = NewMemory{Content: "x", ProjectID: project.ID}
		if i%(shared/tagged) == 0 {
			memories[i].Tags = []string{"t"}
		}
		if i >= shared {
			memories[i].ProjectID, memories[i].Tags = "", []string{"t"}
		}
	}
	if _, err := ann.AddMemories(t.Context(), memories, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := bob.AddMemory(t.Context(), NewMemory{Content: "x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddMember(t.Context(), NewMember{Project: ProjectRef{ID: "ann/p"}, User: "bob",
		Role: MemberReader}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		view   *Store
		filter Filter
		want   int
	}{
		{ann, Filter{"tags": "t"}, tagged},       // keeps the rows of all that ann sees
		{ann, Filter{"event_type": nil}, shared}, // keeps a stretch of the project's order
		{bob, Filter{"tags": "t"}, tagged},
		{ann, Filter{"tags": "t"}, tagged},
	} {
		found, err := c.view.Search(t.Context(), Query{ProjectID: "p", Filter: c.filter, Sort: SortUpdatedDesc, Limit: 5})
		if err != nil || found.Total != c.want || len(found.Hits) != 5 {
			t.Errorf("%s with %v: got %d memories, %d of them on a page, and %v; want %d, 5 and no error",
				c.view.Access().User, c.filter, found.Total, len(found.Hits), err, c.want)
		}
	}
}
