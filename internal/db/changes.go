package db

// Changes is the log of memories written or deleted by any process, the table change. Triggers add to it when the row
// of a memory is inserted, updated or deleted, and when the vector of a passage is updated. Inserting or deleting a
// passage adds nothing, even with a vector: its memory is written in the same transaction, or [AddChange] is called.
type Changes interface {
	// Mark returns the log's position in the transaction's snapshot. A mark from a Write that has changed memories is of
	// use only after the commit: from it, [Changes.Since] finds the later changes of the Write, but need not do so within
	// the Write. If the Write is undone, later changes may be missed.
	Mark() (Mark, error)
	// Since returns the memories that changed between a mark and the transaction's own, each once, at most limit, and the
	// later of the two marks. If the transaction's snapshot is older than the mark, it returns no memories and the mark
	// itself, so that data from a newer snapshot is not replaced from an older one. It may include a memory that changed
	// earlier, but misses none. complete is false if there are more, or if the log does not reach back far enough. A
	// Write finds its own changes, too, from a mark that was taken before it; next is then a mark as [Changes.Mark]
	// returns it.
	Since(mark Mark, limit int) (memories []int64, next Mark, complete bool, err error)
}

// AddChange adds a memory whose passages were rebuilt to the log. Stored segments of the search index no longer count
// for it; for all other changes, triggers do the same (migration 0033). A missing memory is no error.
func AddChange(tx Tx, memory int64) error {
	tx = Stored(tx)
	if _, err := tx.Exec(`INSERT INTO change (memory_id) VALUES (?)`, memory); err != nil {
		return err
	}
	_, err := tx.Exec(`INSERT INTO segment_stale (partition_id, memory_id) SELECT s.partition_id, m.id FROM memory m
		JOIN segmented s ON s.partition_id = m.partition_id WHERE m.id = ? AND m.id <= s.upto ON CONFLICT DO NOTHING`,
		memory)
	return err
}

// Mark is a position in the log of changes, as the engine writes it; "" is before everything. Between equal marks
// nothing changed. Callers cannot order marks: an engine whose commits come out of order records in the mark which
// transactions were running.
type Mark string
