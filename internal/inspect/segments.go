package inspect

import (
	"fmt"
	"math"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
)

// checkSegments verifies that the segments of the search index are unchanged and contain exactly the right memories. It
// skips segments of another version of the program, which are rebuilt.
func (in *inspection) checkSegments() error {
	type segmented struct {
		partition, upto int64
		there           bool
	}
	var all []segmented
	err := in.tx.Each(func(row db.Rows) error {
		var s segmented
		err := row.Scan(&s.partition, &s.upto, &s.there)
		all = append(all, s)
		return err
	}, `SELECT s.partition_id, s.upto, p.id IS NOT NULL FROM segmented s LEFT JOIN partition p ON p.id = s.partition_id
		WHERE s.kind = ? OR p.id IS NULL ORDER BY s.partition_id`, retrieval.SegmentKind())
	if err != nil {
		return err
	}
	for _, s := range all {
		in.report.Checked["segmented"]++
		problem, err := "belongs to a partition that does not exist", error(nil)
		if s.there {
			problem, err = in.segmentProblem(s.partition, s.upto)
		}
		if err != nil {
			return err
		}
		if problem != "" {
			in.find(Finding{Table: "segment", Repairable: true,
				Problem: fmt.Sprintf("the stored search index of partition %d %s", s.partition, problem)})
			in.repairs.segments = append(in.repairs.segments, s.partition)
		}
	}
	return nil
}

// segmentProblem returns the problem of a partition's segments, "" for none.
func (in *inspection) segmentProblem(partition, upto int64) (problem string, err error) {
	ids, err := db.Column[int64](in.tx, `SELECT id FROM segment WHERE partition_id = ? ORDER BY id`, partition)
	if err != nil {
		return "", err
	}
	counted, twice := map[int64]bool{}, 0
	for _, id := range ids { // one by one, since each may take megabytes
		var data []byte
		err := in.tx.QueryRow(`SELECT data FROM segment WHERE id = ?`, id).Scan(&data)
		if keyring.IsShut(err) {
			return "cannot be opened: " + err.Error(), nil
		}
		if err != nil {
			return "", err
		}
		memories, sound := memoriesOf(data)
		if !sound {
			return "has changed since it was stored", nil
		}
		for _, row := range memories {
			if counted[row] {
				twice++
			}
			counted[row] = true
		}
	}
	if twice > 0 {
		return fmt.Sprintf("has %d memories twice", twice), nil
	}
	err = db.Stream(in.tx, func(row db.Rows) error {
		var memory int64
		err := row.Scan(&memory)
		delete(counted, memory)
		return err
	}, `SELECT memory_id FROM segment_stale WHERE partition_id = ?`, partition)
	if err != nil {
		return "", err
	}
	missing := 0
	err = db.Stream(in.tx, func(row db.Rows) error {
		var memory int64
		err := row.Scan(&memory)
		if !counted[memory] {
			missing++
		}
		delete(counted, memory)
		return err
	}, `SELECT id FROM memory m WHERE partition_id = ?1 AND id <= ?2
		AND EXISTS (SELECT 1 FROM passage p WHERE p.memory_id = m.id)
		AND NOT EXISTS (SELECT 1 FROM segment_stale s WHERE s.partition_id = ?1 AND s.memory_id = m.id)`, partition, upto)
	if missing > 0 || len(counted) > 0 {
		problem = fmt.Sprintf("lacks %d memories, and has %d that do not exist", missing, len(counted))
	}
	return problem, err
}

// memoriesOf returns the rows of the memories in a segment; sound is false if it cannot be read.
func memoriesOf(data []byte) (rows []int64, sound bool) {
	s, err := index.DecodeSegment(data, math.MaxUint16+1)
	if err != nil {
		return nil, false
	}
	return s.Memories(), true
}
