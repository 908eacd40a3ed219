//go:build cgo

// sqlite-vec in C needs a C compiler, and the system's sqlite3.h (Debian: libsqlite3-dev). CGO_CFLAGS=-O3 -mavx
// -DSQLITE_VEC_ENABLE_AVX builds it with AVX; otherwise it is built as in its authors' Go package.

package main

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"math"
	"path/filepath"

	vec "github.com/asg017/sqlite-vec-go-bindings/cgo"
	_ "github.com/mattn/go-sqlite3"

	"github.com/souvenir-ai/souvenir"
)

func init() {
	vec.Auto()
	peers = append(peers, peer{"sqlite-vec in C", openSQLiteVec})
}

// openSQLiteVec opens a table of vectors of sqlite-vec, whose search is exact. It has no texts.
func openSQLiteVec(ctx context.Context, dir string) (_ store, err error) {
	db, err := sql.Open("sqlite3", filepath.Join(dir, "vec.db")+"?_journal=wal&_sync=full")
	if err != nil {
		return store{}, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	const table = `CREATE VIRTUAL TABLE IF NOT EXISTS texts USING vec0(v float[256] distance_metric=cosine)`
	if _, err := db.ExecContext(ctx, table); err != nil {
		return store{}, err
	}
	search, err := db.PrepareContext(ctx, `SELECT rowid FROM texts WHERE v MATCH ? AND k = ?`)
	if err != nil {
		return store{}, err
	}
	return store{
		Closer: db,
		add: func(ctx context.Context, first int, texts []string) error {
			vectors, err := embed(ctx, souvenir.ForDocument, texts)
			if err != nil {
				return err
			}
			return insertVectors(ctx, db, first, vectors)
		},
		nearest: func(ctx context.Context, vector []float32) (numbers []int, err error) {
			rows, err := search.QueryContext(ctx, encoded(vector), results)
			if err != nil {
				return nil, err
			}
			defer rows.Close()
			for rows.Next() {
				var n int
				if err := rows.Scan(&n); err != nil {
					return nil, err
				}
				numbers = append(numbers, n-1)
			}
			return numbers, rows.Err()
		},
	}, nil
}

func insertVectors(ctx context.Context, db *sql.DB, first int, vectors [][]float32) (err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tx.Rollback())
		}
	}()
	insert, err := tx.PrepareContext(ctx, `INSERT INTO texts (rowid, v) VALUES (?, ?)`)
	if err != nil {
		return err
	}
	for i, v := range vectors {
		if _, err := insert.ExecContext(ctx, first+i+1, encoded(v)); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// encoded returns a vector in sqlite-vec's format.
func encoded(vector []float32) []byte {
	data := make([]byte, 0, 4*len(vector))
	for _, x := range vector {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	return data
}
