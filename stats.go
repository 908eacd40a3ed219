package souvenir

import (
	"context"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Stats are numbers about a whole store.
type Stats struct {
	Users       int `json:"users"` // as many as [Accounts.Users] returns: those who have an account or anything in the store
	Collections int `json:"collections"`
	Projects    int `json:"projects"`
	Memories    int `json:"memories"`
	Passages    int `json:"passages"`  // what is searched: a long memory has several
	Revisions   int `json:"revisions"` // former states of memories
	Files       int `json:"files"`

	FileBytes     int64 `json:"file_bytes"`     // in all files that were uploaded
	DatabaseBytes int64 `json:"database_bytes"` // the store's file
	FreeBytes     int64 `json:"free_bytes"`     // of these, free for new content; Compact gives them back to the system
	LogBytes      int64 `json:"wal_bytes"`      // the write-ahead log beside the file

	LostActivity int `json:"lost_activity"` // calls that this handle could not record; see RecordActivity

	// Embedding is the state of the vectors of all users.
	Embedding EmbeddingStatus `json:"embedding"`
}

// Stats returns numbers about the whole store. It is for the Store that Open returned; a view gets ErrForbidden.
func (h *Upkeep) Stats(ctx context.Context) (Stats, error) {
	s, err := h.operator("Stats")
	if err != nil {
		return Stats{}, err
	}
	st := Stats{
		LostActivity: s.activity.lost(),
		Embedding:    EmbeddingStatus{Model: s.embedder.Model(), Dimensions: s.embedder.Dimensions(), LastError: s.worker.lastError()},
	}
	err = s.read(ctx, func(tx db.Tx, _ scope) error {
		err := tx.QueryRow(`SELECT (SELECT count(*) FROM users u WHERE `+listed+`), (SELECT count(*) FROM collection), (SELECT count(*) FROM project),
				(SELECT coalesce(sum(memories), 0) FROM partition), (SELECT coalesce(sum(passages), 0) FROM partition),
				(SELECT count(*) FROM memory_revision), count(*), coalesce(sum(size), 0) FROM file WHERE state = 'stored'`).
			Scan(&st.Users, &st.Collections, &st.Projects, &st.Memories, &st.Passages, &st.Revisions, &st.Files, &st.FileBytes)
		if err != nil {
			return err
		}
		size, err := s.db.Upkeep().Size(tx)
		if err != nil {
			return err
		}
		st.DatabaseBytes, st.FreeBytes, st.LogBytes = size.Database, size.Free, size.Log
		st.Embedding.Passages = st.Passages
		if err := tx.QueryRow(`SELECT count(*) FROM passage WHERE vector IS NULL AND profile_id IS NOT NULL`).Scan(&st.Embedding.Pending); err != nil {
			return err
		}
		all, err := db.Column[int64](tx, `SELECT id FROM partition`)
		if err != nil {
			return err
		}
		return s.changeStatus(tx, jsonList(all), &st.Embedding)
	})
	return st, err
}
