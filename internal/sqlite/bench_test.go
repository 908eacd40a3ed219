package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	base "github.com/souvenir-ai/souvenir/internal/db"
)

// BenchmarkWrite measures durable single-row writes.
func BenchmarkWrite(b *testing.B) {
	for _, goroutines := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("goroutines=%d", goroutines), func(b *testing.B) {
			db := openTest(b, testConfig(newFile(b)))
			data := make([]byte, 1024)
			ctx, cancel := context.WithCancel(b.Context()) // cancellable, as callers have it
			defer cancel()
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ResetTimer()
			var wg sync.WaitGroup
			for range goroutines {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						err := db.Write(ctx, func(tx base.Tx) error {
							_, err := tx.Exec("INSERT INTO item (data) VALUES (?)", data)
							return err
						})
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
		})
	}
}

// BenchmarkRead measures a read transaction with one lookup by key.
func BenchmarkRead(b *testing.B) {
	db := openTest(b, testConfig(newFile(b)))
	must(b, db.Write(b.Context(), func(tx base.Tx) error {
		_, err := tx.Exec("INSERT INTO item (id, name) VALUES (1, 'a')")
		return err
	}))
	cancellable, cancel := context.WithCancel(b.Context())
	defer cancel()
	for name, ctx := range map[string]context.Context{"background": context.WithoutCancel(b.Context()),
		"cancellable": cancellable} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				err := db.Read(ctx, func(tx base.Tx) error {
					var name string
					return tx.QueryRow("SELECT name FROM item WHERE id = ?", 1).Scan(&name)
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("empty", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := db.Read(cancellable, func(base.Tx) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("lookup in one transaction", func(b *testing.B) {
		b.ReportAllocs()
		err := db.Read(cancellable, func(tx base.Tx) error {
			for b.Loop() {
				var name string
				if err := tx.QueryRow("SELECT name FROM item WHERE id = ?", 1).Scan(&name); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkScan measures reading many rows, per row.
func BenchmarkScan(b *testing.B) {
	db := openTest(b, testConfig(newFile(b)))
	const rows = 10_000
	must(b, db.Write(b.Context(), func(tx base.Tx) error {
		for i := range rows {
			if _, err := tx.Exec("INSERT INTO item (name, data) VALUES (?, ?)", fmt.Sprint(i), make([]byte, 1024)); err != nil {
				return err
			}
		}
		return nil
	}))
	for b.Loop() {
		err := db.Read(b.Context(), func(tx base.Tx) error {
			r, err := tx.Query("SELECT id, name, data FROM item")
			if err != nil {
				return err
			}
			for r.Next() {
				var id int64
				var name string
				var data []byte
				if err := r.Scan(&id, &name, &data); err != nil {
					return err
				}
			}
			return r.Err()
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
}

func BenchmarkOpenNew(b *testing.B) {
	dir := b.TempDir()
	for i := 0; b.Loop(); i++ {
		db, err := Open(b.Context(), testConfig(filepath.Join(dir, fmt.Sprint(i))))
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		must(b, db.Close())
		b.StartTimer()
	}
}

func BenchmarkOpenExisting(b *testing.B) {
	c := testConfig(newFile(b))
	for b.Loop() {
		db, err := Open(b.Context(), c)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		must(b, db.Close())
		b.StartTimer()
	}
}
