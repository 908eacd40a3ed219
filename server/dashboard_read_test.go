package server_test

import (
	"context"
	"sync/atomic"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/storefile"
)

// counts are the numbers of a store's statements in transactions, and of the rows that they returned.
type counts struct{ statements, rows atomic.Int64 }

// countReads opens a store's file and counts the statements of its transactions and their rows.
func countReads(path string, read *counts) db.Opener {
	return func(ctx context.Context, o db.Opening) (db.DB, error) {
		config := storefile.Config(path, o.Now)
		config.Readers, config.Logger = o.Readers, o.Logger
		engine, err := sqlite.Open(ctx, config)
		return countingDB{engine, read}, err
	}
}

type countingDB struct {
	db.DB
	read *counts
}

func (d countingDB) Read(ctx context.Context, fn func(db.Tx) error) error {
	return d.DB.Read(ctx, func(tx db.Tx) error { return fn(countingTx{tx, d.read}) })
}

func (d countingDB) Write(ctx context.Context, fn func(db.Tx) error) error {
	return d.DB.Write(ctx, func(tx db.Tx) error { return fn(countingTx{tx, d.read}) })
}

type countingTx struct {
	db.Tx
	read *counts
}

func (tx countingTx) Exec(query string, args ...any) (db.Result, error) {
	tx.read.statements.Add(1)
	return tx.Tx.Exec(query, args...)
}

func (tx countingTx) Query(query string, args ...any) (db.Rows, error) {
	tx.read.statements.Add(1)
	rows, err := tx.Tx.Query(query, args...)
	if err != nil {
		return nil, err
	}
	return countingRows{rows, tx.read}, nil
}

func (tx countingTx) QueryRow(query string, args ...any) db.Row {
	tx.read.statements.Add(1)
	tx.read.rows.Add(1)
	return tx.Tx.QueryRow(query, args...)
}

func (tx countingTx) Each(fn func(db.Rows) error, query string, args ...any) error {
	tx.read.statements.Add(1)
	return tx.Tx.Each(func(rows db.Rows) error {
		tx.read.rows.Add(1)
		return fn(rows)
	}, query, args...)
}

type countingRows struct {
	db.Rows
	read *counts
}

func (r countingRows) Next() bool {
	more := r.Rows.Next()
	if more {
		r.read.rows.Add(1)
	}
	return more
}
