package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/vectorform"
)

// An index of vectors by the extension pgvector is optional; postgres/vectors.sql makes it. The table passage_near has
// the vectors of large partitions, in 16 bits per number: near_partition says which partitions, and up to which
// passage. Maintain fills it. A search reads the nearest passages according to the index, the passages after the last
// indexed one, and passages whose vector has changed, and compares all of them exactly.

// near describes the available index.
type near struct {
	extension string  // schema of the extension, quoted
	sizes     []int64 // dimensions for which there is an index
	fills     bool    // the role of the connections may fill it
}

const (
	mostBehind  = 2000 // passages that a search compares in addition to those from the index
	worthwhile  = 200  // passages that are not in the index before Maintain adds them
	addedAtOnce = 100  // passages that a transaction adds: others who delete these wait for it

	leastCandidates, mostCandidates = 200, 1000 // of a search of the index (hnsw.ef_search): pgvector allows 1000
)

// lookForNear notes whether the database has an index of vectors, of a version that continues its scan when a condition
// leaves too few rows.
func (d *DB) lookForNear(ctx context.Context) error {
	var extension, version string
	var fills bool
	var sizes []string
	err := d.pool.QueryRow(ctx, `SELECT coalesce(max(quote_ident(n.nspname)), ''), coalesce(max(e.extversion), ''),
			coalesce(bool_and(has_table_privilege(t.oid, 'INSERT, UPDATE')), false),
			coalesce(array_agg(substr(i.relname, 14)) FILTER (WHERE x.indisvalid), '{}')
		FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
			JOIN pg_class t ON t.relname = 'passage_near' AND t.relnamespace = current_schema()::regnamespace
			JOIN pg_index x ON x.indrelid = t.oid
			JOIN pg_class i ON i.oid = x.indexrelid AND i.relname ~ '^passage_near_\d+$'
		WHERE e.extname = 'vector'`).Scan(&extension, &version, &fills, &sizes)
	if err != nil || len(sizes) == 0 {
		return classify("open", err)
	}
	if major, rest, _ := strings.Cut(version, "."); major == "0" {
		minor, _, _ := strings.Cut(rest, ".")
		if n, _ := strconv.Atoi(minor); n < 8 {
			d.log.WarnContext(ctx, "pgvector is too old to be used; it must be 0.8 or newer", "version", version)
			return nil
		}
	}
	d.near = &near{extension: extension, fills: fills}
	for _, text := range sizes {
		if size, err := strconv.ParseInt(text, 10, 64); err == nil {
			d.near.sizes = append(d.near.sizes, size)
		}
	}
	return nil
}

// Nearest finds passages by the index of vectors.
func (v vectors) Nearest(in db.Range, vector []byte, profiles []int64, limit int, ids []int64) (nearest,
	besides []db.Compared, found bool, err error) {
	size := int64(len(vector) / 4)
	if v.d.near == nil || limit < 1 || !slices.Contains(v.d.near.sizes, size) {
		return nil, nil, false, nil
	}
	query, err := vectorform.NewQuery(vector)
	if err != nil {
		return nil, nil, false, err
	}
	text, err := textOf(vector)
	if err != nil {
		return nil, nil, false, err
	}
	upto, behind, err := v.behind(in, size)
	if err != nil || upto < in.First || behind > mostBehind {
		return nil, nil, false, err
	}
	// Where the planner may not sort, it reads the index.
	err = v.command(fmt.Sprintf(`SET LOCAL hnsw.ef_search = %d; SET LOCAL hnsw.iterative_scan = relaxed_order;
		SET LOCAL enable_sort = off`, min(mostCandidates, max(limit, leastCandidates))))
	if err != nil {
		return nil, nil, false, err
	}
	named := 0
	exact, short := query.Lengths()
	err = v.Each(func(row db.Rows) error {
		var c db.Compared
		var other []byte
		var byIndex, comparable bool
		if err := row.Scan(&c.Passage, &c.Memory, &c.Start, &c.Length, &other, &byIndex, &comparable); err != nil {
			return err
		}
		if byIndex {
			named++
		}
		if !comparable {
			return nil
		}
		if err := query.Compare(&c, other); err != nil {
			return err
		}
		if byIndex {
			nearest = append(nearest, c)
		} else {
			besides = append(besides, c)
		}
		return nil
	}, v.candidates(size), in.First, in.Last, text, limit, upto, exact, db.List(profiles), db.List(ids), short)
	if err == nil {
		err = v.command(`SET LOCAL enable_sort TO DEFAULT`)
	}
	if err != nil || named >= limit {
		return nearest, besides, err == nil, err
	}
	// Conditions on the rows may have ended the scan of the index early.
	var there int
	err = v.QueryRow(`SELECT count(*) FROM (SELECT FROM passage_near WHERE id BETWEEN ? AND ? AND embedding IS NOT NULL
		LIMIT ?) n`, in.First, in.Last, limit).Scan(&there)
	return nearest, besides, err == nil && there == named, err
}

// candidates is the statement that reads the passages to compare.
func (v vectors) candidates(size int64) string {
	return fmt.Sprintf(`WITH nearest AS MATERIALIZED (
			SELECT id FROM passage_near WHERE id BETWEEN ?1 AND ?2 AND %[1]s.vector_dims(embedding) = %[2]d
			ORDER BY embedding::%[1]s.halfvec(%[2]d) OPERATOR(%[1]s.<#>) ?3::%[1]s.halfvec(%[2]d) LIMIT ?4)
		SELECT p.id, p.memory_id, p.start, p.length, p.vector, c.by_index,
			coalesce(length(p.vector) IN (?6, ?9) AND p.profile_id IN %[3]s, false)
		FROM (SELECT id, bool_or(by_index) AS by_index FROM (SELECT id, true AS by_index FROM nearest
			UNION ALL SELECT id, false FROM passage_near WHERE id BETWEEN ?1 AND ?2 AND embedding IS NULL
			UNION ALL SELECT id, false FROM passage WHERE id > ?5 AND id <= ?2
			UNION ALL SELECT id, false FROM %[4]s m (id)) u GROUP BY id) c
		JOIN passage p ON p.id = c.id`, v.d.near.extension, size, integers(`?7`), integers(`?8`))
}

// behind returns the passage up to which a partition is in the index, 0 for none, and how many passages must be
// compared in addition.
func (v vectors) behind(in db.Range, size int64) (upto int64, passages int, err error) {
	err = v.QueryRow(`SELECT n.upto,
			(SELECT count(*) FROM (SELECT FROM passage WHERE id > n.upto AND id <= ?2 LIMIT ?3) a)
			+ (SELECT count(*) FROM (SELECT FROM passage_near c JOIN passage p ON p.id = c.id WHERE c.id BETWEEN ?1 AND ?2
				AND c.embedding IS NULL AND p.vector IS NOT NULL LIMIT ?3) c)
		FROM near_partition n WHERE n.partition_id = ?4 AND n.dimensions = ?5`,
		in.First, in.Last, mostBehind+1, in.First>>32, size).Scan(&upto, &passages)
	if errors.Is(err, db.ErrNoRows) {
		return 0, 0, nil
	}
	return upto, passages, err
}

// WithVectors counts the memories in a partition that Nearest has found something in.
func (v vectors) WithVectors(in db.Range, vector []byte, keep func(memory int64) bool) (n int, err error) {
	// Memories without a passage that has a vector: their passages are not in the index, or have rows without one.
	const without = `SELECT c.memory_id FROM (
			SELECT memory_id FROM passage_near WHERE id BETWEEN ?1 AND ?2 AND embedding IS NULL
			UNION SELECT p.memory_id FROM near_partition n JOIN passage p ON p.id > n.upto AND p.id <= ?2
				WHERE n.partition_id = ?4) c
		WHERE NOT EXISTS (SELECT 1 FROM passage p WHERE p.memory_id = c.memory_id AND length(p.vector) IN (?3, ?5))`
	args := []any{in.First, in.Last, len(vector), in.First >> 32, vectorform.ShortLength(len(vector) / 4)}
	if keep == nil {
		err = v.QueryRow(`SELECT memories - (SELECT count(*) FROM (`+without+`) w) FROM partition WHERE id = ?4`, args...).
			Scan(&n)
		return n, err
	}
	err = v.Each(func(row db.Rows) error {
		var memory int64
		err := row.Scan(&memory)
		if keep(memory) {
			n++
		}
		return err
	}, `SELECT id FROM memory WHERE partition_id = ?4 EXCEPT `+without, args...)
	return n, err
}

// textOf writes a vector as pgvector reads it, exactly enough for 16 bits per number.
func textOf(vector []byte) (string, error) {
	numbers, err := vectorform.Decode(vector)
	text := []byte{'['}
	for i, x := range numbers {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendFloat(text, float64(x), 'g', 6, 32)
	}
	return string(append(text, ']')), err
}

// maintainNear brings the index of vectors up to date if much is missing from it. Vectors that are sealed under user
// keys are in no index.
func (d *DB) maintainNear(ctx context.Context, wait bool) error {
	type due struct{ partition, size int64 }
	var all []due
	err := d.Read(ctx, func(tx db.Tx) error {
		all = nil
		return tx.Each(func(row db.Rows) error {
			var p due
			err := row.Scan(&p.partition, &p.size)
			if slices.Contains(d.near.sizes, p.size) {
				all = append(all, p)
			}
			return err
		}, `WITH ready AS MATERIALIZED (SELECT s.value FROM setting s JOIN setting t ON t.value = s.value
				WHERE s.key = 'embedding_ready' AND t.key = 'embedding_target')
			SELECT p.id, f.dimensions FROM partition p JOIN collection c ON c.id = p.collection_id
				JOIN profile f ON f.id = coalesce(c.own_profile, (SELECT value FROM ready))
				LEFT JOIN near_partition n ON n.partition_id = p.id
			WHERE p.passages >= near_from() AND NOT EXISTS (SELECT FROM setting k WHERE k.key = 'user_keys')
				AND (n.dimensions IS DISTINCT FROM f.dimensions
				OR (SELECT count(*) FROM (SELECT FROM passage a WHERE a.id > n.upto AND a.id < (p.id + 1) << 32
					LIMIT ?1) b) >= ?1
				OR (SELECT count(*) FROM (SELECT FROM passage_near c JOIN passage a ON a.id = c.id
					WHERE c.id BETWEEN p.id << 32 AND n.upto AND c.embedding IS NULL
					AND length(a.vector) IN (4 * f.dimensions, 1 + 2 * f.dimensions)
					LIMIT ?1) b) >= ?1)
			ORDER BY p.id`, worthwhile)
	})
	for _, p := range all {
		for more := true; more && err == nil; {
			err = d.Write(db.Yielding(ctx), func(tx db.Tx) (err error) {
				more, err = d.tendSome(tx, p.partition, p.size, wait)
				return err
			})
		}
	}
	return err
}

// maintenanceLock is the key of the lock under which one process at a time fills the index.
const maintenanceLock = 0x5375766f

// tendSome adds some passages of a partition to the index. It reports whether there may be more to do.
func (d *DB) tendSome(tx db.Tx, partition, size int64, wait bool) (more bool, err error) {
	if alone, err := locked(tx, maintenanceLock, wait); err != nil || !alone {
		return false, err
	}
	first := partition << 32
	upto, known := first-1, int64(0)
	err = tx.QueryRow(`SELECT upto, dimensions FROM near_partition WHERE partition_id = ?`, partition).Scan(&upto, &known)
	switch {
	case errors.Is(err, db.ErrNoRows):
		_, err = tx.Exec(`INSERT INTO near_partition (partition_id, dimensions, upto) VALUES (?, ?, ?)`, partition, size,
			upto)
		return true, err
	case err != nil:
		return false, err
	case known != size: // of another model
		gone, err := tx.Exec(`DELETE FROM passage_near WHERE id IN (SELECT id FROM passage_near WHERE id BETWEEN ? AND ?
			LIMIT ?)`, first, first|(1<<32-1), 10*addedAtOnce)
		if err == nil && gone.RowsAffected == 0 {
			_, err = tx.Exec(`UPDATE near_partition SET dimensions = ?, upto = ? WHERE partition_id = ?`, size, first-1,
				partition)
		}
		return true, err
	}
	added, last, err := d.passages(tx, `SELECT id, memory_id, CASE WHEN length(vector) IN (?1, ?5) THEN vector END
		FROM passage WHERE id > ?2 AND id <= ?3 ORDER BY id LIMIT ?4`, 4*size, upto, first|(1<<32-1), addedAtOnce,
		vectorform.ShortLength(int(size)))
	if err != nil {
		return false, err
	}
	if last == 0 {
		return d.tendChanged(tx, first, upto, size)
	}
	if _, err = tx.Exec(fmt.Sprintf(`INSERT INTO passage_near (id, memory_id, embedding)
		SELECT r.id, r.memory_id, r.vector::%s.halfvec FROM jsonb_to_recordset(?::jsonb)
			AS r (id bigint, memory_id bigint, vector text) ON CONFLICT (id) DO NOTHING`, d.near.extension),
		added); err != nil {
		return false, err
	}
	_, err = tx.Exec(`UPDATE near_partition SET upto = ? WHERE partition_id = ?`, last, partition)
	return true, err
}

// tendChanged brings passages up to date whose vector has changed.
func (d *DB) tendChanged(tx db.Tx, first, upto, size int64) (more bool, err error) {
	changed, last, err := d.passages(tx, `SELECT n.id, n.memory_id, p.vector FROM passage_near n
		JOIN passage p ON p.id = n.id WHERE n.id BETWEEN ?1 AND ?2 AND n.embedding IS NULL AND length(p.vector) IN (?3, ?5)
		ORDER BY n.id LIMIT ?4`, first, upto, 4*size, addedAtOnce,
		vectorform.ShortLength(int(size)))
	if err != nil || last == 0 {
		return false, err
	}
	_, err = tx.Exec(fmt.Sprintf(`UPDATE passage_near n SET embedding = r.vector::%s.halfvec
		FROM jsonb_to_recordset(?::jsonb) AS r (id bigint, vector text) WHERE n.id = r.id`, d.near.extension), changed)
	return true, err
}

// passages reads passages with their vectors, as a list in JSON. last is the last one, 0 if there are none.
func (d *DB) passages(tx db.Tx, query string, args ...any) (list string, last int64, err error) {
	type passage struct {
		ID     int64   `json:"id"`
		Memory int64   `json:"memory_id"`
		Vector *string `json:"vector"`
	}
	var all []passage
	err = tx.Each(func(row db.Rows) error {
		var p passage
		var vector []byte
		if err := row.Scan(&p.ID, &p.Memory, &vector); err != nil {
			return err
		}
		if vector != nil {
			text, err := textOf(vector)
			if err != nil {
				return fmt.Errorf("%w: the vector of passage %d: %w", db.ErrCorrupt, p.ID, err)
			}
			p.Vector = &text
		}
		all, last = append(all, p), p.ID
		return nil
	}, query, args...)
	if err != nil {
		return "", 0, err
	}
	encoded, err := json.Marshal(all)
	return string(encoded), last, err
}
